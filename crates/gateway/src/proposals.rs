//! The vault, as the gateway needs it: it takes proposals, and shows nothing.

use std::time::Duration;

use cl_host::client::PeerChannel;
use cl_host::deadline::Deadline;
use cl_model::document::MAX_DOCUMENT_BYTES;
use cl_model::json::{self, Limits};
use cl_model::object::{MemoryUpdateProposal, ProposalStatus, ProtocolObject};
use cl_model::urn::ProposalId;
use cl_wire::vault::v1 as wire;
use cl_wire::vault::v1::memory_service_client::MemoryServiceClient;
use tonic::{Code, Status};

use crate::auth::Caller;
use crate::error::{Error, Peer};
use crate::idempotency::OperationId;
use crate::peer::{document_refused, refused, within};

/// The longest proposal, in bytes.
pub const MAX_PROPOSAL_BYTES: usize = 256 * 1024;

/// A proposal as the vault keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct Proposed {
    /// Which one it is.
    pub proposal: ProposalId,
    /// How far it has come.
    pub status: ProposalStatus,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The vault over gRPC.
///
/// **Idempotent:** a proposal may be repeated with the same operation id, also when its first
/// answer was lost.
#[derive(Clone, Debug)]
pub struct Proposals {
    client: MemoryServiceClient<PeerChannel>,
}

impl Proposals {
    /// Calls the vault over `channel`.
    pub fn new(channel: PeerChannel) -> Self {
        Self {
            client: MemoryServiceClient::new(channel),
        }
    }

    /// Submits a canonical proposal of the caller's.
    pub async fn submit(
        &self,
        caller: &Caller,
        bytes: Vec<u8>,
        operation_id: &OperationId,
        deadline: Deadline,
    ) -> Result<Proposed, Error> {
        let message = wire::SubmitProposalRequest {
            tenant: caller.tenant().as_str().to_owned(),
            submitter: caller.principal().as_str().to_owned(),
            proposal: bytes,
            operation_id: operation_id.to_string(),
        };
        let call = within(message, deadline);
        let answer = self.client.clone().submit_proposal(call).await;
        let answer = answer.map_err(|status| meant(&status))?.into_inner();
        proposed(answer).ok_or(Error::BrokenContract(Peer::Vault, "proposal"))
    }
}

fn proposed(answer: wire::SubmitProposalResponse) -> Option<Proposed> {
    // What the vault adds may make it longer than what was submitted.
    let value = json::parse(&answer.proposal, Limits::network(MAX_DOCUMENT_BYTES)).ok()?;
    let proposal = MemoryUpdateProposal::read(&value).ok()?;
    (proposal.id.as_str() == answer.proposal_ref).then_some(Proposed {
        proposal: proposal.id,
        status: proposal.status,
        bytes: answer.proposal,
    })
}

/// What the vault's refusal means for the caller.
fn meant(status: &Status) -> Error {
    refused(Peer::Vault, status, known)
}

fn known(code: Code, reason: &str, _after: Option<Duration>) -> Option<Error> {
    match (code, reason) {
        (Code::InvalidArgument, reason) => document_refused("proposal", reason),
        (Code::NotFound, "EXCHANGE_NOT_FOUND") => Some(Error::ExchangeNotFound),
        (Code::PermissionDenied, "SUBMITTER_MISMATCH") => Some(Error::SubmitterMismatch),
        (Code::FailedPrecondition, "EXCHANGE_EXPIRED") => Some(Error::ExchangeExpired),
        (Code::FailedPrecondition, "SUBJECT_ERASED") => Some(Error::SubjectErased),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cl_wire::status::status;

    use super::*;

    #[test]
    fn only_known_reasons_pass() {
        for (code, reason, told) in [
            (
                Code::InvalidArgument,
                "INVALID_MEMORY_PROPOSAL",
                "INVALID_MEMORY_PROPOSAL",
            ),
            (
                Code::InvalidArgument,
                "DOCUMENT_TOO_LARGE",
                "DOCUMENT_TOO_LARGE",
            ),
            (Code::InvalidArgument, "INVALID_FIELD", "INTERNAL"),
            (Code::NotFound, "EXCHANGE_NOT_FOUND", "EXCHANGE_NOT_FOUND"),
            (Code::NotFound, "EVENT_NOT_FOUND", "INTERNAL"),
            (
                Code::PermissionDenied,
                "SUBMITTER_MISMATCH",
                "SUBMITTER_MISMATCH",
            ),
            (Code::PermissionDenied, "GRANT_EXPIRED", "INTERNAL"),
            (
                Code::FailedPrecondition,
                "EXCHANGE_EXPIRED",
                "EXCHANGE_EXPIRED",
            ),
            (Code::FailedPrecondition, "SUBJECT_ERASED", "SUBJECT_ERASED"),
            (Code::FailedPrecondition, "OTHER", "INTERNAL"),
            (
                Code::Unavailable,
                "RECEIPT_STORE_UNAVAILABLE",
                "RECEIPT_STORE_UNAVAILABLE",
            ),
            (
                Code::Unavailable,
                "SERVICE_UNAVAILABLE",
                "SERVICE_UNAVAILABLE",
            ),
            (Code::DataLoss, "STORE_CORRUPT", "INTERNAL"),
        ] {
            let error = meant(&status(code, reason, "the vault's own words"));
            assert_eq!(error.told().reason, told, "{code:?} {reason}");
        }
    }
}
