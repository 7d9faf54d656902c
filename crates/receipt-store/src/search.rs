//! Searches: pages of receipts, found in bounded pieces of work, few at a time.

use std::ops::Range;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::core::finished::Facets;
use crate::core::readers::View;
use crate::core::records::{self, EntryRecord};
use crate::core::routing::{SubjectTag, Tenant};
use crate::error::Error;
use crate::reader::{Numbered, PAGE_BYTES, Page, Reader};
use crate::store::{Selector, Slot, number};

/// How many entries are read at once.
const CHUNK: usize = 64;

/// How many chunks are one piece of work.
const PIECE: usize = 16;

/// After this many entries that do not match, a page ends.
const MAX_SEARCHED: u64 = 10_000;

/// How many searches run at once.
const MAX_RUNNING: usize = 4;

/// How many more may wait for their turn.
const MAX_WAITING: usize = 28;

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
    /// What of it the reader may see.
    pub view: View,
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
    /// Whether it asks for anything.
    fn is_empty(&self) -> bool {
        self.is_only(None)
    }

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

    /// A tombstone has none of what can be asked for.
    fn matches(&self, entry: &EntryRecord) -> bool {
        if entry.tombstone.is_some() {
            return self.is_empty();
        }
        let has = |asked: &Option<String>, found: Option<&str>| {
            asked.as_deref().is_none_or(|asked| found == Some(asked))
        };
        let Facets {
            operation,
            outcome,
            bundle_ref,
            decision_ref,
        } = entry.facets();
        let tag = entry.subject_tag();
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
    /// The first entry that was not looked at.
    pub position: u64,
    /// How many receipts all pages have, as counted for the first one.
    pub total: u64,
}

/// A search that may be on its way.
pub struct Search {
    query: Query,
    /// The list that is looked through; none: the log itself.
    list: Option<Selector>,
    page_size: usize,
    /// What is left to look at.
    left: Range<u64>,
    /// How many entries were looked at.
    looked_at: u64,
    items: Vec<Numbered>,
    bytes: usize,
    /// Where the next page starts, once this one is full.
    next: Option<u64>,
    /// How many match on all pages, if that is known.
    total: Option<u64>,
    /// How many match so far.
    matching: u64,
}

impl Search {
    /// Whether the page, and the number of all that match, are there.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() || (self.next.is_some() && self.total.is_some())
    }

    /// The page.
    pub fn into_page(self) -> Page<Numbered, Place> {
        let total = self.total.unwrap_or(self.matching);
        // On the first page it is known whether all are on it.
        let has_more = total > self.items.len() as u64;
        Page {
            next: self
                .next
                .filter(|position| has_more && *position < self.left.end)
                .map(|position| Place { position, total }),
            items: self.items,
            total,
        }
    }

    /// Whether all that is left need only be counted, and everything in the list matches.
    fn counts_places(&self) -> bool {
        self.next.is_some() && self.list.is_some() && self.is_exact()
    }

    /// Whether everything in the list matches.
    fn is_exact(&self) -> bool {
        let sees_all = match &self.query.view {
            View::Auditor => true,
            View::Subject(tag) => self.list == Some(Selector::Subject(tag.clone())),
            View::Nothing | View::Writer(_) | View::Requester => false,
        };
        sees_all && self.query.filter.is_only(self.list.as_ref())
    }

    fn take(&mut self, sequence: u64, entry: EntryRecord) {
        self.left.start = sequence + 1;
        self.looked_at += 1;
        let is_found = self.query.view.shows(&entry, None) && self.query.filter.matches(&entry);
        self.matching += u64::from(is_found);
        if self.next.is_some() {
            return;
        }
        if is_found {
            self.bytes += entry.receipt.len();
            self.items.push((sequence, entry));
        }
        let is_full = self.items.len() == self.page_size || self.bytes >= PAGE_BYTES;
        if is_full || self.looked_at >= MAX_SEARCHED {
            self.next = Some(self.left.start);
        }
    }
}

impl Reader {
    /// Begins a search for a page, from a place of an earlier page on.
    pub fn begin_search(
        &self,
        mut query: Query,
        start: Option<Place>,
        page_size: usize,
    ) -> Result<Search, Error> {
        let mut sees_any = true;
        match &query.view {
            View::Nothing | View::Requester => sees_any = false,
            View::Subject(tag) => {
                let asked = query.filter.subject_tag.get_or_insert_with(|| tag.clone());
                sees_any = asked == tag;
            }
            View::Auditor | View::Writer(_) => {}
        }
        let list = query.filter.selector();
        let mut search = Search {
            query,
            list,
            page_size,
            left: 1..1,
            looked_at: 0,
            items: Vec::new(),
            bytes: 0,
            next: None,
            total: start.map(|start| start.total),
            matching: 0,
        };
        if !sees_any {
            return Ok(search);
        }
        let shown = self.kept.shown(&*self.store, &search.query.tenant, 0)?;
        let shown = shown.map_or(0, |tree| tree.size());
        let Query {
            tenant,
            from_ms,
            before_ms,
            ..
        } = &search.query;
        let since = |time_ms: &Option<u64>, unbounded: u64| match time_ms {
            None => Ok(unbounded),
            Some(time_ms) => self.first_since(tenant, *time_ms, shown),
        };
        let first = since(from_ms, 1)?;
        let end = since(before_ms, shown + 1)?.max(first);
        let is_bounded = from_ms.is_some() || before_ms.is_some();
        if start.is_none() && search.is_exact() {
            search.total = match &search.list {
                None => Some(end - first),
                Some(_) if is_bounded => None,
                Some(list) => Some(self.size(tenant, list, shown)?),
            };
        }
        search.left = start.map_or(first, |start| start.position.clamp(first, end))..end;
        Ok(search)
    }

    /// Looks at some more entries.
    pub fn search(&self, mut search: Search) -> Result<Search, Error> {
        for _ in 0..PIECE {
            if search.is_complete() {
                break;
            }
            let sequences = self.next_places(&search)?;
            if sequences.is_empty() {
                search.left.start = search.left.end;
            } else if search.counts_places() {
                search.matching += sequences.len() as u64;
                search.left.start = sequences.last().map_or(search.left.end, |last| last + 1);
            } else {
                for (sequence, entry) in self.entries(&search.query.tenant, &sequences)? {
                    // Entries of this chunk behind the end of the page are counted.
                    search.take(sequence, entry);
                    if search.is_complete() {
                        break;
                    }
                }
            }
        }
        Ok(search)
    }

    /// The next entries of the list.
    fn next_places(&self, search: &Search) -> Result<Vec<u64>, Error> {
        let Range { start, end } = search.left;
        let Some(list) = &search.list else {
            return Ok((start..end).take(CHUNK).collect());
        };
        let tenant = &search.query.tenant;
        let mut places = self.store.places(tenant, list, start - 1, CHUNK)?;
        places.retain(|sequence| *sequence < end);
        Ok(places)
    }

    /// How long a list is, as far as its entries are pinned.
    fn size(&self, tenant: &Tenant, list: &Selector, shown: u64) -> Result<u64, Error> {
        // In this order: what is added in between is hidden, and counted in neither.
        let size = self.store.get(&Slot::Size(tenant.clone(), list.clone()))?;
        let size = number(size.as_ref())?.unwrap_or(0);
        let mut hidden = 0;
        let mut after = shown;
        loop {
            let places = self.store.places(tenant, list, after, CHUNK)?;
            hidden += places.len() as u64;
            match places.last() {
                Some(last) if places.len() == CHUNK => after = *last,
                Some(_) | None => return Ok(size.saturating_sub(hidden)),
            }
        }
    }

    /// The first entry of a log that was recorded at a time or later; one behind the last if none
    /// was. Tombstones keep their time.
    fn first_since(&self, tenant: &Tenant, time_ms: u64, size: u64) -> Result<u64, Error> {
        let (mut low, mut high) = (1, size + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(tenant, middle)?.recorded_at_ms >= time_ms {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    fn entries(&self, tenant: &Tenant, sequences: &[u64]) -> Result<Vec<Numbered>, Error> {
        let slots: Vec<_> = sequences
            .iter()
            .map(|sequence| Slot::Entry(tenant.clone(), *sequence))
            .collect();
        let entries = self.store.get_many(&slots)?.into_iter().zip(sequences);
        let entries = entries.map(|(stored, sequence)| {
            let stored = stored.ok_or(Error::Corrupt("an entry is missing"))?;
            Ok((*sequence, records::decode(&stored)?))
        });
        entries.collect()
    }
}

/// Lets few searches run at once, and few wait.
#[derive(Clone, Debug)]
pub struct Searches {
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

/// The right to search; it lasts as long as the work does.
#[derive(Debug)]
pub struct Turn {
    _admitted: OwnedSemaphorePermit,
    _running: OwnedSemaphorePermit,
}

impl Default for Searches {
    fn default() -> Self {
        Self {
            admitted: Arc::new(Semaphore::new(MAX_RUNNING + MAX_WAITING)),
            running: Arc::new(Semaphore::new(MAX_RUNNING)),
        }
    }
}

impl Searches {
    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] when too many wait already.
    pub async fn admit(&self) -> Result<Arc<Turn>, Error> {
        let admitted = Arc::clone(&self.admitted).try_acquire_owned();
        let admitted = admitted.map_err(|_| Error::Busy)?;
        let running = Arc::clone(&self.running).acquire_owned().await;
        Ok(Arc::new(Turn {
            _admitted: admitted,
            _running: running.map_err(|_| Error::Draining)?,
        }))
    }
}
