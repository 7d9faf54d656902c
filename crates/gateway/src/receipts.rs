//! The receipt store, as the gateway needs it.

use std::time::Duration;

use cl_host::client::PeerChannel;
use cl_host::deadline::Deadline;
use cl_model::json::{self, Limits};
use cl_model::object::{ProtocolObject, Receipt};
use cl_model::scalar::Reference;
use cl_model::urn::ReceiptId;
use cl_wire::receipt::v1 as wire;
use cl_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use tonic::{Code, Status};

use crate::auth::TenantName;
use crate::error::{Error, Peer};
use crate::peer::{refused, within};

/// The longest receipt, in bytes.
pub const MAX_RECEIPT_BYTES: usize = 64 * 1024;

/// A receipt as it was recorded.
#[derive(Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Who is said to have acted.
    pub actor: Reference,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its place in the log.
    pub sequence: u64,
}

/// The receipt store over gRPC, for reading only.
#[derive(Clone, Debug)]
pub struct Receipts {
    client: ReceiptServiceClient<PeerChannel>,
}

impl Receipts {
    /// Calls the store over `channel`.
    pub fn new(channel: PeerChannel) -> Self {
        Self {
            client: ReceiptServiceClient::new(channel),
        }
    }

    /// Reads a receipt of a tenant with this actor; the store shows the gateway no other.
    pub async fn read(
        &self,
        tenant: &TenantName,
        receipt: &ReceiptId,
        actor: &Reference,
        deadline: Deadline,
    ) -> Result<Recorded, Error> {
        let message = wire::GetReceiptRequest {
            tenant: tenant.as_str().to_owned(),
            receipt_ref: receipt.as_str().to_owned(),
            actor: Some(actor.as_str().to_owned()),
        };
        let call = within(message, deadline);
        let answer = self.client.clone().get_receipt(call).await;
        let answer = answer.map_err(|status| meant(&status))?.into_inner();
        recorded(answer.receipt, tenant, receipt)
            .ok_or(Error::BrokenContract(Peer::ReceiptStore, "receipt"))
    }
}

/// Checks an answer: the receipt that was asked for, of this tenant.
fn recorded(
    answer: Option<wire::RecordedReceipt>,
    tenant: &TenantName,
    asked: &ReceiptId,
) -> Option<Recorded> {
    let answer = answer?;
    let sequence = answer.entry?.sequence;
    let value = json::parse(&answer.receipt, Limits::network(MAX_RECEIPT_BYTES)).ok()?;
    let receipt = Receipt::read(&value).ok()?;
    let is_asked =
        receipt.id == *asked && answer.routing?.tenant == tenant.as_str() && sequence > 0;
    is_asked.then_some(Recorded {
        actor: receipt.actor,
        bytes: answer.receipt,
        sequence,
    })
}

/// What the store's refusal means for the caller.
fn meant(status: &Status) -> Error {
    refused(Peer::ReceiptStore, status, known)
}

fn known(code: Code, reason: &str, _after: Option<Duration>) -> Option<Error> {
    match (code, reason) {
        (Code::NotFound, "RECEIPT_NOT_FOUND" | "RECEIPT_ERASED") => Some(Error::ReceiptNotFound),
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
            (Code::NotFound, "RECEIPT_NOT_FOUND", "RECEIPT_NOT_FOUND"),
            (Code::NotFound, "RECEIPT_ERASED", "RECEIPT_NOT_FOUND"),
            (Code::NotFound, "INTENT_NOT_FOUND", "INTERNAL"),
            (Code::InvalidArgument, "INVALID_FIELD", "INTERNAL"),
            (Code::InvalidArgument, "INVALID_RECEIPT", "INTERNAL"),
            (Code::ResourceExhausted, "RATE_LIMITED", "RATE_LIMITED"),
            // Nothing was to be written, so the caller is not told that nothing could be.
            (
                Code::Unavailable,
                "RECEIPT_STORE_UNAVAILABLE",
                "SERVICE_UNAVAILABLE",
            ),
            (Code::DataLoss, "STORE_CORRUPT", "INTERNAL"),
        ] {
            let error = meant(&status(code, reason, "the store's own words"));
            assert_eq!(error.told().reason, told, "{code:?} {reason}");
        }
    }
}
