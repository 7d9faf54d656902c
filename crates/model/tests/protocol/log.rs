//! The portable receipt log.

use cl_model::canonical::to_text;
use cl_model::digest::Digest;
use cl_model::log::LogState;
use cl_model::object::Outcome;
use cl_model::receipt::{BUNDLE_CONSUME, Draft, MAX_RECEIPT_BYTES};
use cl_model::record::{self, Record};
use cl_model::refusal::{Code, Refusal};
use cl_model::urn::ReceiptId;
use serde_json::{Value, json};

use crate::fixture::{now, refused, rehashed};

type Change = fn(&mut Value);

const ACTOR: &str = "urn:agent:drafting-helper";
const BUNDLE: &str = "urn:cl:bundle:b1";

pub(crate) fn receipt(operation: &str, summary: &str) -> Record {
    let alias = "urn:cl:alias:s1";
    Draft::new(operation, ACTOR, alias, Outcome::Success, summary, now())
        .finish()
        .expect("a receipt")
}

fn consumption(actor: &str, bundle: &str, outcome: Outcome) -> Record {
    Draft::new(
        BUNDLE_CONSUME,
        actor,
        "urn:cl:alias:s1",
        outcome,
        "Opened.",
        now(),
    )
    .about("urn:cl:request:r1", "urn:cl:decision:d1", bundle)
    .finish()
    .expect("a receipt")
}

fn log_of(receipts: &[Record]) -> Result<String, Refusal> {
    let mut state = LogState::empty();
    let mut log = String::new();
    for receipt in receipts {
        log.push_str(&state.append(receipt)?);
    }
    Ok(log)
}

fn three() -> String {
    let receipts = ["one", "two", "three"].map(|summary| receipt("letter.draft", summary));
    log_of(&receipts).expect("a log")
}

fn verify(log: impl AsRef<[u8]>) -> Option<Code> {
    refused(LogState::verify(log.as_ref()))
}

/// A log of entries that are chained whatever they hold.
fn chained(receipts: &[Value], change: impl Fn(usize, &mut Value)) -> String {
    let mut tail = Digest::ZERO;
    let mut log = String::new();
    for (index, receipt) in receipts.iter().enumerate() {
        let mut entry = json!({
            "log_version": 1,
            "sequence": index + 1,
            "previous_entry_digest": tail.to_string(),
            "receipt": receipt,
        });
        change(index, &mut entry);
        tail = Digest::of_json(&entry);
        entry["entry_digest"] = tail.to_string().into();
        log.push_str(&to_text(&entry));
        log.push('\n');
    }
    log
}

#[test]
fn verifies_what_it_appends() {
    let mut state = LogState::empty();
    let mut log = String::new();
    for summary in ["one", "two", "three"] {
        let line = state.append(&receipt("letter.draft", summary));
        log.push_str(&line.expect("appended"));
        let verified = LogState::verify(log.as_bytes()).expect("a log");
        assert_eq!(verified.entries(), state.entries());
        assert_eq!(verified.tail(), state.tail());
        assert_eq!(verified.byte_length(), log.len() as u64);
        assert_eq!(verified.file_digest(), Digest::of_bytes(log.as_bytes()));
        assert_eq!(state.file_digest(), verified.file_digest());
    }
    assert_eq!(state.entries(), 3);
}

#[test]
fn an_empty_log_is_the_genesis_state() {
    let state = LogState::verify(b"").expect("a log");
    assert_eq!(state.entries(), 0);
    assert_eq!(state.tail(), Digest::ZERO);
    assert_eq!(state.byte_length(), 0);
    assert_eq!(state.file_digest(), Digest::of_bytes(b""));
}

#[test]
fn the_first_entry_has_the_documented_form() {
    let receipt = receipt("letter.draft", "one");
    let log = log_of(std::slice::from_ref(&receipt)).expect("a log");
    assert_eq!(log, chained(&[receipt.into_value()], |_, _| ()));
}

#[test]
fn refuses_bytes_that_are_not_canonical_lines() {
    let log = three();
    let lines: Vec<_> = log.lines().collect();
    let (first, last) = (lines[0], lines[2]);
    let spaced = log.replacen(':', ": ", 1);
    let reordered = {
        let entry: Value = serde_json::from_str(first).expect("JSON");
        let digest = &entry["entry_digest"];
        let rest = first.replacen(&format!("\"entry_digest\":{digest},"), "", 1);
        format!(
            "{},\"entry_digest\":{digest}}}\n",
            rest.trim_end_matches('}')
        )
    };
    let rows: Vec<(Code, Vec<u8>)> = vec![
        (Code::ReceiptLogTruncated, log.trim_end().into()),
        (Code::ReceiptLogTruncated, log[..log.len() / 2].into()),
        (Code::ReceiptLogTruncated, b" ".to_vec()),
        (Code::ReceiptLogInvalidJson, b"\n".to_vec()),
        (Code::ReceiptLogInvalidJson, format!("\u{feff}{log}").into()),
        (Code::ReceiptLogInvalidJson, format!("{log}\n").into()),
        (
            Code::ReceiptLogInvalidJson,
            format!("{first}\n\n{last}\n").into(),
        ),
        (
            Code::ReceiptLogInvalidJson,
            [log.as_bytes(), b"\xff\n"].concat(),
        ),
        (
            Code::ReceiptLogInvalidJson,
            log.replacen('}', "},}", 1).into(),
        ),
        (
            Code::ReceiptLogInvalidJson,
            log.replacen('{', "{\"receipt\":1,", 1).into(),
        ),
        (
            Code::ReceiptLogInvalidEntry,
            log.replace('\n', "\r\n").into(),
        ),
        (Code::ReceiptLogInvalidEntry, spaced.into()),
        (Code::ReceiptLogInvalidEntry, reordered.into()),
        (
            Code::ReceiptLogInvalidEntry,
            log.replacen("draft", "dr\\u0061ft", 1).into(),
        ),
        (
            Code::ReceiptLogInvalidEntry,
            log.replacen("\"sequence\":1", "\"sequence\":1.0", 1).into(),
        ),
        (Code::ReceiptLogInvalidEntry, b"[]\n".to_vec()),
        (Code::ReceiptLogInvalidEntry, b"{}\n".to_vec()),
    ];
    for (index, (code, bytes)) in rows.into_iter().enumerate() {
        assert_eq!(verify(&log), None);
        assert_eq!(verify(bytes), Some(code), "row {index}");
    }
}

#[test]
fn refuses_another_order_and_edited_lines() {
    let log = three();
    let lines: Vec<_> = log.lines().collect();
    let join = |order: &[usize]| -> String {
        order
            .iter()
            .map(|index| format!("{}\n", lines[*index]))
            .collect()
    };
    assert_eq!(verify(join(&[0, 1, 2])), None);
    assert_eq!(
        verify(join(&[0, 1])),
        None,
        "a log alone cannot show that its end is missing"
    );
    for order in [
        &[1, 0, 2][..],
        &[0, 2],
        &[1, 2],
        &[2],
        &[0, 0],
        &[0, 1, 2, 2],
        &[0, 1, 2, 0],
    ] {
        assert_eq!(
            verify(join(order)),
            Some(Code::ReceiptLogChainMismatch),
            "{order:?}"
        );
    }
    let edits = [
        ("\"user_summary\":\"two\"", "\"user_summary\":\"2wo\""),
        ("\"sequence\":2", "\"sequence\":4"),
        ("\"log_version\":1", "\"log_version\":2"),
        ("sha256:0000", "sha256:0001"),
    ];
    for (from, to) in edits {
        assert!(log.contains(from), "{from}");
        let code = verify(log.replacen(from, to, 1));
        assert_eq!(code, Some(Code::ReceiptLogChainMismatch), "{from}");
    }
}

#[test]
fn refuses_rehashed_entries_with_other_members() {
    let receipts = ["one", "two"].map(|it| receipt("letter.draft", it).into_value());
    assert_eq!(verify(chained(&receipts, |_, _| ())), None);
    let rows: &[(Code, Change)] = &[
        (Code::ReceiptLogInvalidEntry, |it| it["surplus"] = json!(1)),
        (Code::ReceiptLogInvalidEntry, |it| {
            it.as_object_mut().expect("an object").remove("log_version");
        }),
        (Code::ReceiptLogChainMismatch, |it| {
            it["log_version"] = json!(2)
        }),
        (Code::ReceiptLogChainMismatch, |it| {
            it["log_version"] = json!(true)
        }),
        (Code::ReceiptLogChainMismatch, |it| {
            it["sequence"] = json!(3)
        }),
        (Code::ReceiptLogChainMismatch, |it| {
            it["sequence"] = json!("2")
        }),
        (Code::ReceiptLogChainMismatch, |it| {
            it["previous_entry_digest"] = json!(Digest::ZERO.to_string());
        }),
    ];
    for (index, (code, change)) in rows.iter().enumerate() {
        let log = chained(&receipts, |entry, it| {
            if entry == 1 {
                change(it);
            }
        });
        assert_eq!(verify(log), Some(*code), "row {index}");
    }
}

#[test]
fn refuses_rehashed_receipts_that_do_not_hold() {
    let valid = receipt("letter.draft", "one").into_value();
    let rows: &[(Code, Change)] = &[
        (Code::InvalidReceipt, |it| it["surplus"] = json!(1)),
        (Code::InvalidReceipt, |it| it["user_summary"] = json!("")),
        (Code::InvalidDateTime, |it| it["started_at"] = json!("2031")),
        (Code::InvalidReceiptTimeRange, |it| {
            it["completed_at"] = json!("2030-01-01T00:00:00Z");
        }),
        (Code::InvalidDigest, |it| it["input_digest"] = json!("none")),
        (Code::ReceiptPayloadForbidden, |it| {
            it["payload_included"] = json!(true)
        }),
        (Code::ReceiptContainsForbiddenMaterial, |it| {
            it["user_summary"] = json!("Read vault://events/1.");
        }),
    ];
    for (index, (code, change)) in rows.iter().enumerate() {
        let bad = rehashed(&valid, ReceiptId::PREFIX, change);
        assert_eq!(
            verify(chained(&[bad], |_, _| ())),
            Some(*code),
            "row {index}"
        );
    }
    let mut unhashed = valid;
    unhashed["user_summary"] = json!("two");
    let code = verify(chained(&[unhashed], |_, _| ()));
    assert_eq!(code, Some(Code::RecordIntegrityMismatch));
    let decision = record::finalize(json!({"type": "receipt"}), "urn:cl:decision:");
    let decision = decision.expect("a record");
    let code = refused(LogState::empty().append(&decision));
    assert_eq!(code, Some(Code::RecordIntegrityMismatch));
}

#[test]
fn one_actor_consumes_one_bundle_once() {
    let first = consumption(ACTOR, BUNDLE, Outcome::Success);
    let others = [
        consumption("urn:agent:other-helper", BUNDLE, Outcome::Success),
        consumption(ACTOR, "urn:cl:bundle:b2", Outcome::Success),
        consumption(ACTOR, BUNDLE, Outcome::Failure),
        consumption(ACTOR, BUNDLE, Outcome::Indeterminate),
        receipt("letter.draft", "one"),
    ];
    let mut receipts = vec![first.clone()];
    receipts.extend(others);
    let log = log_of(&receipts).expect("a log");
    let mut state = LogState::verify(log.as_bytes()).expect("a log");
    assert!(state.is_consumed(ACTOR, BUNDLE));
    assert!(!state.is_consumed(ACTOR, "urn:cl:bundle:b3"));
    let code = refused(state.append(&first));
    assert_eq!(
        code,
        Some(Code::ReceiptReplayConflict),
        "also after reading the log back"
    );
    let values = [first.value().clone(), first.into_value()];
    assert_eq!(
        verify(chained(&values, |_, _| ())),
        Some(Code::ReceiptReplayConflict)
    );
}

#[test]
fn unicode_separators_in_a_summary_survive() {
    let summary = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\r\ng\u{1F600}";
    let log = log_of(&[
        receipt("letter.draft", summary),
        receipt("letter.draft", "two"),
    ]);
    let log = log.expect("a log");
    assert_eq!(
        LogState::verify(log.as_bytes()).expect("a log").entries(),
        2
    );
    let first: Value = serde_json::from_str(log.split('\n').next().expect("a line")).expect("JSON");
    assert_eq!(first["receipt"]["user_summary"], summary);
}

#[test]
fn whatever_is_written_can_be_read_back() {
    let overhead = receipt("a", "one").text().len() - 1;
    let longest = "a".repeat(MAX_RECEIPT_BYTES - overhead);
    let log = log_of(&[receipt(&longest, "one")]).expect("the longest receipt");
    assert_eq!(verify(&log), None);
    let longer = format!("{longest}a");
    let draft = Draft::new(
        &longer,
        ACTOR,
        "urn:cl:alias:s1",
        Outcome::Success,
        "one",
        now(),
    );
    assert_eq!(refused(draft.finish()), Some(Code::InvalidReceipt));
}
