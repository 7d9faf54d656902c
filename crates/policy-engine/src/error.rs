//! Why a call failed, and what its caller is told.

use std::time::Duration;

use cl_host::telemetry::CorrelationId;
use cl_policy_cedar::{InvalidPolicies, Place};
use cl_wire::field_path::FieldPath;
use cl_wire::status::{self, StatusBuilder, invalid_document, invalid_field, status};
use tonic::{Code, Status};

use crate::core::answer::Unfit;
use crate::core::request::{InvalidBytes, UnreadSnapshot};
use crate::signers::Unsigned;
use crate::store::StoreError;

/// When a call that met something passing is worth a repeat.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a call failed. Nothing in it repeats what the caller sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A typed field is malformed.
    #[error("{field}: {rule}")]
    Field {
        /// The field.
        field: FieldPath,
        /// The violated rule, as a code.
        rule: &'static str,
    },
    /// A document violates a rule.
    #[error("{member}: {cause}")]
    Document {
        /// The field that holds the document.
        member: &'static str,
        /// What is wrong with it.
        cause: InvalidBytes,
    },
    /// The policies of a snapshot are not accepted. Their names are the operator's own.
    #[error("{0}")]
    Policies(InvalidPolicies),
    /// The principal has no such request.
    #[error("no such request")]
    RequestNotFound,
    /// The tenant has no such snapshot.
    #[error("no such snapshot")]
    SnapshotNotFound,
    /// The tenant has no such decision.
    #[error("no such decision")]
    DecisionNotFound,
    /// The subject has delegated nothing to the requester.
    #[error("no such delegation")]
    DelegationNotFound,
    /// The requester has no anomaly state.
    #[error("no such anomaly state")]
    AnomalyNotFound,
    /// There is no such approval, or not for this person.
    #[error("no such approval")]
    ApprovalNotFound,
    /// The tenant has no such credential.
    #[error("no such credential")]
    CredentialNotFound,
    /// The credential is known already.
    #[error("the credential exists")]
    CredentialExists,
    /// The session ended, or never was.
    #[error("no such session")]
    SessionNotOpen,
    /// The challenge is used up, ended, or never was.
    #[error("no such ceremony")]
    CeremonyNotOpen,
    /// The one-time link is used up, ended, or never was.
    #[error("no such link")]
    LinkNotOpen,
    /// A person's answer, or sign-in, does not count.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// Too many answers of the person were refused of late.
    #[error("too many refused answers")]
    TooManyRefused(Duration),
    /// The credential has another fingerprint.
    #[error("another fingerprint")]
    FingerprintMismatch,
    /// The decision grants nothing, or not any more.
    #[error("nothing to revoke")]
    GrantNotActive,
    /// Too many calls follow requests.
    #[error("too many watchers")]
    TooManyWatchers,
    /// The request id belongs to another request.
    #[error("the request id is in use")]
    RequestIdConflict,
    /// The operation id was used with other content.
    #[error("the operation id is in use")]
    OperationConflict,
    /// The operation id is so old that nobody knows any more what it was used for.
    #[error("the operation id is too old")]
    OperationTooOld,
    /// Other bytes carry the same snapshot version.
    #[error("the snapshot version is in use")]
    SnapshotVersionConflict,
    /// Somebody else was first, again and again.
    #[error("others change the same state")]
    InProgress,
    /// The active snapshot is another one than expected.
    #[error("another snapshot is active")]
    SnapshotNotCurrent,
    /// The tenant has no active snapshot.
    #[error("no snapshot is active")]
    PolicyNotActive,
    /// The snapshot can no longer be used.
    #[error("the snapshot has expired")]
    SnapshotExpired,
    /// Snapshots have to be signed, and this one is not, or not by whom it has to.
    #[error(transparent)]
    Unsigned(Unsigned),
    /// What the decision was made from is not kept any more.
    #[error("the decision's inputs are gone")]
    DecisionInputsGone,
    /// The receipt store does not take a receipt; nothing was stored.
    #[error("the receipt store is unavailable")]
    ReceiptStoreUnavailable,
    /// Everything is stored, but its receipt is not durable yet.
    #[error("the operation's receipt is not durable yet")]
    Unsettled,
    /// The engine's own store is in trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something broke inside.
    #[error("internal")]
    Internal,
}

impl Error {
    /// A document in a field that violates a rule.
    pub(crate) fn document(member: &'static str) -> impl Fn(InvalidBytes) -> Self {
        move |cause| Self::Document { member, cause }
    }

    /// A snapshot that is not accepted.
    pub(crate) fn snapshot(unread: UnreadSnapshot) -> Self {
        match unread {
            UnreadSnapshot::Bytes(cause) => Self::document("snapshot")(cause),
            UnreadSnapshot::Policies(invalid) => Self::Policies(invalid),
        }
    }

    /// The one conversion to what a caller sees.
    pub(crate) fn to_status(&self, correlation_id: Option<CorrelationId>) -> Status {
        match self {
            Self::Field { field, rule } => invalid_field("INVALID_FIELD", field.clone(), rule),
            Self::Document { member, cause } => invalid_document(member, cause),
            Self::Policies(invalid) => invalid_policies(invalid),
            Self::RequestNotFound => status(Code::NotFound, "REQUEST_NOT_FOUND", "no such request"),
            Self::SnapshotNotFound => {
                status(Code::NotFound, "SNAPSHOT_NOT_FOUND", "no such snapshot")
            }
            Self::DecisionNotFound => {
                status(Code::NotFound, "DECISION_NOT_FOUND", "no such decision")
            }
            Self::DelegationNotFound => {
                status(Code::NotFound, "DELEGATION_NOT_FOUND", "no such delegation")
            }
            Self::AnomalyNotFound => {
                status(Code::NotFound, "ANOMALY_NOT_FOUND", "no such anomaly state")
            }
            Self::ApprovalNotFound => {
                status(Code::NotFound, "APPROVAL_NOT_FOUND", "no such approval")
            }
            Self::CredentialNotFound => {
                status(Code::NotFound, "CREDENTIAL_NOT_FOUND", "no such credential")
            }
            Self::CredentialExists => status(
                Code::AlreadyExists,
                "CREDENTIAL_EXISTS",
                "the credential is enrolled already",
            ),
            Self::SessionNotOpen => status(
                Code::Unauthenticated,
                "SESSION_NOT_OPEN",
                "the session is not open; sign in",
            ),
            Self::CeremonyNotOpen => status(
                Code::FailedPrecondition,
                "CEREMONY_NOT_OPEN",
                "the challenge is not open; begin again",
            ),
            Self::LinkNotOpen => status(
                Code::FailedPrecondition,
                "ENROLMENT_LINK_NOT_OPEN",
                "the link is not open; ask for another one",
            ),
            Self::Unfit(unfit) => unfit_status(*unfit),
            Self::GrantNotActive => status(
                Code::FailedPrecondition,
                "GRANT_NOT_ACTIVE",
                "the decision grants nothing that could be revoked",
            ),
            Self::TooManyRefused(wait) => status::retryable(
                Code::ResourceExhausted,
                "TOO_MANY_REFUSED_ANSWERS",
                "too many answers of the person were refused",
                *wait,
            ),
            Self::FingerprintMismatch => status(
                Code::FailedPrecondition,
                "FINGERPRINT_MISMATCH",
                "the passkey has another fingerprint; compare again, and revoke it if in doubt",
            ),
            Self::TooManyWatchers => retryable(
                Code::ResourceExhausted,
                "TOO_MANY_WATCHERS",
                "too many calls follow requests",
            ),
            Self::RequestIdConflict => status(
                Code::AlreadyExists,
                "REQUEST_ID_CONFLICT",
                "the request id belongs to another request",
            ),
            Self::OperationConflict => status(
                Code::AlreadyExists,
                "OPERATION_CONFLICT",
                "the operation id was used with other content",
            ),
            Self::OperationTooOld => status(
                Code::FailedPrecondition,
                "OPERATION_TOO_OLD",
                "the operation id is too old; call with a new one",
            ),
            Self::SnapshotVersionConflict => status(
                Code::AlreadyExists,
                "SNAPSHOT_VERSION_CONFLICT",
                "other bytes carry the same version",
            ),
            Self::InProgress => retryable(
                Code::Aborted,
                "REQUEST_IN_PROGRESS",
                "another call changes the same state",
            ),
            Self::SnapshotNotCurrent => status(
                Code::Aborted,
                "SNAPSHOT_NOT_CURRENT",
                "the active snapshot is not the expected one",
            ),
            Self::PolicyNotActive => status(
                Code::FailedPrecondition,
                "POLICY_NOT_ACTIVE",
                "the tenant has no active policy snapshot",
            ),
            Self::SnapshotExpired => status(
                Code::FailedPrecondition,
                "SNAPSHOT_EXPIRED",
                "the snapshot has expired",
            ),
            Self::Unsigned(unsigned) => unsigned_status(*unsigned),
            Self::DecisionInputsGone => status(
                Code::FailedPrecondition,
                "DECISION_INPUTS_GONE",
                "the inputs of the decision are gone",
            ),
            Self::ReceiptStoreUnavailable => retryable(
                Code::Unavailable,
                "RECEIPT_STORE_UNAVAILABLE",
                "no receipt can be written; nothing was stored",
            ),
            Self::Unsettled | Self::Store(StoreError::Unavailable(_)) => retryable(
                Code::Unavailable,
                "SERVICE_UNAVAILABLE",
                "the operation is not settled; repeat the call",
            ),
            Self::Store(StoreError::Conflict) => retryable(
                Code::Aborted,
                "REQUEST_IN_PROGRESS",
                "another call changes the same state",
            ),
            Self::Store(StoreError::Corrupt) => status(
                Code::DataLoss,
                "STORE_CORRUPT",
                "a stored record does not verify",
            ),
            Self::Store(StoreError::Panicked) | Self::Internal => correlation_id.map_or_else(
                || status(Code::Internal, "INTERNAL", "internal error"),
                cl_host::status::internal,
            ),
        }
    }

    /// Whether an operator has to look.
    pub(crate) const fn is_fault(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Internal)
    }
}

fn unsigned_status(unsigned: Unsigned) -> Status {
    let (code, reason, message) = match unsigned {
        Unsigned::Missing => (
            Code::FailedPrecondition,
            "SNAPSHOT_UNSIGNED",
            "policy snapshots have to be signed",
        ),
        Unsigned::Signer => (
            Code::PermissionDenied,
            "SNAPSHOT_SIGNER_UNTRUSTED",
            "the key that signed the snapshot is not trusted",
        ),
        Unsigned::Signature => (
            Code::PermissionDenied,
            "SNAPSHOT_SIGNATURE_INVALID",
            "the snapshot's signature does not verify",
        ),
    };
    status(code, reason, message)
}

fn unfit_status(unfit: Unfit) -> Status {
    let (code, message) = match unfit {
        Unfit::Changed | Unfit::PolicyChanged => {
            (Code::Aborted, "the item has changed; show it anew")
        }
        Unfit::Expired | Unfit::Answered | Unfit::NotNeeded => (
            Code::FailedPrecondition,
            "the item takes no answer any more",
        ),
        Unfit::ScopeIncomplete => (
            Code::FailedPrecondition,
            "granted and declined scope together are not the gated scope",
        ),
        Unfit::RequesterGone | Unfit::ApproverNotAllowed => (
            Code::PermissionDenied,
            "the policy does not allow the answer",
        ),
        Unfit::CredentialUnknown
        | Unfit::CredentialOfAnother
        | Unfit::CredentialInactive
        | Unfit::CredentialRevoked
        | Unfit::PossibleClone => (Code::PermissionDenied, "the passkey does not count"),
        Unfit::Passkey(_) => (Code::PermissionDenied, "the passkey's answer does not hold"),
    };
    status(code, unfit.as_str(), message)
}

/// Names each policy that is not accepted, and what kind of mistake it is; never its text.
fn invalid_policies(invalid: &InvalidPolicies) -> Status {
    let refused = StatusBuilder::new(
        Code::InvalidArgument,
        "INVALID_POLICY",
        "policies of the snapshot are not accepted",
    );
    let cedar = || FieldPath::new("snapshot").field("cedar");
    let findings = invalid.findings.iter();
    findings
        .fold(refused, |refused, finding| {
            let field = match &finding.place {
                Place::Policy(name) => cedar().field("policies").entry(name),
                Place::Entity(index) => cedar().field("entities").index(*index),
                Place::Entities => cedar().field("entities"),
            };
            refused.violation(field, finding.fault.code(), finding.fault.meaning())
        })
        .build()
}

fn retryable(code: Code, reason: &str, message: &'static str) -> Status {
    status::retryable(code, reason, message, RETRY_AFTER)
}
