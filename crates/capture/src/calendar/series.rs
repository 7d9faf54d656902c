//! The occurrences of a series: its start, its rules and its lists of dates (RFC 5545, 3.8.5).

use std::collections::HashSet;

use chrono::{NaiveDate, NaiveDateTime};
use cl_wire::vault::v1::MeetingTime;

use super::MAX_TIMES;
use super::component::{Component, Property};
use super::event::{Event, Reader};
use super::moment::{Length, Moment, When, duration, zone_of};
use super::recurrence::{Rule, Until};
use super::stamp::Stamp;

/// The most dates that are added to one event.
const MAX_DATES: usize = 1000;

/// The most rules of one event.
const MAX_RULES: usize = 4;

/// The most occurrences that a rule takes away.
const MAX_EXCEPTIONS: u16 = 4000;

/// The occurrences of an event.
#[derive(Default)]
pub(super) struct Series<'a> {
    /// In order.
    occurrences: Vec<Occurrence<'a>>,
    /// A rule or a date that may take some away was not read.
    pub(super) is_doubtful: bool,
}

#[derive(Clone, Copy)]
struct Occurrence<'a> {
    when: When,
    start: Moment<'a>,
    length: Option<Length>,
}

/// Points of a series.
#[derive(Default)]
struct Points {
    at: HashSet<When>,
    /// Days, which are those of the wall clock where the series has times.
    days: HashSet<NaiveDate>,
}

impl Points {
    fn of<'a>(moments: impl IntoIterator<Item = Moment<'a>>) -> Self {
        let mut points = Self::default();
        for when in moments.into_iter().filter_map(Moment::when) {
            match when {
                When::Day(day) => points.days.insert(day),
                When::Instant(_) | When::TimeOfDay(_) => points.at.insert(when),
            };
        }
        points
    }

    fn cover(&self, occurrence: &Occurrence<'_>) -> bool {
        let day = occurrence.start.stamp.wall().date();
        self.at.contains(&occurrence.when) || self.days.contains(&day)
    }
}

impl<'a> Series<'a> {
    /// The start of the occurrence that is named: by its day, a series of times may be named too.
    pub(super) fn named(&self, named: Moment<'a>) -> Moment<'a> {
        let Stamp::Day(day) = named.stamp else {
            return named;
        };
        let mut starts = self.occurrences.iter().map(|it| it.start);
        let found = starts.find(|start| start.stamp.wall().date() == day);
        found.unwrap_or(named)
    }
}

impl<'a> Reader<'a> {
    /// The occurrences of an event by its own word.
    pub(super) fn series(&mut self, event: &Event<'a>) -> Series<'a> {
        let Some(start) = event.start else {
            return Series::default();
        };
        let component = event.component;
        let (walls, lost_rules) = self.walls(component, start);
        let starts = walls.into_iter().map(|wall| (start.at(wall), event.length));
        let mut all: Vec<_> = starts.collect();
        let (mut added, _) = self.dates(component, "RDATE", event);
        self.marks
            .add_if(added.len() > MAX_DATES, "calendar.recurrence_cut");
        added.truncate(MAX_DATES);
        all.extend(added);
        let (excluded, lost_dates) = self.dates(component, "EXDATE", event);
        let excluded = Points::of(excluded.into_iter().map(|(start, _)| start));
        let occurrences = all.into_iter().filter_map(|(start, length)| {
            Some(Occurrence {
                when: start.when()?,
                start,
                length,
            })
        });
        let mut occurrences: Vec<_> = occurrences.filter(|it| !excluded.cover(it)).collect();
        occurrences.sort_by_key(|it| it.when);
        occurrences.dedup_by_key(|it| it.when);
        Series {
            occurrences,
            is_doubtful: lost_rules || lost_dates,
        }
    }

    /// What the wall clock shows at the start of each by the rules, and whether one was not read.
    fn walls(&mut self, component: &Component, start: Moment<'a>) -> (Vec<NaiveDateTime>, bool) {
        let first = start.stamp.wall();
        let mut walls = vec![first];
        let mut is_lost = false;
        let rules = component.all("RRULE").take(MAX_RULES);
        for property in rules {
            match self.by_rule(property, start) {
                Some(found) => walls.extend(found),
                None => is_lost = true,
            }
        }
        walls.sort_unstable();
        walls.dedup();
        if walls.len() > MAX_TIMES {
            self.marks.add("calendar.recurrence_cut");
            walls.truncate(MAX_TIMES);
        }
        let last = walls.last().copied().unwrap_or(first);
        let mut is_doubtful = false;
        for property in component.all("EXRULE").take(MAX_RULES) {
            match exceptions(property, start, last) {
                Some(exceptions) => walls.retain(|wall| !exceptions.contains(wall)),
                None => is_doubtful = true,
            }
        }
        let has_more = |name| component.all(name).nth(MAX_RULES).is_some();
        is_lost |= has_more("RRULE");
        is_doubtful |= has_more("EXRULE");
        self.marks
            .add_if(is_lost || is_doubtful, "calendar.recurrence_not_read");
        (walls, is_doubtful)
    }

    fn by_rule(&mut self, property: &Property, start: Moment<'a>) -> Option<Vec<NaiveDateTime>> {
        let rule = Rule::parse(&property.value)?;
        let first = start.stamp.wall();
        let max = u16::try_from(MAX_TIMES).ok()?;
        let found = rule.occurrences(first, end_of(&rule, start)?, max)?;
        self.marks.add_if(found.is_cut, "calendar.recurrence_cut");
        let mut walls = found.starts;
        if walls.first() != Some(&first) {
            self.marks.add("calendar.start_outside_rule");
            // The start is the first one that is counted (RFC 5545, 3.3.10).
            let others = rule.count.map(|count| count.saturating_sub(1));
            walls.truncate(others.map_or(MAX_TIMES, |it| it.try_into().unwrap_or(MAX_TIMES)));
        }
        Some(walls)
    }

    /// The moments of a list of dates and how long each takes, and whether one was not read.
    fn dates(
        &mut self,
        component: &Component,
        name: &str,
        event: &Event<'a>,
    ) -> (Vec<(Moment<'a>, Option<Length>)>, bool) {
        let texts = component
            .all(name)
            .flat_map(|property| property.value.split(',').map(move |text| (property, text)));
        let (mut found, mut is_lost) = (Vec::new(), false);
        for (property, text) in texts {
            let read = self.date(property, text, event);
            is_lost |= read.is_none();
            found.extend(read);
        }
        self.marks.add_if(is_lost, "calendar.time_unreadable");
        (found, is_lost)
    }

    /// A date, or a period with an end of its own.
    fn date(
        &self,
        property: &Property,
        text: &str,
        event: &Event<'a>,
    ) -> Option<(Moment<'a>, Option<Length>)> {
        let moment = |text| {
            let moment = Moment {
                stamp: Stamp::within_years(text)?,
                zone: zone_of(property, self.zones),
            };
            Some(moment.within(property, event.start))
        };
        let Some((start, end)) = text.split_once('/') else {
            return Some((moment(text)?, event.length));
        };
        let start = moment(start)?;
        let length = match duration(end) {
            Some(length) => length,
            None => Length::Exact(start.when()?.until(moment(end)?.when()?)?),
        };
        Some((start, Some(length)))
    }

    /// When a series takes place, without what the object says of some occurrences apart.
    pub(super) fn times(&mut self, series: &Series<'a>, singles: &[Event<'a>]) -> Vec<MeetingTime> {
        let replaced = Points::of(singles.iter().filter_map(|it| it.recurrence));
        let onward = singles.iter().filter(|it| it.is_and_later);
        let onward = onward.filter_map(|it| Some((it.recurrence?.when()?, it)));
        let onward: Vec<_> = onward.collect();
        let mut times = Vec::new();
        for occurrence in series.occurrences.iter().filter(|it| !replaced.cover(it)) {
            let before = onward.iter().filter(|(from, _)| *from < occurrence.when);
            let time = match before.max_by_key(|(from, _)| *from) {
                None => occurrence.start.lasting(occurrence.length),
                Some((_, change)) if change.is_cancelled => continue,
                Some((_, change)) => {
                    let changed = shifted(occurrence, change);
                    self.marks
                        .add_if(changed.is_none(), "calendar.range_not_read");
                    changed
                }
            };
            times.extend(time.map(|time| MeetingTime {
                time,
                occurrence: occurrence.when.written(),
            }));
        }
        times
    }
}

/// An occurrence that is moved by as much as an earlier one was, on the wall clock.
fn shifted<'a>(occurrence: &Occurrence<'a>, change: &Event<'a>) -> Option<String> {
    let start = occurrence.start;
    let from = change.recurrence?.on_wall_of(start)?;
    let to = change.start?.on_wall_of(start)?;
    let wall = start.stamp.wall().checked_add_signed(to - from)?;
    start.at(wall).lasting(change.length)
}

/// Where a rule ends, on the wall clock of a series.
fn end_of(rule: &Rule, start: Moment<'_>) -> Option<Option<NaiveDateTime>> {
    Some(match (rule.until, start.zone) {
        (None, _) => None,
        (Some(Until::Utc(time)), Some(zone)) => Some(zone.local(time)?),
        (Some(Until::Local(time) | Until::Utc(time)), _) => Some(time),
    })
}

/// What a rule takes away up to the last occurrence; none if it cannot be told.
fn exceptions(
    property: &Property,
    start: Moment<'_>,
    last: NaiveDateTime,
) -> Option<HashSet<NaiveDateTime>> {
    let rule = Rule::parse(&property.value)?;
    let end = end_of(&rule, start)?.map_or(last, |end| end.min(last));
    let found = rule.occurrences(start.stamp.wall(), Some(end), MAX_EXCEPTIONS)?;
    (!found.is_cut).then(|| found.starts.into_iter().collect())
}
