//! Reading records of one kind, and lists of them.

use cl_kv::{Key, Opened, Range};

use super::StoreError;
use super::kv::KvStore;
use super::people::Stored;

impl KvStore {
    pub(super) fn read<T>(
        &self,
        target: Key,
        decode: impl Fn(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Option<Stored<T>>, StoreError> {
        let found: Option<Opened> = self.sealed.get(target)?;
        found
            .map(|opened| {
                Ok(Stored {
                    value: decode(&opened.value)?,
                    version: opened.version,
                })
            })
            .transpose()
    }

    pub(super) fn list<T>(
        &self,
        range: &Range,
        decode: impl Fn(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let found = self.sealed.scan(range)?;
        found
            .iter()
            .map(|entry| decode(&entry.opened.value))
            .collect()
    }
}

/// What comes after a place in a list that is ordered by a number and a name.
pub(super) fn page(of: Key, after: Option<(u64, &str)>, limit: usize) -> Range {
    let range = Range::of(of.clone(), limit);
    match after {
        None => range,
        Some((number, name)) => range.after(of.number(number).public(name)),
    }
}
