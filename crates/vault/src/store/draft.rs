//! Changes to one subject that are stored together, and what is read for them.

mod claims;
mod events;

use std::collections::{BTreeMap, BTreeSet};

use cl_kv::{Changes, FoundPart, Key, Precondition, Range};
use cl_model::digest::Digest;
use cl_model::operation::TenantName;
use cl_model::urn::{Alias, ProposalId};
use prost::Message;
use zeroize::Zeroizing;

use self::claims::HeldClaim;
pub use self::claims::StoredClaim;
pub use self::events::EventPage;
use super::address::{
    Address, EXCHANGES, LEDGER, LIST, alias_key, list_address, payload_address, place,
    proposal_address,
};
use super::payload::PayloadRecord;
use super::records::{ClaimKey, Ledger, ProposalRecord, StoredProposal, TextRecord, decode};
use super::{Erased, Slot, Store, StoreError, Subject, slot_key};

/// How many entries are read at a time.
const PAGE: usize = 256;

/// Changes to one subject, read through and not stored yet.
pub struct Draft<'a> {
    store: &'a Store,
    subject: &'a Subject,
    ledger: Ledger,
    unchanged: Precondition,
    read: BTreeMap<Address, Option<Zeroizing<Vec<u8>>>>,
    written: BTreeSet<Address>,
    claims: BTreeMap<ClaimKey, HeldClaim>,
    changes: Changes,
}

impl Store {
    /// Begins changes to a subject.
    pub fn draft<'a>(&'a self, subject: &'a Subject) -> Result<Draft<'a>, StoreError> {
        let (ledger, unchanged) = self.ledger(subject)?;
        if ledger.is_erased {
            return Err(StoreError::Erased);
        }
        Ok(Draft {
            store: self,
            subject,
            ledger,
            unchanged,
            read: BTreeMap::new(),
            written: BTreeSet::new(),
            claims: BTreeMap::new(),
            changes: Changes::new(),
        })
    }

    fn ledger(&self, subject: &Subject) -> Result<(Ledger, Precondition), StoreError> {
        // Not under the data key: an erasure leaves its fence here, against writers that began
        // before it. It holds counts only.
        match self.data.get(subject.key(LEDGER)?)? {
            None => Ok((Ledger::default(), Precondition::Absent)),
            Some(found) => Ok((
                decode(&found.value)?,
                Precondition::Unchanged(found.version),
            )),
        }
    }
}

impl Store {
    /// The aliases of a slot.
    pub(super) fn aliases_at(
        &self,
        tenant: &TenantName,
        slot: Slot,
    ) -> Result<Vec<Alias>, StoreError> {
        let mut aliases = Vec::new();
        self.visit(slot_key(tenant, slot, EXCHANGES)?, |value| {
            let record: TextRecord = decode(value)?;
            aliases.push(Alias::parse(&record.text).ok_or(StoreError::Corrupt)?);
            Ok(())
        })?;
        Ok(aliases)
    }

    /// How much a subject had when it was closed.
    pub(super) fn closed_counts(&self, subject: &Subject) -> Result<Erased, StoreError> {
        let (ledger, _) = self.ledger(subject)?;
        Ok(Erased {
            events: ledger.events,
            claims: ledger.claims,
        })
    }

    /// Visits every value behind a key.
    fn visit(
        &self,
        prefix: Key,
        mut visit: impl FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut range = Range::of(prefix.clone(), PAGE);
        loop {
            let found = self.data.scan(&range)?;
            for entry in &found {
                visit(&entry.opened.value)?;
            }
            match found.into_iter().last() {
                Some(last) => range = Range::of(prefix.clone(), PAGE).after(last.key),
                None => return Ok(()),
            }
        }
    }
}

impl Draft<'_> {
    /// The subject.
    pub const fn subject(&self) -> &Subject {
        self.subject
    }

    pub(super) const fn store(&self) -> &Store {
        self.store
    }

    pub(super) fn payload(&mut self, digest: Digest) -> Result<Option<PayloadRecord>, StoreError> {
        self.get(&payload_address(digest))
    }

    pub(super) fn put_payload(&mut self, digest: Digest, record: &PayloadRecord) {
        self.put(&payload_address(digest), record);
    }

    pub(super) fn delete_payload(&mut self, digest: Digest) {
        self.delete(&payload_address(digest));
    }

    /// A proposal.
    pub fn proposal(&mut self, id: &ProposalId) -> Result<Option<StoredProposal>, StoreError> {
        let record: Option<ProposalRecord> = self.get(&proposal_address(id))?;
        record.map(ProposalRecord::read).transpose()
    }

    /// Stores a proposal.
    pub fn put_proposal(&mut self, id: &ProposalId, proposal: &StoredProposal) {
        self.put(&proposal_address(id), &ProposalRecord::of(proposal));
    }

    /// The aliases under which the subject was resolved.
    pub fn aliases(&self) -> Result<Vec<Alias>, StoreError> {
        self.store
            .aliases_at(&self.subject.tenant, self.subject.slot)
    }

    /// Remembers an alias of the subject. An alias says nothing, so it is not under the data key.
    pub(super) fn put_alias(&mut self, alias: &Alias) -> Result<(), StoreError> {
        let target = alias_key(&self.subject.tenant, self.subject.slot, alias)?;
        self.change(|changes| {
            Ok(changes.put(target, TextRecord::of(alias.as_str()).encode_to_vec()))
        })
    }

    /// Adds changes beside the subject's records.
    pub(super) fn change(
        &mut self,
        add: impl FnOnce(Changes) -> Result<Changes, StoreError>,
    ) -> Result<(), StoreError> {
        let changes = std::mem::take(&mut self.changes);
        self.changes = add(changes)?;
        Ok(())
    }

    /// Seals bytes of this subject that are kept elsewhere.
    pub(super) fn seal(&self, place: &[u8], plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.subject.key.seal(&*self.store.ids, place, plain)
    }

    /// Ends everything: the ledger keeps what was there and closes the subject to writers.
    pub(super) fn fence(&mut self) {
        self.ledger.is_erased = true;
    }

    /// How many events and claims the subject has.
    pub fn counts(&self) -> (u64, u64) {
        (self.ledger.events, self.ledger.claims)
    }

    /// Stores the changes.
    pub fn commit(mut self) -> Result<(), StoreError> {
        self.write_claims()?;
        let ledger_key = self.subject.key(LEDGER)?;
        let mut changes = self.changes;
        for address in &self.written {
            let key = address.key(self.subject)?;
            changes = match self.read.get(address) {
                Some(Some(plain)) => {
                    let place = place(self.subject, address);
                    changes.put(key, self.subject.key.seal(&*self.store.ids, &place, plain)?)
                }
                Some(None) | None => changes.delete(key),
            };
        }
        changes = changes
            .require(&ledger_key, self.unchanged)
            .put(ledger_key, self.ledger.encode_to_vec());
        self.store.data.apply(&changes)?;
        Ok(())
    }

    fn list<R: Message>(&mut self, list: &str, record: &R) -> u64 {
        let place = u64::MAX - self.ledger.next;
        self.ledger.next += 1;
        self.put(&list_address(list, place), record);
        place
    }

    fn page<R: Message + Default>(
        &self,
        list: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, R)>, StoreError> {
        let prefix = self.subject.key(LIST)?.private(list);
        let mut range = Range::of(prefix.clone(), limit);
        if let Some(place) = after {
            range = range.after(prefix.number(place));
        }
        let mut entries = Vec::new();
        for entry in self.store.data.scan(&range)? {
            let Some(FoundPart::Number(number)) = entry.key.parts().last() else {
                return Err(StoreError::Corrupt);
            };
            let place = place(self.subject, &list_address(list, *number));
            let plain = self.subject.key.open(&place, &entry.opened.value)?;
            entries.push((*number, decode(&plain)?));
        }
        Ok(entries)
    }

    fn get<R: Message + Default>(&mut self, address: &Address) -> Result<Option<R>, StoreError> {
        if !self.read.contains_key(address) {
            let found = self.store.data.get(address.key(self.subject)?)?;
            let place = place(self.subject, address);
            let plain = found
                .map(|found| self.subject.key.open(&place, &found.value))
                .transpose()?;
            self.read.insert(address.clone(), plain);
        }
        match self.read.get(address) {
            Some(Some(plain)) => Ok(Some(decode(plain)?)),
            Some(None) | None => Ok(None),
        }
    }

    fn put<R: Message>(&mut self, address: &Address, record: &R) {
        let plain = Zeroizing::new(record.encode_to_vec());
        self.read.insert(address.clone(), Some(plain));
        self.written.insert(address.clone());
    }

    fn delete(&mut self, address: &Address) {
        self.read.insert(address.clone(), None);
        self.written.insert(address.clone());
    }
}
