//! The anchor of a receipt log, and both together.

use cl_model::anchor::{AnchorFile, AnchoredLog, log_id_of_path};
use cl_model::canonical::to_text;
use cl_model::digest::Digest;
use cl_model::key::SigningKey;
use cl_model::refusal::{Code, Refusal};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{refused, remove, signing_key};
use crate::log::receipt;

const ZEROS: &str = "ed25519:00000000000000000000000000000000000000000000000000000000000000000000000000000000000000";

fn key() -> SigningKey {
    signing_key("urn:cl:key:example.test:anchor", 0x51)
}

fn log_id() -> Digest {
    log_id_of_path("/synthetic/receipts.jsonl")
}

#[derive(Clone)]
struct Pair {
    log: Vec<u8>,
    anchor: Vec<u8>,
}

/// A log of so many receipts and its anchor.
fn pair(summaries: &[&str]) -> Pair {
    let key = key();
    let (mut state, genesis) =
        AnchoredLog::open(b"", &AnchorFile::Absent, log_id(), &key).expect("a new log");
    let mut pair = Pair {
        log: Vec::new(),
        anchor: genesis.expect("a genesis record").into_bytes(),
    };
    for summary in summaries {
        let appended = state
            .append(&receipt("letter.draft", summary))
            .expect("appended");
        pair.log.extend(appended.log_line.bytes());
        pair.anchor.extend(appended.anchor_line.bytes());
    }
    pair
}

fn two() -> Pair {
    pair(&["one", "two"])
}

fn open(log: &[u8], anchor: &[u8]) -> Result<u64, Refusal> {
    let key = key();
    let (log, line) = AnchoredLog::open(log, &AnchorFile::Bytes(anchor), log_id(), &key)?;
    assert_eq!(line, None, "an existing anchor is never begun again");
    Ok(log.log().entries())
}

fn check(pair: &Pair) -> Option<Code> {
    refused(open(&pair.log, &pair.anchor))
}

fn records(anchor: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(anchor).expect("UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn bytes_of(records: &[Value]) -> Vec<u8> {
    records
        .iter()
        .flat_map(|record| (to_text(record) + "\n").into_bytes())
        .collect()
}

/// Changes one record and signs it again with the right key.
fn resigned(anchor: &[u8], index: usize, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut records = records(anchor);
    let record = &mut records[index];
    remove(record, "sig");
    change(record);
    let signature = key().sign(to_text(record).as_bytes()).to_base64url();
    record["sig"] = json!(format!("ed25519:{signature}"));
    bytes_of(&records)
}

fn joined(lines: &[&[u8]], order: &[usize]) -> Vec<u8> {
    order
        .iter()
        .flat_map(|index| lines[*index].iter().copied())
        .collect()
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

#[test]
fn reopens_and_goes_on_where_it_ended() {
    let key = key();
    let pair = two();
    assert_eq!(lines(&pair.log).len(), 2);
    assert_eq!(lines(&pair.anchor).len(), 3);
    assert_eq!(open(&pair.log, &pair.anchor).ok(), Some(2));
    let anchor = AnchorFile::Bytes(&pair.anchor);
    let (mut state, _) = AnchoredLog::open(&pair.log, &anchor, log_id(), &key).expect("reopened");
    let appended = state
        .append(&receipt("letter.draft", "three"))
        .expect("appended");
    let whole = self::pair(&["one", "two", "three"]);
    assert_eq!(
        [&pair.log, appended.log_line.as_bytes()].concat(),
        whole.log
    );
    assert_eq!(
        [&pair.anchor, appended.anchor_line.as_bytes()].concat(),
        whole.anchor
    );
}

#[test]
fn records_have_the_documented_members() {
    let pair = two();
    let records = records(&pair.anchor);
    for (index, record) in records.iter().enumerate() {
        let prefix: Vec<u8> = lines(&pair.log)[..index].concat();
        let mut expected = json!({
            "anchor_version": 2,
            "log_id": log_id().to_string(),
            "anchor_sequence": index,
            "entries": index,
            "byte_length": prefix.len(),
            "file_digest": Digest::of_bytes(&prefix).to_string(),
            "previous_sig": if index == 0 { json!(ZEROS) } else { records[index - 1]["sig"].clone() },
        });
        expected["tail_digest"] = match lines(&prefix).last() {
            Some(line) if index > 0 => {
                let entry: Value = serde_json::from_slice(line).expect("JSON");
                entry["entry_digest"].clone()
            }
            _ => json!(Digest::ZERO.to_string()),
        };
        let signature = key().sign(to_text(&expected).as_bytes()).to_base64url();
        expected["sig"] = json!(format!("ed25519:{signature}"));
        assert_eq!(*record, expected, "record {index}");
    }
}

#[test]
fn begins_only_over_an_empty_log() {
    let key = key();
    let begin = |log: &[u8], anchor: AnchorFile<'_>| {
        let opened = AnchoredLog::open(log, &anchor, log_id(), &key);
        refused(opened.map(|(_, line)| assert!(line.is_some())))
    };
    let pair = two();
    assert_eq!(begin(b"", AnchorFile::Absent), None);
    assert_eq!(
        begin(&pair.log, AnchorFile::Absent),
        Some(Code::ReceiptAnchorMissing)
    );
    let required = Some(Code::ReceiptAnchorRequired);
    assert_eq!(begin(b"", AnchorFile::NotConfigured), required);
    assert_eq!(begin(b"broken", AnchorFile::NotConfigured), required);
    // The log is looked at before its anchor.
    assert_eq!(
        begin(b"broken", AnchorFile::Absent),
        Some(Code::ReceiptLogTruncated)
    );
    let code = begin(b"broken", AnchorFile::Bytes(b"broken"));
    assert_eq!(code, Some(Code::ReceiptLogTruncated));
}

#[test]
fn refuses_anchors_that_are_not_canonical_lines() {
    let pair = two();
    let text = String::from_utf8(pair.anchor.clone()).expect("UTF-8");
    let rows: Vec<(Code, Vec<u8>)> = vec![
        (Code::ReceiptAnchorEmpty, Vec::new()),
        (Code::ReceiptAnchorTruncated, b" ".to_vec()),
        (Code::ReceiptAnchorTruncated, text.trim_end().into()),
        (Code::ReceiptAnchorTruncated, text[..text.len() - 40].into()),
        (Code::ReceiptAnchorInvalidJson, b"\n".to_vec()),
        (Code::ReceiptAnchorInvalidJson, b" \n".to_vec()),
        (Code::ReceiptAnchorInvalidJson, format!("{text}\n").into()),
        (
            Code::ReceiptAnchorInvalidJson,
            format!("\u{feff}{text}").into(),
        ),
        (
            Code::ReceiptAnchorInvalidJson,
            text.replacen('{', "{\"sig\":1,", 1).into(),
        ),
        (
            Code::ReceiptAnchorInvalidRecord,
            text.replace('\n', "\r\n").into(),
        ),
        (
            Code::ReceiptAnchorInvalidRecord,
            text.replacen(':', ": ", 1).into(),
        ),
        (Code::ReceiptAnchorInvalidRecord, b"[]\n".to_vec()),
        (Code::ReceiptAnchorInvalidRecord, b"{}\n".to_vec()),
    ];
    for (index, (code, anchor)) in rows.into_iter().enumerate() {
        assert_eq!(check(&pair), None);
        assert_eq!(refused(open(&pair.log, &anchor)), Some(code), "row {index}");
    }
}

type Change = fn(&mut Value);

/// Changes of one record that is signed again, by the index of the record.
const CHAINING: &[(Code, usize, Change)] = &[
    (Code::ReceiptAnchorMigrationRequired, 0, |it| {
        it["anchor_version"] = json!(1)
    }),
    (Code::ReceiptAnchorMigrationRequired, 2, |it| {
        it["anchor_version"] = json!(1)
    }),
    (Code::ReceiptAnchorInvalidRecord, 0, |it| {
        it["anchor_version"] = json!(3)
    }),
    (Code::ReceiptAnchorInvalidRecord, 0, |it| {
        it["surplus"] = json!(1)
    }),
    (Code::ReceiptAnchorInvalidRecord, 0, |it| {
        it["log_id"] = json!(Digest::ZERO.to_string())
    }),
    (Code::ReceiptAnchorInvalidRecord, 0, |it| {
        it["anchor_sequence"] = json!(1)
    }),
    (Code::ReceiptAnchorInvalidRecord, 2, |it| {
        it["anchor_sequence"] = json!(3)
    }),
    (Code::ReceiptAnchorInvalidRecord, 1, |it| {
        it["entries"] = json!(-1)
    }),
    (Code::ReceiptAnchorInvalidRecord, 1, |it| {
        it["byte_length"] = json!("10")
    }),
    (Code::ReceiptAnchorInvalidRecord, 1, |it| {
        it["tail_digest"] = Value::Null
    }),
    (Code::ReceiptAnchorInvalidRecord, 1, |it| {
        it["previous_sig"] = json!("0")
    }),
    (Code::ReceiptAnchorInvalidGenesis, 0, |it| {
        it["entries"] = json!(1)
    }),
    (Code::ReceiptAnchorInvalidGenesis, 0, |it| {
        it["byte_length"] = json!(1)
    }),
    (Code::ReceiptAnchorInvalidGenesis, 0, |it| {
        it["tail_digest"] = it["file_digest"].clone();
    }),
    (Code::ReceiptAnchorInvalidGenesis, 0, |it| {
        it["file_digest"] = json!(Digest::ZERO.to_string());
    }),
    (Code::ReceiptAnchorInvalidGenesis, 0, |it| {
        it["previous_sig"] = json!(ZEROS.replacen('0', "A", 1));
    }),
    (Code::ReceiptAnchorChainMismatch, 1, |it| {
        it["entries"] = json!(2)
    }),
    (Code::ReceiptAnchorChainMismatch, 1, |it| {
        it["entries"] = json!(0)
    }),
    (Code::ReceiptAnchorChainMismatch, 1, |it| {
        it["previous_sig"] = json!(ZEROS)
    }),
    // The record itself is fine, but the next one names the signature that it had.
    (Code::ReceiptAnchorChainMismatch, 1, |it| {
        it["byte_length"] = json!(7)
    }),
    (Code::ReceiptLogRewrite, 2, |it| {
        it["byte_length"] = json!(7)
    }),
    (Code::ReceiptLogRewrite, 2, |it| {
        it["tail_digest"] = json!(Digest::ZERO.to_string())
    }),
    (Code::ReceiptLogRewrite, 2, |it| {
        it["file_digest"] = json!(Digest::ZERO.to_string())
    }),
];

#[test]
fn refuses_signed_records_that_do_not_chain() {
    let pair = two();
    for (index, (code, record, change)) in CHAINING.iter().enumerate() {
        let same = resigned(&pair.anchor, *record, |_| ());
        assert_eq!(same, pair.anchor, "signing is deterministic");
        let anchor = resigned(&pair.anchor, *record, change);
        assert_eq!(
            refused(open(&pair.log, &anchor)),
            Some(*code),
            "row {index}"
        );
    }
}

#[test]
fn refuses_forged_signatures_and_another_key_or_log() {
    let pair = two();
    let failed = Some(Code::ReceiptAnchorAuthenticationFailed);
    for index in 0..3 {
        let mut forged = records(&pair.anchor);
        forged[index]["sig"] = json!(format!("ed25519:{}", "A".repeat(86)));
        assert_eq!(
            refused(open(&pair.log, &bytes_of(&forged))),
            failed,
            "record {index}"
        );
        let mut edited = records(&pair.anchor);
        edited[index]["byte_length"] = json!(5);
        assert_eq!(
            refused(open(&pair.log, &bytes_of(&edited))),
            failed,
            "record {index}"
        );
    }
    let anchor = AnchorFile::Bytes(&pair.anchor);
    let other_key = signing_key("urn:cl:key:example.test:anchor", 0x52);
    let opened = AnchoredLog::open(&pair.log, &anchor, log_id(), &other_key);
    assert_eq!(refused(opened), failed);
    let key = key();
    let elsewhere = log_id_of_path("/synthetic/other.jsonl");
    let opened = AnchoredLog::open(&pair.log, &anchor, elsewhere, &key);
    assert_eq!(refused(opened), Some(Code::ReceiptAnchorInvalidRecord));
}

#[test]
fn refuses_records_in_another_order() {
    let pair = two();
    let parts = lines(&pair.anchor);
    for (code, order) in [
        (Code::ReceiptAnchorInvalidRecord, &[1, 0, 2][..]),
        (Code::ReceiptAnchorInvalidRecord, &[1, 2]),
        (Code::ReceiptAnchorInvalidRecord, &[0, 2]),
        (Code::ReceiptAnchorInvalidRecord, &[0, 1, 2, 2]),
        (Code::ReceiptLogUnanchoredSuffix, &[0, 1]),
        (Code::ReceiptLogUnanchoredSuffix, &[0]),
    ] {
        let anchor = joined(&parts, order);
        assert_eq!(refused(open(&pair.log, &anchor)), Some(code), "{order:?}");
    }
}

#[test]
fn tells_rollback_suffix_and_rewrite_apart() {
    let (ours, other) = (two(), pair(&["one", "2wo"]));
    let log = lines(&ours.log);
    assert_eq!(check(&ours), None);
    let rolled_back = joined(&log, &[0]);
    let code = refused(open(&rolled_back, &ours.anchor));
    assert_eq!(code, Some(Code::ReceiptLogRollback));
    assert_eq!(
        refused(open(b"", &ours.anchor)),
        Some(Code::ReceiptLogRollback)
    );
    let longer = pair(&["one", "two", "three"]);
    let code = refused(open(&longer.log, &ours.anchor));
    assert_eq!(code, Some(Code::ReceiptLogUnanchoredSuffix));
    assert_eq!(other.log.len(), ours.log.len());
    let code = refused(open(&other.log, &ours.anchor));
    assert_eq!(code, Some(Code::ReceiptLogRewrite));
}

#[test]
fn a_refused_receipt_changes_neither_log_nor_anchor() {
    let key = key();
    let pair = two();
    let anchor = AnchorFile::Bytes(&pair.anchor);
    let (mut state, _) = AnchoredLog::open(&pair.log, &anchor, log_id(), &key).expect("opened");
    let foreign = cl_model::record::finalize(json!({}), "urn:cl:receipt:").expect("a record");
    assert_eq!(refused(state.append(&foreign)), Some(Code::InvalidReceipt));
    let appended = state
        .append(&receipt("letter.draft", "three"))
        .expect("appended");
    let whole = self::pair(&["one", "two", "three"]);
    assert!(whole.log.ends_with(appended.log_line.as_bytes()));
    assert!(whole.anchor.ends_with(appended.anchor_line.as_bytes()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_change_of_one_byte_is_refused(place in any::<prop::sample::Index>(), flip in 1u8..=255) {
        let valid = two();
        prop_assert_eq!(check(&valid), None);
        let mut changed = valid.clone();
        let index = place.index(valid.log.len() + valid.anchor.len());
        match index.checked_sub(valid.log.len()) {
            None => changed.log[index] ^= flip,
            Some(index) => changed.anchor[index] ^= flip,
        }
        prop_assert!(check(&changed).is_some(), "byte {} of the pair", index);
    }

    #[test]
    fn any_cut_is_refused_or_a_shorter_pair(
        log in any::<prop::sample::Index>(),
        anchor in any::<prop::sample::Index>(),
        at_lines in any::<bool>(),
    ) {
        let valid = two();
        let cut = |bytes: &[u8], place: prop::sample::Index| {
            if at_lines {
                let lines = lines(bytes);
                lines[..place.index(lines.len() + 1)].concat()
            } else {
                bytes[..place.index(bytes.len() + 1)].to_vec()
            }
        };
        let shorter = Pair { log: cut(&valid.log, log), anchor: cut(&valid.anchor, anchor) };
        let consistent = ["one", "two"];
        let is_consistent = (0..=2).any(|count| {
            let pair = pair(&consistent[..count]);
            pair.log == shorter.log && pair.anchor == shorter.anchor
        });
        prop_assert_eq!(check(&shorter).is_none(), is_consistent);
    }
}
