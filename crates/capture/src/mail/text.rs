//! Cuts visible text into parts by whose words they are.

use std::str::Lines;

use cl_wire::vault::v1::{TextOrigin, TextPart};

use super::marks::Marks;

/// The most parts of one message.
const MAX_PARTS: usize = 256;

/// The most bytes of text of one message.
const MAX_TEXT_BYTES: usize = 262_144;

/// How much of a text is looked at for that.
pub(super) const MAX_READ_BYTES: usize = 4 * MAX_TEXT_BYTES;

/// How many lines behind `From:` the other fields of a copied header stand.
const HEADER_LINES: usize = 6;

/// How many lines an attribution ("On .. wrote:") may be wrapped to.
const ATTRIBUTION_LINES: usize = 3;

/// The parts of a text.
pub(super) fn parts(text: &str, marks: &mut Marks) -> Vec<TextPart> {
    let read = &text[..text.floor_char_boundary(MAX_READ_BYTES)];
    let cleaned = visible(read, marks);
    let mut cutter = Cutter::default();
    let mut rest = TextOrigin::Author;
    let mut lines = cleaned.lines();
    while let Some(line) = lines.clone().next() {
        let (origin, taken, after) = classify(line, &lines, rest, marks);
        rest = after;
        for line in lines.by_ref().take(taken) {
            cutter.push(origin, line);
        }
    }
    cutter.is_cut |= read.len() < text.len();
    cutter.finish(marks)
}

/// Whose words the next lines are, of which `line` is the first: how many, at least one, and whose
/// are those that follow.
fn classify(
    line: &str,
    lines: &Lines<'_>,
    rest: TextOrigin,
    marks: &mut Marks,
) -> (TextOrigin, usize, TextOrigin) {
    if rest == TextOrigin::Quoted || rest == TextOrigin::Forwarded {
        return (rest, 1, rest);
    }
    if line.starts_with('>') {
        // A signature ends where a quotation begins: somebody answered below it.
        return (TextOrigin::Quoted, 1, TextOrigin::Author);
    }
    if begins_pgp(line, "SIGNATURE") {
        marks.add("signature.openpgp");
        return (TextOrigin::Signature, pgp_length(lines), rest);
    }
    if begins_pgp(line, "MESSAGE") {
        marks.add("content.encrypted");
        return (TextOrigin::Signature, pgp_length(lines), rest);
    }
    if begins_forwarded(line) {
        return (TextOrigin::Forwarded, 1, TextOrigin::Forwarded);
    }
    if begins_original(line, lines) {
        return (TextOrigin::Quoted, 1, TextOrigin::Quoted);
    }
    if let Some(length) = attribution_length(line, lines) {
        let is_marked = lines
            .clone()
            .skip(length)
            .find(|it| !it.trim().is_empty())
            .is_some_and(|it| it.starts_with('>'));
        let after = if is_marked {
            TextOrigin::Author
        } else {
            TextOrigin::Quoted
        };
        return (TextOrigin::Quoted, length, after);
    }
    if rest == TextOrigin::Signature {
        return (rest, 1, rest);
    }
    if line == "-- " || line == "--" || is_device_line(line) {
        return (TextOrigin::Signature, 1, TextOrigin::Signature);
    }
    (TextOrigin::Author, 1, TextOrigin::Author)
}

fn begins_pgp(line: &str, kind: &str) -> bool {
    line.strip_prefix("-----BEGIN PGP ")
        .and_then(|rest| rest.strip_prefix(kind))
        .is_some_and(|rest| rest.starts_with("-----"))
}

fn pgp_length(lines: &Lines<'_>) -> usize {
    let mut is_over = false;
    let within = lines.clone().take_while(|line| {
        let was_over = is_over;
        is_over = line.starts_with("-----END PGP");
        !was_over
    });
    within.count()
}

fn is_device_line(line: &str) -> bool {
    let line = line.trim();
    ["Sent from my ", "Get Outlook for ", "Sent from Outlook"]
        .iter()
        .any(|start| line.starts_with(start))
        && line.len() < 80
}

fn begins_forwarded(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let is_ruled = line.starts_with("--") && line.contains("forwarded");
    is_ruled || line == "begin forwarded message:" || line.starts_with("----- forwarded by")
}

/// "-----Original Message-----", or a copied header as Outlook puts it.
fn begins_original(line: &str, lines: &Lines<'_>) -> bool {
    let first = line.trim().to_lowercase();
    if first.starts_with("--") && first.contains("original message") {
        return true;
    }
    let is_from = |line: &str| {
        let line = line.trim_start_matches('*').to_lowercase();
        line.starts_with("from:") || line.starts_with("von:") || line.starts_with("de :")
    };
    let is_ruled = first.len() >= 20 && first.bytes().all(|it| it == b'_');
    let mut lines = lines.clone().skip(usize::from(is_ruled));
    if !lines.next().is_some_and(is_from) {
        return false;
    }
    let fields = lines.take(HEADER_LINES).filter(|line| {
        let line = line.trim_start_matches('*').to_lowercase();
        [
            "sent:",
            "date:",
            "to:",
            "subject:",
            "cc:",
            "gesendet:",
            "an:",
            "betreff:",
        ]
        .iter()
        .any(|name| line.starts_with(name))
    });
    fields.count() >= 2
}

/// "On Thu, 29 Oct 2026, Ann wrote:", on up to three lines.
fn attribution_length(line: &str, lines: &Lines<'_>) -> Option<usize> {
    let first = line.trim_start();
    let begins = ["On ", "Am ", "Le ", "El ", "Il ", "Op "]
        .iter()
        .any(|start| first.starts_with(start));
    if !begins {
        return None;
    }
    lines
        .clone()
        .take(ATTRIBUTION_LINES)
        .position(|line| {
            let line = line.trim_end();
            [
                "wrote:",
                "writes:",
                "schrieb:",
                "a écrit :",
                "a écrit:",
                "escribió:",
                "ha scritto:",
                "schreef:",
            ]
            .iter()
            .any(|end| line.ends_with(end))
                || (line.ends_with(':') && line.contains(" schrieb "))
        })
        .map(|at| at + 1)
}

/// The text without characters that nobody sees, and with line feeds only.
fn visible(text: &str, marks: &mut Marks) -> String {
    let mut is_changed = false;
    let cleaned: String = text
        .replace("\r\n", "\n")
        .chars()
        .map(|it| {
            if it == '\r' || it == '\u{2028}' || it == '\u{2029}' || it == '\u{b}' || it == '\u{c}'
            {
                '\n'
            } else {
                it
            }
        })
        .filter(|it| {
            let is_shown = !is_invisible(*it);
            is_changed |= !is_shown && *it != '\u{ad}' && *it != '\u{feff}';
            is_shown
        })
        .collect();
    if is_changed {
        marks.add("text.invisible_removed");
    }
    cleaned
}

fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e007f}')
        || (character.is_control() && character != '\n' && character != '\t')
}

/// Joins lines to parts, within the bounds.
#[derive(Default)]
struct Cutter {
    parts: Vec<TextPart>,
    bytes: usize,
    is_cut: bool,
}

impl Cutter {
    fn push(&mut self, origin: TextOrigin, line: &str) {
        if self.bytes + line.len() + 1 > MAX_TEXT_BYTES {
            self.is_cut = true;
            return;
        }
        if self.is_cut {
            return;
        }
        self.bytes += line.len() + 1;
        let is_full = self.parts.len() == MAX_PARTS;
        match self.parts.last_mut().filter(|part| part.origin() == origin) {
            Some(part) => {
                part.text.push('\n');
                part.text.push_str(line);
            }
            // Words whose author is lost among so many parts must not count as the author's.
            None if is_full => self.is_cut = true,
            None => self.parts.push(TextPart {
                origin: origin.into(),
                text: line.to_owned(),
            }),
        }
    }

    fn finish(mut self, marks: &mut Marks) -> Vec<TextPart> {
        if self.is_cut {
            marks.add("text.cut");
        }
        self.parts.retain(|part| !part.text.trim().is_empty());
        self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(TextOrigin, String)> {
        let parts = parts(text, &mut Marks::default());
        parts
            .into_iter()
            .map(|it| (it.origin(), it.text.trim().to_owned()))
            .collect()
    }

    fn is(text: &str, expected: &[(TextOrigin, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(origin, text)| (*origin, (*text).to_owned()))
            .collect();
        assert_eq!(cut(text), expected, "{text}");
    }

    #[test]
    fn knows_whose_words_are_whose() {
        use TextOrigin::{Author, Forwarded, Quoted, Signature};
        is("Hello\nthere", &[(Author, "Hello\nthere")]);
        is(
            "Yes.\n\n> Do you?\n\nNo.",
            &[(Author, "Yes."), (Quoted, "> Do you?"), (Author, "No.")],
        );
        is(
            "Yes.\n\nOn Thu, Ann wrote:\n> Do you?",
            &[(Author, "Yes."), (Quoted, "On Thu, Ann wrote:\n> Do you?")],
        );
        is(
            "Yes.\n\nOn Thu, 29 Oct 2026 at 10:00, Ann\n<a@b.example> wrote:\n\nDo you?\nReally?",
            &[
                (Author, "Yes."),
                (
                    Quoted,
                    "On Thu, 29 Oct 2026 at 10:00, Ann\n<a@b.example> wrote:\n\nDo you?\nReally?",
                ),
            ],
        );
        is(
            "Yes.\n-- \nAnn\nHead of X",
            &[(Author, "Yes."), (Signature, "-- \nAnn\nHead of X")],
        );
        is(
            "Yes.\n\n-----Original Message-----\nFrom: x\nDo it.",
            &[
                (Author, "Yes."),
                (Quoted, "-----Original Message-----\nFrom: x\nDo it."),
            ],
        );
        is(
            "Yes.\n\n________________________________\nFrom: x\nSent: y\nTo: z\nSubject: q\n\nDo it.",
            &[
                (Author, "Yes."),
                (
                    Quoted,
                    "________________________________\nFrom: x\nSent: y\nTo: z\nSubject: q\n\nDo it.",
                ),
            ],
        );
        is(
            "FYI\n\n---------- Forwarded message ---------\nFrom: x\n\nDo it.",
            &[
                (Author, "FYI"),
                (
                    Forwarded,
                    "---------- Forwarded message ---------\nFrom: x\n\nDo it.",
                ),
            ],
        );
        is(
            "Yes.\nSent from my phone",
            &[(Author, "Yes."), (Signature, "Sent from my phone")],
        );
    }

    #[test]
    fn removes_what_nobody_sees() {
        let mut marks = Marks::default();
        let found = parts("pay\u{200b} me\u{202e} now\u{7}", &mut marks);
        assert_eq!(found[0].text, "pay me now");
        assert_eq!(marks.into_list(), ["text.invisible_removed"]);
    }

    #[test]
    fn stays_within_its_bounds() {
        let mut marks = Marks::default();
        let found = parts(&"a\n> b\n".repeat(1000), &mut marks);
        assert!(found.len() <= MAX_PARTS);
        let found = parts(
            &"word ".repeat(100_000).replace("word word ", "line\n"),
            &mut marks,
        );
        assert!(found.iter().map(|it| it.text.len()).sum::<usize>() <= MAX_TEXT_BYTES);
        assert_eq!(marks.into_list(), ["text.cut"]);
    }
}
