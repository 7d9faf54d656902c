//! Where the records are: the port, and its implementation on `cl-kv`.

mod lists;

use std::collections::BTreeMap;
use std::sync::Arc;

use cl_host::ids::Ids;
use cl_kv::{Changes, Engine, Key, Kind, Precondition, Range, Sealed, Version};
use prost::Message;
use zeroize::Zeroizing;

use crate::core::finished::Facets;
use crate::core::records::{self, HeadRecord, NumberRecord, OperationKeyRecord, TenantRecord};
use crate::core::routing::{OperationId, SubjectTag, Tenant};
use crate::error::Error;

/// The receipts of a store, and what finds them again.
///
/// **Durable when?** When [`commit`](Self::commit) has returned `Ok`, or a later
/// [`head`](Self::head) shows its commit id.
///
/// **Consistent how?** A commit is all or nothing. It names the head that it was computed from and
/// is refused when that is not the head any more, so that commits are serialised, also among
/// replicas. Reads are single moments. An entry changes once at most, to its tombstone; places only
/// go, with the receipts that they lead to.
///
/// **Who retries?** The caller: after [`NotCommitted::Moved`] from the new head on, after
/// [`NotCommitted::Failed`] only once it has looked at the head.
///
/// **What if absent?** `None`; only the head is always there.
pub trait Store: Send + Sync {
    /// A record.
    fn get(&self, slot: &Slot) -> Result<Option<Zeroizing<Vec<u8>>>, Error>;

    /// Records at one moment, in the order asked.
    fn get_many(&self, slots: &[Slot]) -> Result<Vec<Option<Zeroizing<Vec<u8>>>>, Error>;

    /// The head, and which writing of it this is.
    fn head(&self) -> Result<(HeadRecord, Version), Error>;

    /// The first `limit` operations behind a place whose deadlines have passed, the earliest first.
    fn due(
        &self,
        now_ms: u64,
        after: Option<&OperationKeyRecord>,
        limit: usize,
    ) -> Result<Vec<OperationKeyRecord>, Error>;

    /// The first `limit` operations of a writer that are not settled, the earliest deadline first.
    fn open(
        &self,
        writer: &str,
        after: Option<&OperationKeyRecord>,
        limit: usize,
    ) -> Result<Vec<OperationKeyRecord>, Error>;

    /// The first `limit` places of a list behind a sequence: the sequences of their entries.
    fn places(
        &self,
        tenant: &Tenant,
        list: &Selector,
        after: u64,
        limit: usize,
    ) -> Result<Vec<u64>, Error>;

    /// The tenants that have a log.
    fn tenants(&self) -> Result<Vec<Tenant>, Error>;

    /// Stores changes and a new head, if the head is still the one that was read.
    fn commit(
        &self,
        read: Version,
        head: &HeadRecord,
        changes: &BTreeMap<Slot, Option<Vec<u8>>>,
    ) -> Result<(), NotCommitted>;
}

/// Why a commit was not acknowledged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotCommitted {
    /// Nothing was stored: the head is another one.
    #[error("the head has moved")]
    Moved,
    /// Stored whole or not at all.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Names one record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// An entry of a tenant's log, by sequence; the first is 1.
    Entry(Tenant, u64),
    /// Where a tenant's log ends.
    Log(Tenant),
    /// The hashes of a tile of a tenant's tree, by level and index.
    Tile(Tenant, u8, u64),
    /// That a tenant has a log.
    Tenant(Tenant),
    /// The sequence of a receipt, by its URN.
    Receipt(Tenant, String),
    /// What a writer's operation id was used for.
    Operation(Tenant, String, OperationId),
    /// The sequence of the successful consumption by an actor of a bundle.
    Consumed(Tenant, String, String),
    /// How many operations about a bundle are indeterminate and not settled.
    Unsettled(Tenant, String),
    /// How long a list is.
    Size(Tenant, Selector),
    /// The place of an entry in a list, by its sequence.
    Place(Tenant, Selector, u64),
    /// A writer's intent that is not settled.
    Open(OperationKey),
    /// How many intents of a writer are not settled.
    OpenSize(String),
    /// An intent whose deadline is to come.
    Due(OperationKey),
    /// The holds of a tenant.
    Holds(Tenant),
    /// How far a tenant was looked through for receipts whose retention has ended.
    Swept(Tenant),
    /// A settled time of not long ago.
    Settled,
    /// The key that seals page tokens.
    TokenKey,
}

/// An operation as indexes order it, by its deadline first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationKey {
    deadline_ms: u64,
    tenant: String,
    writer: String,
    operation_id: String,
}

impl From<OperationKeyRecord> for OperationKey {
    fn from(record: OperationKeyRecord) -> Self {
        Self {
            deadline_ms: record.deadline_ms,
            tenant: record.tenant,
            writer: record.writer,
            operation_id: record.operation_id,
        }
    }
}

/// The lists of one tenant's receipts that readers search, beside the log itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selector {
    /// Those of one subject.
    Subject(SubjectTag),
    /// Those of one operation.
    Operation(String),
    /// Those about one bundle.
    Bundle(String),
    /// Those about one decision.
    Decision(String),
}

impl Selector {
    /// The lists that an entry belongs to.
    pub fn of_entry(tag: Option<&SubjectTag>, facets: &Facets) -> Vec<Self> {
        let mut lists = vec![Self::Operation(facets.operation.clone())];
        lists.extend(tag.cloned().map(Self::Subject));
        lists.extend(facets.bundle_ref.clone().map(Self::Bundle));
        lists.extend(facets.decision_ref.clone().map(Self::Decision));
        lists
    }

    fn extend(&self, key: Key) -> Key {
        match self {
            Self::Subject(tag) => key.number(1).private(tag.as_str()),
            Self::Operation(operation) => key.number(2).private(operation),
            Self::Bundle(bundle) => key.number(3).private(bundle),
            Self::Decision(decision) => key.number(4).private(decision),
        }
    }
}

const HEAD: Kind = Kind::new("head");
const ENTRY: Kind = Kind::new("entry");
const LOG: Kind = Kind::new("log");
const TILE: Kind = Kind::new("tile");
const TENANT: Kind = Kind::new("tenant");
const RECEIPT: Kind = Kind::new("receipt");
const OPERATION: Kind = Kind::new("operation");
const CONSUMED: Kind = Kind::new("consumed");
const UNSETTLED: Kind = Kind::new("unsettled");
const SIZE: Kind = Kind::new("size");
const LISTS: Kind = Kind::new("lists");
const PLACE: Kind = Kind::new("listed");
const HOLDS: Kind = Kind::new("holds");
const SWEPT: Kind = Kind::new("swept");
const SETTLED: Kind = Kind::new("settled");
const OPEN: Kind = Kind::new("open");
const OPEN_SIZE: Kind = Kind::new("open-size");
const DUE: Kind = Kind::new("due");
const TOKEN_KEY: Kind = Kind::new("token-key");

/// How many tenants are read at once.
const TENANTS_AT_ONCE: usize = 1000;

fn process(kind: Kind) -> Key {
    cl_kv::Tenant::process().key(kind)
}

fn tenant(tenant: &Tenant, kind: Kind) -> Result<Key, Error> {
    cl_kv::Tenant::parse(tenant.as_str())
        .map(|tenant| tenant.key(kind))
        .map_err(|_| Error::Internal("a tenant's name is no name to the engine"))
}

fn open_key(key: &OperationKey) -> Key {
    process(OPEN)
        .private(&key.writer)
        .number(key.deadline_ms)
        .private(&key.tenant)
        .private(&key.operation_id)
}

impl Slot {
    fn key(&self) -> Result<Key, Error> {
        Ok(match self {
            Self::Entry(owner, sequence) => tenant(owner, ENTRY)?.number(*sequence),
            Self::Log(owner) => tenant(owner, LOG)?,
            Self::Tile(owner, level, index) => {
                tenant(owner, TILE)?.number((*level).into()).number(*index)
            }
            Self::Tenant(owner) => process(TENANT).public(owner.as_str()),
            Self::Receipt(owner, reference) => tenant(owner, RECEIPT)?.private(reference),
            Self::Operation(owner, writer, id) => tenant(owner, OPERATION)?
                .private(writer)
                .private(id.as_str()),
            Self::Consumed(owner, actor, bundle) => {
                tenant(owner, CONSUMED)?.private(actor).private(bundle)
            }
            Self::Unsettled(owner, bundle) => tenant(owner, UNSETTLED)?.private(bundle),
            Self::Size(owner, selector) => selector.extend(tenant(owner, SIZE)?),
            Self::Place(owner, selector, sequence) => {
                selector.extend(tenant(owner, PLACE)?).number(*sequence)
            }
            Self::Open(key) => open_key(key),
            Self::OpenSize(writer) => process(OPEN_SIZE).private(writer),
            Self::Due(key) => process(DUE)
                .number(key.deadline_ms)
                .private(&key.tenant)
                .private(&key.writer)
                .private(&key.operation_id),
            Self::Holds(owner) => tenant(owner, HOLDS)?,
            Self::Swept(owner) => tenant(owner, SWEPT)?,
            Self::Settled => process(SETTLED),
            Self::TokenKey => process(TOKEN_KEY),
        })
    }
}

/// What the lists of a store are: places by sequence, of the kind `listed`.
const LISTS_BY_SEQUENCE: &[u8] = &[1];

/// The store on an engine of `cl-kv`, sealed.
#[derive(Debug)]
pub struct KvStore<E> {
    sealed: Sealed<E>,
}

impl<E: Engine> KvStore<E> {
    /// Takes a sealed engine; gives an empty one its head.
    ///
    /// Refuses one that has records and no head: the log was there, and its end is gone.
    pub fn open(sealed: Sealed<E>, ids: &Arc<dyn Ids>) -> Result<Self, Error> {
        let store = Self { sealed };
        if store.sealed.get(process(HEAD))?.is_some() {
            store.list_anew()?;
            return Ok(store);
        }
        if store.get(&Slot::TokenKey)?.is_some() || !store.tenants()?.is_empty() {
            return Err(Error::Corrupt("the store has lost its head"));
        }
        let mut token_key = Zeroizing::new([0; 32]);
        ids.fill(&mut *token_key)
            .map_err(|_| Error::Internal("no random bytes"))?;
        let head = HeadRecord::default();
        let changes = Changes::new()
            .require(process(HEAD), Precondition::Absent)
            .put(process(HEAD), head.encode_to_vec())
            .put(process(LISTS), LISTS_BY_SEQUENCE)
            .put(process(TOKEN_KEY), token_key.to_vec());
        match store.sealed.apply(&changes) {
            Ok(_) | Err(cl_kv::Error::Conflict { .. }) => Ok(store),
            Err(error) => Err(error.into()),
        }
    }
}

impl<E: Engine> Store for KvStore<E> {
    fn get(&self, slot: &Slot) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        let found = self.sealed.get(slot.key()?)?;
        Ok(found.map(|opened| opened.value))
    }

    fn get_many(&self, slots: &[Slot]) -> Result<Vec<Option<Zeroizing<Vec<u8>>>>, Error> {
        let keys = slots
            .iter()
            .map(|slot| slot.key().map(Into::into))
            .collect::<Result<Vec<_>, Error>>()?;
        let found = self.sealed.get_many(&keys)?;
        Ok(found
            .into_iter()
            .map(|opened| opened.map(|opened| opened.value))
            .collect())
    }

    fn head(&self) -> Result<(HeadRecord, Version), Error> {
        let found = self.sealed.get(process(HEAD))?;
        let opened = found.ok_or(Error::Corrupt("the store has lost its head"))?;
        Ok((records::decode(&opened.value)?, opened.version))
    }

    fn due(
        &self,
        now_ms: u64,
        after: Option<&OperationKeyRecord>,
        limit: usize,
    ) -> Result<Vec<OperationKeyRecord>, Error> {
        let mut range = Range::of(process(DUE), limit);
        if let Some(after) = after {
            range = range.after(Slot::Due(after.clone().into()).key()?);
        }
        let found = self.sealed.scan(&range)?;
        let mut due: Vec<OperationKeyRecord> = found
            .iter()
            .map(|found| records::decode(&found.opened.value))
            .collect::<Result<_, _>>()?;
        due.retain(|key| key.deadline_ms <= now_ms);
        Ok(due)
    }

    fn open(
        &self,
        writer: &str,
        after: Option<&OperationKeyRecord>,
        limit: usize,
    ) -> Result<Vec<OperationKeyRecord>, Error> {
        let mut range = Range::of(process(OPEN).private(writer), limit);
        if let Some(after) = after {
            range = range.after(open_key(&after.clone().into()));
        }
        let found = self.sealed.scan(&range)?;
        found
            .iter()
            .map(|found| records::decode(&found.opened.value))
            .collect()
    }

    fn places(
        &self,
        owner: &Tenant,
        list: &Selector,
        after: u64,
        limit: usize,
    ) -> Result<Vec<u64>, Error> {
        let range = Range::of(list.extend(tenant(owner, PLACE)?), limit);
        let behind = Slot::Place(owner.clone(), list.clone(), after).key()?;
        let found = self.sealed.scan(&range.after(behind))?;
        let sequences = found
            .iter()
            .map(|found| records::decode(&found.opened.value).map(|it: NumberRecord| it.number));
        sequences.collect()
    }

    fn tenants(&self) -> Result<Vec<Tenant>, Error> {
        let mut tenants = Vec::new();
        let mut range = Range::of(process(TENANT), TENANTS_AT_ONCE);
        loop {
            let found = self.sealed.scan(&range)?;
            for found in &found {
                let record: TenantRecord = records::decode(&found.opened.value)?;
                let tenant = Tenant::parse(&record.tenant);
                tenants.push(tenant.ok_or(Error::Corrupt("a tenant's name does not parse"))?);
            }
            match (found.len(), tenants.last()) {
                (TENANTS_AT_ONCE, Some(last)) => {
                    range = range.after(Slot::Tenant(last.clone()).key()?);
                }
                _ => return Ok(tenants),
            }
        }
    }

    fn commit(
        &self,
        read: Version,
        head: &HeadRecord,
        changes: &BTreeMap<Slot, Option<Vec<u8>>>,
    ) -> Result<(), NotCommitted> {
        let mut batch = Changes::new()
            .require(process(HEAD), Precondition::Unchanged(read))
            .put(process(HEAD), head.encode_to_vec());
        for (slot, change) in changes {
            let key = slot.key()?;
            batch = match change {
                Some(record) => batch.put(key, record.as_slice()),
                None => batch.delete(key),
            };
        }
        match self.sealed.apply(&batch) {
            Ok(_) => Ok(()),
            Err(cl_kv::Error::Conflict { .. }) => Err(NotCommitted::Moved),
            Err(error) => Err(Error::from(error).into()),
        }
    }
}

/// A number that a record holds.
pub fn number(record: Option<&Zeroizing<Vec<u8>>>) -> Result<Option<u64>, Error> {
    record
        .map(|bytes| records::decode::<NumberRecord>(bytes).map(|it| it.number))
        .transpose()
}
