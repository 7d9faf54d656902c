//! Why a call was refused, and what its caller is told: one table for gRPC and HTTP.

use std::fmt;
use std::time::Duration;

use cl_host::telemetry::CorrelationId;
use cl_model::refusal::{Place, Refusal, Step};
use cl_wire::field_path::FieldPath;
use cl_wire::status::StatusBuilder;
use tonic::{Code, Status};

use crate::auth::Refused;
use crate::store::StoreError;

/// When a call that met something passing is worth a repeat.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// When a call is worth a repeat that needs an operator first.
const RETRY_AFTER_OPERATOR: Duration = Duration::from_secs(30);

/// A service behind the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// It decides requests.
    PolicyEngine,
    /// It hands out bundles, and takes receipts about them.
    BundleIssuer,
    /// It keeps receipts.
    ReceiptStore,
    /// It takes proposals.
    Vault,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PolicyEngine => "the policy engine",
            Self::BundleIssuer => "the bundle issuer",
            Self::ReceiptStore => "the receipt store",
            Self::Vault => "the vault",
        })
    }
}

/// Why a call was refused. Nothing in it repeats what the caller sent.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The caller is not let in.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The request does not fit the binding (spec 10.1), before it is about anything.
    #[error("binding: {0:?}")]
    Binding(Binding),
    /// A typed field is malformed.
    #[error("{field}: {rule}")]
    Field {
        /// The field.
        field: &'static str,
        /// The violated rule, as a code.
        rule: &'static str,
    },
    /// The document is over the limit.
    #[error("the document is too large")]
    DocumentTooLarge,
    /// The document in this field violates a rule.
    #[error("{0}: {1}")]
    Document(&'static str, Refusal),
    /// The idempotency key is malformed, or given twice.
    #[error("the idempotency key is malformed")]
    InvalidIdempotencyKey,
    /// The idempotency key was used for something else.
    #[error("the idempotency key is in use")]
    IdempotencyConflict,
    /// The idempotency key was used so long ago that nobody knows any more what for.
    #[error("the idempotency key is too old")]
    IdempotencyKeyTooOld,
    /// The caller has no such request.
    #[error("no such request")]
    RequestNotFound,
    /// The request id belongs to another request.
    #[error("the request id is in use")]
    RequestIdConflict,
    /// Another call decides the same request.
    #[error("another call decides the same request")]
    InProgress(Option<Duration>),
    /// The caller has no such bundle.
    #[error("no such bundle")]
    BundleNotFound,
    /// The bundle was handed out before.
    #[error("the bundle was handed out")]
    BundleReplay,
    /// The bundle's time is over.
    #[error("the bundle has expired")]
    BundleExpired,
    /// The bundle was ended before its time.
    #[error("the bundle was revoked")]
    BundleRevoked,
    /// Another call with the same key redeems the bundle.
    #[error("another call redeems the bundle")]
    RedemptionInProgress(Option<Duration>),
    /// The receipt is about a bundle that was not handed out.
    #[error("the bundle was not redeemed")]
    BundleNotRedeemed,
    /// The receipt is none that the bundle's contract allows.
    #[error("the receipt is outside the contract")]
    ReceiptOutsideContract,
    /// The bundle was consumed before.
    #[error("the bundle was consumed")]
    ReceiptReplayConflict,
    /// The caller has no such receipt.
    #[error("no such receipt")]
    ReceiptNotFound,
    /// The caller took part in no exchange about this subject.
    #[error("no such exchange")]
    ExchangeNotFound,
    /// The proposal names another submitter.
    #[error("the submitter is another")]
    SubmitterMismatch,
    /// The exchange is too long ago.
    #[error("the exchange has expired")]
    ExchangeExpired,
    /// Nothing is kept about the subject any more.
    #[error("the subject was erased")]
    SubjectErased,
    /// The caller's tenant has no active policy.
    #[error("no policy is active")]
    PolicyNotActive,
    /// The caller asks too often.
    #[error("too many requests of this caller")]
    RateLimited(Option<Duration>),
    /// The gateway has as many calls as it takes.
    #[error("too many calls at a time")]
    Busy,
    /// This peer could not have its receipt written.
    #[error("the receipt store is unavailable to {0}")]
    ReceiptStoreUnavailable(Peer, Option<Duration>),
    /// The peer is away, or cannot tell yet.
    #[error("{0} is unavailable")]
    PeerUnavailable(Peer, Option<Duration>),
    /// The gateway was not told where this peer is.
    #[error("{0} is not configured")]
    NotServed(Peer),
    /// The call ran into its deadline.
    #[error("the deadline passed")]
    DeadlineExceeded,
    /// The peer answered what it must not answer.
    #[error("an answer of {0} breaks its contract: {1}")]
    BrokenContract(Peer, &'static str),
    /// The peer refused for a reason that no caller causes.
    #[error("{peer} failed: {code:?}, {reason:?}")]
    PeerFailed {
        /// Which one.
        peer: Peer,
        /// How the call ended.
        code: Code,
        /// The stable code that came with it; for the log only.
        reason: Option<String>,
    },
    /// The gateway's own store is in trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something broke inside.
    #[error("internal")]
    Internal,
}

/// How a request does not fit the HTTP binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Nothing is at this path.
    UnknownPath,
    /// No rpc has this path.
    UnknownRpc,
    /// The path takes other methods, these.
    Method(&'static str),
    /// No protocol version.
    VersionMissing,
    /// Another protocol version, or several.
    VersionUnsupported,
    /// The body has another media type.
    MediaType,
    /// The caller takes no answer of the protocol's media type.
    NotAcceptable,
    /// The address is too long.
    UriTooLong,
    /// The headers are too large.
    HeadersTooLarge,
    /// A credential stands in the address.
    CredentialInUrl,
    /// The body did not arrive whole.
    BodyIncomplete,
}

/// What a caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The gRPC code, from which the HTTP status follows.
    pub code: Code,
    /// The stable code.
    pub reason: &'static str,
    /// A fixed sentence.
    pub message: &'static str,
    /// When to try again, if that can help.
    pub retry_after: Option<Duration>,
}

impl Told {
    const fn new(code: Code, reason: &'static str, message: &'static str) -> Self {
        Self {
            code,
            reason,
            message,
            retry_after: None,
        }
    }

    const fn retry(self, after: Duration) -> Self {
        Self {
            retry_after: Some(after),
            ..self
        }
    }

    const fn invalid(reason: &'static str, message: &'static str) -> Self {
        Self::new(Code::InvalidArgument, reason, message)
    }
}

impl Error {
    /// The one table of what callers are told.
    pub fn told(&self) -> Told {
        match self {
            Self::Refused(refused) => told_of_caller(*refused),
            Self::Binding(binding) => told_of_binding(*binding),
            Self::Field { .. } => Told::invalid("INVALID_FIELD", "a field is malformed"),
            Self::DocumentTooLarge => {
                Told::invalid("DOCUMENT_TOO_LARGE", "the document is over its limit")
            }
            Self::Document(_, refusal) => {
                let code = refusal.code();
                Told::invalid(code.as_str(), code.meaning())
            }
            Self::InvalidIdempotencyKey => Told::invalid(
                "INVALID_IDEMPOTENCY_KEY",
                "an idempotency key is given once and has 1 to 255 visible ASCII characters",
            ),
            Self::IdempotencyConflict => Told::new(
                Code::AlreadyExists,
                "IDEMPOTENCY_CONFLICT",
                "the idempotency key was used for another request",
            ),
            Self::IdempotencyKeyTooOld => Told::new(
                Code::FailedPrecondition,
                "IDEMPOTENCY_KEY_TOO_OLD",
                "the idempotency key was used too long ago; send the request with a new one",
            ),
            Self::RequestNotFound => {
                Told::new(Code::NotFound, "REQUEST_NOT_FOUND", "no such request")
            }
            Self::RequestIdConflict => Told::new(
                Code::AlreadyExists,
                "REQUEST_ID_CONFLICT",
                "the request id belongs to another request",
            ),
            Self::InProgress(after) => Told::new(
                Code::Aborted,
                "REQUEST_IN_PROGRESS",
                "the same request is being decided",
            )
            .retry(after.unwrap_or(RETRY_AFTER)),
            Self::BundleNotFound => Told::new(Code::NotFound, "BUNDLE_NOT_FOUND", "no such bundle"),
            Self::BundleReplay => Told::new(
                Code::FailedPrecondition,
                "BUNDLE_REPLAY",
                "the bundle was handed out before",
            ),
            Self::BundleExpired => Told::new(
                Code::FailedPrecondition,
                "BUNDLE_EXPIRED",
                "the bundle is no longer valid",
            ),
            Self::BundleRevoked => Told::new(
                Code::FailedPrecondition,
                "BUNDLE_REVOKED",
                "the bundle has been revoked",
            ),
            Self::RedemptionInProgress(after) => Told::new(
                Code::Aborted,
                "REDEMPTION_IN_PROGRESS",
                "the bundle is being handed out",
            )
            .retry(after.unwrap_or(RETRY_AFTER)),
            Self::BundleNotRedeemed => Told::new(
                Code::FailedPrecondition,
                "BUNDLE_NOT_REDEEMED",
                "the bundle was not handed out",
            ),
            Self::ReceiptOutsideContract => Told::new(
                Code::PermissionDenied,
                "RECEIPT_OUTSIDE_CONTRACT",
                "the bundle's contract does not allow this receipt",
            ),
            Self::ReceiptReplayConflict => Told::new(
                Code::AlreadyExists,
                "RECEIPT_REPLAY_CONFLICT",
                "the bundle was consumed before",
            ),
            Self::ReceiptNotFound => {
                Told::new(Code::NotFound, "RECEIPT_NOT_FOUND", "no such receipt")
            }
            Self::ExchangeNotFound => {
                Told::new(Code::NotFound, "EXCHANGE_NOT_FOUND", "no such exchange")
            }
            Self::SubmitterMismatch => Told::new(
                Code::PermissionDenied,
                "SUBMITTER_MISMATCH",
                "the proposal names another submitter",
            ),
            Self::ExchangeExpired => Told::new(
                Code::FailedPrecondition,
                "EXCHANGE_EXPIRED",
                "the exchange is too long ago",
            ),
            Self::SubjectErased => Told::new(
                Code::FailedPrecondition,
                "SUBJECT_ERASED",
                "nothing is kept about the subject any more",
            ),
            Self::PolicyNotActive => Told::new(
                Code::FailedPrecondition,
                "POLICY_NOT_ACTIVE",
                "no policy is active to decide by",
            )
            .retry(RETRY_AFTER_OPERATOR),
            Self::RateLimited(after) => {
                Told::new(Code::ResourceExhausted, "RATE_LIMITED", "too many requests")
                    .retry(after.unwrap_or(RETRY_AFTER))
            }
            Self::Busy => Told::new(
                Code::Unavailable,
                "GATEWAY_BUSY",
                "too many calls at a time",
            )
            .retry(RETRY_AFTER),
            Self::ReceiptStoreUnavailable(_, after) => Told::new(
                Code::Unavailable,
                "RECEIPT_STORE_UNAVAILABLE",
                "no receipt can be written; repeat the call",
            )
            .retry(after.unwrap_or(RETRY_AFTER)),
            Self::PeerUnavailable(_, after) => unavailable(after.unwrap_or(RETRY_AFTER)),
            Self::NotServed(_) => unavailable(RETRY_AFTER_OPERATOR),
            Self::Store(StoreError::Unavailable(_) | StoreError::Contended) => {
                unavailable(RETRY_AFTER)
            }
            Self::DeadlineExceeded => Told::new(
                Code::DeadlineExceeded,
                "DEADLINE_EXCEEDED",
                "the call took longer than its deadline",
            )
            .retry(RETRY_AFTER),
            Self::BrokenContract(..)
            | Self::PeerFailed { .. }
            | Self::Store(StoreError::Corrupt)
            | Self::Internal => Told::new(Code::Internal, "INTERNAL", "internal error"),
        }
    }

    /// As gRPC callers are told.
    pub(crate) fn to_status(&self, correlation_id: Option<CorrelationId>) -> Status {
        let told = self.told();
        if let (Code::Internal, Some(correlation_id)) = (told.code, correlation_id) {
            return cl_host::status::internal(correlation_id);
        }
        let mut builder = StatusBuilder::new(told.code, told.reason, told.message);
        if let Some(after) = told.retry_after {
            builder = builder.retry_delay(after);
        }
        if let Some((field, rule)) = self.violation() {
            builder = builder.violation(field, rule, "the field violates a rule");
        }
        builder.build()
    }

    /// Which field is at fault, and the violated rule as a code.
    fn violation(&self) -> Option<(FieldPath, &'static str)> {
        if let Self::Field { field, rule } = self {
            return Some((FieldPath::new(field), rule));
        }
        let Self::Document(field, refusal) = self else {
            return None;
        };
        Some((path_of(field, refusal.place()?), refusal.code().as_str()))
    }

    /// Whether an operator has to look.
    pub(crate) const fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::BrokenContract(..) | Self::PeerFailed { .. } | Self::Store(_) | Self::Internal
        )
    }
}

fn told_of_caller(refused: Refused) -> Told {
    match refused {
        // One answer for all of them: what is wrong with a token is nobody's business.
        Refused::NoCredential | Refused::Token(_) => Told::new(
            Code::Unauthenticated,
            "CALLER_UNAUTHENTICATED",
            "a valid access token or client certificate is required",
        ),
        Refused::Scope(_) | Refused::Certificate => Told::new(
            Code::PermissionDenied,
            "CALLER_NOT_ALLOWED",
            "the credential does not allow this",
        ),
    }
}

fn told_of_binding(binding: Binding) -> Told {
    match binding {
        Binding::UnknownPath => Told::new(Code::NotFound, "NOT_FOUND", "nothing is here"),
        Binding::UnknownRpc => Told::new(Code::Unimplemented, "METHOD_UNKNOWN", "no such method"),
        Binding::Method(_) => Told::new(
            Code::Unimplemented,
            "METHOD_NOT_ALLOWED",
            "the resource does not take this method",
        ),
        Binding::VersionMissing => Told::invalid(
            "VERSION_REQUIRED",
            "the header Context-Layer-Version is required",
        ),
        Binding::VersionUnsupported => Told::invalid(
            "VERSION_UNSUPPORTED",
            "the protocol version is not one of those served",
        ),
        Binding::MediaType => Told::invalid(
            "MEDIA_TYPE_UNSUPPORTED",
            "bodies have the media type application/vnd.context-layer+json",
        ),
        Binding::NotAcceptable => Told::invalid(
            "NOT_ACCEPTABLE",
            "answers have the media type application/vnd.context-layer+json",
        ),
        Binding::UriTooLong => Told::invalid("URI_TOO_LONG", "the address is too long"),
        Binding::HeadersTooLarge => Told::invalid("HEADERS_TOO_LARGE", "the headers are too large"),
        Binding::CredentialInUrl => Told::invalid(
            "CREDENTIAL_IN_URL",
            "credentials must not stand in an address; take this one out of use",
        ),
        Binding::BodyIncomplete => {
            Told::invalid("BODY_INCOMPLETE", "the body did not arrive whole")
        }
    }
}

const fn unavailable(after: Duration) -> Told {
    Told::new(
        Code::Unavailable,
        "SERVICE_UNAVAILABLE",
        "a required service is unavailable; repeat the call",
    )
    .retry(after)
}

fn path_of(field: &'static str, place: &Place) -> FieldPath {
    let within = |path: FieldPath, step: &Step| match step {
        Step::Member(name) => path.field(name),
        Step::Index(index) => path.index(*index),
    };
    place.steps().iter().fold(FieldPath::new(field), within)
}
