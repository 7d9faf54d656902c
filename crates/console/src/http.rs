//! Routes, and what every call passes before it reaches one (spec 11.1).

mod access;
mod approvals;
mod call;
mod decisions;
mod enrol;
mod passkey;
mod receipts;
mod sign_in;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use cl_host::clock::Clock;
use cl_host::ids::Ids;
use cl_model::time::UnixTime;
use http::header::{ALLOW, CONTENT_TYPE, LOCATION, RETRY_AFTER, SET_COOKIE};
use http::{HeaderValue, Method, StatusCode};
use maud::Markup;

use self::call::{Call, Signed};
pub(crate) use self::passkey::encoded;
use crate::assets::{Asset, FOLDER};
use crate::bounds::Bounds;
use crate::csrf::FormKey;
use crate::engine::Engine;
use crate::error::Error;
use crate::forms;
use crate::headers::protect;
use crate::metrics::Metrics;
use crate::origin::Origin;
use crate::pages;
use crate::receipts::Receipts;
use crate::session::{Cookie, Kind, Sessions};

const SIGN_IN: &str = "/sign-in";
const QUEUE: &str = "/approvals";

/// What is named in metrics; paths with an id in them are not.
pub(crate) const FIXED_PATHS: [&str; 10] = [
    "/",
    SIGN_IN,
    "/sign-in/begin",
    "/sign-out",
    "/enrol",
    "/enrol/begin",
    QUEUE,
    "/access",
    "/decisions",
    "/receipts",
];

/// The longest path and query.
const MAX_ADDRESS_BYTES: usize = 2048;

/// What handlers work with.
pub(crate) struct Console {
    pub(crate) origin: Origin,
    pub(crate) engine: Engine,
    pub(crate) receipts: Option<Receipts>,
    pub(crate) sessions: Sessions,
    pub(crate) form_key: FormKey,
    pub(crate) bounds: Bounds,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl Console {
    fn now(&self) -> UnixTime {
        UnixTime::from_milliseconds(self.clock.now_unix_ms())
    }

    /// A fresh id of an operation in receipts.
    fn operation_id(&self) -> Result<String, Error> {
        let id = self.ids.uuid().map_err(|_| Error::Internal)?;
        Ok(format!("urn:cl:operation:{id}"))
    }
}

/// All routes, and what is around them.
pub(crate) fn routes(console: Arc<Console>) -> Router {
    let unknown = Arc::clone(&console);
    Router::new()
        .route("/", only(get(home), "GET, HEAD"))
        .route(
            SIGN_IN,
            only(get(sign_in::page).post(sign_in::finish), "GET, HEAD, POST"),
        )
        .route("/sign-in/begin", only(post(sign_in::begin), "POST"))
        .route("/sign-out", only(post(sign_in::end), "POST"))
        .route(
            "/enrol",
            only(get(enrol::page).post(enrol::finish), "GET, HEAD, POST"),
        )
        .route("/enrol/begin", only(post(enrol::begin), "POST"))
        .route(QUEUE, only(get(approvals::queue), "GET, HEAD"))
        .route("/approvals/{id}", only(get(approvals::item), "GET, HEAD"))
        .route(
            "/approvals/{id}/answer",
            only(post(approvals::answer), "POST"),
        )
        .route(
            "/approvals/{id}/confirm",
            only(post(approvals::confirm), "POST"),
        )
        .route("/access", only(get(access::list), "GET, HEAD"))
        .route(
            "/access/{id}/revoke",
            only(get(access::ask).post(access::revoke), "GET, HEAD, POST"),
        )
        .route("/decisions", only(get(decisions::list), "GET, HEAD"))
        .route("/receipts", only(get(receipts::list), "GET, HEAD"))
        .route("/receipts/{id}", only(get(receipts::show), "GET, HEAD"))
        .route("/assets/{name}", only(get(asset), "GET, HEAD"))
        .with_state(Arc::clone(&console))
        .fallback(async move |request: Request| {
            unknown.refusal(&Call::of(request), &Error::NotFound)
        })
        .layer(from_fn_with_state(console, guarded))
}

/// Answers all other methods with what is allowed. Headers that name another method change nothing.
fn only(routes: MethodRouter<Arc<Console>>, allowed: &'static str) -> MethodRouter<Arc<Console>> {
    routes.fallback(
        async move |State(console): State<Arc<Console>>, request: Request| {
            console.refusal(&Call::of(request), &Error::Method(allowed))
        },
    )
}

/// What every call passes before anything of its body is read, and every answer before it leaves.
async fn guarded(State(console): State<Arc<Console>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let response = match console.admit(&request) {
        // Held until the handler has its answer.
        Ok(_permit) => next.run(request).await,
        Err(error) => console.refusal(&Call::of(request), &error),
    };
    console.metrics.answered(&path, &response);
    protect(response)
}

impl Console {
    fn admit(&self, request: &Request) -> Result<tokio::sync::OwnedSemaphorePermit, Error> {
        let address = request.uri().path_and_query();
        if address.is_some_and(|it| it.as_str().len() > MAX_ADDRESS_BYTES) {
            return Err(Error::AddressTooLong);
        }
        if *request.method() == Method::POST {
            if !self.origin.sent(request.headers()) {
                return Err(Error::Origin);
            }
            if !forms::is_form(request.headers()) {
                return Err(Error::MediaType);
            }
        }
        self.bounds.begin()
    }

    /// The answer of a handler, or the page of its refusal.
    fn answered(&self, call: &Call, answer: Result<Response, Error>) -> Response {
        match answer {
            Ok(response) => response,
            Err(error) => self.refusal(call, &error),
        }
    }

    fn refusal(&self, call: &Call, error: &Error) -> Response {
        let told = error.told();
        self.metrics.refused(told.code);
        if error.is_fault() {
            tracing::error!(%error, "call failed");
        } else {
            tracing::debug!(code = told.code, "call refused");
        }
        if error.is_signed_out() {
            return self.signed_out(call, error);
        }
        let mut response = if call.wants_json() {
            json(&serde_json::json!({
                "code": told.code, "title": told.title, "text": told.text,
            }))
        } else {
            let signed = self.signed(call).ok();
            let chrome = self.chrome(signed.as_ref());
            page(&pages::error::page(&chrome, &told, call.back()))
        };
        *response.status_mut() = told.status;
        if let Error::Method(allowed) = error {
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static(allowed));
        }
        if let Some(after) = told.retry_after {
            let seconds = HeaderValue::from(after.as_secs().max(1));
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }

    /// Who only looks is led to the sign-in; a form is answered with why nothing was done.
    fn signed_out(&self, call: &Call, error: &Error) -> Response {
        if let Some(cookie) = Cookie::of(Kind::Session, call.headers()) {
            self.sessions.end(&cookie);
        }
        let mut response = if call.only_looks() {
            redirect(SIGN_IN)
        } else {
            let mut response = page(&pages::error::signed_out(&error.told()));
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            response
        };
        set_cookie(&mut response, Cookie::clear(Kind::Session));
        response
    }
}

async fn home(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    let to = if console.signed(&call).is_ok() {
        QUEUE
    } else {
        SIGN_IN
    };
    redirect(to)
}

async fn asset(State(console): State<Arc<Console>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    debug_assert!(path.starts_with(FOLDER));
    match Asset::find(&path) {
        Some(asset) => asset.answer(),
        None => console.refusal(&Call::of(request), &Error::NotFound),
    }
}

/// How the process's frame refuses a call that ran into its deadline or broke.
pub(crate) fn host_refusal(status: &tonic::Status) -> Response {
    let error = if status.code() == tonic::Code::DeadlineExceeded {
        Error::DeadlineExceeded
    } else {
        Error::Internal
    };
    let told = error.told();
    let mut response = page(&pages::error::page(&pages::Chrome::bare(), &told, None));
    *response.status_mut() = told.status;
    protect(response)
}

fn page(markup: &Markup) -> Response {
    let mut response = Response::new(markup.0.clone().into());
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    response
}

fn json(value: &serde_json::Value) -> Response {
    let mut response = Response::new(value.to_string().into());
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn redirect(to: &'static str) -> Response {
    let mut response = Response::new(axum::body::Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let to = HeaderValue::from_static(to);
    response.headers_mut().insert(LOCATION, to);
    response
}

fn set_cookie(response: &mut Response, cookie: Option<HeaderValue>) {
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

impl Signed {
    fn token(&self) -> &[u8] {
        &self.person.token
    }
}
