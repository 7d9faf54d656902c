//! Changes to one subject that are stored together, and what is read for them.

use std::collections::{BTreeMap, BTreeSet};

use cl_kv::{Changes, FoundPart, Key, Precondition, Range};
use cl_model::digest::Digest;
use cl_model::operation::TenantName;
use cl_model::scalar::Predicate;
use cl_model::urn::{Alias, ClaimId, EventId, ProposalId};
use prost::Message;
use serde_json::Value;
use zeroize::Zeroizing;

use super::address::{
    Address, CLAIM, CLAIMS, EVENTS, EXCHANGES, LEDGER, LIST, alias_key, claim_address, claim_place,
    event_address, item_address, list_address, list_of, payload_address, place, proposal_address,
    thread_address,
};
use super::payload::PayloadRecord;
use super::records::{
    ClaimKey, ClaimKeyRecord, ClaimRecord, EventRecord, Ledger, ProposalRecord, StoredEvent,
    StoredProposal, TextRecord, ThreadRecord, decode,
};
use super::{Erased, Slot, Store, StoreError, Subject, slot_key};
use crate::core::claim::Claim;

/// How many entries are read at a time.
const PAGE: usize = 256;

/// A claim with those that contradict it.
pub struct StoredClaim {
    /// The claim.
    pub claim: Claim,
    /// The claims that contradict it.
    pub contradicts: BTreeSet<ClaimId>,
}

/// One page of events.
pub struct EventPage {
    /// The events, each with its place, latest first.
    pub entries: Vec<(u64, StoredEvent)>,
    /// How many there are on all pages.
    pub total: u64,
}

/// The most claims that a conversation names. More are there, and not named as contradictions in the
/// owner's list; what leaves under a grant does not depend on this.
const MAX_NAMED_CLAIMS: usize = 1024;

/// Changes to one subject, read through and not stored yet.
pub struct Draft<'a> {
    store: &'a Store,
    subject: &'a Subject,
    ledger: Ledger,
    unchanged: Precondition,
    read: BTreeMap<Address, Option<Zeroizing<Vec<u8>>>>,
    written: BTreeSet<Address>,
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

    /// An event.
    pub fn event(&mut self, id: &EventId) -> Result<Option<StoredEvent>, StoreError> {
        let record: Option<EventRecord> = self.get(&event_address(id))?;
        record.map(EventRecord::read).transpose()
    }

    /// Stores an event; a new one gets its place in the list.
    pub fn put_event(&mut self, event: &StoredEvent) {
        self.put(&event_address(&event.id), &EventRecord::of(event));
    }

    /// Puts an event at the head of the list.
    pub fn list_event(&mut self, id: &EventId) -> u64 {
        self.ledger.events += 1;
        self.list(EVENTS, &TextRecord::of(id.as_str()))
    }

    /// Takes an event out of the list.
    pub fn unlist_event(&mut self, place: u64) {
        self.ledger.events = self.ledger.events.saturating_sub(1);
        self.delete(&list_address(EVENTS, place));
    }

    /// The event that an item was captured as.
    pub fn item(&mut self, item: Digest) -> Result<Option<EventId>, StoreError> {
        let record: Option<TextRecord> = self.get(&item_address(item))?;
        record
            .map(|record| EventId::parse(&record.text).ok_or(StoreError::Corrupt))
            .transpose()
    }

    /// Remembers what an item was captured as.
    pub fn put_item(&mut self, item: Digest, event: &EventId) {
        self.put(&item_address(item), &TextRecord::of(event.as_str()));
    }

    /// The name of the claim with this predicate and value.
    pub fn claim_key(&self, predicate: &Predicate, value: &Value) -> ClaimKey {
        ClaimKey {
            predicate: predicate.clone(),
            id: self.subject.key.claim_id(predicate, value),
        }
    }

    /// A claim.
    pub fn claim(&mut self, key: &ClaimKey) -> Result<Option<Claim>, StoreError> {
        let record: Option<ClaimRecord> = self.get(&claim_address(key))?;
        record.map(ClaimRecord::read).transpose()
    }

    /// Stores a claim, and that it occurs in its conversations and no other.
    pub fn put_claim(
        &mut self,
        before: &BTreeSet<Digest>,
        claim: &Claim,
    ) -> Result<(), StoreError> {
        let after = claim.threads();
        for thread in before.union(&after) {
            let address = thread_address(&claim.predicate, *thread);
            let mut record: ThreadRecord = self.get(&address)?.unwrap_or_default();
            let id = claim.id.as_str();
            let is_there = record.claims.iter().any(|named| named == id);
            match (is_there, after.contains(thread)) {
                (false, true) if record.claims.len() < MAX_NAMED_CLAIMS => {
                    record.claims.push(id.to_owned());
                }
                (true, false) => record.claims.retain(|named| named != id),
                (true, true) | (false, true | false) => continue,
            }
            self.put(&address, &record);
        }
        let key = ClaimKey {
            predicate: claim.predicate.clone(),
            id: claim.id.clone(),
        };
        self.put(&claim_address(&key), &ClaimRecord::of(claim));
        Ok(())
    }

    /// Puts a claim at the head of the lists.
    pub fn list_claim(&mut self, key: &ClaimKey) -> u64 {
        let record = ClaimKeyRecord::of(key);
        self.ledger.claims += 1;
        *self
            .ledger
            .by_predicate
            .entry(key.predicate.as_str().to_owned())
            .or_default() += 1;
        let place = self.list(CLAIMS, &record);
        self.put(&list_address(&list_of(&key.predicate), place), &record);
        place
    }

    /// The claims of a predicate that share a conversation with one, without itself.
    pub fn contradicting(&mut self, claim: &Claim) -> Result<BTreeSet<ClaimId>, StoreError> {
        let mut found = BTreeSet::new();
        if !crate::core::claim::excludes_others(claim.datatype) {
            return Ok(found);
        }
        for thread in claim.threads() {
            let address = thread_address(&claim.predicate, thread);
            let record: ThreadRecord = self.get(&address)?.unwrap_or_default();
            for id in record.claims {
                found.insert(ClaimId::parse(&id).ok_or(StoreError::Corrupt)?);
            }
        }
        found.remove(&claim.id);
        Ok(found)
    }

    /// All claims of a predicate, in no particular order.
    pub fn claims_of(&self, predicate: &Predicate) -> Result<Vec<Claim>, StoreError> {
        let prefix = self.subject.key(CLAIM)?.private(predicate.as_str());
        let mut claims = Vec::new();
        let place = claim_place(self.subject, predicate);
        self.store.visit(prefix, |value| {
            let plain = self.subject.key.open(&place, value)?;
            claims.push(decode::<ClaimRecord>(&plain)?.read()?);
            Ok(())
        })?;
        Ok(claims)
    }

    /// A page of events, after a place.
    pub fn events(&mut self, after: Option<u64>, limit: usize) -> Result<EventPage, StoreError> {
        let mut entries = Vec::new();
        for (place, record) in self.page::<TextRecord>(EVENTS, after, limit)? {
            let id = EventId::parse(&record.text).ok_or(StoreError::Corrupt)?;
            let event = self.event(&id)?.ok_or(StoreError::Corrupt)?;
            entries.push((place, event));
        }
        Ok(EventPage {
            entries,
            total: self.ledger.events,
        })
    }

    /// A page of claims, of all or of one predicate, after a place, and how many there are.
    pub fn claims(
        &mut self,
        predicate: Option<&Predicate>,
        after: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<StoredClaim>, u64), StoreError> {
        let list = predicate.map_or_else(|| CLAIMS.to_owned(), list_of);
        let total = match predicate {
            None => self.ledger.claims,
            Some(predicate) => {
                let counted = self.ledger.by_predicate.get(predicate.as_str());
                counted.copied().unwrap_or(0)
            }
        };
        let mut claims = Vec::new();
        for (_, record) in self.page::<ClaimKeyRecord>(&list, after, limit)? {
            let key = record.read()?;
            let claim = self.claim(&key)?.ok_or(StoreError::Corrupt)?;
            let contradicts = self.contradicting(&claim)?;
            claims.push(StoredClaim { claim, contradicts });
        }
        Ok((claims, total))
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
    pub fn commit(self) -> Result<(), StoreError> {
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
