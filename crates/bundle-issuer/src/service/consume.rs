//! Receipts that recipients make.

use cl_model::document::InvalidBytes;
use cl_model::object::{Outcome, Receipt};
use cl_model::receipt::BUNDLE_CONSUME;
use cl_model::refusal::Code as RefusalCode;
use cl_model::urn::ReceiptId;
use cl_wire::receipt::v1::{ConsumerReceipt, LogEntry, Routing};
use cl_wire::unconfirmed::Unconfirmed;
use tonic::Code;

use super::{ATTEMPTS, BundleIssuer, BundleKey};
use crate::core::bundle::{Bundle, State};
use crate::error::Error;
use crate::store::{Change, StoreError, blocking};

/// A call with a recipient's receipt.
pub(crate) struct ConsumerReceiptCall {
    pub(crate) key: BundleKey,
    pub(crate) receipt: Receipt,
    pub(crate) receipt_bytes: Vec<u8>,
}

impl BundleIssuer {
    /// Has a recipient's receipt recorded.
    pub(crate) async fn record(&self, call: &ConsumerReceiptCall) -> Result<LogEntry, Error> {
        let stored = self.current(&call.key).await?;
        let bundle = &stored.bundle;
        if !bundle.was_handed_out() {
            return Err(Error::BundleNotRedeemed);
        }
        if !is_within_contract(&call.receipt, bundle) {
            return Err(Error::ReceiptOutsideContract);
        }
        let entry = self.append(call, bundle).await?;
        if consumes(&call.receipt) {
            self.consumed(&call.key).await?;
        }
        self.count("record", "recorded");
        Ok(entry)
    }

    async fn append(&self, call: &ConsumerReceiptCall, bundle: &Bundle) -> Result<LogEntry, Error> {
        let receipt = &call.receipt;
        let id = receipt.id.as_str().strip_prefix(ReceiptId::PREFIX);
        let id = id.ok_or(Error::Internal)?;
        let routing = Routing {
            tenant: bundle.tenant.as_str().to_owned(),
            operation_id: format!("urn:cl:operation:{id}"),
            subject_tag: Some(bundle.subject_tag.clone()),
        };
        let consumers = ConsumerReceipt {
            receipt: call.receipt_bytes.clone(),
            recipient: bundle.recipient.as_str().to_owned(),
        };
        let answer = self.receipts.append_consumers(routing, consumers).await;
        answer.map_err(|refused| refusal(&refused))
    }

    /// Stores that a bundle was opened: nobody gets its content again.
    async fn consumed(&self, key: &BundleKey) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let read = self.current(key).await?;
            if read.bundle.state != State::Redeemed {
                return Ok(());
            }
            let next = read
                .bundle
                .turned(State::Consumed, &self.times, self.time.read().now);
            let stored = blocking(&self.store, move |store| {
                store.change(&Change {
                    read: &read,
                    next: &next,
                    wipes: true,
                    announces: None,
                    settles: None,
                })
            });
            match stored.await {
                Err(StoreError::Conflict) => {}
                result => return Ok(result?),
            }
        }
        Err(StoreError::Conflict.into())
    }
}

fn consumes(receipt: &Receipt) -> bool {
    receipt.operation.as_str() == BUNDLE_CONSUME && receipt.outcome == Outcome::Success
}

/// Whether a receipt is the recipient's, about this bundle, and one that its contract names.
fn is_within_contract(receipt: &Receipt, bundle: &Bundle) -> bool {
    receipt.actor == bundle.recipient
        && receipt.subject_ref == bundle.alias
        && receipt.bundle_ref.get() == Some(&bundle.id)
        && receipt.decision_ref.get() == Some(&bundle.decision)
        && receipt.request_ref.get() == Some(&bundle.request)
        && receipt
            .policy_snapshot
            .get()
            .is_none_or(|policy| *policy == bundle.policy)
        && bundle.operations.contains(&receipt.operation)
}

fn refusal(refused: &Unconfirmed) -> Error {
    let reason = refused.reason.as_deref().unwrap_or_default();
    tracing::warn!(code = ?refused.code, reason, "consumer's receipt not confirmed");
    if refused.code == Code::AlreadyExists && reason == "RECEIPT_REPLAY_CONFLICT" {
        return Error::ReceiptReplayConflict;
    }
    let known = |code: &&RefusalCode| code.as_str() == reason;
    match RefusalCode::ALL.iter().find(known) {
        // The store's rules for receipts are the same, but for what only it can know.
        Some(code) if refused.code == Code::InvalidArgument => {
            Error::Receipt(InvalidBytes::Refused((*code).into()))
        }
        Some(_) | None => Error::ReceiptStoreUnavailable,
    }
}
