//! Answers: the decision as it was recorded, or the protocol's error object.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use cl_host::clock::Clock;
use cl_host::ids::Ids;
use cl_host::status::DEADLINE_EXCEEDED;
use cl_model::canonical;
use cl_model::delivery;
use cl_model::json::read::ToJson;
use cl_model::object::{ErrorObject, ErrorType, ProposalStatus, Receipt};
use cl_model::part::{Issuer, SpecVersion};
use cl_model::scalar::{ReasonCode, Text};
use cl_model::time::UnixTime;
use cl_model::urn::{BundleId, ErrorId};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use tonic::Status;

use super::negotiation::{BundleForm, MEDIA_TYPE, VERSION, VERSION_HEADER};
use super::{RECEIPTS, REQUESTS, status};
use crate::auth::Refused;
use crate::bundles::{BundleStanding, Redeemed};
use crate::engine::{Standing, State};
use crate::error::{Binding, Error, Told};
use crate::proposals::Proposed;
use crate::receipts::Recorded;
use crate::service::{Document, Done};
use crate::waiting::Wait;

const STATE: HeaderName = HeaderName::from_static("context-layer-state");
const BUNDLE: HeaderName = HeaderName::from_static("context-layer-bundle");
const FAILURE: HeaderName = HeaderName::from_static("context-layer-failure");
const SEQUENCE: HeaderName = HeaderName::from_static("context-layer-sequence");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

const NO_STORE: &str = "no-store";
/// The capability document changes with a new configuration only.
const FIVE_MINUTES: &str = "public, max-age=300";

/// When to ask again for a state that still changes, if the engine does not say.
const ASK_AGAIN_SECONDS: u32 = 5;

/// Makes answers. Clones share clock and ids.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    pub(crate) issuer: Issuer,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl Answers {
    /// Answers a submission: 202 while a person has to approve, else 201.
    pub(super) fn submitted(&self, submitted: Done<Standing>) -> Response {
        let status = match submitted.answer.state {
            State::PendingApproval => StatusCode::ACCEPTED,
            State::Decided
            | State::Issued(_)
            | State::Failed(_)
            | State::Expired
            | State::Revoked => StatusCode::CREATED,
        };
        let location = format!("{REQUESTS}/{}", submitted.answer.request);
        let mut response = self.standing_with(status, submitted.answer);
        insert(&mut response, LOCATION, &location);
        mark_replay(&mut response, submitted.is_replay);
        response
    }

    /// Answers a read.
    pub(super) fn standing(&self, standing: Standing) -> Response {
        self.standing_with(StatusCode::OK, standing)
    }

    fn standing_with(&self, status: StatusCode, standing: Standing) -> Response {
        let mut response = answer(status, standing.decision, NO_STORE);
        let name = match &standing.state {
            State::PendingApproval => {
                let seconds = standing.retry_after_seconds.unwrap_or(ASK_AGAIN_SECONDS);
                insert(&mut response, RETRY_AFTER, &seconds.to_string());
                "pending_approval"
            }
            State::Decided => "decided",
            State::Issued(bundle) => {
                insert(&mut response, BUNDLE, bundle.as_str());
                "issued"
            }
            State::Failed(code) => {
                insert(&mut response, FAILURE, code);
                "failed"
            }
            State::Expired => "expired",
            State::Revoked => "revoked",
        };
        insert(&mut response, STATE, name);
        response
    }

    /// Answers a redemption, with the bytes as they were signed.
    pub(super) fn redeemed(&self, redeemed: Redeemed, form: BundleForm) -> Response {
        let mut response = match form {
            BundleForm::Envelope => answer(StatusCode::OK, redeemed.delivery.envelope, NO_STORE),
            BundleForm::Delivery => {
                let text = redeemed.delivery.to_text();
                let mut response = answer(StatusCode::OK, text.into_bytes(), NO_STORE);
                insert(&mut response, CONTENT_TYPE, delivery::MEDIA_TYPE);
                response
            }
        };
        mark_replay(&mut response, redeemed.is_repeat);
        response
    }

    /// Answers a check of a bundle.
    pub(super) fn bundle_standing(&self, bundle: &BundleId, standing: BundleStanding) -> Response {
        let document = json!({
            "bundle_ref": bundle.as_str(),
            "state": standing.state.as_str(),
            "expires_at": standing.expires_at.to_string(),
        });
        let bytes = canonical::to_text(&document).into_bytes();
        answer(StatusCode::OK, bytes, NO_STORE)
    }

    /// Answers a recorded receipt.
    pub(super) fn recorded(&self, recorded: Done<u64>, document: Document<Receipt>) -> Response {
        let location = format!("{RECEIPTS}/{}", document.object.id);
        let mut response = answer(StatusCode::CREATED, document.bytes, NO_STORE);
        insert(&mut response, LOCATION, &location);
        insert(&mut response, SEQUENCE, &recorded.answer.to_string());
        mark_replay(&mut response, recorded.is_replay);
        response
    }

    /// Answers a read of a receipt.
    pub(super) fn receipt(&self, recorded: Recorded) -> Response {
        let mut response = answer(StatusCode::OK, recorded.bytes, NO_STORE);
        insert(&mut response, SEQUENCE, &recorded.sequence.to_string());
        response
    }

    /// Answers a proposal: 202 while it waits, else 201. There is no resource to read it again.
    pub(super) fn proposed(&self, proposed: Done<Proposed>) -> Response {
        let status = match proposed.answer.status {
            ProposalStatus::PendingValidation | ProposalStatus::PendingApproval => {
                StatusCode::ACCEPTED
            }
            ProposalStatus::Approved
            | ProposalStatus::Rejected
            | ProposalStatus::Committed
            | ProposalStatus::Expired => StatusCode::CREATED,
        };
        let mut response = answer(status, proposed.answer.bytes, NO_STORE);
        mark_replay(&mut response, proposed.is_replay);
        response
    }

    pub(super) fn capabilities(&self, document: Vec<u8>) -> Response {
        answer(StatusCode::OK, document, FIVE_MINUTES)
    }

    /// Answers with an error object. The one place where a fault behind an HTTP call is logged.
    pub(crate) fn refusal(&self, error: &Error) -> Response {
        let told = error.told();
        let object = self.error_object(&told);
        if error.is_fault() {
            let error_id = object.as_ref().map(|object| object.id.as_str());
            tracing::error!(%error, error_id, "call failed");
        }
        let body = object.map(|object| canonical::to_text(&object.to_json()).into_bytes());
        let mut response = answer(status::of(&told), body.unwrap_or_default(), NO_STORE);
        if let Some(after) = told.retry_after {
            insert(
                &mut response,
                RETRY_AFTER,
                &whole_seconds(after).to_string(),
            );
        }
        if let Error::Refused(refused) = error
            && let Some(challenge) = challenge(*refused)
        {
            insert(&mut response, WWW_AUTHENTICATE, &challenge);
        }
        if let Error::Binding(Binding::Method(allowed)) = error {
            insert(&mut response, ALLOW, allowed);
        }
        response
    }

    /// Answers what the host refuses before or around the handlers.
    pub(crate) fn host_refusal(&self, status: &Status) -> Response {
        let error = match cl_host::status::reason(status).as_deref() {
            Some(DEADLINE_EXCEEDED) => Error::DeadlineExceeded,
            Some("INVALID_TIMEOUT") => Error::Field {
                field: "grpc-timeout",
                rule: "NOT_A_TIMEOUT",
            },
            _ => Error::Internal,
        };
        self.refusal(&error)
    }

    /// `None` only without randomness for the id; then the answer has no body.
    fn error_object(&self, told: &Told) -> Option<ErrorObject> {
        let uuid = self.ids.uuid().ok()?;
        Some(ErrorObject {
            spec_version: SpecVersion,
            kind: ErrorType,
            id: ErrorId::parse(&format!("{}{uuid}", ErrorId::PREFIX))?,
            created_at: UnixTime::from_milliseconds(self.clock.now_unix_ms()).into(),
            issuer: self.issuer.clone(),
            code: ReasonCode::new(told.reason)?,
            message: Text::new(told.message)?,
            retryable: told.retry_after.is_some(),
        })
    }
}

/// RFC 6750 section 3: no error code for a caller who showed nothing.
fn challenge(refused: Refused) -> Option<String> {
    match refused {
        Refused::NoCredential => Some("Bearer".to_owned()),
        Refused::Token(_) => Some("Bearer error=\"invalid_token\"".to_owned()),
        Refused::Scope(needed) => Some(format!(
            "Bearer error=\"insufficient_scope\", scope=\"{}\"",
            needed.as_str()
        )),
        Refused::Certificate => None,
    }
}

fn whole_seconds(time: Duration) -> u64 {
    let rounds_up = u64::from(time.subsec_nanos() > 0);
    time.as_secs().saturating_add(rounds_up).max(1)
}

/// An answer with the headers that all have.
fn answer(status: StatusCode, body: Vec<u8>, caching: &'static str) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    insert(&mut response, CONTENT_TYPE, MEDIA_TYPE);
    insert(&mut response, CACHE_CONTROL, caching);
    insert(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    insert(&mut response, VERSION_HEADER, VERSION);
    response
}

fn mark_replay(response: &mut Response, is_replay: bool) {
    if is_replay {
        insert(response, REPLAYED, "true");
    }
}

/// Says which wait was honoured (RFC 7240 section 3).
pub(super) fn waited(mut response: Response, wait: Option<Wait>) -> Response {
    if let Some(wait) = wait {
        let applied = format!("wait={}", wait.seconds());
        insert(&mut response, PREFERENCE_APPLIED, &applied);
    }
    response
}

/// All values are fixed texts or identifiers of a checked grammar, so none is ever left out.
fn insert(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
