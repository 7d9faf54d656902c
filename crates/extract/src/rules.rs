//! The rules: which sentences yield candidates, how sure each is, and what is left with a mark.

mod commitment;
mod judge;
mod meeting;
mod whole;

use serde_json::{Value, json};

use self::commitment::promised;
use self::judge::{Asked, is_in_range, is_moved, is_plain_talk, judge, judge_amount};
use self::meeting::met;
use self::whole::{
    author_text, doubts, is_english, reason_to_skip, reference, takes_back, talks_to_a_machine,
};
use crate::amount::{self, Styles};
use crate::clock;
use crate::contact;
use crate::cue::{self, Cue, Meeting, Promise};
use crate::date::{self, Mention, Phrase};
use crate::dates::{Days, Reference};
use crate::mark;
use crate::rule;
use crate::sentence::{Sentence, sentences};
use crate::summary::summary;
use crate::{Candidate, Extraction, MAX_TEXT_BYTES, Message};

const AMOUNT_DUE: &str = "amount_due";
const CONTACT_EMAIL: &str = "contact_email";
const CONTACT_PHONE: &str = "contact_phone";
const DELIVERY_DATE: &str = "requested_delivery_date";
const MEETING_DATE: &str = "meeting_date";
const MEETING_START: &str = "meeting_starts_at";
const PROMISED_DATE: &str = "promised_delivery_date";
const STAKEHOLDER: &str = "requesting_stakeholder";
const SUMMARY: &str = "request_summary";

/// The most candidates of one predicate.
fn most_of(predicate: &str) -> usize {
    match predicate {
        AMOUNT_DUE | DELIVERY_DATE => 16,
        MEETING_DATE | MEETING_START | PROMISED_DATE => 6,
        _ => 4,
    }
}

/// What a doubt about the whole message leaves of a rule's confidence.
const DOUBTFUL: f64 = 0.6;

pub(crate) fn read(message: &Message) -> Extraction {
    let mut reader = Reader::new(message);
    if let Some(mark) = reason_to_skip(message) {
        reader.note(mark);
        return reader.finish();
    }
    let text = author_text(message);
    if text.len() > MAX_TEXT_BYTES {
        reader.note(mark::TEXT_CUT);
    }
    let cut = text.floor_char_boundary(MAX_TEXT_BYTES);
    let sentences = sentences(&text[..cut]);
    if !is_english(&sentences) {
        reader.note(mark::LANGUAGE_NOT_READ);
    }
    reader.doubts = doubts(message, &sentences);
    let mentions: Vec<Vec<Mention>> = sentences
        .iter()
        .map(|it| date::mentions(&it.tokens))
        .collect();
    reader.reference = reference(message, &mentions);
    reader.styles = Styles::of(sentences.iter().map(|it| it.tokens.as_slice()));
    reader.sentences(&sentences, &mentions);
    reader.contacts();
    reader.finish()
}

struct Reader<'a> {
    message: &'a Message,
    doubts: Vec<&'static str>,
    reference: Reference,
    styles: Styles,
    found: Extraction,
}

/// What a sentence asks for and commits to.
#[derive(Clone, Copy)]
struct Cues<'a> {
    requests: &'a [Cue],
    commitments: &'a [Promise],
}

/// What an introducing line ("Please send:", "These amounts are open:") lends to the lines below.
#[derive(Clone, Copy, Debug, Default)]
struct Introduced {
    request: bool,
    payment: bool,
    /// They are the words of somebody else ("Tom wrote:").
    reported: bool,
    is_used: bool,
}

impl<'a> Reader<'a> {
    fn new(message: &'a Message) -> Self {
        Self {
            message,
            doubts: Vec::new(),
            reference: Reference::default(),
            styles: Styles::default(),
            found: Extraction::default(),
        }
    }

    fn sentences(&mut self, sentences: &[Sentence], mentions: &[Vec<Mention>]) {
        let mut introduced = Introduced::default();
        for (sentence, mentions) in sentences.iter().zip(mentions) {
            let is_over = sentence.starts_paragraph && introduced.is_used;
            let is_below = (sentence.is_item || introduced.reported) && !is_over;
            if !is_below {
                introduced = Introduced::default();
            }
            let tokens = &sentence.tokens;
            if talks_to_a_machine(tokens) {
                // Whatever it says is meant to be obeyed.
                self.note(mark::INSTRUCTION_SUSPECTED);
                introduced.is_used = true;
                continue;
            }
            if introduced.reported {
                introduced.is_used = true;
                let is_telling = !mentions.is_empty() || !cue::requests(tokens).is_empty();
                if is_telling || !amount::amounts(tokens, &self.styles).is_empty() {
                    self.note(mark::REPORTED);
                }
                continue;
            }
            // "Sorry, make that Monday" asks for nothing by itself.
            let requests = if takes_back(tokens) {
                Vec::new()
            } else {
                cue::requests(tokens)
            };
            let commitments = cue::commitments(tokens);
            self.request(sentence, &requests, mentions);
            let cues = Cues {
                requests: &requests,
                commitments: &commitments,
            };
            self.dates(sentence, cues, mentions, introduced.request);
            self.amounts(sentence, mentions, introduced.payment);
            introduced.is_used = true;
            if sentence.introduces {
                introduced = Introduced {
                    request: (!requests.is_empty() || cue::introduces_tasks(tokens))
                        && !cue::is_negated(tokens, 0),
                    payment: !amount::payments(tokens).is_empty() && !cue::is_negated(tokens, 0),
                    reported: cue::introduces_words_of_others(tokens),
                    is_used: false,
                };
            }
        }
    }

    fn request(&mut self, sentence: &Sentence, requests: &[Cue], mentions: &[Mention]) {
        let tokens = &sentence.tokens;
        let own: Vec<&Cue> = requests
            .iter()
            .filter(|it| !cue::is_reported(tokens, it.at))
            .filter(|it| !cue::is_unwanted(tokens, it.at))
            .filter(|it| !cue::is_conditional(tokens, it.at))
            .collect();
        if own.is_empty() && requests.iter().any(|it| cue::is_conditional(tokens, it.at)) {
            self.note(mark::CONDITIONAL);
        }
        let (Some(cue), Some(from)) = (own.first(), &self.message.from) else {
            return;
        };
        let words = sentence.words(cue.at);
        self.take(Candidate {
            confidence: cue.confidence,
            rule: rule::REQUEST_AUTHOR,
            ..candidate(STAKEHOLDER, Value::String(from.address.clone()), words)
        });
        // Words that talk to a machine are not handed on.
        let is_handed_on =
            !self.doubts.contains(&mark::INSTRUCTION_SUSPECTED) && !cue::is_negated(tokens, cue.at);
        let found = own
            .iter()
            .find_map(|cue| Some((cue, summary(sentence, cue.at, mentions)?)));
        if let Some((cue, text)) = found.filter(|_| is_handed_on) {
            self.take(Candidate {
                confidence: cue.confidence * 0.9,
                rule: rule::REQUEST_SUMMARY,
                ..candidate(SUMMARY, Value::String(text), sentence.words(cue.at))
            });
        }
    }

    fn dates(
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

    fn amounts(&mut self, sentence: &Sentence, mentions: &[Mention], is_introduced: bool) {
        let tokens = &sentence.tokens;
        let all = amount::amounts(tokens, &self.styles);
        let is_day = |at: usize| mentions.iter().any(|it| (it.start..it.end).contains(&at));
        if amount::has_unread(tokens, &all, is_day) {
            self.note(mark::NOT_EXTRACTED);
        }
        for found in &all {
            if !amount::is_due(tokens, found, &all, is_introduced) {
                if found.currency.is_some() {
                    self.note(mark::NOT_EXTRACTED);
                }
                continue;
            }
            match judge_amount(sentence, found) {
                Ok((decimal, currency)) => {
                    let value = json!({"amount": decimal, "currency": currency});
                    self.take(Candidate {
                        confidence: found.confidence * if is_introduced { 0.9 } else { 1.0 },
                        rule: rule::AMOUNT,
                        marks: found.mark.into_iter().collect(),
                        ..candidate(AMOUNT_DUE, value, sentence.words(found.start))
                    });
                }
                Err(mark) => self.note(mark),
            }
        }
    }

    fn contacts(&mut self) {
        let (found, marks) = contact::contacts(&self.message.text, MAX_TEXT_BYTES);
        for mark in marks {
            self.note(mark);
        }
        for contact in found {
            let predicate = if contact.is_phone {
                CONTACT_PHONE
            } else {
                CONTACT_EMAIL
            };
            let (rule, confidence) = if contact.is_signature {
                (rule::CONTACT_SIGNATURE, 0.8)
            } else {
                (rule::CONTACT_STATED, 0.75)
            };
            self.take(Candidate {
                confidence,
                rule,
                ..candidate(predicate, Value::String(contact.value), contact.words)
            });
        }
    }

    /// Adds the doubts about the message, and keeps the surest of equal candidates.
    fn take(&mut self, mut candidate: Candidate) {
        for doubt in &self.doubts {
            candidate.confidence *= DOUBTFUL;
            candidate.marks.push(doubt);
        }
        candidate.confidence = (candidate.confidence * 100.0).round() / 100.0;
        candidate.valid_from = self.message.sent_at;
        let known = &mut self.found.candidates;
        let of_predicate = known
            .iter()
            .filter(|it| it.predicate == candidate.predicate);
        let is_full = of_predicate.count() >= most_of(candidate.predicate);
        let same = known
            .iter()
            .position(|it| it.predicate == candidate.predicate && it.value == candidate.value);
        match same {
            Some(at) if known[at].confidence < candidate.confidence => known[at] = candidate,
            Some(_) => {}
            None if is_full => self.note(mark::CANDIDATES_CUT),
            None => known.push(candidate),
        }
    }

    fn note(&mut self, mark: &'static str) {
        if !self.found.marks.contains(&mark) {
            self.found.marks.push(mark);
        }
    }

    fn finish(mut self) -> Extraction {
        // Stable: equal predicates stay in the order of the text.
        self.found
            .candidates
            .sort_by_key(|candidate| candidate.predicate);
        self.found
    }
}

/// A candidate that holds from when it was said, to be completed.
fn candidate(predicate: &'static str, value: Value, words: String) -> Candidate {
    Candidate {
        predicate,
        value,
        confidence: 0.0,
        valid_from: None,
        valid_until: None,
        rule: "",
        marks: Vec::new(),
        words,
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

#[cfg(test)]
mod tests;
