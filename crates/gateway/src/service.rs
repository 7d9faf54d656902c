//! What the gateway does with a call, whichever door it came through.

use std::sync::Arc;

use cl_host::clock::Clock;
use cl_host::deadline::Deadline;
use cl_host::identity::PeerId;
use cl_host::ids::Ids;
use cl_kv::Version;
use cl_model::canonical;
use cl_model::document::MAX_DOCUMENT_BYTES;
use cl_model::json::{self, Limits};
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::policy::Asked;
use cl_model::urn::RequestId;
use http::HeaderMap;
use serde_json::Value;

use crate::auth::{Authenticator, Caller, Refused, Watermark};
use crate::engine::{Engine, Standing};
use crate::error::Error;
use crate::idempotency::{Fingerprint, IdempotencyKey, OperationId, Record};
use crate::keyfile::KeySetFile;
use crate::store::{Place, Store, StoreError, blocking};

/// The operation behind `POST /context/v1/requests` and `ExchangeService.SubmitRequest`.
const SUBMIT_REQUEST: &str = "submit_request";

/// How often a call looks again when others change the same record.
const ATTEMPTS: usize = 8;

/// A request document that fits its closed schema, in canonical form.
pub(crate) struct Document(Vec<u8>);

impl Document {
    /// Reads a document in any form of strict JSON.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let value = Self::value(bytes)?;
        Ok(Self(canonical::to_text(&value).into_bytes()))
    }

    /// Takes a document that must be canonical already.
    pub(crate) fn take(bytes: Vec<u8>) -> Result<Self, Error> {
        let value = Self::value(&bytes)?;
        if canonical::to_text(&value).as_bytes() != bytes {
            return Err(Error::Field {
                field: "request",
                rule: "NOT_CANONICAL",
            });
        }
        Ok(Self(bytes))
    }

    fn value(bytes: &[u8]) -> Result<Value, Error> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(Error::DocumentTooLarge);
        }
        let value = json::parse(bytes, Limits::network(MAX_DOCUMENT_BYTES))?;
        // First what has a code of its own, then the schema as a whole.
        Asked::read(&value)?;
        ContextRequest::read(&value)?;
        Ok(value)
    }
}

/// An answered submission.
pub(crate) struct Submitted {
    pub(crate) standing: Standing,
    /// Whether the same key got its answer before.
    pub(crate) is_replay: bool,
}

/// The gateway.
pub(crate) struct Gateway {
    pub(crate) authenticator: Authenticator,
    pub(crate) keys: Option<Arc<KeySetFile>>,
    pub(crate) watermark: Watermark,
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl Gateway {
    /// Who is calling.
    pub(crate) fn caller(
        &self,
        headers: &HeaderMap,
        peer: Option<&PeerId>,
    ) -> Result<Caller, Refused> {
        let (now, stepped_back) = self.watermark.observe(self.clock.now_unix_ms());
        if stepped_back {
            tracing::warn!("the clock stepped back; tokens are judged by the latest time seen");
        }
        let keys = self.keys.as_ref().map(|file| file.current());
        let keys = keys.unwrap_or_default();
        let caller = self.authenticator.caller(headers, peer, &keys, now);
        if let Err(refused) = &caller {
            tracing::debug!(cause = %refused, "caller refused");
        }
        caller
    }

    /// Submits a request, once for each key.
    pub(crate) async fn submit(
        &self,
        caller: &Caller,
        document: Document,
        key: Option<IdempotencyKey>,
        deadline: Deadline,
    ) -> Result<Submitted, Error> {
        let Some(key) = key else {
            let operation_id = self.operation_id()?;
            let standing = self
                .engine
                .submit(caller, document.0, &operation_id, deadline);
            return Ok(Submitted {
                standing: standing.await?,
                is_replay: false,
            });
        };
        let place = Place::of(caller.tenant(), caller.principal(), &key);
        let fingerprint = Fingerprint::of(SUBMIT_REQUEST, &document.0);
        let first = Record::new(fingerprint, self.operation_id()?, self.clock.now_unix_ms());
        let begun = self.begin(place, first).await?;
        let operation_id = begun.record.operation_id;
        let standing = self
            .engine
            .submit(caller, document.0, &operation_id, deadline)
            .await;
        // A crash before this line leaves the key begun: the next attempt carries the same
        // operation id, for which the engine decides only once.
        match standing {
            Ok(standing) => {
                let is_replay = begun.record.is_done;
                self.succeeded(begun).await;
                Ok(Submitted {
                    standing,
                    is_replay,
                })
            }
            Err(error) => {
                if did_nothing(&error) {
                    self.undone(begun).await;
                }
                Err(error)
            }
        }
    }

    /// Reads where a request of the caller's own stands.
    pub(crate) async fn standing(
        &self,
        caller: &Caller,
        request: &RequestId,
        deadline: Deadline,
    ) -> Result<Standing, Error> {
        self.engine.standing(caller, request, deadline).await
    }

    fn operation_id(&self) -> Result<OperationId, Error> {
        let uuid = self.ids.uuid().map_err(|_| Error::Internal)?;
        Ok(uuid.into())
    }

    /// Takes a key into use, or joins the use that it has already. Of several calls at the same
    /// moment, one makes the record, and the others find it: all carry its operation id.
    async fn begin(&self, place: Place, first: Record) -> Result<Begun, Error> {
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

/// Whether the engine certainly stored nothing, so that the key may stand for something else.
fn did_nothing(error: &Error) -> bool {
    match error {
        Error::Document(_)
        | Error::DocumentTooLarge
        | Error::RequestIdConflict
        | Error::PolicyNotActive
        | Error::RateLimited(_)
        | Error::ReceiptStoreUnavailable(_) => true,
        Error::Refused(_)
        | Error::Binding(_)
        | Error::Field { .. }
        | Error::InvalidIdempotencyKey
        | Error::IdempotencyConflict
        | Error::RequestNotFound
        | Error::InProgress(_)
        | Error::Busy
        | Error::EngineUnavailable(_)
        | Error::DeadlineExceeded
        | Error::Engine(_)
        | Error::EngineFailed { .. }
        | Error::Store(_)
        | Error::Internal => false,
    }
}
