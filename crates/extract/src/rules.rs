//! The rules: which sentences yield candidates, how sure each is, and what is left with a mark.

mod commitment;
mod days;
mod judge;
mod meeting;
mod values;
mod whole;

use serde_json::Value;

use self::whole::{
    author_text, doubts, is_english, reason_to_skip, reference, takes_back, talks_to_a_machine,
};
use crate::amount::{self, Styles};
use crate::cue::{self, Cue, Promise};
use crate::date::{self, Mention};
use crate::dates::Reference;
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

#[cfg(test)]
mod tests;
