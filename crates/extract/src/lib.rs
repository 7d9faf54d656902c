//! Candidate claims from what a message says (spec 8.1, step 6).
//!
//! # Role
//!
//! A pure function, [`extract`], that the vault calls on captured messages. It reads a small,
//! documented grammar of English and yields candidates of the published predicates:
//!
//! | predicate | from |
//! | --- | --- |
//! | `requesting_stakeholder` | an author who asks the owner for something |
//! | `request_summary` | the verb and object of such a request, in its own words |
//! | `requested_delivery_date` | a day tied to a request or a deadline |
//! | `promised_delivery_date` | a day tied to what the author commits to |
//! | `meeting_date`, `meeting_starts_at` | a day, and a time beside it, on which to meet |
//! | `amount_due` | an amount in a currency, tied to a payment |
//! | `contact_phone`, `contact_email` | the author's signature, or "you can reach me at" |
//!
//! [`rule::RULES`] names the rules, and [`mark::ALL`] the doubts; the owner can ask for both with the
//! words that a claim came from.
//!
//! What the grammar does not cover yields nothing and a [`mark`]: a missing fact can be
//! asked for, a made-up one is believed. Only the author's own words count, never what is quoted or
//! forwarded, and of a signature only how to reach its author; relative days count from the message's own date in the author's
//! zone, so the day of the run plays no part.
//!
//! # Holds
//!
//! Nothing between calls.
//!
//! # Trusts
//!
//! Nobody: every word is whatever its writer wants it to be. So no confidence reaches 1, the time
//! taken grows linearly with the input, and at most [`MAX_CANDIDATES`] come out.
//!
//! # A compromise yields
//!
//! False candidates for the message at hand, each still untrusted, with its rule's name and tied to
//! its event. Nothing of other messages, since none are in reach.

#![deny(missing_docs)]

mod amount;
mod clock;
mod contact;
mod cue;
mod date;
mod dates;
pub mod mark;
mod number;
pub mod rule;
mod rules;
mod sentence;
mod summary;
mod token;

use std::fmt;

use cl_model::time::UnixTime;
use serde_json::Value;

/// The most candidates that one message yields.
pub const MAX_CANDIDATES: usize = 64;

/// The most bytes of text that are read of one message; a message with more is marked.
pub const MAX_TEXT_BYTES: usize = 262_144;

/// What a message says. Its `Debug` names the type only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// The author.
    pub from: Option<Mailbox>,
    /// Whom it is for.
    pub to: Vec<Mailbox>,
    /// Who gets a copy.
    pub cc: Vec<Mailbox>,
    /// The decoded subject line.
    pub subject_line: String,
    /// When it says that it was sent.
    pub sent_at: Option<UnixTime>,
    /// Minutes by which the author's clock is ahead of UTC, if the message says so.
    pub utc_offset_minutes: Option<i32>,
    /// The visible text in order, by whose words it is.
    pub text: Vec<TextPart>,
    /// The addresses of the person whose vault this is.
    pub owner_addresses: Vec<String>,
    /// Marks of the reader; those that [`mark`] names change what is yielded.
    pub marks: Vec<String>,
}

impl fmt::Debug for Message {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Message(..)")
    }
}

/// An address with the name beside it. Its `Debug` names the type only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Mailbox {
    /// The address.
    pub address: String,
    /// The decoded display name. It is text: an address in it means nothing.
    pub name: String,
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Mailbox(..)")
    }
}

/// A run of text by one author. Its `Debug` names the type only.
#[derive(Clone, PartialEq, Eq)]
pub struct TextPart {
    /// Whose words these are.
    pub origin: Origin,
    /// The text, with line feeds between lines.
    pub text: String,
}

impl fmt::Debug for TextPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TextPart({:?})", self.origin)
    }
}

/// Whose words a part of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The author's own.
    Author,
    /// Quoted from an earlier message.
    Quoted,
    /// A forwarded message.
    Forwarded,
    /// The author's signature block; only how to reach the author is read of it.
    Signature,
}

/// What came out of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// At most [`MAX_CANDIDATES`], in the order of their predicates and of the text.
    pub candidates: Vec<Candidate>,
    /// What was seen and not taken, each mark once (see [`mark`]).
    pub marks: Vec<&'static str>,
}

/// A claim that the message supports. Its `Debug` leaves value and words out.
#[derive(Clone, PartialEq)]
pub struct Candidate {
    /// A published predicate (`schemas/predicates.json`).
    pub predicate: &'static str,
    /// A value of the predicate's datatype.
    pub value: Value,
    /// How sure the rule is, above 0 and below 1.
    pub confidence: f64,
    /// Since when it holds: when the message was sent.
    pub valid_from: Option<UnixTime>,
    /// Until when it holds; absent: no end is known.
    pub valid_until: Option<UnixTime>,
    /// The rule that yields it (see `docs/capture.md`).
    pub rule: &'static str,
    /// Why it is in doubt, each mark once; a sound candidate has none.
    pub marks: Vec<&'static str>,
    /// The author's words that it came from, at most 400 bytes: its sentence, or the part around it.
    pub words: String,
}

impl fmt::Debug for Candidate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Candidate")
            .field("predicate", &self.predicate)
            .field("confidence", &self.confidence)
            .field("rule", &self.rule)
            .field("marks", &self.marks)
            .finish_non_exhaustive()
    }
}

/// Reads a message. The same message always gives the same answer.
pub fn extract(message: &Message) -> Extraction {
    rules::read(message)
}
