//! The scalar members of the protocol's objects, each a type that only its own form can make.

use std::borrow::Borrow;
use std::fmt;

use serde_json::{Number, Value};
use zeroize::Zeroize;

use crate::digest::Digest;
use crate::json::read::{Expected, FromJson, Mismatch, ToJson, string};

/// Text of `MIN` to `MAX` characters, counted in Unicode code points.
///
/// Its `Debug` form hides the text, which may be private.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<const MIN: usize, const MAX: usize>(String);

impl<const MIN: usize, const MAX: usize> Text<MIN, MAX> {
    /// The text, if its length is within the bounds.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let length = text.chars().count();
        (MIN <= length && length <= MAX).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MIN: usize, const MAX: usize> Zeroize for Text<MIN, MAX> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl<const MIN: usize, const MAX: usize> fmt::Debug for Text<MIN, MAX> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Text(..)")
    }
}

impl<const MIN: usize, const MAX: usize> FromJson for Text<MIN, MAX> {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        Self::new(string(value)?).ok_or_else(|| Expected::Length.into())
    }
}

impl<const MIN: usize, const MAX: usize> ToJson for Text<MIN, MAX> {
    fn to_json(&self) -> Value {
        Value::String(self.0.clone())
    }
}

/// A principal, reference or other identifier of 3 to 512 characters.
pub type Reference = Text<3, 512>;

/// Whether text is a name: a lowercase letter, then lowercase letters and digits, in groups
/// joined by single `.`, `_` or `-`.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase()) && has_groups(text)
}

/// Whether text is one or more non-empty groups of lowercase letters and digits, joined by single
/// `.`, `_` or `-`.
pub(crate) fn has_groups(text: &str) -> bool {
    text.split(['.', '_', '-']).all(|group| {
        !group.is_empty()
            && group
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

/// Whether text is a code: upper-case letters and digits, a letter first, in groups joined by
/// single underscores.
pub fn is_upper_snake(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.split('_').all(|group| {
            !group.is_empty()
                && group
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        })
}

/// Declares string types that hold one validated form.
macro_rules! pattern_types {
    ($( $(#[$meta:meta])* pub struct $name:ident, $label:literal, $is_valid:path; )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text, if it has the form.
            pub fn new(text: impl Into<String>) -> Option<Self> {
                let text = text.into();
                $is_valid(&text).then_some(Self(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl FromJson for $name {
            fn from_json(value: &Value) -> Result<Self, Mismatch> {
                Self::new(string(value)?).ok_or_else(|| Expected::Pattern($label).into())
            }
        }

        impl ToJson for $name {
            fn to_json(&self) -> Value {
                Value::String(self.0.clone())
            }
        }
    )* };
}

pattern_types! {
    /// A lowercase dotted name: the kinds, datatypes and categories of the protocol.
    pub struct Name, "a lowercase dotted name", is_name;
    /// The name of a fact, as claims state it and selectors ask for it (spec 7.2).
    pub struct Predicate, "a predicate name", is_name;
    /// The name of something a consumer may do, or of an operation that is receipted.
    pub struct Action, "an action name", is_name;
    /// The key under which a bundle lists one opaque provenance reference (spec 7.5).
    pub struct Handle, "a provenance handle", is_name;
    /// A stable machine code, such as a decision's reason.
    pub struct ReasonCode, "an upper-case code", is_upper_snake;
    /// The id of a signing key: 3 to 255 characters, the first alphanumeric, the others
    /// alphanumeric or one of `. _ : / ~ -`.
    pub struct KeyId, "a key id", is_key_id;
    /// A namespace of adapter data: two or more lowercase labels joined by `.` or `-`.
    pub struct Namespace, "a namespace", is_namespace;
    /// A media type without parameters.
    pub struct MediaType, "a media type", is_media_type;
    /// The name that an operator gives to one policy: 1 to 64 characters, the first alphanumeric,
    /// the others alphanumeric or one of `. _ -`. It is named in errors.
    pub struct PolicyName, "a policy name", is_policy_name;
}

impl Handle {
    /// The handle of a source: `prov_` and the hex form of a digest.
    pub fn from_digest(digest: Digest) -> Self {
        Self(format!("prov_{}", digest.to_hex()))
    }

    /// The digest in the text of such a handle.
    pub(crate) fn parse_digest(text: &str) -> Option<Digest> {
        Digest::parse(&format!("sha256:{}", text.strip_prefix("prov_")?))
    }
}

fn is_key_id(text: &str) -> bool {
    (3..=255).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._:/~-".contains(&byte))
}

fn is_policy_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_namespace(text: &str) -> bool {
    let labels = text.split(['.', '-']);
    labels.clone().count() >= 2
        && labels.into_iter().all(|label| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

fn is_media_type(text: &str) -> bool {
    let is_token = |token: &str| {
        !token.is_empty()
            && token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    text.len() <= 255
        && text
            .split_once('/')
            .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// The integral value of a JSON number: `60`, `60.0` and `6e1` are one integer, `true` is none.
pub(crate) fn integer(value: &Value) -> Result<i64, Mismatch> {
    let number = value.as_number().ok_or(Expected::Integer)?;
    if let Some(integer) = number.as_i64() {
        return Ok(integer);
    }
    let double = number.as_f64().unwrap_or(f64::NAN);
    // Doubles of this range convert without loss; larger ones are out of every range used here.
    if double.fract() == 0.0 && double.abs() < 9.0e18 {
        return Ok(double as i64);
    }
    Err(if double.fract() == 0.0 {
        Expected::Range
    } else {
        Expected::Integer
    }
    .into())
}

/// An integer from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bounded<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> Bounded<MIN, MAX> {
    /// The integer, if it is within the bounds.
    pub fn new(value: i64) -> Option<Self> {
        (MIN..=MAX).contains(&value).then_some(Self(value))
    }

    /// The integer.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl<const MIN: i64, const MAX: i64> FromJson for Bounded<MIN, MAX> {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        Self::new(integer(value)?).ok_or_else(|| Expected::Range.into())
    }
}

impl<const MIN: i64, const MAX: i64> ToJson for Bounded<MIN, MAX> {
    fn to_json(&self) -> Value {
        self.0.into()
    }
}

/// The longest retention that the protocol can express: one day, in seconds.
pub const MAX_RETENTION_SECONDS: i64 = 86_400;

/// A degree of belief from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// Full confidence.
    pub const FULL: Self = Self(1.0);

    /// The number, if it is from 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromJson for Confidence {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        let number = value.as_number().and_then(Number::as_f64);
        Self::new(number.ok_or(Expected::Number)?).ok_or_else(|| Expected::Range.into())
    }
}

impl ToJson for Confidence {
    fn to_json(&self) -> Value {
        Value::from(self.0)
    }
}

impl FromJson for bool {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        value.as_bool().ok_or_else(|| Expected::Boolean.into())
    }
}

impl ToJson for bool {
    fn to_json(&self) -> Value {
        Value::Bool(*self)
    }
}

/// Any JSON value, as claims and adapters carry it. Its `Debug` form hides the value.
#[derive(Clone, PartialEq)]
pub struct AnyJson(pub Value);

impl Zeroize for AnyJson {
    fn zeroize(&mut self) {
        wipe(&mut self.0);
    }
}

/// Overwrites every string of a tree; numbers and member names stay.
fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    *value = Value::Null;
}

impl fmt::Debug for AnyJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AnyJson(..)")
    }
}

impl FromJson for AnyJson {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        Ok(Self(value.clone()))
    }
}

impl ToJson for AnyJson {
    fn to_json(&self) -> Value {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_text_in_code_points() {
        assert!(Text::<3, 4>::new("\u{1F600}\u{1F600}").is_none());
        assert!(Text::<3, 4>::new("\u{1F600}\u{1F600}\u{1F600}").is_some());
        assert!(Text::<3, 4>::new("e\u{301}e\u{301}").is_some());
        assert!(Text::<3, 4>::new("12345").is_none());
    }

    #[test]
    fn names_have_one_form() {
        for good in [
            "a",
            "a1",
            "file.text",
            "requested_delivery_date",
            "confidential-budget",
            "a.1_b-2",
        ] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "", "1a", "A", "a.", ".a", "a..b", "a._b", "a b", "a\n", "é", "a.É", "*", "prov_*",
        ] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn key_ids_have_one_form() {
        for good in ["abc", "urn:cl:key:a/b~1", &"k".repeat(255)] {
            assert!(is_key_id(good), "{good}");
        }
        for bad in ["ab", ":abc", "a b", "abc\n", "äbc", &"k".repeat(256)] {
            assert!(!is_key_id(bad), "{bad:?}");
        }
    }

    #[test]
    fn integers_are_numbers_without_a_fraction() {
        assert_eq!(integer(&json!(60)), Ok(60));
        assert_eq!(integer(&json!(60.0)), Ok(60));
        assert_eq!(integer(&json!(-0.0)), Ok(0));
        for bad in [
            json!(true),
            json!("60"),
            json!(60.5),
            json!(null),
            json!(1e300),
            json!(u64::MAX),
        ] {
            assert!(integer(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hides_private_text_from_debug() {
        let text = Text::<1, 20>::new("CANARY").expect("short");
        assert!(!format!("{text:?} {:?}", AnyJson(json!("CANARY"))).contains("CANARY"));
    }

    #[test]
    fn what_is_wiped_is_overwritten() {
        let mut text = Text::<1, 9>::new("private").expect("text");
        text.zeroize();
        assert_eq!(text.as_str(), "");
        let mut json = AnyJson(serde_json::json!({"a": ["private", {"b": "private"}]}));
        json.zeroize();
        assert_eq!(json.0, Value::Null);
    }
}
