//! What holds for a message as a whole: whether it is read, and what puts all of it in doubt.

use cl_model::time::UnixTime;
use time::{Date, OffsetDateTime, UtcOffset};

use crate::date::{self, Mention, Phrase};
use crate::dates::Reference;
use crate::mark;
use crate::sentence::Sentence;
use crate::token::{Kind, Token, find};
use crate::{Mailbox, Message, Origin};

/// A message of which nothing is taken.
pub(super) fn reason_to_skip(message: &Message) -> Option<&'static str> {
    let has = |mark: &str| message.marks.iter().any(|it| it == mark);
    let Some(from) = &message.from else {
        return Some(mark::AUTHOR_UNKNOWN);
    };
    if has(mark::AUTOMATIC) {
        return Some(mark::AUTOMATIC);
    }
    if has(mark::BULK) {
        return Some(mark::BULK);
    }
    is_owner(message, &from.address).then_some(mark::AUTHOR_OWNER)
}

fn is_owner(message: &Message, address: &str) -> bool {
    message
        .owner_addresses
        .iter()
        .any(|owner| owner.trim().to_lowercase() == address.trim().to_lowercase())
}

pub(super) fn author_text(message: &Message) -> String {
    let own = message
        .text
        .iter()
        .filter(|part| part.origin == Origin::Author);
    let texts: Vec<&str> = own.map(|part| part.text.as_str()).collect();
    texts.join("\n\n")
}

/// What puts every candidate of the message in doubt.
pub(super) fn doubts(message: &Message, sentences: &[Sentence]) -> Vec<&'static str> {
    let mut doubts = Vec::new();
    let is_among = |list: &[Mailbox]| list.iter().any(|it| is_owner(message, &it.address));
    if !message.owner_addresses.is_empty() && !is_among(&message.to) {
        doubts.push(if is_among(&message.cc) {
            mark::OWNER_COPIED
        } else {
            mark::OWNER_NOT_ADDRESSED
        });
    }
    if message.marks.iter().any(|it| it == mark::CHARSET_GUESSED) {
        doubts.push(mark::CHARSET_GUESSED);
    }
    for doubted in [
        mark::JUNK,
        mark::DRAFT,
        mark::THROWN_AWAY,
        mark::SEVERAL_AUTHORS,
        mark::STYLE_NOT_READ,
        mark::OVERRIDDEN,
    ] {
        if message.marks.iter().any(|it| it == doubted) {
            doubts.push(doubted);
        }
    }
    if sentences.iter().any(|it| takes_back(&it.tokens)) {
        doubts.push(mark::CORRECTED);
    }
    if sentences.iter().any(|it| talks_to_a_machine(&it.tokens)) {
        doubts.push(mark::INSTRUCTION_SUSPECTED);
    }
    doubts
}

/// Whether a sentence takes back or corrects something that the same author wrote before it.
pub(super) fn takes_back(tokens: &[Token]) -> bool {
    const PHRASES: &[&[&str]] = &[
        &["i", "meant"],
        &["or", "rather"],
        &["no", "wait"],
        &["ignore", "that"],
        &["ignore", "my", "last"],
        &["ignore", "my", "previous"],
        &["disregard", "that"],
        &["disregard", "my"],
        &["scratch", "that"],
        &["strike", "that"],
        &["forget", "that"],
        &["forget", "it"],
        &["never", "mind"],
        &["my", "mistake"],
    ];
    const OPENINGS: &[&str] = &["correction", "edit", "erratum", "nevermind"];
    let is_opened = tokens.first().is_some_and(|it| it.is_one_of(OPENINGS))
        && tokens.get(1).is_some_and(|it| it.is_sign(":"));
    let is_sorry = ["sorry", "apologies", "actually", "wait"]
        .iter()
        .any(|word| tokens.iter().any(|it| it.is_word(word)));
    let makes_that = find(tokens, &["make", "that"], 0).is_some_and(|at| at == 0 || is_sorry);
    let is_moved = find(tokens, &["deadline", "is", "now"], 0).is_some();
    is_opened || makes_that || is_moved || PHRASES.iter().any(|it| find(tokens, it, 0).is_some())
}

pub(super) fn talks_to_a_machine(tokens: &[Token]) -> bool {
    let overrides = (0..tokens.len()).any(|at| {
        tokens[at].is_one_of(&["ignore", "disregard", "forget", "override"])
            && tokens[at + 1..].iter().take(5).any(|it| {
                it.is_one_of(&[
                    "instructions",
                    "instruction",
                    "prompt",
                    "prompts",
                    "rules",
                    "directives",
                    "guidelines",
                    "guardrails",
                    "restrictions",
                ])
            })
    });
    let addresses: &[&[&str]] = &[
        &["system", "prompt"],
        &["you", "are", "an", "ai"],
        &["ai", "assistant"],
        &["language", "model"],
        &["ai", "agent"],
        &["you", "are", "an", "assistant"],
        &["if", "you", "are", "an", "automated"],
        &["you", "are", "now", "in"],
        &["your", "ai"],
        &["your", "assistant"],
        &["your", "chatbot"],
        &["your", "copilot"],
        &["dear", "assistant"],
        &["dear", "agent"],
        &["dear", "ai"],
        &["admin", "mode"],
        &["developer", "mode"],
        &["automated", "agent"],
        &["autonomous", "agent"],
    ];
    let is_role = tokens
        .first()
        .is_some_and(|it| it.is_one_of(&["system", "assistant", "agent"]))
        && tokens
            .get(1)
            .is_some_and(|it| it.is_sign(":") || it.is_sign(","));
    let is_tag = tokens.windows(3).any(|it| {
        it[0].is_sign("<")
            && it[1].is_one_of(&[
                "system",
                "assistant",
                "instructions",
                "instruction",
                "prompt",
            ])
            && it[2].is_sign(">")
    });
    is_role || is_tag || overrides || addresses.iter().any(|it| find(tokens, it, 0).is_some())
}

pub(super) fn reference(message: &Message, mentions: &[Vec<Mention>]) -> Reference {
    let all = || mentions.iter().flatten();
    Reference {
        sent: message
            .sent_at
            .and_then(|sent| local_day(sent, message.utc_offset_minutes)),
        order: date::shown_order(all()),
        this_weekdays: all()
            .filter_map(|mention| match mention.phrase {
                Phrase::ThisWeekday(weekday) => Some(weekday),
                Phrase::Full(..)
                | Phrase::MonthDay(..)
                | Phrase::Numeric(..)
                | Phrase::DayOfMonth(_)
                | Phrase::Weekday(_)
                | Phrase::NextWeekday(_)
                | Phrase::WeekdayWeek(_)
                | Phrase::DayOfMonthAhead(..)
                | Phrase::InDays(_)
                | Phrase::EndOfMonthAhead(_)
                | Phrase::EndOfMonth(..)
                | Phrase::EndOfYear
                | Phrase::Unclear(_)
                | Phrase::Past => None,
            })
            .collect(),
    }
}

/// The day on the author's calendar; on that of UTC if the author's zone is not known.
fn local_day(sent: UnixTime, offset_minutes: Option<i32>) -> Option<Date> {
    let seconds = sent.milliseconds().div_euclid(1000);
    let utc = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    let offset =
        UtcOffset::from_whole_seconds(offset_minutes.unwrap_or(0).checked_mul(60)?).ok()?;
    utc.checked_to_offset(offset).map(OffsetDateTime::date)
}

/// Whether the text has the small words of English; short texts pass.
pub(super) fn is_english(sentences: &[Sentence]) -> bool {
    const SMALL: &[&str] = &[
        "the", "and", "to", "of", "is", "you", "we", "for", "please", "in", "on", "it", "are", "i",
        "this", "that", "with", "by", "be", "have", "your", "our",
    ];
    let words = || {
        let tokens = sentences.iter().flat_map(|sentence| &sentence.tokens);
        // Names and codes belong to no language.
        tokens.filter(|token| token.kind == Kind::Word && !token.is_capital)
    };
    let small = words().filter(|it| it.is_one_of(SMALL)).count();
    words().take(12).count() < 12 || small * 12 >= words().count()
}
