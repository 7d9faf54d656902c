//! Reading: single receipts, lists of them, open intents, and the whole log.

use std::sync::Arc;

use cl_model::digest::Digest;
use cl_model::receipt::consumption;
use cl_model::refusal::Code;

use crate::core::chain;
use crate::core::command::operation_slot;
use crate::core::intents::State;
use crate::core::records::{self, EntryRecord, OperationKeyRecord, OperationRecord, PlaceRecord};
use crate::core::routing::Tenant;
use crate::error::Error;
use crate::store::{Selector, Slot, Store, number};

/// After this many bytes of receipts or members a page ends, so that an answer fits into what a
/// gRPC client takes by default.
const PAGE_BYTES: usize = 2 << 20;

/// How many places are read at once.
const CHUNK: u64 = 64;

/// How many entries of the log are checked in one go.
const VERIFY_CHUNK: u64 = 256;

/// How many of the last entries are checked before the store serves.
const TAIL: u64 = 64;

/// Reads what is durable. Every call blocks.
#[derive(Clone)]
pub struct Reader {
    store: Arc<dyn Store>,
}

/// An entry and its sequence.
pub type Numbered = (u64, EntryRecord);

/// What receipts a reader asks for.
pub struct Query {
    /// Whose receipts.
    pub tenant: Tenant,
    /// Which of them.
    pub selector: Selector,
    /// Recorded at this time or later.
    pub from_ms: Option<u64>,
    /// Recorded before this time.
    pub before_ms: Option<u64>,
}

/// A page of a list.
pub struct Page<T, P> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next one starts.
    pub next: Option<P>,
    /// How many items all pages have.
    pub total: u64,
}

/// An intent that is not settled.
pub struct OpenIntent {
    /// The operation.
    pub operation: OperationRecord,
    /// The store's own receipt about it.
    pub entry: Option<Numbered>,
}

/// How far a check of the log has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Entries that verified.
    pub checked: u64,
    /// The digest of the last of them.
    pub digest: Digest,
    /// Entries that are to be checked.
    pub entries: u64,
    head: Digest,
}

/// Where a log does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The entry at fault.
    pub sequence: u64,
    /// Why.
    pub code: Code,
}

impl Reader {
    /// Reads from this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// One receipt of a tenant; of equal receipts of several operations the first.
    pub fn receipt(&self, tenant: &Tenant, reference: &str) -> Result<Numbered, Error> {
        let slot = Slot::Receipt(tenant.clone(), reference.to_owned());
        let sequence = number(self.store.get(&slot)?.as_ref())?.ok_or(Error::ReceiptNotFound)?;
        let entry = self.entry(sequence)?;
        let routing = records::routing(entry.routing.as_ref())?;
        if routing.tenant != *tenant || entry.receipt_ref != reference {
            return Err(Error::Corrupt("an index leads to another receipt"));
        }
        Ok((sequence, entry))
    }

    /// A page of a tenant's receipts, from a place of the list on.
    pub fn list(
        &self,
        query: &Query,
        start: Option<u64>,
        page_size: u64,
    ) -> Result<Page<Numbered, u64>, Error> {
        let size = Slot::Size(query.tenant.clone(), query.selector.clone());
        let size = number(self.store.get(&size)?.as_ref())?.unwrap_or(0);
        let first = self.first_since(query, query.from_ms, size, 1)?;
        let end = self.first_since(query, query.before_ms, size, size + 1)?;
        let end = end.max(first);
        let mut position = start.map_or(first, |start| start.clamp(first, end));
        let stop = position.saturating_add(page_size).min(end);
        let mut items: Vec<Numbered> = Vec::new();
        let mut bytes = 0;
        while position < stop && bytes < PAGE_BYTES {
            for place in self.places(query, position..stop.min(position + CHUNK))? {
                let entry = self.entry(place.sequence)?;
                bytes += entry.receipt.len();
                items.push((place.sequence, entry));
                position += 1;
                if bytes >= PAGE_BYTES {
                    break;
                }
            }
        }
        Ok(Page {
            items,
            next: (position < end).then_some(position),
            total: end - first,
        })
    }

    /// The first place of a list that was recorded at `time_ms` or later; one behind the last if
    /// none was, and `unbounded` without a time.
    fn first_since(
        &self,
        query: &Query,
        time_ms: Option<u64>,
        size: u64,
        unbounded: u64,
    ) -> Result<u64, Error> {
        let Some(time_ms) = time_ms else {
            return Ok(unbounded);
        };
        let (mut low, mut high) = (1, size + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let places = self.places(query, middle..middle + 1)?;
            if places.iter().all(|place| place.recorded_at_ms >= time_ms) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    fn places(
        &self,
        query: &Query,
        positions: std::ops::Range<u64>,
    ) -> Result<Vec<PlaceRecord>, Error> {
        let slots: Vec<_> = positions
            .map(|at| Slot::Place(query.tenant.clone(), query.selector.clone(), at))
            .collect();
        let places = self.store.get_many(&slots)?.into_iter().map(|place| {
            let place = place.ok_or(Error::Corrupt("a place of a list is missing"))?;
            records::decode(&place)
        });
        places.collect()
    }

    /// A page of a writer's intents that are not settled.
    pub fn open_intents(
        &self,
        writer: &str,
        after: Option<&OperationKeyRecord>,
        page_size: usize,
    ) -> Result<Page<OpenIntent, OperationKeyRecord>, Error> {
        let size = Slot::OpenSize(writer.to_owned());
        let total = number(self.store.get(&size)?.as_ref())?.unwrap_or(0);
        let mut keys = self
            .store
            .open(writer, after, page_size.saturating_add(1))?;
        let mut has_more = keys.len() > page_size;
        keys.truncate(page_size);
        let mut items = Vec::new();
        let (mut bytes, mut last) = (0, None);
        for key in keys {
            if bytes >= PAGE_BYTES {
                has_more = true;
                break;
            }
            if let Some(intent) = self.open_intent(&key)? {
                bytes += intent.operation.expect_intent()?.members.len();
                items.push(intent);
            }
            last = Some(key);
        }
        Ok(Page {
            items,
            next: last.filter(|_| has_more),
            total,
        })
    }

    /// The intent behind a key; none if it was settled since the key was read.
    fn open_intent(&self, key: &OperationKeyRecord) -> Result<Option<OpenIntent>, Error> {
        let stored = self.store.get(&operation_slot(key)?)?;
        let stored = stored.ok_or(Error::Corrupt("an indexed operation is missing"))?;
        let operation: OperationRecord = records::decode(&stored)?;
        let intent = operation.expect_intent()?;
        let entry = match intent.state() {
            State::Settled => return Ok(None),
            State::Open => None,
            State::Overdue => {
                let sequence = intent.overdue_sequence;
                Some((sequence, self.entry(sequence)?))
            }
        };
        Ok(Some(OpenIntent { operation, entry }))
    }

    fn entry(&self, sequence: u64) -> Result<EntryRecord, Error> {
        let stored = self.store.get(&Slot::Entry(sequence))?;
        let stored = stored.ok_or(Error::Corrupt("an entry is missing"))?;
        records::decode(&stored)
    }

    /// Starts a check of the log as it is now.
    pub fn begin_check(&self) -> Result<Progress, Error> {
        let (head, _) = self.store.head()?;
        Ok(Progress {
            checked: 0,
            digest: Digest::ZERO,
            entries: head.entries,
            head: records::digest(&head.digest)?,
        })
    }

    /// Checks some more entries. The fault comes with what verified before it.
    pub fn check(&self, mut progress: Progress) -> Result<(Progress, Option<Fault>), Error> {
        let end = progress
            .entries
            .min(progress.checked.saturating_add(VERIFY_CHUNK));
        while progress.checked < end {
            let sequence = progress.checked + 1;
            match self.check_entry(sequence, progress.digest)? {
                Ok(digest) => progress.digest = digest,
                Err(code) => return Ok((progress, Some(Fault { sequence, code }))),
            }
            progress.checked = sequence;
        }
        let fault = if progress.checked < progress.entries {
            None
        } else if progress.digest != progress.head {
            Some(Code::ReceiptLogRewrite)
        } else if self.has_stray_entry(progress.entries)? {
            Some(Code::ReceiptLogUnanchoredSuffix)
        } else {
            None
        };
        let sequence = progress.entries.saturating_add(1);
        Ok((progress, fault.map(|code| Fault { sequence, code })))
    }

    /// The digest of an entry that verifies, or why it does not.
    fn check_entry(&self, sequence: u64, previous: Digest) -> Result<Result<Digest, Code>, Error> {
        let entry = match self.store.get(&Slot::Entry(sequence)) {
            Ok(Some(stored)) => records::decode::<EntryRecord>(&stored),
            Ok(None) => return Ok(Err(Code::ReceiptLogTruncated)),
            Err(error) => Err(error),
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(Error::Corrupt(_)) => return Ok(Err(Code::ReceiptLogInvalidEntry)),
            Err(error) => return Err(error),
        };
        let receipt = match chain::verify(sequence, previous, &entry) {
            Ok(receipt) => receipt,
            Err(code) => return Ok(Err(code)),
        };
        if let Some((actor, bundle)) = consumption(&receipt) {
            let first = self.store.get(&Slot::Consumed(actor, bundle))?;
            if number(first.as_ref())? != Some(sequence) {
                return Ok(Err(Code::ReceiptReplayConflict));
            }
        }
        Ok(Ok(chain::entry_digest(sequence, previous, &entry.receipt)))
    }

    /// Whether an entry follows that no head knows.
    fn has_stray_entry(&self, entries: u64) -> Result<bool, Error> {
        let follows = self.store.get(&Slot::Entry(entries + 1))?.is_some();
        Ok(follows && self.store.head()?.0.entries <= entries)
    }

    /// Checks before serving that the head and the last entries belong together.
    pub fn check_tail(&self) -> Result<(), Inconsistent> {
        let mut progress = self.begin_check()?;
        let skipped = progress.entries.saturating_sub(TAIL);
        if skipped > 0 {
            progress.digest = records::digest(&self.entry(skipped)?.digest)?;
            progress.checked = skipped;
        }
        match self.check(progress)? {
            (_, None) => Ok(()),
            (_, Some(fault)) => Err(Inconsistent::Fault(fault)),
        }
    }
}

/// Why a store does not start on what it finds.
#[derive(Debug, thiserror::Error)]
pub enum Inconsistent {
    /// The log's end does not verify.
    #[error("the log does not verify at entry {}: {}", .0.sequence, .0.code.as_str())]
    Fault(Fault),
    /// The log's end cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Error),
}
