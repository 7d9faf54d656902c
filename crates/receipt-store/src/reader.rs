//! Reading: single receipts with their proofs, holds, and open intents.

use std::sync::Arc;

use crate::core::command::operation_slot;
use crate::core::holds::{HoldRecord, HoldsRecord};
use crate::core::intents::State;
use crate::core::kept::Kept;
use crate::core::readers::View;
use crate::core::records::{self, EntryRecord, OperationKeyRecord, OperationRecord};
use crate::core::routing::Tenant;
use crate::error::Error;
use crate::store::{Slot, Store, number};

/// After this many bytes of receipts or members a page ends, so that an answer fits into what a
/// gRPC client takes by default.
pub(crate) const PAGE_BYTES: usize = 2 << 20;

/// Reads what is durable. Every call blocks.
#[derive(Clone)]
pub struct Reader {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) kept: Arc<Kept>,
}

/// An entry and its sequence.
pub type Numbered = (u64, EntryRecord);

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

impl Reader {
    /// Reads from this store.
    pub fn new(store: Arc<dyn Store>, kept: Arc<Kept>) -> Self {
        Self { store, kept }
    }

    /// One receipt of a tenant, with this actor or with any; of equal receipts of several
    /// operations the first.
    pub fn receipt(
        &self,
        tenant: &Tenant,
        reference: &str,
        actor: Option<&str>,
        view: &View,
    ) -> Result<Numbered, Error> {
        if *view == View::Nothing {
            return Err(Error::ReceiptNotFound);
        }
        let slot = Slot::Receipt(tenant.clone(), reference.to_owned());
        let sequence = number(self.store.get(&slot)?.as_ref())?.ok_or(Error::ReceiptNotFound)?;
        let entry = self.entry(tenant, sequence)?;
        if !view.shows(&entry, actor) {
            return Err(Error::ReceiptNotFound);
        }
        if entry.tombstone.is_some() {
            return Err(Error::ReceiptErased);
        }
        if entry.receipt_ref != reference {
            return Err(Error::Corrupt("an index leads to another receipt"));
        }
        Ok((sequence, entry))
    }

    /// The holds of a tenant, the oldest first.
    pub fn holds(&self, tenant: &Tenant) -> Result<Vec<HoldRecord>, Error> {
        let stored = self.store.get(&Slot::Holds(tenant.clone()))?;
        let record = stored.map(|stored| records::decode::<HoldsRecord>(&stored));
        Ok(record.transpose()?.unwrap_or_default().holds)
    }

    /// The proof that an entry is in its log, as the log is now.
    pub fn proof(&self, tenant: &Tenant, (sequence, entry): &Numbered) -> Result<String, Error> {
        let tree = self.kept.shown(&*self.store, tenant, *sequence)?;
        let tree = tree.ok_or(Error::Corrupt("an entry is in no log"))?;
        tree.proofs(&*self.store, tenant).prove(*sequence, entry)
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

    /// The intent behind a key; none if it was settled or erased since the key was read.
    fn open_intent(&self, key: &OperationKeyRecord) -> Result<Option<OpenIntent>, Error> {
        let stored = self.store.get(&operation_slot(key)?)?;
        let stored = stored.ok_or(Error::Corrupt("an indexed operation is missing"))?;
        let operation: OperationRecord = records::decode(&stored)?;
        if operation.is_erased {
            return Ok(None);
        }
        let intent = operation.expect_intent()?;
        let entry = match intent.state() {
            State::Settled => return Ok(None),
            State::Open => None,
            State::Overdue => {
                let sequence = intent.overdue_sequence;
                let routing = records::routing(operation.routing.as_ref())?;
                Some((sequence, self.entry(&routing.tenant, sequence)?))
            }
        };
        Ok(Some(OpenIntent { operation, entry }))
    }

    /// An entry of a log.
    pub fn entry(&self, tenant: &Tenant, sequence: u64) -> Result<EntryRecord, Error> {
        let stored = self.store.get(&Slot::Entry(tenant.clone(), sequence))?;
        let stored = stored.ok_or(Error::Corrupt("an entry is missing"))?;
        records::decode(&stored)
    }
}
