//! The claims of a subject, and which of them contradict each other.

use std::collections::BTreeSet;
use std::mem;

use cl_model::digest::Digest;
use cl_model::scalar::Predicate;
use cl_model::urn::ClaimId;
use serde_json::Value;

use super::Draft;
use crate::core::claim::{Claim, Support};
use crate::core::meeting::{self, Gone, Words};
use crate::store::StoreError;
use crate::store::address::{
    CLAIM, CLAIMS, claim_address, claim_place, list_address, list_of, thread_address,
};
use crate::store::records::{ClaimKey, ClaimKeyRecord, ClaimRecord, ThreadRecord, decode};

/// The most claims that a conversation names. More are there, and not named as contradictions in the
/// owner's list; what leaves under a grant does not depend on this.
const MAX_NAMED_CLAIMS: usize = 1024;

/// A claim with those that contradict it.
pub struct StoredClaim {
    /// The claim.
    pub claim: Claim,
    /// The claims that contradict it.
    pub contradicts: BTreeSet<ClaimId>,
    /// Why a meeting does not take place then.
    pub gone: Option<Gone>,
}

/// A claim that a draft changes.
pub(super) struct HeldClaim {
    /// The conversations that name it in the store.
    threads: BTreeSet<Digest>,
    claim: Claim,
    is_changed: bool,
}

impl Draft<'_> {
    /// The name of the claim with this predicate and value.
    pub fn claim_key(&self, predicate: &Predicate, value: &Value) -> ClaimKey {
        ClaimKey {
            predicate: predicate.clone(),
            id: self.subject.key.claim_id(predicate, value),
        }
    }

    /// The claim with this id, of whichever predicate it is.
    pub fn find_claim(&mut self, id: &ClaimId) -> Result<Option<ClaimKey>, StoreError> {
        let named: Vec<_> = self.ledger.by_predicate.keys().cloned().collect();
        for name in named {
            let key = ClaimKey {
                predicate: Predicate::new(name).ok_or(StoreError::Corrupt)?,
                id: id.clone(),
            };
            if self.claim(&key)?.is_some() {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// A claim.
    pub fn claim(&mut self, key: &ClaimKey) -> Result<Option<Claim>, StoreError> {
        match self.claims.get(key) {
            Some(held) => Ok(Some(held.claim.clone())),
            None => self.stored_claim(key),
        }
    }

    /// Changes a claim; none if it is not there. It is read once and written once, however often it
    /// is changed.
    pub fn change_claim<T>(
        &mut self,
        key: &ClaimKey,
        change: impl FnOnce(&mut Claim) -> T,
    ) -> Result<Option<T>, StoreError> {
        if !self.claims.contains_key(key) {
            let Some(claim) = self.stored_claim(key)? else {
                return Ok(None);
            };
            let held = HeldClaim {
                threads: claim.threads(),
                claim,
                is_changed: false,
            };
            self.claims.insert(key.clone(), held);
        }
        let Some(held) = self.claims.get_mut(key) else {
            return Ok(None);
        };
        let sources = held.claim.supports().len();
        let result = change(&mut held.claim);
        held.is_changed |= held.claim.supports().len() != sources;
        Ok(Some(result))
    }

    /// Adds a claim that is not there yet.
    pub fn add_claim(&mut self, key: ClaimKey, claim: Claim) {
        let held = HeldClaim {
            threads: BTreeSet::new(),
            claim,
            is_changed: true,
        };
        self.claims.insert(key, held);
    }

    fn stored_claim(&mut self, key: &ClaimKey) -> Result<Option<Claim>, StoreError> {
        let record: Option<ClaimRecord> = self.get(&claim_address(key))?;
        record.map(ClaimRecord::read).transpose()
    }

    /// Writes the claims that changed, and that each occurs in its conversations and no other.
    pub(super) fn write_claims(&mut self) -> Result<(), StoreError> {
        for (key, held) in mem::take(&mut self.claims) {
            if !held.is_changed {
                continue;
            }
            let (claim, threads) = (&held.claim, held.claim.threads());
            for thread in held.threads.symmetric_difference(&threads) {
                let address = thread_address(&claim.predicate, *thread);
                let mut record: ThreadRecord = self.get(&address)?.unwrap_or_default();
                let id = claim.id.as_str();
                if !threads.contains(thread) {
                    record.claims.retain(|named| named != id);
                } else if record.claims.len() < MAX_NAMED_CLAIMS {
                    record.claims.push(id.to_owned());
                }
                self.put(&address, &record);
            }
            self.put(&claim_address(&key), &ClaimRecord::of(claim));
        }
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

    /// The claims of a predicate that say something else in a conversation that it is from.
    pub fn contradicting(&mut self, claim: &Claim) -> Result<BTreeSet<ClaimId>, StoreError> {
        let mut found = BTreeSet::new();
        if !crate::core::claim::excludes_others(claim.datatype) {
            return Ok(found);
        }
        for thread in claim.threads() {
            let address = thread_address(&claim.predicate, thread);
            let record: ThreadRecord = self.get(&address)?.unwrap_or_default();
            let own = claim.statement(thread);
            for id in record.claims {
                let id = ClaimId::parse(&id).ok_or(StoreError::Corrupt)?;
                if id == claim.id {
                    continue;
                }
                let key = ClaimKey {
                    predicate: claim.predicate.clone(),
                    id: id.clone(),
                };
                let other = self.claim(&key)?.ok_or(StoreError::Corrupt)?;
                if other.statement(thread) != own {
                    found.insert(id);
                }
            }
        }
        Ok(found)
    }

    /// Why a meeting does not take place when a claim says, by the claims about the same meeting.
    pub fn gone(&mut self, claim: &Claim) -> Result<Option<Gone>, StoreError> {
        let is_word = |support: &Support| support.revision.is_some();
        if !claim.supports().iter().any(is_word) {
            return Ok(None);
        }
        let mut about = Vec::new();
        for predicate in meeting::predicates() {
            let mut ids = BTreeSet::new();
            for thread in claim.threads() {
                let record: Option<ThreadRecord> = self.get(&thread_address(&predicate, thread))?;
                ids.extend(record.into_iter().flat_map(|it| it.claims));
            }
            for id in ids {
                let key = ClaimKey {
                    predicate: predicate.clone(),
                    id: ClaimId::parse(&id).ok_or(StoreError::Corrupt)?,
                };
                about.push(self.claim(&key)?.ok_or(StoreError::Corrupt)?);
            }
        }
        Ok(Words::of(&about).gone(claim))
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
            let gone = self.gone(&claim)?;
            claims.push(StoredClaim {
                claim,
                contradicts,
                gone,
            });
        }
        Ok((claims, total))
    }
}
