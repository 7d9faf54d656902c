//! What a sealed store is asked, and what it answers.

use std::fmt;
use std::ops::Bound;

use ring::hmac;
use zeroize::Zeroizing;

use super::key::{Key, Located, Target, Tenant};
use crate::engine::{Durability, Precondition, Scan, Version};

/// Changes that are sealed and stored together, and what must be true for that: a
/// [`Batch`](crate::Batch) in the clear.
#[derive(Clone, Default)]
pub struct Changes {
    pub(super) requirements: Vec<(Target, Precondition)>,
    /// A value to put, or none to delete.
    pub(super) writes: Vec<(Target, Option<Zeroizing<Vec<u8>>>)>,
    pub(super) durability: Durability,
}

impl Changes {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a precondition.
    #[must_use]
    pub fn require(mut self, target: impl Into<Target>, precondition: Precondition) -> Self {
        self.requirements.push((target.into(), precondition));
        self
    }

    /// Adds a value to store.
    #[must_use]
    pub fn put(mut self, target: impl Into<Target>, value: impl Into<Vec<u8>>) -> Self {
        self.writes
            .push((target.into(), Some(Zeroizing::new(value.into()))));
        self
    }

    /// Adds a key to remove.
    #[must_use]
    pub fn delete(mut self, target: impl Into<Target>) -> Self {
        self.writes.push((target.into(), None));
        self
    }

    /// Sets when the changes count as stored; [`Durability::Synced`] unless said otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.writes.iter().map(|(target, _)| target).collect();
        f.debug_struct("Changes")
            .field("requirements", &self.requirements)
            .field("writes", &keys)
            .finish_non_exhaustive()
    }
}

/// Which entries to read: those of a tenant or those that continue a key, from a start on, up to a
/// limit.
#[derive(Clone, Debug)]
pub struct Range {
    prefix: Prefix,
    start: Bound<Target>,
    limit: usize,
}

#[derive(Clone, Debug)]
enum Prefix {
    Tenant(Tenant),
    Key(Key),
}

impl Range {
    /// The first `limit` entries that are this key or continue it.
    pub fn of(key: Key, limit: usize) -> Self {
        Self {
            prefix: Prefix::Key(key),
            start: Bound::Unbounded,
            limit,
        }
    }

    /// The first `limit` entries of a tenant, of whatever kind.
    pub fn of_tenant(tenant: Tenant, limit: usize) -> Self {
        Self {
            prefix: Prefix::Tenant(tenant),
            start: Bound::Unbounded,
            limit,
        }
    }

    /// Only this key and what comes after it.
    #[must_use]
    pub fn from(mut self, target: impl Into<Target>) -> Self {
        self.start = Bound::Included(target.into());
        self
    }

    /// Only what comes after this key, such as the last one of the page before.
    #[must_use]
    pub fn after(mut self, target: impl Into<Target>) -> Self {
        self.start = Bound::Excluded(target.into());
        self
    }

    pub(super) fn locate(&self, lookup: &hmac::Key) -> Scan {
        let prefix = match &self.prefix {
            Prefix::Tenant(tenant) => tenant.encode(),
            Prefix::Key(key) => key.encode(lookup),
        };
        let scan = Scan::new(prefix, self.limit);
        match &self.start {
            Bound::Unbounded => scan,
            Bound::Included(target) => scan.from(target.encode(lookup)),
            Bound::Excluded(target) => scan.after(target.encode(lookup)),
        }
    }
}

/// A value, opened.
#[derive(Clone, PartialEq, Eq)]
pub struct Opened {
    /// Which writing this is, for [`Precondition::Unchanged`].
    pub version: Version,
    /// The value, wiped when dropped.
    pub value: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// An entry of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its key.
    pub key: Located,
    /// Its value.
    pub opened: Opened,
}
