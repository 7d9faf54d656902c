//! Canonical bytes, digests and record identities, written apart from the protocol library.

use std::fmt::Write;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest as hash};
use serde_json::{Map, Value, json};

use super::failure::Failure;

/// Canonical text: compact, names in UTF-16 order, ECMAScript strings and numbers.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, &mut out);
    out
}

/// `sha256:` and the lowercase hexadecimal hash of the canonical text.
pub(crate) fn digest(value: &Value) -> String {
    digest_bytes(text(value).as_bytes())
}

pub(crate) fn digest_bytes(bytes: &[u8]) -> String {
    format!("sha256:{}", hex_hash(bytes))
}

pub(crate) fn hex_hash(bytes: &[u8]) -> String {
    HEXLOWER.encode(hash(&SHA256, bytes).as_ref())
}

/// Gives the members, without any former id or integrity, the identity of their content.
pub(crate) fn finalize(record: &Map<String, Value>, id_prefix: &str) -> Map<String, Value> {
    let mut record = unsigned(record);
    let hash = hex_hash(text(&Value::Object(record.clone())).as_bytes());
    record.insert("id".into(), format!("{id_prefix}{hash}").into());
    record.insert(
        "integrity".into(),
        json!({"algorithm": "sha-256", "digest": format!("sha256:{hash}")}),
    );
    record
}

pub(crate) fn verify_record(record: &Value, id_prefix: &str) -> Result<(), Failure> {
    let members = record.as_object().ok_or(Failure::RecordIntegrity)?;
    let wanted = finalize(members, id_prefix);
    if text(&Value::Object(wanted)) != text(record) {
        return Err(Failure::RecordIntegrity);
    }
    Ok(())
}

fn unsigned(record: &Map<String, Value>) -> Map<String, Value> {
    record
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "id" | "integrity"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => match number.as_f64() {
            // The value domain is binary64, so a longer integer is rounded first.
            Some(number) => out.push_str(ryu_js::Buffer::new().format(number)),
            None => out.push_str("NaN"),
        },
        Value::String(string) => write_string(string, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => write_object(members, out),
    }
}

fn write_object(members: &Map<String, Value>, out: &mut String) {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
    out.push('{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(name, out);
        out.push(':');
        write_value(value, out);
    }
    out.push('}');
}

fn write_string(string: &str, out: &mut String) {
    out.push('"');
    for character in string.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{digest, finalize, text, verify_record};
    use crate::interop::json::parse;

    fn canonical(json: &str) -> String {
        text(&parse(json.as_bytes()).unwrap())
    }

    #[test]
    fn sorts_names_by_utf16_units() {
        let value = json!({"\u{e000}": 2, "\u{1f600}": 1, "b": {"z": 0, "a": 0}});
        assert_eq!(
            text(&value),
            "{\"b\":{\"a\":0,\"z\":0},\"\u{1f600}\":1,\"\u{e000}\":2}"
        );
    }

    #[test]
    fn writes_numbers_as_ecmascript_does() {
        assert_eq!(canonical("9007199254740993"), "9007199254740992");
        assert_eq!(canonical("100000000000000000000"), "100000000000000000000");
        assert_eq!(canonical("1e21"), "1e+21");
        assert_eq!(
            canonical("[-0, -0.0, 60.0, 42.50, 1e-7]"),
            "[0,0,60,42.5,1e-7]"
        );
    }

    #[test]
    fn escapes_only_what_must_be_escaped() {
        assert_eq!(
            text(&json!("\u{8}\t\n\u{c}\r\"\\/\u{1}\u{1f}\u{7f}\u{2028}é")),
            "\"\\b\\t\\n\\f\\r\\\"\\\\/\\u0001\\u001f\u{7f}\u{2028}é\""
        );
    }

    #[test]
    fn digests_known_values() {
        assert_eq!(
            digest(&Value::Null),
            "sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"
        );
        assert_eq!(
            digest(&json!({"\u{e000}": 2, "\u{1f600}": 1})),
            "sha256:04208f6cdb854e2ab1b07dd3633a39dec854344fe72824cf7f2fdb4e2e33129e"
        );
    }

    #[test]
    fn finalizes_the_published_record() {
        let unsigned = json!({
            "spec_version": "context-layer/0.2-draft",
            "type": "test_vector",
            "created_at": "2030-01-01T12:00:00.000Z",
            "classification": "synthetic-test-only",
            "id": "a former id is not part of the content",
        });
        let record = Value::Object(finalize(
            unsigned.as_object().unwrap(),
            "urn:cl:test-vector:",
        ));
        assert_eq!(
            record["id"],
            "urn:cl:test-vector:eb0ed6325bbc9d869e7559e6d9900d9c9e3a3b067d82e45c0bb29612adc62f74"
        );
        assert_eq!(verify_record(&record, "urn:cl:test-vector:"), Ok(()));
        assert!(verify_record(&record, "urn:cl:bundle:").is_err());
    }

    #[test]
    fn record_fails_after_any_change() {
        let unsigned = json!({"type": "test_vector", "level": 1});
        let record = Value::Object(finalize(unsigned.as_object().unwrap(), "urn:x:"));
        for (member, value) in [
            ("level", json!(2)),
            ("more", json!(true)),
            ("id", json!("urn:x:0")),
            (
                "integrity",
                json!({"algorithm": "sha-256", "digest": "sha256:0"}),
            ),
        ] {
            let mut changed = record.clone();
            changed[member] = value;
            assert!(verify_record(&changed, "urn:x:").is_err(), "{member}");
        }
    }
}
