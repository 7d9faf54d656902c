//! The newest tree of each log, and what of it is pinned. Only what is pinned is shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::routing::Tenant;
use super::trees::{LogKey, Tree, log_record};
use crate::error::Error;
use crate::pin::{NotAdvanced, Pin};
use crate::store::Store;

/// Trees that are kept between groups; an edge has up to 16 KiB a level.
const MAX_KEPT: usize = 64;

/// How often a pin is read anew because another replica was faster.
const ATTEMPTS: usize = 8;

/// What a log is called that ends before its pin.
pub(crate) const ENDS_EARLY: &str = "rollback: a log ends before its pin";

const ROLLBACK: Error = Error::Corrupt(ENDS_EARLY);
const FORK: Error = Error::Corrupt("fork: a log does not lead from its pin to its end");
const FOREIGN: Error = Error::Corrupt("a pin was not signed by the log's key");

/// The trees of all logs and their pins.
pub struct Kept {
    key: LogKey,
    pin: Arc<dyn Pin>,
    /// Trees that were read or written before, so that they need not be read again.
    trees: Mutex<BTreeMap<Tenant, Tree>>,
}

impl Kept {
    /// Keeps nothing yet.
    pub fn new(key: LogKey, pin: Arc<dyn Pin>) -> Self {
        Self {
            key,
            pin,
            trees: Mutex::default(),
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

    /// The tree of a tenant as it is stored. One that was kept counts while its checkpoint is the
    /// stored one.
    pub fn load(&self, store: &dyn Store, tenant: &Tenant) -> Result<Option<Tree>, Error> {
        let kept = self.lock().get(tenant).cloned();
        if let Some(tree) = kept {
            let record = log_record(store, tenant)?;
            if record.is_some_and(|record| record.checkpoint == tree.checkpoint()) {
                return Ok(Some(tree));
            }
        }
        let loaded = Tree::load(store, &self.key, tenant)?;
        if let Some(tree) = &loaded {
            self.keep(tenant.clone(), tree.clone());
        }
        Ok(loaded)
    }

    /// Keeps a tree that is durable.
    pub fn keep(&self, tenant: Tenant, tree: Tree) {
        let mut trees = self.lock();
        if trees.len() >= MAX_KEPT && !trees.contains_key(&tenant) {
            trees.clear();
        }
        trees.insert(tenant, tree.settled());
    }

    /// The tree of a tenant as it is stored, once its pin has it too.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when the tree does not go on from the pin: its end was lost, another store
    /// went on from the same data, or the pin is not the log's. [`Error::Unpinned`] while the pin
    /// cannot be read or written.
    pub fn cover(&self, store: &dyn Store, tenant: &Tenant) -> Result<Option<Tree>, Error> {
        let origin = self.key.origin(tenant);
        for _ in 0..ATTEMPTS {
            // The pin first: a log that another replica appends to is then never behind it.
            let pinned = self.pin.read(&origin)?;
            let tree = self.load(store, tenant)?;
            let Some(tree) = tree else {
                return pinned.map_or(Ok(None), |_| Err(ROLLBACK));
            };
            if pinned.as_deref() == Some(tree.checkpoint()) {
                return Ok(Some(tree));
            }
            if let Some(text) = &pinned {
                let pinned = self.key.read(tenant, text)?.ok_or(FOREIGN)?;
                let pinned = pinned.checkpoint();
                if pinned.size() > tree.size() {
                    return Err(ROLLBACK);
                }
                if !tree.extends(pinned, store, tenant)? {
                    return Err(FORK);
                }
            }
            let advanced = (self.pin).advance(&origin, pinned.as_deref(), tree.checkpoint());
            match advanced {
                Ok(()) => return Ok(Some(tree)),
                Err(NotAdvanced::Moved) => {}
                Err(NotAdvanced::Failed(error)) => return Err(error.into()),
            }
        }
        Err(Error::Busy)
    }

    /// A tree that may be shown and has at least `size` entries: the stored one, or while the pin
    /// cannot be written the pinned one.
    pub fn shown(
        &self,
        store: &dyn Store,
        tenant: &Tenant,
        size: u64,
    ) -> Result<Option<Tree>, Error> {
        let unpinned = match self.cover(store, tenant) {
            Err(Error::Unpinned(error)) => error,
            covered => return covered,
        };
        let pinned = self.pin.read(&self.key.origin(tenant))?;
        let pinned = pinned.map(|text| Tree::at(text, store, &self.key, tenant));
        let tree = pinned.transpose()?.filter(|tree| tree.size() >= size);
        Ok(Some(tree.ok_or(unpinned)?))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Tenant, Tree>> {
        // No code under this lock leaves half a change behind.
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
