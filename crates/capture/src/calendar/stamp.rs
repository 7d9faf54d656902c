//! Dates and times as calendars write them (RFC 5545, 3.3.4 and 3.3.5).

use chrono::{Datelike as _, Duration, NaiveDate, NaiveDateTime, Timelike as _};

use super::component::Property;
use super::zone::{Zone, Zones};

/// Years beyond these are no dates of meetings.
const YEARS: std::ops::RangeInclusive<i32> = 1900..=2200;

/// A date or time as written, its zone apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    Day(NaiveDate),
    /// On some wall clock.
    Local(NaiveDateTime),
    Utc(NaiveDateTime),
}

/// A point in the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Day(NaiveDate),
    /// In UTC.
    Instant(NaiveDateTime),
    /// On a wall clock whose zone is not known.
    TimeOfDay(NaiveDateTime),
}

impl Stamp {
    /// Reads a value.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let bare = text.strip_suffix(['Z', 'z']).unwrap_or(text);
        let stamp = match bare.len() {
            8 if bare.len() == text.len() => {
                Self::Day(NaiveDate::parse_from_str(bare, "%Y%m%d").ok()?)
            }
            15 => {
                let time = NaiveDateTime::parse_from_str(bare, "%Y%m%dT%H%M%S").ok()?;
                // A leap second counts as the one before it, as in RFC 5545, 3.3.12.
                let time = time.with_nanosecond(0)?;
                if bare.len() < text.len() {
                    Self::Utc(time)
                } else {
                    Self::Local(time)
                }
            }
            _ => return None,
        };
        Some(stamp)
    }

    /// Reads a value within the years of meetings.
    pub(super) fn within_years(text: &str) -> Option<Self> {
        Self::parse(text).filter(|it| YEARS.contains(&it.year()))
    }

    /// Reads the value of a property, within the years of meetings.
    pub(super) fn of(property: &Property) -> Option<Self> {
        Self::within_years(&property.value)
    }

    fn year(self) -> i32 {
        match self {
            Self::Day(day) => day.year(),
            Self::Local(time) | Self::Utc(time) => time.year(),
        }
    }

    /// What the wall clock shows; a day begins at midnight.
    pub(super) fn wall(self) -> NaiveDateTime {
        match self {
            Self::Day(day) => day.and_time(chrono::NaiveTime::MIN),
            Self::Local(time) | Self::Utc(time) => time,
        }
    }

    /// The stamp of the same form with another wall time.
    pub(super) fn at(self, wall: NaiveDateTime) -> Self {
        match self {
            Self::Day(_) => Self::Day(wall.date()),
            Self::Local(_) => Self::Local(wall),
            Self::Utc(_) => Self::Utc(wall),
        }
    }

    /// Where it is in the calendar, given its zone if that is known.
    pub(super) fn when(self, zone: Option<&Zone<'_>>) -> Option<When> {
        match (self, zone) {
            (Self::Day(day), _) => Some(When::Day(day)),
            (Self::Utc(time), _) => Some(When::Instant(time)),
            (Self::Local(time), Some(zone)) => zone.instant(time).map(When::Instant),
            (Self::Local(time), None) => Some(When::TimeOfDay(time)),
        }
    }
}

/// The zone that a property names, if it is known.
pub(super) fn zone_of<'a>(property: &Property, zones: &'a Zones) -> Option<Zone<'a>> {
    zones.find(property.parameter("TZID")?)
}

impl When {
    /// In the contract's form.
    pub(super) fn written(self) -> String {
        match self {
            Self::Day(day) => day.format("%Y-%m-%d").to_string(),
            Self::Instant(time) => time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            Self::TimeOfDay(time) => time.format("%Y-%m-%dT%H:%M:%S").to_string(),
        }
    }

    /// How far it is to another point of the same form.
    pub(super) fn until(self, end: Self) -> Option<Duration> {
        match (self, end) {
            (Self::Day(start), Self::Day(end)) => Some(end - start),
            (Self::Instant(start), Self::Instant(end))
            | (Self::TimeOfDay(start), Self::TimeOfDay(end)) => Some(end - start),
            (Self::Day(_) | Self::Instant(_) | Self::TimeOfDay(_), _) => None,
        }
    }

    /// From here for as long: the last of several days is named, since an end is not included
    /// (RFC 5545, 3.6.1).
    pub(super) fn lasting(self, length: Option<Duration>) -> Option<String> {
        let Some(length) = length.filter(|length| *length > Duration::zero()) else {
            return Some(self.written());
        };
        let end = match self {
            Self::Day(day) => Self::Day(day.checked_add_signed(length - Duration::days(1))?),
            Self::Instant(time) => Self::Instant(time.checked_add_signed(length)?),
            Self::TimeOfDay(time) => Self::TimeOfDay(time.checked_add_signed(length)?),
        };
        if end == self {
            return Some(self.written());
        }
        Some(format!("{}/{}", self.written(), end.written()))
    }
}

/// A duration such as `PT1H30M` or `P2D` (RFC 5545, 3.3.6); none if it is not ahead.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let rest = text.trim().strip_prefix('+').unwrap_or(text.trim());
    let (mut total, mut digits, mut is_time) = (Duration::zero(), String::new(), false);
    for character in rest.strip_prefix('P')?.chars() {
        if character.is_ascii_digit() && digits.len() < 6 {
            digits.push(character);
            continue;
        }
        if character == 'T' && digits.is_empty() {
            is_time = true;
            continue;
        }
        let number: i64 = digits.parse().ok()?;
        digits.clear();
        total += match (character, is_time) {
            ('W', false) => Duration::weeks(number),
            ('D', false) => Duration::days(number),
            ('H', true) => Duration::hours(number),
            ('M', true) => Duration::minutes(number),
            ('S', true) => Duration::seconds(number),
            _ => return None,
        };
    }
    (digits.is_empty() && total > Duration::zero()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_second_counts_as_the_one_before_it() {
        let leap = Stamp::parse("20261105T100060Z");
        assert_eq!(leap, Stamp::parse("20261105T100059Z"));
        assert!(leap.is_some());
    }

    #[test]
    fn reads_stamps_and_durations() {
        let written = |text: &str| Stamp::parse(text)?.when(None).map(When::written);
        let rows = [
            ("20261116", Some("2026-11-16")),
            ("20261105T100000", Some("2026-11-05T10:00:00")),
            ("20261105T090000Z", Some("2026-11-05T09:00:00Z")),
            ("20261131", None),
            ("20261105T250000Z", None),
            ("2026-11-05", None),
            ("20261116Z", None),
            ("\u{e9}0261116", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(written(text).as_deref(), expected, "{text}");
        }
        let minutes = |text: &str| duration(text).map(|it| it.num_minutes());
        assert_eq!(minutes("PT1H30M"), Some(90));
        assert_eq!(minutes("P1DT1M"), Some(1441));
        assert_eq!(minutes("P2W"), Some(20_160));
        for text in ["", "P", "PT", "-PT1H", "P1H", "PT1", "PT9999999H", "P1Y"] {
            assert_eq!(minutes(text), None, "{text}");
        }
    }

    #[test]
    fn the_end_of_days_is_not_included() {
        let day = Stamp::parse("20261116").unwrap().when(None).unwrap();
        let lasting = |days| day.lasting(Some(Duration::days(days)));
        assert_eq!(lasting(1).as_deref(), Some("2026-11-16"));
        assert_eq!(lasting(0).as_deref(), Some("2026-11-16"));
        assert_eq!(lasting(3).as_deref(), Some("2026-11-16/2026-11-18"));
    }
}
