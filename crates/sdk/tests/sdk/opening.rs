//! Redeeming and opening.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cl_model::part::Trust as Level;
use cl_model::time::UnixTime;
use cl_sdk::{
    Client, Clock, Delivery, Error, Fact, OpenBundle, RequestState, Trust, TrustFile,
    VerifiedDelivery,
};
use cl_wire::exchange::v1::BundleState;
use serde_json::json;

use crate::deployment::{
    CANARY, TOKEN, at, bundle_ref, delivery, delivery_with, issued_at, trust_file,
};
use crate::gateway::Running;

/// A clock that moves when told.
#[derive(Clone, Debug)]
pub(crate) struct Hands(Arc<AtomicI64>);

impl Hands {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(issued_at().milliseconds())))
    }

    pub(crate) fn set(&self, time: UnixTime) {
        self.0.store(time.milliseconds(), Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> UnixTime {
        UnixTime::from_milliseconds(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) async fn opened(running: &Running) -> OpenBundle {
    opened_at(running, &Hands::new()).await
}

pub(crate) async fn opened_at(running: &Running, clock: &Hands) -> OpenBundle {
    let client = running.client(Arc::new(clock.clone()));
    let delivery = redeemed(&client).await;
    client.open(&delivery).await.unwrap()
}

async fn redeemed(client: &Client) -> VerifiedDelivery {
    let reference = bundle_ref(&delivery());
    client.redeem(&reference, "first").await.unwrap()
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().code().unwrap().to_owned()
}

#[tokio::test]
async fn facts_come_with_their_marks_after_the_consumption_is_recorded() {
    let running = Running::start(delivery()).await;
    let bundle = opened(&running).await;
    let recorded = vec![("bundle.consume".to_owned(), "success".to_owned())];
    assert_eq!(running.receipts(), recorded);

    let facts = bundle.facts().await.unwrap();
    let find = |predicate: &str| {
        facts
            .iter()
            .find(|fact| fact.predicate == predicate)
            .unwrap()
    };
    assert_eq!(find("project.name").value, json!(CANARY));
    let marks: Vec<_> = facts.iter().map(|fact| fact.trust).collect();
    assert_eq!(marks, [Level::Verified, Level::Untrusted]);
    assert_eq!(facts[0].transforms.len(), 1);
    assert!(facts[1].status.is_none() && facts[1].transforms.is_empty());
    assert_eq!(bundle.instructions().await.unwrap(), ["Draft only."]);
    assert_eq!(
        bundle.capabilities().await.unwrap(),
        ["email.create_draft", "memory.propose"]
    );
}

#[tokio::test]
async fn submits_and_learns_of_the_bundle() {
    let running = Running::start(delivery()).await;
    let client = running.client(Arc::new(Hands::new()));
    let status = client.submit(b"{}".to_vec()).await.unwrap();
    assert_eq!(status.state, RequestState::Issued);
    assert_eq!(status.bundle_ref, Some(bundle_ref(&delivery())));
    let unknown = client.status("urn:cl:request:other").await;
    assert_eq!(code(unknown), "REQUEST_NOT_FOUND");
}

#[tokio::test]
async fn a_bundle_is_redeemed_and_opened_once() {
    let running = Running::start(delivery()).await;
    let client = running.client(Arc::new(Hands::new()));
    let first = redeemed(&client).await;
    assert!(
        redeemed(&client).await.delivery() == first.delivery(),
        "a retry gets the same bytes"
    );
    let reference = bundle_ref(first.delivery());
    let other = client.redeem(&reference, "second").await;
    assert_eq!(code(other), "BUNDLE_REPLAY");

    client.open(&first).await.unwrap();
    assert_eq!(code(client.open(&first).await), "BUNDLE_REPLAY");
    assert_eq!(running.receipts().len(), 1);
}

#[tokio::test]
async fn another_bundle_in_place_of_the_one_asked_for_is_refused() {
    let running = Running::start(delivery()).await;
    let client = running.client(Arc::new(Hands::new()));
    running.with(|state| state.answers_for_any = true);
    let asked = format!("urn:cl:bundle:{}", "0".repeat(64));
    let refused = client.redeem(&asked, "first").await;
    assert!(matches!(refused, Err(Error::Malformed(_))), "{refused:?}");
}

#[tokio::test]
async fn nothing_is_released_without_a_durable_receipt() {
    let running = Running::start(delivery()).await;
    let client = running.client(Arc::new(Hands::new()));
    let delivery = redeemed(&client).await;
    running.with(|state| state.refused_receipts = 100);
    let refused = client.open(&delivery).await;
    assert_eq!(code(refused), "BUNDLE_CONSUME_RECEIPT_FAILED");
    // A store that is away for a moment is asked again.
    running.with(|state| state.refused_receipts = 2);
    client.open(&delivery).await.unwrap();
}

#[tokio::test]
async fn revoked_unchecked_and_foreign_bundles_stay_closed() {
    let running = Running::start(delivery()).await;
    let client = running.client(Arc::new(Hands::new()));
    let delivery = redeemed(&client).await;
    running.with(|state| state.bundle = Some(BundleState::Revoked));
    assert_eq!(code(client.open(&delivery).await), "BUNDLE_REVOKED");
    running.with(|state| state.bundle = Some(BundleState::Redeemed));
    running.with(|state| state.is_check_down = true);
    assert_eq!(
        code(client.open(&delivery).await),
        "REVOCATION_CHECK_FAILED"
    );
    running.with(|state| state.is_check_down = false);

    let mut config = running.config();
    config.recipient = "urn:model:other".to_owned();
    let other = Client::connect_with_clock(config, Arc::new(Hands::new())).unwrap();
    assert_eq!(
        code(other.open(&delivery).await),
        "BUNDLE_RECIPIENT_MISMATCH"
    );

    let late = Hands::new();
    late.set(at("2031-05-04T09:35:00Z"));
    let late = running.client(Arc::new(late));
    assert_eq!(code(late.open(&delivery).await), "BUNDLE_EXPIRED");
    assert!(running.receipts().is_empty());
}

#[tokio::test]
async fn an_issuer_that_signs_more_than_was_granted_is_found_out() {
    let wider = delivery_with(|bundle| {
        bundle["capabilities"] = json!(["email.create_draft", "email.send"]);
    });
    let longer = delivery_with(|bundle| bundle["expires_at"] = json!("2031-05-04T09:36:00Z"));
    let more = delivery_with(|bundle| bundle["context"][0]["predicate"] = json!("home.address"));
    for delivery in [wider, longer, more] {
        let running = Running::start(delivery.clone()).await;
        let client = running.client(Arc::new(Hands::new()));
        let refused = client.redeem(&bundle_ref(&delivery), "first").await;
        assert_eq!(code(refused), "BUNDLE_OUTSIDE_GRANT");
        assert!(running.receipts().is_empty());
    }
}

#[test]
fn a_delivery_verifies_from_a_file() {
    let text = delivery().to_text();
    let read = Delivery::parse(text.as_bytes()).unwrap();
    let file = TrustFile::parse(&trust_file()).unwrap();
    let verified = read.verify(&Trust::of(&file, issued_at())).unwrap();
    assert_eq!(Fact::of(&verified).len(), 2);
    let nobody = TrustFile::parse(br#"{"keys":[]}"#).unwrap();
    let refused = read.verify(&Trust::of(&nobody, issued_at())).unwrap_err();
    assert_eq!(refused.code().as_str(), "UNTRUSTED_BUNDLE_AUTHORITY");
}

#[tokio::test]
async fn peers_and_configurations_that_cannot_be_used_are_told_apart() {
    let running = Running::start(delivery()).await;
    let mut plain = running.config();
    plain.gateway = running.url.replace("https", "http");
    assert!(matches!(
        Client::connect(plain),
        Err(Error::Configuration(_))
    ));
    let mut trust = running.config();
    trust.trust = b"{}".to_vec();
    assert_eq!(code(Client::connect(trust)), "INVALID_TRUST_FILE");
    let mut token = running.config();
    token.credential = cl_sdk::Credential::bearer("line\nbreak");
    assert!(matches!(
        Client::connect(token),
        Err(Error::Configuration(_))
    ));

    let mut stranger = running.config();
    stranger.credential = cl_sdk::Credential::bearer("another");
    let stranger = Client::connect(stranger).unwrap();
    assert_eq!(
        code(stranger.submit(vec![]).await),
        "CALLER_UNAUTHENTICATED"
    );

    let other = Running::start(delivery()).await;
    let mut impostor = other.config();
    impostor.gateway = running.url.clone();
    let impostor = Client::connect(impostor).unwrap();
    let error = impostor.submit(vec![]).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable) && error.is_retryable());
}

#[tokio::test]
async fn nothing_private_is_printed() {
    let running = Running::start(delivery()).await;
    let client = running.client(Arc::new(Hands::new()));
    let delivery = redeemed(&client).await;
    let bundle = client.open(&delivery).await.unwrap();
    let facts = bundle.facts().await.unwrap();
    let printed = format!(
        "{client:?} {delivery:?} {bundle:?} {facts:?} {:?} {:?}",
        running.config(),
        client.open(&delivery).await
    );
    assert!(
        !printed.contains(CANARY) && !printed.contains(TOKEN),
        "{printed}"
    );
}
