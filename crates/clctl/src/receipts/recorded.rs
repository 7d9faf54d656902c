//! A receipt with what is known beside it, and its line in an export.

use cl_model::canonical;
use cl_model::explanation::Word;
use cl_model::json::{self, Limits};
use cl_model::leaf::{self, Salt};
use cl_model::time::UnixTime;
use cl_wire::receipt::v1::{Attestation, RecordedReceipt};
use serde_json::{Value, json};

use crate::policy::time;

/// A receipt has at most 65,536 bytes; its text may have grown by the members that the store adds.
const MAX_RECEIPT_BYTES: usize = 128 * 1024;

/// The longest line: a receipt, a proof of up to 64 hashes, and a checkpoint with signatures.
pub(crate) const MAX_LINE_BYTES: usize = 512 * 1024;

/// How many members a line has.
pub(crate) const LINE_MEMBERS: usize = 6;

/// A receipt as it was recorded; its text is canonical.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) sequence: u64,
    pub(crate) recorded_at: UnixTime,
    pub(crate) writer: String,
    pub(crate) word: Word,
    pub(crate) receipt: Value,
    pub(crate) text: String,
    pub(crate) salt: Salt,
    /// The tag of its subject, as the store has it; in no export.
    pub(crate) subject_tag: Option<String>,
}

impl Recorded {
    /// What the store answers; none if it cannot be read.
    pub(crate) fn of_store(recorded: RecordedReceipt) -> Option<Self> {
        let limits = Limits::network(MAX_RECEIPT_BYTES);
        let receipt = json::parse(&recorded.receipt, limits).ok()?;
        let word = match recorded.attestation() {
            Attestation::Authority => Word::Authority,
            Attestation::Consumer => Word::Consumer,
            Attestation::Unspecified => return None,
        };
        let text = canonical::to_text(&receipt);
        if text.as_bytes() != recorded.receipt {
            return None;
        }
        Some(Self {
            sequence: recorded.entry?.sequence,
            recorded_at: UnixTime::parse(&time(recorded.recorded_at.as_ref())?)?,
            writer: recorded.writer,
            word,
            receipt,
            text,
            salt: Salt::read(&recorded.salt)?,
            subject_tag: recorded.routing?.subject_tag,
        })
    }

    /// Reads the members of a line.
    pub(crate) fn of_members(line: &Value, salt: Salt) -> Option<Self> {
        let receipt = line.get("receipt")?;
        let words = [Word::Authority, Word::Consumer];
        let recorded_at = line["recorded_at"].as_str()?;
        let recorded = Self {
            sequence: line["sequence"].as_u64()?,
            recorded_at: UnixTime::parse(recorded_at)?,
            writer: line["writer"].as_str()?.to_owned(),
            word: words
                .into_iter()
                .find(|word| line["attestation"] == word.as_str())?,
            text: canonical::to_text(receipt),
            receipt: receipt.clone(),
            salt,
            subject_tag: None,
        };
        let is_exact = line.as_object()?.len() == LINE_MEMBERS
            && recorded.recorded_at.to_string() == recorded_at;
        is_exact.then_some(recorded)
    }

    /// The entry that commits to it.
    pub(crate) fn leaf(&self) -> Vec<u8> {
        leaf::entry(&self.salt, &self.text).to_vec()
    }

    /// The receipt and what is known beside it.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "sequence": self.sequence,
            "recorded_at": self.recorded_at.to_string(),
            "writer": self.writer,
            "attestation": self.word.as_str(),
            "receipt": self.receipt,
        })
    }

    /// A member of the receipt that is a text.
    pub(crate) fn member(&self, name: &str) -> Option<&str> {
        self.receipt[name].as_str()
    }

    /// The receipt's URN; empty if it has none, which its check refuses.
    pub(crate) fn receipt_ref(&self) -> &str {
        self.member("id").unwrap_or_default()
    }
}
