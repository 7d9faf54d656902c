//! The receipt log and its anchor, byte for byte.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::{Context, RECEIPT_PREFIX};
use crate::interop::canonical;
use crate::interop::failure::Failure;
use crate::interop::json;
use crate::interop::keys::SyntheticKey;
use crate::interop::lookup;
use crate::interop::report::Recorder;

const SEED: &str = "/synthetic_test_only_anchor_material_hex";
const SIGNATURE_PREFIX: &str = "ed25519:";

pub(super) fn run(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    let answer = append_receipts(context);
    let mut record = |id: &str, check: fn(&Context<'_>, &Value) -> Result<(), Failure>| {
        let outcome = answer.clone().and_then(|answer| check(context, &answer));
        recorder.record(format!("receipts.{id}"), outcome)
    };
    record("log", check_log)?;
    record("anchor", check_anchor)?;
    record("missing-anchor", |context, answer| {
        check_code(context, answer, "missing_anchor_error")
    })?;
    record("rollback", |context, answer| {
        check_code(context, answer, "rollback_error")
    })
}

fn append_receipts(context: &Context<'_>) -> Result<Value, Failure> {
    let vectors = &context.data.receipt_memory;
    let input = json!({
        "clock": lookup::at(vectors, "/fixed_time")?,
        "synthetic_seed_hex": lookup::at(vectors, SEED)?,
        "operations": lookup::at(vectors, "/receipt_operations")?,
    });
    context.result("receipt_log", input)
}

/// Checks each entry against the expected receipt and the entry before it.
fn check_log(context: &Context<'_>, answer: &Value) -> Result<(), Failure> {
    let receipts = lookup::list(&context.data.expectations, "/receipts")?;
    let lines = lines(lookup::text(answer, "/log_jsonl")?, receipts.len())?;
    let payload_included = lookup::at(&context.data.receipt_memory, "/expected/payload_included")?;
    let mut previous = zero_digest();
    for (sequence, (line, receipt)) in (1..).zip(lines.iter().zip(receipts)) {
        let entry = line.parse()?;
        lookup::same(&expected_entry(sequence, &previous, receipt)?, &entry)?;
        canonical::verify_record(lookup::at(&entry, "/receipt")?, RECEIPT_PREFIX)?;
        lookup::same_at(&entry, "/receipt/payload_included", payload_included)?;
        previous = lookup::text(&entry, "/entry_digest")?.into();
    }
    Ok(())
}

fn expected_entry(sequence: u64, previous: &str, receipt: &Value) -> Result<Value, Failure> {
    let entry = json!({
        "log_version": 1,
        "sequence": sequence,
        "previous_entry_digest": previous,
        "receipt": receipt,
    });
    let digest = canonical::digest(&entry);
    lookup::extended(&entry, "", [("entry_digest", digest.into())])
}

/// Checks that there is one signed record for the empty log and one after each entry.
fn check_anchor(context: &Context<'_>, answer: &Value) -> Result<(), Failure> {
    let key = SyntheticKey::from_seed_hex(lookup::text(&context.data.receipt_memory, SEED)?)?;
    let log_path = lookup::text(answer, "/log_path")?;
    if !Path::new(log_path).is_absolute() {
        return Err(Failure::RelativeLogPath);
    }
    let log_id = canonical::digest(&json!({"receipt_log_path": log_path}));
    let receipts = lookup::list(&context.data.expectations, "/receipts")?;
    let log = lookup::text(answer, "/log_jsonl")?;
    let entries = lines(log, receipts.len())?;
    let records = lines(lookup::text(answer, "/anchor_jsonl")?, receipts.len() + 1)?;

    let mut previous = format!("{SIGNATURE_PREFIX}{}", "0".repeat(86));
    let mut tail = zero_digest();
    let mut length = 0;
    for (count, line) in records.iter().enumerate() {
        if let Some(entry) = count.checked_sub(1).and_then(|last| entries.get(last)) {
            tail = lookup::text(&entry.parse()?, "/entry_digest")?.into();
            length += entry.text.len() + 1;
        }
        let unsigned = json!({
            "anchor_version": 2,
            "log_id": log_id,
            "anchor_sequence": count,
            "entries": count,
            "tail_digest": tail,
            "byte_length": length,
            "file_digest": canonical::digest_bytes(&log.as_bytes()[..length]),
            "previous_sig": previous,
        });
        previous = check_anchor_record(&key, &line.parse()?, &unsigned)?;
    }
    Ok(())
}

/// Compares a record with what it must attest, and returns its verified signature.
fn check_anchor_record(
    key: &SyntheticKey,
    record: &Value,
    unsigned: &Value,
) -> Result<String, Failure> {
    let signature = lookup::text(record, "/sig")?;
    let expected = lookup::extended(unsigned, "", [("sig", signature.into())])?;
    lookup::same(&expected, record)?;
    let encoded = signature
        .strip_prefix(SIGNATURE_PREFIX)
        .ok_or(Failure::Signature { signed: "anchor" })?;
    key.verify(unsigned, encoded, "anchor")?;
    Ok(signature.into())
}

fn check_code(context: &Context<'_>, answer: &Value, member: &str) -> Result<(), Failure> {
    let expected = lookup::at(&context.data.receipt_memory, &format!("/expected/{member}"))?;
    lookup::same_at(answer, &format!("/{member}"), expected)
}

struct Line<'t> {
    number: usize,
    text: &'t str,
}

impl Line<'_> {
    fn parse(&self) -> Result<Value, Failure> {
        match json::parse(self.text.as_bytes()) {
            Ok(value) if canonical::text(&value) == self.text => Ok(value),
            Ok(_) | Err(_) => Err(Failure::LineNotCanonical { line: self.number }),
        }
    }
}

/// Splits on line feeds only; the last line must be ended by one as well.
fn lines(text: &str, expected: usize) -> Result<Vec<Line<'_>>, Failure> {
    let lines: Vec<_> = text
        .split_terminator('\n')
        .zip(1..)
        .map(|(text, number)| Line { number, text })
        .collect();
    if lines.len() != expected || !text.ends_with('\n') {
        return Err(Failure::LineCount {
            expected,
            count: lines.len(),
        });
    }
    Ok(lines)
}

fn zero_digest() -> String {
    format!("sha256:{}", "0".repeat(64))
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn lines_end_with_a_line_feed_and_nothing_else() {
        assert!(lines("1\n2\n", 2).is_ok());
        assert!(lines("1\n2", 2).is_err());
        assert!(lines("1\n2\n\n", 2).is_err());
        assert!(lines("1\u{2028}2\n", 1).is_ok());
    }

    #[test]
    fn a_line_must_be_canonical() {
        let text = "{\"a\":1,\"b\":2}\n{\"b\":2,\"a\":1}\n{\"a\":1}\r\n{\"a\":1,\"a\":1}\n";
        let found: Vec<_> = lines(text, 4)
            .unwrap()
            .iter()
            .map(|line| line.parse().is_ok())
            .collect();
        assert_eq!(found, [true, false, false, false]);
    }
}
