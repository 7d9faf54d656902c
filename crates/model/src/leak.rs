//! How to notice a denied value in a text without knowing the value (spec 11.3, 11.5).
//!
//! The vault makes keyed [`Fingerprint`]s of values that share a source with what it hands out and
//! were not granted; the semantic proxy scans every text that would leave for them. Both sides
//! compare **comparable forms**: Unicode compatibility form, lower case, letters and digits only, so
//! that spaces, punctuation, zero-width characters, letter case and full-width digits hide nothing.
//! A day and an amount have several forms, since texts write them in several ways.
//!
//! A value with a comparable form of fewer than [`MIN_LENGTH`] characters would be found everywhere
//! and has no fingerprint; of one longer than [`MAX_LENGTH`], each whole block has its own. Other words for the same thing, translations and encodings are not noticed.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use crate::key::{KEY_BYTES, MacKey, Seed};
use crate::refusal::Refusal;
use crate::time::CalendarDate;
use crate::vocabulary::Money;

/// The fewest comparable characters that have a fingerprint.
pub const MIN_LENGTH: usize = 4;

/// The length of the blocks of a long value.
pub const BLOCK_LENGTH: usize = 24;

/// The longest comparable form of a fingerprint.
pub const MAX_LENGTH: usize = 2 * BLOCK_LENGTH;

/// The most fingerprints that one guard holds. What leaves beside more is not guarded, so it stays.
pub const MAX_FINGERPRINTS: usize = 65_536;

/// The bytes of a fingerprint's tag.
pub const TAG_BYTES: usize = 16;

/// The Mersenne prime of the rolling hash.
const MODULUS: u64 = (1 << 61) - 1;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// One denied value under the key of its guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    /// The length of the comparable form, in characters.
    pub length: usize,
    /// Its rolling hash.
    pub rolling: u64,
    /// The start of its HMAC-SHA256.
    pub tag: [u8; TAG_BYTES],
}

/// Makes fingerprints.
#[derive(Debug)]
pub struct LeakKey {
    mac: MacKey,
    base: u64,
}

impl LeakKey {
    /// The key of 32 bytes, made fresh for each exchange.
    ///
    /// # Errors
    ///
    /// [`crate::refusal::Code::InvalidKeyMaterial`] for another length.
    pub fn new(bytes: &[u8]) -> Result<Self, Refusal> {
        let mac = MacKey::from_seed(&Seed::new(bytes)?);
        let derived: [u8; KEY_BYTES] = mac.tag(b"context-layer/leak-base/v1");
        let start = derived.first_chunk().copied().unwrap_or_default();
        Ok(Self {
            base: u64::from_be_bytes(start) % (MODULUS - 256) + 256,
            mac,
        })
    }

    /// The fingerprints of the `denied` values without those of the `granted` ones, sorted.
    ///
    /// What a granted day or amount writes anyway is not denied either: `2026` as an amount would
    /// be found in every day of that year.
    pub fn fingerprints<'a>(
        &self,
        denied: impl IntoIterator<Item = &'a Value>,
        granted: impl IntoIterator<Item = &'a Value>,
    ) -> Vec<Fingerprint> {
        let mut shown = HashSet::new();
        for value in granted {
            let is_written = is_day(value) || Money::read(value).is_some();
            for form in comparable_forms(value) {
                if is_written {
                    let lengths = MIN_LENGTH..form.len();
                    shown.extend(
                        lengths
                            .flat_map(|it| form.windows(it))
                            .map(<[char]>::to_vec),
                    );
                }
                shown.insert(form);
            }
        }
        let mut prints: Vec<_> = denied
            .into_iter()
            .flat_map(comparable_forms)
            .filter(|form| !shown.contains(form))
            .map(|form| self.fingerprint(&form))
            .collect();
        prints.sort_unstable();
        prints.dedup();
        prints
    }

    fn fingerprint(&self, form: &[char]) -> Fingerprint {
        let text: String = form.iter().collect();
        let tag = self.mac.tag(text.as_bytes());
        Fingerprint {
            length: form.len(),
            rolling: form.iter().fold(0, |hash, next| self.push(hash, *next)),
            tag: tag.first_chunk().copied().unwrap_or_default(),
        }
    }

    /// Every run of `length` characters with its rolling hash.
    fn windows<'a>(
        &self,
        text: &'a [char],
        length: usize,
    ) -> impl Iterator<Item = (&'a [char], u64)> {
        let highest = (1..length).fold(1, |power, _| multiply(power, self.base));
        let mut hash = 0;
        text.windows(length.max(1))
            .enumerate()
            .map(move |(index, window)| {
                hash = match (index, window.last()) {
                    (1.., Some(last)) => {
                        let left = text.get(index - 1).map_or(0, |left| u64::from(*left));
                        let rest = (hash + MODULUS - multiply(left, highest)) % MODULUS;
                        self.push(rest, *last)
                    }
                    _ => window.iter().fold(0, |hash, next| self.push(hash, *next)),
                };
                (window, hash)
            })
    }

    fn push(&self, hash: u64, next: char) -> u64 {
        (multiply(hash, self.base) + u64::from(next)) % MODULUS
    }
}

/// Notices denied values by their fingerprints.
#[derive(Debug)]
pub struct LeakGuard {
    key: LeakKey,
    prints: HashSet<Fingerprint>,
    by_length: BTreeMap<usize, HashSet<u64>>,
}

impl LeakGuard {
    /// Notices the values of `prints`, which were made under `key`.
    pub fn new(key: LeakKey, prints: impl IntoIterator<Item = Fingerprint>) -> Self {
        let prints: HashSet<_> = prints.into_iter().collect();
        let mut by_length = BTreeMap::<_, HashSet<_>>::new();
        for print in &prints {
            by_length
                .entry(print.length)
                .or_default()
                .insert(print.rolling);
        }
        Self {
            key,
            prints,
            by_length,
        }
    }

    /// Whether `text` holds a value of one of the fingerprints.
    pub fn finds(&self, text: &str) -> bool {
        let text = comparable(text);
        self.by_length.iter().any(|(length, rolling)| {
            let mut windows = self.key.windows(&text, *length);
            windows.any(|(window, hash)| {
                rolling.contains(&hash) && self.prints.contains(&self.key.fingerprint(window))
            })
        })
    }
}

/// The most fingerprints that a value has.
pub fn fingerprint_count(value: &Value) -> usize {
    comparable_forms(value).len()
}

fn multiply(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right) % u128::from(MODULUS);
    u64::try_from(product).unwrap_or_default()
}

/// The comparable form of a text.
fn comparable(text: &str) -> Vec<char> {
    text.nfkc()
        .flat_map(char::to_lowercase)
        .filter(|character| character.is_alphanumeric())
        .collect()
}

/// The comparable forms of a value that are long enough, in blocks where they are long.
fn comparable_forms(value: &Value) -> Vec<Vec<char>> {
    let mut texts = Vec::new();
    collect_texts(value, &mut texts);
    texts
        .iter()
        .map(|text| comparable(text))
        .filter(|form| form.len() >= MIN_LENGTH)
        .flat_map(|form| {
            if form.len() <= MAX_LENGTH {
                return vec![form];
            }
            let blocks = form.chunks_exact(BLOCK_LENGTH);
            blocks.map(<[char]>::to_vec).collect()
        })
        .collect()
}

/// Every way in which a text may write the value.
fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    if let Some(money) = Money::read(value) {
        texts.extend(amount_texts(&money));
        return;
    }
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => texts.push(number.to_string()),
        Value::String(text) => {
            texts.push(text.clone());
            if let Some(date) = CalendarDate::parse(text) {
                texts.extend(date_texts(date));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|item| collect_texts(item, texts)),
    }
}

fn is_day(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| CalendarDate::parse(text).is_some())
}

fn date_texts(date: CalendarDate) -> Vec<String> {
    let (year, month, day) = (date.year(), date.month(), date.day());
    let mut texts = vec![
        format!("{day:02}{month:02}{year:04}"),
        format!("{month:02}{day:02}{year:04}"),
    ];
    if let Some(name) = MONTHS.get(usize::from(month) - 1) {
        texts.push(format!("{day}{name}"));
        texts.push(format!("{name}{day}"));
        let short = name.get(..3).unwrap_or(name);
        texts.push(format!("{day}{short}{year}"));
        texts.push(format!("{short}{day}{year}"));
    }
    texts
}

/// An amount with and without its fraction; the currency is no secret.
fn amount_texts(money: &Money) -> Vec<String> {
    let magnitude = money.ten_thousandths.unsigned_abs();
    let (whole, fraction) = (magnitude / 10_000, magnitude % 10_000);
    vec![format!("{whole}"), format!("{whole}{:02}", fraction / 100)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn key(byte: u8) -> LeakKey {
        LeakKey::new(&[byte; KEY_BYTES]).expect("32 bytes")
    }

    fn finds(denied: &Value, text: &str) -> bool {
        guard([denied], []).finds(text)
    }

    fn guard<'a>(
        denied: impl IntoIterator<Item = &'a Value>,
        granted: impl IntoIterator<Item = &'a Value>,
    ) -> LeakGuard {
        let key = key(7);
        let prints = key.fingerprints(denied, granted);
        LeakGuard::new(key, prints)
    }

    #[test]
    fn notices_light_disguises() {
        let name = json!("Project Halcyon");
        for text in [
            "project halcyon",
            "see P.R.O.J.E.C.T  H-a-l-c-y-o-n now",
            "xprojecthalcyonx",
            "Pro\u{200b}ject\nHalcyon",
            "Ｐｒｏｊｅｃｔ Ｈａｌｃｙｏｎ",
        ] {
            assert!(finds(&name, text), "{text}");
        }
        assert!(!finds(&name, "Project Halcyo"));
        assert!(!finds(&name, ""));
    }

    #[test]
    fn notices_days_and_amounts_as_texts_write_them() {
        let day = json!("2026-08-04");
        for text in [
            "2026-08-04",
            "4 August",
            "August 4th",
            "04.08.2026",
            "08/04/2026",
            "4 Aug 2026",
        ] {
            assert!(finds(&day, text), "{text}");
        }
        assert!(!finds(&day, "August 2026"));
        let amount = json!({"amount": "48200.5", "currency": "EUR"});
        for text in ["EUR 48,200.50", "48200 euros", "48 200"] {
            assert!(finds(&amount, text), "{text}");
        }
        assert!(!finds(&amount, "EUR 48,201"));
    }

    #[test]
    fn short_values_have_no_fingerprint() {
        let key = key(1);
        let short = [json!("abc"), json!(12), json!(true), json!(null)];
        assert!(key.fingerprints(&short, []).is_empty());
    }

    #[test]
    fn a_granted_value_is_not_denied() {
        let values = [json!("Harriet Vane"), json!("Peter Wimsey")];
        let guard = guard(&values, &values[..1]);
        assert!(!guard.finds("Harriet Vane"));
        assert!(guard.finds("Peter Wimsey"));
    }

    #[test]
    fn what_a_granted_day_writes_anyway_is_not_denied() {
        let granted = [json!("2026-08-14")];
        let denied = [
            json!({"amount": "2026", "currency": "EUR"}),
            json!("Peter 2026"),
        ];
        let guard = guard(&denied, &granted);
        assert!(!guard.finds("Delivery was requested by 2026-08-14."));
        assert!(guard.finds("Peter 2026"));
        assert!(guard.finds("EUR 2026.00"));
    }

    #[test]
    fn long_values_are_found_by_their_blocks() {
        let long = "abcdefghij".repeat(12);
        let part = &long[20..70];
        assert!(finds(&json!(long), part));
        assert!(!finds(&json!(long), &part[..20]));
    }

    #[test]
    fn every_value_of_many_is_found() {
        let values: Vec<_> = (0..20_000)
            .map(|it| json!(format!("name {it:05}")))
            .collect();
        let guard = guard(&values, []);
        for value in &values {
            assert!(guard.finds(value.as_str().unwrap_or_default()), "{value}");
        }
        assert!(!guard.finds("name 20000"));
    }

    #[test]
    fn a_value_has_at_most_the_fingerprints_that_are_counted() {
        let long = json!("abcdefghij".repeat(200));
        let amount = json!({"amount": "48200.5", "currency": "EUR"});
        for value in [long, amount, json!("2026-08-04"), json!("abc"), json!(null)] {
            let prints = key(1).fingerprints([&value], []);
            assert!(prints.len() <= fingerprint_count(&value), "{value}");
            let is_bounded = |it: &Fingerprint| (MIN_LENGTH..=MAX_LENGTH).contains(&it.length);
            assert!(prints.iter().all(is_bounded), "{value}");
        }
    }

    #[test]
    fn fingerprints_mean_nothing_under_another_key() {
        let prints = key(1).fingerprints(&[json!("Project Halcyon")], []);
        assert!(!LeakGuard::new(key(2), prints).finds("Project Halcyon"));
        assert!(LeakKey::new(&[0; 31]).is_err());
    }

    proptest! {
        #[test]
        fn finds_whatever_stands_inside(before in ".{0,40}", value in "[a-zA-Z0-9]{4,60}", after in ".{0,40}") {
            let inside = format!("{before} {value} {after}");
            prop_assert!(finds(&json!(value), &inside));
        }

        #[test]
        fn windows_agree_with_the_plain_hash(text in "[a-z]{1,60}", length in 1usize..12) {
            let key = key(3);
            let text: Vec<char> = text.chars().collect();
            for (window, hash) in key.windows(&text, length) {
                prop_assert_eq!(hash, key.fingerprint(window).rolling);
            }
        }
    }
}
