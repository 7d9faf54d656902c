//! Zones: a calendar's own rules first, else those of the time zone database by their name.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use chrono::{Datelike as _, Duration, MappedLocalTime, NaiveDate, NaiveDateTime, TimeZone as _};
use chrono_tz::Tz;

use super::component::Component;
use super::recurrence::{Frequency, Rule, Until};
use super::stamp::Stamp;

/// The most zones of one object.
const MAX_ZONES: usize = 16;

/// The most observances of one zone.
const MAX_OBSERVANCES: usize = 64;

/// The most changes of one observance that are worked out at once.
const MAX_CHANGES: u16 = 400;

/// The most parts of a zone's name, a prefix included.
const MAX_PARTS: usize = 8;

/// How many years around a time are looked at for the change before it.
const YEARS_AROUND: i32 = 2;

/// What is known about a zone.
#[derive(Clone, Copy)]
pub(super) enum Zone<'a> {
    /// By the rules in the calendar.
    Own(&'a Rules),
    /// By its name.
    Named(Tz),
}

/// The zones of a calendar.
#[derive(Default)]
pub(super) struct Zones(HashMap<String, Rules>);

/// The rules of one zone.
pub(super) struct Rules {
    /// The changes that are known one by one.
    changes: Vec<Change>,
    /// Observances that come again each year without an end.
    yearly: Vec<Yearly>,
    /// What holds before the first change.
    offset_before: i32,
    /// The changes of those around a year, once they were worked out.
    around: RefCell<HashMap<i32, Vec<Change>>>,
}

/// From when on an offset holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    /// In UTC.
    at: NaiveDateTime,
    /// In seconds.
    offset: i32,
}

struct Yearly {
    start: NaiveDateTime,
    rule: Rule,
    from: i32,
    to: i32,
}

impl Zones {
    /// Reads the zones among components.
    pub(super) fn of(components: &[Component]) -> Self {
        let zones = components.iter().filter(|it| it.name == "VTIMEZONE");
        let read = zones.take(MAX_ZONES).filter_map(|zone| {
            // A text with escapes here, and a parameter without them where it is named.
            let id = zone.find("TZID")?.text();
            Some((id, Rules::of(zone)?))
        });
        Self(read.collect())
    }

    /// What is known about a zone.
    pub(super) fn find(&self, id: &str) -> Option<Zone<'_>> {
        let plain = || self.0.get(&id.replace("\\,", ",").replace("\\;", ";"));
        if let Some(rules) = self.0.get(id).or_else(plain) {
            return Some(Zone::Own(rules));
        }
        // A prefix such as "/freeassociation.sourceforge.net/" stands before the name.
        let parts: Vec<&str> = id.trim_matches('/').split('/').take(MAX_PARTS).collect();
        let mut names = (0..parts.len()).map(|from| parts[from..].join("/"));
        let known = names.find_map(|name| name.parse::<Tz>().ok());
        known.map(Zone::Named)
    }
}

impl Zone<'_> {
    /// The instant of a time on the zone's wall clock: the first of two, and for a time that the
    /// clock jumps over the one that it would be by the offset before (RFC 5545, 3.3.5).
    pub(super) fn instant(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        match self {
            Self::Own(rules) => rules.instant(local),
            Self::Named(zone) => match zone.from_local_datetime(&local) {
                MappedLocalTime::Single(time) | MappedLocalTime::Ambiguous(time, _) => {
                    Some(time.naive_utc())
                }
                MappedLocalTime::None => {
                    let before = local.checked_sub_signed(Duration::hours(3))?;
                    let before = zone.from_local_datetime(&before).earliest()?;
                    before.naive_utc().checked_add_signed(Duration::hours(3))
                }
            },
        }
    }

    /// What the wall clock shows at an instant.
    pub(super) fn local(&self, instant: NaiveDateTime) -> Option<NaiveDateTime> {
        match self {
            Self::Own(rules) => plus_seconds(instant, rules.offset_at(instant)?),
            Self::Named(zone) => Some(zone.from_utc_datetime(&instant).naive_local()),
        }
    }
}

impl Rules {
    fn of(zone: &Component) -> Option<Self> {
        let mut rules = Self {
            changes: Vec::new(),
            yearly: Vec::new(),
            offset_before: 0,
            around: RefCell::default(),
        };
        let mut first: Option<NaiveDateTime> = None;
        for observance in zone.children.iter().take(MAX_OBSERVANCES) {
            let from = offset_seconds(&observance.find("TZOFFSETFROM")?.value)?;
            let to = offset_seconds(&observance.find("TZOFFSETTO")?.value)?;
            let Stamp::Local(start) = Stamp::parse(&observance.find("DTSTART")?.value)? else {
                return None;
            };
            if first.is_none_or(|first| start < first) {
                first = Some(start);
                rules.offset_before = from;
            }
            let mut starts = vec![start];
            for dates in observance.all("RDATE") {
                let read = dates.value.split(',').filter_map(Stamp::parse);
                starts.extend(read.filter_map(|stamp| match stamp {
                    Stamp::Local(time) => Some(time),
                    Stamp::Day(_) | Stamp::Utc(_) => None,
                }));
            }
            if let Some(rule) = observance.find("RRULE") {
                let rule = Rule::parse(&rule.value).filter(|rule| !rule.is_within_days())?;
                let comes_each_year = rule.frequency == Frequency::Yearly
                    && !rule.has_interval
                    && rule.names_days
                    && rule.count.is_none()
                    && rule.until.is_none();
                if comes_each_year {
                    // One that names no day is none.
                    let named = rule.occurrences(start, None, 1)?.starts;
                    named.first()?;
                    rules.yearly.push(Yearly {
                        start,
                        rule,
                        from,
                        to,
                    });
                } else {
                    let end = match rule.until {
                        None => None,
                        Some(Until::Local(time)) => Some(time),
                        Some(Until::Utc(time)) => Some(plus_seconds(time, from)?),
                    };
                    starts.extend(rule.occurrences(start, end, MAX_CHANGES)?.starts);
                }
            }
            starts.truncate(usize::from(MAX_CHANGES) * 2);
            for start in starts {
                rules.changes.push(Change {
                    at: plus_seconds(start, from.checked_neg()?)?,
                    offset: to,
                });
            }
        }
        rules.changes.sort_unstable();
        first.map(|_| rules)
    }

    fn offset_at(&self, instant: NaiveDateTime) -> Option<i32> {
        let last = |changes: &[Change]| {
            let at = changes.partition_point(|change| change.at <= instant);
            changes[..at].last().copied()
        };
        let year = instant.year();
        let mut around = self.around.borrow_mut();
        let near = match around.entry(year) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let mut changes = Vec::new();
                for yearly in &self.yearly {
                    changes.extend(yearly.around(year)?);
                }
                changes.sort_unstable();
                place.insert(changes)
            }
        };
        let latest = last(&self.changes).max(last(near));
        Some(latest.map_or(self.offset_before, |change| change.offset))
    }

    fn instant(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        let day = Duration::days(1);
        let before = self.offset_at(local.checked_sub_signed(day)?)?;
        let after = self.offset_at(local.checked_add_signed(day)?)?;
        for offset in [before, after] {
            let instant = plus_seconds(local, -offset)?;
            if self.offset_at(instant)? == offset {
                return Some(instant);
            }
        }
        plus_seconds(local, -before)
    }
}

impl Yearly {
    /// The changes in the years around one.
    fn around(&self, year: i32) -> Option<Vec<Change>> {
        let from_year = self.start.year().max(year - YEARS_AROUND);
        let start = if from_year == self.start.year() {
            self.start
        } else {
            // The rule names its days, so that it may begin on any.
            NaiveDate::from_ymd_opt(from_year, 1, 1)?.and_time(self.start.time())
        };
        let count = u16::try_from(2 * YEARS_AROUND + 1).ok()?;
        let found = self.rule.occurrences(start, None, count)?.starts;
        let changes = found.into_iter().map(|local| {
            Some(Change {
                at: plus_seconds(local, -self.from)?,
                offset: self.to,
            })
        });
        changes.collect()
    }
}

fn plus_seconds(time: NaiveDateTime, seconds: i32) -> Option<NaiveDateTime> {
    time.checked_add_signed(Duration::seconds(i64::from(seconds)))
}

/// `+0130`, `-050000` in seconds; within a day.
fn offset_seconds(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let is_plain = digits.bytes().all(|it| it.is_ascii_digit());
    if !is_plain || ![4, 6].contains(&digits.len()) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), |it| it.parse().ok());
    let (hours, minutes, seconds): (i32, i32, i32) = (part(0)?, part(2)?, part(4)?);
    let is_within = hours < 24 && minutes < 60 && seconds < 60;
    is_within.then_some(sign * (hours * 3600 + minutes * 60 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BERLIN: &str = "BEGIN:VTIMEZONE\nTZID:Berlin\n\
        BEGIN:STANDARD\nDTSTART:19961027T030000\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\n\
        TZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nEND:STANDARD\n\
        BEGIN:DAYLIGHT\nDTSTART:19810329T020000\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\n\
        TZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nEND:DAYLIGHT\nEND:VTIMEZONE\n";

    /// Rules that no database has: half an hour, and only in 2026.
    const OWN: &str = "BEGIN:VTIMEZONE\nTZID:Europe/Berlin\n\
        BEGIN:STANDARD\nDTSTART:20200101T000000\nTZOFFSETFROM:+0000\nTZOFFSETTO:+0130\n\
        RDATE:20261101T000000\nEND:STANDARD\n\
        BEGIN:DAYLIGHT\nDTSTART:20260401T000000\nTZOFFSETFROM:+0130\nTZOFFSETTO:+0200\n\
        END:DAYLIGHT\nEND:VTIMEZONE\n";

    fn instant(zones: &str, id: &str, local: &str) -> Option<String> {
        let zones = Zones::of(&Component::parse(zones).children);
        let local = NaiveDateTime::parse_from_str(local, "%Y-%m-%dT%H:%M").unwrap();
        let zone = zones.find(id)?;
        let instant = zone.instant(local)?;
        Some(instant.format("%Y-%m-%dT%H:%M").to_string())
    }

    #[test]
    fn a_name_may_need_escapes_where_it_is_a_text() {
        let zones = BERLIN.replace("TZID:Berlin", "TZID:(UTC+01:00) Amsterdam\\, Berlin");
        for id in [
            "(UTC+01:00) Amsterdam, Berlin",
            "(UTC+01:00) Amsterdam\\, Berlin",
        ] {
            assert_eq!(
                instant(&zones, id, "2026-11-05T10:00").as_deref(),
                Some("2026-11-05T09:00")
            );
        }
    }

    #[test]
    fn the_calendars_own_rules_come_first() {
        let rows = [
            (BERLIN, "Berlin", "2026-11-05T10:00", "2026-11-05T09:00"),
            (BERLIN, "Berlin", "2026-07-05T10:00", "2026-07-05T08:00"),
            (BERLIN, "Berlin", "1990-07-05T10:00", "1990-07-05T08:00"),
            // Jumped over, and there twice.
            (BERLIN, "Berlin", "2026-03-29T02:30", "2026-03-29T01:30"),
            (BERLIN, "Berlin", "2026-10-25T02:30", "2026-10-25T00:30"),
            (OWN, "Europe/Berlin", "2026-03-01T10:00", "2026-03-01T08:30"),
            (OWN, "Europe/Berlin", "2026-05-01T10:00", "2026-05-01T08:00"),
            (OWN, "Europe/Berlin", "2026-12-01T10:00", "2026-12-01T08:30"),
            (OWN, "Europe/Berlin", "2019-12-01T10:00", "2019-12-01T10:00"),
        ];
        for (zones, id, local, expected) in rows {
            let found = instant(zones, id, local);
            assert_eq!(found.as_deref(), Some(expected), "{id} {local}");
        }
    }

    #[test]
    fn then_the_database_and_else_nothing() {
        let rows = [
            (
                "Europe/Berlin",
                "2026-11-05T10:00",
                Some("2026-11-05T09:00"),
            ),
            (
                "Europe/Berlin",
                "2026-03-29T02:30",
                Some("2026-03-29T01:30"),
            ),
            (
                "/freeassociation.sourceforge.net/Europe/Berlin",
                "2026-11-05T10:00",
                Some("2026-11-05T09:00"),
            ),
            ("W. Europe Standard Time", "2026-11-05T10:00", None),
            ("", "2026-11-05T10:00", None),
        ];
        for (id, local, expected) in rows {
            assert_eq!(instant("", id, local).as_deref(), expected, "{id}");
        }
    }

    #[test]
    fn rules_that_make_no_sense_are_no_rules() {
        for (from, to) in [
            ("TZOFFSETTO:+0100", "TZOFFSETTO:+2500"),
            ("TZOFFSETFROM:+0200", "X:1"),
            ("DTSTART:19961027T030000", "DTSTART:19961027"),
            ("FREQ=YEARLY", "FREQ=HOURLY"),
            ("BYDAY=-1SU;BYMONTH=10", "BYDAY=-9SU;BYMONTH=10"),
        ] {
            let broken = BERLIN.replacen(from, to, 1);
            assert_eq!(instant(&broken, "Berlin", "2026-11-05T10:00"), None, "{to}");
        }
        for text in ["", "0100", "+1", "+01:00", "+24\u{e9}0", "+0160"] {
            assert_eq!(offset_seconds(text), None, "{text}");
        }
        assert_eq!(offset_seconds("-013015"), Some(-5415));
    }
}
