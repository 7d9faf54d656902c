//! What is dropped at a time: uploads that nothing names, exchanges that are long over.
//!
//! ```text
//! process due  number(time) public(tenant) public(slot) public(name) -> what to drop
//! ```

use cl_kv::{Changes, Key, Kind, Tenant};
use cl_model::operation::TenantName;
use cl_model::time::UnixTime;
use cl_model::urn::Alias;
use prost::Message;

use super::records::decode;
use super::{Slot, Store, StoreError, Subject};

const DUE: Kind = Kind::new("due");

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

impl Store {
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
                        let is_dropped = draft.sweep_upload(&due.name, sealed, due.at)?;
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

    /// An exchange that is forgotten at a time.
    pub(super) fn of_exchange(subject: &Subject, alias: &Alias, at: UnixTime) -> Self {
        Self {
            tenant: subject.tenant.clone(),
            slot: subject.slot,
            at,
            name: alias.as_str().as_bytes().to_vec(),
            what: DueWhat::Exchange(alias.clone()),
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
