//! The HTTP door (spec 10).
//!
//! Each answer, also of a path that does not exist, comes in the protocol's media type with the
//! same few headers; each refusal is the protocol's error object.

mod answer;
mod body;
mod bounds;
mod negotiation;
mod recipients;
mod status;

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use cl_host::identity::PeerId;
use cl_host::status::is_grpc;
use cl_host::telemetry::CorrelationId;
use cl_model::urn::RequestId;
use http::HeaderName;
use http::header::HeaderMap;
use percent_encoding::percent_decode_str;

pub(crate) use self::answer::Answers;
use self::answer::waited;
use self::body::PromptBody;
use crate::auth::{Caller, Scope};
use crate::error::{Binding, Error};
use crate::grpc;
use crate::idempotency::IdempotencyKey;
use crate::in_flight::{InFlight, Permit};
use crate::metrics::{Metrics, Route};
use crate::service::Gateway;

/// Where requests are submitted.
pub(crate) const REQUESTS: &str = "/context/v1/requests";
/// Where bundles are, by their ids.
pub(crate) const BUNDLES: &str = "/context/v1/bundles";
/// Where receipts are, by their ids.
pub(crate) const RECEIPTS: &str = "/context/v1/receipts";
/// Where proposals are submitted.
pub(crate) const PROPOSALS: &str = "/context/v1/memory-proposals";
/// Below a bundle: where it stands.
pub(crate) const STATUS_OF_BUNDLE: &str = "/status";
/// Below a bundle: where receipts about it are submitted.
pub(crate) const RECEIPTS_OF_BUNDLE: &str = "/receipts";
/// Where the capability document is.
pub(crate) const CAPABILITIES: &str = "/.well-known/context-layer";

const REQUEST: &str = "/context/v1/requests/{id}";
const BUNDLE: &str = "/context/v1/bundles/{id}";
const BUNDLE_STATUS: &str = "/context/v1/bundles/{id}/status";
const BUNDLE_RECEIPTS: &str = "/context/v1/bundles/{id}/receipts";
const RECEIPT: &str = "/context/v1/receipts/{id}";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What the HTTP door is made of.
pub(crate) struct Door {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) answers: Answers,
    pub(crate) metrics: Metrics,
    /// The capability document.
    pub(crate) capabilities: Vec<u8>,
    /// Calls at a time, through both doors.
    pub(crate) in_flight: Arc<InFlight>,
    /// From the head of a call to the end of its body.
    pub(crate) max_body_time: Duration,
}

/// The HTTP resources, and the bounds around them and around the gRPC routes in `grpc`.
pub(crate) fn routes(door: Arc<Door>, grpc: Router) -> Router {
    let http = Router::new()
        .route(REQUESTS, only(post(submit), "POST"))
        .route(REQUEST, only(get(read), "GET, HEAD"))
        .route(BUNDLE, recipients::redeeming())
        .route(BUNDLE_STATUS, only(get(recipients::check), "GET, HEAD"))
        .route(BUNDLE_RECEIPTS, only(post(recipients::record), "POST"))
        .route(RECEIPT, only(get(recipients::receipt), "GET, HEAD"))
        .route(PROPOSALS, only(post(recipients::propose), "POST"))
        .route(CAPABILITIES, only(get(capabilities), "GET, HEAD"))
        .with_state(Arc::clone(&door));
    let unknown = Arc::clone(&door);
    grpc.merge(http)
        .fallback(async move |request: Request| unknown.unknown(&request))
        .layer(from_fn_with_state(door, bounded))
}

/// Answers all other methods with what is allowed.
fn only(routes: MethodRouter<Arc<Door>>, allowed: &'static str) -> MethodRouter<Arc<Door>> {
    routes.fallback(async move |State(door): State<Arc<Door>>| {
        door.answers.refusal(&Binding::Method(allowed).into())
    })
}

/// What every call passes before anything of its body is read.
async fn bounded(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response {
    let route = Route::of(request.uri().path());
    let to_grpc = is_grpc(request.headers());
    let correlation_id = request.extensions().get::<CorrelationId>().copied();
    let response = match door.admit(route, &mut request, to_grpc) {
        // Held until the handler has its answer.
        Ok(_permit) => next.run(request).await,
        Err(error) if to_grpc => error.to_status(correlation_id).into_http(),
        Err(error) => door.answers.refusal(&error),
    };
    door.metrics.answered(route, &response);
    response
}

async fn submit(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answer = async {
        let caller = Caller::of(&parts.extensions, Scope::Request)?;
        let key = check_submission(&parts.headers)?;
        let wait = negotiation::wait(&parts.headers);
        let document = body::document(&parts.headers, body).await?;
        let deadline = grpc::deadline(&parts.extensions);
        let gateway = &door.gateway;
        let mut submitted = gateway.submit(&caller, document, key, deadline).await?;
        if let Some(wait) = wait {
            let standing = gateway.wait(&caller, submitted.answer, wait, deadline);
            submitted.answer = standing.await;
        }
        Ok((submitted, wait))
    };
    match answer.await {
        Ok((submitted, wait)) => waited(door.answers.submitted(submitted), wait),
        Err(error) => door.answers.refusal(&error),
    }
}

async fn read(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, _body) = request.into_parts();
    let answer = async {
        let caller = Caller::of(&parts.extensions, Scope::Request)?;
        negotiation::check_version(&parts.headers)?;
        negotiation::check_accept(&parts.headers)?;
        // What is no id of a request names none of the caller's.
        let id = id_in(parts.uri.path(), REQUESTS, "", RequestId::parse);
        let id = id.ok_or(Error::RequestNotFound)?;
        let deadline = grpc::deadline(&parts.extensions);
        let wait = negotiation::wait(&parts.headers);
        let gateway = &door.gateway;
        let after = wait.unwrap_or_default();
        let standing = gateway.standing_after(&caller, &id, after, deadline);
        Ok((standing.await?, wait))
    };
    match answer.await {
        Ok((standing, wait)) => waited(door.answers.standing(standing), wait),
        Err(error) => door.answers.refusal(&error),
    }
}

async fn capabilities(State(door): State<Arc<Door>>) -> Response {
    door.answers.capabilities(door.capabilities.clone())
}

impl Door {
    /// Lets a call in. Only a caller who is known gets a permit and has a body read, and not for
    /// long; what is public is answered from memory and needs neither.
    fn admit(
        &self,
        route: Route,
        request: &mut Request,
        to_grpc: bool,
    ) -> Result<Option<Permit>, Error> {
        bounds::check(request.uri(), request.headers(), to_grpc)?;
        if route.is_public() {
            return Ok(None);
        }
        let peer = request.extensions().get::<PeerId>();
        let caller = self.gateway.caller(request.headers(), peer)?;
        let permit = self.in_flight.begin(&caller)?;
        request.extensions_mut().insert(caller);
        let body = mem::take(request.body_mut());
        *request.body_mut() = Body::new(PromptBody::new(body, self.max_body_time));
        Ok(Some(permit))
    }

    fn unknown(&self, request: &Request) -> Response {
        if is_grpc(request.headers()) {
            return Error::from(Binding::UnknownRpc).to_status(None).into_http();
        }
        self.answers.refusal(&Binding::UnknownPath.into())
    }
}

/// The id in a path, between what is above and what is below it, percent-decoded.
fn id_in<T>(
    path: &str,
    above: &str,
    below: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let segment = path.strip_prefix(above)?.strip_prefix('/')?;
    let segment = segment.strip_suffix(below)?;
    let text = percent_decode_str(segment).decode_utf8().ok()?;
    grpc::id(&text, parse)
}

/// What a submission's headers must be before its body is read.
fn check_submission(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Error> {
    negotiation::check_version(headers)?;
    negotiation::check_content_type(headers)?;
    negotiation::check_accept(headers)?;
    key(headers)
}

fn key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Error> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => IdempotencyKey::parse(value.as_bytes())
            .map(Some)
            .ok_or(Error::InvalidIdempotencyKey),
        (Some(_), Some(_)) => Err(Error::InvalidIdempotencyKey),
    }
}

impl From<Binding> for Error {
    fn from(binding: Binding) -> Self {
        Self::Binding(binding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_percent_decoded_once() {
        let id = |segment: &str| {
            let path = format!("{REQUESTS}/{segment}");
            id_in(&path, REQUESTS, "", RequestId::parse).map(|id| id.as_str().to_owned())
        };
        let expected = Some("urn:cl:request:r-1".to_owned());
        assert_eq!(id("urn:cl:request:r-1"), expected);
        assert_eq!(id("urn%3Acl%3arequest%3Ar%2D1"), expected);
        for bad in [
            "",
            "r-1",
            "urn%253Acl%253Arequest%253Ar-1",
            "urn:cl:request:%zz",
            "urn:cl:request:%ff",
            "urn:cl:request:a%2Fb",
            "urn:cl:request:a/b",
            "urn:cl:bundle:r-1",
        ] {
            assert_eq!(id(bad), None, "{bad}");
        }
        assert_eq!(id(&format!("urn:cl:request:{}", "a".repeat(512))), None);
    }
}
