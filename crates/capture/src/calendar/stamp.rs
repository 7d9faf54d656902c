//! Dates and times as calendars write them (RFC 5545, 3.3.4 and 3.3.5).

use chrono::{Datelike as _, NaiveDate, NaiveDateTime, Timelike as _};

use super::component::Property;

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
}

/// The value of a property in UTC.
pub(super) fn utc(property: &Property) -> Option<NaiveDateTime> {
    match Stamp::of(property)? {
        Stamp::Utc(time) => Some(time),
        Stamp::Day(_) | Stamp::Local(_) => None,
    }
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
}
