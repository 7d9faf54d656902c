//! The key store: who has which slot, and the data key of each slot.
//!
//! ```text
//! tenant  subject  private(subject reference)  -> slot, and whether it was erased
//! tenant  key      public(slot)                -> data key, and whether it is being erased
//! process erasure  public(tenant) public(slot) -> an erasure that is not finished
//! ```

use cl_kv::{Changes, Kind, Precondition, Tenant};
use cl_model::operation::TenantName;
use prost::Message;

use super::cipher::DataKey;
use super::erasure::{Erasure, ErasureOrder, ErasureRecord};
use super::records::decode;
use super::{Slot, Store, StoreError, Subject, SubjectName, slot_key, tenant_key};

const SUBJECT: Kind = Kind::new("subject");
const KEY: Kind = Kind::new("key");
const ERASURE: Kind = Kind::new("erasure");

/// How many erasures are read at a time.
const PAGE: usize = 64;

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct SubjectRecord {
    #[prost(bytes = "vec", tag = "1")]
    slot: Vec<u8>,
    /// What stays of an erased subject, so that its name is not used again.
    #[prost(bool, tag = "2")]
    is_erased: bool,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct KeyRecord {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bool, tag = "2")]
    is_erased: bool,
}

/// What the vault knows of a subject.
pub enum Known {
    /// Nothing.
    Nothing,
    /// Its key.
    Subject(Box<Subject>),
    /// That it was erased, or is being erased.
    Erased,
}

impl Store {
    /// What is known of a subject.
    pub fn find(&self, name: &SubjectName) -> Result<Known, StoreError> {
        let target = tenant_key(&name.tenant, SUBJECT)?.private(name.subject.as_str());
        let Some(found) = self.keys.get(target)? else {
            return Ok(Known::Nothing);
        };
        let record: SubjectRecord = decode(&found.value)?;
        if record.is_erased {
            return Ok(Known::Erased);
        }
        let subject = self.at_slot(&name.tenant, Slot::read(&record.slot)?)?;
        Ok(subject.map_or(Known::Erased, |subject| Known::Subject(Box::new(subject))))
    }

    /// A subject that can be written to; it gets a slot and a data key if it is new.
    pub fn open_subject(&self, name: &SubjectName) -> Result<Subject, StoreError> {
        match self.find(name)? {
            Known::Subject(subject) => return Ok(*subject),
            Known::Erased => return Err(StoreError::Erased),
            Known::Nothing => {}
        }
        let mut slot = [0; Slot::BYTES];
        self.ids.fill(&mut slot)?;
        let slot = Slot(slot);
        let key = DataKey::generate(&*self.ids)?;
        let subject = SubjectRecord {
            slot: slot.0.to_vec(),
            is_erased: false,
        };
        let record = KeyRecord {
            key: key.to_vec(),
            is_erased: false,
        };
        let target = tenant_key(&name.tenant, SUBJECT)?.private(name.subject.as_str());
        let created = Changes::new()
            .require(&target, Precondition::Absent)
            .put(target, subject.encode_to_vec())
            .put(slot_key(&name.tenant, slot, KEY)?, record.encode_to_vec());
        self.keys.apply(&created)?;
        Ok(Subject {
            tenant: name.tenant.clone(),
            slot,
            key: DataKey::new(&*key)?,
        })
    }

    /// The subject in a slot; none if it is erased or being erased.
    pub fn at_slot(&self, tenant: &TenantName, slot: Slot) -> Result<Option<Subject>, StoreError> {
        let subject = self.even_if_erased(tenant, slot)?;
        Ok(subject.and_then(|(subject, is_erased)| (!is_erased).then_some(subject)))
    }

    /// The subject in a slot as long as its key exists.
    pub(super) fn even_if_erased(
        &self,
        tenant: &TenantName,
        slot: Slot,
    ) -> Result<Option<(Subject, bool)>, StoreError> {
        let Some(found) = self.keys.get(slot_key(tenant, slot, KEY)?)? else {
            return Ok(None);
        };
        let record: KeyRecord = decode(&found.value)?;
        let subject = Subject {
            tenant: tenant.clone(),
            slot,
            key: DataKey::new(&record.key)?,
        };
        Ok(Some((subject, record.is_erased)))
    }

    /// Makes it durable that a subject is to be erased. From here on nobody reads it or writes to
    /// it, and [`Store::erasures`] lists it until it is finished.
    pub fn order_erasure(
        &self,
        name: &SubjectName,
        order: ErasureOrder,
    ) -> Result<Option<Erasure>, StoreError> {
        let target = tenant_key(&name.tenant, SUBJECT)?.private(name.subject.as_str());
        let (slot, subject_precondition) = match self.keys.get(&target)? {
            None => {
                let mut slot = [0; Slot::BYTES];
                self.ids.fill(&mut slot)?;
                (Slot(slot), Precondition::Absent)
            }
            Some(found) => {
                let record: SubjectRecord = decode(&found.value)?;
                if record.is_erased {
                    return Ok(None);
                }
                let unchanged = Precondition::Unchanged(found.version);
                (Slot::read(&record.slot)?, unchanged)
            }
        };
        let erasure = Erasure {
            tenant: name.tenant.clone(),
            slot,
            order,
            erased: None,
        };
        let tombstone = SubjectRecord {
            slot: slot.0.to_vec(),
            is_erased: true,
        };
        let mut changes = Changes::new()
            .require(&target, subject_precondition)
            .put(target, tombstone.encode_to_vec())
            .put(erasure_key(&erasure), erasure.encode());
        let key_target = slot_key(&name.tenant, slot, KEY)?;
        if let Some(found) = self.keys.get(&key_target)? {
            let mut record: KeyRecord = decode(&found.value)?;
            record.is_erased = true;
            changes = changes
                .require(&key_target, Precondition::Unchanged(found.version))
                .put(key_target, record.encode_to_vec());
        }
        self.keys.apply(&changes)?;
        Ok(Some(erasure))
    }

    /// The erasures that are not finished.
    pub fn erasures(&self) -> Result<Vec<Erasure>, StoreError> {
        let range = cl_kv::Range::of(Tenant::process().key(ERASURE), PAGE);
        let found = self.keys.scan(&range)?;
        found
            .iter()
            .map(|entry| ErasureRecord::decode_erasure(&entry.opened.value))
            .collect()
    }

    /// Destroys the data key of a subject: what is sealed under it cannot be read any more, here
    /// and in every copy. Also takes it out of the files of the key store.
    pub(super) fn delete_key(&self, erasure: &Erasure) -> Result<(), StoreError> {
        let changes = Changes::new()
            .delete(slot_key(&erasure.tenant, erasure.slot, KEY)?)
            .put(erasure_key(erasure), erasure.encode());
        self.keys.apply(&changes)?;
        self.keys.engine().purge()?;
        Ok(())
    }

    /// Forgets an erasure that is finished; the subject's tombstone stays.
    pub(super) fn finish_erasure(&self, erasure: &Erasure) -> Result<(), StoreError> {
        self.keys
            .apply(&Changes::new().delete(erasure_key(erasure)))?;
        Ok(())
    }
}

fn erasure_key(erasure: &Erasure) -> cl_kv::Key {
    Tenant::process()
        .key(ERASURE)
        .public(erasure.tenant.as_str())
        .public(erasure.slot.0)
}
