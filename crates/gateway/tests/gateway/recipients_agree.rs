//! That recipients get the same through both doors.

use cl_host::client::PeerChannel;
use cl_model::receipt::BUNDLE_CONSUME;
use cl_testbed::within;
use cl_wire::bundle::v1::BundleState as Issued;
use cl_wire::exchange::v1::exchange_service_client::ExchangeServiceClient;
use cl_wire::exchange::v1::{self as wire, BundleState};
use cl_wire::status::{reason, retry_delay, violations};
use tonic::{Code, Request, Response, Status};

use crate::bundle_issuer::{ENDS, FakeIssuer};
use crate::client::{Answer, Call};
use crate::documents::{ALIAS, PRINCIPAL, canonical_bytes, proposal, receipt};
use crate::engine::later;
use crate::support::{Options, Running, World};

/// The gRPC door, with the ordinary token.
struct Recipient {
    exchange: ExchangeServiceClient<PeerChannel>,
    token: String,
}

impl Recipient {
    fn new(world: &World, gateway: &Running) -> Self {
        let authority = &world.authority;
        let credentials = authority.credentials("client/acme/robot");
        Self {
            exchange: gateway.exchange(credentials),
            token: gateway.token.clone(),
        }
    }

    fn with_token<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let value = format!("Bearer {}", self.token).parse().unwrap();
        request.metadata_mut().insert("authorization", value);
        request
    }

    async fn redeem(
        &self,
        bundle: &str,
        key: Option<&str>,
    ) -> Result<Response<wire::RedeemBundleResponse>, Status> {
        let message = self.with_token(wire::RedeemBundleRequest {
            bundle_ref: bundle.to_owned(),
            idempotency_key: key.map(str::to_owned),
        });
        within("a redemption", self.exchange.clone().redeem_bundle(message)).await
    }

    async fn check(&self, bundle: &str) -> Result<wire::CheckBundleResponse, Status> {
        let message = self.with_token(wire::CheckBundleRequest {
            bundle_ref: bundle.to_owned(),
        });
        let answer = within("a check", self.exchange.clone().check_bundle(message)).await;
        answer.map(Response::into_inner)
    }

    async fn record(
        &self,
        bundle: &str,
        receipt: Vec<u8>,
    ) -> Result<wire::SubmitReceiptResponse, Status> {
        let message = self.with_token(wire::SubmitReceiptRequest {
            bundle_ref: bundle.to_owned(),
            receipt,
        });
        let answer = within("a report", self.exchange.clone().submit_receipt(message)).await;
        answer.map(Response::into_inner)
    }

    async fn receipt(&self, id: &str) -> Result<wire::GetReceiptResponse, Status> {
        let message = self.with_token(wire::GetReceiptRequest {
            receipt_ref: id.to_owned(),
        });
        let answer = within("a read", self.exchange.clone().get_receipt(message)).await;
        answer.map(Response::into_inner)
    }

    async fn propose(&self, proposal: Vec<u8>) -> Result<wire::SubmitProposalResponse, Status> {
        let message = self.with_token(wire::SubmitProposalRequest { proposal });
        let answer = within("a proposal", self.exchange.clone().submit_proposal(message)).await;
        answer.map(Response::into_inner)
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Status>) -> (Code, String) {
    let status = result.unwrap_err();
    (status.code(), reason(&status).unwrap())
}

#[tokio::test]
async fn a_bundle_redeemed_through_one_door_is_the_same_through_the_other() {
    let world = World::new().await;
    let gateway = world.start().await;
    let recipient = Recipient::new(&world, &gateway);
    let bundle = world.bundles.issue("doors");
    let over_http = gateway.call(Call::redeem(&bundle).key("key-1")).await;
    let over_grpc = recipient.redeem(&bundle, Some("key-1")).await.unwrap();
    assert!(over_grpc.metadata().get("idempotency-replayed").is_some());
    let over_grpc = over_grpc.into_inner();
    assert_eq!(over_grpc.envelope, over_http.body);
    let signed = FakeIssuer::delivery(&bundle);
    assert_eq!(over_grpc.scope_statement, signed.scope_statement);
    assert_eq!(over_grpc.scope_signature, signed.scope_signature);
    assert_eq!(over_grpc.notes, signed.notes);
    assert_eq!(over_grpc.notes_signature, signed.notes_signature);
    let arrived = world.bundles.redemptions();
    assert_eq!(arrived[0].operation_id, arrived[1].operation_id);

    let first = world.bundles.issue("first");
    let answer = recipient.redeem(&first, None).await.unwrap();
    assert!(answer.metadata().get("idempotency-replayed").is_none());
    let again = refused(recipient.redeem(&first, None).await);
    assert_eq!(
        again,
        (Code::FailedPrecondition, "BUNDLE_REPLAY".to_owned())
    );
}

#[tokio::test]
async fn every_state_is_told_alike() {
    let world = World::new().await;
    let gateway = world.start().await;
    let recipient = Recipient::new(&world, &gateway);
    for (stored, told, name) in [
        (Issued::Live, BundleState::Live, "live"),
        (Issued::Redeemed, BundleState::Redeemed, "redeemed"),
        (Issued::Consumed, BundleState::Consumed, "consumed"),
        (Issued::Revoked, BundleState::Revoked, "revoked"),
        (Issued::Expired, BundleState::Expired, "expired"),
    ] {
        let bundle = world.bundles.issue(name);
        world.bundles.set(&bundle, stored);
        let over_grpc = recipient.check(&bundle).await.unwrap();
        assert_eq!(over_grpc.state(), told);
        assert_eq!(over_grpc.expires_at, Some(ENDS));
        let over_http = gateway.call(Call::check(&bundle)).await;
        assert_eq!(over_http.json()["state"], name);
    }
}

#[tokio::test]
async fn receipts_and_proposals_are_the_same_through_both_doors() {
    let world = World::new().await;
    let gateway = world.start().await;
    let recipient = Recipient::new(&world, &gateway);
    let bundle = world.bundles.issue("reports");
    recipient.redeem(&bundle, None).await.unwrap();
    let document = receipt(&bundle, BUNDLE_CONSUME, PRINCIPAL, "It was opened.");
    let bytes = canonical_bytes(&document);
    let recorded = recipient.record(&bundle, bytes.clone()).await.unwrap();
    assert_eq!(recorded.receipt_ref, document["id"]);
    assert_eq!(recorded.sequence, 1);
    let over_http = gateway.call(Call::record(&bundle, bytes.clone())).await;
    assert_eq!(over_http.status, 201);
    assert_eq!(over_http.header("context-layer-sequence"), Some("1"));
    let read = recipient.receipt(&recorded.receipt_ref).await.unwrap();
    assert_eq!((read.receipt, read.sequence), (bytes, 1));

    let document = proposal(ALIAS, PRINCIPAL, "Because.");
    let proposed = recipient.propose(canonical_bytes(&document)).await.unwrap();
    assert_eq!(proposed.proposal_ref, document["id"]);
    let over_http = gateway.call(Call::propose(document.to_string())).await;
    assert_eq!(over_http.body, proposed.proposal);
    assert_eq!(world.vault.len(), 1);
}

fn agree(over_grpc: &Status, over_http: &Answer) {
    let (status, code) = over_http.refusal();
    assert_eq!(reason(over_grpc).unwrap(), code, "{status}");
    let seconds = retry_delay(over_grpc).map(|after| after.as_secs().to_string());
    assert_eq!(
        over_http.header("retry-after"),
        seconds.as_deref(),
        "{code}"
    );
    assert_eq!(over_http.json()["message"], over_grpc.message(), "{code}");
}

#[tokio::test]
async fn refusals_agree() {
    let world = World::new().await;
    let gateway = world.start().await;
    let recipient = Recipient::new(&world, &gateway);
    let bundle = world.bundles.issue("refusals");
    for (code, told) in [
        (Code::FailedPrecondition, "BUNDLE_REPLAY"),
        (Code::FailedPrecondition, "BUNDLE_EXPIRED"),
        (Code::FailedPrecondition, "BUNDLE_REVOKED"),
        (Code::NotFound, "BUNDLE_NOT_FOUND"),
        (Code::Aborted, "REDEMPTION_IN_PROGRESS"),
        (Code::ResourceExhausted, "RATE_LIMITED"),
        (Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE"),
        (Code::Unavailable, "SERVICE_UNAVAILABLE"),
    ] {
        let refuse = || world.bundles.faults.refuse_next(later(code, told, 6));
        refuse();
        let over_http = gateway.call(Call::redeem(&bundle)).await;
        refuse();
        let over_grpc = recipient.redeem(&bundle, None).await.unwrap_err();
        assert_eq!(over_grpc.code(), code);
        agree(&over_grpc, &over_http);
    }
    let document = receipt(&bundle, BUNDLE_CONSUME, PRINCIPAL, "It was opened.");
    for (code, told) in [
        (Code::InvalidArgument, "INVALID_RECEIPT"),
        (Code::PermissionDenied, "RECEIPT_OUTSIDE_CONTRACT"),
        (Code::FailedPrecondition, "BUNDLE_NOT_REDEEMED"),
        (Code::AlreadyExists, "RECEIPT_REPLAY_CONFLICT"),
    ] {
        let refuse = || world.bundles.faults.refuse_next(later(code, told, 6));
        refuse();
        let call = Call::record(&bundle, document.to_string());
        let over_http = gateway.call(call).await;
        refuse();
        let over_grpc = recipient.record(&bundle, canonical_bytes(&document));
        let over_grpc = over_grpc.await.unwrap_err();
        assert_eq!(over_grpc.code(), code);
        agree(&over_grpc, &over_http);
    }
    let document = proposal(ALIAS, PRINCIPAL, "Because.");
    for (code, told) in [
        (Code::InvalidArgument, "INVALID_MEMORY_PROPOSAL"),
        (Code::NotFound, "EXCHANGE_NOT_FOUND"),
        (Code::PermissionDenied, "SUBMITTER_MISMATCH"),
        (Code::FailedPrecondition, "EXCHANGE_EXPIRED"),
        (Code::FailedPrecondition, "SUBJECT_ERASED"),
    ] {
        let refuse = || world.vault.faults.refuse_next(later(code, told, 6));
        refuse();
        let over_http = gateway.call(Call::propose(document.to_string())).await;
        refuse();
        let over_grpc = recipient.propose(canonical_bytes(&document)).await;
        let over_grpc = over_grpc.unwrap_err();
        assert_eq!(over_grpc.code(), code);
        agree(&over_grpc, &over_http);
    }
    let unknown = "urn:cl:receipt:unknown";
    let over_http = gateway.call(Call::receipt(unknown)).await;
    agree(&recipient.receipt(unknown).await.unwrap_err(), &over_http);
}

#[tokio::test]
async fn messages_are_checked_before_anything_is_called() {
    let world = World::new().await;
    let gateway = world.start().await;
    let recipient = Recipient::new(&world, &gateway);
    let invalid = |reason: &str| (Code::InvalidArgument, reason.to_owned());
    let bundle = world.bundles.issue("messages");
    let document = receipt(&bundle, BUNDLE_CONSUME, PRINCIPAL, "It was opened.");
    let long = format!("urn:cl:bundle:{}", "b".repeat(512));
    for bad in ["", "nonsense", "urn:cl:request:x", &long] {
        let field = invalid("INVALID_FIELD");
        assert_eq!(refused(recipient.redeem(bad, None).await), field);
        assert_eq!(refused(recipient.check(bad).await), field);
        assert_eq!(refused(recipient.receipt(bad).await), field);
        let recorded = recipient.record(bad, canonical_bytes(&document)).await;
        assert_eq!(refused(recorded), field);
    }
    let key = refused(recipient.redeem(&bundle, Some("a b")).await);
    assert_eq!(key, invalid("INVALID_IDEMPOTENCY_KEY"));

    let spaced = serde_json::to_vec_pretty(&document).unwrap();
    let status = recipient.record(&bundle, spaced).await.unwrap_err();
    assert_eq!(violations(&status)[0].field, "receipt");
    let recorded = recipient.record(&bundle, vec![b' '; 65_537]).await;
    assert_eq!(refused(recorded), invalid("DOCUMENT_TOO_LARGE"));
    let recorded = recipient.record(&bundle, b"{".to_vec()).await;
    assert_eq!(refused(recorded), invalid("INVALID_JSON"));
    let document = proposal(ALIAS, PRINCIPAL, "Because.");
    let spaced = serde_json::to_vec_pretty(&document).unwrap();
    let status = recipient.propose(spaced).await.unwrap_err();
    assert_eq!(violations(&status)[0].field, "proposal");
    let proposed = recipient.propose(vec![b' '; 262_145]).await;
    assert_eq!(refused(proposed), invalid("DOCUMENT_TOO_LARGE"));
    let calls = world.bundles.faults.calls() + world.vault.faults.calls();
    assert_eq!(calls + world.receipts.faults.calls(), 0);
}

#[tokio::test]
async fn without_its_services_the_gateway_says_so_here_too() {
    let world = World::new().await;
    let options = Options {
        is_for_recipients: false,
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let recipient = Recipient::new(&world, &gateway);
    let bundle = "urn:cl:bundle:b";
    let absent = (Code::Unavailable, "SERVICE_UNAVAILABLE".to_owned());
    assert_eq!(refused(recipient.redeem(bundle, None).await), absent);
    assert_eq!(refused(recipient.check(bundle).await), absent);
    let document = receipt(bundle, BUNDLE_CONSUME, PRINCIPAL, "It was opened.");
    let recorded = recipient.record(bundle, canonical_bytes(&document)).await;
    assert_eq!(refused(recorded), absent);
    let read = recipient.receipt("urn:cl:receipt:r").await;
    assert_eq!(refused(read), absent);
    let document = proposal(ALIAS, PRINCIPAL, "Because.");
    let proposed = recipient.propose(canonical_bytes(&document)).await;
    assert_eq!(refused(proposed), absent);
}
