//! Checking logs: all of one, or before serving the end of each.

use std::collections::BTreeSet;

use cl_model::receipt::consumption;
use cl_model::refusal::Code;
use cl_tlog::{Appended, Edge, Entry, HASH_BYTES, Hash, Prover, TILE_WIDTH, TileReader as _};

use crate::core::finished;
use crate::core::kept::ENDS_EARLY;
use crate::core::records::{self, EntryRecord, LogRecord};
use crate::core::routing::Tenant;
use crate::core::trees::{Tiles, Tree};
use crate::error::Error;
use crate::reader::Reader;
use crate::store::{Slot, number};

/// How many entries are checked in one go: those of a full tile.
const CHUNK: u64 = 256;

/// How many of the last entries are checked before the store serves.
const TAIL: u64 = 64;

/// How far a check of a log has come.
#[derive(Clone, Debug)]
pub struct Progress {
    tenant: Tenant,
    /// The tree of the entries that verified.
    edge: Edge,
    /// The size and root that the checkpoint states.
    goal: (u64, Hash),
    checkpoint: String,
    /// How many of the entries that verified are tombstones.
    erased: u64,
}

impl Progress {
    /// Entries that verified.
    pub fn checked(&self) -> u64 {
        self.edge.size()
    }

    /// Whether all entries were checked.
    pub fn is_complete(&self) -> bool {
        self.checked() >= self.goal.0
    }

    /// Entries that verified and are tombstones.
    pub fn erased(&self) -> u64 {
        self.erased
    }

    fn count(&mut self, erased: &[bool]) {
        self.erased += erased.iter().filter(|it| **it).count() as u64;
    }

    /// The checkpoint that is checked; empty for a tenant without a log.
    pub fn checkpoint(&self) -> &str {
        &self.checkpoint
    }
}

/// Where a log does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The entry at fault.
    pub sequence: u64,
    /// Why.
    pub code: Code,
}

impl Reader {
    /// Starts a check of a tenant's log as it is now. Damage is a fault; an error says that nothing
    /// could be read.
    pub fn begin_check(&self, tenant: Tenant) -> Result<(Progress, Option<Fault>), Error> {
        let mut progress = Progress {
            tenant,
            edge: Edge::default(),
            goal: (0, Hash::EMPTY),
            checkpoint: String::new(),
            erased: 0,
        };
        let log = match self.log_record(&progress.tenant)? {
            Ok(log) => log,
            Err(code) => return Ok((progress, Some(Fault { sequence: 1, code }))),
        };
        let Some(log) = log else {
            if self.has_entry(&progress.tenant, 1)? {
                let code = Code::ReceiptLogUnanchoredSuffix;
                return Ok((progress, Some(Fault { sequence: 1, code })));
            }
            let fault = self.check_pin(&progress.tenant, 0)?;
            return Ok((progress, fault));
        };
        let stated = self.kept.key().read(&progress.tenant, &log.checkpoint)?;
        progress.checkpoint = log.checkpoint;
        let Some(stated) = stated else {
            let code = Code::ReceiptLogRewrite;
            return Ok((progress, Some(Fault { sequence: 1, code })));
        };
        let stated = stated.checkpoint();
        progress.goal = (stated.size(), stated.root());
        // What is not pinned is not shown. Of damage the entries can say more than the pin.
        let covered = self.kept.cover(&*self.store, &progress.tenant);
        let covered = named(covered, Code::ReceiptLogRewrite)?;
        drop(covered);
        Ok((progress, None))
    }

    /// Where a log ends, or what is wrong with the record of it.
    fn log_record(&self, tenant: &Tenant) -> Result<Result<Option<LogRecord>, Code>, Error> {
        let stored = self.store.get(&Slot::Log(tenant.clone()));
        let record = stored.and_then(|stored| {
            let record = stored.map(|stored| records::decode(&stored));
            record.transpose()
        });
        named(record, Code::ReceiptLogRewrite)
    }

    /// Checks that a log goes on from its pin: what is not pinned is not shown.
    fn check_pin(&self, tenant: &Tenant, size: u64) -> Result<Option<Fault>, Error> {
        let code = match self.kept.cover(&*self.store, tenant) {
            Ok(_) => return Ok(None),
            Err(Error::Corrupt(ENDS_EARLY)) => Code::ReceiptLogRollback,
            Err(Error::Corrupt(_)) => Code::ReceiptLogRewrite,
            Err(error) => return Err(error),
        };
        let sequence = size + u64::from(code == Code::ReceiptLogRollback);
        Ok(Some(Fault {
            sequence: sequence.max(1),
            code,
        }))
    }

    /// Checks some more entries. The fault comes with what verified before it.
    pub fn check(&self, mut progress: Progress) -> Result<(Progress, Option<Fault>), Error> {
        let (size, root) = progress.goal;
        let first = progress.checked() + 1;
        let last = size.min(progress.checked() + CHUNK);
        let (mut leaves, mut erased) = (Vec::new(), Vec::new());
        let mut fault = None;
        for sequence in first..=last {
            match self.check_entry(&progress.tenant, sequence)? {
                Ok(entry) => {
                    erased.push(entry.tombstone.is_some());
                    leaves.push(entry.leaf);
                }
                Err(code) => {
                    fault = Some(Fault { sequence, code });
                    break;
                }
            }
        }
        let appended = append(&progress.edge, &leaves)?;
        if let Some(bad) = self.check_tiles(&progress.tenant, first, &appended)? {
            leaves.truncate(usize::try_from(bad.sequence - first).unwrap_or(usize::MAX));
            erased.truncate(leaves.len());
            progress.count(&erased);
            progress.edge = append(&progress.edge, &leaves)?.into_edge();
            return Ok((progress, Some(bad)));
        }
        progress.count(&erased);
        progress.edge = appended.into_edge();
        if fault.is_some() || !progress.is_complete() {
            return Ok((progress, fault));
        }
        let fault = |sequence, code| Some(Fault { sequence, code });
        let fault = if progress.edge.root() != root {
            fault(size, Code::ReceiptLogRewrite)
        } else if let Some(unpinned) = self.check_pin(&progress.tenant, size)? {
            Some(unpinned)
        } else if self.has_stray_entry(&progress.tenant, size)? {
            fault(size + 1, Code::ReceiptLogUnanchoredSuffix)
        } else {
            None
        };
        Ok((progress, fault))
    }

    /// The first difference between stored tiles and those of the entries that were read.
    fn check_tiles(
        &self,
        tenant: &Tenant,
        first: u64,
        appended: &Appended,
    ) -> Result<Option<Fault>, Error> {
        for (tile, bytes) in appended.tiles() {
            let code = match self.tiles(tenant).read(tile) {
                Ok(Some(stored)) if stored.starts_with(&bytes) => continue,
                Ok(Some(stored)) => {
                    let hashes = bytes.chunks(HASH_BYTES).zip(stored.chunks(HASH_BYTES));
                    let same = hashes.take_while(|(read, stored)| read == stored).count();
                    let span = u64::from(TILE_WIDTH).pow(tile.level().into());
                    let start = tile.index() * u64::from(TILE_WIDTH) + same as u64;
                    return Ok(Some(Fault {
                        sequence: (start * span + 1).max(first),
                        code: Code::ReceiptLogInvalidEntry,
                    }));
                }
                Err(Error::Corrupt(_)) => Code::ReceiptLogInvalidEntry,
                Ok(None) => Code::ReceiptLogTruncated,
                Err(error) => return Err(error),
            };
            return Ok(Some(Fault {
                sequence: first,
                code,
            }));
        }
        Ok(None)
    }

    /// An entry that verifies, or why it does not.
    fn check_entry(
        &self,
        tenant: &Tenant,
        sequence: u64,
    ) -> Result<Result<EntryRecord, Code>, Error> {
        let entry = match self.store.get(&Slot::Entry(tenant.clone(), sequence)) {
            Ok(Some(stored)) => records::decode::<EntryRecord>(&stored),
            Ok(None) => return Ok(Err(Code::ReceiptLogTruncated)),
            Err(error) => Err(error),
        };
        let entry = match named(entry, Code::ReceiptLogInvalidEntry)? {
            Ok(entry) => entry,
            Err(code) => return Ok(Err(code)),
        };
        if entry.tombstone.is_some() {
            let is_tombstone = finished::is_tombstone(&entry);
            return Ok(is_tombstone
                .then_some(entry)
                .ok_or(Code::ReceiptLogInvalidEntry));
        }
        let receipt = match finished::verify(&entry) {
            Ok(receipt) => receipt,
            Err(code) => return Ok(Err(code)),
        };
        let routing = records::routing(entry.routing.as_ref());
        if !routing.is_ok_and(|routing| routing.tenant == *tenant) {
            return Ok(Err(Code::ReceiptLogInvalidEntry));
        }
        if let Some(superseded) = &entry.supersedes_ref {
            let superseded = Slot::Receipt(tenant.clone(), superseded.clone());
            let place = named(self.number(&superseded), Code::ReceiptLogInvalidEntry)?;
            match place {
                Ok(Some(place)) if place < sequence => {}
                Ok(Some(_) | None) => return Ok(Err(Code::InvalidReceipt)),
                Err(code) => return Ok(Err(code)),
            }
        }
        if let Some((actor, bundle)) = consumption(&receipt) {
            let first = Slot::Consumed(tenant.clone(), actor, bundle);
            match named(self.number(&first), Code::ReceiptLogInvalidEntry)? {
                Ok(Some(first)) if first == sequence => {}
                Ok(Some(_) | None) => return Ok(Err(Code::ReceiptReplayConflict)),
                Err(code) => return Ok(Err(code)),
            }
        }
        Ok(Ok(entry))
    }

    fn number(&self, slot: &Slot) -> Result<Option<u64>, Error> {
        number(self.store.get(slot)?.as_ref())
    }

    pub(crate) fn tiles(&self, tenant: &Tenant) -> Tiles<'_> {
        Tiles {
            store: &*self.store,
            tenant: tenant.clone(),
        }
    }

    /// Whether there is an entry, also one that cannot be opened.
    fn has_entry(&self, tenant: &Tenant, sequence: u64) -> Result<bool, Error> {
        let stored = self.store.get(&Slot::Entry(tenant.clone(), sequence));
        let stored = named(stored, Code::ReceiptLogInvalidEntry)?;
        Ok(stored.map_or(true, |stored| stored.is_some()))
    }

    /// Whether an entry follows that no checkpoint covers.
    fn has_stray_entry(&self, tenant: &Tenant, size: u64) -> Result<bool, Error> {
        if !self.has_entry(tenant, size + 1)? {
            return Ok(false);
        }
        let now = self.kept.load(&*self.store, tenant)?;
        Ok(now.is_none_or(|tree| tree.size() <= size))
    }

    /// Checks before serving that tree, checkpoint and the last entries of each log belong together.
    pub fn check_tails(&self) -> Result<(), Inconsistent> {
        for tenant in self.store.tenants()? {
            let tree = Tree::load(&*self.store, self.kept.key(), &tenant)?;
            let tree = tree.ok_or(Error::Corrupt("a tenant has lost its log"))?;
            if let Some(fault) = self.check_tail(&tenant, &tree)? {
                return Err(Inconsistent::Fault(fault));
            }
        }
        Ok(())
    }

    /// Checks before serving that each log goes on from its pin, and that no pin is without its log.
    ///
    /// A store may be ahead of its pins; they follow as soon as they can be written. A log that was
    /// pinned and has no pin now is refused, unless such logs are adopted.
    pub fn check_pins(&self, adopts_lost: bool) -> Result<(), Inconsistent> {
        let key = self.kept.key();
        let origins = self.kept.pin().origins().map_err(Error::from)?;
        let mut tenants: BTreeSet<_> = self.store.tenants()?.into_iter().collect();
        tenants.extend(origins.iter().filter_map(|origin| key.tenant(origin)));
        for tenant in tenants {
            let adopted = if adopts_lost && !origins.contains(&key.origin(&tenant)) {
                tracing::warn!("a log has no pin, and is pinned as it is");
                self.kept.adopt(&*self.store, &tenant)
            } else {
                Ok(())
            };
            match adopted.and_then(|()| self.kept.cover(&*self.store, &tenant)) {
                Ok(_) => {}
                Err(error @ (Error::Unpinned(_) | Error::Uncosigned(_))) => {
                    tracing::warn!(%error, "a pin stays behind its log");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn check_tail(&self, tenant: &Tenant, tree: &Tree) -> Result<Option<Fault>, Error> {
        let size = tree.size();
        let mut prover = Prover::new(tree.edge().clone(), self.tiles(tenant));
        for sequence in size.saturating_sub(TAIL) + 1..=size {
            let fault = |code| Some(Fault { sequence, code });
            let entry = match self.check_entry(tenant, sequence)? {
                Ok(entry) => entry,
                Err(code) => return Ok(fault(code)),
            };
            let leaf = prover.leaf(sequence - 1).ok();
            if leaf != Some(Hash::of_leaf(&entry.leaf)) {
                return Ok(fault(Code::ReceiptLogInvalidEntry));
            }
        }
        let is_stray = self.has_stray_entry(tenant, size)?;
        Ok(is_stray.then_some(Fault {
            sequence: size + 1,
            code: Code::ReceiptLogUnanchoredSuffix,
        }))
    }
}

/// Tells damage, which is a finding, from a store that cannot be read.
fn named<T>(read: Result<T, Error>, damage: Code) -> Result<Result<T, Code>, Error> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(Error::Corrupt(_)) => Ok(Err(damage)),
        Err(error) => Err(error),
    }
}

fn append(edge: &Edge, leaves: &[Vec<u8>]) -> Result<Appended, Error> {
    let entries = leaves.iter().map(|leaf| Entry::new(leaf));
    let entries = entries.collect::<Result<Vec<_>, _>>();
    let appended = entries.and_then(|entries| edge.append(&entries));
    appended.map_err(|_| Error::Corrupt("a leaf is too long"))
}

/// Why a store does not start on what it finds.
#[derive(Debug, thiserror::Error)]
pub enum Inconsistent {
    /// The end of a log does not verify.
    #[error("a log does not verify at entry {}: {}", .0.sequence, .0.code.as_str())]
    Fault(Fault),
    /// The end of a log cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Error),
}
