//! The `Date` field (RFC 5322 3.3 and 4.3), old forms included.

use cl_model::time::UnixTime;
use time::{Date, Month, PrimitiveDateTime, Time};

/// What a `Date` field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentAt {
    /// The instant.
    pub instant: UnixTime,
    /// The author's offset from UTC in minutes. Absent: the field has no zone that means anything,
    /// and the instant takes its time of day for UTC.
    pub utc_offset_minutes: Option<i32>,
    /// The year was written with two or three digits.
    pub has_short_year: bool,
}

impl SentAt {
    /// Reads the value of a `Date` field.
    pub fn parse(field: &str) -> Option<Self> {
        let plain = without_comments(field);
        let mut words = plain
            .split(|it: char| it.is_whitespace() || it == ',')
            .filter(|word| !word.is_empty())
            .peekable();
        if words.peek()?.starts_with(|it: char| it.is_alphabetic()) {
            words.next();
        }
        let day_word = words.next()?;
        // "29-Oct-2026" in one word.
        let (day, month, year) = match day_word.split('-').collect::<Vec<_>>().as_slice() {
            [day, month, year] => (*day, *month, *year),
            _ => (day_word, words.next()?, words.next()?),
        };
        let (year, has_short_year) = year_of(year)?;
        let date = Date::from_calendar_date(year, month_of(month)?, number(day, 2)?).ok()?;
        let time = time_of(words.next()?)?;
        let offset = words.next().and_then(offset_minutes);
        let local = PrimitiveDateTime::new(date, time)
            .assume_utc()
            .unix_timestamp();
        let seconds = local - i64::from(offset.unwrap_or(0)) * 60;
        Some(Self {
            instant: UnixTime::from_milliseconds(seconds.checked_mul(1000)?),
            utc_offset_minutes: offset,
            has_short_year,
        })
    }
}

fn without_comments(field: &str) -> String {
    let mut depth = 0_u32;
    field
        .chars()
        .filter(|character| {
            match character {
                '(' => depth += 1,
                ')' if depth > 0 => {
                    depth -= 1;
                    return false;
                }
                _ => {}
            }
            depth == 0
        })
        .take(200)
        .collect()
}

fn number<T: std::str::FromStr>(word: &str, max_digits: usize) -> Option<T> {
    let is_number =
        (1..=max_digits).contains(&word.len()) && word.bytes().all(|it| it.is_ascii_digit());
    word.parse().ok().filter(|_| is_number)
}

/// Two digits below 50 count from 2000, others and three digits from 1900 (RFC 5322 4.3).
fn year_of(word: &str) -> Option<(i32, bool)> {
    let year: i32 = number(word, 4)?;
    match word.len() {
        4 if year >= 1900 => Some((year, false)),
        2 if year < 50 => Some((2000 + year, true)),
        2 | 3 => Some((1900 + year, true)),
        _ => None,
    }
}

fn month_of(word: &str) -> Option<Month> {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let start = word.get(..3)?;
    let position = NAMES
        .iter()
        .position(|name| name.eq_ignore_ascii_case(start))?;
    Month::try_from(u8::try_from(position + 1).ok()?).ok()
}

fn time_of(word: &str) -> Option<Time> {
    let mut parts = word.split([':', '.']);
    let hour = number(parts.next()?, 2)?;
    let minute = number(parts.next()?, 2)?;
    let second: u8 = parts.next().map_or(Some(0), |part| number(part, 2))?;
    // A leap second is the second before it: no clock here can tell them apart.
    Time::from_hms(hour, minute, second.min(59)).ok()
}

/// The zones that mean something. A single letter and `-0000` say that the zone is not known.
fn offset_minutes(word: &str) -> Option<i32> {
    if let Some(digits) = word.strip_prefix(['+', '-']) {
        let digits = digits.replace(':', "");
        let both: i32 = number(&digits, 4).filter(|_| digits.len() == 4)?;
        let (hours, minutes) = (both / 100, both % 100);
        let is_unknown = word.starts_with('-') && both == 0;
        let sign = if word.starts_with('-') { -1 } else { 1 };
        return (hours < 24 && minutes < 60 && !is_unknown)
            .then_some(sign * (hours * 60 + minutes));
    }
    let hours = match word.to_ascii_uppercase().as_str() {
        "UT" | "GMT" | "UTC" | "Z" => 0,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => return None,
    };
    Some(hours * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(field: &str) -> Option<(String, Option<i32>)> {
        let sent = SentAt::parse(field)?;
        Some((sent.instant.to_string(), sent.utc_offset_minutes))
    }

    #[test]
    fn reads_current_and_old_forms() {
        let rows = [
            (
                "Thu, 29 Oct 2026 09:02:10 +0100",
                "2026-10-29T08:02:10.000Z",
                Some(60),
            ),
            ("29 Oct 2026 09:02 GMT", "2026-10-29T09:02:00.000Z", Some(0)),
            (
                "Thu, 29 Oct 26 17:05 EST",
                "2026-10-29T22:05:00.000Z",
                Some(-300),
            ),
            (
                "Thu, 29 Oct 126 09:10:00 K",
                "2026-10-29T09:10:00.000Z",
                None,
            ),
            (
                "Thu, 29 Oct 2026 09:10:00 -0000",
                "2026-10-29T09:10:00.000Z",
                None,
            ),
            (
                "Thu, 29 Oct 2026 09:10:00",
                "2026-10-29T09:10:00.000Z",
                None,
            ),
            (
                "Thu, 29 Oct 2026 09:10:00 CEST",
                "2026-10-29T09:10:00.000Z",
                None,
            ),
            (
                "Thu, 29 Oct 2026 09:10:60 +0530 (IST)",
                "2026-10-29T03:40:59.000Z",
                Some(330),
            ),
            (
                "(a (nested) comment) 29 (x) Oct 99 01:02:03 -0800",
                "1999-10-29T09:02:03.000Z",
                Some(-480),
            ),
            (
                "Thu 29-Oct-2026 09:10:00 +00:00",
                "2026-10-29T09:10:00.000Z",
                Some(0),
            ),
        ];
        for (field, instant, offset) in rows {
            assert_eq!(read(field), Some((instant.to_owned(), offset)), "{field}");
        }
    }

    #[test]
    fn refuses_what_is_no_date() {
        for field in [
            "",
            "yesterday",
            "Thu, 31 Feb 2026 09:10:00 +0000",
            "Thu, 29 Oct 2026",
            "29 Oct 2026 25:00 +0000",
            "Thu, 29 Foo 2026 09:10:00 +0000",
            "Thu, 29 Oct 20266 09:10:00 +0000",
            "1999",
            "(((((",
            "29 é 2026 1:1 Z",
        ] {
            assert_eq!(read(field), None, "{field}");
        }
    }
}
