//! Exchanges under a grant, found by the alias that outsiders know.
//!
//! ```text
//! tenant  exchange  private(alias) -> slot, and the exchange under its data key
//! ```

use cl_kv::{Changes, Key, Kind};
use cl_model::operation::TenantName;
use cl_model::time::UnixTime;
use cl_model::urn::Alias;
use prost::Message;

use super::address::alias_key;
use super::due::Due;
use super::records::{Exchange, ExchangeRecord, decode};
use super::{Draft, Slot, Store, StoreError, Subject, tenant_key};

const EXCHANGE: Kind = Kind::new("exchange");

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct LocatedExchangeRecord {
    #[prost(bytes = "vec", tag = "1")]
    slot: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    sealed: Vec<u8>,
}

impl Store {
    /// The exchange in which a subject had this alias, and its subject.
    pub fn exchange(
        &self,
        tenant: &TenantName,
        alias: &Alias,
    ) -> Result<Option<(Subject, Exchange)>, StoreError> {
        let Some(found) = self.data.get(exchange_key(tenant, alias)?)? else {
            return Ok(None);
        };
        let record: LocatedExchangeRecord = decode(&found.value)?;
        let subject = self.at_slot(tenant, Slot::read(&record.slot)?)?;
        let subject = subject.ok_or(StoreError::Erased)?;
        let exchange = open_exchange(&subject, alias, &record.sealed)?;
        Ok(Some((subject, exchange)))
    }

    /// The exchange in which a subject had this alias, also while it is being erased.
    pub(super) fn exchange_of(
        &self,
        subject: &Subject,
        alias: &Alias,
    ) -> Result<Option<Exchange>, StoreError> {
        let Some(found) = self.data.get(exchange_key(&subject.tenant, alias)?)? else {
            return Ok(None);
        };
        let record: LocatedExchangeRecord = decode(&found.value)?;
        open_exchange(subject, alias, &record.sealed).map(Some)
    }

    pub(super) fn drop_exchange(
        &self,
        tenant: &TenantName,
        slot: Slot,
        alias: &Alias,
    ) -> Result<(), StoreError> {
        let changes = Changes::new()
            .delete(exchange_key(tenant, alias)?)
            .delete(alias_key(tenant, slot, alias)?);
        self.data.apply(&changes)?;
        Ok(())
    }
}

impl Draft<'_> {
    /// Remembers an exchange under its alias, until a time.
    pub fn put_exchange(
        &mut self,
        alias: &Alias,
        exchange: &Exchange,
        drop_at: UnixTime,
    ) -> Result<(), StoreError> {
        let subject = self.subject();
        let record = ExchangeRecord::of(exchange).encode_to_vec();
        let located = LocatedExchangeRecord {
            slot: subject.slot.0.to_vec(),
            sealed: self.seal(alias.as_str().as_bytes(), &record)?,
        };
        let key = exchange_key(&subject.tenant, alias)?;
        let due = Due::of_exchange(subject, alias, drop_at);
        self.put_alias(alias)?;
        self.change(|changes| due.add_to(changes.put(key, located.encode_to_vec())))
    }
}

fn open_exchange(subject: &Subject, alias: &Alias, sealed: &[u8]) -> Result<Exchange, StoreError> {
    let plain = subject.key.open(alias.as_str().as_bytes(), sealed)?;
    decode::<ExchangeRecord>(&plain)?.read()
}

fn exchange_key(tenant: &TenantName, alias: &Alias) -> Result<Key, StoreError> {
    Ok(tenant_key(tenant, EXCHANGE)?.private(alias.as_str()))
}
