//! Meetings: what messages and calendars say about them, as candidates, and which word counts once
//! there are several (RFC 5546).
//!
//! A word about a meeting counts over an earlier one only if both are of the same authority: the
//! organizer, for a message that came from the organizer's address, or the calendar that a file was
//! taken from. Whoever else writes adds a source and takes nothing away. Which word is later is
//! decided by `SEQUENCE`, then by `DTSTAMP`, and of two at once the one about fewer occurrences
//! counts; so the order of capture plays no part.

mod words;

use cl_model::digest::Digest;
use cl_model::scalar::{Confidence, Name, Predicate};
use cl_model::time::{CalendarDate, UnixTime};
use cl_model::urn::ClaimId;
use serde_json::{Value, json};

pub use self::words::Words;
use super::content::{Candidate, Found};

/// When a meeting takes place.
const TIME: &str = "meeting_time";

/// Who called a meeting.
const ORGANIZER: &str = "meeting_organizer";

/// The confidence of a word of the organizer, or of a calendar.
const SOUND: f64 = 0.9;

/// What each doubt leaves of it.
const DOUBT: f64 = 0.6;

const NOT_FROM_ORGANIZER: &str = "meeting.not_from_organizer";
const NOT_TAKEN: &str = "meeting.cancellation_not_from_organizer";
const NOT_ALL_TAKEN: &str = "meeting.cancellations_not_all_taken";

/// The rules, by what a word came with, and their reasons.
const BY_MESSAGE: (&str, &str) = (
    "meeting.message",
    "A calendar object within the message says so.",
);
const BY_CALENDAR: (&str, &str) = ("meeting.calendar", "The calendar object says so.");

/// Marks by which a word about a meeting may be wrong, and what they mean.
const DOUBTS: &[(&str, &str)] = &[
    (
        NOT_FROM_ORGANIZER,
        "The message did not come from the organizer's address.",
    ),
    ("meeting.incomplete", "The event breaks off."),
    (
        "meeting.recurrence_not_read",
        "A rule or a date that may take the occurrence away was not read.",
    ),
    (
        "meeting.start_ambiguous",
        "The event has several starts: this is the first.",
    ),
    (
        "meeting.tentative",
        "The organizer has not fixed it: it is tentative.",
    ),
    (
        "meeting.zone_unknown",
        "It is a time of day in a zone that is not known.",
    ),
];

/// Why a rule about meetings states a claim, in words for the owner.
pub fn reason(rule: &str) -> Option<&'static str> {
    let rules = [BY_MESSAGE, BY_CALENDAR];
    let mut found = rules.into_iter().filter(|(name, _)| *name == rule);
    found.next().map(|(_, reason)| reason)
}

/// What a mark of a claim about a meeting means, in words for the owner.
pub fn meaning(mark: &str) -> Option<&'static str> {
    let mut found = DOUBTS.iter().filter(|(name, _)| *name == mark);
    found.next().map(|(_, meaning)| *meaning)
}

/// One word about a meeting, or about one occurrence of a series.
#[derive(Clone, PartialEq, Eq)]
pub struct Meeting {
    /// The digest of its id.
    pub series: Digest,
    /// The organizer's address.
    pub organizer: Option<String>,
    /// The `SEQUENCE`.
    pub sequence: u32,
    /// The `DTSTAMP`.
    pub stamped_at: Option<UnixTime>,
    /// It takes back what was said.
    pub is_cancelled: bool,
    /// It is about one occurrence, and not about the series.
    pub is_one_of_series: bool,
    /// It is about the later occurrences too.
    pub is_and_later: bool,
    /// When it takes place; nothing if it is about all of it, which is cancelled.
    pub times: Vec<MeetingTime>,
    /// What its reader noticed.
    pub marks: Vec<Name>,
}

/// When a meeting takes place; both texts are in one of the [forms](is_time).
#[derive(Clone, PartialEq, Eq)]
pub struct MeetingTime {
    /// When.
    pub time: String,
    /// Which occurrence of the series.
    pub occurrence: String,
}

/// What a word about a meeting came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier<'a> {
    /// A message from this address.
    Message(Option<&'a str>),
    /// A file of a calendar.
    Calendar,
}

/// Which word about a meeting a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Whose word it is; none has no say about the words of others.
    pub authority: Option<Digest>,
    /// The meeting.
    pub series: Digest,
    /// The occurrence; empty if it names none, and is about all of them.
    pub occurrence: String,
    /// It is about the occurrence, and not about the series.
    pub is_one_of_series: bool,
    /// It is about the later occurrences too.
    pub is_and_later: bool,
    /// Which word it is among those of its authority.
    pub rank: Rank,
}

/// Orders the words of one authority; at the same time, a cancellation is the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// The `SEQUENCE`.
    pub sequence: u32,
    /// The `DTSTAMP`.
    pub stamped_at: Option<UnixTime>,
    /// It takes back what was said.
    pub is_cancelled: bool,
}

/// Why a meeting does not take place when a claim says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It was cancelled, at this time if that is known.
    Cancelled(Option<UnixTime>),
    /// It was moved to what this claim says.
    Moved(ClaimId),
}

/// The predicates of claims about meetings: words about a meeting are among the sources of both.
pub fn predicates() -> impl Iterator<Item = Predicate> {
    [TIME, ORGANIZER].into_iter().filter_map(Predicate::new)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Day,
    Instant,
    TimeOfDay,
}

fn form(text: &str) -> Option<Form> {
    let is_whole =
        |text: &str| text.as_bytes().get(10) == Some(&b'T') && UnixTime::parse(text).is_some();
    match text.len() {
        10 => CalendarDate::parse(text).map(|_| Form::Day),
        19 => is_whole(&format!("{text}Z")).then_some(Form::TimeOfDay),
        20 => (text.ends_with('Z') && is_whole(text)).then_some(Form::Instant),
        _ => None,
    }
}

/// Whether a text is a day, an instant or a time of day, or two of one form in order.
pub fn is_time(text: &str) -> bool {
    match text.split_once('/') {
        None => is_start(text),
        // Texts of one form have one length, and the order of their times.
        Some((start, end)) => form(start).is_some() && form(start) == form(end) && start < end,
    }
}

/// Whether a text is a day, an instant or a time of day.
pub fn is_start(text: &str) -> bool {
    form(text).is_some()
}

/// What meetings come to. Words that name no time were left out before.
pub fn candidates(meetings: &[Meeting], carrier: Carrier<'_>) -> Found {
    let mut found = Found::default();
    let (rule, _) = match carrier {
        Carrier::Message(_) => BY_MESSAGE,
        Carrier::Calendar => BY_CALENDAR,
    };
    for meeting in meetings {
        let authority = authority(meeting, carrier);
        if meeting.is_cancelled && authority.is_none() {
            add_mark(&mut found.marks, NOT_TAKEN);
            continue;
        }
        let mut marks = meeting.marks.clone();
        if authority.is_none() {
            add_mark(&mut marks, NOT_FROM_ORGANIZER);
        }
        let is_doubtful = |mark: &Name| meaning(mark.as_str()).is_some();
        let doubts = marks.iter().filter(|mark| is_doubtful(mark)).count();
        let confidence = (0..doubts).fold(SOUND, |rest, _| rest * DOUBT);
        let candidate = |predicate: &str, value: &str, revision| {
            Some(Candidate {
                predicate: Predicate::new(predicate)?,
                value: Value::from(value),
                confidence: Confidence::new(confidence)?,
                valid_from: meeting.stamped_at,
                valid_until: None,
                rule: Name::new(rule)?,
                marks: marks.clone(),
                words: value.to_owned(),
                revision,
            })
        };
        let revision = |occurrence: &str| Revision {
            authority,
            series: meeting.series,
            occurrence: occurrence.to_owned(),
            is_one_of_series: meeting.is_one_of_series,
            is_and_later: meeting.is_and_later,
            rank: Rank {
                sequence: meeting.sequence,
                stamped_at: meeting.stamped_at,
                is_cancelled: meeting.is_cancelled,
            },
        };
        // A cancellation that names no occurrence is told of the one who called them.
        let is_about_all = meeting.times.is_empty();
        let organizer = meeting.organizer.as_deref();
        let organizer = organizer.filter(|_| is_about_all || !meeting.is_cancelled);
        let about_all = is_about_all.then(|| revision(""));
        let organizer = organizer.and_then(|address| candidate(ORGANIZER, address, about_all));
        let is_new = |it: &Candidate| found.candidates.iter().all(|other| other.value != it.value);
        let is_lost = is_about_all && !organizer.as_ref().is_some_and(is_new);
        let organizer = organizer.filter(is_new);
        if is_lost {
            // An item is one source of a claim.
            add_mark(&mut found.marks, NOT_ALL_TAKEN);
        }
        found.candidates.extend(organizer);
        let times = meeting.times.iter();
        let times =
            times.filter_map(|it| candidate(TIME, &it.time, Some(revision(&it.occurrence))));
        found.candidates.extend(times);
    }
    found
}

fn add_mark(marks: &mut Vec<Name>, mark: &str) {
    let mark = Name::new(mark).filter(|mark| !marks.contains(mark));
    marks.extend(mark);
}

/// Whose word it is, if its carrier shows that. An address in a message is only what it says.
fn authority(meeting: &Meeting, carrier: Carrier<'_>) -> Option<Digest> {
    let organizer = meeting.organizer.as_deref().map(str::to_lowercase);
    match carrier {
        Carrier::Calendar => Some(Digest::of_json(&json!(["calendar", organizer]))),
        Carrier::Message(from) => {
            let is_own = organizer.is_some() && from.map(str::to_lowercase) == organizer;
            is_own.then(|| Digest::of_json(&json!(["organizer", organizer])))
        }
    }
}

#[cfg(test)]
mod tests;
