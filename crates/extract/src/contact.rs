//! How to reach the author: telephone numbers and addresses in their own signature, or in sentences
//! that say so. Never anybody else's, and never a fax.

mod detail;

use self::detail::next_detail;
use crate::mark;
use crate::{Origin, TextPart};

/// The most contact details of one kind.
const MAX_OF_KIND: usize = 4;

/// Lines of a signature beyond these are not read.
const MAX_SIGNATURE_LINES: usize = 24;

/// A longer line is no contact line.
const MAX_LINE_BYTES: usize = 400;

/// A contact detail of the author.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Contact {
    pub(crate) value: String,
    pub(crate) is_phone: bool,
    pub(crate) is_signature: bool,
    /// The line or sentence it stands in.
    pub(crate) words: String,
}

/// What the author's own words say, and what was seen and not taken.
pub(crate) fn contacts(parts: &[TextPart], max_bytes: usize) -> (Vec<Contact>, Vec<&'static str>) {
    let mut reader = Reader::default();
    let mut left = max_bytes;
    for part in parts {
        let text = &part.text[..part.text.floor_char_boundary(left)];
        match part.origin {
            Origin::Author => reader.author(text),
            Origin::Signature => reader.signature(text),
            Origin::Quoted | Origin::Forwarded => continue,
        }
        left -= text.len();
    }
    (reader.found, reader.marks)
}

#[derive(Default)]
struct Reader {
    found: Vec<Contact>,
    marks: Vec<&'static str>,
}

impl Reader {
    /// Statements, and labelled lines below a closing phrase.
    fn author(&mut self, text: &str) {
        let mut since_closing = None;
        for line in text.lines() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            if is_closing(line) {
                since_closing = Some(0_usize);
                continue;
            }
            since_closing = since_closing.map(|lines| lines + 1);
            let is_detail = is_labelled(line) || line.starts_with('+') || is_only_an_address(line);
            if since_closing.is_some_and(|lines| lines <= 8) && is_detail {
                self.line(line, true);
            } else {
                self.statements(line);
            }
        }
    }

    fn signature(&mut self, text: &str) {
        for line in text.lines().take(MAX_SIGNATURE_LINES) {
            self.line(line.trim(), true);
        }
    }

    fn statements(&mut self, line: &str) {
        for (lead, sentence) in stated(line) {
            self.rest(lead, sentence, false);
        }
    }

    /// All details of a line, each by the label before it.
    fn line(&mut self, line: &str, is_signature: bool) {
        if line.len() <= MAX_LINE_BYTES && !line.starts_with("-----") {
            self.rest(line, line, is_signature);
        }
    }

    fn rest(&mut self, text: &str, words: &str, is_signature: bool) {
        let mut start = 0;
        while let Some(found) = next_detail(text, start) {
            let label = &text[start..found.start];
            start = found.end;
            if is_signature && names_fax(label) {
                continue;
            }
            if found.is_phone && !found.has_country {
                if !is_signature || has_phone_label(label) {
                    self.note(mark::PHONE_COUNTRY_UNKNOWN);
                }
                continue;
            }
            self.take(Contact {
                value: found.value,
                is_phone: found.is_phone,
                is_signature,
                words: cut(words),
            });
            if !is_signature {
                // What follows in the sentence may be about somebody else.
                return;
            }
        }
    }

    fn take(&mut self, contact: Contact) {
        let same_kind = self
            .found
            .iter()
            .filter(|it| it.is_phone == contact.is_phone);
        let is_known = same_kind.clone().any(|it| it.value == contact.value);
        if !is_known && same_kind.count() < MAX_OF_KIND {
            self.found.push(contact);
        }
    }

    fn note(&mut self, mark: &'static str) {
        if !self.marks.contains(&mark) {
            self.marks.push(mark);
        }
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(320)].to_owned()
}

/// Whether a line ends a letter: "Kind regards,".
fn is_closing(line: &str) -> bool {
    const WORDS: &[&str] = &[
        "regards",
        "best",
        "cheers",
        "thanks",
        "sincerely",
        "greetings",
        "yours",
        "wishes",
        "thank",
        "faithfully",
        "cordially",
        "truly",
        "love",
        "warmly",
        "kind",
        "br",
        "thx",
    ];
    let words: Vec<String> = line
        .split(|it: char| !it.is_alphabetic())
        .filter(|it| !it.is_empty())
        .map(str::to_lowercase)
        .take(6)
        .collect();
    (1..=5).contains(&words.len())
        && words.iter().any(|word| WORDS.contains(&word.as_str()))
        && !line.ends_with('?')
}

/// Whether a line begins with the label of a contact detail.
fn is_labelled(line: &str) -> bool {
    let lower = line.to_lowercase();
    let label: String = lower
        .chars()
        .take_while(|it| it.is_alphabetic() || *it == '-')
        .collect();
    let rest = lower[label.len()..].trim_start();
    let is_short = ["t", "m", "p", "e", "c", "tel", "ph", "mob"].contains(&label.as_str());
    let is_word = [
        "phone",
        "mobile",
        "telephone",
        "cell",
        "email",
        "e-mail",
        "mail",
        "direct",
    ]
    .contains(&label.as_str());
    let has_sign = rest.starts_with([':', '.', '|']);
    (is_short && has_sign) || (is_word && (has_sign || rest.starts_with('+')))
}

fn is_only_an_address(line: &str) -> bool {
    line.contains('@') && !line.contains(char::is_whitespace)
}

fn names_fax(label: &str) -> bool {
    let lower = label.to_lowercase();
    let last = lower
        .split(|it: char| !it.is_alphabetic())
        .rfind(|it| !it.is_empty())
        .unwrap_or_default();
    ["fax", "telefax", "f"].contains(&last)
}

fn has_phone_label(label: &str) -> bool {
    let lower = label.to_lowercase();
    ["tel", "phone", "mob", "cell", "m:", "t:", "p:", "direct"]
        .iter()
        .any(|it| lower.contains(it))
}

/// What follows each phrase by which an author says how to reach them, with its sentence.
fn stated(line: &str) -> impl Iterator<Item = (&str, &str)> {
    const PHRASES: &[&str] = &[
        "call me on ",
        "call me at ",
        "call us on ",
        "call us at ",
        "ring me on ",
        "ring me at ",
        "ring us on ",
        "ring us at ",
        "reach me at ",
        "reach me on ",
        "reach us at ",
        "reach us on ",
        "text me on ",
        "text me at ",
        "phone me on ",
        "phone me at ",
        "contact me at ",
        "contact me on ",
        "write to me at ",
        "write me at ",
        "email me at ",
        "e-mail me at ",
        "mail me at ",
        "my number is ",
        "my new number is ",
        "my phone number is ",
        "my mobile number is ",
        "my mobile is ",
        "my new mobile is ",
        "my cell is ",
        "my new mobile number is ",
        "my new phone number is ",
        "my email is ",
        "my e-mail is ",
        "my new email is ",
        "my address is now ",
        "my email address is ",
        "my e-mail address is ",
        "my new email address is ",
        "my new address is ",
        "my new e-mail address is ",
        "my email address is now ",
        "my e-mail address is now ",
        "address has changed to ",
        "number has changed to ",
        "new mobile number: ",
        "new phone number: ",
        "new number: ",
        "new email: ",
        "new email address: ",
        "new e-mail address: ",
        "my number: ",
        "my email: ",
        "please use ",
        "i am reachable at ",
        "i'm reachable at ",
        "reachable on ",
    ];
    sentences(line).filter_map(|sentence| {
        let lower = sentence.to_ascii_lowercase().replace('’', "'");
        // Only then do the places of both agree.
        let is_same_length = lower.len() == sentence.len();
        let negated = [" not ", "n't ", "never ", "no longer "]
            .iter()
            .any(|it| lower.contains(it));
        let place = PHRASES.iter().find_map(|phrase| {
            let at = lower.find(phrase)?;
            let is_whole = !lower[..at].ends_with(|it: char| it.is_alphanumeric());
            is_whole.then_some(at + phrase.len())
        })?;
        let rest = sentence.get(place..)?;
        // The detail itself follows, not another sentence about it.
        let near = &rest[..rest.floor_char_boundary(48)];
        let begins =
            near.starts_with(['+', '(']) || near.starts_with(|it: char| it.is_alphanumeric());
        (is_same_length && !negated && begins && !sentence.contains('"'))
            .then_some((near_detail(rest), sentence))
    })
}

/// The beginning of a text that can hold one detail.
fn near_detail(rest: &str) -> &str {
    let end = rest.find([' ', ',']).filter(|at| rest[..*at].contains('@'));
    match end {
        Some(end) => &rest[..end],
        None if rest.starts_with(|it: char| it.is_alphabetic()) => {
            let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
            &rest[..word]
        }
        None => &rest[..rest.floor_char_boundary(32)],
    }
}

/// Sentences of a line, roughly: a full stop with a space ends one.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    line.split_inclusive(". ")
        .flat_map(|it| it.split_inclusive("! "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(origin: Origin, text: &str) -> (Vec<String>, Vec<&'static str>) {
        let part = TextPart {
            origin,
            text: text.to_owned(),
        };
        let (found, marks) = contacts(&[part], 10_000);
        (found.into_iter().map(|it| it.value).collect(), marks)
    }

    #[test]
    fn reads_a_signature() {
        for (text, details) in [
            ("Tel. +44 20 7946 0123", &["+442079460123"][..]),
            ("M: +1 (415) 555-0134", &["+14155550134"]),
            ("+44 (0)20 7946 0123", &["+442079460123"]),
            ("P +47 900 55 012 | F +47 900 55 013", &["+4790055012"]),
            ("T 0049 30 5550 1234", &["+493055501234"]),
            ("Ada@Mill.Example", &["Ada@mill.example"]),
            (
                "ada@mill.example, +47 22 55 01 99",
                &["ada@mill.example", "+4722550199"],
            ),
            ("Mill Lane 12, 10115 Town", &[]),
            ("VAT GB 123 4567 89", &[]),
            ("ada@localhost", &[]),
            ("12@34", &[]),
        ] {
            assert_eq!(read(Origin::Signature, text).0, details, "{text}");
        }
        let (found, marks) = read(Origin::Signature, "Tel: (415) 555-0134");
        assert!(found.is_empty());
        assert_eq!(marks, [mark::PHONE_COUNTRY_UNKNOWN]);
    }

    #[test]
    fn reads_what_the_author_says_of_themselves_only() {
        for (text, details) in [
            (
                "You can call me on +44 20 7946 0123.",
                &["+442079460123"][..],
            ),
            (
                "My new number is +1 415 555 0134 since May.",
                &["+14155550134"],
            ),
            (
                "You can reach me at ines@atelier.example from now on.",
                &["ines@atelier.example"],
            ),
            (
                "Regards\nIda\nT: +61 2 5550 4321\nE: ida@park.example",
                &["+61255504321", "ida@park.example"],
            ),
            ("Call Tom on +44 20 7946 0123.", &[]),
            ("Don't call me on +44 20 7946 0123.", &[]),
            ("He said: \"call me on +44 20 7946 0123\".", &[]),
            ("T: +61 2 5550 4321", &[]),
            (
                "Please use the side door, tom@mill.example has the key.",
                &[],
            ),
            ("Write to ida@park.example.", &[]),
        ] {
            assert_eq!(read(Origin::Author, text).0, details, "{text}");
        }
        for origin in [Origin::Quoted, Origin::Forwarded] {
            let (found, marks) = read(origin, "Call me on +44 20 7946 0123, (415) 555-0134");
            assert!(found.is_empty() && marks.is_empty());
        }
    }
}
