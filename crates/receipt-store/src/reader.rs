//! Reading: single receipts with their proofs, searches, and open intents.

use std::ops::Range;
use std::sync::Arc;

use crate::core::command::operation_slot;
use crate::core::finished::Facets;
use crate::core::intents::State;
use crate::core::kept::Kept;
use crate::core::records::{self, EntryRecord, OperationKeyRecord, OperationRecord, PlaceRecord};
use crate::core::routing::{SubjectTag, Tenant};
use crate::error::Error;
use crate::store::{Selector, Slot, Store, number};

/// After this many bytes of receipts or members a page ends, so that an answer fits into what a
/// gRPC client takes by default.
const PAGE_BYTES: usize = 2 << 20;

/// How many entries are read at once.
const CHUNK: u64 = 64;

/// After this many entries that do not match, a page ends.
const MAX_SEARCHED: u64 = 10_000;

/// Reads what is durable. Every call blocks.
#[derive(Clone)]
pub struct Reader {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) kept: Arc<Kept>,
}

/// An entry and its sequence.
pub type Numbered = (u64, EntryRecord);

/// What receipts a reader asks for.
#[derive(Clone, Debug)]
pub struct Query {
    /// Whose receipts.
    pub tenant: Tenant,
    /// Which of them.
    pub filter: Filter,
    /// Recorded at this time or later.
    pub from_ms: Option<u64>,
    /// Recorded before this time.
    pub before_ms: Option<u64>,
}

/// What receipts must have.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// This subject.
    pub subject_tag: Option<SubjectTag>,
    /// This operation.
    pub operation: Option<String>,
    /// This outcome.
    pub outcome: Option<String>,
    /// This bundle.
    pub bundle_ref: Option<String>,
    /// This decision.
    pub decision_ref: Option<String>,
}

impl Filter {
    /// The list that holds the fewest others beside what is asked for; none: the log itself.
    fn selector(&self) -> Option<Selector> {
        let bundle = self.bundle_ref.clone().map(Selector::Bundle);
        let decision = self.decision_ref.clone().map(Selector::Decision);
        let subject = self.subject_tag.clone().map(Selector::Subject);
        let operation = self.operation.clone().map(Selector::Operation);
        bundle.or(decision).or(subject).or(operation)
    }

    /// Whether the list holds nothing else.
    fn is_only(&self, selector: Option<&Selector>) -> bool {
        let asked = [
            self.subject_tag.is_some(),
            self.operation.is_some(),
            self.outcome.is_some(),
            self.bundle_ref.is_some(),
            self.decision_ref.is_some(),
        ];
        asked.iter().filter(|it| **it).count() == usize::from(selector.is_some())
    }

    fn matches(&self, entry: &EntryRecord) -> bool {
        let has = |asked: &Option<String>, found: Option<&str>| {
            asked.as_deref().is_none_or(|asked| found == Some(asked))
        };
        let Facets {
            operation,
            outcome,
            bundle_ref,
            decision_ref,
        } = entry.facets();
        let routing = entry.routing.as_ref();
        let tag = routing.and_then(|routing| routing.subject_tag.as_deref());
        has(&self.operation, Some(&operation))
            && has(&self.outcome, Some(&outcome))
            && has(&self.bundle_ref, bundle_ref.as_deref())
            && has(&self.decision_ref, decision_ref.as_deref())
            && self
                .subject_tag
                .as_ref()
                .is_none_or(|asked| tag == Some(asked.as_str()))
    }
}

/// Where a search goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The position in the list.
    pub position: u64,
    /// How many receipts all pages have, as counted for the first one.
    pub total: u64,
}

/// A page of a list.
pub struct Page<T, P> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next one starts.
    pub next: Option<P>,
    /// How many items all pages have.
    pub total: u64,
}

/// An intent that is not settled.
pub struct OpenIntent {
    /// The operation.
    pub operation: OperationRecord,
    /// The store's own receipt about it.
    pub entry: Option<Numbered>,
}

/// A list of entries, or the log itself.
struct List<'a> {
    query: &'a Query,
    selector: Option<Selector>,
}

impl Reader {
    /// Reads from this store.
    pub fn new(store: Arc<dyn Store>, kept: Arc<Kept>) -> Self {
        Self { store, kept }
    }

    /// One receipt of a tenant; of equal receipts of several operations the first.
    pub fn receipt(&self, tenant: &Tenant, reference: &str) -> Result<Numbered, Error> {
        let slot = Slot::Receipt(tenant.clone(), reference.to_owned());
        let sequence = number(self.store.get(&slot)?.as_ref())?.ok_or(Error::ReceiptNotFound)?;
        let entry = self.entry(tenant, sequence)?;
        if entry.receipt_ref != reference {
            return Err(Error::Corrupt("an index leads to another receipt"));
        }
        Ok((sequence, entry))
    }

    /// The proof that an entry is in its log, as the log is now.
    pub fn proof(&self, tenant: &Tenant, (sequence, entry): &Numbered) -> Result<String, Error> {
        let tree = self.kept.shown(&*self.store, tenant, *sequence)?;
        let tree = tree.ok_or(Error::Corrupt("an entry is in no log"))?;
        tree.proofs(&*self.store, tenant).prove(*sequence, entry)
    }

    /// A page of a tenant's receipts, from a place of the list on.
    pub fn list(
        &self,
        query: &Query,
        start: Option<Place>,
        page_size: usize,
    ) -> Result<Page<Numbered, Place>, Error> {
        let list = List {
            query,
            selector: query.filter.selector(),
        };
        let size = self.size(&list)?;
        let first = self.first_since(&list, query.from_ms, size, 1)?;
        let end = self.first_since(&list, query.before_ms, size, size + 1)?;
        let end = end.max(first);
        let total = match start {
            Some(start) => start.total,
            None if query.filter.is_only(list.selector.as_ref()) => end - first,
            None => self.count(&list, first..end)?,
        };
        let mut position = start.map_or(first, |start| start.position.clamp(first, end));
        let stop = position.saturating_add(MAX_SEARCHED).min(end);
        let mut items: Vec<Numbered> = Vec::new();
        let mut bytes = 0;
        'pages: while position < stop {
            for (sequence, entry) in self.entries(&list, position..stop.min(position + CHUNK))? {
                position += 1;
                if query.filter.matches(&entry) {
                    bytes += entry.receipt.len();
                    items.push((sequence, entry));
                }
                if items.len() == page_size || bytes >= PAGE_BYTES {
                    break 'pages;
                }
            }
        }
        Ok(Page {
            items,
            next: (position < end).then_some(Place { position, total }),
            total,
        })
    }

    fn count(&self, list: &List<'_>, mut places: Range<u64>) -> Result<u64, Error> {
        let mut count = 0;
        while places.start < places.end {
            let chunk = places.start..places.end.min(places.start + CHUNK);
            places.start = chunk.end;
            let entries = self.entries(list, chunk)?;
            let matching = entries.iter();
            let matching = matching.filter(|(_, entry)| list.query.filter.matches(entry));
            count += matching.count() as u64;
        }
        Ok(count)
    }

    /// How long a list is, as far as its entries are pinned.
    fn size(&self, list: &List<'_>) -> Result<u64, Error> {
        let tenant = &list.query.tenant;
        let shown = self.kept.shown(&*self.store, tenant, 0)?;
        let shown = shown.map_or(0, |tree| tree.size());
        let Some(selector) = &list.selector else {
            return Ok(shown);
        };
        let slot = Slot::Size(tenant.clone(), selector.clone());
        let size = number(self.store.get(&slot)?.as_ref())?.unwrap_or(0);
        let is_hidden = |(sequence, _): &Numbered| *sequence > shown;
        if size == 0 || !self.entries(list, size..size + 1)?.iter().any(is_hidden) {
            return Ok(size);
        }
        Ok(self.first_where(list, size, is_hidden)? - 1)
    }

    /// The first place of a list that was recorded at `time_ms` or later; one behind the last if
    /// none was, and `unbounded` without a time.
    fn first_since(
        &self,
        list: &List<'_>,
        time_ms: Option<u64>,
        size: u64,
        unbounded: u64,
    ) -> Result<u64, Error> {
        match time_ms {
            None => Ok(unbounded),
            Some(time_ms) => self.first_where(list, size, |(_, it)| it.recorded_at_ms >= time_ms),
        }
    }

    /// The first place of a list whose entry is so, and with it all behind it; one behind the last
    /// if none is.
    fn first_where(
        &self,
        list: &List<'_>,
        size: u64,
        is_so: impl Fn(&Numbered) -> bool,
    ) -> Result<u64, Error> {
        let (mut low, mut high) = (1, size + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entries(list, middle..middle + 1)?.iter().all(&is_so) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// The entries at some places of a list.
    fn entries(&self, list: &List<'_>, places: Range<u64>) -> Result<Vec<Numbered>, Error> {
        let tenant = &list.query.tenant;
        let sequences: Vec<u64> = match &list.selector {
            None => places.collect(),
            Some(selector) => {
                let slots: Vec<_> = places
                    .map(|at| Slot::Place(tenant.clone(), selector.clone(), at))
                    .collect();
                let places = self.store.get_many(&slots)?.into_iter().map(|place| {
                    let place = place.ok_or(Error::Corrupt("a place of a list is missing"))?;
                    records::decode(&place).map(|place: PlaceRecord| place.sequence)
                });
                places.collect::<Result<_, _>>()?
            }
        };
        let slots: Vec<_> = sequences
            .iter()
            .map(|sequence| Slot::Entry(tenant.clone(), *sequence))
            .collect();
        let entries = self.store.get_many(&slots)?.into_iter().zip(sequences);
        let entries = entries.map(|(stored, sequence)| {
            let stored = stored.ok_or(Error::Corrupt("an entry is missing"))?;
            Ok((sequence, records::decode(&stored)?))
        });
        entries.collect()
    }

    /// A page of a writer's intents that are not settled.
    pub fn open_intents(
        &self,
        writer: &str,
        after: Option<&OperationKeyRecord>,
        page_size: usize,
    ) -> Result<Page<OpenIntent, OperationKeyRecord>, Error> {
        let size = Slot::OpenSize(writer.to_owned());
        let total = number(self.store.get(&size)?.as_ref())?.unwrap_or(0);
        let mut keys = self
            .store
            .open(writer, after, page_size.saturating_add(1))?;
        let mut has_more = keys.len() > page_size;
        keys.truncate(page_size);
        let mut items = Vec::new();
        let (mut bytes, mut last) = (0, None);
        for key in keys {
            if bytes >= PAGE_BYTES {
                has_more = true;
                break;
            }
            if let Some(intent) = self.open_intent(&key)? {
                bytes += intent.operation.expect_intent()?.members.len();
                items.push(intent);
            }
            last = Some(key);
        }
        Ok(Page {
            items,
            next: last.filter(|_| has_more),
            total,
        })
    }

    /// The intent behind a key; none if it was settled since the key was read.
    fn open_intent(&self, key: &OperationKeyRecord) -> Result<Option<OpenIntent>, Error> {
        let stored = self.store.get(&operation_slot(key)?)?;
        let stored = stored.ok_or(Error::Corrupt("an indexed operation is missing"))?;
        let operation: OperationRecord = records::decode(&stored)?;
        let intent = operation.expect_intent()?;
        let entry = match intent.state() {
            State::Settled => return Ok(None),
            State::Open => None,
            State::Overdue => {
                let sequence = intent.overdue_sequence;
                let routing = records::routing(operation.routing.as_ref())?;
                Some((sequence, self.entry(&routing.tenant, sequence)?))
            }
        };
        Ok(Some(OpenIntent { operation, entry }))
    }

    /// An entry of a log.
    pub fn entry(&self, tenant: &Tenant, sequence: u64) -> Result<EntryRecord, Error> {
        let stored = self.store.get(&Slot::Entry(tenant.clone(), sequence))?;
        let stored = stored.ok_or(Error::Corrupt("an entry is missing"))?;
        records::decode(&stored)
    }
}
