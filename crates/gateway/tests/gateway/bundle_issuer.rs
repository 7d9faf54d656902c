//! A bundle issuer that keeps the contract of `BundleService` in memory: one delivery a bundle, one
//! consumption, receipts by content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use cl_model::canonical;
use cl_model::json::{self, Limits};
use cl_model::receipt;
use cl_wire::bundle::v1 as wire;
use cl_wire::bundle::v1::BundleState;
use cl_wire::bundle::v1::bundle_service_server::BundleService;
use prost_types::Timestamp;
use serde_json::json;
use tonic::{Code, Request, Response, Status};

use crate::documents::{DRAFT, PRINCIPAL, TENANT};
use crate::faults::{Faults, check_caller, check_operation_id, refusal};
use crate::receipt_store::FakeReceiptStore;

/// 2030-06-01T08:10:00.500Z.
pub(crate) const ENDS: Timestamp = Timestamp {
    seconds: 1_906_531_800,
    nanos: 500_000_000,
};

/// Clones share one issuer.
#[derive(Clone, Default)]
pub(crate) struct FakeIssuer {
    pub(crate) faults: Faults,
    bundles: Arc<Mutex<BTreeMap<String, Bundle>>>,
    redemptions: Arc<Mutex<Vec<wire::RedeemBundleRequest>>>,
    log: FakeReceiptStore,
}

struct Bundle {
    tenant: String,
    recipient: String,
    state: BundleState,
    /// The key and the operation that it was redeemed by.
    redeemed_by: Option<(Option<String>, String)>,
    receipts: Vec<Vec<u8>>,
}

impl FakeIssuer {
    /// An issuer that has receipts recorded in this log.
    pub(crate) fn new(log: FakeReceiptStore) -> Self {
        Self {
            log,
            ..Self::default()
        }
    }

    /// Issues a bundle for the ordinary principal.
    pub(crate) fn issue(&self, tail: &str) -> String {
        self.issue_for(tail, TENANT, PRINCIPAL)
    }

    pub(crate) fn issue_for(&self, tail: &str, tenant: &str, recipient: &str) -> String {
        let id = format!("urn:cl:bundle:{tail}");
        let bundle = Bundle {
            tenant: tenant.to_owned(),
            recipient: recipient.to_owned(),
            state: BundleState::Live,
            redeemed_by: None,
            receipts: Vec::new(),
        };
        self.bundles().insert(id.clone(), bundle);
        id
    }

    pub(crate) fn set(&self, id: &str, state: BundleState) {
        self.bundles().get_mut(id).unwrap().state = state;
    }

    pub(crate) fn state(&self, id: &str) -> BundleState {
        self.bundles()[id].state
    }

    /// Every redemption that arrived, in order.
    pub(crate) fn redemptions(&self) -> Vec<wire::RedeemBundleRequest> {
        self.redemptions.lock().unwrap().clone()
    }

    /// The bytes that a redemption of this bundle gets.
    pub(crate) fn delivery(id: &str) -> wire::RedeemBundleResponse {
        let envelope =
            json!({"authentication": {}, "bundle": {"id": id, "context": "canaryvalue"}});
        wire::RedeemBundleResponse {
            envelope: canonical::to_text(&envelope).into_bytes(),
            scope_statement: br#"{"scope":"canaryscope"}"#.to_vec(),
            scope_signature: vec![1; 64],
            notes: br#"{"notes":"canarynotes"}"#.to_vec(),
            notes_signature: vec![2; 64],
            repeated: false,
        }
    }

    fn bundles(&self) -> MutexGuard<'_, BTreeMap<String, Bundle>> {
        self.bundles.lock().unwrap()
    }
}

fn own<'a>(
    bundles: &'a mut BTreeMap<String, Bundle>,
    id: &str,
    tenant: &str,
    recipient: &str,
) -> Result<&'a mut Bundle, Status> {
    check_caller(tenant, recipient)?;
    bundles
        .get_mut(id)
        .filter(|bundle| bundle.tenant == tenant && bundle.recipient == recipient)
        .ok_or_else(|| refusal(Code::NotFound, "BUNDLE_NOT_FOUND"))
}

#[tonic::async_trait]
impl BundleService for FakeIssuer {
    async fn redeem_bundle(
        &self,
        request: Request<wire::RedeemBundleRequest>,
    ) -> Result<Response<wire::RedeemBundleResponse>, Status> {
        let message = request.get_ref().clone();
        self.redemptions.lock().unwrap().push(message.clone());
        self.faults.before(&request)?;
        check_operation_id(&message.operation_id)?;
        let mut bundles = self.bundles();
        let (tenant, recipient) = (&message.tenant, &message.recipient);
        let bundle = own(&mut bundles, &message.bundle_ref, tenant, recipient)?;
        let by = (message.idempotency_key, message.operation_id);
        let repeated = match bundle.state {
            BundleState::Live => false,
            BundleState::Redeemed if by.0.is_some() && bundle.redeemed_by == Some(by.clone()) => {
                true
            }
            BundleState::Redeemed | BundleState::Consumed => {
                return Err(refusal(Code::FailedPrecondition, "BUNDLE_REPLAY"));
            }
            BundleState::Revoked => {
                return Err(refusal(Code::FailedPrecondition, "BUNDLE_REVOKED"));
            }
            BundleState::Expired => {
                return Err(refusal(Code::FailedPrecondition, "BUNDLE_EXPIRED"));
            }
            BundleState::Unspecified => panic!("not a state"),
        };
        bundle.state = BundleState::Redeemed;
        bundle.redeemed_by = Some(by);
        self.faults.after()?;
        Ok(Response::new(wire::RedeemBundleResponse {
            repeated,
            ..Self::delivery(&message.bundle_ref)
        }))
    }

    async fn check_bundle(
        &self,
        request: Request<wire::CheckBundleRequest>,
    ) -> Result<Response<wire::CheckBundleResponse>, Status> {
        self.faults.before(&request)?;
        let message = request.into_inner();
        let mut bundles = self.bundles();
        let (tenant, recipient) = (&message.tenant, &message.recipient);
        let bundle = own(&mut bundles, &message.bundle_ref, tenant, recipient)?;
        Ok(Response::new(wire::CheckBundleResponse {
            state: bundle.state.into(),
            expires_at: Some(ENDS),
        }))
    }

    async fn record_consumer_receipt(
        &self,
        request: Request<wire::RecordConsumerReceiptRequest>,
    ) -> Result<Response<wire::RecordConsumerReceiptResponse>, Status> {
        self.faults.before(&request)?;
        let message = request.into_inner();
        let mut bundles = self.bundles();
        let (tenant, recipient) = (&message.tenant, &message.recipient);
        let bundle = own(&mut bundles, &message.bundle_ref, tenant, recipient)?;
        let value = json::parse(&message.receipt, Limits::network(65_536)).unwrap();
        assert_eq!(
            canonical::to_text(&value).as_bytes(),
            message.receipt,
            "only canonical bytes arrive"
        );
        let receipt = receipt::check(&value).unwrap();
        let operation = receipt.operation.as_str();
        let about = receipt.bundle_ref.get().map(|id| id.as_str());
        let is_allowed = receipt.actor.as_str() == recipient
            && about == Some(message.bundle_ref.as_str())
            && [receipt::BUNDLE_CONSUME, DRAFT].contains(&operation);
        if !is_allowed {
            return Err(refusal(Code::PermissionDenied, "RECEIPT_OUTSIDE_CONTRACT"));
        }
        if bundle.redeemed_by.is_none() {
            return Err(refusal(Code::FailedPrecondition, "BUNDLE_NOT_REDEEMED"));
        }
        if !bundle.receipts.contains(&message.receipt) {
            if receipt::consumption(&receipt).is_some() {
                if bundle.state == BundleState::Consumed {
                    return Err(refusal(Code::AlreadyExists, "RECEIPT_REPLAY_CONFLICT"));
                }
                bundle.state = BundleState::Consumed;
            }
            bundle.receipts.push(message.receipt.clone());
        }
        let sequence = self.log.append(tenant, &message.receipt);
        self.faults.after()?;
        Ok(Response::new(wire::RecordConsumerReceiptResponse {
            receipt_ref: receipt.id.as_str().to_owned(),
            sequence,
        }))
    }

    async fn issue_bundle(
        &self,
        _: Request<wire::IssueBundleRequest>,
    ) -> Result<Response<wire::IssueBundleResponse>, Status> {
        Err(refusal(Code::PermissionDenied, "CALLER_NOT_ALLOWED"))
    }

    async fn revoke_bundles(
        &self,
        _: Request<wire::RevokeBundlesRequest>,
    ) -> Result<Response<wire::RevokeBundlesResponse>, Status> {
        Err(refusal(Code::PermissionDenied, "CALLER_NOT_ALLOWED"))
    }
}
