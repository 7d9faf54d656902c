//! Meetings: what messages and calendars say about them, as candidates, and which word counts once
//! there are several (RFC 5546).
//!
//! A word about a meeting counts over an earlier one only if both are of the same authority: the
//! organizer, for a message that came from the organizer's address, or the calendar that a file was
//! taken from. Whoever else writes adds a source and takes nothing away. Which word is later is
//! decided by `SEQUENCE`, then by `DTSTAMP`; so the order of capture plays no part.

use std::collections::HashMap;

use cl_model::digest::Digest;
use cl_model::scalar::{Confidence, Name, Predicate};
use cl_model::time::{CalendarDate, UnixTime};
use cl_model::urn::ClaimId;
use serde_json::{Value, json};

use super::claim::{Claim, Support};
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
const CANCELLATION_NOT_TAKEN: &str = "meeting.cancellation_not_from_organizer";
const ZONE_UNKNOWN: &str = "meeting.zone_unknown";

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
    /// When it takes place.
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
    /// The occurrence.
    pub occurrence: String,
    /// It is about the occurrence only.
    pub is_one_of_series: bool,
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
    for meeting in meetings {
        let authority = authority(meeting, carrier);
        if meeting.is_cancelled && authority.is_none() {
            add_mark(&mut found.marks, CANCELLATION_NOT_TAKEN);
            continue;
        }
        let mut marks = meeting.marks.clone();
        if authority.is_none() {
            add_mark(&mut marks, NOT_FROM_ORGANIZER);
        }
        let is_doubtful = |mark: &Name| [NOT_FROM_ORGANIZER, ZONE_UNKNOWN].contains(&mark.as_str());
        let doubts = marks.iter().filter(|mark| is_doubtful(mark)).count();
        let confidence = (0..doubts).fold(SOUND, |rest, _| rest * DOUBT);
        let candidate = |predicate: &str, value: &str, revision| {
            Some(Candidate {
                predicate: Predicate::new(predicate)?,
                value: Value::from(value),
                confidence: Confidence::new(confidence)?,
                valid_from: meeting.stamped_at,
                valid_until: None,
                rule: Name::new(match carrier {
                    Carrier::Message(_) => "meeting.message",
                    Carrier::Calendar => "meeting.calendar",
                })?,
                marks: marks.clone(),
                words: value.to_owned(),
                revision,
            })
        };
        let organizer = meeting.organizer.as_deref();
        let organizer = organizer.filter(|_| !meeting.is_cancelled);
        let organizer = organizer.and_then(|address| candidate(ORGANIZER, address, None));
        let is_new = |it: &Candidate| found.candidates.iter().all(|other| other.value != it.value);
        let organizer = organizer.filter(is_new);
        found.candidates.extend(organizer);
        let times = meeting.times.iter().filter_map(|time| {
            let revision = Revision {
                authority,
                series: meeting.series,
                occurrence: time.occurrence.clone(),
                is_one_of_series: meeting.is_one_of_series,
                rank: Rank {
                    sequence: meeting.sequence,
                    stamped_at: meeting.stamped_at,
                    is_cancelled: meeting.is_cancelled,
                },
            };
            candidate(TIME, &time.time, Some(revision))
        });
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

/// The latest words about each meeting, by authority.
#[derive(Default)]
pub struct Words {
    by_authority: HashMap<(Digest, Digest), Latest>,
}

#[derive(Default)]
struct Latest {
    /// The latest word about the whole series.
    series: Option<Word>,
    /// The latest word about the whole series that names an occurrence.
    within: HashMap<String, Word>,
    /// The latest word about one occurrence.
    single: HashMap<String, Word>,
}

#[derive(Clone)]
struct Word {
    rank: Rank,
    claim: ClaimId,
}

impl Word {
    /// Takes the later one; of two at the same time, that with the lower claim id.
    fn or_later(held: Option<Self>, other: Self) -> Self {
        match held {
            Some(held)
                if (held.rank, std::cmp::Reverse(&held.claim))
                    >= (other.rank, std::cmp::Reverse(&other.claim)) =>
            {
                held
            }
            Some(_) | None => other,
        }
    }
}

impl Words {
    /// Those among the sources of claims.
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut words = Self::default();
        for claim in claims {
            for support in claim.supports() {
                words.add(claim, support);
            }
        }
        words
    }

    fn add(&mut self, claim: &Claim, support: &Support) {
        let Some((revision, authority)) = with_authority(support) else {
            return;
        };
        let word = Word {
            rank: revision.rank,
            claim: claim.id.clone(),
        };
        let latest = self
            .by_authority
            .entry((revision.series, authority))
            .or_default();
        let by_occurrence = if revision.is_one_of_series {
            &mut latest.single
        } else {
            latest.series = Some(Word::or_later(latest.series.take(), word.clone()));
            &mut latest.within
        };
        let held = by_occurrence.remove(&revision.occurrence);
        by_occurrence.insert(revision.occurrence.clone(), Word::or_later(held, word));
    }

    /// Why a meeting does not take place when a claim says; none while one of its sources stands.
    pub fn gone(&self, claim: &Claim) -> Option<Gone> {
        let mut latest: Option<(Rank, Gone)> = None;
        for support in claim.supports() {
            let (revision, authority) = with_authority(support)?;
            let gone = self.gone_by(revision, authority)?;
            if latest
                .as_ref()
                .is_none_or(|(rank, _)| *rank <= revision.rank)
            {
                latest = Some((revision.rank, gone));
            }
        }
        latest.map(|(_, gone)| gone)
    }

    fn gone_by(&self, revision: &Revision, authority: Digest) -> Option<Gone> {
        let words = self.by_authority.get(&(revision.series, authority))?;
        let occurrence = &revision.occurrence;
        let single = words.single.get(occurrence);
        // A later word about the series restates all of it, what it leaves out included.
        let series = words.series.as_ref().map(|series| {
            let within = words.within.get(occurrence);
            within
                .filter(|within| within.rank == series.rank)
                .unwrap_or(series)
        });
        let latest = single.into_iter().chain(series).max_by_key(|it| it.rank)?;
        if latest.rank.is_cancelled {
            Some(Gone::Cancelled(latest.rank.stamped_at))
        } else {
            (latest.rank > revision.rank).then(|| Gone::Moved(latest.claim.clone()))
        }
    }
}

fn with_authority(support: &Support) -> Option<(&Revision, Digest)> {
    let revision = support.revision.as_ref()?;
    Some((revision, revision.authority?))
}

#[cfg(test)]
mod tests;
