//! What the events of a calendar object say about meetings.

use std::collections::HashSet;

use chrono::{Duration, NaiveDateTime};
use cl_model::digest::Digest;
use cl_wire::vault::v1::{Mailbox, Meeting, MeetingTime};

use super::component::{Component, Property};
use super::recurrence::{Rule, Until};
use super::stamp::{Stamp, When, duration, zone_of};
use super::zone::{Zone, Zones};
use super::{MAX_MEETINGS, MAX_TIMES};
use crate::mail::address;
use crate::mail::marks::Marks;
use crate::wire_time;

/// The mark of a meeting at a time of day in a zone that is not known.
const ZONE_UNKNOWN: &str = "meeting.zone_unknown";

/// Methods by which an organizer, or a calendar, says when something is.
const STATEMENTS: &[&str] = &["", "PUBLISH", "REQUEST", "ADD", "CANCEL"];

/// The longest that a meeting takes.
const MAX_DAYS: i64 = 3660;

/// The most dates of the lists of one event.
const MAX_DATES: usize = 1000;

/// The meetings of one object, within the room that is left in its item.
pub(super) struct Reader<'a> {
    pub(super) zones: &'a Zones,
    pub(super) method: &'a str,
    pub(super) series: Digest,
    pub(super) room: &'a mut Room,
    pub(super) marks: &'a mut Marks,
}

/// How much more an item may say.
pub(crate) struct Room {
    pub(super) meetings: usize,
    pub(super) times: usize,
    pub(super) organizers: HashSet<String>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            meetings: MAX_MEETINGS,
            times: MAX_TIMES,
            organizers: HashSet::new(),
        }
    }
}

/// An event whose own dates were read.
struct Event<'a> {
    component: &'a Component,
    start: Stamp,
    zone: Option<Zone<'a>>,
    length: Option<Duration>,
    /// The start that the series gives it, if it is one of a series.
    occurrence: Option<When>,
    is_cancelled: bool,
}

impl<'a> Reader<'a> {
    /// Reads the events of an object.
    pub(super) fn read(&mut self, events: &[&'a Component]) -> Vec<Meeting> {
        if !STATEMENTS.contains(&self.method) {
            // What an invited person answers is no word about when it is.
            self.marks.add("calendar.answer");
            return Vec::new();
        }
        let read: Vec<Event<'a>> = events.iter().filter_map(|it| self.event(it)).collect();
        let replaced: HashSet<String> = read
            .iter()
            .filter_map(|event| Some(event.occurrence?.written()))
            .collect();
        let meetings = read
            .iter()
            .filter_map(|event| self.meeting(event, &replaced));
        meetings.collect()
    }

    fn event(&mut self, component: &'a Component) -> Option<Event<'a>> {
        let status = component.keyword("STATUS");
        let is_cancelled = self.method == "CANCEL" || status.as_deref() == Some("CANCELLED");
        let recurrence = component.find("RECURRENCE-ID");
        // A cancellation may name the occurrence only.
        let start = component.find("DTSTART").or(recurrence);
        let Some(start) = start else {
            self.marks.add(if is_cancelled {
                "calendar.cancellation_without_time"
            } else {
                "calendar.time_missing"
            });
            return None;
        };
        let Some(stamp) = Stamp::of(start) else {
            self.marks.add("calendar.time_unreadable");
            return None;
        };
        let zone = self.zone(start, stamp);
        let length = self.length(component, stamp, zone.as_ref());
        let occurrence = match recurrence {
            None => None,
            Some(property) => {
                let named = Stamp::of(property);
                let zone = named.and_then(|named| self.zone(property, named));
                let when = named.and_then(|named| named.when(zone.as_ref()));
                if when.is_none() {
                    self.marks.add("calendar.time_unreadable");
                    return None;
                }
                let is_later = property.parameter("RANGE").is_some();
                self.marks.add_if(is_later, "calendar.range_not_read");
                when
            }
        };
        Some(Event {
            component,
            start: stamp,
            zone,
            length,
            occurrence,
            is_cancelled,
        })
    }

    fn zone(&mut self, property: &Property, stamp: Stamp) -> Option<Zone<'a>> {
        if !matches!(stamp, Stamp::Local(_)) {
            return None;
        }
        let zone = zone_of(property, self.zones);
        if matches!(zone, Some(Zone::Named(_))) {
            self.marks.add("calendar.zone_by_name");
        }
        let is_lost = zone.is_none() && property.parameter("TZID").is_some();
        self.marks.add_if(is_lost, "calendar.zone_unknown");
        zone
    }

    /// How long it takes, by the calendar's word; days for whole days.
    fn length(
        &mut self,
        component: &Component,
        start: Stamp,
        zone: Option<&Zone<'_>>,
    ) -> Option<Duration> {
        let read = || {
            if let Some(property) = component.find("DTEND") {
                let end = Stamp::of(property)?;
                let own = zone_of(property, self.zones);
                let from = start.when(zone)?;
                return from.until(end.when(own.as_ref())?);
            }
            let length = duration(&component.find("DURATION")?.value)?;
            let is_days = length == Duration::days(length.num_days());
            (is_days || !matches!(start, Stamp::Day(_))).then_some(length)
        };
        let is_stated = component.find("DTEND").is_some() || component.find("DURATION").is_some();
        let is_likely = |length: &Duration| (0..=MAX_DAYS).contains(&length.num_days());
        let length = read().filter(|length| *length >= Duration::zero() && is_likely(length));
        let is_lost = is_stated && length.is_none();
        self.marks.add_if(is_lost, "calendar.end_unreadable");
        length
    }

    fn meeting(&mut self, event: &Event<'a>, replaced: &HashSet<String>) -> Option<Meeting> {
        let component = event.component;
        let times = match event.occurrence {
            Some(occurrence) => self.single(event, occurrence)?,
            None if self.method == "ADD" => {
                let when = event.start.when(event.zone.as_ref())?;
                self.single(event, when)?
            }
            None => self.series(event, replaced),
        };
        let times = self.within_room(times);
        let organizer = self.organizer(component);
        if times.is_empty() {
            return None;
        }
        let is_floating = times.iter().any(|it| {
            let start = it.time.split('/').next().unwrap_or_default();
            start.len() > 10 && !start.ends_with('Z')
        });
        let marks = is_floating.then(|| ZONE_UNKNOWN.to_owned());
        Some(Meeting {
            series_digest: self.series.to_string(),
            organizer,
            sequence: component
                .find("SEQUENCE")
                .and_then(|it| it.value.parse().ok())
                .unwrap_or(0),
            stamped_at: stamped_at(component).map(|it| wire_time(it.and_utc().timestamp_millis())),
            is_cancelled: event.is_cancelled,
            is_one_of_series: event.occurrence.is_some() || self.method == "ADD",
            times,
            marks: marks.into_iter().collect(),
        })
    }

    fn single(&self, event: &Event<'_>, occurrence: When) -> Option<Vec<MeetingTime>> {
        let start = event.start.when(event.zone.as_ref())?;
        Some(vec![MeetingTime {
            time: start.lasting(event.length)?,
            occurrence: occurrence.written(),
        }])
    }

    /// The occurrences of a series, without those that the object speaks of apart.
    fn series(&mut self, event: &Event<'_>, replaced: &HashSet<String>) -> Vec<MeetingTime> {
        let component = event.component;
        let start = event.start.wall();
        let mut walls = vec![start];
        if let Some(property) = component.find("RRULE") {
            match self.by_rule(property, event) {
                Some(occurrences) => walls = occurrences,
                None => self.marks.add("calendar.recurrence_not_read"),
            }
            let has_more = component.all("RRULE").nth(1).is_some();
            let has_more = has_more || component.find("EXRULE").is_some();
            self.marks.add_if(has_more, "calendar.recurrence_not_read");
        }
        let mut starts: Vec<When> = walls
            .into_iter()
            .filter_map(|wall| event.start.at(wall).when(event.zone.as_ref()))
            .collect();
        starts.extend(self.dates(component, "RDATE"));
        let excluded: HashSet<String> = self
            .dates(component, "EXDATE")
            .into_iter()
            .map(When::written)
            .collect();
        let mut known = HashSet::new();
        let stays =
            |occurrence: &String| !excluded.contains(occurrence) && !replaced.contains(occurrence);
        let times = starts.into_iter().filter_map(|when| {
            let occurrence = when.written();
            let is_new = stays(&occurrence) && known.insert(occurrence.clone());
            let time = when.lasting(event.length)?;
            is_new.then_some(MeetingTime { time, occurrence })
        });
        times.collect()
    }

    fn by_rule(&mut self, property: &Property, event: &Event<'_>) -> Option<Vec<NaiveDateTime>> {
        let rule = Rule::parse(&property.value)?;
        let end = match (rule.until, &event.zone) {
            (None, _) => None,
            (Some(Until::Utc(time)), Some(zone)) => Some(zone.local(time)?),
            (Some(Until::Local(time) | Until::Utc(time)), _) => Some(time),
        };
        let max = u16::try_from(MAX_TIMES).ok()?;
        let found = rule.occurrences(event.start.wall(), end, max)?;
        self.marks.add_if(found.is_cut, "calendar.recurrence_cut");
        Some(found.starts)
    }

    /// The points of a list of dates.
    fn dates(&mut self, component: &Component, name: &str) -> Vec<When> {
        let mut found = Vec::new();
        for property in component.all(name) {
            let zone = zone_of(property, self.zones);
            for text in property.value.split(',') {
                if found.len() == MAX_DATES {
                    self.marks.add("calendar.recurrence_cut");
                    return found;
                }
                // A period counts by its start.
                let text = text.split('/').next().unwrap_or_default();
                let when = Stamp::within_years(text).and_then(|it| it.when(zone.as_ref()));
                self.marks
                    .add_if(when.is_none(), "calendar.time_unreadable");
                found.extend(when);
            }
        }
        found
    }

    fn within_room(&mut self, mut times: Vec<MeetingTime>) -> Vec<MeetingTime> {
        if self.room.meetings == 0 || times.len() > self.room.times {
            self.marks.add("calendar.meetings_cut");
            times.truncate(if self.room.meetings == 0 {
                0
            } else {
                self.room.times
            });
        }
        self.room.meetings = self.room.meetings.saturating_sub(1);
        self.room.times -= times.len();
        times
    }

    fn organizer(&mut self, component: &Component) -> Option<Mailbox> {
        const MAX_ORGANIZERS: usize = 8;

        let property = component.find("ORGANIZER")?;
        let value = property.value.trim();
        let is_mailto = value
            .get(..7)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
        let named = property.parameter("CN").unwrap_or_default();
        let address = if is_mailto { &value[7..] } else { value };
        let organizer = address::mailbox(address, named);
        if organizer.is_none() {
            self.marks.add("calendar.organizer_unreadable");
        }
        let has_room = |it: &Mailbox| {
            self.room.organizers.contains(&it.address)
                || self.room.organizers.len() < MAX_ORGANIZERS
        };
        let organizer = organizer.filter(has_room)?;
        self.room.organizers.insert(organizer.address.clone());
        Some(organizer)
    }
}

/// When its author wrote it, by its own word.
pub(super) fn stamped_at(component: &Component) -> Option<NaiveDateTime> {
    let property = component.find("DTSTAMP")?;
    match Stamp::of(property)? {
        Stamp::Utc(time) => Some(time),
        Stamp::Day(_) | Stamp::Local(_) => None,
    }
}
