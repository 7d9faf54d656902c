//! Data from before places were named by sequence: their lists are made anew, once.

use cl_kv::{Changes, Engine, Kind, Range};
use prost::Message;

use super::{KvStore, LISTS, LISTS_BY_SEQUENCE, Selector, Slot, Store, process, tenant};
use crate::core::records::{self, EntryRecord, NumberRecord};
use crate::core::routing::Tenant;
use crate::error::Error;

/// The kind of places that were numbered within their list.
const NUMBERED: Kind = Kind::new("place");

/// How many records are read or removed at once.
const AT_ONCE: u64 = 256;

impl<E: Engine> KvStore<E> {
    /// Makes the lists anew if they are of the form before this one. Nothing is served meanwhile; a
    /// crash in between leaves it to the next start.
    pub(super) fn list_anew(&self) -> Result<(), Error> {
        if self.sealed.get(process(LISTS))?.is_some() {
            return Ok(());
        }
        for owner in self.tenants()? {
            let mut first = 1;
            while self.list_some(&owner, first)? {
                first += AT_ONCE;
            }
            while self.forget_numbered(&owner)? {}
        }
        let done = Changes::new().put(process(LISTS), LISTS_BY_SEQUENCE);
        self.sealed.apply(&done)?;
        Ok(())
    }

    /// Lists the entries from one on; whether there may be more.
    fn list_some(&self, owner: &Tenant, first: u64) -> Result<bool, Error> {
        let sequences = first..first + AT_ONCE;
        let slots: Vec<_> = sequences
            .clone()
            .map(|sequence| Slot::Entry(owner.clone(), sequence))
            .collect();
        let mut changes = Changes::new();
        for (sequence, stored) in sequences.zip(self.get_many(&slots)?) {
            let Some(stored) = stored else {
                self.sealed.apply(&changes)?;
                return Ok(false);
            };
            let entry: EntryRecord = records::decode(&stored)?;
            let routing = records::routing(entry.routing.as_ref())?;
            let place = NumberRecord { number: sequence }.encode_to_vec();
            for list in Selector::of_entry(routing.subject_tag.as_ref(), &entry.facets()) {
                let slot = Slot::Place(owner.clone(), list, sequence);
                changes = changes.put(slot.key()?, place.as_slice());
            }
        }
        self.sealed.apply(&changes)?;
        Ok(true)
    }

    /// Removes some of the numbered places; whether there may be more.
    fn forget_numbered(&self, owner: &Tenant) -> Result<bool, Error> {
        let limit = usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
        let found = self
            .sealed
            .scan(&Range::of(tenant(owner, NUMBERED)?, limit))?;
        let is_full = found.len() == limit;
        let gone = found.into_iter().map(|found| found.key);
        let changes = gone.fold(Changes::new(), Changes::delete);
        self.sealed.apply(&changes)?;
        Ok(is_full)
    }
}
