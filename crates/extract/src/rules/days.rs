//! The days of a sentence: asked for, promised, or to meet on.

use serde_json::Value;

use super::commitment::promised;
use super::judge::{Asked, is_in_range, is_moved, is_open_ended, is_plain_talk, judge};
use super::meeting::met;
use super::{
    Cues, DELIVERY_DATE, DOUBTFUL, MEETING_DATE, MEETING_START, PROMISED_DATE, Reader, candidate,
};
use crate::Candidate;
use crate::clock;
use crate::cue::{self, Meeting};
use crate::date::{Mention, Phrase};
use crate::dates::Days;
use crate::mark;
use crate::rule;
use crate::sentence::Sentence;

impl Reader<'_> {
    pub(super) fn dates(
        &mut self,
        sentence: &Sentence,
        cues: Cues<'_>,
        mentions: &[Mention],
        is_introduced: bool,
    ) {
        let requests = cues.requests;
        if !requests.is_empty() && cue::has_unread_deadline(&sentence.tokens, mentions) {
            self.note(mark::NOT_EXTRACTED);
        }
        for (at, mention) in mentions.iter().enumerate() {
            if is_in_range(&sentence.tokens, mentions, at) {
                self.note(mark::DATE_RANGE);
                continue;
            }
            if is_open_ended(&sentence.tokens, mention) {
                self.note(mark::DATE_VAGUE);
                continue;
            }
            if is_moved(&sentence.tokens, mentions, at) {
                self.note(mark::CORRECTED);
                continue;
            }
            match met(sentence, mention) {
                Some(Ok(meeting)) => {
                    self.meeting(sentence, mention, meeting);
                    continue;
                }
                Some(Err(mark)) => {
                    self.note(mark);
                    continue;
                }
                None => {}
            }
            match promised(sentence, cues, mention) {
                Some(Ok(factor)) => {
                    let asked = Asked { factor, mark: None };
                    self.date(PROMISED_DATE, sentence, mention, asked);
                    continue;
                }
                Some(Err(mark)) => {
                    self.note(mark);
                    continue;
                }
                None => {}
            }
            match judge(sentence, requests, mention, is_introduced) {
                Ok(asked) => {
                    self.date(DELIVERY_DATE, sentence, mention, asked);
                }
                Err(mark::NOT_EXTRACTED) if is_plain_talk(sentence, requests, mention) => {}
                Err(mark) => self.note(mark),
            }
        }
    }

    /// Takes the days that a mention may mean, and answers with them.
    fn date(
        &mut self,
        predicate: &'static str,
        sentence: &Sentence,
        mention: &Mention,
        asked: Asked,
    ) -> Option<Days> {
        let days = match self.reference.resolve(mention) {
            Ok(days) => days,
            Err(mark) => {
                self.note(mark);
                return None;
            }
        };
        let is_relative = !matches!(
            mention.phrase,
            Phrase::Full(..) | Phrase::Numeric(_, _, Some(_))
        );
        let is_zone_unknown = is_relative && self.message.utc_offset_minutes.is_none();
        let is_date_doubtful = |mark: &&'static str| self.message.marks.iter().any(|it| it == mark);
        let date_doubts = [mark::FAR_FROM_RECEIVED, mark::DATE_REPEATED];
        let date_doubts: Vec<&'static str> = date_doubts
            .into_iter()
            .filter(|it| is_relative && is_date_doubtful(it))
            .collect();
        for day in &days.days {
            let (year, month, day) = (day.year(), u8::from(day.month()), day.day());
            let mut confidence = days.confidence * asked.factor;
            let mut marks: Vec<&'static str> = days.mark.into_iter().chain(asked.mark).collect();
            if is_zone_unknown {
                marks.push(mark::ZONE_UNKNOWN);
                confidence *= DOUBTFUL;
            }
            for doubt in &date_doubts {
                marks.push(doubt);
                confidence *= DOUBTFUL;
            }
            let value = Value::String(format!("{year:04}-{month:02}-{day:02}"));
            self.take(Candidate {
                confidence,
                rule: rule_of(&mention.phrase),
                marks,
                ..candidate(predicate, value, sentence.words(mention.start))
            });
        }
        Some(days)
    }

    /// The day of a meeting, and its start if the text says when.
    fn meeting(&mut self, sentence: &Sentence, mention: &Mention, meeting: Meeting) {
        let asked = Asked {
            factor: meeting.confidence,
            mark: None,
        };
        let Some(days) = self.date(MEETING_DATE, sentence, mention, asked) else {
            return;
        };
        let found = match clock::beside(&sentence.tokens, mention.start, mention.end) {
            Ok(Some(clock)) => clock,
            Ok(None) => return,
            Err(mark) => return self.note(mark),
        };
        let [day] = days.days.as_slice() else {
            return;
        };
        let (sent, offset) = (self.reference.sent, self.message.utc_offset_minutes);
        match found.on(*day, sent, offset) {
            Ok(instant) => {
                let doubt = if found.mark.is_some() { 0.75 } else { 1.0 };
                self.take(Candidate {
                    confidence: days.confidence * meeting.confidence * doubt,
                    rule: rule::TIME_OF_DAY,
                    marks: days.mark.into_iter().chain(found.mark).collect(),
                    ..candidate(
                        MEETING_START,
                        Value::String(instant),
                        sentence.words(mention.start),
                    )
                });
            }
            Err(mark) => self.note(mark),
        }
    }
}

fn rule_of(phrase: &Phrase) -> &'static str {
    match phrase {
        Phrase::Full(..) | Phrase::MonthDay(..) => "date.explicit",
        Phrase::Numeric(..) => "date.numeric",
        Phrase::DayOfMonth(_) | Phrase::DayOfMonthAhead(..) => "date.day_of_month",
        Phrase::Weekday(_)
        | Phrase::ThisWeekday(_)
        | Phrase::NextWeekday(_)
        | Phrase::WeekdayWeek(_) => "date.weekday",
        Phrase::InDays(_) => "date.relative",
        Phrase::EndOfMonthAhead(_) | Phrase::EndOfMonth(..) | Phrase::EndOfYear => {
            "date.period_end"
        }
        Phrase::Unclear(_) | Phrase::Past => "date.none",
    }
}
