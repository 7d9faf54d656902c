//! What a captured item says, and the port to the code that reads claims out of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cl_model::digest::Digest;
use cl_model::object::SourceEvent;
use cl_model::scalar::{Confidence, Name, Predicate};
use cl_model::time::UnixTime;
use cl_model::vocabulary::{Datatype, Vocabulary};
use serde_json::{Value, json};

use super::meeting::{self, Carrier, Meeting, Revision};

/// The most candidates that one item may give.
pub const MAX_CANDIDATES: usize = 64;

/// The most bytes of an author's words that are kept for one claim of an event.
pub const MAX_WORDS_BYTES: usize = 400;

/// The mark of an item whose content nothing was read from.
pub const NOT_EXTRACTED: &str = "not_extracted";

/// The mark of an item that the extractor broke on.
pub const EXTRACTION_FAILED: &str = "extraction.failed";

/// The mark of an item with a candidate that the vocabulary does not admit.
pub const CANDIDATE_REFUSED: &str = "candidate.refused";

/// An address with the name that stands beside it.
#[derive(Clone, PartialEq, Eq)]
pub struct Mailbox {
    /// The address.
    pub address: String,
    /// The name; empty if there is none.
    pub name: String,
}

/// Whose words a part of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOrigin {
    /// The author's own.
    Author,
    /// Quoted from an earlier message.
    Quoted,
    /// A forwarded message.
    Forwarded,
    /// The author's signature block.
    Signature,
}

/// A run of text by one author.
#[derive(Clone, PartialEq, Eq)]
pub struct TextPart {
    /// Whose words these are.
    pub origin: TextOrigin,
    /// The words.
    pub text: String,
}

/// What a mail message says. Everything in it is the word of whoever wrote the message.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// The author.
    pub from: Option<Mailbox>,
    /// The mailboxes of `To`.
    pub to: Vec<Mailbox>,
    /// The mailboxes of `Cc`.
    pub cc: Vec<Mailbox>,
    /// The subject line; empty if there is none.
    pub subject_line: String,
    /// When the message says that it was sent.
    pub sent_at: Option<UnixTime>,
    /// The author's offset from UTC.
    pub utc_offset_minutes: Option<i32>,
    /// The visible text, in order.
    pub text: Vec<TextPart>,
    /// What its reader noticed.
    pub marks: Vec<Name>,
    /// The conversation, if its reader knows.
    pub thread: Option<Digest>,
    /// What its calendar parts say.
    pub meetings: Vec<Meeting>,
}

/// What a calendar object says.
#[derive(Clone, PartialEq, Eq)]
pub struct Calendar {
    /// What it says about meetings.
    pub meetings: Vec<Meeting>,
    /// What its reader noticed.
    pub marks: Vec<Name>,
}

/// What an item says.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// A mail message.
    Mail(Box<Mail>),
    /// A calendar object.
    Calendar(Calendar),
}

impl Mail {
    /// The conversation that the message belongs to, for telling contradictions from unrelated
    /// statements.
    ///
    /// Without the reader's word, that is the subject line without reply marks, between the same
    /// people. A message without a subject line is a conversation of its own.
    pub fn thread(&self, event: &SourceEvent) -> Digest {
        if let Some(thread) = self.thread {
            return thread;
        }
        let topic = topic(&self.subject_line);
        if topic.is_empty() {
            return Digest::of_json(&json!(["event", event.id.as_str()]));
        }
        let mailboxes = self.from.iter().chain(&self.to).chain(&self.cc);
        let mut people: Vec<_> = mailboxes
            .map(|mailbox| mailbox.address.to_lowercase())
            .collect();
        people.sort_unstable();
        people.dedup();
        Digest::of_json(&json!(["topic", topic, people]))
    }
}

/// A subject line without the marks of replies and forwards, in lower case.
fn topic(subject_line: &str) -> String {
    let lower = subject_line.to_lowercase();
    let mut rest = lower.trim();
    while let Some(shorter) = ["re:", "aw:", "fw:", "fwd:", "wg:"]
        .iter()
        .find_map(|mark| rest.strip_prefix(mark))
    {
        rest = shorter.trim_start();
    }
    rest.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What an extractor sees of one item.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The event.
    pub event: &'a SourceEvent,
    /// What the message says.
    pub mail: &'a Mail,
    /// The subject's own addresses.
    pub owner_addresses: &'a [String],
}

/// A claim that a rule found in an item.
#[derive(Clone, PartialEq)]
pub struct Candidate {
    /// What it states.
    pub predicate: Predicate,
    /// The value.
    pub value: Value,
    /// How much the rule is believed.
    pub confidence: Confidence,
    /// From when it holds, if that is known.
    pub valid_from: Option<UnixTime>,
    /// Until when it holds, if it ends.
    pub valid_until: Option<UnixTime>,
    /// The rule.
    pub rule: Name,
    /// What the rule noticed.
    pub marks: Vec<Name>,
    /// The author's words that it came from.
    pub words: String,
    /// Which word it is, if it is one about a meeting.
    pub revision: Option<Revision>,
}

/// What an extractor found in an item.
#[derive(Clone, Default, PartialEq)]
pub struct Found {
    /// The candidates, in the order of the text.
    pub candidates: Vec<Candidate>,
    /// What it noticed about the item.
    pub marks: Vec<Name>,
}

/// The port to extraction: pure, in this process, on text that is hostile. It is bounded by itself;
/// beyond [`MAX_CANDIDATES`] candidates are dropped.
pub trait Extractor: Send + Sync {
    /// The claims in one item.
    fn extract(&self, source: &Source<'_>) -> Found;

    /// What a rule takes and why it is in doubt, for the owner; none for rules that it does not know.
    fn reason(&self, rule: &str) -> Option<&'static str>;

    /// What a mark means, for the owner; none for marks that it does not know.
    fn meaning(&self, mark: &str) -> Option<&'static str>;
}

/// Candidates that the vocabulary admits, with the marks that the item gets.
pub struct Extracted {
    /// The candidates, each with its datatype.
    pub candidates: Vec<(Candidate, Datatype)>,
    /// The marks of the item.
    pub marks: Vec<Name>,
}

/// Runs an extractor on one item and checks what it found. A defect of the extractor costs what it
/// would have found, and neither the event nor its batch.
pub fn extract(
    extractor: &dyn Extractor,
    vocabulary: &Vocabulary,
    source: &Source<'_>,
) -> Extracted {
    let mail = source.mail;
    // Nothing of it is looked at once it is broken.
    let mut found =
        catch_unwind(AssertUnwindSafe(|| extractor.extract(source))).unwrap_or_else(|_| Found {
            candidates: Vec::new(),
            marks: [EXTRACTION_FAILED, NOT_EXTRACTED]
                .into_iter()
                .filter_map(Name::new)
                .collect(),
        });
    let from = mail.from.as_ref().map(|from| from.address.as_str());
    let of_meetings = meeting::candidates(&mail.meetings, Carrier::Message(from));
    found.candidates.extend(of_meetings.candidates);
    found.marks.extend(of_meetings.marks);
    admitted(found, &mail.marks, vocabulary)
}

/// Checks what a calendar object comes to.
pub fn extract_calendar(calendar: &Calendar, vocabulary: &Vocabulary) -> Extracted {
    let found = meeting::candidates(&calendar.meetings, Carrier::Calendar);
    admitted(found, &calendar.marks, vocabulary)
}

fn admitted(found: Found, of_reader: &[Name], vocabulary: &Vocabulary) -> Extracted {
    let mut is_refused = found.candidates.len() > MAX_CANDIDATES;
    let mut candidates = Vec::new();
    for mut candidate in found.candidates.into_iter().take(MAX_CANDIDATES) {
        let kept = candidate.words.floor_char_boundary(MAX_WORDS_BYTES);
        candidate.words.truncate(kept);
        let published = vocabulary.find(&candidate.predicate);
        match published.map(|published| published.datatype) {
            Some(datatype) if datatype.admits(&candidate.value) => {
                candidates.push((candidate, datatype));
            }
            Some(_) | None => is_refused = true,
        }
    }
    let mut marks = of_reader.to_vec();
    marks.extend(found.marks);
    if is_refused {
        marks.extend(Name::new(CANDIDATE_REFUSED));
    }
    marks.sort_unstable();
    marks.dedup();
    Extracted { candidates, marks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_marks_do_not_make_another_topic() {
        for line in [
            "Launch  date",
            "Re: launch date",
            "AW: Fwd: re:Launch Date ",
        ] {
            assert_eq!(topic(line), "launch date", "{line}");
        }
        assert_eq!(topic("Re: "), "");
        assert_eq!(topic("Report: launch"), "report: launch");
    }
}
