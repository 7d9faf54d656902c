//! Context requests, as a requester.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use cl_model::json::{self, Limits};
use cl_model::object::{ErrorObject, PolicyDecision, ProtocolObject};
use cl_model::time::UnixTime;
use cl_model::urn::RequestId;
use clap::Subcommand;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use crate::cli::tenant;
use crate::error::{Error, Kind};
use crate::home::read_json;
use crate::output;
use crate::peers::{Gateway, Shows};
use crate::processes::GATEWAY;
use crate::session::Session;
use crate::token::{self, CALL_TTL_S, Claims, DEMO_AGENT, DEMO_CLIENT, REQUEST_SCOPE};

const MEDIA_TYPE: &str = "application/vnd.context-layer+json";
const VERSION_HEADER: &str = "context-layer-version";
const VERSION: &str = "0.2-draft";

const PATH: &str = "/context/v1/requests";

/// The lifetime of a request whose file states none.
const LIFETIME_MS: i64 = 600_000;

const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// Settings of `clctl request`.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
    /// The request, JSON. It gets a fresh id and fresh times, with the lifetime that it states.
    file: PathBuf,

    /// Send the file as it is.
    #[arg(long)]
    as_is: bool,

    /// The principal of the token that is made for this call [default: the file's requester].
    #[arg(long, value_parser = token::reference, conflicts_with = "mtls")]
    sub: Option<String>,

    /// The tenant of that token.
    #[arg(long, default_value = "default", value_parser = tenant, conflicts_with = "mtls")]
    tenant: String,

    /// Show the home's client certificate, and no token.
    #[arg(long)]
    mtls: bool,
}

/// Context requests that were sent before.
#[derive(Debug, Subcommand)]
pub(crate) enum RequestsCommand {
    /// Shows the state of a request, to its requester.
    Show(ShowArgs),
}

/// Settings of `clctl requests show`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Its URN.
    #[arg(value_parser = request_id)]
    id: String,

    /// The principal of the token that is made for this call.
    #[arg(long, default_value = DEMO_AGENT, value_parser = token::reference, conflicts_with = "mtls")]
    sub: String,

    /// The client instance of that token.
    #[arg(long, default_value = DEMO_CLIENT, value_parser = token::reference, conflicts_with = "mtls")]
    client_instance: String,

    /// The tenant of that token.
    #[arg(long, default_value = "default", value_parser = tenant, conflicts_with = "mtls")]
    tenant: String,

    /// Show the home's client certificate, and no token.
    #[arg(long)]
    mtls: bool,
}

pub(crate) async fn submit(args: &RequestArgs, session: &Session) -> Result<(), Error> {
    let mut request = read(&args.file)?;
    if !args.as_is {
        refresh(&mut request, session)?;
    }
    let id = request["id"].as_str().unwrap_or_default().to_owned();
    let requester = |member: &str| request["requester"][member].as_str();
    let sub = args.sub.as_deref().or(requester("principal"));
    let claims = Claims {
        sub: sub.unwrap_or(DEMO_AGENT),
        client_instance: requester("client_instance").unwrap_or(DEMO_CLIENT),
        tenant: &args.tenant,
        scope: REQUEST_SCOPE,
        ttl_s: CALL_TTL_S,
    };
    let token = (!args.mtls)
        .then(|| token::mint(session, &claims))
        .transpose()?;
    let body = Value::Object(request).to_string().into_bytes();
    let call = Call {
        method: Method::POST,
        path: PATH.to_owned(),
        body,
        token,
    };
    let answer = call.send(session).await?;
    show_state(&id, &answer, session)
}

pub(crate) async fn show(command: &RequestsCommand, session: &Session) -> Result<(), Error> {
    let RequestsCommand::Show(args) = command;
    let claims = Claims {
        sub: &args.sub,
        client_instance: &args.client_instance,
        tenant: &args.tenant,
        scope: REQUEST_SCOPE,
        ttl_s: CALL_TTL_S,
    };
    let token = (!args.mtls)
        .then(|| token::mint(session, &claims))
        .transpose()?;
    let call = Call {
        method: Method::GET,
        path: format!("{PATH}/{}", args.id),
        body: Vec::new(),
        token,
    };
    let answer = call.send(session).await?;
    show_state(&args.id, &answer, session)
}

fn request_id(text: &str) -> Result<String, String> {
    RequestId::parse(text)
        .map(|id| id.as_str().to_owned())
        .ok_or_else(|| "not a request's URN: urn:cl:request:..".to_owned())
}

fn read(file: &Path) -> Result<Map<String, Value>, Error> {
    match read_json(file)? {
        Value::Object(members) => Ok(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Error::Malformed {
                path: file.to_owned(),
                expected: "a JSON object",
            })
        }
    }
}

/// A fresh id, and the times moved to now.
fn refresh(request: &mut Map<String, Value>, session: &Session) -> Result<(), Error> {
    let time = |member: &str| {
        let text = request.get(member).and_then(Value::as_str);
        text.and_then(UnixTime::parse).map(UnixTime::milliseconds)
    };
    let stated = time("created_at").zip(time("expires_at"));
    let lifetime_ms = stated
        .map(|(created, expires)| expires - created)
        .filter(|lifetime| *lifetime > 0)
        .unwrap_or(LIFETIME_MS);
    let now = session.now();
    let expires = UnixTime::from_milliseconds(now.milliseconds().saturating_add(lifetime_ms));
    for (member, text) in [
        ("id", session.urn(RequestId::PREFIX)?),
        ("created_at", now.to_string()),
        ("expires_at", expires.to_string()),
    ] {
        request.insert(member.to_owned(), Value::String(text));
    }
    Ok(())
}

/// One call of the gateway.
struct Call {
    method: Method,
    path: String,
    body: Vec<u8>,
    /// None: the client certificate is shown.
    token: Option<Zeroizing<String>>,
}

impl Call {
    /// The answer, if it is one about a request.
    async fn send(self, session: &Session) -> Result<Response<Bytes>, Error> {
        let shows = match self.token {
            Some(_) => Shows::Token,
            None => Shows::Certificate,
        };
        let gateway = Gateway::open(session, shows)?;
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.path)
            .header(HOST, gateway.authority())
            .header(VERSION_HEADER, VERSION)
            .header(ACCEPT, MEDIA_TYPE);
        if !self.body.is_empty() {
            request = request.header(CONTENT_TYPE, MEDIA_TYPE);
        }
        if let Some(token) = self.token {
            let bearer = Zeroizing::new(format!("Bearer {}", &*token));
            let mut value = HeaderValue::try_from(bearer.as_str()).map_err(|_| MALFORMED)?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let request = request
            .body(Full::new(Bytes::from(self.body)))
            .map_err(|_| MALFORMED)?;
        let answer = gateway.call(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        Err(refusal(&answer))
    }
}

const MALFORMED: Error = Error::Answer { peer: GATEWAY.name };

/// What an answer that is no success says: the protocol's error object.
fn refusal(answer: &Response<Bytes>) -> Error {
    let parsed = json::parse(answer.body(), Limits::network(MAX_ANSWER_BYTES));
    let Some(error) = parsed.ok().and_then(|body| ErrorObject::read(&body).ok()) else {
        return MALFORMED;
    };
    let kind = match answer.status() {
        StatusCode::NOT_FOUND => Kind::NotFound,
        _ if error.retryable => Kind::Later,
        _ => Kind::Final,
    };
    Error::Refused {
        peer: GATEWAY.name,
        kind,
        reason: error.code.as_str().to_owned(),
        message: error.message.as_str().to_owned(),
        violations: Vec::new(),
    }
}

fn show_state(id: &str, answer: &Response<Bytes>, session: &Session) -> Result<(), Error> {
    let header = |name: &str| {
        let value = answer.headers().get(name);
        value
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let body = json::parse(answer.body(), Limits::network(MAX_ANSWER_BYTES));
    let body = body.map_err(|_| MALFORMED)?;
    let decision = PolicyDecision::read(&body).map_err(|_| MALFORMED)?;
    let state = header("context-layer-state").ok_or(MALFORMED)?;
    let bundle = header("context-layer-bundle");
    let failure = header("context-layer-failure");
    let document = json!({
        "request": id,
        "state": state,
        "bundle": bundle,
        "failure": failure,
        "retry_after_seconds": header("retry-after"),
        "decision": body,
    });
    session.output.answer(&document, || {
        let mut fields = vec![("request", id.to_owned()), ("state", state.clone())];
        fields.extend(bundle.clone().map(|bundle| ("bundle", bundle)));
        fields.extend(failure.clone().map(|failure| ("failure", failure)));
        fields.extend(decision_fields(&decision));
        output::fields(&fields)
    })
}

fn decision_fields(decision: &PolicyDecision) -> [(&'static str, String); 8] {
    let predicates = |selectors: &[cl_model::part::Selector]| {
        output::joined(selectors.iter().map(|selector| selector.predicate.as_str()))
    };
    let transforms = decision.transform_requirements.iter();
    [
        ("decision", decision.decision.as_str().to_owned()),
        ("granted", predicates(&decision.granted_selectors)),
        ("withheld", predicates(&decision.denied_selectors)),
        (
            "actions",
            output::joined(
                decision
                    .granted_actions
                    .iter()
                    .map(|action| action.as_str()),
            ),
        ),
        (
            "withheld actions",
            output::joined(decision.denied_actions.iter().map(|action| action.as_str())),
        ),
        (
            "transforms",
            output::joined(transforms.map(|transform| transform.as_str())),
        ),
        (
            "reasons",
            output::joined(decision.reason_codes.iter().map(|reason| reason.as_str())),
        ),
        ("expires", decision.expires_at.as_str().to_owned()),
    ]
}
