//! The authenticated anchor of a portable receipt log, version 2: one signed line per state.
//!
//! A log alone cannot show that its end was cut off; the anchor, kept elsewhere, can. Both pass
//! through [`AnchoredLog`], which never starts an anchor over existing receipts.

use serde_json::{Map, Value, json};

use crate::canonical;
use crate::digest::Digest;
use crate::json::read::FromJson;
use crate::key::{PublicKey, Signature, SigningKey};
use crate::log::{LogState, lines, read_line};
use crate::opaque::opaque_debug;
use crate::record::Record;
use crate::refusal::{Code, Refusal};
use crate::scalar::integer;

const ANCHOR_VERSION: i64 = 2;
const RETIRED_VERSION: i64 = 1;
const ANCHOR_MEMBERS: usize = 9;
const SIGNATURE_PREFIX: &str = "ed25519:";

/// The signature before the first: 86 zeros.
const GENESIS_SIGNATURE: &str = "ed25519:00000000000000000000000000000000000000000000000000000000000000000000000000000000000000";

/// The identity of the log at a path, as the profile binds it.
pub fn log_id_of_path(absolute_path: &str) -> Digest {
    Digest::of_json(&json!({"receipt_log_path": absolute_path}))
}

/// The anchor that a log is opened with.
#[derive(Debug)]
pub enum AnchorFile<'a> {
    /// None is configured.
    NotConfigured,
    /// One is configured, and there is no file yet.
    Absent,
    /// The file's bytes.
    Bytes(&'a [u8]),
}

/// The last record of a verified anchor.
#[derive(Clone, Debug)]
struct AnchorState {
    sequence: i64,
    entries: i64,
    tail: Digest,
    byte_length: i64,
    file_digest: Digest,
    signature: String,
}

/// A receipt log that agrees with its anchor, both kept as bytes by the caller.
#[derive(Debug)]
pub struct AnchoredLog<'a> {
    log_id: Digest,
    key: &'a SigningKey,
    log: LogState,
    anchor: AnchorState,
}

/// What a caller writes, and makes durable, in this order.
pub struct Appended {
    /// To the end of the log.
    pub log_line: String,
    /// To the end of the anchor, once the log line is durable.
    pub anchor_line: String,
}

opaque_debug!(Appended);

impl<'a> AnchoredLog<'a> {
    /// Verifies a log, then its anchor, then that they agree. A new log gets a genesis record: the
    /// anchor line to write first, if there is one.
    ///
    /// # Errors
    ///
    /// [`Code::ReceiptAnchorRequired`] without an anchor, those of [`LogState::verify`],
    /// [`Code::ReceiptAnchorMissing`] for a log with receipts and no anchor file,
    /// [`Code::ReceiptAnchorEmpty`], [`Code::ReceiptAnchorTruncated`],
    /// [`Code::ReceiptAnchorInvalidJson`], [`Code::ReceiptAnchorInvalidRecord`],
    /// [`Code::ReceiptAnchorMigrationRequired`], [`Code::ReceiptAnchorAuthenticationFailed`],
    /// [`Code::ReceiptAnchorInvalidGenesis`], [`Code::ReceiptAnchorChainMismatch`], then
    /// [`Code::ReceiptLogRollback`], [`Code::ReceiptLogUnanchoredSuffix`] or
    /// [`Code::ReceiptLogRewrite`].
    pub fn open(
        log: &[u8],
        anchor: &AnchorFile<'_>,
        log_id: Digest,
        key: &'a SigningKey,
    ) -> Result<(Self, Option<String>), Refusal> {
        if matches!(anchor, AnchorFile::NotConfigured) {
            return Err(Code::ReceiptAnchorRequired.into());
        }
        let log = LogState::verify(log)?;
        let (anchor, line) = match anchor {
            AnchorFile::Bytes(bytes) => (verify(bytes, log_id, &key.public_key())?, None),
            AnchorFile::Absent | AnchorFile::NotConfigured if log.entries() > 0 => {
                return Err(Code::ReceiptAnchorMissing.into());
            }
            AnchorFile::Absent | AnchorFile::NotConfigured => {
                let (line, state) = sign(&log, log_id, 0, GENESIS_SIGNATURE, key);
                (state, Some(line))
            }
        };
        anchor.check_log(&log)?;
        Ok((
            Self {
                log_id,
                key,
                log,
                anchor,
            },
            line,
        ))
    }

    /// Appends a receipt to log and anchor.
    ///
    /// # Errors
    ///
    /// Those of [`LogState::append`].
    pub fn append(&mut self, receipt: &Record) -> Result<Appended, Refusal> {
        let log_line = self.log.append(receipt)?;
        let sequence = self.anchor.sequence.saturating_add(1);
        let previous = &self.anchor.signature;
        let (anchor_line, anchor) = sign(&self.log, self.log_id, sequence, previous, self.key);
        self.anchor = anchor;
        Ok(Appended {
            log_line,
            anchor_line,
        })
    }

    /// The log's state.
    pub const fn log(&self) -> &LogState {
        &self.log
    }
}

impl AnchorState {
    fn check_log(&self, log: &LogState) -> Result<(), Refusal> {
        let entries = i64::try_from(log.entries()).unwrap_or(i64::MAX);
        let code = match entries.cmp(&self.entries) {
            std::cmp::Ordering::Less => Code::ReceiptLogRollback,
            std::cmp::Ordering::Greater => Code::ReceiptLogUnanchoredSuffix,
            std::cmp::Ordering::Equal => {
                let is_same = self.tail == log.tail()
                    && u64::try_from(self.byte_length) == Ok(log.byte_length())
                    && self.file_digest == log.file_digest();
                if is_same {
                    return Ok(());
                }
                Code::ReceiptLogRewrite
            }
        };
        Err(code.into())
    }

    fn is_genesis(&self, previous_signature: &str) -> bool {
        self.entries == 0
            && self.byte_length == 0
            && self.tail == Digest::ZERO
            && self.file_digest == Digest::of_bytes(b"")
            && previous_signature == GENESIS_SIGNATURE
    }
}

/// Signs the anchor line of a log state.
fn sign(
    log: &LogState,
    log_id: Digest,
    sequence: i64,
    previous_signature: &str,
    key: &SigningKey,
) -> (String, AnchorState) {
    let mut record = json!({
        "anchor_version": ANCHOR_VERSION,
        "log_id": log_id.to_string(),
        "anchor_sequence": sequence,
        "entries": log.entries(),
        "tail_digest": log.tail().to_string(),
        "byte_length": log.byte_length(),
        "file_digest": log.file_digest().to_string(),
        "previous_sig": previous_signature,
    });
    let signature = key.sign(canonical::to_text(&record).as_bytes());
    let signature = format!("{SIGNATURE_PREFIX}{}", signature.to_base64url());
    record["sig"] = signature.as_str().into();
    let state = AnchorState {
        sequence,
        entries: i64::try_from(log.entries()).unwrap_or(i64::MAX),
        tail: log.tail(),
        byte_length: i64::try_from(log.byte_length()).unwrap_or(i64::MAX),
        file_digest: log.file_digest(),
        signature,
    };
    (canonical::to_text(&record) + "\n", state)
}

/// Verifies a whole anchor and gives its last record.
fn verify(anchor: &[u8], log_id: Digest, key: &PublicKey) -> Result<AnchorState, Refusal> {
    let mut check = AnchorCheck::new(log_id, key.clone());
    for line in lines(anchor, Code::ReceiptAnchorTruncated)? {
        check.line(line)?;
    }
    check.last.ok_or_else(|| Code::ReceiptAnchorEmpty.into())
}

/// Verifies an anchor line by line, for whoever has the public key alone.
#[derive(Clone, Debug)]
pub struct AnchorCheck {
    log_id: Digest,
    key: PublicKey,
    last: Option<AnchorState>,
}

impl AnchorCheck {
    /// Begins before the first line.
    pub const fn new(log_id: Digest, key: PublicKey) -> Self {
        Self {
            log_id,
            key,
            last: None,
        }
    }

    /// Verifies the next line, without its line feed.
    ///
    /// # Errors
    ///
    /// Those of [`AnchoredLog::open`] that are about a record.
    pub fn line(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let record = read_line(
            line,
            Code::ReceiptAnchorInvalidJson,
            Code::ReceiptAnchorInvalidRecord,
        )?;
        let last = self.last.as_ref();
        let expected = last.map_or(0, |last| last.sequence.saturating_add(1));
        let (state, previous_signature) = read_record(&record, expected, self.log_id)?;
        if !is_signed(&record, &state.signature, &self.key) {
            return Err(Code::ReceiptAnchorAuthenticationFailed.into());
        }
        match last {
            None if !state.is_genesis(previous_signature) => {
                Err(Code::ReceiptAnchorInvalidGenesis.into())
            }
            Some(last)
                if Some(state.entries) != last.entries.checked_add(1)
                    || previous_signature != last.signature =>
            {
                Err(Code::ReceiptAnchorChainMismatch.into())
            }
            None | Some(_) => {
                self.last = Some(state);
                Ok(())
            }
        }
    }

    /// Checks that the last line states this log.
    ///
    /// # Errors
    ///
    /// [`Code::ReceiptAnchorEmpty`], or those of [`AnchoredLog::open`] for an anchor and a log that
    /// do not agree.
    pub fn finish(&self, log: &LogState) -> Result<(), Refusal> {
        let last = self.last.as_ref().ok_or(Code::ReceiptAnchorEmpty)?;
        last.check_log(log)
    }
}

fn read_record(
    record: &Map<String, Value>,
    expected_sequence: i64,
    log_id: Digest,
) -> Result<(AnchorState, &str), Refusal> {
    let number = |name: &str| record.get(name).and_then(|it| integer(it).ok());
    let digest = |name: &str| record.get(name).and_then(|it| Digest::from_json(it).ok());
    let signature = |name: &str| {
        let text = record.get(name)?.as_str()?;
        let tail = text.strip_prefix(SIGNATURE_PREFIX)?;
        (tail.len() == 86).then_some(text)
    };
    if number("anchor_version") == Some(RETIRED_VERSION) {
        return Err(Code::ReceiptAnchorMigrationRequired.into());
    }
    let read = || {
        let is_of_this_log = record.len() == ANCHOR_MEMBERS
            && number("anchor_version") == Some(ANCHOR_VERSION)
            && number("anchor_sequence") == Some(expected_sequence)
            && digest("log_id") == Some(log_id);
        let state = AnchorState {
            sequence: expected_sequence,
            entries: number("entries").filter(|entries| *entries >= 0)?,
            tail: digest("tail_digest")?,
            byte_length: number("byte_length").filter(|length| *length >= 0)?,
            file_digest: digest("file_digest")?,
            signature: signature("sig")?.to_owned(),
        };
        is_of_this_log.then_some((state, signature("previous_sig")?))
    };
    read().ok_or_else(|| Code::ReceiptAnchorInvalidRecord.into())
}

fn is_signed(record: &Map<String, Value>, signature: &str, key: &PublicKey) -> bool {
    let message = canonical::object_without(record, &["sig"]);
    signature
        .strip_prefix(SIGNATURE_PREFIX)
        .and_then(Signature::from_base64url)
        .is_some_and(|signature| key.verifies(message.as_bytes(), &signature))
}
