//! One operation for each idempotency key, whatever happens around it.

use std::fmt;

use cl_kv::Version;
use cl_model::urn::BundleId;

use super::Gateway;
use crate::auth::Caller;
use crate::error::{Error, Peer};
use crate::idempotency::{Fingerprint, IdempotencyKey, OperationId, Record};
use crate::store::{Place, Store, StoreError, blocking};

/// How often a call looks again when others change the same record.
const ATTEMPTS: usize = 8;

/// What a key can stand for, together with the document.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation<'a> {
    SubmitRequest,
    RedeemBundle(&'a BundleId),
    SubmitReceipt(&'a BundleId),
    SubmitProposal,
}

impl fmt::Display for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SubmitRequest => f.write_str("submit_request"),
            Self::RedeemBundle(bundle) => write!(f, "redeem_bundle {bundle}"),
            Self::SubmitReceipt(bundle) => write!(f, "submit_receipt {bundle}"),
            Self::SubmitProposal => f.write_str("submit_proposal"),
        }
    }
}

/// An operation that was carried out.
pub(crate) struct Done<T> {
    pub(crate) answer: T,
    /// Whether the same key got its answer before.
    pub(crate) is_replay: bool,
}

/// An attempt at an operation, under one id for all attempts with the same key.
pub(super) struct Attempt {
    pub(super) operation_id: OperationId,
    begun: Option<Begun>,
}

impl Gateway {
    /// Begins an attempt at an operation, or joins in.
    pub(super) async fn begin(
        &self,
        caller: &Caller,
        key: Option<&IdempotencyKey>,
        operation: Operation<'_>,
        document: &[u8],
    ) -> Result<Attempt, Error> {
        let uuid = self.ids.uuid().map_err(|_| Error::Internal)?;
        let operation_id = uuid.into();
        let Some(key) = key else {
            return Ok(Attempt {
                operation_id,
                begun: None,
            });
        };
        let place = Place::of(caller.tenant(), caller.principal(), key);
        let fingerprint = Fingerprint::of(&operation.to_string(), document);
        let first = Record::new(fingerprint, operation_id, self.clock.now_unix_ms());
        let begun = self.use_key(place, first).await?;
        Ok(Attempt {
            operation_id: begun.record.operation_id,
            begun: Some(begun),
        })
    }

    /// Ends an attempt. A crash before this leaves the key begun: the next attempt carries the same
    /// operation id, for which the peer acts only once.
    pub(super) async fn end<T>(
        &self,
        attempt: Attempt,
        answer: Result<T, Error>,
    ) -> Result<Done<T>, Error> {
        let Some(begun) = attempt.begun else {
            return answer.map(|answer| Done {
                answer,
                is_replay: false,
            });
        };
        match answer {
            Ok(answer) => {
                let is_replay = begun.record.is_done;
                self.succeeded(begun).await;
                Ok(Done { answer, is_replay })
            }
            Err(error) => {
                if did_nothing(&error) {
                    self.undone(begun).await;
                }
                Err(error)
            }
        }
    }

    /// Takes a key into use, or joins the use that it has already. Of several calls at the same
    /// moment, one makes the record, and the others find it: all carry its operation id.
    async fn use_key(&self, place: Place, first: Record) -> Result<Begun, Error> {
        let now_unix_ms = self.clock.now_unix_ms();
        blocking(&self.store, move |store| {
            for _ in 0..ATTEMPTS {
                match begin_once(store, &place, first, now_unix_ms) {
                    Err(StoreError::Contended) => {}
                    Ok(None) => return Ok(None),
                    Ok(Some((record, version))) => {
                        return Ok(Some(Begun {
                            place,
                            record,
                            version,
                        }));
                    }
                    Err(error) => return Err(error),
                }
            }
            Err(StoreError::Contended)
        })
        .await?
        .ok_or(Error::IdempotencyConflict)
    }

    /// Remembers that the key has its answer. If that fails the answer is still right: a repeat is
    /// answered the same way, only without saying that it is one.
    async fn succeeded(&self, begun: Begun) {
        if begun.record.is_done {
            return;
        }
        let done = Record {
            is_done: true,
            ..begun.record
        };
        let marked = blocking(&self.store, move |store| {
            match store.put(&begun.place, &done, Some(begun.version)) {
                Err(StoreError::Contended) => mark_joined_done(store, &begun.place, done),
                other => other.map(|_| ()),
            }
        });
        if let Err(error) = marked.await {
            tracing::warn!(%error, "an idempotency key was not marked as done");
        }
    }

    /// Frees a key whose only attempt did nothing. If that fails, the key stays with its document.
    async fn undone(&self, begun: Begun) {
        if begun.record.is_joined || begun.record.is_done {
            return;
        }
        let freed = blocking(&self.store, move |store| {
            match store.forget(&begun.place, &begun.record, begun.version) {
                Err(StoreError::Contended) => Ok(()),
                other => other,
            }
        });
        if let Err(error) = freed.await {
            tracing::warn!(%error, "an idempotency key was not freed");
        }
    }
}

/// A key in use by this call.
struct Begun {
    place: Place,
    record: Record,
    version: Version,
}

/// `None` when the key stands for something else.
fn begin_once(
    store: &dyn Store,
    place: &Place,
    first: Record,
    now_unix_ms: i64,
) -> Result<Option<(Record, Version)>, StoreError> {
    let Some((found, version)) = store.find(place)? else {
        let version = store.put(place, &first, None)?;
        return Ok(Some((first, version)));
    };
    if found.expires_at_unix_ms <= now_unix_ms {
        let version = store.put(place, &first, Some(version))?;
        return Ok(Some((first, version)));
    }
    if found.fingerprint != first.fingerprint {
        return Ok(None);
    }
    if found.is_joined || found.is_done {
        return Ok(Some((found, version)));
    }
    // From here on the first call cannot free the key under this one.
    let joined = Record {
        is_joined: true,
        ..found
    };
    let version = store.put(place, &joined, Some(version))?;
    Ok(Some((joined, version)))
}

/// Another call joined meanwhile; the record is still this operation's, and joined for good.
fn mark_joined_done(store: &dyn Store, place: &Place, done: Record) -> Result<(), StoreError> {
    match store.find(place)? {
        Some((found, version)) if found.operation_id == done.operation_id && !found.is_done => {
            let done = Record {
                is_done: true,
                ..found
            };
            store.put(place, &done, Some(version)).map(|_| ())
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether the peer certainly stored nothing, so that the key may stand for something else.
fn did_nothing(error: &Error) -> bool {
    match error {
        Error::Document(..)
        | Error::DocumentTooLarge
        | Error::RequestIdConflict
        | Error::BundleNotFound
        | Error::BundleReplay
        | Error::BundleExpired
        | Error::BundleRevoked
        | Error::BundleNotRedeemed
        | Error::ReceiptOutsideContract
        | Error::ReceiptReplayConflict
        | Error::ExchangeNotFound
        | Error::SubmitterMismatch
        | Error::ExchangeExpired
        | Error::SubjectErased
        | Error::PolicyNotActive
        | Error::RateLimited(_) => true,
        // The policy engine asks the receipt store first; others may have begun already.
        Error::ReceiptStoreUnavailable(peer, _) => *peer == Peer::PolicyEngine,
        Error::Refused(_)
        | Error::Binding(_)
        | Error::Field { .. }
        | Error::InvalidIdempotencyKey
        | Error::IdempotencyConflict
        | Error::IdempotencyKeyTooOld
        | Error::RequestNotFound
        | Error::ReceiptNotFound
        | Error::InProgress(_)
        | Error::RedemptionInProgress(_)
        | Error::Busy
        | Error::PeerUnavailable(..)
        | Error::NotServed(_)
        | Error::DeadlineExceeded
        | Error::BrokenContract(..)
        | Error::PeerFailed { .. }
        | Error::Store(_)
        | Error::Internal => false,
    }
}
