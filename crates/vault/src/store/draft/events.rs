//! The events of a subject, and what they were captured from.

use cl_model::digest::Digest;
use cl_model::urn::EventId;

use super::Draft;
use crate::store::StoreError;
use crate::store::address::{EVENTS, event_address, item_address, list_address};
use crate::store::records::{EventRecord, StoredEvent, TextRecord};

/// One page of events.
pub struct EventPage {
    /// The events, each with its place, latest first.
    pub entries: Vec<(u64, StoredEvent)>,
    /// How many there are on all pages.
    pub total: u64,
}

impl Draft<'_> {
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
}
