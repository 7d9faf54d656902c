//! The rules: which sentences yield candidates, how sure each is, and what is left with a mark.

use cl_model::time::UnixTime;
use serde_json::{Value, json};
use time::{Date, OffsetDateTime, UtcOffset};

use crate::amount::{self, Amount};
use crate::cue::{self, Cue, Tie};
use crate::date::{self, Mention, Phrase};
use crate::dates::Reference;
use crate::mark;
use crate::number::{self, Decimal};
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
    reader.style = decimal_style(&sentences);
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

/// The decimal sign of the message's numbers, if they agree on one.
fn decimal_style(sentences: &[Sentence]) -> Option<Decimal> {
    let mut shown = sentences
        .iter()
        .flat_map(|sentence| &sentence.tokens)
        .filter(|token| token.kind == Kind::Number)
        .filter_map(|token| number::shown_style(&token.text));
    let first = shown.next()?;
    // A writer who quotes both styles shows none, except that both separators in one number do.
    shown.all(|style| style == first).then_some(first)
}

/// Whether the text has the small words of English; short texts pass.
fn is_english(sentences: &[Sentence]) -> bool {
    const SMALL: &[&str] = &[
        "the", "and", "to", "of", "is", "you", "we", "for", "please", "in", "on", "it", "are", "i",
        "this", "that", "with", "by", "be", "have", "your", "our",
    ];
    let words = || {
        let tokens = sentences.iter().flat_map(|sentence| &sentence.tokens);
        tokens.filter(|token| token.kind == Kind::Word)
    };
    let small = words().filter(|it| it.is_one_of(SMALL)).count();
    words().take(12).count() < 12 || small * 12 >= words().count()
}

struct Reader<'a> {
    message: &'a Message,
    doubts: Vec<&'static str>,
    reference: Reference,
    style: Option<Decimal>,
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
            style: None,
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
        let all = amount::amounts(tokens, self.style);
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

/// Whether a date is one end of a range, or one of several choices.
fn is_in_range(tokens: &[Token], mentions: &[Mention], at: usize) -> bool {
    let joins = |token: &Token| {
        token.is_one_of(&["or", "to", "and", "until", "through"])
            || token.is_sign("-")
            || token.is_sign("–")
    };
    let mention = &mentions[at];
    let meets_next = mentions
        .get(at + 1)
        .is_some_and(|next| next.start == mention.end + 1 && joins(&tokens[mention.end]));
    let meets_last = at.checked_sub(1).is_some_and(|last| {
        mentions[last].end + 1 == mention.start && joins(&tokens[mentions[last].end])
    });
    let begins = tokens[mention.start.saturating_sub(6)..mention.start]
        .iter()
        .any(|it| it.is_word("between"));
    let is_choice = mention.start >= 2
        && tokens[mention.start - 1].is_one_of(&["or"])
        && tokens[mention.start - 2].kind == Kind::Number;
    meets_next || meets_last || begins || is_choice
}

/// Whether the sentence asks for something by that date: how far that lowers the confidence, or
/// the mark that says why not.
fn judge(
    sentence: &Sentence,
    requests: &[Cue],
    mention: &Mention,
    is_introduced: bool,
) -> Result<f64, &'static str> {
    let tokens = &sentence.tokens;
    let tie = cue::tie(
        tokens,
        mention.start,
        mention.end,
        mention.is_end,
        mention.is_bare,
    );
    if tie == Tie::Other {
        return Err(mark::NOT_EXTRACTED);
    }
    let governor = governor(tokens, requests, mention);
    if governor.is_none() && !(is_introduced && tie == Tie::By) {
        let is_asked = sentence.is_question && tie == Tie::By;
        return Err(if is_asked {
            mark::QUESTIONED
        } else {
            mark::NOT_EXTRACTED
        });
    }
    object(sentence, requests, mention, governor)?;
    let from = governor.filter(|at| *at < mention.start).unwrap_or(0);
    let is_loose = matches!(tie, Tie::On | Tie::Bare);
    if is_loose && cue::is_about_meeting(tokens, from, mention.start) {
        return Err(mark::NOT_EXTRACTED);
    }
    let is_counted = matches!(mention.phrase, Phrase::InDays(_));
    let has_other_start = tokens
        .get(mention.end)
        .is_some_and(|it| it.is_one_of(&["of", "after", "from"]));
    if is_counted && has_other_start {
        return Err(mark::DATE_VAGUE);
    }
    match tie {
        Tie::By => Ok(if governor.is_some() { 1.0 } else { 0.9 }),
        Tie::On => Ok(0.9),
        Tie::Bare if cue::stands_alone(tokens, mention.end) => Ok(0.85),
        Tie::Before => Err(mark::DATE_EXCLUSIVE),
        Tie::Bare | Tie::Other => Err(mark::NOT_EXTRACTED),
    }
}

/// The cue that the date belongs to: the last one before it, else the first one behind it.
fn governor(tokens: &[Token], requests: &[Cue], mention: &Mention) -> Option<usize> {
    let mut cues: Vec<usize> = requests.iter().map(|it| it.at).collect();
    cues.extend(cue::deadlines(tokens));
    let before = cues.iter().copied().filter(|at| *at < mention.start).max();
    before.or_else(|| cues.iter().copied().filter(|at| *at >= mention.end).min())
}

/// Why a date beside a request is still not what is asked for.
fn object(
    sentence: &Sentence,
    requests: &[Cue],
    mention: &Mention,
    governor: Option<usize>,
) -> Result<(), &'static str> {
    let tokens = &sentence.tokens;
    let at = mention.start;
    let cue = governor.unwrap_or(at);
    if cue::is_reported(tokens, cue.min(at)) {
        return Err(mark::REPORTED);
    }
    if cue::is_negated(tokens, at) || cue::is_negated(tokens, cue) {
        return Err(mark::NEGATED);
    }
    if cue::is_asked_about(tokens, at) || (sentence.is_question && requests.is_empty()) {
        return Err(mark::QUESTIONED);
    }
    if cue::is_conditional(tokens, at) {
        return Err(mark::CONDITIONAL);
    }
    let from = if cue < at { cue + 1 } else { 0 };
    if cue::promises(tokens, from, at) {
        return Err(mark::NOT_EXTRACTED);
    }
    if cue::tells_past(tokens, from, at) {
        return Err(mark::DATE_PAST);
    }
    Ok(())
}

fn judge_amount(
    sentence: &Sentence,
    found: &Amount,
) -> Result<(String, &'static str), &'static str> {
    let tokens = &sentence.tokens;
    let at = found.start;
    if let Some(objection) = amount::objection(tokens, found) {
        return Err(objection);
    }
    if cue::is_reported(tokens, at) {
        return Err(mark::REPORTED);
    }
    if cue::is_negated(tokens, at) {
        return Err(mark::NEGATED);
    }
    if cue::is_conditional(tokens, at) {
        return Err(mark::CONDITIONAL);
    }
    if cue::is_asked_about(tokens, at) || (sentence.is_question && cue::requests(tokens).is_empty())
    {
        return Err(mark::QUESTIONED);
    }
    let decimal = found.decimal.clone()?;
    found
        .currency
        .map(|currency| (decimal, currency))
        .ok_or(mark::CURRENCY_UNKNOWN)
}
