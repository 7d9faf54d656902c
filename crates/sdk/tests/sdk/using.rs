//! Using an opened bundle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cl_model::object::MemoryOperation;
use cl_model::scalar::Name;
use cl_sdk::{Handled, Proposal};
use cl_wire::exchange::v1::BundleState;
use serde_json::json;
use tokio::time::timeout;

use crate::deployment::{CANARY, at, delivery, issued_at};
use crate::gateway::Running;
use crate::opening::{Hands, code, opened, opened_at};

const DRAFT: &str = "email.create_draft";

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = timeout(Duration::from_secs(30), async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

#[tokio::test]
async fn an_action_gets_the_context_and_is_recorded_before_its_output() {
    let running = Running::start(delivery()).await;
    let bundle = opened(&running).await;
    let output = bundle.perform(DRAFT, |input| async move {
        assert_eq!(input["capability"], DRAFT);
        assert!(input.to_string().contains(CANARY));
        Handled::Json(json!({"draft": 1}))
    });
    let output = output.await.unwrap();
    assert!(matches!(output, Handled::Json(value) if value == json!({"draft": 1})));
    let last = running.receipts().pop().unwrap();
    assert_eq!(last, (DRAFT.to_owned(), "success".to_owned()));
    let text = running.with(|state| json!(state.receipts).to_string());
    assert!(!text.contains(CANARY), "receipts carry digests only");
}

#[tokio::test]
async fn an_action_that_is_not_granted_does_not_run() {
    let running = Running::start(delivery()).await;
    let bundle = opened(&running).await;
    let ran = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ran);
    let refused = bundle.perform("email.send", |_| async move {
        flag.store(true, Ordering::SeqCst);
        Handled::Nothing
    });
    assert_eq!(code(refused.await), "CAPABILITY_NOT_GRANTED");
    assert!(!ran.load(Ordering::SeqCst));
    assert_eq!(running.receipts().len(), 1);
}

#[tokio::test]
async fn failures_and_panics_have_their_outcomes() {
    let running = Running::start(delivery()).await;
    let bundle = opened(&running).await;
    let timeout = Name::new("timeout").unwrap();
    let failed = bundle.perform(DRAFT, |_| async { Handled::Failed(timeout) });
    assert_eq!(code(failed.await), "ACTION_FAILED");
    let panicked = bundle.perform(DRAFT, |_| async { panic!("in a test") });
    assert_eq!(code(panicked.await), "INDETERMINATE_OUTCOME");
    let outcomes: Vec<_> = running.receipts().into_iter().map(|(_, it)| it).collect();
    assert_eq!(outcomes, ["success", "failure", "indeterminate"]);
}

#[tokio::test]
async fn an_outcome_without_evidence_blocks_the_next_action_until_it_is_stored() {
    let running = Running::start(delivery()).await;
    let bundle = opened(&running).await;
    running.with(|state| state.refused_receipts = 4);
    let lost = bundle.perform(DRAFT, |_| async { Handled::Nothing }).await;
    assert_eq!(code(lost), "INDETERMINATE_OUTCOME");
    running.with(|state| state.refused_receipts = 4);
    let blocked = bundle.perform(DRAFT, |_| async { Handled::Nothing }).await;
    assert_eq!(code(blocked), "OUTCOME_PENDING");
    bundle
        .perform(DRAFT, |_| async { Handled::Json(json!(1)) })
        .await
        .unwrap();
    assert_eq!(
        running.receipts().len(),
        3,
        "consume, the late one, the next"
    );
}

#[tokio::test]
async fn an_action_is_recorded_though_nobody_waits_for_it() {
    let running = Running::start(delivery()).await;
    let bundle = opened(&running).await;
    let (started, wait_started) = tokio::sync::oneshot::channel();
    let (go_on, wait) = tokio::sync::oneshot::channel::<()>();
    let action = bundle.perform(DRAFT, |_| async {
        started.send(()).unwrap();
        wait.await.unwrap();
        Handled::Nothing
    });
    tokio::select! {
        _ = action => panic!("it waits"),
        begun = wait_started => begun.unwrap(),
    }
    go_on.send(()).unwrap();
    until("the receipt", async || running.receipts().len() == 2).await;
}

#[tokio::test]
async fn revocation_ends_the_use() {
    let running = Running::start(delivery()).await;
    let bundle = opened(&running).await;
    running.with(|state| state.bundle = Some(BundleState::Revoked));
    assert_eq!(code(bundle.facts().await), "BUNDLE_REVOKED");
    let refused = bundle.perform(DRAFT, |_| async { Handled::Nothing }).await;
    assert_eq!(code(refused), "BUNDLE_REVOKED");
    running.with(|state| state.is_check_down = true);
    assert_eq!(code(bundle.facts().await), "REVOCATION_CHECK_FAILED");
}

#[tokio::test]
async fn at_expiry_the_content_is_gone_for_good() {
    let running = Running::start(delivery()).await;
    let clock = Hands::new();
    let bundle = opened_at(&running, &clock).await;
    bundle.facts().await.unwrap();
    clock.set(at("2031-05-04T09:35:00Z"));
    assert_eq!(code(bundle.facts().await), "BUNDLE_EXPIRED");
    let refused = bundle.perform(DRAFT, |_| async { Handled::Nothing }).await;
    assert_eq!(code(refused), "BUNDLE_EXPIRED");
    // Once it is wiped, a clock that is set back brings nothing back.
    until("the content is wiped", async || {
        tokio::time::sleep(Duration::from_millis(100)).await;
        clock.set(issued_at());
        let is_gone = bundle.facts().await.is_err();
        clock.set(at("2031-05-04T09:35:00Z"));
        is_gone
    })
    .await;
    clock.set(issued_at());
    assert_eq!(code(bundle.facts().await), "BUNDLE_EXPIRED");
}

#[tokio::test]
async fn proposals_are_recorded_and_rest_on_known_sources() {
    let running = Running::start(delivery()).await;
    let bundle = opened(&running).await;
    let handle = bundle.facts().await.unwrap()[0].provenance_handles[0].clone();
    let proposal = |handle: &str| Proposal {
        operation: MemoryOperation::AddOrContradict,
        claims: vec![json!({
            "predicate": "project.owner",
            "object": {"value": "Grace", "datatype": "person"},
            "confidence": 0.5,
        })],
        provenance_handles: vec![handle.to_owned()],
        rationale: "The latest mail names her.".to_owned(),
    };
    let reference = bundle.propose(&proposal(&handle)).await.unwrap();
    assert!(reference.starts_with("urn:cl:proposal:"));
    assert_eq!(running.with(|state| state.proposals.len()), 1);
    assert_eq!(running.receipts().pop().unwrap().0, "memory.propose");
    let unknown = bundle.propose(&proposal("prov_unknown")).await;
    assert_eq!(code(unknown), "UNKNOWN_PROVENANCE_HANDLE");
}
