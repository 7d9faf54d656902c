//! Why a call was refused, and what the person is told: one table.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use tonic::{Code, Status};

/// When a call that met something passing is worth a repeat.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A service behind the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// It knows people, and decides.
    PolicyEngine,
    /// It keeps receipts.
    ReceiptStore,
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::PolicyEngine => "the policy engine",
            Self::ReceiptStore => "the receipt store",
        })
    }
}

/// Why a call was refused. Nothing in it repeats what a browser or a service sent.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is at the path.
    #[error("nothing is here")]
    NotFound,
    /// The path does not take this method; those that it takes.
    #[error("method")]
    Method(&'static str),
    /// The address is too long.
    #[error("the address is too long")]
    AddressTooLong,
    /// The body is not a form.
    #[error("not a form")]
    MediaType,
    /// The form is too large.
    #[error("the form is too large")]
    FormTooLarge,
    /// The form did not arrive whole.
    #[error("the form did not arrive whole")]
    FormIncomplete,
    /// A field of the form is missing, malformed, or there more than once.
    #[error("form: {0}")]
    Form(&'static str),
    /// Another page than the console's own sent the call.
    #[error("sent by another origin")]
    Origin,
    /// The form was given to another browser, or before a restart.
    #[error("the form is not of this session")]
    FormNotOurs,
    /// Nobody is signed in.
    #[error("nobody is signed in")]
    SignedOut,
    /// Too many calls run.
    #[error("too many calls")]
    Busy,
    /// Too many tries.
    #[error("too many tries")]
    RateLimited(Duration),
    /// A service refused, for a reason that its contract names.
    #[error("refused: {}", .0.reason)]
    Refused(&'static Reason),
    /// A service cannot be reached.
    #[error("{0} is unavailable")]
    PeerUnavailable(Peer),
    /// This part is not served here.
    #[error("{0} is not configured")]
    NotServed(Peer),
    /// A service was too slow.
    #[error("too late")]
    DeadlineExceeded,
    /// A service broke its contract.
    #[error("{0} broke its contract: {1}")]
    BrokenContract(Peer, &'static str),
    /// A service failed, or refused for a reason that its contract does not name.
    #[error("{peer} failed: {code:?} {reason:?}")]
    PeerFailed {
        /// The service.
        peer: Peer,
        /// Its code.
        code: Code,
        /// Its reason, a code by its form.
        reason: Option<String>,
    },
    /// Something broke inside.
    #[error("internal")]
    Internal,
}

/// What is told of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The status of the answer.
    pub status: StatusCode,
    /// A stable code.
    pub code: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// What it means, and what to do.
    pub text: &'static str,
    /// When a repeat is worthwhile.
    pub retry_after: Option<Duration>,
}

/// A reason that a service's contract names.
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    code: Code,
    /// The stable code.
    pub reason: &'static str,
    status: StatusCode,
    title: &'static str,
    text: &'static str,
}

const fn reason(
    code: Code,
    reason: &'static str,
    status: StatusCode,
    title: &'static str,
    text: &'static str,
) -> Reason {
    Reason {
        code,
        reason,
        status,
        title,
        text,
    }
}

const NOT_VERIFIED: &str = "Your passkey was not accepted";
const TRY_ANEW: &str = "Nothing was changed. Go back and try again with your passkey.";
const SAFELY_REFUSED: &str = "Nothing was changed. What your browser sent does not fit this console. \
     If this happens again, tell your operator the code.";
const ASK_OPERATOR: &str = "Nothing was changed. Ask your operator about this passkey.";
const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const GONE: StatusCode = StatusCode::GONE;
const MISSING: StatusCode = StatusCode::NOT_FOUND;

/// Every reason that the contracts of the engine and the receipt store name for the console's calls.
#[rustfmt::skip]
static REASONS: [Reason; 39] = [
    reason(Code::Unauthenticated, "SESSION_NOT_OPEN", StatusCode::UNAUTHORIZED, "You are signed out", "Your session ended. Sign in again; nothing was changed."),
    reason(Code::FailedPrecondition, "CEREMONY_NOT_OPEN", CONFLICT, "That took too long", "The confirmation was used already or is older than five minutes. Nothing was changed. Go back and begin again."),
    reason(Code::PermissionDenied, "ASSERTION_MALFORMED", FORBIDDEN, NOT_VERIFIED, SAFELY_REFUSED),
    reason(Code::PermissionDenied, "ASSERTION_TYPE", FORBIDDEN, NOT_VERIFIED, SAFELY_REFUSED),
    reason(Code::PermissionDenied, "ASSERTION_CHALLENGE", FORBIDDEN, NOT_VERIFIED, TRY_ANEW),
    reason(Code::PermissionDenied, "ASSERTION_ORIGIN", FORBIDDEN, NOT_VERIFIED, SAFELY_REFUSED),
    reason(Code::PermissionDenied, "ASSERTION_CROSS_ORIGIN", FORBIDDEN, NOT_VERIFIED, SAFELY_REFUSED),
    reason(Code::PermissionDenied, "ASSERTION_RP_ID", FORBIDDEN, NOT_VERIFIED, SAFELY_REFUSED),
    reason(Code::PermissionDenied, "ASSERTION_USER_ABSENT", FORBIDDEN, NOT_VERIFIED, TRY_ANEW),
    reason(Code::PermissionDenied, "ASSERTION_USER_UNVERIFIED", FORBIDDEN, NOT_VERIFIED, "Nothing was changed. Your passkey has to check that it is you: by a PIN, a fingerprint or your face."),
    reason(Code::PermissionDenied, "ASSERTION_BACKUP_STATE", FORBIDDEN, NOT_VERIFIED, ASK_OPERATOR),
    reason(Code::PermissionDenied, "ASSERTION_SIGNATURE", FORBIDDEN, NOT_VERIFIED, TRY_ANEW),
    reason(Code::PermissionDenied, "ASSERTION_KEY_UNSUPPORTED", FORBIDDEN, NOT_VERIFIED, "Nothing was changed. This kind of passkey is not supported."),
    reason(Code::PermissionDenied, "CREDENTIAL_POSSIBLE_CLONE", FORBIDDEN, "This passkey may have been copied", "Its counter went backwards, which a copy would explain. Nothing was changed. Tell your operator."),
    reason(Code::PermissionDenied, "CREDENTIAL_UNKNOWN", FORBIDDEN, "This passkey is not known here", "Enrol it by a link from your operator first."),
    reason(Code::PermissionDenied, "CREDENTIAL_INACTIVE", FORBIDDEN, "This passkey is not confirmed yet", "Your operator has to confirm it first. Read its fingerprint to them."),
    reason(Code::PermissionDenied, "CREDENTIAL_REVOKED", FORBIDDEN, "This passkey was revoked", ASK_OPERATOR),
    reason(Code::PermissionDenied, "CREDENTIAL_OF_ANOTHER", FORBIDDEN, "This is somebody else's passkey", "Nothing was changed. Confirm with a passkey of the person who is signed in."),
    reason(Code::FailedPrecondition, "ENROLMENT_LINK_NOT_OPEN", GONE, "This link is not open", "It was used already, or its time is over. Ask your operator for another one."),
    reason(Code::AlreadyExists, "CREDENTIAL_EXISTS", CONFLICT, "This passkey is enrolled already", "Sign in with it, or enrol another one."),
    reason(Code::NotFound, "APPROVAL_NOT_FOUND", MISSING, "No such request", "It does not exist, or you may not answer it."),
    reason(Code::Aborted, "APPROVAL_CHANGED", CONFLICT, "The request has changed", "It is not the one that you were shown. Nothing was granted."),
    reason(Code::Aborted, "APPROVAL_POLICY_CHANGED", CONFLICT, "The policy has changed", "Another policy is active than the one that you were shown the request under. Nothing was granted."),
    reason(Code::FailedPrecondition, "APPROVAL_EXPIRED", GONE, "The request has expired", "Its time ran out before you answered. Nothing was granted."),
    reason(Code::FailedPrecondition, "APPROVAL_ANSWERED", CONFLICT, "The request was answered already", "Your answer was not needed any more, and changed nothing."),
    reason(Code::FailedPrecondition, "APPROVAL_SCOPE_INCOMPLETE", CONFLICT, "The answer does not cover the request", "Nothing was granted. Look at the request again."),
    reason(Code::FailedPrecondition, "APPROVAL_NOT_NEEDED", CONFLICT, "No answer is needed", "The policy that is active now decides this request by itself."),
    reason(Code::ResourceExhausted, "TOO_MANY_REFUSED_ANSWERS", StatusCode::TOO_MANY_REQUESTS, "Too many answers were refused", "Nothing was changed. Wait an hour, then try again; tell your operator if it was not you."),
    reason(Code::PermissionDenied, "APPROVAL_REQUESTER_GONE", FORBIDDEN, "The requester is gone", "The requester's client is not registered any more. Nothing was granted."),
    reason(Code::PermissionDenied, "APPROVER_NOT_ALLOWED", FORBIDDEN, "You may not answer this request", "The active policy does not name you for it. Nothing was granted."),
    reason(Code::FailedPrecondition, "POLICY_NOT_ACTIVE", CONFLICT, "No policy is active", "Until your operator activates one, nothing can be shown or answered."),
    reason(Code::AlreadyExists, "OPERATION_CONFLICT", CONFLICT, "This form was used already", "It was sent with something else before. Nothing was changed. Go back and begin again."),
    reason(Code::FailedPrecondition, "OPERATION_TOO_OLD", CONFLICT, "This form is too old", "Nothing was changed. Go back and begin again."),
    reason(Code::NotFound, "DECISION_NOT_FOUND", MISSING, "No such decision", "It does not exist, or it is about somebody whom you may not approve for."),
    reason(Code::FailedPrecondition, "GRANT_NOT_ACTIVE", CONFLICT, "There is no access to end", "The decision grants nothing, or not any more."),
    reason(Code::Aborted, "REQUEST_IN_PROGRESS", CONFLICT, "Something else is changing this request", "Nothing was changed by you. Wait a moment and look again."),
    reason(Code::NotFound, "RECEIPT_NOT_FOUND", MISSING, "No such receipt", "It does not exist, or it is about somebody whom you may not approve for."),
    reason(Code::ResourceExhausted, "RATE_LIMITED", StatusCode::TOO_MANY_REQUESTS, "Too many tries", "Wait a little, then try again."),
    reason(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE", StatusCode::SERVICE_UNAVAILABLE, "No evidence can be written now", "What you do here has to leave a receipt, and the receipt store is away. Nothing is reported as done. Try again."),
];

impl Error {
    /// The refusal with this code of ours.
    pub(crate) fn of_reason(reason: &str) -> Option<Self> {
        let mut reasons = REASONS.iter();
        reasons.find(|it| it.reason == reason).map(Self::Refused)
    }

    /// What a service's refusal means.
    pub(crate) fn of_status(peer: Peer, status: &Status) -> Self {
        let reason = cl_wire::status::reason(status);
        let named = reason.as_deref().and_then(|reason| {
            let mut reasons = REASONS.iter();
            reasons.find(|it| it.code == status.code() && it.reason == reason)
        });
        match (status.code(), named) {
            (_, Some(named)) => Self::Refused(named),
            (Code::Unavailable, None) => Self::PeerUnavailable(peer),
            (Code::DeadlineExceeded | Code::Cancelled, None) => Self::DeadlineExceeded,
            (code, None) => Self::PeerFailed { peer, code, reason },
        }
    }

    /// Whether it is this refusal of a service.
    pub(crate) fn is(&self, reason: &str) -> bool {
        matches!(self, Self::Refused(refused) if refused.reason == reason)
    }

    /// Whether the engine, or the console, says that nobody is signed in.
    pub(crate) fn is_signed_out(&self) -> bool {
        matches!(self, Self::SignedOut) || self.is("SESSION_NOT_OPEN")
    }

    /// Whether an operator has to look.
    pub(crate) const fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::BrokenContract(..) | Self::PeerFailed { .. } | Self::Internal
        )
    }

    /// What the person is told.
    pub fn told(&self) -> Told {
        let told = |status, code, title, text| Told {
            status,
            code,
            title,
            text,
            retry_after: None,
        };
        let later = |told: Told, after| Told {
            retry_after: Some(after),
            ..told
        };
        match self {
            Self::NotFound => told(
                MISSING,
                "NOT_FOUND",
                "Nothing is here",
                "The address leads nowhere.",
            ),
            Self::Method(_) => told(
                StatusCode::METHOD_NOT_ALLOWED,
                "METHOD_NOT_ALLOWED",
                "This address works another way",
                "Nothing was changed.",
            ),
            Self::AddressTooLong => told(
                StatusCode::URI_TOO_LONG,
                "ADDRESS_TOO_LONG",
                "The address is too long",
                "Nothing was changed.",
            ),
            Self::MediaType => told(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "MEDIA_TYPE_UNSUPPORTED",
                "This is not a form of the console",
                "Nothing was changed.",
            ),
            Self::FormTooLarge => told(
                StatusCode::PAYLOAD_TOO_LARGE,
                "FORM_TOO_LARGE",
                "The form is too large",
                "Nothing was changed.",
            ),
            Self::FormIncomplete => told(
                StatusCode::BAD_REQUEST,
                "FORM_INCOMPLETE",
                "The form did not arrive whole",
                "Nothing was changed. Try again.",
            ),
            Self::Form(_) => told(
                StatusCode::BAD_REQUEST,
                "FORM_INVALID",
                "The form is not complete",
                "Nothing was changed. Go back, reload the page and try again.",
            ),
            Self::Origin => told(
                FORBIDDEN,
                "ORIGIN_NOT_ALLOWED",
                "Another site sent this",
                "Only the console's own pages may send forms. Nothing was changed.",
            ),
            Self::FormNotOurs => told(
                FORBIDDEN,
                "FORM_NOT_OF_SESSION",
                "This form is out of date",
                "You signed in or out since it was opened, or the console was started again. \
                 Nothing was changed. Go back, reload the page and try again.",
            ),
            Self::SignedOut => told(
                StatusCode::UNAUTHORIZED,
                "SESSION_NOT_OPEN",
                "You are signed out",
                "Your session ended. Sign in again; nothing was changed.",
            ),
            Self::Busy => later(
                told(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "BUSY",
                    "The console is busy",
                    "Nothing was changed. Try again in a moment.",
                ),
                RETRY_AFTER,
            ),
            Self::RateLimited(after) => later(
                told(
                    StatusCode::TOO_MANY_REQUESTS,
                    "RATE_LIMITED",
                    "Too many tries",
                    "Wait a little, then try again.",
                ),
                *after,
            ),
            Self::Refused(refused) => {
                let told = told(refused.status, refused.reason, refused.title, refused.text);
                if matches!(refused.code, Code::Unavailable | Code::ResourceExhausted) {
                    later(told, RETRY_AFTER)
                } else {
                    told
                }
            }
            Self::PeerUnavailable(_) => later(
                told(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "SERVICE_UNAVAILABLE",
                    "A service is away",
                    "Something that the console needs cannot be reached. Whether anything was done \
                     is not known; look before you try again.",
                ),
                RETRY_AFTER,
            ),
            Self::NotServed(_) => told(
                StatusCode::SERVICE_UNAVAILABLE,
                "NOT_SERVED",
                "This part is not served here",
                "The deployment runs without it.",
            ),
            Self::DeadlineExceeded => later(
                told(
                    StatusCode::GATEWAY_TIMEOUT,
                    "DEADLINE_EXCEEDED",
                    "That took too long",
                    "Whether anything was done is not known; look before you try again.",
                ),
                RETRY_AFTER,
            ),
            Self::BrokenContract(..) | Self::PeerFailed { .. } | Self::Internal => told(
                StatusCode::INTERNAL_SERVER_ERROR,
                "INTERNAL",
                "Something went wrong",
                "Whether anything was done is not known; look before you try again. If this \
                 happens again, tell your operator the code.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cl_wire::status::status;

    use super::*;

    #[test]
    fn each_reason_is_told_under_its_own_code() {
        let codes: BTreeSet<_> = REASONS.iter().map(|it| it.reason).collect();
        assert_eq!(codes.len(), REASONS.len());
        for known in &REASONS {
            let refusal = status(known.code, known.reason, "the engine's own words");
            let told = Error::of_status(Peer::PolicyEngine, &refusal).told();
            assert_eq!(told.code, known.reason);
            assert!(told.status.is_client_error() || told.status.is_server_error());
        }
    }

    #[test]
    fn only_reasons_of_the_contract_pass() {
        for (code, reason, told) in [
            (Code::PermissionDenied, "CALLER_NOT_ALLOWED", "INTERNAL"),
            (Code::Unauthenticated, "CALLER_UNAUTHENTICATED", "INTERNAL"),
            (Code::InvalidArgument, "INVALID_FIELD", "INTERNAL"),
            (Code::NotFound, "APPROVAL_EXPIRED", "INTERNAL"),
            (Code::DataLoss, "STORE_CORRUPT", "INTERNAL"),
            (Code::Unavailable, "SECRET_DETAIL", "SERVICE_UNAVAILABLE"),
            (Code::DeadlineExceeded, "OTHER", "DEADLINE_EXCEEDED"),
        ] {
            let refusal = status(code, reason, "the engine's own words");
            let error = Error::of_status(Peer::PolicyEngine, &refusal);
            assert_eq!(error.told().code, told, "{code:?} {reason}");
        }
    }
}
