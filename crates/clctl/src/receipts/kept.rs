//! What is there for an entry of a log, and its line in an export.

use cl_model::canonical;
use cl_model::json::{self, Limits};
use cl_model::leaf::Salt;
use cl_model::time::UnixTime;
use cl_tlog::ProofFile;
use cl_wire::receipt::v1::RecordedReceipt;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use super::fault::Why;
use super::recorded::{LINE_MEMBERS, MAX_LINE_BYTES, Recorded};
use crate::policy::time;

/// A receipt, or what an erasure left of one.
#[derive(Debug)]
pub(crate) enum Kept {
    Receipt(Recorded),
    Tombstone(Tombstone),
}

/// What an erasure left of a receipt.
#[derive(Debug)]
pub(crate) struct Tombstone {
    sequence: u64,
    recorded_at: UnixTime,
    erased_at: UnixTime,
    retention_class: String,
    /// The entry in the log.
    leaf: Vec<u8>,
}

impl Kept {
    /// What the store answers; none if it cannot be read.
    pub(crate) fn of_store(recorded: RecordedReceipt) -> Option<Self> {
        if recorded.tombstone.is_some() {
            return Tombstone::of_store(recorded).map(Self::Tombstone);
        }
        Recorded::of_store(recorded).map(Self::Receipt)
    }

    /// Reads a line, without its line feed, and the proof in it.
    pub(crate) fn of_line(line: &[u8]) -> Result<(Self, ProofFile), Why> {
        let value = json::parse(line, Limits::network(MAX_LINE_BYTES).wrapped(1));
        let value = value.map_err(|_| Why::LineMalformed)?;
        if canonical::to_text(&value).as_bytes() != line {
            return Err(Why::LineMalformed);
        }
        let proof = value["proof"].as_str().unwrap_or_default();
        let proof = ProofFile::parse(proof.as_bytes()).map_err(|_| Why::ProofMalformed)?;
        if value.get("leaf").is_some() {
            let tombstone = Tombstone::of_members(&value).ok_or(Why::LineMalformed)?;
            if !proof.extra.is_empty() {
                return Err(Why::ProofMalformed);
            }
            return Ok((Self::Tombstone(tombstone), proof));
        }
        let salt = Salt::read(&proof.extra).ok_or(Why::ProofMalformed)?;
        let recorded = Recorded::of_members(&value, salt).ok_or(Why::LineMalformed)?;
        Ok((Self::Receipt(recorded), proof))
    }

    pub(crate) const fn sequence(&self) -> u64 {
        match self {
            Self::Receipt(recorded) => recorded.sequence,
            Self::Tombstone(tombstone) => tombstone.sequence,
        }
    }

    pub(crate) const fn recorded_at(&self) -> UnixTime {
        match self {
            Self::Receipt(recorded) => recorded.recorded_at,
            Self::Tombstone(tombstone) => tombstone.recorded_at,
        }
    }

    /// The entry of the log: the one that commits to the receipt, or the one that is left.
    pub(crate) fn leaf(&self) -> Vec<u8> {
        match self {
            Self::Receipt(recorded) => recorded.leaf(),
            Self::Tombstone(tombstone) => tombstone.leaf.clone(),
        }
    }

    /// What stands in its proof file beside the proof: the salt, while there is one.
    pub(crate) fn extra(&self) -> Vec<u8> {
        match self {
            Self::Receipt(recorded) => recorded.salt.as_bytes().to_vec(),
            Self::Tombstone(_) => Vec::new(),
        }
    }

    /// The line of an export, with its line feed.
    pub(crate) fn to_line(&self, proof: &ProofFile) -> String {
        let mut line = self.to_json();
        line["proof"] = proof.to_string().into();
        let mut text = canonical::to_text(&line);
        text.push('\n');
        text
    }

    /// It and what is known beside it.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Receipt(recorded) => recorded.to_json(),
            Self::Tombstone(tombstone) => tombstone.to_json(),
        }
    }
}

impl Tombstone {
    fn of_store(recorded: RecordedReceipt) -> Option<Self> {
        let is_empty = recorded.receipt.is_empty() && recorded.salt.is_empty();
        let tombstone = recorded.tombstone.filter(|_| is_empty)?;
        Some(Self {
            sequence: recorded.entry?.sequence,
            recorded_at: UnixTime::parse(&time(recorded.recorded_at.as_ref())?)?,
            erased_at: UnixTime::parse(&time(tombstone.erased_at.as_ref())?)?,
            retention_class: tombstone.retention_class,
            leaf: tombstone.leaf,
        })
    }

    fn of_members(line: &Value) -> Option<Self> {
        let text = |name: &str| line[name].as_str();
        let moment = |name: &str| {
            let written = text(name)?;
            UnixTime::parse(written).filter(|time| time.to_string() == written)
        };
        let tombstone = Self {
            sequence: line["sequence"].as_u64()?,
            recorded_at: moment("recorded_at")?,
            erased_at: moment("erased_at")?,
            retention_class: text("retention_class")?.to_owned(),
            leaf: HEXLOWER.decode(text("leaf")?.as_bytes()).ok()?,
        };
        (line.as_object()?.len() == LINE_MEMBERS).then_some(tombstone)
    }

    fn to_json(&self) -> Value {
        json!({
            "sequence": self.sequence,
            "recorded_at": self.recorded_at.to_string(),
            "erased_at": self.erased_at.to_string(),
            "retention_class": self.retention_class,
            "leaf": HEXLOWER.encode(&self.leaf),
        })
    }
}
