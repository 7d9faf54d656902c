//! What the process has to do later, and what finds its way back from outside.
//!
//! ```text
//! tenant  operation private(operation id)                     -> what it was used for
//! tenant  exchange  private(alias)                            -> slot, and the exchange under its data key
//! process outbox    public(tenant) private(operation id)      -> receipt to write
//! process notice    public(party) public(id)                  -> notice to deliver
//! process due       number(time) public(tenant) public(slot) public(name) -> what to drop
//! ```

use cl_kv::{Changes, Key, Kind, Located, Precondition, Range, Tenant};
use cl_model::digest::Digest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use cl_model::urn::{Alias, DecisionId, ProvenanceRef};
use prost::Message;

use super::draft::alias_key;
use super::records::{Exchange, ExchangeRecord, OperationRecord, StoredOperation, decode};
use super::{Draft, Slot, Store, StoreError, Subject, tenant_key};

const OPERATION: Kind = Kind::new("operation");
const EXCHANGE: Kind = Kind::new("exchange");
const OUTBOX: Kind = Kind::new("outbox");
const NOTICE: Kind = Kind::new("notice");
const DUE: Kind = Kind::new("due");

/// A place to go on from.
pub type Place = Located;

/// A receipt to write.
#[derive(Clone)]
pub struct OutboxEntry {
    /// The tenant that it belongs to.
    pub tenant: TenantName,
    /// The operation.
    pub operation_id: OperationId,
    /// The subject's tag.
    pub subject_tag: Option<String>,
    /// Its members.
    pub members: Vec<u8>,
}

/// One page of the outbox.
pub struct OutboxPage {
    /// The entries.
    pub entries: Vec<OutboxEntry>,
    /// Where to go on; none at the end.
    pub next: Option<Place>,
}

/// Whom a notice of a deletion is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// Ends bundles.
    BundleIssuer,
    /// Ends requests and decisions.
    PolicyEngine,
    /// Drops match features and probe families.
    DiscoveryProxy,
    /// Applies the retention of receipts.
    ReceiptStore,
}

impl Party {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::BundleIssuer,
        Self::PolicyEngine,
        Self::DiscoveryProxy,
        Self::ReceiptStore,
    ];

    /// The party's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BundleIssuer => "bundle_issuer",
            Self::PolicyEngine => "policy_engine",
            Self::DiscoveryProxy => "discovery_proxy",
            Self::ReceiptStore => "receipt_store",
        }
    }
}

/// What a notice refers to: names that say nothing by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything under one decision.
    Decision(DecisionId),
    /// Everything under one alias of a subject.
    Alias(Alias),
    /// Everything that rests on one source of one exchange.
    Provenance(ProvenanceRef),
    /// Everything under the tag of a subject.
    SubjectTag(String),
}

impl Target {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Decision(id) => ("decision", id.as_str()),
            Self::Alias(alias) => ("alias", alias.as_str()),
            Self::Provenance(reference) => ("provenance", reference.as_str()),
            Self::SubjectTag(tag) => ("subject_tag", tag),
        }
    }

    fn read(kind: &str, text: &str) -> Option<Self> {
        match kind {
            "decision" => DecisionId::parse(text).map(Self::Decision),
            "alias" => Alias::parse(text).map(Self::Alias),
            "provenance" => ProvenanceRef::parse(text).map(Self::Provenance),
            "subject_tag" => Some(Self::SubjectTag(text.to_owned())),
            _ => None,
        }
    }
}

/// Why a notice was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The subject was erased.
    SubjectErased,
    /// One source was erased.
    EventErased,
}

impl Reason {
    /// The reason's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SubjectErased => "subject.erased",
            Self::EventErased => "event.erased",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::SubjectErased, Self::EventErased]
            .into_iter()
            .find(|reason| reason.as_str() == text)
    }
}

/// A notice that something was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its id: a UUID, also of the operation at the party.
    pub id: String,
    /// Whom it is for.
    pub party: Party,
    /// The tenant.
    pub tenant: TenantName,
    /// What it refers to.
    pub target: Target,
    /// Why.
    pub reason: Reason,
}

/// One page of notices.
pub struct NoticePage {
    /// The notices.
    pub notices: Vec<Notice>,
    /// Where to go on; none at the end.
    pub next: Option<Place>,
}

/// Something to drop at a time.
pub struct Due {
    tenant: TenantName,
    slot: Slot,
    at: UnixTime,
    name: Vec<u8>,
    what: DueWhat,
}

enum DueWhat {
    /// The pieces of an upload, and the payload whose digest is sealed here.
    Upload(Vec<u8>),
    /// An exchange.
    Exchange(Alias),
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct OutboxRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(string, tag = "2")]
    operation_id: String,
    #[prost(string, optional, tag = "3")]
    subject_tag: Option<String>,
    #[prost(bytes = "vec", tag = "4")]
    members: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct NoticeRecord {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    tenant: String,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(string, tag = "4")]
    text: String,
    #[prost(string, tag = "5")]
    reason: String,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct DueRecord {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(bytes = "vec", tag = "2")]
    slot: Vec<u8>,
    #[prost(int64, tag = "3")]
    at_ms: i64,
    #[prost(bytes = "vec", tag = "4")]
    name: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "5")]
    upload_digest: Option<Vec<u8>>,
    #[prost(string, optional, tag = "6")]
    alias: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct LocatedExchangeRecord {
    #[prost(bytes = "vec", tag = "1")]
    slot: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    sealed: Vec<u8>,
}

impl Store {
    /// What an operation id was used for.
    pub fn operation(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<StoredOperation>, StoreError> {
        let key = operation_key(tenant, operation_id)?;
        let Some(found) = self.data.get(key)? else {
            return Ok(None);
        };
        let record: OperationRecord = decode(&found.value)?;
        Ok(Some(StoredOperation {
            content: Digest::parse(&record.content).ok_or(StoreError::Corrupt)?,
            result: record.result,
        }))
    }

    /// Stores an operation that changes no subject, with its receipt.
    pub fn record(
        &self,
        operation: &StoredOperation,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        self.data
            .apply(&with_operation(Changes::new(), operation, entry)?)?;
        Ok(())
    }

    /// The outbox entry of an operation; none once its receipt is durable.
    pub fn outstanding(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
    ) -> Result<Option<OutboxEntry>, StoreError> {
        let found = self.data.get(outbox_key(tenant, operation_id))?;
        found.map(|opened| read_outbox(&opened.value)).transpose()
    }

    /// At most `limit` outbox entries of all tenants, in no particular order, after a place.
    pub fn outbox(&self, after: Option<Place>, limit: usize) -> Result<OutboxPage, StoreError> {
        let found = self.scan_process(OUTBOX, after, limit)?;
        let entries = found.iter().map(|entry| read_outbox(&entry.opened.value));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        Ok(OutboxPage {
            next: next_place(found, limit),
            entries,
        })
    }

    /// Forgets an outbox entry whose receipt is durable. Forgetting twice is fine.
    pub fn settle(&self, entry: &OutboxEntry) -> Result<(), StoreError> {
        let target = outbox_key(&entry.tenant, &entry.operation_id);
        self.data.apply(&Changes::new().delete(target))?;
        Ok(())
    }

    /// At most `limit` notices for a party, after a place.
    pub fn notices(
        &self,
        party: Party,
        after: Option<Place>,
        limit: usize,
    ) -> Result<NoticePage, StoreError> {
        let prefix = Tenant::process().key(NOTICE).public(party.as_str());
        let mut range = Range::of(prefix, limit);
        if let Some(place) = after {
            range = range.after(place);
        }
        let found = self.data.scan(&range)?;
        let notices = found.iter().map(|entry| {
            let record: NoticeRecord = decode(&entry.opened.value)?;
            record.read(party).ok_or(StoreError::Corrupt)
        });
        let notices = notices.collect::<Result<Vec<_>, _>>()?;
        Ok(NoticePage {
            next: next_place(found, limit),
            notices,
        })
    }

    /// Forgets a notice that its party acknowledged. Forgetting twice is fine.
    pub fn acknowledge(&self, notice: &Notice) -> Result<(), StoreError> {
        self.data.apply(&Changes::new().delete(notice.key()))?;
        Ok(())
    }

    /// The exchange in which a subject had this alias, and its subject.
    pub fn exchange(
        &self,
        tenant: &TenantName,
        alias: &Alias,
    ) -> Result<Option<(Subject, Exchange)>, StoreError> {
        let Some(found) = self.data.get(exchange_key(tenant, alias)?)? else {
            return Ok(None);
        };
        let record: LocatedExchangeRecord = decode(&found.value)?;
        let subject = self.at_slot(tenant, Slot::read(&record.slot)?)?;
        let subject = subject.ok_or(StoreError::Erased)?;
        let exchange = open_exchange(&subject, alias, &record.sealed)?;
        Ok(Some((subject, exchange)))
    }

    /// The exchange in which a subject had this alias, also while it is being erased.
    pub(super) fn exchange_of(
        &self,
        subject: &Subject,
        alias: &Alias,
    ) -> Result<Option<Exchange>, StoreError> {
        let Some(found) = self.data.get(exchange_key(&subject.tenant, alias)?)? else {
            return Ok(None);
        };
        let record: LocatedExchangeRecord = decode(&found.value)?;
        open_exchange(subject, alias, &record.sealed).map(Some)
    }

    pub(super) fn drop_exchange(
        &self,
        tenant: &TenantName,
        slot: Slot,
        alias: &Alias,
    ) -> Result<(), StoreError> {
        let changes = Changes::new()
            .delete(exchange_key(tenant, alias)?)
            .delete(alias_key(tenant, slot, alias)?);
        self.data.apply(&changes)?;
        Ok(())
    }

    /// What is due at a time, at most `limit`, earliest first.
    pub fn due(&self, now: UnixTime, limit: usize) -> Result<Vec<Due>, StoreError> {
        let found = self.scan_process(DUE, None, limit)?;
        let mut due = Vec::new();
        for entry in &found {
            let record: DueRecord = decode(&entry.opened.value)?;
            let read = record.read().ok_or(StoreError::Corrupt)?;
            if read.at > now {
                break;
            }
            due.push(read);
        }
        Ok(due)
    }

    pub(super) fn put_due(&self, due: &Due) -> Result<(), StoreError> {
        self.data.apply(&due.add_to(Changes::new())?)?;
        Ok(())
    }

    /// Drops what is due.
    pub fn sweep(&self, due: &Due) -> Result<(), StoreError> {
        match &due.what {
            DueWhat::Exchange(alias) => self.drop_exchange(&due.tenant, due.slot, alias)?,
            DueWhat::Upload(sealed) => {
                let is_dropped = match self.at_slot(&due.tenant, due.slot)? {
                    None => true,
                    Some(subject) => {
                        let mut draft = self.draft(&subject)?;
                        let is_dropped = draft.sweep_upload(&due.name, sealed)?;
                        draft.commit()?;
                        is_dropped
                    }
                };
                if is_dropped {
                    self.drop_pieces(&due.tenant, due.slot, &due.name)?;
                }
            }
        }
        self.data.apply(&Changes::new().delete(due.key()))?;
        Ok(())
    }

    fn scan_process(
        &self,
        kind: Kind,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<cl_kv::Found>, StoreError> {
        let mut range = Range::of(Tenant::process().key(kind), limit);
        if let Some(place) = after {
            range = range.after(place);
        }
        Ok(self.data.scan(&range)?)
    }
}

impl Draft<'_> {
    /// Adds an operation that must be new, and its receipt.
    pub fn record(
        &mut self,
        operation: &StoredOperation,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        self.change(|changes| with_operation(changes, operation, entry))
    }

    /// Remembers an exchange under its alias, until a time.
    pub fn put_exchange(
        &mut self,
        alias: &Alias,
        exchange: &Exchange,
        drop_at: UnixTime,
    ) -> Result<(), StoreError> {
        let subject = self.subject();
        let record = ExchangeRecord::of(exchange).encode_to_vec();
        let located = LocatedExchangeRecord {
            slot: subject.slot.0.to_vec(),
            sealed: self.seal(alias.as_str().as_bytes(), &record)?,
        };
        let key = exchange_key(&subject.tenant, alias)?;
        let due = Due {
            tenant: subject.tenant.clone(),
            slot: subject.slot,
            at: drop_at,
            name: alias.as_str().as_bytes().to_vec(),
            what: DueWhat::Exchange(alias.clone()),
        };
        self.put_alias(alias)?;
        self.change(|changes| due.add_to(changes.put(key, located.encode_to_vec())))
    }

    /// Adds a notice.
    pub fn notify(&mut self, notice: &Notice) -> Result<(), StoreError> {
        self.change(|changes| Ok(changes.put(notice.key(), notice.encode())))
    }
}

fn open_exchange(subject: &Subject, alias: &Alias, sealed: &[u8]) -> Result<Exchange, StoreError> {
    let plain = subject.key.open(alias.as_str().as_bytes(), sealed)?;
    decode::<ExchangeRecord>(&plain)?.read()
}

pub(super) fn with_operation(
    changes: Changes,
    operation: &StoredOperation,
    entry: &OutboxEntry,
) -> Result<Changes, StoreError> {
    let key = operation_key(&entry.tenant, &entry.operation_id)?;
    let record = OperationRecord {
        content: operation.content.to_string(),
        result: operation.result.clone(),
    };
    let outbox = OutboxRecord {
        tenant: entry.tenant.as_str().to_owned(),
        operation_id: entry.operation_id.to_string(),
        subject_tag: entry.subject_tag.clone(),
        members: entry.members.clone(),
    };
    Ok(changes
        .require(&key, Precondition::Absent)
        .put(key, record.encode_to_vec())
        .put(
            outbox_key(&entry.tenant, &entry.operation_id),
            outbox.encode_to_vec(),
        ))
}

impl Notice {
    fn key(&self) -> Key {
        Tenant::process()
            .key(NOTICE)
            .public(self.party.as_str())
            .public(&self.id)
    }

    fn encode(&self) -> Vec<u8> {
        let (kind, text) = self.target.parts();
        let record = NoticeRecord {
            id: self.id.clone(),
            tenant: self.tenant.as_str().to_owned(),
            kind: kind.to_owned(),
            text: text.to_owned(),
            reason: self.reason.as_str().to_owned(),
        };
        record.encode_to_vec()
    }
}

impl NoticeRecord {
    fn read(self, party: Party) -> Option<Notice> {
        Some(Notice {
            id: self.id,
            party,
            tenant: TenantName::parse(&self.tenant)?,
            target: Target::read(&self.kind, &self.text)?,
            reason: Reason::parse(&self.reason)?,
        })
    }
}

impl Due {
    /// An upload that is dropped at a time unless an event names its payload.
    pub(super) fn of_upload(
        subject: &Subject,
        upload: Vec<u8>,
        sealed_digest: Vec<u8>,
        at: UnixTime,
    ) -> Self {
        Self {
            tenant: subject.tenant.clone(),
            slot: subject.slot,
            at,
            name: upload,
            what: DueWhat::Upload(sealed_digest),
        }
    }

    pub(super) fn add_to(&self, changes: Changes) -> Result<Changes, StoreError> {
        let (upload_digest, alias) = match &self.what {
            DueWhat::Upload(sealed) => (Some(sealed.clone()), None),
            DueWhat::Exchange(alias) => (None, Some(alias.as_str().to_owned())),
        };
        let record = DueRecord {
            tenant: self.tenant.as_str().to_owned(),
            slot: self.slot.0.to_vec(),
            at_ms: self.at.milliseconds(),
            name: self.name.clone(),
            upload_digest,
            alias,
        };
        Ok(changes.put(self.key(), record.encode_to_vec()))
    }

    fn key(&self) -> Key {
        Tenant::process()
            .key(DUE)
            .number(u64::try_from(self.at.milliseconds()).unwrap_or(0))
            .public(self.tenant.as_str())
            .public(self.slot.0)
            .public(&self.name)
    }
}

impl DueRecord {
    fn read(self) -> Option<Due> {
        let what = match (self.upload_digest, self.alias) {
            (Some(sealed), None) => DueWhat::Upload(sealed),
            (None, Some(alias)) => DueWhat::Exchange(Alias::parse(&alias)?),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(Due {
            tenant: TenantName::parse(&self.tenant)?,
            slot: Slot::read(&self.slot).ok()?,
            at: UnixTime::from_milliseconds(self.at_ms),
            name: self.name,
            what,
        })
    }
}

fn read_outbox(value: &[u8]) -> Result<OutboxEntry, StoreError> {
    let record: OutboxRecord = decode(value)?;
    let read = || {
        Some(OutboxEntry {
            tenant: TenantName::parse(&record.tenant)?,
            operation_id: OperationId::parse(&record.operation_id)?,
            subject_tag: record.subject_tag,
            members: record.members,
        })
    };
    read().ok_or(StoreError::Corrupt)
}

fn next_place(found: Vec<cl_kv::Found>, limit: usize) -> Option<Place> {
    let is_full = found.len() == limit;
    let last = found.into_iter().last().map(|entry| entry.key);
    last.filter(|_| is_full)
}

fn operation_key(tenant: &TenantName, operation_id: &OperationId) -> Result<Key, StoreError> {
    Ok(tenant_key(tenant, OPERATION)?.private(operation_id.as_str()))
}

fn exchange_key(tenant: &TenantName, alias: &Alias) -> Result<Key, StoreError> {
    Ok(tenant_key(tenant, EXCHANGE)?.private(alias.as_str()))
}

fn outbox_key(tenant: &TenantName, operation_id: &OperationId) -> Key {
    Tenant::process()
        .key(OUTBOX)
        .public(tenant.as_str())
        .private(operation_id.as_str())
}
