//! The issuer's calls, in order: what is read, what is checked, what is stored, what is receipted.

mod consume;
mod issue;
mod redeem;
mod revoke;

use std::sync::Arc;

use cl_host::clock::SettledClock;
use cl_host::identity::SpiffeId;
use cl_host::trust::Trust;
use cl_model::digest::Digest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::part::Issuer;
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::BundleId;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;

pub(crate) use self::consume::ConsumerReceiptCall;
pub(crate) use self::issue::IssueCall;
pub(crate) use self::redeem::{Delivery, RedeemCall};
pub(crate) use self::revoke::RevokeCall;
use crate::core::bundle::{State, Times};
use crate::core::evidence::{Operation, Writer};
use crate::core::keys::Keys;
use crate::error::Error;
use crate::outbox::Outbox;
use crate::proxy::Proxy;
use crate::receipts::Receipts;
use crate::store::{Store, StoreError, StoredBundle, Use, blocking};
use crate::sweep::expire;

/// How often a call reads again after somebody else was first.
const ATTEMPTS: usize = 16;

/// The bundle issuer.
pub(crate) struct BundleIssuer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) receipts: Arc<dyn Receipts>,
    pub(crate) proxy: Arc<dyn Proxy>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) keys: Keys,
    pub(crate) time: Arc<SettledClock>,
    pub(crate) times: Times,
    pub(crate) own: SpiffeId,
    pub(crate) issuer: Issuer,
    pub(crate) calls: Counter<u64>,
}

/// A bundle as somebody asks for it.
#[derive(Clone)]
pub(crate) struct BundleKey {
    pub(crate) tenant: TenantName,
    pub(crate) id: BundleId,
    pub(crate) recipient: Reference,
}

/// Where a bundle stands, for its recipient.
pub(crate) struct Standing {
    pub(crate) state: State,
    pub(crate) expires_at: UnixTime,
}

/// Whether an operation id was used before, for the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Used {
    New,
    Same,
    /// It is so old that nobody knows.
    Forgotten,
}

impl BundleIssuer {
    /// Says where a bundle stands.
    pub(crate) async fn check(&self, key: &BundleKey) -> Result<Standing, Error> {
        let stored = self.current(key).await?;
        Ok(Standing {
            state: stored.bundle.state,
            expires_at: stored.bundle.expires_at,
        })
    }

    /// A bundle as it is stored, for its recipient and for nobody else; one whose time is over is
    /// first stored as expired. While the clock is not settled, nothing can be said about one whose
    /// time is over by the clock alone.
    ///
    /// A stranger takes the same way as somebody who asks for a bundle that does not exist.
    async fn current(&self, key: &BundleKey) -> Result<StoredBundle, Error> {
        let (key, times, time) = (key.clone(), self.times, self.time.read());
        let found = blocking(&self.store, move |store| {
            for _ in 0..ATTEMPTS {
                let known = store.bundle(&key.tenant, &key.id)?.filter(|read| {
                    read.bundle.recipient == key.recipient && read.bundle.state != State::Pending
                });
                match known {
                    Some(read) if read.bundle.has_run_out(time.settled) => {
                        match expire(store, &read, &times, time.settled) {
                            Ok(()) | Err(StoreError::Conflict) => {}
                            Err(error) => return Err(error),
                        }
                    }
                    result => return Ok(result),
                }
            }
            Err(StoreError::Conflict)
        });
        let read = found.await?.ok_or(Error::BundleNotFound)?;
        if read.bundle.has_run_out(time.now) {
            return Err(Error::ClockUnsettled);
        }
        Ok(read)
    }

    /// Refuses an operation id that was used for something else.
    async fn check_operation(
        &self,
        tenant: &TenantName,
        operation_id: &OperationId,
        content: Digest,
    ) -> Result<Used, Error> {
        let (tenant, id) = (tenant.clone(), operation_id.clone());
        let used = blocking(&self.store, move |store| store.operation(&tenant, &id));
        let (used, settled) = (used.await?, self.time.read().settled);
        match used {
            None if operation_id.is_forgotten(settled, self.times.retention_seconds) => {
                Ok(Used::Forgotten)
            }
            None => Ok(Used::New),
            Some(used) if used == content => Ok(Used::Same),
            Some(_) => Err(Error::OperationConflict),
        }
    }

    async fn preflight(&self, tenant: &TenantName, operation: Operation) -> Result<(), Error> {
        let answer = self.receipts.preflight(tenant, operation).await;
        answer.map_err(|refused| {
            tracing::warn!(code = ?refused.code, reason = refused.reason, "receipt preflight failed");
            Error::ReceiptStoreUnavailable
        })
    }

    fn writer<'a>(&'a self, operation_id: &'a OperationId, now: UnixTime) -> Writer<'a> {
        Writer {
            own: self.own.as_str(),
            operation_id,
            now,
        }
    }

    /// What an operation id is used for.
    fn used_for(&self, operation_id: &OperationId, content: Digest, now: UnixTime) -> Use {
        Use {
            content,
            kept_until: operation_id.kept_until(now, self.times.retention_seconds),
        }
    }

    /// The time, for what is made under it.
    fn settled_now(&self) -> Result<UnixTime, Error> {
        let time = self.time.read();
        if !time.is_believed {
            return Err(Error::ClockUnsettled);
        }
        Ok(time.now)
    }

    /// Counts how a call ended.
    fn count(&self, call: &'static str, result: &'static str) {
        let labels = [KeyValue::new("call", call), KeyValue::new("result", result)];
        self.calls.add(1, &labels);
    }
}
