//! Recurrence rules (RFC 5545, 3.3.10), expanded on the wall clock: zones come behind that.

use chrono::{Datelike as _, Months, NaiveDate, NaiveDateTime, NaiveTime};
use rrule::RRuleSet;

/// The calendar repeats itself, weekdays included, after so many years.
const YEARS_OF_A_CYCLE: i32 = 400;

/// The latest year in which rules are expanded, the longest horizon before the last year with four
/// digits.
const LATEST_YEAR: i32 = 9949;

/// How often a rule repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frequency {
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

/// When a rule says that something occurs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Occurrences {
    pub(super) starts: Vec<NaiveDateTime>,
    /// There are more.
    pub(super) is_cut: bool,
}

/// A rule as it stands, its end apart: the end may be in UTC, and the rest is on the wall clock.
pub(super) struct Rule {
    /// All parts but `COUNT` and `UNTIL`, one after another.
    parts: String,
    pub(super) frequency: Frequency,
    pub(super) has_interval: bool,
    /// It names months, and days within them.
    pub(super) names_days: bool,
    /// It names hours or minutes.
    names_times: bool,
    pub(super) count: Option<u32>,
    pub(super) until: Option<Until>,
}

/// When a rule ends, included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// On the wall clock.
    Local(NaiveDateTime),
    Utc(NaiveDateTime),
}

impl Frequency {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_uppercase().as_str() {
            "HOURLY" => Self::Hourly,
            "DAILY" => Self::Daily,
            "WEEKLY" => Self::Weekly,
            "MONTHLY" => Self::Monthly,
            "YEARLY" => Self::Yearly,
            _ => return None,
        })
    }

    /// How far a rule is followed: a rule that never comes true costs no more than so many steps.
    const fn horizon_months(self) -> u32 {
        match self {
            Self::Hourly => 12,
            Self::Daily => 12 * 10,
            Self::Weekly => 12 * 20,
            Self::Monthly => 12 * 30,
            Self::Yearly => 12 * 50,
        }
    }
}

impl Rule {
    /// Reads a rule; none if it is not of a kind that is read. Rules of minutes and seconds are not:
    /// no meeting needs them.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut frequency = None;
        let mut rule = Self {
            parts: String::new(),
            frequency: Frequency::Yearly,
            has_interval: false,
            names_days: false,
            names_times: false,
            count: None,
            until: None,
        };
        let (mut has_months, mut has_days, mut has_places) = (false, false, false);
        for part in text.split(';').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=')?;
            let (name, value) = (name.trim().to_ascii_uppercase(), value.trim());
            match name.as_str() {
                "COUNT" => rule.count = Some(value.parse().ok().filter(|count| *count > 0)?),
                "UNTIL" => rule.until = Some(until(value)?),
                "FREQ" => {
                    frequency = Some(Frequency::parse(value)?);
                    rule.add(&name, value)?;
                }
                "INTERVAL" => {
                    let interval: u16 = value.parse().ok().filter(|it| *it > 0)?;
                    rule.has_interval = interval != 1;
                    rule.add(&name, value)?;
                }
                "BYMONTH" | "BYDAY" | "BYMONTHDAY" | "BYYEARDAY" | "BYWEEKNO" | "BYSETPOS"
                | "WKST" | "BYHOUR" | "BYMINUTE" => {
                    has_months |= name == "BYMONTH";
                    has_days |= name == "BYDAY" || name == "BYMONTHDAY";
                    has_places |= name == "BYSETPOS";
                    rule.names_times |= name == "BYHOUR" || name == "BYMINUTE";
                    rule.add(&name, value)?;
                }
                _ => return None,
            }
        }
        rule.frequency = frequency?;
        rule.names_days = has_months && has_days;
        // To find places among all times of a period, all of them would have to be worked out.
        (!has_places || !rule.is_within_days()).then_some(rule)
    }

    /// Whether it names times of a day.
    pub(super) fn is_within_days(&self) -> bool {
        self.names_times || self.frequency == Frequency::Hourly
    }

    /// Adds a part; none if it has characters that no rule has. The expander is never given others.
    fn add(&mut self, name: &str, value: &str) -> Option<()> {
        if !self.parts.is_empty() {
            self.parts.push(';');
        }
        self.parts.push_str(name);
        self.parts.push('=');
        for character in value.chars().filter(|it| !it.is_whitespace()) {
            let is_plain = character.is_ascii_alphanumeric() || "+-,".contains(character);
            self.parts
                .push(is_plain.then(|| character.to_ascii_uppercase())?);
        }
        Some(())
    }

    /// The first occurrences from `start` on to `end`; at most `max`. `start` is among them only if
    /// the rule itself names it. None if the rule contradicts itself.
    pub(super) fn occurrences(
        &self,
        start: NaiveDateTime,
        end: Option<NaiveDateTime>,
        max: u16,
    ) -> Option<Occurrences> {
        let horizon = start.checked_add_months(Months::new(self.frequency.horizon_months()))?;
        let last = end.map_or(horizon, |end| end.min(horizon));
        let count = self
            .count
            .map_or(u16::MAX, |count| u16::try_from(count).unwrap_or(u16::MAX));
        let wanted = count.min(max.saturating_add(1));
        let mut starts = self.expand(start, last, wanted)?;
        let is_at_end = end.is_some_and(|end| end <= horizon)
            || self.count.is_some() && starts.len() == usize::from(count);
        let is_cut = starts.len() > usize::from(max) || !is_at_end;
        starts.truncate(usize::from(max));
        Some(Occurrences { starts, is_cut })
    }

    /// The first `count` from `start` to `last`; none if the rule contradicts itself.
    ///
    /// The expander looks for a first occurrence up to the year 10,000, whenever the rule ends. So
    /// it is asked whole cycles of the calendar later, shortly before that.
    fn expand(
        &self,
        start: NaiveDateTime,
        last: NaiveDateTime,
        count: u16,
    ) -> Option<Vec<NaiveDateTime>> {
        let cycles = (LATEST_YEAR - start.year()).div_euclid(YEARS_OF_A_CYCLE);
        let later = Months::new(u32::try_from(12 * YEARS_OF_A_CYCLE * cycles).ok()?);
        let form = "%Y%m%dT%H%M%SZ";
        let first = start.checked_add_months(later)?.format(form);
        let last = last.checked_add_months(later)?.format(form);
        let text = format!("DTSTART:{first}\nRRULE:{};UNTIL={last}", self.parts);
        let set: RRuleSet = text.parse().ok()?;
        let found = set.all(count).dates;
        let back = found
            .iter()
            .map(|it| it.naive_utc().checked_sub_months(later));
        back.collect()
    }
}

fn until(text: &str) -> Option<Until> {
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y%m%d") {
        let last = NaiveTime::from_hms_opt(23, 59, 59)?;
        return Some(Until::Local(day.and_time(last)));
    }
    let bare = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let time = NaiveDateTime::parse_from_str(bare, "%Y%m%dT%H%M%S").ok()?;
    Some(if bare.len() < text.len() {
        Until::Utc(time)
    } else {
        Until::Local(time)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").unwrap()
    }

    fn days(rule: &str, start: &str, max: u16) -> Option<(Vec<String>, bool)> {
        let rule = Rule::parse(rule)?;
        let end = rule.until.map(|until| match until {
            Until::Local(time) | Until::Utc(time) => time,
        });
        let found = rule.occurrences(at(start), end, max)?;
        let days = found.starts.iter().map(|it| it.format("%m-%d").to_string());
        Some((days.collect(), found.is_cut))
    }

    #[test]
    fn expands_the_usual_rules() {
        let rows: [(&str, &[&str], bool); 10] = [
            ("FREQ=WEEKLY;COUNT=3", &["11-05", "11-12", "11-19"], false),
            ("freq=daily;count=2", &["11-05", "11-06"], false),
            ("FREQ=WEEKLY;UNTIL=20261112", &["11-05", "11-12"], false),
            ("FREQ=WEEKLY;UNTIL=20261112T080000Z", &["11-05"], false),
            ("FREQ=MONTHLY;BYDAY=1TH;COUNT=2", &["11-05", "12-03"], false),
            ("FREQ=WEEKLY;BYDAY=MO;COUNT=2", &["11-09", "11-16"], false),
            ("FREQ=WEEKLY;COUNT=1", &["11-05"], false),
            ("FREQ=DAILY", &["11-05", "11-06", "11-07", "11-08"], true),
            (
                "FREQ=DAILY;BYHOUR=9,14;COUNT=3",
                &["11-05", "11-05", "11-06"],
                false,
            ),
            (
                "FREQ=HOURLY;INTERVAL=12;COUNT=3",
                &["11-05", "11-05", "11-06"],
                false,
            ),
        ];
        for (rule, expected, is_cut) in rows {
            let found = days(rule, "2026-11-05T09:00", 4);
            let expected = expected.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(found, Some((expected, is_cut)), "{rule}");
        }
    }

    #[test]
    fn rules_without_end_and_without_sense_end() {
        for (rule, count) in [
            ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", 0),
            ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", 0),
            ("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30", 0),
            ("FREQ=YEARLY;INTERVAL=65535", 1),
            ("FREQ=DAILY;INTERVAL=365;COUNT=20", 11),
            ("FREQ=DAILY;UNTIL=99991231", 40),
        ] {
            let (found, is_cut) = days(rule, "2026-11-05T09:00", 40).unwrap();
            assert_eq!(found.len(), count, "{rule}");
            assert!(is_cut, "{rule}");
        }
        for rule in [
            "",
            "FREQ=SECONDLY",
            "FREQ=MINUTELY;COUNT=2",
            "FREQ=DAILY;BYHOUR=9,14;BYSETPOS=-1",
            "COUNT=2",
            "FREQ=WEEKLY;COUNT=0",
            "FREQ=DAILY;INTERVAL=0",
            "FREQ=WEEKLY;UNTIL=soon",
            "FREQ=WEEKLY;COUNT",
            "FREQ=WEEKLY;BYEASTER=1",
            "FREQ=WEEKLY;RSCALE=HEBREW",
            "FREQ=WEEKLY;BYDAY=-1SUÿþ",
            "FREQ=DAİLY",
            "FREQ=DAILY\nRRULE:FREQ=DAILY",
        ] {
            assert!(Rule::parse(rule).is_none(), "{rule}");
        }
        for rule in ["FREQ=YEARLY;BYMONTH=13", "FREQ=MONTHLY;BYDAY=XX"] {
            assert_eq!(days(rule, "2026-11-05T09:00", 4), None, "{rule}");
        }
    }
}
