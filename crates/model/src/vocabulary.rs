//! The published predicates: what each means, what its values look like, how a fact reads.
//!
//! `schemas/predicates.json` is the one list. Extraction produces these predicates, the vault
//! labels claims by it before it indexes them, the semantic proxy writes the text of a context item
//! from it, so that no sentence of a source leaves the vault (spec 8.1, 11.3).

use std::collections::HashSet;

use serde_json::Value;

use crate::json::read::{Expected, FromJson as _, Mismatch, choice, constant, object};
use crate::json::{self, Limits};
use crate::list::List;
use crate::part::Label;
use crate::refusal::{Code, Refusal};
use crate::scalar::{Predicate, Text};
use crate::time::{CalendarDate, UnixTime};

/// The published list.
const PUBLISHED: &str = include_str!("../../../schemas/predicates.json");

/// The place of the value in a template.
pub const VALUE_PLACE: &str = "{value}";

/// The longest list that is read.
const MAX_BYTES: usize = 1024 * 1024;

constant! {
    /// The version of the list's form.
    pub struct PredicatesVersion = 1;
}

choice! {
    /// What the values of a predicate look like.
    pub enum Datatype {
        /// A string of 1 to 2,000 characters.
        Text = "text",
        /// A day: `2026-08-14`.
        Date = "date",
        /// A moment in UTC, to the second: `2026-08-14T09:30:00Z`.
        Instant = "instant",
        /// An amount in a currency: `{"amount":"1200.50","currency":"EUR"}`; the amount is a
        /// decimal of up to 15 digits before the point and 4 behind it, without an exponent.
        Money = "money",
        /// A person or organisation, by a name or an address: a string of 1 to 320 characters.
        Person = "person",
        /// A JSON number.
        Number = "number",
        /// `true` or `false`.
        Boolean = "boolean",
    }
}

impl Datatype {
    /// Whether `value` is of this type.
    pub fn admits(self, value: &Value) -> bool {
        match self {
            Self::Text => is_string_of(value, 2000),
            Self::Date => value
                .as_str()
                .is_some_and(|text| CalendarDate::parse(text).is_some()),
            Self::Instant => value.as_str().is_some_and(is_instant),
            Self::Money => Money::read(value).is_some(),
            Self::Person => is_string_of(value, 320),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
        }
    }
}

/// Whether a text is a moment in the one form of the vocabulary.
fn is_instant(text: &str) -> bool {
    text.len() == "2026-08-14T09:30:00Z".len()
        && text.ends_with('Z')
        && UnixTime::parse(text).is_some()
}

fn is_string_of(value: &Value, max_chars: usize) -> bool {
    value
        .as_str()
        .is_some_and(|text| !text.is_empty() && text.chars().count() <= max_chars)
}

/// An amount in a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Money {
    /// The amount in ten-thousandths, so that it is exact.
    pub ten_thousandths: i128,
    /// The currency, three upper-case letters (ISO 4217).
    pub currency: String,
}

impl Money {
    /// Reads the value of a claim.
    pub fn read(value: &Value) -> Option<Self> {
        let members = value.as_object().filter(|members| members.len() == 2)?;
        let currency = members.get("currency")?.as_str()?;
        let is_code = currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_uppercase());
        Some(Self {
            ten_thousandths: ten_thousandths(members.get("amount")?.as_str()?)?,
            currency: is_code.then(|| currency.to_owned())?,
        })
    }
}

/// A decimal such as `-12.5`, in ten-thousandths.
fn ten_thousandths(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = (1..=15).contains(&whole.len())
        && (1..=4).contains(&fraction.len())
        && is_digits(whole)
        && is_digits(fraction)
        && (whole.len() == 1 || !whole.starts_with('0'));
    let magnitude: i128 = format!("{whole}{fraction:0<4}").parse().ok()?;
    let signed = if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    };
    is_plain.then_some(signed)
}

object! {
    /// One published predicate.
    pub struct PublishedPredicate {
        /// The predicate.
        predicate: Predicate,
        /// What its values look like.
        datatype: Datatype,
        /// How private its values are unless a policy says otherwise.
        label: Label,
        /// What it means.
        summary: Text<1, 240>,
        /// A sentence with `{value}` once, in place of the value.
        template: Text<1, 240>,
    }
    check = PublishedPredicate::has_one_place;
}

impl PublishedPredicate {
    fn has_one_place(&self) -> Result<(), Mismatch> {
        if self.template.as_str().matches(VALUE_PLACE).count() != 1 {
            return Err(Expected::Rule("expected a template with one place for the value").into());
        }
        Ok(())
    }
}

object! {
    /// The list as a document.
    pub struct VocabularyDocument {
        /// The version of its form.
        predicates_version: PredicatesVersion,
        /// The predicates, in order of their names.
        predicates: List<PublishedPredicate, 1, 4096>,
    }
    check = VocabularyDocument::names_each_once;
}

impl VocabularyDocument {
    fn names_each_once(&self) -> Result<(), Mismatch> {
        let names: HashSet<_> = self.predicates.iter().map(|it| &it.predicate).collect();
        if names.len() < self.predicates.len() {
            return Err(Expected::Distinct.into());
        }
        Ok(())
    }
}

/// The predicates that this deployment knows.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    document: VocabularyDocument,
}

impl Vocabulary {
    /// The published list.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidVocabulary`] if the list in this build departs from its form.
    pub fn published() -> Result<Self, Refusal> {
        Self::parse(PUBLISHED.as_bytes())
    }

    /// Reads a list.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidVocabulary`] if it departs from its form; the codes of strict JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(bytes, Limits::network(MAX_BYTES))?;
        VocabularyDocument::from_json(&value)
            .map(|document| Self { document })
            .map_err(|mismatch| mismatch.refuse(Code::InvalidVocabulary))
    }

    /// What is known about a predicate.
    pub fn find(&self, predicate: &Predicate) -> Option<&PublishedPredicate> {
        self.iter().find(|it| it.predicate == *predicate)
    }

    /// All of them, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &PublishedPredicate> {
        self.document.predicates.iter()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_published_list_is_in_order() {
        let vocabulary = Vocabulary::published().expect("the list of this build");
        let names: Vec<_> = vocabulary.iter().map(|it| it.predicate.as_str()).collect();
        assert!(names.is_sorted());
        let date = Predicate::new("requested_delivery_date").expect("a predicate");
        let found = vocabulary.find(&date).expect("published");
        assert_eq!(found.datatype, Datatype::Date);
    }

    #[test]
    fn refuses_what_departs_from_its_form() {
        let entry = |predicate: &str, template: &str| {
            json!({"predicate": predicate, "datatype": "text", "label": "private",
                   "summary": "s", "template": template})
        };
        let read = |entries: Vec<Value>| {
            let list = json!({"predicates_version": 1, "predicates": entries});
            Vocabulary::parse(list.to_string().as_bytes()).map_err(|refusal| refusal.code())
        };
        assert!(read(vec![entry("a", "It is {value}.")]).is_ok());
        for entries in [
            vec![],
            vec![entry("a", "No place.")],
            vec![entry("a", "{value} {value}")],
            vec![entry("a", "{value}"), entry("a", "{value}")],
            vec![json!({"predicate": "a"})],
        ] {
            assert_eq!(read(entries).err(), Some(Code::InvalidVocabulary));
        }
        let twice = br#"{"predicates_version":1,"predicates_version":1}"#;
        let refused = Vocabulary::parse(twice).err().map(|it| it.code());
        assert_eq!(refused, Some(Code::DuplicateMember));
    }

    #[test]
    fn datatypes_admit_their_values_only() {
        let rows = [
            (Datatype::Text, json!("x"), true),
            (Datatype::Text, json!(""), false),
            (Datatype::Date, json!("2024-02-29"), true),
            (Datatype::Date, json!("2023-02-29"), false),
            (Datatype::Date, json!("2026-8-1"), false),
            (Datatype::Instant, json!("2024-02-29T09:30:00Z"), true),
            (Datatype::Instant, json!("2023-02-29T09:30:00Z"), false),
            (Datatype::Instant, json!("2024-02-29T09:30:00+00:00"), false),
            (Datatype::Instant, json!("2024-02-29T09:30:00.0Z"), false),
            (Datatype::Instant, json!("2024-02-29T09:30Z"), false),
            (Datatype::Instant, json!("2024-02-29"), false),
            (Datatype::Person, json!("a@example.org"), true),
            (Datatype::Person, json!("p".repeat(321)), false),
            (Datatype::Number, json!(1.5), true),
            (Datatype::Number, json!("1.5"), false),
            (Datatype::Boolean, json!(true), true),
            (Datatype::Boolean, json!(null), false),
        ];
        for (datatype, value, admitted) in rows {
            assert_eq!(datatype.admits(&value), admitted, "{datatype:?} {value}");
        }
    }

    #[test]
    fn money_is_exact_and_strict() {
        let money = |amount: &str, currency: &str| {
            Money::read(&json!({"amount": amount, "currency": currency}))
                .map(|money| money.ten_thousandths)
        };
        assert_eq!(money("1200.50", "EUR"), Some(12_005_000));
        assert_eq!(money("-0.0001", "EUR"), Some(-1));
        assert_eq!(money("7", "JPY"), Some(70_000));
        for amount in [
            "", ".", "1.", ".5", "01", "1e3", "+1", "1.00001", "1,2", "--1", "1 ",
        ] {
            assert_eq!(money(amount, "EUR"), None, "{amount}");
        }
        assert_eq!(money(&"9".repeat(16), "EUR"), None);
        assert_eq!(money("1", "eur"), None);
        assert_eq!(money("1", "EURO"), None);
        let extra = json!({"amount": "1", "currency": "EUR", "x": 1});
        assert_eq!(Money::read(&extra), None);
    }
}
