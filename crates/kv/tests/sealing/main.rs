//! Sealed stores: what comes back, what is refused, what rests on the disk, and how keys rotate.
#![cfg(test)]

mod keys;
mod rest;
mod rotation;
mod values;

use std::sync::Arc;

use cl_kv::{
    Batch, Changes, Engine, Entry, Error, Key, KeyEncryptionKey, Kind, MemoryEngine, Scan, Sealed,
    Stored, Tenant, Version,
};
use ring::rand::SystemRandom;
use zeroize::Zeroizing;

const CLAIM: Kind = Kind::new("claim");

fn kek(byte: u8) -> KeyEncryptionKey {
    KeyEncryptionKey::new(Zeroizing::new([byte; 32]))
}

fn random() -> Arc<SystemRandom> {
    Arc::new(SystemRandom::new())
}

fn open<E: Engine>(engine: E) -> Sealed<E> {
    Sealed::open(engine, kek(1), random()).unwrap()
}

fn memory() -> (MemoryEngine, Sealed<MemoryEngine>) {
    let engine = MemoryEngine::new();
    (engine.clone(), open(engine))
}

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

fn claim(number: u64) -> Key {
    tenant("acme")
        .key(CLAIM)
        .number(number)
        .private("Ada Lovelace")
}

fn put<E: Engine>(store: &Sealed<E>, key: &Key, value: &str) -> Version {
    store.apply(&Changes::new().put(key, value)).unwrap()[0]
}

fn value<E: Engine>(store: &Sealed<E>, key: &Key) -> Option<String> {
    let opened = store.get(key).unwrap()?;
    Some(String::from_utf8(opened.value.to_vec()).unwrap())
}

/// What the engine holds for the store's callers, without the store's own records.
fn entries(engine: &impl Engine) -> Vec<Entry> {
    engine.scan(&Scan::new([1], 1000)).unwrap()
}

/// Puts bytes where they do not belong.
fn plant(engine: &impl Engine, key: &[u8], stored: Stored) {
    engine.apply(Batch::new().put(key, stored)).unwrap();
}

/// The id of the data key that an engine's value is sealed under.
fn key_id(stored: &Stored) -> u32 {
    u32::from_be_bytes(stored.value[1..5].try_into().unwrap())
}

fn conflict<T: std::fmt::Debug>(result: Result<T, Error>) -> usize {
    match result {
        Err(Error::Conflict { index }) => index,
        other => panic!("no conflict: {other:?}"),
    }
}
