//! Strict JSON in: one place where bytes become a tree.
//!
//! Stricter than RFC 8259 asks, as signed documents need: no repeated member names, no lone
//! surrogates, only finite numbers, and limits on size and depth. No refusal repeats the input.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::refusal::{Code, Refusal};

pub mod read;

/// The largest integer that binary64 holds without a gap, 2^53-1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The deepest nesting that any entry of this library accepts: `[]` has depth 1.
pub const MAX_DEPTH: usize = 64;

/// What to do with numbers that binary64 cannot tell from their neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integers {
    /// Refuse magnitudes beyond [`MAX_SAFE_INTEGER`]. The form for everything that comes from a
    /// network: two different texts must not have one digest.
    Exact,
    /// Round to binary64, as ECMAScript does. The form of the local profile.
    Rounded,
}

/// Limits of one parse.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    max_bytes: usize,
    max_depth: usize,
    integers: Integers,
}

impl Limits {
    /// At most `max_bytes` bytes of text, nested at most [`MAX_DEPTH`] deep, exact integers.
    pub const fn network(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            max_depth: MAX_DEPTH,
            integers: Integers::Exact,
        }
    }

    /// As [`Limits::network`], but numbers round to binary64.
    pub const fn profile(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            max_depth: MAX_DEPTH,
            integers: Integers::Rounded,
        }
    }

    /// Allows `levels` more levels, for a wrapper around documents that each keep the limit.
    pub const fn wrapped(mut self, levels: usize) -> Self {
        self.max_depth += levels;
        self
    }
}

/// Parses one JSON value.
///
/// Time and memory are linear in the length of `bytes`.
///
/// # Errors
///
/// [`Code::JsonTooLarge`], [`Code::InvalidJson`], [`Code::DuplicateMember`],
/// [`Code::LoneSurrogate`], [`Code::JsonTooDeep`], [`Code::NonJsonValue`] (a number that is not
/// finite in binary64) or [`Code::IntegerOutOfRange`].
pub fn parse(bytes: &[u8], limits: Limits) -> Result<Value, Refusal> {
    if bytes.len() > limits.max_bytes {
        return Err(Code::JsonTooLarge.into());
    }
    let fault = Cell::new(None);
    let strict = Strict {
        fault: &fault,
        depth_left: limits.max_depth,
        integers: limits.integers,
    };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let parsed = strict
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    parsed.map_err(|_| fault.get().unwrap_or_else(|| lexical_fault(bytes)).into())
}

/// Whether the containers of a tree are nested at most `limit` deep, as [`parse`] counts.
pub(crate) fn is_within_depth(value: &Value, limit: usize) -> bool {
    let Some(inner) = limit.checked_sub(1) else {
        return !value.is_array() && !value.is_object();
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(elements) => elements.iter().all(|it| is_within_depth(it, inner)),
        Value::Object(members) => members.values().all(|it| is_within_depth(it, inner)),
    }
}

/// Builds a tree while it watches what `serde_json` alone would let pass.
#[derive(Clone, Copy)]
struct Strict<'a> {
    fault: &'a Cell<Option<Code>>,
    depth_left: usize,
    integers: Integers,
}

impl Strict<'_> {
    fn refuse<E: serde::de::Error>(self, code: Code) -> E {
        self.fault.set(Some(code));
        E::custom("")
    }

    fn descend<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.depth_left.checked_sub(1) {
            Some(depth_left) => Ok(Self { depth_left, ..self }),
            None => Err(self.refuse(Code::JsonTooDeep)),
        }
    }

    fn number<E: serde::de::Error>(self, number: Number, is_safe: bool) -> Result<Value, E> {
        if self.integers == Integers::Exact && !is_safe {
            return Err(self.refuse(Code::IntegerOutOfRange));
        }
        Ok(Value::Number(number))
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.number(value.into(), value <= MAX_SAFE_INTEGER)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.number(value.into(), value.unsigned_abs() <= MAX_SAFE_INTEGER)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        match Number::from_f64(value) {
            Some(number) => self.number(number, value.abs() < (MAX_SAFE_INTEGER + 1) as f64),
            None => Err(self.refuse(Code::NonJsonValue)),
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let inner = self.descend()?;
        let mut array = Vec::new();
        while let Some(element) = elements.next_element_seed(inner)? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.descend()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inner)?;
            if object.insert(name, value).is_some() {
                return Err(self.refuse(Code::DuplicateMember));
            }
        }
        Ok(Value::Object(object))
    }
}

/// Names the first fault in text that `serde_json` refused by itself.
///
/// It walks string and number tokens only, so that a lone surrogate and a number beyond binary64
/// get their own codes; everything else is [`Code::InvalidJson`].
fn lexical_fault(bytes: &[u8]) -> Code {
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        match first {
            b'"' => match string_end(after) {
                Ok(tail) => rest = tail,
                Err(code) => return code,
            },
            b'-' | b'0'..=b'9' => {
                let length = rest
                    .iter()
                    .position(|byte| {
                        !matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
                    })
                    .unwrap_or(rest.len());
                let (token, tail) = rest.split_at(length);
                let number = std::str::from_utf8(token)
                    .ok()
                    .and_then(|text| text.parse::<f64>().ok());
                match number {
                    Some(value) if value.is_infinite() => return Code::NonJsonValue,
                    Some(_) => rest = tail,
                    None => return Code::InvalidJson,
                }
            }
            _ => rest = after,
        }
    }
    Code::InvalidJson
}

/// Skips to the end of a string whose opening quote was read.
fn string_end(mut rest: &[u8]) -> Result<&[u8], Code> {
    loop {
        match rest {
            [b'"', tail @ ..] => return Ok(tail),
            [b'\\', b'u', tail @ ..] => {
                let (unit, tail) = hex_unit(tail)?;
                rest = match unit {
                    0xD800..=0xDBFF => match tail {
                        [b'\\', b'u', low @ ..] => match hex_unit(low)? {
                            (0xDC00..=0xDFFF, tail) => tail,
                            _ => return Err(Code::LoneSurrogate),
                        },
                        _ => return Err(Code::LoneSurrogate),
                    },
                    0xDC00..=0xDFFF => return Err(Code::LoneSurrogate),
                    _ => tail,
                };
            }
            [b'\\', _, tail @ ..] | [_, tail @ ..] => rest = tail,
            [] => return Err(Code::InvalidJson),
        }
    }
}

fn hex_unit(bytes: &[u8]) -> Result<(u16, &[u8]), Code> {
    let (digits, tail) = bytes.split_at_checked(4).ok_or(Code::InvalidJson)?;
    let unit = digits.iter().try_fold(0u16, |unit, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    });
    unit.map(|unit| (unit, tail)).ok_or(Code::InvalidJson)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn strict(text: &str) -> Result<Value, Code> {
        parse(text.as_bytes(), Limits::network(1 << 20)).map_err(|refusal| refusal.code())
    }

    #[test]
    fn reads_ordinary_json() {
        let text = r#" {"a":[1,-2,0.5,1e3,true,null,"\u0041\ud83d\ude00\n"],"b":{}} "#;
        assert_eq!(
            strict(text),
            Ok(json!({"a": [1, -2, 0.5, 1e3, true, null, "A\u{1F600}\n"], "b": {}}))
        );
    }

    #[test]
    fn refuses_each_kind_with_its_code() {
        let cases = [
            (r#"{"a":1,"a":2}"#, Code::DuplicateMember),
            (r#"[{"x":{"a":1,"\u0061":1}}]"#, Code::DuplicateMember),
            (r#"{"":0,"":0}"#, Code::DuplicateMember),
            (r#""\ud800""#, Code::LoneSurrogate),
            (r#"{"\udc00":1}"#, Code::LoneSurrogate),
            (r#"["\ud83dx"]"#, Code::LoneSurrogate),
            (r#"["\ud83d\u0041"]"#, Code::LoneSurrogate),
            (r#"["\ud83d\ud83d"]"#, Code::LoneSurrogate),
            (r#""\ude00\ud83d""#, Code::LoneSurrogate),
            ("1e400", Code::NonJsonValue),
            ("[-1E+999]", Code::NonJsonValue),
            ("NaN", Code::InvalidJson),
            ("Infinity", Code::InvalidJson),
            ("", Code::InvalidJson),
            ("01", Code::InvalidJson),
            ("[1,]", Code::InvalidJson),
            ("{} {}", Code::InvalidJson),
            ("\u{feff}{}", Code::InvalidJson),
            ("\"\u{1}\"", Code::InvalidJson),
            (r#""\u12""#, Code::InvalidJson),
            (r#""\x""#, Code::InvalidJson),
            ("9007199254740992", Code::IntegerOutOfRange),
            ("-9007199254740992", Code::IntegerOutOfRange),
            ("18446744073709551616", Code::IntegerOutOfRange),
            ("9007199254740992.0", Code::IntegerOutOfRange),
            ("1e20", Code::IntegerOutOfRange),
        ];
        for (text, code) in cases {
            assert_eq!(strict(text), Err(code), "{text}");
        }
        assert_eq!(
            parse(b"\"\xff\"", Limits::network(9)).map_err(|refusal| refusal.code()),
            Err(Code::InvalidJson)
        );
    }

    #[test]
    fn keeps_the_largest_exact_integers() {
        assert_eq!(
            strict("9007199254740991"),
            Ok(json!(9_007_199_254_740_991_u64))
        );
        assert_eq!(
            strict("-9007199254740991"),
            Ok(json!(-9_007_199_254_740_991_i64))
        );
        assert_eq!(strict("-0"), Ok(json!(-0.0)));
    }

    #[test]
    fn refuses_depth_beyond_the_limit_and_takes_the_limit() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(strict(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(strict(&nested(MAX_DEPTH + 1)), Err(Code::JsonTooDeep));
        assert_eq!(strict(&nested(200_000)), Err(Code::JsonTooDeep));
        let objects = format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65));
        assert_eq!(strict(&objects), Err(Code::JsonTooDeep));
        let wrapped = Limits::network(1 << 20).wrapped(1);
        assert!(parse(nested(MAX_DEPTH + 1).as_bytes(), wrapped).is_ok());
    }

    #[test]
    fn refuses_size_beyond_the_limit_before_parsing() {
        assert_eq!(
            parse(b"[1,2]", Limits::network(4)).map_err(|refusal| refusal.code()),
            Err(Code::JsonTooLarge)
        );
        assert!(parse(b"[1,2]", Limits::network(5)).is_ok());
    }

    #[test]
    fn never_repeats_the_input() {
        for text in [
            r#"{"CANARY":1,"CANARY":2}"#,
            r#"["CANARY\ud800"]"#,
            "CANARY",
        ] {
            let refusal = parse(text.as_bytes(), Limits::network(99)).expect_err("refused");
            assert!(!format!("{refusal} {refusal:?}").contains("CANARY"));
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = parse(&bytes, Limits::network(1 << 20));
            let _ = parse(&bytes, Limits::profile(128));
        }

        #[test]
        fn agrees_with_serde_json_where_both_accept(text in r#"[\[\]{}":,0-9eE+.\-a\\u d]{0,40}"#) {
            let plain = serde_json::from_str::<Value>(&text).ok();
            if let Ok(value) = parse(text.as_bytes(), Limits::profile(1 << 10)) {
                prop_assert_eq!(Some(value), plain);
            }
        }
    }
}
