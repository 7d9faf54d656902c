//! The steps of erasing a subject, in an order that no crash leaves half done.
//!
//! 1. [`Store::order_erasure`]: the tombstone. Nobody reads or writes the subject from here on.
//! 2. [`Store::close_subject`]: the fence against writers that began before, and the notices, which
//!    need the data key to be made.
//! 3. [`Store::destroy_key`]: what is sealed under the key is noise from here on.
//! 4. The receipt, then [`Store::end_erasure`]: what is left is deleted, the order is forgotten.
//!
//! A process that starts takes every order up again where it was; each step may run twice.

use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use cl_model::urn::Alias;
use prost::Message;

use super::address::SLOT_KINDS;
use super::records::{Exchange, StoredOperation, decode};
use super::{Notice, OutboxEntry, Slot, Store, StoreError, slot_key};

/// How many entries are deleted at a time. Pieces are large.
const PAGE: usize = 32;

/// Who ordered an erasure, and what its receipt will need.
#[derive(Clone, PartialEq)]
pub struct ErasureOrder {
    /// The operation.
    pub operation_id: OperationId,
    /// The subject's tag, which stays after the subject.
    pub subject_tag: String,
    /// What the subject is called in the receipt.
    pub alias: Alias,
    /// When it was ordered.
    pub started_at: UnixTime,
    /// The digest of what was asked.
    pub content: cl_model::digest::Digest,
}

/// How much was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Events.
    pub events: u64,
    /// Claims.
    pub claims: u64,
}

/// An erasure that is not finished.
#[derive(Clone, PartialEq)]
pub struct Erasure {
    /// The tenant.
    pub tenant: TenantName,
    /// The subject's slot.
    pub slot: Slot,
    /// The order.
    pub order: ErasureOrder,
    /// How much it erases, once that is known.
    pub erased: Option<Erased>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct ErasureRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(bytes = "vec", tag = "2")]
    slot: Vec<u8>,
    #[prost(string, tag = "3")]
    operation_id: String,
    #[prost(string, tag = "4")]
    subject_tag: String,
    #[prost(string, tag = "5")]
    alias: String,
    #[prost(int64, tag = "6")]
    started_at_ms: i64,
    #[prost(string, tag = "7")]
    content: String,
    #[prost(message, optional, tag = "8")]
    erased: Option<ErasedRecord>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ErasedRecord {
    #[prost(uint64, tag = "1")]
    events: u64,
    #[prost(uint64, tag = "2")]
    claims: u64,
}

impl ErasureRecord {
    pub(super) fn decode_erasure(value: &[u8]) -> Result<Erasure, StoreError> {
        decode::<Self>(value)?.read().ok_or(StoreError::Corrupt)
    }

    fn read(self) -> Option<Erasure> {
        Some(Erasure {
            tenant: TenantName::parse(&self.tenant)?,
            slot: Slot::read(&self.slot).ok()?,
            order: ErasureOrder {
                operation_id: OperationId::parse(&self.operation_id)?,
                subject_tag: self.subject_tag,
                alias: Alias::parse(&self.alias)?,
                started_at: UnixTime::from_milliseconds(self.started_at_ms),
                content: cl_model::digest::Digest::parse(&self.content)?,
            },
            erased: self.erased.map(|erased| Erased {
                events: erased.events,
                claims: erased.claims,
            }),
        })
    }
}

impl Erasure {
    pub(super) fn encode(&self) -> Vec<u8> {
        let order = &self.order;
        let record = ErasureRecord {
            tenant: self.tenant.as_str().to_owned(),
            slot: self.slot.0.to_vec(),
            operation_id: order.operation_id.to_string(),
            subject_tag: order.subject_tag.clone(),
            alias: order.alias.as_str().to_owned(),
            started_at_ms: order.started_at.milliseconds(),
            content: order.content.to_string(),
            erased: self.erased.map(|erased| ErasedRecord {
                events: erased.events,
                claims: erased.claims,
            }),
        };
        record.encode_to_vec()
    }
}

impl Store {
    /// Step 2. `notices` makes the notices of one exchange; those of the subject itself come too.
    pub fn close_subject(
        &self,
        erasure: &mut Erasure,
        subject_notices: impl FnOnce() -> Result<Vec<Notice>, StoreError>,
        exchange_notices: impl Fn(&Alias, &Exchange) -> Result<Vec<Notice>, StoreError>,
    ) -> Result<(), StoreError> {
        if erasure.erased.is_some() {
            return Ok(());
        }
        let Some((subject, _)) = self.even_if_erased(&erasure.tenant, erasure.slot)? else {
            // The subject never had a key.
            erasure.erased = Some(Erased::default());
            return Ok(());
        };
        let mut draft = match self.draft(&subject) {
            Ok(draft) => draft,
            Err(StoreError::Erased) => {
                erasure.erased = Some(self.closed_counts(&subject)?);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut notices = subject_notices()?;
        for alias in draft.aliases()? {
            if let Some(exchange) = self.exchange_of(&subject, &alias)? {
                notices.extend(exchange_notices(&alias, &exchange)?);
            }
        }
        for notice in &notices {
            draft.notify(notice)?;
        }
        let (events, claims) = draft.counts();
        draft.fence();
        draft.commit()?;
        erasure.erased = Some(Erased { events, claims });
        Ok(())
    }

    /// Step 3.
    pub fn destroy_key(&self, erasure: &Erasure) -> Result<(), StoreError> {
        self.delete_key(erasure)
    }

    /// Step 4, first half: the operation and its receipt, once.
    pub fn record_erasure(
        &self,
        operation: &StoredOperation,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        match self.record(operation, entry) {
            Err(StoreError::Conflict) => Ok(()),
            result => result,
        }
    }

    /// Step 4, second half.
    pub fn end_erasure(&self, erasure: &Erasure) -> Result<(), StoreError> {
        let aliases = self.aliases_at(&erasure.tenant, erasure.slot)?;
        for alias in aliases {
            self.drop_exchange(&erasure.tenant, erasure.slot, &alias)?;
        }
        for kind in SLOT_KINDS {
            self.wipe(slot_key(&erasure.tenant, erasure.slot, kind)?, PAGE)?;
        }
        self.finish_erasure(erasure)
    }
}
