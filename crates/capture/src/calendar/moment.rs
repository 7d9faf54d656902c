//! Points in the calendar, and how long something takes from one on.

use chrono::{Duration, NaiveDate, NaiveDateTime};

use super::component::Property;
use super::stamp::Stamp;
use super::zone::{Zone, Zones};

/// A point in the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum When {
    Day(NaiveDate),
    /// In UTC.
    Instant(NaiveDateTime),
    /// On a wall clock whose zone is not known.
    TimeOfDay(NaiveDateTime),
}

/// A stamp with its zone, if that is known.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) stamp: Stamp,
    pub(super) zone: Option<Zone<'a>>,
}

/// How long something takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// As much time, as between a start and an end.
    Exact(Duration),
    /// Days on the wall clock, and then as much time (RFC 5545, 3.3.6).
    Nominal { days: Duration, rest: Duration },
}

impl<'a> Moment<'a> {
    /// Where it is in the calendar.
    pub(super) fn when(self) -> Option<When> {
        match (self.stamp, self.zone) {
            (Stamp::Day(day), _) => Some(When::Day(day)),
            (Stamp::Utc(time), _) => Some(When::Instant(time)),
            (Stamp::Local(time), Some(zone)) => zone.instant(time).map(When::Instant),
            (Stamp::Local(time), None) => Some(When::TimeOfDay(time)),
        }
    }

    /// The one in the same zone with another wall time.
    pub(super) fn at(self, wall: NaiveDateTime) -> Self {
        Self {
            stamp: self.stamp.at(wall),
            zone: self.zone,
        }
    }

    /// The moment about something that begins at `start`: where its property names no zone, it is in
    /// that of the start.
    pub(super) fn within(self, property: &Property, start: Option<Self>) -> Self {
        let is_bare = matches!(self.stamp, Stamp::Local(_)) && property.parameter("TZID").is_none();
        match start {
            Some(start) if is_bare => Self {
                zone: start.zone,
                ..self
            },
            Some(_) | None => self,
        }
    }

    /// What the wall clock of another moment's zone shows then; none if the two are not of one form.
    pub(super) fn on_wall_of(self, other: Moment<'a>) -> Option<NaiveDateTime> {
        match (self.when()?, other.when()?, other.zone) {
            (When::Day(_), When::Day(_), _) => Some(self.stamp.wall()),
            (When::TimeOfDay(time), When::TimeOfDay(_), _) => Some(time),
            (When::Instant(time), When::Instant(_), None) => Some(time),
            (When::Instant(time), When::Instant(_), Some(zone)) => zone.local(time),
            (When::Day(_) | When::Instant(_) | When::TimeOfDay(_), _, _) => None,
        }
    }

    /// From here for as long, in the contract's form.
    pub(super) fn lasting(self, length: Option<Length>) -> Option<String> {
        let start = self.when()?;
        let end = match length {
            None => return Some(start.written()),
            Some(Length::Exact(length)) => start.after(length)?,
            Some(Length::Nominal { days, rest }) => {
                let last = self.stamp.wall().checked_add_signed(days)?;
                self.at(last).when()?.after(rest)?
            }
        };
        Some(start.to(end))
    }
}

impl Length {
    /// About how long it is.
    pub(super) fn duration(self) -> Duration {
        match self {
            Self::Exact(length) => length,
            Self::Nominal { days, rest } => days + rest,
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

    fn after(self, length: Duration) -> Option<Self> {
        Some(match self {
            Self::Day(day) => Self::Day(day.checked_add_signed(length)?),
            Self::Instant(time) => Self::Instant(time.checked_add_signed(length)?),
            Self::TimeOfDay(time) => Self::TimeOfDay(time.checked_add_signed(length)?),
        })
    }

    /// From here to an end of the same form: the last of several days is named, since an end is not
    /// included (RFC 5545, 3.6.1).
    fn to(self, end: Self) -> String {
        let last = match end {
            Self::Day(day) => Self::Day(day.pred_opt().unwrap_or(day)),
            Self::Instant(_) | Self::TimeOfDay(_) => end,
        };
        let (start, last) = (self.written(), last.written());
        // Texts of one form have the order of their times.
        if last <= start {
            return start;
        }
        format!("{start}/{last}")
    }
}

/// A duration such as `PT1H30M` or `P2D` (RFC 5545, 3.3.6); none if it is not ahead.
pub(super) fn duration(text: &str) -> Option<Length> {
    let text = text.trim();
    let (mut days, mut rest) = (Duration::zero(), Duration::zero());
    let (mut digits, mut is_time) = (String::new(), false);
    let parts = text.strip_prefix('+').unwrap_or(text);
    for character in parts.strip_prefix('P')?.chars() {
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
        match (character, is_time) {
            ('W', false) => days += Duration::weeks(number),
            ('D', false) => days += Duration::days(number),
            ('H', true) => rest += Duration::hours(number),
            ('M', true) => rest += Duration::minutes(number),
            ('S', true) => rest += Duration::seconds(number),
            _ => return None,
        }
    }
    let is_ahead = days + rest > Duration::zero();
    (digits.is_empty() && is_ahead).then_some(Length::Nominal { days, rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Option<Moment<'static>> {
        let stamp = Stamp::parse(text)?;
        Some(Moment { stamp, zone: None })
    }

    #[test]
    fn reads_stamps_and_durations() {
        let written = |text: &str| moment(text)?.when().map(When::written);
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
        let minutes = |text: &str| duration(text).map(|it| it.duration().num_minutes());
        assert_eq!(minutes("PT1H30M"), Some(90));
        assert_eq!(minutes("P1DT1M"), Some(1441));
        assert_eq!(minutes("P2W"), Some(20_160));
        for text in ["", "P", "PT", "-PT1H", "P1H", "PT1", "PT9999999H", "P1Y"] {
            assert_eq!(minutes(text), None, "{text}");
        }
    }

    #[test]
    fn the_end_of_days_is_not_included() {
        let day = moment("20261116").unwrap();
        let lasting = |days| day.lasting(Some(Length::Exact(Duration::days(days))));
        assert_eq!(lasting(1).as_deref(), Some("2026-11-16"));
        assert_eq!(lasting(0).as_deref(), Some("2026-11-16"));
        assert_eq!(lasting(3).as_deref(), Some("2026-11-16/2026-11-18"));
    }

    #[test]
    fn days_are_days_of_the_wall_clock_and_hours_are_hours() {
        let start = Moment {
            zone: Some(Zone::Named(chrono_tz::Europe::Berlin)),
            ..moment("20261024T100000").unwrap()
        };
        let rows = [
            ("P1D", "2026-10-24T08:00:00Z/2026-10-25T09:00:00Z"),
            ("PT24H", "2026-10-24T08:00:00Z/2026-10-25T08:00:00Z"),
            ("P1DT1H", "2026-10-24T08:00:00Z/2026-10-25T10:00:00Z"),
        ];
        for (text, expected) in rows {
            let found = start.lasting(duration(text));
            assert_eq!(found.as_deref(), Some(expected), "{text}");
        }
    }
}
