//! Reading and writing what is sealed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ring::hmac;
use ring::rand::SecureRandom;

use super::key::{Located, Target};
use super::keyring::{KEYS, KeyEncryptionKey, Keyring, LOOKUP, Secrets, generate_secret};
use super::request::{Changes, Found, Opened, Range};
use super::rotation::Pass;
use super::value;
use crate::engine::{Batch, Engine, Precondition, Scan, Stored, Version};
use crate::error::{Damage, Error};

/// How often a write is sealed anew because the data keys changed under it.
const ATTEMPTS: usize = 8;

/// A store whose values are sealed and whose private key parts are derived.
///
/// The contract is that of the [`Engine`] underneath. Values come back as they went in or as
/// [`Error::Corrupt`], never as anything else.
///
/// **Preconditions and rotation.** [`Precondition::Unchanged`] compares a value's version: drawn at
/// random for each put, kept when the value is re-sealed. So what a caller has read stays a valid
/// precondition while keys rotate, and a re-sealing never undoes a change: it requires the version
/// it has read.
///
/// **Writers and rotation.** Each write also requires the record of the store's data keys unchanged
/// since its key was taken from there. A rotation changes that record, so that afterwards no writer
/// of any process can store a value under an old key: it is refused, reads the record, and seals
/// anew, which the caller does not see. This is what makes one full pass after a rotation enough to
/// know that an old key is unused.
///
/// **When to rotate.** Before 2^32 values were sealed under one data key, as nonces are random; and
/// whenever a key may have been seen.
///
/// ```
/// # use std::sync::Arc;
/// # use cl_kv::{Changes, KeyEncryptionKey, Kind, MemoryEngine, Precondition, Sealed, Tenant};
/// # use ring::rand::SystemRandom;
/// # use zeroize::Zeroizing;
/// # let kek = KeyEncryptionKey::new(Zeroizing::new([7; 32]));
/// const CLAIM: Kind = Kind::new("claim");
/// let store = Sealed::open(MemoryEngine::new(), kek, Arc::new(SystemRandom::new()))?;
/// let key = Tenant::parse("acme")?.key(CLAIM).private("Ada Lovelace").number(1);
/// let create = Changes::new().require(&key, Precondition::Absent).put(&key, "likes engines");
/// let versions = store.apply(&create)?;
///
/// let found = store.get(&key)?.ok_or("not found")?;
/// assert_eq!(found.value.as_slice(), b"likes engines");
/// let change = Changes::new().require(&key, Precondition::Unchanged(versions[0])).delete(&key);
/// store.apply(&change)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sealed<E> {
    pub(super) engine: E,
    pub(super) kek: KeyEncryptionKey,
    pub(super) random: Arc<dyn SecureRandom + Send + Sync>,
    lookup: hmac::Key,
    keyring: RwLock<Arc<Keyring>>,
    pub(super) pass: Mutex<Pass>,
}

impl<E: Engine> Sealed<E> {
    /// Opens a store, and makes its keys if it is empty.
    ///
    /// A store that was made under another key-encryption key is refused with [`Error::WrongKey`],
    /// one that holds values but no keys with [`Damage::KeysMissing`].
    pub fn open(
        engine: E,
        kek: KeyEncryptionKey,
        random: Arc<dyn SecureRandom + Send + Sync>,
    ) -> Result<Self, Error> {
        if engine.scan(&Scan::new([], 1))?.is_empty() {
            create_keys(&engine, &kek, &*random)?;
        }
        let own = engine.get_many(&[LOOKUP, KEYS])?;
        let [Some(lookup), Some(keys)] = own.as_slice() else {
            return Err(Error::Corrupt(Damage::KeysMissing));
        };
        let lookup = hmac::Key::new(hmac::HMAC_SHA256, &kek.unwrap(LOOKUP, lookup)?);
        let secrets = Secrets::decode(&kek.unwrap(KEYS, keys)?)?;
        let keyring = Keyring::new(&secrets, keys.version)?;
        Ok(Self {
            engine,
            kek,
            random,
            lookup,
            keyring: RwLock::new(Arc::new(keyring)),
            pass: Mutex::default(),
        })
    }

    /// The engine underneath.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The value of a key.
    pub fn get(&self, target: impl Into<Target>) -> Result<Option<Opened>, Error> {
        let key = target.into().encode(&self.lookup);
        self.with_current_keys(|keyring| {
            let stored = self.engine.get(&key)?;
            stored
                .map(|stored| open(keyring, &key, &stored))
                .transpose()
        })
    }

    /// The value of each key, all at one moment, in the order asked.
    pub fn get_many(&self, targets: &[Target]) -> Result<Vec<Option<Opened>>, Error> {
        let keys: Vec<_> = targets
            .iter()
            .map(|target| target.encode(&self.lookup))
            .collect();
        let asked: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        self.with_current_keys(|keyring| {
            let found = self.engine.get_many(&asked)?.into_iter().zip(&keys);
            found
                .map(|(stored, key)| stored.map(|stored| open(keyring, key, &stored)).transpose())
                .collect()
        })
    }

    /// The entries in a range, in the order of their keys, all at one moment.
    pub fn scan(&self, range: &Range) -> Result<Vec<Found>, Error> {
        let scan = range.locate(&self.lookup);
        self.with_current_keys(|keyring| {
            let mut found = Vec::new();
            for entry in self.engine.scan(&scan)? {
                let opened = open(keyring, &entry.key, &entry.stored)?;
                found.push(Found {
                    key: Located::decode(entry.key)?,
                    opened,
                });
            }
            Ok(found)
        })
    }

    /// Seals and stores changes, if their preconditions hold.
    ///
    /// Returns the version of each put, in order.
    pub fn apply(&self, changes: &Changes) -> Result<Vec<Version>, Error> {
        let results = self.apply_many(std::slice::from_ref(changes));
        Ok(results.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Stores independent changes as if by [`apply`](Self::apply), in order, at the price of one
    /// sync.
    pub fn apply_many(&self, changes: &[Changes]) -> Vec<Result<Vec<Version>, Error>> {
        let mut results: Vec<_> = changes
            .iter()
            .map(|_| Err(Error::Conflict { index: 0 }))
            .collect();
        let mut open: Vec<usize> = (0..changes.len()).collect();
        for _ in 0..ATTEMPTS {
            open = self.attempt(changes, open, &mut results);
            if open.is_empty() {
                return results;
            }
            if let Err(error) = self.reload() {
                fail(&mut results, &open, &error);
                return results;
            }
        }
        fail(&mut results, &open, &Error::unavailable(KeysKeepChanging));
        results
    }

    /// Tries the changes at some positions once, and returns the positions whose data key was
    /// replaced meanwhile.
    fn attempt(
        &self,
        changes: &[Changes],
        positions: Vec<usize>,
        results: &mut [Result<Vec<Version>, Error>],
    ) -> Vec<usize> {
        let keyring = self.keyring();
        let mut tried = Vec::with_capacity(positions.len());
        let mut batches = Vec::with_capacity(positions.len());
        for position in positions {
            match self.seal(&changes[position], &keyring) {
                Ok((batch, versions)) => {
                    batches.push(batch);
                    tried.push((position, versions));
                }
                Err(error) => results[position] = Err(error),
            }
        }
        let mut open = Vec::new();
        for ((position, versions), outcome) in
            tried.into_iter().zip(self.engine.apply_many(batches))
        {
            match outcome.map_err(callers_error) {
                Ok(()) => results[position] = Ok(versions),
                Err(Some(error)) => results[position] = Err(error),
                Err(None) => open.push(position),
            }
        }
        open
    }

    fn seal(&self, changes: &Changes, keyring: &Keyring) -> Result<(Batch, Vec<Version>), Error> {
        let cipher = keyring.cipher(keyring.active)?;
        let mut versions = Vec::new();
        let mut batch = Batch::new()
            .durability(changes.durability)
            .require(KEYS, Precondition::Unchanged(keyring.version));
        for (target, precondition) in &changes.requirements {
            batch = batch.require(target.encode(&self.lookup), *precondition);
        }
        for (target, value) in &changes.writes {
            let key = target.encode(&self.lookup);
            batch = match value {
                None => batch.delete(key),
                Some(plain) => {
                    let version = Version::new(value::draw(&*self.random)?);
                    versions.push(version);
                    let active = keyring.active;
                    let sealed = value::seal(cipher, active, &*self.random, &key, version, plain)?;
                    batch.put(key, sealed)
                }
            };
        }
        Ok((batch, versions))
    }

    /// Reads, once more with the data keys read again where a value names one that is not known.
    fn with_current_keys<T>(
        &self,
        read: impl Fn(&Keyring) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match read(&self.keyring()) {
            Err(Error::Corrupt(Damage::UnknownKey(_))) => read(&*self.reload()?),
            result => result,
        }
    }

    pub(super) fn keyring(&self) -> Arc<Keyring> {
        Arc::clone(&self.keyring.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the data keys again.
    pub(super) fn reload(&self) -> Result<Arc<Keyring>, Error> {
        let (secrets, version) = self.read_secrets()?;
        self.install(&secrets, version)
    }

    pub(super) fn install(
        &self,
        secrets: &Secrets,
        version: Version,
    ) -> Result<Arc<Keyring>, Error> {
        let keyring = Arc::new(Keyring::new(secrets, version)?);
        let mut current = self.keyring.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::clone(&keyring);
        Ok(keyring)
    }

    pub(super) fn read_secrets(&self) -> Result<(Secrets, Version), Error> {
        let stored = self
            .engine
            .get(KEYS)?
            .ok_or(Error::Corrupt(Damage::KeysMissing))?;
        let secrets = Secrets::decode(&self.kek.unwrap(KEYS, &stored)?)?;
        Ok((secrets, stored.version))
    }
}

impl<E> fmt::Debug for Sealed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").finish_non_exhaustive()
    }
}

/// Gives an empty store its keys, unless somebody else just did.
fn create_keys<E: Engine>(
    engine: &E,
    kek: &KeyEncryptionKey,
    random: &dyn SecureRandom,
) -> Result<(), Error> {
    let lookup = kek.wrap(random, LOOKUP, &*generate_secret(random)?)?;
    let keys = kek.wrap(random, KEYS, &Secrets::generate(random)?.encode())?;
    let batch = Batch::new()
        .require(LOOKUP, Precondition::Absent)
        .require(KEYS, Precondition::Absent)
        .put(LOOKUP, lookup)
        .put(KEYS, keys);
    match engine.apply(batch) {
        Err(Error::Conflict { .. }) => Ok(()),
        result => result,
    }
}

pub(super) fn open(keyring: &Keyring, key: &[u8], stored: &Stored) -> Result<Opened, Error> {
    let cipher = keyring.cipher(value::key_id(&stored.value)?)?;
    let value = value::open(cipher, key, stored)?;
    Ok(Opened {
        version: stored.version,
        value,
    })
}

/// The caller's view of an error about a batch whose first requirement is the one on the data keys:
/// none if that is the one that failed.
pub(super) fn callers_error(error: Error) -> Option<Error> {
    if let Error::Conflict { index } = error {
        return index.checked_sub(1).map(|index| Error::Conflict { index });
    }
    Some(error)
}

fn fail(results: &mut [Result<Vec<Version>, Error>], positions: &[usize], error: &Error) {
    for position in positions {
        results[*position] = Err(error.clone());
    }
}

/// The data keys changed more often than a write was tried.
#[derive(Debug, thiserror::Error)]
#[error("the data keys keep changing")]
pub(super) struct KeysKeepChanging;
