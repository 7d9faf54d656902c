//! The bundle issuer, as the gateway needs it.

use std::time::Duration;

use cl_host::client::PeerChannel;
use cl_host::deadline::Deadline;
use cl_model::delivery::Delivery;
use cl_model::document::{MAX_DOCUMENT_BYTES, Signed};
use cl_model::envelope::MAX_ENVELOPE_BYTES;
use cl_model::key::Signature;
use cl_model::time::UnixTime;
use cl_model::urn::{BundleId, ReceiptId};
use cl_wire::bundle::v1 as wire;
use cl_wire::bundle::v1::bundle_service_client::BundleServiceClient;
use prost_types::Timestamp;
use tonic::{Code, Status};

use crate::auth::Caller;
use crate::error::{Error, Peer};
use crate::idempotency::{IdempotencyKey, OperationId};
use crate::peer::{document_refused, refused, within};

/// An answer holds an envelope and two documents at their limits.
const MAX_ANSWER_BYTES: usize = MAX_ENVELOPE_BYTES + 2 * MAX_DOCUMENT_BYTES + 64 * 1024;

/// The last second of the year 9999.
const LAST_SECOND: i64 = 253_402_300_799;

/// A bundle that was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redeemed {
    /// The bytes, as they were signed.
    pub delivery: Delivery,
    /// Whether the same key got them before.
    pub is_repeat: bool,
}

/// Where a bundle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleStanding {
    /// Its state.
    pub state: BundleState,
    /// When it ends.
    pub expires_at: UnixTime,
}

/// The states of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleState {
    /// Issued, and not handed out yet.
    Live,
    /// Handed out.
    Redeemed,
    /// Opened by its recipient.
    Consumed,
    /// Ended before its time.
    Revoked,
    /// Ended by its time.
    Expired,
}

impl BundleState {
    /// The state as the HTTP binding writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Redeemed => "redeemed",
            Self::Consumed => "consumed",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
        }
    }
}

/// The bundle issuer over gRPC.
///
/// **Idempotent:** a redemption may be repeated with the same key, also when its first answer was
/// lost; a receipt may always be.
#[derive(Clone, Debug)]
pub struct Bundles {
    client: BundleServiceClient<PeerChannel>,
}

impl Bundles {
    /// Calls the issuer over `channel`.
    pub fn new(channel: PeerChannel) -> Self {
        Self {
            client: BundleServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES),
        }
    }

    /// Has a bundle handed out to the caller.
    pub async fn redeem(
        &self,
        caller: &Caller,
        bundle: &BundleId,
        key: Option<&IdempotencyKey>,
        operation_id: &OperationId,
        deadline: Deadline,
    ) -> Result<Redeemed, Error> {
        let message = wire::RedeemBundleRequest {
            tenant: caller.tenant().as_str().to_owned(),
            bundle_ref: bundle.as_str().to_owned(),
            recipient: caller.principal().as_str().to_owned(),
            idempotency_key: key.map(|key| key.as_str().to_owned()),
            operation_id: operation_id.to_string(),
        };
        let call = within(message, deadline);
        let answer = self.client.clone().redeem_bundle(call).await;
        let answer = answer.map_err(|status| meant(&status))?.into_inner();
        let is_repeat = answer.repeated;
        let delivery = delivery(answer).ok_or(broken("delivery"))?;
        Ok(Redeemed {
            delivery,
            is_repeat,
        })
    }

    /// Reads where a bundle of the caller's stands.
    pub async fn check(
        &self,
        caller: &Caller,
        bundle: &BundleId,
        deadline: Deadline,
    ) -> Result<BundleStanding, Error> {
        let message = wire::CheckBundleRequest {
            tenant: caller.tenant().as_str().to_owned(),
            bundle_ref: bundle.as_str().to_owned(),
            recipient: caller.principal().as_str().to_owned(),
        };
        let call = within(message, deadline);
        let answer = self.client.clone().check_bundle(call).await;
        let answer = answer.map_err(|status| meant(&status))?.into_inner();
        Ok(BundleStanding {
            state: state(answer.state).ok_or(broken("state"))?,
            expires_at: time(answer.expires_at).ok_or(broken("expires_at"))?,
        })
    }

    /// Has the caller's canonical receipt about a bundle recorded, and tells its place in the log.
    pub async fn record(
        &self,
        caller: &Caller,
        bundle: &BundleId,
        receipt: &ReceiptId,
        bytes: Vec<u8>,
        deadline: Deadline,
    ) -> Result<u64, Error> {
        let message = wire::RecordConsumerReceiptRequest {
            tenant: caller.tenant().as_str().to_owned(),
            bundle_ref: bundle.as_str().to_owned(),
            recipient: caller.principal().as_str().to_owned(),
            receipt: bytes,
        };
        let call = within(message, deadline);
        let answer = self.client.clone().record_consumer_receipt(call).await;
        let answer = answer.map_err(|status| meant(&status))?.into_inner();
        if answer.receipt_ref != receipt.as_str() || answer.sequence == 0 {
            return Err(broken("entry"));
        }
        Ok(answer.sequence)
    }
}

const fn broken(what: &'static str) -> Error {
    Error::BrokenContract(Peer::BundleIssuer, what)
}

/// Checks an answer's form. What is signed in it is for the recipient to verify.
fn delivery(answer: wire::RedeemBundleResponse) -> Option<Delivery> {
    if !(1..=MAX_ENVELOPE_BYTES).contains(&answer.envelope.len()) {
        return None;
    }
    Some(Delivery {
        envelope: answer.envelope,
        scope: signed(answer.scope_statement, &answer.scope_signature)?,
        notes: signed(answer.notes, &answer.notes_signature)?,
    })
}

fn signed(document: Vec<u8>, signature: &[u8]) -> Option<Signed> {
    let signature = Signature::new(signature.try_into().ok()?);
    (1..=MAX_DOCUMENT_BYTES)
        .contains(&document.len())
        .then_some(Signed {
            document,
            signature,
        })
}

fn state(number: i32) -> Option<BundleState> {
    match wire::BundleState::try_from(number).ok()? {
        wire::BundleState::Unspecified => None,
        wire::BundleState::Live => Some(BundleState::Live),
        wire::BundleState::Redeemed => Some(BundleState::Redeemed),
        wire::BundleState::Consumed => Some(BundleState::Consumed),
        wire::BundleState::Revoked => Some(BundleState::Revoked),
        wire::BundleState::Expired => Some(BundleState::Expired),
    }
}

fn time(timestamp: Option<Timestamp>) -> Option<UnixTime> {
    let Timestamp { seconds, nanos } = timestamp?;
    let is_time = (0..=LAST_SECOND).contains(&seconds) && (0..1_000_000_000).contains(&nanos);
    is_time.then(|| UnixTime::from_milliseconds(seconds * 1000 + i64::from(nanos / 1_000_000)))
}

/// What the issuer's refusal means for the caller.
fn meant(status: &Status) -> Error {
    refused(Peer::BundleIssuer, status, known)
}

fn known(code: Code, reason: &str, after: Option<Duration>) -> Option<Error> {
    match (code, reason) {
        (Code::InvalidArgument, reason) => document_refused("receipt", reason),
        (Code::NotFound, "BUNDLE_NOT_FOUND") => Some(Error::BundleNotFound),
        (Code::PermissionDenied, "RECEIPT_OUTSIDE_CONTRACT") => Some(Error::ReceiptOutsideContract),
        (Code::FailedPrecondition, "BUNDLE_REPLAY") => Some(Error::BundleReplay),
        (Code::FailedPrecondition, "BUNDLE_EXPIRED") => Some(Error::BundleExpired),
        (Code::FailedPrecondition, "BUNDLE_REVOKED") => Some(Error::BundleRevoked),
        (Code::FailedPrecondition, "BUNDLE_NOT_REDEEMED") => Some(Error::BundleNotRedeemed),
        (Code::FailedPrecondition, "OPERATION_TOO_OLD") => Some(Error::IdempotencyKeyTooOld),
        (Code::AlreadyExists, "RECEIPT_REPLAY_CONFLICT") => Some(Error::ReceiptReplayConflict),
        (Code::Aborted, "REDEMPTION_IN_PROGRESS") => Some(Error::RedemptionInProgress(after)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cl_wire::status::status;

    use super::*;

    fn answered() -> wire::RedeemBundleResponse {
        wire::RedeemBundleResponse {
            envelope: b"{}".to_vec(),
            scope_statement: b"{}".to_vec(),
            scope_signature: vec![1; 64],
            notes: b"{}".to_vec(),
            notes_signature: vec![2; 64],
            repeated: false,
        }
    }

    #[test]
    fn deliveries_that_break_the_contract_are_faults() {
        assert!(delivery(answered()).is_some());
        let broken: [fn(&mut wire::RedeemBundleResponse); 8] = [
            |it| it.envelope.clear(),
            |it| it.envelope = vec![b' '; MAX_ENVELOPE_BYTES + 1],
            |it| it.scope_statement.clear(),
            |it| it.notes.clear(),
            |it| it.notes = vec![b' '; MAX_DOCUMENT_BYTES + 1],
            |it| it.scope_signature.clear(),
            |it| it.scope_signature.push(1),
            |it| it.notes_signature.truncate(63),
        ];
        for (index, breaks) in broken.into_iter().enumerate() {
            let mut answer = answered();
            breaks(&mut answer);
            assert!(delivery(answer).is_none(), "{index}");
        }
    }

    #[test]
    fn states_and_times_out_of_their_range_are_faults() {
        assert_eq!(state(0), None);
        assert_eq!(state(6), None);
        let at = |seconds, nanos| time(Some(Timestamp { seconds, nanos }));
        assert_eq!(at(1, 2_000_000), Some(UnixTime::from_milliseconds(1002)));
        assert_eq!(at(-1, 0), None);
        assert_eq!(at(LAST_SECOND + 1, 0), None);
        assert_eq!(at(1, -1), None);
        assert_eq!(at(1, 1_000_000_000), None);
        assert_eq!(time(None), None);
    }

    #[test]
    fn only_known_reasons_pass() {
        for (code, reason, told) in [
            (Code::InvalidArgument, "INVALID_RECEIPT", "INVALID_RECEIPT"),
            (
                Code::InvalidArgument,
                "DOCUMENT_TOO_LARGE",
                "DOCUMENT_TOO_LARGE",
            ),
            (Code::InvalidArgument, "INVALID_FIELD", "INTERNAL"),
            (Code::InvalidArgument, "SECRET_DETAIL", "INTERNAL"),
            (Code::NotFound, "BUNDLE_NOT_FOUND", "BUNDLE_NOT_FOUND"),
            (Code::NotFound, "OTHER", "INTERNAL"),
            (
                Code::PermissionDenied,
                "RECEIPT_OUTSIDE_CONTRACT",
                "RECEIPT_OUTSIDE_CONTRACT",
            ),
            (Code::PermissionDenied, "CALLER_NOT_ALLOWED", "INTERNAL"),
            (Code::FailedPrecondition, "BUNDLE_REPLAY", "BUNDLE_REPLAY"),
            (Code::FailedPrecondition, "BUNDLE_EXPIRED", "BUNDLE_EXPIRED"),
            (Code::FailedPrecondition, "BUNDLE_REVOKED", "BUNDLE_REVOKED"),
            (
                Code::FailedPrecondition,
                "BUNDLE_NOT_REDEEMED",
                "BUNDLE_NOT_REDEEMED",
            ),
            (
                Code::FailedPrecondition,
                "OPERATION_TOO_OLD",
                "IDEMPOTENCY_KEY_TOO_OLD",
            ),
            (Code::FailedPrecondition, "NO_CONTEXT_GRANTED", "INTERNAL"),
            (
                Code::AlreadyExists,
                "RECEIPT_REPLAY_CONFLICT",
                "RECEIPT_REPLAY_CONFLICT",
            ),
            (Code::AlreadyExists, "OPERATION_CONFLICT", "INTERNAL"),
            (
                Code::Aborted,
                "REDEMPTION_IN_PROGRESS",
                "REDEMPTION_IN_PROGRESS",
            ),
            (Code::Aborted, "ISSUE_IN_PROGRESS", "INTERNAL"),
            (Code::ResourceExhausted, "RATE_LIMITED", "RATE_LIMITED"),
            (
                Code::Unavailable,
                "RECEIPT_STORE_UNAVAILABLE",
                "RECEIPT_STORE_UNAVAILABLE",
            ),
            (Code::Unavailable, "SECRET_DETAIL", "SERVICE_UNAVAILABLE"),
            (Code::Unauthenticated, "CALLER_UNAUTHENTICATED", "INTERNAL"),
            (Code::DataLoss, "STORE_CORRUPT", "INTERNAL"),
            (Code::Internal, "INTERNAL", "INTERNAL"),
        ] {
            let error = meant(&status(code, reason, "the issuer's own words"));
            assert_eq!(error.told().reason, told, "{code:?} {reason}");
        }
    }
}
