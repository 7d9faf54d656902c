//! Proposals: checked, pending, and nothing more.

use cl_testbed::{refusal, refused};
use cl_wire::vault::v1::SubmitProposalRequest;
use serde_json::{Value, json};
use tonic::Code;

use crate::documents::{
    DATE, GrantDraft, NOW_MS, item, operation, proposal_without_id, provenance, request, submission,
};
use crate::support::{Running, World, document};

const DAY: &str = r#"requested_delivery_date 0.6 "2030-02-01""#;

/// A vault in which one exchange took place; the reference of its source.
async fn exchanged(world: &World) -> (Running, String) {
    let running = world.start().await;
    let events = running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    running
        .resolve(GrantDraft::new("r1", &[DATE]).call(2))
        .await
        .unwrap();
    let provenance = provenance(&events[0], "r1");
    (running, provenance.reference().as_str().to_owned())
}

fn changed(name: &str, value: Value) -> SubmitProposalRequest {
    let mut proposal = proposal_without_id(&[]);
    proposal[name] = value;
    submission(proposal, 9)
}

#[tokio::test]
async fn a_proposal_is_stored_as_pending_and_changes_nothing() {
    let world = World::new().await;
    let (running, source) = exchanged(&world).await;
    let before = running.claim_documents().await;
    let message = submission(proposal_without_id(&[source]), 3);
    let answer = running.propose(message.clone()).await.unwrap();
    let stored = document(&answer.proposal);
    assert_eq!(stored["status"], "pending_validation");
    assert_eq!(answer.proposal, message.proposal);
    assert_eq!(stored["id"], answer.proposal_ref);
    assert_eq!(answer.expires_at.unwrap().seconds, NOW_MS / 1000 + 300);
    assert_eq!(running.claim_documents().await, before);
    let receipts = world.receipts.of("memory.propose");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].receipt["request_ref"], "urn:cl:request:r1");
    assert!(receipts[0].routing.subject_tag.is_some());

    // The same proposal once more, by the same call and by another one.
    assert_eq!(running.propose(message.clone()).await.unwrap(), answer);
    let mut again = message;
    again.operation_id = operation(4);
    assert_eq!(running.propose(again).await.unwrap(), answer);
    assert_eq!(world.receipts.of("memory.propose").len(), 1);
}

#[tokio::test]
async fn the_vault_decides_what_a_proposal_needs() {
    let world = World::new().await;
    let (running, _) = exchanged(&world).await;
    let message = changed(
        "approval_requirement",
        json!(["user_confirm", "second_person"]),
    );
    let answer = running.propose(message).await.unwrap();
    let stored = document(&answer.proposal);
    assert_eq!(
        stored["approval_requirement"],
        json!(["second_person", "source_required", "user_confirm"])
    );
    assert!(stored.get("integrity").is_none());
    assert_eq!(stored["id"], answer.proposal_ref);
}

#[tokio::test]
async fn refuses_proposals_that_have_no_standing() {
    let world = World::new().await;
    let (running, _) = exchanged(&world).await;
    let unknown = format!("urn:cl:provenance:{}", "0".repeat(64));
    let mut by_another = changed("rationale", json!("Another one."));
    by_another.submitter = "urn:model:other".to_owned();
    let mut elsewhere = changed("rationale", json!("Another tenant."));
    elsewhere.tenant = "globex".to_owned();
    let mut large = changed("rationale", json!("Too large."));
    large.proposal = vec![b' '; 262_145];
    let mut not_canonical = changed("rationale", json!("Not canonical."));
    not_canonical.proposal.push(b' ');
    let mut stranger = proposal_without_id(&[]);
    stranger["submitted_by"] = json!("urn:model:other");
    let mut stranger = submission(stranger, 9);
    stranger.submitter = "urn:model:other".to_owned();
    let invalid = |code| (Code::InvalidArgument, code);
    for (message, (code, reason)) in [
        (by_another, (Code::PermissionDenied, "SUBMITTER_MISMATCH")),
        (stranger, (Code::NotFound, "EXCHANGE_NOT_FOUND")),
        (elsewhere, (Code::NotFound, "EXCHANGE_NOT_FOUND")),
        (
            changed("subject_ref", json!("urn:cl:alias:unknown")),
            (Code::NotFound, "EXCHANGE_NOT_FOUND"),
        ),
        (
            changed("subject_ref", json!("vault://subjects/primary")),
            invalid("MEMORY_PROPOSAL_CONTAINS_FORBIDDEN_MATERIAL"),
        ),
        (
            changed("provenance_refs", json!([unknown])),
            invalid("UNKNOWN_PROVENANCE_HANDLE"),
        ),
        (
            changed("expires_at", json!("2030-01-01T12:00:00Z")),
            (Code::FailedPrecondition, "EXCHANGE_EXPIRED"),
        ),
        (
            changed("status", json!("approved")),
            invalid("INVALID_MEMORY_PROPOSAL"),
        ),
        (
            changed("approval_requirement", json!([])),
            invalid("MEMORY_PROPOSAL_APPROVAL_REQUIRED"),
        ),
        (
            changed("more", json!(1)),
            invalid("INVALID_MEMORY_PROPOSAL"),
        ),
        (large, invalid("DOCUMENT_TOO_LARGE")),
        (not_canonical, invalid("INVALID_FIELD")),
    ] {
        let answer = refusal(running.propose(message).await);
        assert_eq!(answer, refused(code, reason));
    }
    assert!(world.receipts.of("memory.propose").is_empty());
}

#[tokio::test]
async fn an_exchange_that_is_over_takes_no_proposals() {
    let world = World::new().await;
    let (running, _) = exchanged(&world).await;
    world.clock.advance(300_000);
    let late = changed("expires_at", json!("2030-01-01T13:00:00Z"));
    let over = refused(Code::FailedPrecondition, "EXCHANGE_EXPIRED");
    assert_eq!(refusal(running.propose(late).await), over);
}

#[tokio::test]
async fn proposing_must_have_been_granted() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    let mut asked = request("r1", &[DATE]);
    asked["requested_actions"] = json!(["email.create_draft"]);
    let grant = GrantDraft::of(asked, &["email.create_draft"]);
    running.resolve(grant.call(2)).await.unwrap();
    let message = submission(proposal_without_id(&[]), 3);
    let not_granted = refused(Code::PermissionDenied, "CAPABILITY_NOT_GRANTED");
    assert_eq!(refusal(running.propose(message).await), not_granted);
}

#[tokio::test]
async fn an_exchange_is_forgotten_a_week_after_its_end() {
    let world = World::new().await;
    let (running, _) = exchanged(&world).await;
    world.clock.advance(300_000 + 7 * 24 * 60 * 60 * 1000);
    let late = || changed("expires_at", json!("2031-01-01T00:00:00Z"));
    let gone = refused(Code::NotFound, "EXCHANGE_NOT_FOUND");
    cl_testbed::within("the sweep", async {
        while refusal(running.propose(late()).await) != gone {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
