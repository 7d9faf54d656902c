//! The portable receipt log: one canonical line per receipt, each naming the one before.
//!
//! An interchange format. Every check reads the whole log, so the cost of an append grows with the
//! log; production stores keep receipts in another form and export this one.

use std::collections::HashSet;

use ring::digest::{Context, SHA256};
use serde_json::{Map, Value, json};

use crate::canonical;
use crate::digest::Digest;
use crate::json::read::FromJson;
use crate::json::{self, Limits};
use crate::object::Receipt;
use crate::receipt::{self, MAX_RECEIPT_BYTES, consumption};
use crate::record::Record;
use crate::refusal::{Code, Refusal};
use crate::scalar::integer;

const LOG_VERSION: i64 = 1;
const ENTRY_MEMBERS: usize = 5;

/// The longest line of a log or an anchor, in bytes: any receipt and the members around it.
const MAX_LINE_BYTES: usize = MAX_RECEIPT_BYTES + 1024;

/// What a verified log amounts to.
#[derive(Clone)]
pub struct LogState {
    entries: u64,
    tail: Digest,
    byte_length: u64,
    running: Context,
    consumed: HashSet<(String, String)>,
}

impl LogState {
    /// The state of an empty log.
    pub fn empty() -> Self {
        Self {
            entries: 0,
            tail: Digest::ZERO,
            byte_length: 0,
            running: Context::new(&SHA256),
            consumed: HashSet::new(),
        }
    }

    /// Verifies a whole log.
    ///
    /// # Errors
    ///
    /// [`Code::ReceiptLogTruncated`], [`Code::ReceiptLogInvalidJson`],
    /// [`Code::ReceiptLogInvalidEntry`] (not a canonical entry), [`Code::ReceiptLogChainMismatch`],
    /// [`Code::ReceiptReplayConflict`], or those of [`receipt::check`].
    pub fn verify(log: &[u8]) -> Result<Self, Refusal> {
        let mut state = Self::empty();
        for line in lines(log, Code::ReceiptLogTruncated)? {
            let entry = read_line(
                line,
                Code::ReceiptLogInvalidJson,
                Code::ReceiptLogInvalidEntry,
            )?;
            let (receipt, digest) = state.check_entry(&entry)?;
            state.consume(&receipt::check(receipt)?)?;
            state.advance(line, digest);
        }
        Ok(state)
    }

    /// Appends a receipt; gives the line to write, its final line feed included. A refusal leaves
    /// the state as it was.
    ///
    /// # Errors
    ///
    /// [`Code::ReceiptReplayConflict`], or those of [`receipt::check`].
    pub fn append(&mut self, receipt: &Record) -> Result<String, Refusal> {
        self.consume(&receipt::check(receipt.value())?)?;
        let mut entry = json!({
            "log_version": LOG_VERSION,
            "sequence": self.entries.saturating_add(1),
            "previous_entry_digest": self.tail.to_string(),
            "receipt": receipt.value(),
        });
        let digest = Digest::of_json(&entry);
        entry["entry_digest"] = digest.to_string().into();
        let mut line = canonical::to_text(&entry);
        self.advance(line.as_bytes(), digest);
        line.push('\n');
        Ok(line)
    }

    /// How many receipts the log has.
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// The digest of its last entry; all zeros for an empty log.
    pub const fn tail(&self) -> Digest {
        self.tail
    }

    /// Its length in bytes.
    pub const fn byte_length(&self) -> u64 {
        self.byte_length
    }

    /// The digest of its bytes.
    pub fn file_digest(&self) -> Digest {
        let mut hash = [0; 32];
        hash.copy_from_slice(self.running.clone().finish().as_ref());
        Digest::from(hash)
    }

    /// Whether this actor already consumed this bundle with success.
    pub fn is_consumed(&self, actor: &str, bundle: &str) -> bool {
        self.consumed
            .contains(&(actor.to_owned(), bundle.to_owned()))
    }

    /// Checks an entry's own members and its place in the chain; gives its receipt and its digest.
    fn check_entry<'a>(
        &self,
        entry: &'a Map<String, Value>,
    ) -> Result<(&'a Value, Digest), Refusal> {
        let actual =
            Digest::of_bytes(canonical::object_without(entry, &["entry_digest"]).as_bytes());
        let number = |name: &str| entry.get(name).and_then(|value| integer(value).ok());
        let digest = |name: &str| entry.get(name).and_then(|it| Digest::from_json(it).ok());
        let receipt = entry
            .get("receipt")
            .filter(|_| entry.len() == ENTRY_MEMBERS)
            .ok_or(Code::ReceiptLogInvalidEntry)?;
        let expected = i64::try_from(self.entries.saturating_add(1)).ok();
        let holds = number("log_version") == Some(LOG_VERSION)
            && number("sequence") == expected
            && digest("previous_entry_digest") == Some(self.tail)
            && digest("entry_digest") == Some(actual);
        if holds {
            return Ok((receipt, actual));
        }
        Err(Code::ReceiptLogChainMismatch.into())
    }

    /// Takes note of a consumption, of which there is at most one per actor and bundle.
    fn consume(&mut self, receipt: &Receipt) -> Result<(), Refusal> {
        let is_repeated = consumption(receipt).is_some_and(|key| !self.consumed.insert(key));
        if is_repeated {
            return Err(Code::ReceiptReplayConflict.into());
        }
        Ok(())
    }

    fn advance(&mut self, line: &[u8], digest: Digest) {
        self.entries = self.entries.saturating_add(1);
        self.tail = digest;
        self.byte_length = self.byte_length.saturating_add(line.len() as u64 + 1);
        self.running.update(line);
        self.running.update(b"\n");
    }
}

impl std::fmt::Debug for LogState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "LogState({} entries, tail {})",
            self.entries, self.tail
        )
    }
}

/// The lines of a file, split on LF alone and without it; nothing may follow the last LF.
pub(crate) fn lines(file: &[u8], truncated: Code) -> Result<impl Iterator<Item = &[u8]>, Refusal> {
    let body = match file.split_last() {
        None => None,
        Some((b'\n', body)) => Some(body),
        Some(_) => return Err(truncated.into()),
    };
    Ok(body
        .into_iter()
        .flat_map(|body| body.split(|byte| *byte == b'\n')))
}

/// Reads one line as an object in canonical form.
pub(crate) fn read_line(
    line: &[u8],
    invalid_json: Code,
    invalid_entry: Code,
) -> Result<Map<String, Value>, Refusal> {
    let value = json::parse(line, Limits::profile(MAX_LINE_BYTES)).map_err(|_| invalid_json)?;
    value
        .as_object()
        .filter(|object| canonical::object_to_text(object).as_bytes() == line)
        .cloned()
        .ok_or_else(|| invalid_entry.into())
}
