//! Amounts that are due, and how to reach the author.

use serde_json::{Value, json};

use super::judge::judge_amount;
use super::{AMOUNT_DUE, CONTACT_EMAIL, CONTACT_PHONE, Reader, candidate};
use crate::amount;
use crate::contact;
use crate::date::Mention;
use crate::mark;
use crate::rule;
use crate::sentence::Sentence;
use crate::{Candidate, MAX_TEXT_BYTES};

impl Reader<'_> {
    pub(super) fn amounts(
        &mut self,
        sentence: &Sentence,
        mentions: &[Mention],
        is_introduced: bool,
    ) {
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

    pub(super) fn contacts(&mut self) {
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
}
