//! What the events of a calendar object say about meetings.

use std::collections::HashSet;

use chrono::{Duration, NaiveDateTime};
use cl_model::digest::Digest;
use cl_wire::vault::v1::{Mailbox, Meeting, MeetingTime};

use super::component::{Component, Property};
use super::moment::{Length, Moment, duration, zone_of};
use super::stamp::{Stamp, utc};
use super::zone::{Zone, Zones};
use super::{MAX_MEETINGS, MAX_TIMES};
use crate::native::address;
use crate::native::marks::Marks;
use crate::wire_time;

/// The mark of a meeting at a time of day in a zone that is not known.
const ZONE_UNKNOWN: &str = "meeting.zone_unknown";

/// The mark of one that its organizer has not fixed.
const TENTATIVE: &str = "meeting.tentative";

/// The mark of one with several starts.
const START_AMBIGUOUS: &str = "meeting.start_ambiguous";

/// The mark of one whose event breaks off.
const INCOMPLETE: &str = "meeting.incomplete";

/// The mark of one with a rule that may take some occurrences away, and was not read.
const RECURRENCE_NOT_READ: &str = "meeting.recurrence_not_read";

/// Methods by which an organizer, or a calendar, says when something is.
const STATEMENTS: &[&str] = &["", "PUBLISH", "REQUEST", "ADD", "CANCEL"];

/// The longest that a meeting takes.
const MAX_DAYS: i64 = 3660;

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
pub(super) struct Event<'a> {
    pub(super) component: &'a Component,
    /// Absent only from a cancellation.
    pub(super) start: Option<Moment<'a>>,
    pub(super) length: Option<Length>,
    /// The start that the series gives it, if it is one of a series.
    pub(super) recurrence: Option<Moment<'a>>,
    /// It speaks of the later ones of the series too.
    pub(super) is_and_later: bool,
    pub(super) is_cancelled: bool,
    revision: Revision,
}

/// Which word it is among those about its meeting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Revision {
    sequence: u32,
    stamped_at: Option<NaiveDateTime>,
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
        let (mut singles, wholes): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|it| self.is_single(it));
        let wholes: Vec<_> = wholes
            .into_iter()
            .map(|event| (self.series(&event), event))
            .collect();
        if let Some((series, whole)) = wholes.first() {
            for single in &mut singles {
                // An object says all of it at once.
                single.revision = single.revision.max(whole.revision);
                single.recurrence = single.recurrence.map(|named| series.named(named));
            }
        }
        let mut meetings = Vec::new();
        for (series, whole) in &wholes {
            let times = self.times(series, &singles);
            let meeting = self.meeting(whole, times, series.is_doubtful);
            meetings.extend(meeting);
        }
        for single in &mut singles {
            // Within its series, that was done.
            single.is_and_later &= wholes.is_empty();
            let times = single_time(single).into_iter().collect();
            meetings.extend(self.meeting(single, times, false));
        }
        meetings
    }

    fn is_single(&self, event: &Event<'_>) -> bool {
        event.recurrence.is_some() || self.method == "ADD"
    }

    fn event(&mut self, component: &'a Component) -> Option<Event<'a>> {
        let status = component.keyword("STATUS");
        let is_cancelled = self.method == "CANCEL" || status.as_deref() == Some("CANCELLED");
        let named = component.find("RECURRENCE-ID");
        // A cancellation may name the occurrence only, or nothing but the meeting.
        let start = match component.find("DTSTART").or(named) {
            None if is_cancelled => None,
            None => {
                self.marks.add("calendar.time_missing");
                return None;
            }
            Some(property) => Some(self.moment(property)?),
        };
        let recurrence = match named {
            None => None,
            Some(property) => Some(self.moment(property)?.within(property, start)),
        };
        let range = named.and_then(|it| it.parameter("RANGE"));
        let is_and_later = range.is_some_and(|it| it.eq_ignore_ascii_case("THISANDFUTURE"));
        let is_lost = range.is_some() && !is_and_later;
        self.marks.add_if(is_lost, "calendar.range_not_read");
        Some(Event {
            component,
            start,
            length: start.and_then(|start| self.length(component, start)),
            recurrence,
            is_and_later,
            is_cancelled,
            revision: self.revision(component),
        })
    }

    fn revision(&self, component: &Component) -> Revision {
        let sequence = component.find("SEQUENCE");
        let sequence = sequence.and_then(|it| it.value.parse().ok());
        let stamped_at = component.find("DTSTAMP").and_then(utc);
        // That of a calendar without a method may be of any writing of it (RFC 5545, 3.8.7.2).
        let changed_at = component.find("LAST-MODIFIED").and_then(utc);
        let changed_at = changed_at.filter(|_| self.method.is_empty());
        Revision {
            sequence: sequence.unwrap_or(0),
            stamped_at: stamped_at.max(changed_at),
        }
    }

    /// The moment that a property names.
    fn moment(&mut self, property: &Property) -> Option<Moment<'a>> {
        let Some(stamp) = Stamp::of(property) else {
            self.marks.add("calendar.time_unreadable");
            return None;
        };
        let zone = zone_of(property, self.zones).filter(|_| matches!(stamp, Stamp::Local(_)));
        if let Stamp::Local(_) = stamp {
            let is_lost = zone.is_none() && property.parameter("TZID").is_some();
            self.marks.add_if(is_lost, "calendar.zone_unknown");
        }
        let is_by_name = matches!(zone, Some(Zone::Named(_)));
        self.marks.add_if(is_by_name, "calendar.zone_by_name");
        Some(Moment { stamp, zone })
    }

    /// How long it takes, by the calendar's word.
    fn length(&mut self, component: &Component, start: Moment<'a>) -> Option<Length> {
        let read = || {
            if let Some(property) = component.find("DTEND") {
                let end = Moment {
                    stamp: Stamp::of(property)?,
                    zone: zone_of(property, self.zones),
                };
                let end = end.within(property, Some(start)).when()?;
                return start.when()?.until(end).map(Length::Exact);
            }
            let length = duration(&component.find("DURATION")?.value)?;
            let has_rest = matches!(length, Length::Nominal { rest, .. } if !rest.is_zero());
            (!has_rest || !matches!(start.stamp, Stamp::Day(_))).then_some(length)
        };
        let is_likely = |length: &Length| {
            let length = length.duration();
            length >= Duration::zero() && length.num_days() <= MAX_DAYS
        };
        let length = read().filter(is_likely);
        let is_stated = component.find("DTEND").is_some() || component.find("DURATION").is_some();
        let is_lost = is_stated && length.is_none();
        self.marks.add_if(is_lost, "calendar.end_unreadable");
        length
    }

    fn meeting(
        &mut self,
        event: &Event<'a>,
        times: Vec<MeetingTime>,
        is_doubtful: bool,
    ) -> Option<Meeting> {
        let component = event.component;
        let times = self.within_room(times);
        let organizer = self.organizer(component);
        let has_words = match event.start {
            Some(_) => !times.is_empty(),
            None => {
                // It is the organizer's word about all of it.
                let is_lost = organizer.is_none() || self.is_single(event);
                self.marks
                    .add_if(is_lost, "calendar.cancellation_without_time");
                !is_lost
            }
        };
        if !has_words {
            return None;
        }
        let is_floating = times.iter().any(|it| {
            let start = it.time.split('/').next().unwrap_or_default();
            start.len() > 10 && !start.ends_with('Z')
        });
        let is_tentative = component.keyword("STATUS").as_deref() == Some("TENTATIVE");
        let doubts = [
            (is_floating, ZONE_UNKNOWN),
            (is_tentative, TENTATIVE),
            (component.all("DTSTART").nth(1).is_some(), START_AMBIGUOUS),
            (component.is_cut, INCOMPLETE),
            (is_doubtful, RECURRENCE_NOT_READ),
        ];
        let marks = doubts.into_iter().filter(|(is_so, _)| *is_so);
        let stamped_at = event.revision.stamped_at;
        Some(Meeting {
            series_digest: self.series.to_string(),
            organizer,
            sequence: event.revision.sequence,
            stamped_at: stamped_at.map(|it| wire_time(it.and_utc().timestamp_millis())),
            is_cancelled: event.is_cancelled,
            is_one_of_series: self.is_single(event),
            is_and_later: event.is_and_later,
            times,
            marks: marks.map(|(_, mark)| mark.to_owned()).collect(),
        })
    }

    fn within_room(&mut self, mut times: Vec<MeetingTime>) -> Vec<MeetingTime> {
        let room = if self.room.meetings == 0 {
            0
        } else {
            self.room.times
        };
        if self.room.meetings == 0 || times.len() > room {
            self.marks.add("calendar.meetings_cut");
            times.truncate(room);
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

/// When one occurrence of a series takes place.
fn single_time(event: &Event<'_>) -> Option<MeetingTime> {
    let start = event.start?;
    let occurrence = event.recurrence.unwrap_or(start).when()?;
    Some(MeetingTime {
        time: start.lasting(event.length)?,
        occurrence: occurrence.written(),
    })
}
