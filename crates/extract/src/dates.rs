//! Resolves phrases against the day on which the message was written.

use time::{Date, Duration, Weekday};

use crate::date::{Mention, Order, Phrase, calendar_day};
use crate::mark;

/// Days by which a date without a year may lie ahead before its year is in doubt.
const MAX_DAYS_WITHOUT_YEAR: i64 = 300;

/// Days beyond which a date is a slip rather than a plan.
const MAX_DAYS_AHEAD: i64 = 3650;

/// What the message shows about its dates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    /// The author's day when the message was sent.
    pub(crate) sent: Option<Date>,
    /// The order of its numeric dates.
    pub(crate) order: Option<Order>,
    /// The weekdays that it names with "this".
    pub(crate) this_weekdays: Vec<Weekday>,
}

/// One or more days that a phrase may mean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Days {
    pub(crate) days: Vec<Date>,
    pub(crate) confidence: f64,
    /// Why it is in doubt, if it is.
    pub(crate) mark: Option<&'static str>,
}

impl Days {
    fn sure(day: Date, confidence: f64) -> Self {
        Self {
            days: vec![day],
            confidence,
            mark: None,
        }
    }

    fn doubtful(days: Vec<Date>, mark: &'static str) -> Self {
        Self {
            days,
            confidence: 0.4,
            mark: Some(mark),
        }
    }
}

impl Reference {
    /// The days of a mention, or the mark that says why there are none.
    pub(crate) fn resolve(&self, mention: &Mention) -> Result<Days, &'static str> {
        let found = self.days(&mention.phrase)?;
        let disagrees = |day: &Date| mention.beside.is_some_and(|it| it != day.weekday());
        if found.days.iter().any(disagrees) {
            return Err(mark::DATE_WEEKDAY_MISMATCH);
        }
        let Some(sent) = self.sent else {
            return Ok(found);
        };
        if found.days.iter().any(|day| *day < sent) {
            return Err(mark::DATE_PAST);
        }
        let is_far = |day: &Date| (*day - sent).whole_days() > MAX_DAYS_AHEAD;
        if found.days.iter().any(is_far) {
            return Err(mark::DATE_IMPLAUSIBLE);
        }
        Ok(found)
    }

    fn days(&self, phrase: &Phrase) -> Result<Days, &'static str> {
        match *phrase {
            Phrase::Full(year, month, day) => calendar_day(year, month, day)
                .map(|day| Days::sure(day, 0.85))
                .ok_or(mark::DATE_IMPLAUSIBLE),
            Phrase::MonthDay(month, day) => self.next(month, day),
            Phrase::Numeric(first, second, year) => self.numeric(first, second, year),
            Phrase::DayOfMonth(day) => self.day_of_month(day),
            Phrase::Unclear(mark) => Err(mark),
            Phrase::Past => Err(mark::DATE_PAST),
            Phrase::Weekday(_)
            | Phrase::ThisWeekday(_)
            | Phrase::NextWeekday(_)
            | Phrase::WeekdayWeek(_)
            | Phrase::DayOfMonthAhead(..)
            | Phrase::InDays(_)
            | Phrase::EndOfMonthAhead(_)
            | Phrase::EndOfMonth(..)
            | Phrase::EndOfYear => self.counted(phrase, self.sent()?),
        }
    }

    fn sent(&self) -> Result<Date, &'static str> {
        self.sent.ok_or(mark::DATE_NO_REFERENCE)
    }

    /// Phrases that count from the day of the message.
    fn counted(&self, phrase: &Phrase, sent: Date) -> Result<Days, &'static str> {
        match *phrase {
            Phrase::Weekday(weekday) if weekday == sent.weekday() => Ok(Days::doubtful(
                vec![sent, later(sent, 7)?],
                mark::DATE_SAME_WEEKDAY,
            )),
            Phrase::Weekday(weekday) => Ok(Days::sure(coming(sent, weekday)?, 0.7)),
            Phrase::ThisWeekday(weekday) => this_weekday(sent, weekday),
            Phrase::NextWeekday(weekday) => self.next_weekday(sent, weekday),
            Phrase::WeekdayWeek(weekday) => Ok(Days::sure(later(coming(sent, weekday)?, 7)?, 0.7)),
            Phrase::DayOfMonthAhead(day, months) => {
                let (year, month) = month_ahead(sent, months);
                calendar_day(year, month, day)
                    .map(|day| Days::sure(day, 0.75))
                    .ok_or(mark::DATE_IMPLAUSIBLE)
            }
            Phrase::InDays(days) => Ok(Days::sure(later(sent, days)?, 0.75)),
            Phrase::EndOfMonthAhead(months) => {
                let (year, month) = month_ahead(sent, months);
                Ok(Days::sure(last_of(year, month)?, 0.75))
            }
            Phrase::EndOfMonth(month, year) => {
                let is_over = month < u8::from(sent.month());
                let year = year.unwrap_or(sent.year() + i32::from(is_over));
                Ok(Days::sure(last_of(year, month)?, 0.75))
            }
            Phrase::EndOfYear => Ok(Days::sure(last_of(sent.year(), 12)?, 0.75)),
            Phrase::Full(..)
            | Phrase::MonthDay(..)
            | Phrase::Numeric(..)
            | Phrase::DayOfMonth(_)
            | Phrase::Unclear(_)
            | Phrase::Past => Err(mark::DATE_VAGUE),
        }
    }

    /// The next such day, unless it is so far ahead that the last one may be meant.
    fn next(&self, month: u8, day: u8) -> Result<Days, &'static str> {
        let sent = self.sent()?;
        // A leap day may be up to eight years away.
        let found = (0..=8)
            .filter_map(|years| calendar_day(sent.year() + years, month, day))
            .find(|it| *it >= sent)
            .ok_or(mark::DATE_IMPLAUSIBLE)?;
        if (found - sent).whole_days() > MAX_DAYS_WITHOUT_YEAR {
            return Err(mark::DATE_YEAR_UNCLEAR);
        }
        Ok(Days::sure(found, 0.75))
    }

    fn numeric(&self, first: u8, second: u8, year: Option<i32>) -> Result<Days, &'static str> {
        let reading = |month, day| match year {
            Some(year) => calendar_day(year, month, day)
                .map(|day| Days::sure(day, 0.8))
                .ok_or(mark::DATE_IMPLAUSIBLE),
            None => self.next(month, day),
        };
        let is_day = |month, day| calendar_day(year.unwrap_or(2000), month, day).is_some();
        match (is_day(second, first), is_day(first, second)) {
            (true, false) => reading(second, first),
            (false, true) => reading(first, second),
            (false, false) => Err(mark::DATE_IMPLAUSIBLE),
            (true, true) if first == second => reading(first, second),
            (true, true) => match self.order {
                Some(Order::DayMonth) => reading(second, first),
                Some(Order::MonthDay) => reading(first, second),
                None => Err(mark::DATE_ORDER),
            },
        }
    }

    /// "the 14th": of this month or, once it is over, of the next.
    fn day_of_month(&self, day: u8) -> Result<Days, &'static str> {
        let sent = self.sent()?;
        let (next_year, next_month) = month_ahead(sent, 1);
        // "the 31st" in a month of thirty days is a slip.
        let this =
            calendar_day(sent.year(), u8::from(sent.month()), day).ok_or(mark::DATE_IMPLAUSIBLE)?;
        let this = Some(this).filter(|it| *it >= sent);
        this.or_else(|| calendar_day(next_year, next_month, day))
            .map(|day| Days::sure(day, 0.7))
            .ok_or(mark::DATE_IMPLAUSIBLE)
    }

    /// The coming one or the one of the next week; people differ. A message that says "this Friday"
    /// beside "next Friday" means the later one.
    fn next_weekday(&self, sent: Date, weekday: Weekday) -> Result<Days, &'static str> {
        let nearest = coming(sent, weekday)?;
        let monday = later(
            sent,
            7 - i64::from(sent.weekday().number_days_from_monday()),
        )?;
        let of_next_week = later(monday, i64::from(weekday.number_days_from_monday()))?;
        if self.this_weekdays.contains(&weekday) && nearest != of_next_week {
            return Ok(Days::sure(of_next_week, 0.65));
        }
        let mut days = vec![nearest];
        if nearest != of_next_week {
            days.push(of_next_week);
        }
        Ok(Days::doubtful(days, mark::DATE_NEXT_WEEKDAY))
    }
}

/// Within the week of the message; an earlier day of that week is not what "this" asks for.
fn this_weekday(sent: Date, weekday: Weekday) -> Result<Days, &'static str> {
    let (today, asked) = (
        sent.weekday().number_days_from_monday(),
        weekday.number_days_from_monday(),
    );
    if asked < today {
        return Ok(Days::doubtful(
            vec![coming(sent, weekday)?],
            mark::DATE_NEXT_WEEKDAY,
        ));
    }
    Ok(Days::sure(later(sent, i64::from(asked - today))?, 0.75))
}

/// The first such weekday after a day.
fn coming(day: Date, weekday: Weekday) -> Result<Date, &'static str> {
    let from = i64::from(day.weekday().number_days_from_monday());
    let to = i64::from(weekday.number_days_from_monday());
    later(day, (to - from + 6).rem_euclid(7) + 1)
}

fn later(day: Date, days: i64) -> Result<Date, &'static str> {
    day.checked_add(Duration::days(days))
        .ok_or(mark::DATE_IMPLAUSIBLE)
}

/// Year and month, so many months after a day.
fn month_ahead(day: Date, months: u8) -> (i32, u8) {
    let month = u8::from(day.month()) - 1 + months;
    (day.year() + i32::from(month / 12), month % 12 + 1)
}

fn last_of(year: i32, month: u8) -> Result<Date, &'static str> {
    let first = calendar_day(year, month, 1).ok_or(mark::DATE_IMPLAUSIBLE)?;
    let days = first.month().length(year);
    calendar_day(year, month, days).ok_or(mark::DATE_IMPLAUSIBLE)
}
