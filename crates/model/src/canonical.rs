//! Canonical bytes: the JSON Canonicalization Scheme, RFC 8785 (spec 6.4).
//!
//! Numbers live in the binary64 domain: integers beyond 2^53 are written as the nearest double,
//! as ECMAScript would (see [`crate::json::Integers`] for the entry that refuses them instead).

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use crate::json::MAX_SAFE_INTEGER;

/// The canonical text of a value; its UTF-8 bytes are what digests and signatures cover.
pub fn to_text(value: &Value) -> String {
    let mut out = String::with_capacity(256);
    write_value(&mut out, value);
    out
}

/// The canonical text of an object.
pub fn object_to_text(object: &Map<String, Value>) -> String {
    let mut out = String::with_capacity(256);
    write_object(&mut out, object);
    out
}

/// The canonical text of an object without some of its members.
pub fn object_without(object: &Map<String, Value>, left_out: &[&str]) -> String {
    MemberTexts::of(object).to_text_without(left_out)
}

/// An object's members, each in canonical text already, so that parts of the object can be hashed
/// and signed without writing it twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberTexts(Vec<(String, String)>);

impl MemberTexts {
    /// The members of an object.
    pub(crate) fn of(object: &Map<String, Value>) -> Self {
        let members = object
            .iter()
            .map(|(name, value)| (name.clone(), to_text(value)));
        Self(members.collect())
    }

    /// Adds a member whose value is in canonical text.
    pub(crate) fn put(&mut self, name: &str, text: String) {
        self.0.push((name.to_owned(), text));
    }

    /// The canonical text of the object without some of its members.
    pub(crate) fn to_text_without(&self, left_out: &[&str]) -> String {
        let kept = self
            .0
            .iter()
            .filter(|(name, _)| !left_out.contains(&name.as_str()));
        let mut members: Vec<_> = kept.collect();
        members.sort_unstable_by(|(left, _), (right, _)| cmp_utf16(left, right));
        let length = members
            .iter()
            .map(|(name, text)| name.len() + text.len() + 4)
            .sum::<usize>();
        let mut out = String::with_capacity(length + 2);
        out.push('{');
        for (index, (name, text)) in members.into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_string(&mut out, name);
            out.push(':');
            out.push_str(text);
        }
        out.push('}');
        out
    }

    /// The canonical text of the object.
    pub(crate) fn to_text(&self) -> String {
        self.to_text_without(&[])
    }
}

/// Compares two strings by UTF-16 code units, the order of member names in canonical JSON.
///
/// It differs from the order of code points only between U+E000..U+FFFF and what lies above.
pub fn cmp_utf16(left: &str, right: &str) -> Ordering {
    let differs = |(left, right): &(u8, u8)| left != right;
    match left.bytes().zip(right.bytes()).find(differs) {
        // Lead bytes from 0xEE on are U+E000 and above, which surrogates come before.
        Some((0xEE.., 0xEE..)) => left.encode_utf16().cmp(right.encode_utf16()),
        Some((left, right)) => left.cmp(&right),
        None => left.len().cmp(&right.len()),
    }
}

/// Sorts strings by UTF-16 code units and removes repeats.
pub fn sort_unique<T: AsRef<str> + Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|left, right| cmp_utf16(left.as_ref(), right.as_ref()));
    values.dedup();
    values
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, element);
            }
            out.push(']');
        }
        Value::Object(object) => write_object(out, object),
    }
}

fn write_object(out: &mut String, object: &Map<String, Value>) {
    // The map iterates by code point, which is nearly always the right order already.
    if object
        .keys()
        .is_sorted_by(|left, right| cmp_utf16(left, right) == Ordering::Less)
    {
        write_members(out, object.iter());
    } else {
        let mut members: Vec<_> = object.iter().collect();
        members.sort_by(|(left, _), (right, _)| cmp_utf16(left, right));
        write_members(out, members.into_iter());
    }
}

fn write_members<'a>(out: &mut String, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    out.push('{');
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, name);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

fn write_number(out: &mut String, number: &Number) {
    let mut integers = itoa::Buffer::new();
    match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(value), _, _) if value <= MAX_SAFE_INTEGER => {
            out.push_str(integers.format(value));
        }
        (_, Some(value), _) if value.unsigned_abs() <= MAX_SAFE_INTEGER => {
            out.push_str(integers.format(value));
        }
        (_, _, Some(value)) => {
            out.push_str(ryu_js::Buffer::new().format(value));
        }
        // Without arbitrary precision every number is one of the above.
        (_, _, None) => out.push_str("null"),
    }
}

/// Bytes that a JSON string must escape: the quote, the backslash and controls below U+0020.
const NEEDS_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(plain) = rest
        .bytes()
        .position(|byte| NEEDS_ESCAPE[usize::from(byte)])
    {
        // What needs an escape is ASCII, so both cuts are at character boundaries.
        let (before, after) = rest.split_at(plain);
        out.push_str(before);
        write_escape(out, after.as_bytes()[0]);
        rest = &after[1..];
    }
    out.push_str(rest);
    out.push('"');
}

fn write_escape(out: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push_str(match byte {
        b'"' => "\\\"",
        b'\\' => "\\\\",
        0x08 => "\\b",
        0x09 => "\\t",
        0x0A => "\\n",
        0x0C => "\\f",
        0x0D => "\\r",
        _ => {
            out.push_str("\\u00");
            out.push(HEX[usize::from(byte >> 4)].into());
            out.push(HEX[usize::from(byte & 15)].into());
            return;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Limits, parse};
    use proptest::prelude::*;
    use serde_json::json;

    fn canonical(text: &str) -> String {
        to_text(&parse(text.as_bytes(), Limits::profile(1 << 20)).expect("valid JSON"))
    }

    #[test]
    fn writes_numbers_as_ecmascript_does() {
        let cases = [
            ("9007199254740992", "9007199254740992"),
            ("9007199254740993", "9007199254740992"),
            ("-9007199254740993", "-9007199254740992"),
            ("18446744073709551615", "18446744073709552000"),
            ("100000000000000000000", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("5e-324", "5e-324"),
            ("1e-7", "1e-7"),
            ("0.000001", "0.000001"),
            ("333333333.33333329", "333333333.3333333"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("42.50", "42.5"),
            ("6e1", "60"),
            ("60.0", "60"),
        ];
        for (text, expected) in cases {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn sorts_members_by_utf16_code_units() {
        let value = json!({"\u{E000}": 1, "\u{1F600}": 2, "a": 3, "\u{FB33}": 4, "": 5});
        assert_eq!(
            to_text(&value),
            "{\"\":5,\"a\":3,\"\u{1F600}\":2,\"\u{E000}\":1,\"\u{FB33}\":4}"
        );
    }

    #[test]
    fn escapes_as_ecmascript_does() {
        let value = json!("\u{8}\t\n\u{c}\r\"\\/\u{0}\u{1f}\u{7f}\u{2028}é");
        assert_eq!(
            to_text(&value),
            "\"\\b\\t\\n\\f\\r\\\"\\\\/\\u0000\\u001f\u{7f}\u{2028}é\""
        );
    }

    #[test]
    fn leaves_members_out() {
        let value = json!({"id": "x", "a": 1, "integrity": {}, "b": {"id": 2}});
        let object = value.as_object().expect("an object");
        assert_eq!(
            object_without(object, &["id", "integrity"]),
            r#"{"a":1,"b":{"id":2}}"#
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_an_independent_canonicaliser(value in any_json()) {
            let other = serde_json_canonicalizer::to_string(&value).expect("canonical");
            prop_assert_eq!(to_text(&value), other);
        }

        #[test]
        fn is_a_fixed_point(value in any_json()) {
            let text = to_text(&value);
            prop_assert_eq!(canonical(&text), text);
        }

        #[test]
        fn utf16_order_matches_its_definition(left in any::<String>(), right in any::<String>()) {
            let by_units = left.encode_utf16().cmp(right.encode_utf16());
            prop_assert_eq!(cmp_utf16(&left, &right), by_units);
        }
    }
}
