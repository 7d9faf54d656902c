//! Where a subject's records are in the data store, and what each is sealed for.
//!
//! ```text
//! tenant  ledger    public(slot)                                   -> counts, next place, fence
//! tenant  event     public(slot) private(event)                    -> event
//! tenant  item      public(slot) private(item)                     -> event that it was captured as
//! tenant  claim     public(slot) private(predicate) private(claim) -> claim
//! tenant  thread    public(slot) private(predicate) private(thread)-> claims in a conversation
//! tenant  list      public(slot) private(list) number(newest smallest) -> what stands there
//! tenant  proposal  public(slot) private(proposal)                 -> proposal
//! tenant  exchanges public(slot) private(alias)                    -> alias
//! ```

use cl_kv::{Key, Kind};
use cl_model::digest::Digest;
use cl_model::operation::TenantName;
use cl_model::scalar::Predicate;
use cl_model::urn::{Alias, EventId, ProposalId};

use super::payload::{PAYLOAD, PIECE};
use super::records::ClaimKey;
use super::{Slot, StoreError, Subject, slot_key};

pub(super) const LEDGER: Kind = Kind::new("ledger");
pub(super) const EVENT: Kind = Kind::new("event");
pub(super) const ITEM: Kind = Kind::new("item");
pub(super) const CLAIM: Kind = Kind::new("claim");
pub(super) const THREAD: Kind = Kind::new("thread");
pub(super) const LIST: Kind = Kind::new("list");
pub(super) const PROPOSAL: Kind = Kind::new("proposal");
pub(super) const EXCHANGES: Kind = Kind::new("exchanges");

/// Every kind that is kept by slot in the data store, for wiping.
pub(super) const SLOT_KINDS: [Kind; 9] = [
    EVENT, ITEM, CLAIM, THREAD, LIST, PROPOSAL, EXCHANGES, PAYLOAD, PIECE,
];

pub(super) const EVENTS: &str = "events";
pub(super) const CLAIMS: &str = "claims";

/// Names a record of a subject.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) kind: &'static str,
    names: Vec<Vec<u8>>,
    number: Option<u64>,
}

impl Address {
    pub(super) fn new(kind: Kind, names: &[&[u8]]) -> Self {
        Self {
            kind: kind.as_str(),
            names: names.iter().map(|name| name.to_vec()).collect(),
            number: None,
        }
    }

    pub(super) fn at(mut self, number: u64) -> Self {
        self.number = Some(number);
        self
    }

    pub(super) fn key(&self, subject: &Subject) -> Result<Key, StoreError> {
        let mut key = subject.key(Kind::new(self.kind))?;
        for name in &self.names {
            key = key.private(name);
        }
        Ok(match self.number {
            None => key,
            Some(number) => key.number(number),
        })
    }
}

/// What a value is sealed for, so that it opens nowhere else: the store's own sealing binds it to
/// its key, this binds it to the subject's names, which that key shows only as hashes.
pub(super) fn place(subject: &Subject, address: &Address) -> Vec<u8> {
    if address.kind == CLAIM.as_str() {
        // A scan does not know the claim's own name before it has opened the value.
        let named = address.names.first().map(Vec::as_slice).unwrap_or_default();
        return place_of(subject, address.kind, &[named], None);
    }
    let names: Vec<_> = address.names.iter().map(Vec::as_slice).collect();
    place_of(subject, address.kind, &names, address.number)
}

pub(super) fn claim_place(subject: &Subject, predicate: &Predicate) -> Vec<u8> {
    place_of(
        subject,
        CLAIM.as_str(),
        &[predicate.as_str().as_bytes()],
        None,
    )
}

pub(super) fn place_of(
    subject: &Subject,
    kind: &str,
    names: &[&[u8]],
    number: Option<u64>,
) -> Vec<u8> {
    let mut place = subject.slot.0.to_vec();
    for part in [kind.as_bytes()].iter().chain(names) {
        place.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        place.extend_from_slice(part);
    }
    if let Some(number) = number {
        place.extend_from_slice(&number.to_be_bytes());
    }
    place
}

/// Where an alias of a subject is listed.
pub(super) fn alias_key(tenant: &TenantName, slot: Slot, alias: &Alias) -> Result<Key, StoreError> {
    Ok(slot_key(tenant, slot, EXCHANGES)?.private(alias.as_str()))
}

pub(super) fn event_address(id: &EventId) -> Address {
    Address::new(EVENT, &[id.as_str().as_bytes()])
}

pub(super) fn item_address(item: Digest) -> Address {
    Address::new(ITEM, &[item.as_bytes()])
}

pub(super) fn payload_address(digest: Digest) -> Address {
    Address::new(PAYLOAD, &[digest.as_bytes()])
}

pub(super) fn claim_address(key: &ClaimKey) -> Address {
    let predicate = key.predicate.as_str().as_bytes();
    Address::new(CLAIM, &[predicate, key.id.as_str().as_bytes()])
}

pub(super) fn thread_address(predicate: &Predicate, thread: Digest) -> Address {
    Address::new(THREAD, &[predicate.as_str().as_bytes(), thread.as_bytes()])
}

pub(super) fn list_address(list: &str, place: u64) -> Address {
    Address::new(LIST, &[list.as_bytes()]).at(place)
}

pub(super) fn list_of(predicate: &Predicate) -> String {
    format!("{CLAIMS}:{predicate}")
}

pub(super) fn proposal_address(id: &ProposalId) -> Address {
    Address::new(PROPOSAL, &[id.as_str().as_bytes()])
}
