//! The life of data keys: made active, replaced, drained of their values, retired.

use std::sync::PoisonError;

use ring::rand::SecureRandom;

use super::key::SPACE;
use super::keyring::{KEYS, KeyEncryptionKey, KeyId, Keyring, LOOKUP, Secrets};
use super::store::{KeysKeepChanging, Sealed, callers_error};
use super::value;
use crate::engine::{Batch, Engine, Entry, Precondition, Scan, Stored};
use crate::error::{Damage, Error};

/// How often a change of the data keys is tried against other processes that change them too.
const ATTEMPTS: usize = 8;
/// Values that re-sealing holds in memory at once.
const PAGE: usize = 64;

/// A data key that no longer seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldKey {
    /// Its id.
    pub id: KeyId,
    /// A full pass has found no value under it: it may be retired.
    pub unused: bool,
}

/// What one call of [`Sealed::reseal`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Values looked at.
    pub examined: usize,
    /// Values sealed anew.
    pub resealed: usize,
    /// Values that do not open. While there are any, old keys stay in use.
    pub unreadable: usize,
    /// Every value has been looked at since the last rotation.
    pub finished: bool,
}

/// How far re-sealing has come. Forgotten at the end of the process: a new pass costs time only.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The key it seals under. A rotation starts another pass.
    active: Option<KeyId>,
    after: Option<Vec<u8>>,
    unreadable: usize,
}

impl<E: Engine> Sealed<E> {
    /// The data key that seals what is written now.
    pub fn active_key(&self) -> Result<KeyId, Error> {
        Ok(self.reload()?.active)
    }

    /// The data keys that only open.
    pub fn old_keys(&self) -> Result<Vec<OldKey>, Error> {
        let (secrets, _) = self.read_secrets()?;
        let old = secrets.keys.iter().filter(|(id, _)| **id != secrets.active);
        Ok(old
            .map(|(id, key)| OldKey {
                id: *id,
                unused: key.unused,
            })
            .collect())
    }

    /// Makes a new data key the active one. The keys before it still open.
    pub fn rotate(&self) -> Result<KeyId, Error> {
        self.change_keys(|secrets| {
            secrets.add_key(&*self.random)?;
            Ok(secrets.active)
        })
    }

    /// Looks at up to `budget` values and seals those under old keys anew, with their versions.
    ///
    /// Call it again, at leisure, until the pass is finished. What others change meanwhile stays as
    /// they leave it. After a failure the same call may be repeated.
    pub fn reseal(&self, budget: usize) -> Result<Progress, Error> {
        let mut pass = self.pass.lock().unwrap_or_else(PoisonError::into_inner);
        if self.old_keys()?.iter().all(|key| key.unused) {
            *pass = Pass::default();
            return Ok(Progress {
                finished: true,
                ..Progress::default()
            });
        }
        let keyring = self.reload()?;
        if pass.active != Some(keyring.active) {
            *pass = Pass {
                active: Some(keyring.active),
                ..Pass::default()
            };
        }
        let mut progress = Progress::default();
        while progress.examined < budget {
            let mut scan = Scan::new([SPACE], PAGE.min(budget - progress.examined));
            if let Some(after) = &pass.after {
                scan = scan.after(after.as_slice());
            }
            let page = self.engine.scan(&scan)?;
            let Some(last) = page.last().map(|entry| entry.key.clone()) else {
                progress.finished = self.finish(&pass)?;
                *pass = Pass::default();
                break;
            };
            let Some(done) = self.reseal_page(&page, &keyring)? else {
                break;
            };
            pass.after = Some(last);
            pass.unreadable += done.unreadable;
            progress.examined += page.len();
            progress.resealed += done.resealed;
            progress.unreadable += done.unreadable;
        }
        Ok(progress)
    }

    /// Re-seals some values, or gives up because the data keys changed.
    fn reseal_page(&self, page: &[Entry], keyring: &Keyring) -> Result<Option<Progress>, Error> {
        let mut progress = Progress::default();
        let mut batches = Vec::new();
        for entry in page {
            match self.reseal_entry(entry, keyring) {
                Ok(None) => {}
                Ok(Some(stored)) => batches.push(
                    Batch::new()
                        .require(KEYS, Precondition::Unchanged(keyring.version))
                        .require(
                            entry.key.as_slice(),
                            Precondition::Unchanged(stored.version),
                        )
                        .put(entry.key.as_slice(), stored),
                ),
                Err(Error::Corrupt(_)) => progress.unreadable += 1,
                Err(error) => return Err(error),
            }
        }
        for outcome in self.engine.apply_many(batches) {
            match outcome.map_err(callers_error) {
                Ok(()) => progress.resealed += 1,
                // Changed or deleted meanwhile; if it is still there, then under the active key.
                Err(Some(Error::Conflict { .. })) => {}
                Err(Some(error)) => return Err(error),
                Err(None) => return Ok(None),
            }
        }
        Ok(Some(progress))
    }

    /// The value under the active key, if it was under another.
    fn reseal_entry(&self, entry: &Entry, keyring: &Keyring) -> Result<Option<Stored>, Error> {
        let Entry { key, stored } = entry;
        let id = value::key_id(&stored.value)?;
        if id == keyring.active {
            return Ok(None);
        }
        let plain = value::open(keyring.cipher(id)?, key, stored)?;
        let (active, version) = (keyring.active, stored.version);
        value::seal(
            keyring.cipher(active)?,
            active,
            &*self.random,
            key,
            version,
            &plain,
        )
        .map(Some)
    }

    /// Notes that the old keys are unused, if the pass has shown it. Whether the pass still counts.
    fn finish(&self, pass: &Pass) -> Result<bool, Error> {
        self.change_keys(|secrets| {
            // An active key never becomes active again, so an unchanged one was active all the while:
            // whatever was written behind the pass is under it.
            if Some(secrets.active) != pass.active {
                return Ok(false);
            }
            if pass.unreadable == 0 {
                for (id, key) in &mut secrets.keys {
                    key.unused = *id != secrets.active;
                }
            }
            Ok(true)
        })
    }

    /// Deletes an old data key. [`Error::KeyInUse`] unless a pass has shown that it is unused.
    ///
    /// Copies of it, wrapped under the key-encryption key, and of values under it rest in the
    /// engine's files until those are rewritten, and in backups.
    pub fn retire(&self, id: KeyId) -> Result<(), Error> {
        self.change_keys(|secrets| {
            let key = secrets.keys.get(&id).ok_or(Error::NoSuchKey(id))?;
            if !key.unused {
                return Err(Error::KeyInUse(id));
            }
            secrets.keys.remove(&id);
            Ok(())
        })
    }

    /// Changes the record of the data keys, and the keys in use with it.
    fn change_keys<T>(
        &self,
        change: impl Fn(&mut Secrets) -> Result<T, Error>,
    ) -> Result<T, Error> {
        for _ in 0..ATTEMPTS {
            let (mut secrets, before) = self.read_secrets()?;
            let changed = change(&mut secrets)?;
            let wrapped = self.kek.wrap(&*self.random, KEYS, &secrets.encode())?;
            let version = wrapped.version;
            let batch = Batch::new()
                .require(KEYS, Precondition::Unchanged(before))
                .put(KEYS, wrapped);
            match self.engine.apply(batch) {
                Ok(()) => {
                    self.install(&secrets, version)?;
                    return Ok(changed);
                }
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::unavailable(KeysKeepChanging))
    }
}

impl KeyEncryptionKey {
    /// Wraps a store's own keys under another key-encryption key.
    ///
    /// For an operator, while no process has the store open: one that has does not know the new key.
    pub fn replace<E: Engine>(
        &self,
        with: &Self,
        engine: &E,
        random: &dyn SecureRandom,
    ) -> Result<(), Error> {
        let mut batch = Batch::new();
        for key in [LOOKUP, KEYS] {
            let stored = engine
                .get(key)?
                .ok_or(Error::Corrupt(Damage::KeysMissing))?;
            let plain = self.unwrap(key, &stored)?;
            batch = batch
                .require(key, Precondition::Unchanged(stored.version))
                .put(key, with.wrap(random, key, &plain)?);
        }
        engine.apply(batch)
    }
}
