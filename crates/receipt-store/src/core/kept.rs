//! The newest tree of each log, and what of it is pinned and cosigned. Only that is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::routing::Tenant;
use super::trees::{LogKey, Tree, log_record};
use crate::cosigning::{Cosigning, CosigningFailed, NotCosigned, Wait};
use crate::error::Error;
use crate::pin::{NotAdvanced, Pin};
use crate::store::Store;

/// Trees that are kept between groups; an edge has up to 16 KiB a level.
const MAX_KEPT: usize = 64;

/// Trees that stay readable while no quorum answers.
const MAX_SHOWN: usize = 1024;

/// How often a pin is read anew because another replica was faster.
const ATTEMPTS: usize = 8;

/// What a log is called that ends before its pin.
pub(crate) const ENDS_EARLY: &str = "rollback: a log ends before its pin";

const ROLLBACK: Error = Error::Corrupt(ENDS_EARLY);
const FORK: Error = Error::Corrupt("fork: a log does not lead from its pin to its end");
const FOREIGN: Error = Error::Corrupt("a pin was not signed by the log's key");
const UNPINNED: Error = Error::Corrupt("the pin of a log is missing");

/// The trees of all logs, their pins and cosignatures.
pub struct Kept {
    key: LogKey,
    pin: Arc<dyn Pin>,
    cosigning: Cosigning,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// Trees that were read or written before, so that they need not be read again.
    trees: BTreeMap<Tenant, Tree>,
    /// The newest tree of each log that is pinned and cosigned.
    shown: BTreeMap<Tenant, Tree>,
    /// Logs whose pin was seen: it cannot be gone later.
    pinned: BTreeSet<Tenant>,
    /// Logs whose newest checkpoint no quorum would cosign when it was last asked.
    uncosigned: BTreeSet<Tenant>,
}

impl Kept {
    /// Keeps nothing yet.
    pub fn new(key: LogKey, pin: Arc<dyn Pin>, cosigning: Cosigning) -> Self {
        Self {
            key,
            pin,
            cosigning,
            memory: Mutex::default(),
        }
    }

    /// The key of the logs.
    pub fn key(&self) -> &LogKey {
        &self.key
    }

    /// The pins of the logs.
    pub fn pin(&self) -> &dyn Pin {
        &*self.pin
    }

    /// Fails while no quorum cosigns the log of a tenant.
    pub fn check_quorum(&self, store: &dyn Store, tenant: &Tenant) -> Result<(), Error> {
        if self.lock().uncosigned.contains(tenant) {
            self.cover(store, tenant)?;
        }
        Ok(())
    }

    /// The tree of a tenant as it is stored. One that was kept counts while its checkpoint is the
    /// stored one.
    pub fn load(&self, store: &dyn Store, tenant: &Tenant) -> Result<Option<Tree>, Error> {
        let kept = self.lock().trees.get(tenant).cloned();
        if let Some(tree) = kept {
            let record = log_record(store, tenant)?;
            if record.is_some_and(|record| record.checkpoint == tree.checkpoint()) {
                return Ok(Some(tree));
            }
        }
        let loaded = Tree::load(store, &self.key, tenant)?;
        if let Some(tree) = &loaded {
            self.keep(tenant, tree);
        }
        Ok(loaded)
    }

    /// Keeps a tree that is durable.
    pub fn keep(&self, tenant: &Tenant, tree: &Tree) {
        insert(&mut self.lock().trees, tenant, tree.settled(), MAX_KEPT);
    }

    /// The tree of a tenant as it is stored, once its pin has it and a quorum has cosigned it.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when the tree does not go on from the pin or from what witnesses have seen:
    /// its end was lost, another store went on from the same data, the pin is not the log's, or it is
    /// gone. [`Error::Unpinned`] while the pin cannot be read or written, [`Error::Uncosigned`] while
    /// no quorum answers.
    pub fn cover(&self, store: &dyn Store, tenant: &Tenant) -> Result<Option<Tree>, Error> {
        for _ in 0..ATTEMPTS {
            let Some(tree) = self.pinned(store, tenant, Missing::Refuse)? else {
                return Ok(None);
            };
            if let Some(tree) = self.cosigned(store, tenant, tree, Wait::Yes)? {
                return Ok(Some(tree));
            }
        }
        Err(Error::Busy)
    }

    /// The same for the tree that this process has just stored. Where the pin is still the one that it
    /// was grown from, it goes on from there by the way it was made.
    pub fn cover_grown(
        &self,
        store: &dyn Store,
        tenant: &Tenant,
        grown: &Tree,
    ) -> Result<Option<Tree>, Error> {
        if let Some(from) = grown.grown_from()
            && self.advance(tenant, Some(from), grown)?
        {
            let covered = self.cosigned(store, tenant, grown.settled(), Wait::Yes)?;
            if covered.is_some() {
                return Ok(covered);
            }
        }
        self.cover(store, tenant)
    }

    /// Whether the pin of a tenant was this one, and is now that of the tree.
    fn advance(&self, tenant: &Tenant, from: Option<&str>, tree: &Tree) -> Result<bool, Error> {
        let origin = self.key.origin(tenant);
        match self.pin.advance(&origin, from, tree.checkpoint()) {
            Ok(()) => {
                self.lock().pinned.insert(tenant.clone());
                Ok(true)
            }
            Err(NotAdvanced::Moved) => Ok(false),
            Err(NotAdvanced::Failed(error)) => Err(error.into()),
        }
    }

    /// Pins the tree of a tenant as it is stored, also where it had a pin that is lost.
    pub fn adopt(&self, store: &dyn Store, tenant: &Tenant) -> Result<(), Error> {
        self.pinned(store, tenant, Missing::Adopt).map(|_| ())
    }

    fn pinned(
        &self,
        store: &dyn Store,
        tenant: &Tenant,
        missing: Missing,
    ) -> Result<Option<Tree>, Error> {
        let origin = self.key.origin(tenant);
        for _ in 0..ATTEMPTS {
            // The pin first: a log that another replica appends to is then never behind it.
            let pinned = self.pin.read(&origin)?;
            let tree = self.load(store, tenant)?;
            let Some(tree) = tree else {
                return pinned.map_or(Ok(None), |_| Err(ROLLBACK));
            };
            if pinned.as_deref() == Some(tree.checkpoint()) {
                self.lock().pinned.insert(tenant.clone());
                return Ok(Some(tree));
            }
            match &pinned {
                Some(text) => {
                    let pinned = self.key.read(tenant, text)?.ok_or(FOREIGN)?;
                    let pinned = pinned.checkpoint();
                    if pinned.size() > tree.size() {
                        return Err(ROLLBACK);
                    }
                    if !tree.extends(pinned, store, tenant)? {
                        return Err(FORK);
                    }
                }
                None => {
                    let had_one = tree.was_pinned() || self.lock().pinned.contains(tenant);
                    if had_one && missing == Missing::Refuse {
                        return Err(UNPINNED);
                    }
                }
            }
            if self.advance(tenant, pinned.as_deref(), &tree)? {
                return Ok(Some(tree));
            }
        }
        Err(Error::Busy)
    }

    /// A pinned tree with the cosignatures of a quorum; none if the log has grown meanwhile.
    fn cosigned(
        &self,
        store: &dyn Store,
        tenant: &Tenant,
        mut tree: Tree,
        wait: Wait,
    ) -> Result<Option<Tree>, Error> {
        if self.lacks_cosignatures(&tree) {
            let cosigned = self.cosigning.cosign(tenant, &tree, store, wait);
            let mut memory = self.lock();
            if cosigned.is_err() {
                memory.uncosigned.insert(tenant.clone());
            } else {
                memory.uncosigned.remove(tenant);
            }
            drop(memory);
            match cosigned {
                Ok(cosigned) => tree.publish(cosigned),
                Err(NotCosigned::Ahead(size)) => {
                    // Whatever a witness has seen was stored before it was asked.
                    let newest = self.load(store, tenant)?;
                    if newest.is_none_or(|newest| newest.size() < size) {
                        return Err(ROLLBACK);
                    }
                    return Ok(None);
                }
                Err(NotCosigned::Inconsistent) => return Err(FORK),
                Err(NotCosigned::Failed(error)) => return Err(Error::Uncosigned(error)),
                Err(NotCosigned::Unproven(error)) => return Err(error),
            }
            self.keep(tenant, &tree);
        }
        if self.cosigning.has_witnesses() {
            insert(&mut self.lock().shown, tenant, tree.settled(), MAX_SHOWN);
        }
        Ok(Some(tree))
    }

    /// A tree that may be shown and has at least `size` entries: the stored one, or while it cannot be
    /// pinned or cosigned an older one that is.
    pub fn shown(
        &self,
        store: &dyn Store,
        tenant: &Tenant,
        size: u64,
    ) -> Result<Option<Tree>, Error> {
        let (tree, newer) = match self.pinned(store, tenant, Missing::Refuse) {
            Ok(Some(tree)) => (tree, Error::Uncosigned(CosigningFailed::Pending)),
            Ok(None) => return Ok(None),
            Err(unpinned @ Error::Unpinned(_)) => {
                let Some(text) = self.pin.read(&self.key.origin(tenant))? else {
                    return Err(unpinned);
                };
                (Tree::at(text, store, &self.key, tenant)?, unpinned)
            }
            Err(error) => return Err(error),
        };
        let shown = self.lock().shown.get(tenant).cloned();
        let tree = match shown.filter(|shown| shown.size() >= size) {
            // The call that grew the log asks the witnesses; a reader need not.
            Some(shown) if self.lacks_cosignatures(&tree) => shown,
            _ => {
                let cosigned = self.cosigned(store, tenant, tree, Wait::No)?;
                cosigned.ok_or(Error::Busy)?
            }
        };
        if tree.size() < size {
            return Err(newer);
        }
        Ok(Some(tree))
    }

    fn lacks_cosignatures(&self, tree: &Tree) -> bool {
        self.cosigning.has_witnesses() && !tree.is_cosigned()
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        // No code under this lock leaves half a change behind.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to do with a log whose pin is gone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Refuse,
    Adopt,
}

/// Keeps a tree in place of one that is perhaps asked for again, if there is no room.
fn insert(trees: &mut BTreeMap<Tenant, Tree>, tenant: &Tenant, tree: Tree, limit: usize) {
    if trees.len() >= limit && !trees.contains_key(tenant) {
        trees.pop_first();
    }
    trees.insert(tenant.clone(), tree);
}
