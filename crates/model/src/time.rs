//! Points in time: the one RFC 3339 parser of the project (spec 6.1).
//!
//! | form | verdict |
//! | --- | --- |
//! | `2030-01-31T23:59:59Z`, also with `t` or `z` in lower case | accepted |
//! | a fraction of one or more digits: `.5`, `.123456789` | accepted, cut to milliseconds |
//! | an offset from `-23:59` to `+23:59`, and `-00:00` | accepted |
//! | a date alone, a year alone, `1/1/2030` | refused |
//! | no zone, a space for `T`, a comma for the point | refused |
//! | `+0000`, `+05`, `+00:60`, `+24:00` | refused |
//! | days that do not exist: `2030-02-30` | refused |
//! | `24:00:00`, and a leap second `23:59:60` | refused |
//!
//! A leap second is valid RFC 3339, but no clock of this system can represent it, so that one
//! table serves schemas and code alike.

use std::fmt;

use serde_json::Value;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

use crate::json::read::{Expected, FromJson, Mismatch, ToJson, string};

const MILLISECONDS_PER_SECOND: i64 = 1000;

/// The first and last instants that RFC 3339 can write in UTC, in milliseconds.
const FIRST: i64 = -62_167_219_200_000;
const LAST: i64 = 253_402_300_799_999;

/// An instant in milliseconds since the Unix epoch, within the years 0000 to 9999.
///
/// Arithmetic saturates at those years, so it can neither overflow nor leave what can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(i64);

impl UnixTime {
    /// The instant this many milliseconds after the epoch, kept within the years 0000 to 9999.
    pub fn from_milliseconds(milliseconds: i64) -> Self {
        Self(milliseconds.clamp(FIRST, LAST))
    }

    /// Milliseconds since the Unix epoch.
    pub const fn milliseconds(self) -> i64 {
        self.0
    }

    /// This instant and `seconds` more.
    pub fn plus_seconds(self, seconds: u64) -> Self {
        let milliseconds = i64::try_from(seconds)
            .unwrap_or(i64::MAX)
            .saturating_mul(MILLISECONDS_PER_SECOND);
        Self::from_milliseconds(self.0.saturating_add(milliseconds))
    }

    /// Parses one of the accepted forms (see the module).
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader(text.as_bytes());
        let year = reader.digits(4)?;
        reader.one_of(b"-")?;
        let month = reader.digits(2)?;
        reader.one_of(b"-")?;
        let day = reader.digits(2)?;
        reader.one_of(b"Tt")?;
        let hour = reader.digits(2)?;
        reader.one_of(b":")?;
        let minute = reader.digits(2)?;
        reader.one_of(b":")?;
        let second = reader.digits(2)?;
        let millisecond = reader.fraction()?;
        let offset_seconds = reader.offset()?;
        if !reader.0.is_empty() {
            return None;
        }
        let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
        let date =
            Date::from_calendar_date(i32::from(year), month, u8::try_from(day).ok()?).ok()?;
        let time = Time::from_hms_milli(
            u8::try_from(hour).ok()?,
            u8::try_from(minute).ok()?,
            u8::try_from(second).ok()?,
            millisecond,
        )
        .ok()?;
        let local = PrimitiveDateTime::new(date, time).assume_utc();
        let seconds = local.unix_timestamp() - offset_seconds;
        Some(Self::from_milliseconds(
            seconds * MILLISECONDS_PER_SECOND + i64::from(millisecond),
        ))
    }
}

impl fmt::Display for UnixTime {
    /// UTC with three fraction digits, the form in which this project writes every time.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(MILLISECONDS_PER_SECOND);
        let millisecond = self.0.rem_euclid(MILLISECONDS_PER_SECOND);
        let utc = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| fmt::Error)?;
        write!(
            formatter,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{millisecond:03}Z",
            utc.year(),
            u8::from(utc.month()),
            utc.day(),
            utc.hour(),
            utc.minute(),
            utc.second(),
        )
    }
}

/// A day of the calendar, without a zone: `2026-08-14`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalendarDate(Date);

impl CalendarDate {
    /// Parses four digits of the year, two of the month and two of the day, joined by `-`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader(text.as_bytes());
        let year = reader.digits(4)?;
        reader.one_of(b"-")?;
        let month = reader.digits(2)?;
        reader.one_of(b"-")?;
        let day = reader.digits(2)?;
        if !reader.0.is_empty() {
            return None;
        }
        let part = |number| u8::try_from(number).ok();
        Self::new(i32::from(year), part(month)?, part(day)?)
    }

    /// The day of a year, month and day of the month; the last two count from 1.
    pub fn new(year: i32, month: u8, day: u8) -> Option<Self> {
        let is_writable = (0..=9999).contains(&year);
        let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
        is_writable.then_some(Self(date))
    }

    /// The year.
    pub const fn year(self) -> i32 {
        self.0.year()
    }

    /// The month; January is 1.
    pub fn month(self) -> u8 {
        self.0.month().into()
    }

    /// The day of the month; the first is 1.
    pub const fn day(self) -> u8 {
        self.0.day()
    }
}

impl fmt::Display for CalendarDate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = (self.year(), self.month(), self.day());
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

/// A time as its object wrote it: digests cover the text, decisions use the instant (spec 6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timestamp {
    text: String,
    instant: UnixTime,
}

impl Timestamp {
    /// Parses one of the accepted forms and keeps its text.
    pub fn parse(text: &str) -> Option<Self> {
        UnixTime::parse(text).map(|instant| Self {
            text: text.to_owned(),
            instant,
        })
    }

    /// The instant.
    pub const fn instant(&self) -> UnixTime {
        self.instant
    }

    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<UnixTime> for Timestamp {
    fn from(instant: UnixTime) -> Self {
        Self {
            text: instant.to_string(),
            instant,
        }
    }
}

impl FromJson for Timestamp {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        Self::parse(string(value)?).ok_or_else(|| Expected::DateTime.into())
    }
}

impl ToJson for Timestamp {
    fn to_json(&self) -> Value {
        Value::String(self.text.clone())
    }
}

/// Reads fixed-width fields off the front of a text.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn digits(&mut self, count: usize) -> Option<u16> {
        let (field, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        field.iter().try_fold(0u16, |number, byte| {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            Some(number * 10 + u16::from(digit))
        })
    }

    fn one_of(&mut self, choices: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        choices.contains(first).then_some(*first)
    }

    /// An optional fraction, as whole milliseconds.
    fn fraction(&mut self) -> Option<u16> {
        let Some((b'.', rest)) = self.0.split_first() else {
            return Some(0);
        };
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return None;
        }
        let (digits, rest) = rest.split_at(length);
        self.0 = rest;
        let padded = digits.iter().chain(b"000").take(3);
        Some(padded.fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.digits(2).filter(|hours| *hours < 24)?;
        self.one_of(b":")?;
        let minutes = self.digits(2).filter(|minutes| *minutes < 60)?;
        Some(sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ACCEPTED: &[(&str, i64)] = &[
        ("1970-01-01T00:00:00Z", 0),
        ("2030-01-01T12:00:00.000Z", 1_893_499_200_000),
        ("2030-01-01t12:00:00z", 1_893_499_200_000),
        ("2030-01-01T12:00:00.5Z", 1_893_499_200_500),
        ("2030-01-01T12:00:00.123999999999999999Z", 1_893_499_200_123),
        ("2030-01-01T13:30:00+01:30", 1_893_499_200_000),
        ("2029-12-31T12:01:00-23:59", 1_893_499_200_000),
        ("2030-01-01T12:00:00-00:00", 1_893_499_200_000),
        ("2028-02-29T00:00:00Z", 1_835_395_200_000),
        ("0000-01-01T00:00:00Z", FIRST),
        ("9999-12-31T23:59:59.999Z", LAST),
        ("1969-12-31T23:59:59.999Z", -1),
    ];

    const REFUSED: &[&str] = &[
        "",
        "2030",
        "2030-01-01",
        "1/1/2030",
        "2030-02-30T00:00:00Z",
        "2029-02-29T00:00:00Z",
        "2030-13-01T00:00:00Z",
        "2030-00-01T00:00:00Z",
        "2030-01-00T00:00:00Z",
        "2030-01-01T00:00:00",
        "2030-01-01T00:00Z",
        "2030-01-01 00:00:00Z",
        "2030-01-01T24:00:00Z",
        "2030-01-01T00:60:00Z",
        "2030-06-30T23:59:60Z",
        "2030-01-01T00:00:00.Z",
        "2030-01-01T00:00:00,5Z",
        "2030-01-01T00:00:00+0000",
        "2030-01-01T00:00:00+05",
        "2030-01-01T00:00:00+00:60",
        "2030-01-01T00:00:00-00:99",
        "2030-01-01T00:00:00+24:00",
        "2030-01-01T00:00:00Z\n",
        " 2030-01-01T00:00:00Z",
        "+2030-01-01T00:00:00Z",
        "20300-01-01T00:00:00Z",
        "2030-1-1T00:00:00Z",
        "２030-01-01T00:00:00Z",
        "2030-01-01T00:00:00ZZ",
        "2030-01-01T00:00:00+-1:00",
    ];

    #[test]
    fn keeps_to_its_table() {
        for (text, milliseconds) in ACCEPTED {
            let parsed = UnixTime::parse(text).map(UnixTime::milliseconds);
            assert_eq!(parsed, Some(*milliseconds), "{text}");
        }
        for text in REFUSED {
            assert_eq!(UnixTime::parse(text), None, "{text}");
        }
    }

    #[test]
    fn keeps_the_text_beside_the_instant() {
        let written = Timestamp::parse("2030-01-01T13:00:00+01:00").expect("valid");
        assert_eq!(written.as_str(), "2030-01-01T13:00:00+01:00");
        assert_eq!(
            Timestamp::from(written.instant()).as_str(),
            "2030-01-01T12:00:00.000Z"
        );
    }

    #[test]
    fn saturates_instead_of_overflowing() {
        let last = UnixTime::from_milliseconds(i64::MAX);
        assert_eq!(last.plus_seconds(u64::MAX), last);
        assert_eq!(last.to_string(), "9999-12-31T23:59:59.999Z");
        let first = UnixTime::from_milliseconds(i64::MIN);
        assert_eq!(first.to_string(), "0000-01-01T00:00:00.000Z");
        assert_eq!(
            UnixTime::parse("0000-01-01T00:00:00+23:59"),
            Some(first),
            "an offset cannot leave the range"
        );
    }

    proptest! {
        #[test]
        fn writes_what_it_reads(milliseconds in FIRST..=LAST) {
            let instant = UnixTime::from_milliseconds(milliseconds);
            prop_assert_eq!(UnixTime::parse(&instant.to_string()), Some(instant));
        }

        #[test]
        fn never_panics(text in any::<String>(), near in "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]{0,20}[Zz+-]?[0-9:]{0,6}") {
            let _ = UnixTime::parse(&text);
            let _ = UnixTime::parse(&near);
        }
    }
}
