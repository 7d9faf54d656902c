//! The rules: which sentences yield candidates, how sure each is, and what is left with a mark.

mod judge;

use cl_model::time::UnixTime;
use serde_json::{Value, json};
use time::{Date, OffsetDateTime, UtcOffset};

use self::judge::{is_in_range, is_plain_talk, judge, judge_amount};
use crate::amount::{self, Styles};
use crate::cue::{self, Cue};
use crate::date::{self, Mention, Phrase};
use crate::dates::Reference;
use crate::mark;
use crate::sentence::{Sentence, sentences};
use crate::token::{Kind, Token, find};
use crate::{Candidate, Extraction, MAX_CANDIDATES, MAX_TEXT_BYTES, Message, Origin};

const STAKEHOLDER: &str = "requesting_stakeholder";
const DELIVERY_DATE: &str = "requested_delivery_date";
const AMOUNT_DUE: &str = "amount_due";

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
    reader.finish()
}

/// A message of which nothing is taken.
fn reason_to_skip(message: &Message) -> Option<&'static str> {
    let has = |mark: &str| message.marks.iter().any(|it| it == mark);
    let Some(from) = &message.from else {
        return Some(mark::AUTHOR_UNKNOWN);
    };
    if has(mark::AUTOMATIC) {
        return Some(mark::AUTOMATIC);
    }
    if has(mark::BULK) {
        return Some(mark::BULK);
    }
    is_owner(message, &from.address).then_some(mark::AUTHOR_OWNER)
}

fn is_owner(message: &Message, address: &str) -> bool {
    message
        .owner_addresses
        .iter()
        .any(|owner| owner.trim().to_lowercase() == address.trim().to_lowercase())
}

fn author_text(message: &Message) -> String {
    let own = message
        .text
        .iter()
        .filter(|part| part.origin == Origin::Author);
    let texts: Vec<&str> = own.map(|part| part.text.as_str()).collect();
    texts.join("\n\n")
}

/// What puts every candidate of the message in doubt.
fn doubts(message: &Message, sentences: &[Sentence]) -> Vec<&'static str> {
    let mut doubts = Vec::new();
    let is_among = |list: &[crate::Mailbox]| list.iter().any(|it| is_owner(message, &it.address));
    if !message.owner_addresses.is_empty() && !is_among(&message.to) {
        doubts.push(if is_among(&message.cc) {
            mark::OWNER_COPIED
        } else {
            mark::OWNER_NOT_ADDRESSED
        });
    }
    if message.marks.iter().any(|it| it == mark::CHARSET_GUESSED) {
        doubts.push(mark::CHARSET_GUESSED);
    }
    if sentences.iter().any(|it| talks_to_a_machine(&it.tokens)) {
        doubts.push(mark::INSTRUCTION_SUSPECTED);
    }
    doubts
}

fn talks_to_a_machine(tokens: &[Token]) -> bool {
    let overrides = (0..tokens.len()).any(|at| {
        tokens[at].is_one_of(&["ignore", "disregard", "forget", "override"])
            && tokens[at + 1..].iter().take(5).any(|it| {
                it.is_one_of(&[
                    "instructions",
                    "instruction",
                    "prompt",
                    "prompts",
                    "rules",
                    "directives",
                ])
            })
    });
    let addresses: &[&[&str]] = &[
        &["system", "prompt"],
        &["you", "are", "an", "ai"],
        &["ai", "assistant"],
        &["language", "model"],
        &["ai", "agent"],
    ];
    overrides || addresses.iter().any(|it| find(tokens, it, 0).is_some())
}

fn reference(message: &Message, mentions: &[Vec<Mention>]) -> Reference {
    let all = || mentions.iter().flatten();
    Reference {
        sent: message
            .sent_at
            .and_then(|sent| local_day(sent, message.utc_offset_minutes)),
        order: date::shown_order(all()),
        this_weekdays: all()
            .filter_map(|mention| match mention.phrase {
                Phrase::ThisWeekday(weekday) => Some(weekday),
                Phrase::Full(..)
                | Phrase::MonthDay(..)
                | Phrase::Numeric(..)
                | Phrase::DayOfMonth(_)
                | Phrase::Weekday(_)
                | Phrase::NextWeekday(_)
                | Phrase::WeekdayWeek(_)
                | Phrase::InDays(_)
                | Phrase::EndOfMonthAhead(_)
                | Phrase::EndOfMonth(..)
                | Phrase::EndOfYear
                | Phrase::Unclear(_)
                | Phrase::Past => None,
            })
            .collect(),
    }
}

/// The day on the author's calendar; on that of UTC if the author's zone is not known.
fn local_day(sent: UnixTime, offset_minutes: Option<i32>) -> Option<Date> {
    let seconds = sent.milliseconds().div_euclid(1000);
    let utc = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    let offset =
        UtcOffset::from_whole_seconds(offset_minutes.unwrap_or(0).checked_mul(60)?).ok()?;
    utc.checked_to_offset(offset).map(OffsetDateTime::date)
}

/// Whether the text has the small words of English; short texts pass.
fn is_english(sentences: &[Sentence]) -> bool {
    const SMALL: &[&str] = &[
        "the", "and", "to", "of", "is", "you", "we", "for", "please", "in", "on", "it", "are", "i",
        "this", "that", "with", "by", "be", "have", "your", "our",
    ];
    let words = || {
        let tokens = sentences.iter().flat_map(|sentence| &sentence.tokens);
        // Names and codes belong to no language.
        tokens.filter(|token| token.kind == Kind::Word && !token.is_capital)
    };
    let small = words().filter(|it| it.is_one_of(SMALL)).count();
    words().take(12).count() < 12 || small * 12 >= words().count()
}

struct Reader<'a> {
    message: &'a Message,
    doubts: Vec<&'static str>,
    reference: Reference,
    styles: Styles,
    found: Extraction,
}

/// What an introducing line ("Please send:", "These amounts are open:") lends to the lines below.
#[derive(Clone, Copy, Debug, Default)]
struct Introduced {
    request: bool,
    payment: bool,
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
            let is_below = sentence.is_item && !(sentence.starts_paragraph && introduced.is_used);
            if !is_below {
                introduced = Introduced::default();
            }
            let tokens = &sentence.tokens;
            let requests = cue::requests(tokens);
            self.request(sentence, &requests);
            self.dates(sentence, &requests, mentions, introduced.request);
            self.amounts(sentence, introduced.payment);
            introduced.is_used = true;
            if sentence.introduces {
                introduced = Introduced {
                    request: !requests.is_empty() && !cue::is_negated(tokens, 0),
                    payment: !amount::payments(tokens).is_empty() && !cue::is_negated(tokens, 0),
                    is_used: false,
                };
            }
        }
    }

    fn request(&mut self, sentence: &Sentence, requests: &[Cue]) {
        let tokens = &sentence.tokens;
        let own = requests.iter().find(|it| !cue::is_reported(tokens, it.at));
        let (Some(cue), Some(from)) = (own, &self.message.from) else {
            return;
        };
        self.take(Candidate {
            predicate: STAKEHOLDER,
            value: Value::String(from.address.clone()),
            confidence: cue.confidence,
            valid_from: None,
            valid_until: None,
            rule: "request.author",
            marks: Vec::new(),
        });
    }

    fn dates(
        &mut self,
        sentence: &Sentence,
        requests: &[Cue],
        mentions: &[Mention],
        is_introduced: bool,
    ) {
        for (at, mention) in mentions.iter().enumerate() {
            if is_in_range(&sentence.tokens, mentions, at) {
                self.note(mark::DATE_RANGE);
                continue;
            }
            match judge(sentence, requests, mention, is_introduced) {
                Ok(factor) => self.date(mention, factor),
                Err(mark::NOT_EXTRACTED) if is_plain_talk(sentence, requests, mention) => {}
                Err(mark) => self.note(mark),
            }
        }
    }

    fn date(&mut self, mention: &Mention, factor: f64) {
        let days = match self.reference.resolve(mention) {
            Ok(days) => days,
            Err(mark) => return self.note(mark),
        };
        let is_relative = !matches!(
            mention.phrase,
            Phrase::Full(..) | Phrase::Numeric(_, _, Some(_))
        );
        let is_zone_unknown = is_relative && self.message.utc_offset_minutes.is_none();
        for day in days.days {
            let (year, month, day) = (day.year(), u8::from(day.month()), day.day());
            let mut confidence = days.confidence * factor;
            let mut marks: Vec<&'static str> = days.mark.into_iter().collect();
            if is_zone_unknown {
                marks.push(mark::ZONE_UNKNOWN);
                confidence *= DOUBTFUL;
            }
            self.take(Candidate {
                predicate: DELIVERY_DATE,
                value: Value::String(format!("{year:04}-{month:02}-{day:02}")),
                confidence,
                valid_from: None,
                valid_until: None,
                rule: rule_of(&mention.phrase),
                marks,
            });
        }
    }

    fn amounts(&mut self, sentence: &Sentence, is_introduced: bool) {
        let tokens = &sentence.tokens;
        let all = amount::amounts(tokens, &self.styles);
        for found in &all {
            if !amount::is_due(tokens, found, &all, is_introduced) {
                if found.currency.is_some() {
                    self.note(mark::NOT_EXTRACTED);
                }
                continue;
            }
            match judge_amount(sentence, found) {
                Ok((decimal, currency)) => self.take(Candidate {
                    predicate: AMOUNT_DUE,
                    value: json!({"amount": decimal, "currency": currency}),
                    confidence: found.confidence * if is_introduced { 0.9 } else { 1.0 },
                    valid_from: None,
                    valid_until: None,
                    rule: "amount.payment",
                    marks: found.mark.into_iter().collect(),
                }),
                Err(mark) => self.note(mark),
            }
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
        let same = known
            .iter()
            .position(|it| it.predicate == candidate.predicate && it.value == candidate.value);
        match same {
            Some(at) if known[at].confidence < candidate.confidence => known[at] = candidate,
            Some(_) => {}
            None if known.len() >= MAX_CANDIDATES => self.note(mark::CANDIDATES_CUT),
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

fn rule_of(phrase: &Phrase) -> &'static str {
    match phrase {
        Phrase::Full(..) | Phrase::MonthDay(..) => "date.explicit",
        Phrase::Numeric(..) => "date.numeric",
        Phrase::DayOfMonth(_) => "date.day_of_month",
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
