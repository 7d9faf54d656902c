//! The calendar adapter: iCalendar (RFC 5545) in files, and in messages as invitations (RFC 5546,
//! RFC 6047).
//!
//! A calendar object is all that a file says under one `UID`. What it says about meetings becomes
//! times in UTC where the zone is known, by the calendar's own rules first; whole days and times of
//! day in an unknown zone stay what they are. Texts such as the summary stay with the event: no claim
//! is made of them.

mod component;
pub(crate) mod cut;
mod event;
mod moment;
mod nesting;
mod recurrence;
mod series;
mod stamp;
mod zone;

use chrono::NaiveDateTime;
use cl_model::digest::Digest;
use cl_model::time::UnixTime;
use cl_wire::vault::v1::Meeting;

use self::component::Component;
pub use self::cut::Refused;
pub(crate) use self::cut::{Cut, objects};
use self::event::Reader;
pub(crate) use self::event::Room;
use self::stamp::utc;
use self::zone::Zones;
use crate::native::charset;
use crate::native::marks::Marks;
use crate::native::shown;

/// The most that is read of one object.
const MAX_OBJECT_BYTES: usize = 1024 * 1024;

/// The most meetings of one item (the contract's bound).
const MAX_MEETINGS: usize = 32;

/// The most times of one item (the contract's bound).
const MAX_TIMES: usize = 40;

/// The most characters of a text that an event keeps.
const MAX_TEXT_CHARS: usize = 240;

/// What an object says, and what its event keeps of it. Its `Debug` shows no content.
#[derive(Clone, PartialEq)]
pub struct Reading {
    /// What it says about meetings.
    pub meetings: Vec<Meeting>,
    /// What was odd about it.
    pub marks: Vec<String>,
    /// What the event says about it.
    pub facts: Facts,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Reading({:?})", self.marks)
    }
}

/// What an event keeps of a calendar object beside its payload.
#[derive(Clone, Default, PartialEq)]
pub struct Facts {
    /// The digest of the `UID`, if there is one.
    pub uid: Option<Digest>,
    /// What its components are, each kind once: `event`, `task`, `journal`, `other`.
    pub kinds: Vec<&'static str>,
    /// The `METHOD` of its calendar, in lower case.
    pub method: Option<String>,
    /// The highest `SEQUENCE`.
    pub sequence: u32,
    /// When it was last written, by its own word: `LAST-MODIFIED`, else `DTSTAMP`.
    pub written_at: Option<UnixTime>,
    /// The first `DTSTART` as written, and its zone.
    pub start: Option<(String, Option<String>)>,
    /// The `SUMMARY`.
    pub summary: Option<String>,
    /// The `LOCATION`.
    pub location: Option<String>,
    /// The whole object was taken back.
    pub is_cancelled: bool,
    /// Its `CLASS` in lower case.
    pub class: Option<String>,
}

/// Reads one object, which is a calendar of its own.
pub fn read(bytes: &[u8], extra_marks: &[&str]) -> Reading {
    let mut marks = Marks::default();
    for mark in extra_marks {
        marks.add(mark);
    }
    let mut room = Room::default();
    let (meetings, facts) = read_object(bytes, &mut room, &mut marks);
    Reading {
        meetings,
        marks: marks.into_list(),
        facts,
    }
}

/// Reads one object within the room of its item.
pub(crate) fn read_object(
    bytes: &[u8],
    room: &mut Room,
    marks: &mut Marks,
) -> (Vec<Meeting>, Facts) {
    if bytes.len() > MAX_OBJECT_BYTES || cut::is_too_deep(bytes) {
        marks.add("calendar.object_not_read");
        return (Vec::new(), Facts::default());
    }
    let plain = cut::unfolded(bytes);
    let text = charset::or_guessed(&plain, marks);
    let root = Component::parse(text.trim_start_matches('\u{feff}'));
    let calendar = root.children.iter().find(|it| it.name == "VCALENDAR");
    let Some(calendar) = calendar else {
        marks.add("calendar.object_not_read");
        return (Vec::new(), Facts::default());
    };
    let stated = calendar.children.iter().filter(|it| it.name != "VTIMEZONE");
    let stated: Vec<&Component> = stated.collect();
    let method = calendar.keyword("METHOD").unwrap_or_default();
    let facts = facts(&stated, &method);
    let uid = facts.uid;
    marks.add_if(uid.is_none(), "calendar.uid_missing");
    let is_unread = facts.kinds.iter().any(|kind| *kind != "event");
    marks.add_if(is_unread, "calendar.component_not_read");
    let events: Vec<&Component> = stated
        .iter()
        .copied()
        .filter(|it| it.name == "VEVENT")
        .collect();
    let zones = Zones::of(&calendar.children);
    let mut reader = Reader {
        zones: &zones,
        method: &method,
        series: uid.unwrap_or_else(|| Digest::of_bytes(bytes)),
        room,
        marks,
    };
    let meetings = reader.read(&events);
    (meetings, facts)
}

fn facts(components: &[&Component], method: &str) -> Facts {
    let first = |name: &str| components.iter().find_map(|it| it.find(name));
    let text = |name: &str| {
        let text = shown(&first(name)?.text(), MAX_TEXT_CHARS);
        (!text.is_empty()).then_some(text)
    };
    let lower = |text: &str| {
        text.chars()
            .take(64)
            .collect::<String>()
            .to_ascii_lowercase()
    };
    let mut kinds = Vec::new();
    for component in components {
        let kind = match component.name.as_str() {
            "VEVENT" => "event",
            "VTODO" => "task",
            "VJOURNAL" => "journal",
            _ => "other",
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let sequences = components.iter().filter_map(|it| it.find("SEQUENCE"));
    let is_taken_back = |component: &&Component| {
        let is_whole = component.find("RECURRENCE-ID").is_none();
        let status = component.keyword("STATUS");
        is_whole && (method == "CANCEL" || status.as_deref() == Some("CANCELLED"))
    };
    Facts {
        uid: first("UID")
            .filter(|it| !it.value.is_empty())
            .map(|it| Digest::of_bytes(it.value.as_bytes())),
        kinds,
        method: (!method.is_empty()).then(|| lower(method)),
        sequence: sequences
            .filter_map(|it| it.value.parse().ok())
            .max()
            .unwrap_or(0),
        written_at: components.iter().filter_map(|it| written_at(it)).max(),
        start: first("DTSTART").and_then(|it| {
            let text: String = it.value.chars().take(120).collect();
            let zone = it
                .parameter("TZID")
                .map(|zone| zone.chars().take(64).collect());
            (!text.is_empty()).then_some((text, zone.filter(|zone: &String| !zone.is_empty())))
        }),
        summary: text("SUMMARY"),
        location: text("LOCATION"),
        is_cancelled: components.iter().any(is_taken_back),
        class: first("CLASS").map(|it| lower(&it.value)),
    }
}

fn written_at(component: &Component) -> Option<UnixTime> {
    let stated = ["LAST-MODIFIED", "DTSTAMP"].into_iter();
    let mut read = stated.filter_map(|name| utc(component.find(name)?));
    read.next().map(unix_time)
}

fn unix_time(time: NaiveDateTime) -> UnixTime {
    UnixTime::from_milliseconds(time.and_utc().timestamp_millis())
}
