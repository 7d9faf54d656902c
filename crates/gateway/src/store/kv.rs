//! The store on ordered keys and preconditioned batches.
//!
//! ```text
//! tenant  idempotency private(digest of principal and key) -> record
//! process ends        number(expiry) private(operation id) -> place of the record that ends then
//! ```

use std::sync::Arc;

use cl_kv::{Changes, Engine, Key, Kind, Precondition, Range, Sealed, Target, Tenant, Version};

use super::{Place, Store, StoreError};
use crate::auth::TenantName;
use crate::idempotency::Record;

const IDEMPOTENCY: Kind = Kind::new("idempotency");
const ENDS: Kind = Kind::new("ends");

/// The store on a sealed engine: RocksDB, or one in memory for tests.
#[derive(Debug)]
pub struct KvStore {
    sealed: Sealed<Arc<dyn Engine>>,
}

impl KvStore {
    /// A store on `sealed`.
    pub fn new(sealed: Sealed<Arc<dyn Engine>>) -> Self {
        Self { sealed }
    }

    /// Forgets the record behind an entry of the index, unless the key was used anew meanwhile.
    fn forget_ended(
        &self,
        entry: Target,
        place: &Place,
        now_unix_ms: i64,
    ) -> Result<(), StoreError> {
        let mut changes = Changes::new().delete(entry);
        if let Some((record, version)) = self.find(place)?
            && record.expires_at_unix_ms <= now_unix_ms
        {
            let key = record_key(place)?;
            changes = changes
                .require(&key, Precondition::Unchanged(version))
                .delete(key);
        }
        self.sealed.apply(&changes)?;
        Ok(())
    }
}

impl Store for KvStore {
    fn find(&self, place: &Place) -> Result<Option<(Record, Version)>, StoreError> {
        let Some(opened) = self.sealed.get(record_key(place)?)? else {
            return Ok(None);
        };
        let record = Record::decode(&opened.value).ok_or(StoreError::Corrupt)?;
        Ok(Some((record, opened.version)))
    }

    fn put(
        &self,
        place: &Place,
        record: &Record,
        over: Option<Version>,
    ) -> Result<Version, StoreError> {
        let key = record_key(place)?;
        let before = over.map_or(Precondition::Absent, Precondition::Unchanged);
        let changes = Changes::new()
            .require(&key, before)
            .put(key, record.encode())
            .put(end_key(record), encode_place(place));
        let versions = self.sealed.apply(&changes)?;
        versions.first().copied().ok_or(StoreError::Corrupt)
    }

    fn forget(&self, place: &Place, record: &Record, version: Version) -> Result<(), StoreError> {
        let key = record_key(place)?;
        let changes = Changes::new()
            .require(&key, Precondition::Unchanged(version))
            .delete(key)
            .delete(end_key(record));
        self.sealed.apply(&changes)?;
        Ok(())
    }

    fn sweep(&self, now_unix_ms: i64, limit: usize) -> Result<usize, StoreError> {
        let range = Range::of(Tenant::process().key(ENDS), limit);
        let mut swept = 0;
        for entry in self.sealed.scan(&range)? {
            let Some(cl_kv::FoundPart::Number(expiry)) = entry.key.parts().first() else {
                return Err(StoreError::Corrupt);
            };
            if *expiry > unsigned(now_unix_ms) {
                break;
            }
            let place = decode_place(&entry.opened.value).ok_or(StoreError::Corrupt)?;
            match self.forget_ended(entry.key.into(), &place, now_unix_ms) {
                // Whoever was first left it in order, or the next sweep finds it again.
                Ok(()) | Err(StoreError::Contended) => swept += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(swept)
    }
}

fn record_key(place: &Place) -> Result<Key, StoreError> {
    let tenant = Tenant::parse(place.tenant.as_str()).map_err(|_| StoreError::Corrupt)?;
    Ok(tenant.key(IDEMPOTENCY).private(place.digest))
}

fn end_key(record: &Record) -> Key {
    Tenant::process()
        .key(ENDS)
        .number(unsigned(record.expires_at_unix_ms))
        .private(record.operation_id.to_string())
}

fn unsigned(unix_ms: i64) -> u64 {
    u64::try_from(unix_ms).unwrap_or(0)
}

fn encode_place(place: &Place) -> Vec<u8> {
    [place.digest.as_slice(), place.tenant.as_str().as_bytes()].concat()
}

fn decode_place(bytes: &[u8]) -> Option<Place> {
    let (digest, tenant) = bytes.split_first_chunk::<32>()?;
    Some(Place {
        tenant: TenantName::parse(std::str::from_utf8(tenant).ok()?)?,
        digest: *digest,
    })
}
