//! Answers that no longer fit, and answers that race.

use cl_testbed::{refusal, refused};
use cl_wire::policy::v1::{ApprovalState, RequestState};
use serde_json::json;
use tonic::Code;

use crate::documents::{self, gated, snapshot};
use crate::people::{OWNER, grant_all};
use crate::support::{Running, World, decision};

fn reasons(world: &World) -> Vec<String> {
    let receipts = world.receipts.of("policy.refuse_approval");
    let reasons = receipts.iter().map(|recorded| {
        let reason = &recorded.receipt["metadata"]["reason"];
        reason.as_str().unwrap().to_owned()
    });
    reasons.collect()
}

async fn digest(running: &Running) -> String {
    let message = cl_wire::policy::v1::GetSnapshotRequest {
        tenant: documents::TENANT.to_owned(),
        digest: None,
    };
    let answer = running.admin.clone().get_snapshot(message).await.unwrap();
    answer.into_inner().info.unwrap().digest
}

#[tokio::test]
async fn an_answer_to_a_request_that_was_replaced_grants_nothing() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = grant_all(&person.session, &item);
    let ceremony = running
        .begin_answer(answer.clone())
        .await
        .unwrap()
        .ceremony
        .unwrap();
    let mut wider = gated("r1");
    wider["selectors"]
        .as_array_mut()
        .unwrap()
        .push(json!({"predicate": "timeline"}));
    running.ask(&wider, 2).await.unwrap();

    let changed = refused(Code::Aborted, "APPROVAL_CHANGED");
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let finished = running
        .finish_answer(&person.session, &ceremony, signed, 3)
        .await;
    assert_eq!(refusal(finished), changed);
    assert_eq!(reasons(&world), ["APPROVAL_CHANGED"]);
    assert!(world.receipts.of("policy.approve").is_empty());
    assert_eq!(refusal(running.begin_answer(answer).await), changed);
    let approval_ref = item.summary.unwrap().approval_ref;
    let old = running.item(&person.session, &approval_ref).await.unwrap();
    assert_eq!(old.state(), ApprovalState::Replaced);
    let status = running.look(&wider).await.unwrap();
    assert_eq!(status.state(), RequestState::PendingApproval);

    // The new request waits under its own id, and is answered by what it shows.
    let new = running.only_item(&person.session).await;
    assert_ne!(new.summary.clone().unwrap().approval_ref, approval_ref);
    assert_eq!(new.selectors.len(), 3);
    let answer = grant_all(&person.session, &new);
    let status = running.answer(&person, answer, 4).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
}

#[tokio::test]
async fn an_answer_under_another_policy_is_refused_and_shown_anew() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = grant_all(&person.session, &item);
    let ceremony = running
        .begin_answer(answer.clone())
        .await
        .unwrap()
        .ceremony
        .unwrap();
    let first = digest(&running).await;
    let second = running.activate_new(&snapshot("v2"), Some(&first)).await;

    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let finished = running
        .finish_answer(&person.session, &ceremony, signed, 2)
        .await;
    assert_eq!(
        refusal(finished),
        refused(Code::Aborted, "APPROVAL_POLICY_CHANGED")
    );
    assert_eq!(reasons(&world), ["APPROVAL_POLICY_CHANGED"]);
    let begun = running.begin_answer(answer).await;
    assert_eq!(refusal(begun), refused(Code::Aborted, "APPROVAL_CHANGED"));

    let anew = running.only_item(&person.session).await;
    assert!(anew.policy_changed);
    assert_eq!(
        (anew.policy_version.as_str(), &anew.policy_digest),
        ("v2", &second)
    );
    let answer = grant_all(&person.session, &anew);
    let status = running.answer(&person, answer, 3).await.unwrap();
    let decided = decision(&status);
    assert_eq!(decided["policy_snapshot"]["digest"], second);
    assert_eq!(decided["decision"], "allow");
}

#[tokio::test]
async fn a_policy_that_forbids_meanwhile_discloses_nothing() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = grant_all(&person.session, &item);
    let mut forbids = snapshot("v2");
    forbids["policy"]["approval_required_selectors"] = json!([]);
    let first = digest(&running).await;
    running.activate_new(&forbids, Some(&first)).await;
    let anew = running
        .item(&person.session, &item.summary.unwrap().approval_ref)
        .await
        .unwrap();
    assert_eq!(anew.state(), ApprovalState::NotNeeded);
    let begun = running.begin_answer(answer).await;
    assert_eq!(refusal(begun), refused(Code::Aborted, "APPROVAL_CHANGED"));
    let begun = running
        .begin_answer(grant_all(&person.session, &anew))
        .await;
    assert_eq!(
        refusal(begun),
        refused(Code::FailedPrecondition, "APPROVAL_NOT_NEEDED")
    );
    let status = running.look(&gated("r1")).await.unwrap();
    assert_eq!(status.state(), RequestState::PendingApproval);
}

#[tokio::test]
async fn the_engines_clock_ends_an_item_without_any_sweep() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = grant_all(&person.session, &item);
    // One second before the end of the 480 s that a request may wait; the challenge outlives it.
    world.clock.advance(300_000);
    world.clock.advance(179_000);
    let ceremony = running
        .begin_answer(answer.clone())
        .await
        .unwrap()
        .ceremony
        .unwrap();
    world.clock.advance(1_000);
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let finished = running
        .finish_answer(&person.session, &ceremony, signed, 2)
        .await;
    let expired = refused(Code::FailedPrecondition, "APPROVAL_EXPIRED");
    assert_eq!(refusal(finished), expired);
    assert_eq!(reasons(&world), ["APPROVAL_EXPIRED"]);
    assert!(world.receipts.of("policy.approve").is_empty());
    assert_eq!(refusal(running.begin_answer(answer.clone()).await), expired);
    assert!(running.queue(&person.session).await.unwrap().is_empty());
    // Terminal, also when the clock goes back.
    world.clock.advance(-60_000);
    assert_eq!(refusal(running.begin_answer(answer).await), expired);
    let status = running.look(&gated("r1")).await.unwrap();
    assert_eq!(status.state(), RequestState::Expired);
}

#[tokio::test]
async fn a_requester_or_an_approver_who_is_gone_is_refused() {
    for (member, value, finish, begin) in [
        (
            "clients",
            json!([]),
            refused(Code::PermissionDenied, "APPROVAL_REQUESTER_GONE"),
            refused(Code::PermissionDenied, "APPROVAL_REQUESTER_GONE"),
        ),
        (
            "approvers",
            json!([]),
            refused(Code::PermissionDenied, "APPROVER_NOT_ALLOWED"),
            refused(Code::NotFound, "APPROVAL_NOT_FOUND"),
        ),
    ] {
        let world = World::new().await;
        let running = world.ready().await;
        let person = running.person(OWNER, 0x100).await;
        running.ask(&gated("r1"), 1).await.unwrap();
        let item = running.only_item(&person.session).await;
        let answer = grant_all(&person.session, &item);
        let ceremony = running
            .begin_answer(answer.clone())
            .await
            .unwrap()
            .ceremony
            .unwrap();
        let mut without = snapshot("v2");
        without[member] = value;
        if member == "clients" {
            without["policy"]["allowed_clients"] = json!([]);
        }
        let first = digest(&running).await;
        running.activate_new(&without, Some(&first)).await;
        let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
        let finished = running
            .finish_answer(&person.session, &ceremony, signed, 2)
            .await;
        assert_eq!(refusal(finished), finish);
        assert_eq!(reasons(&world), std::slice::from_ref(&finish.1));
        assert_eq!(refusal(running.begin_answer(answer).await), begin);
        assert!(world.receipts.of("policy.approve").is_empty());
    }
}

#[tokio::test]
async fn an_answer_is_for_one_request_and_used_once() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r5"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = grant_all(&person.session, &item);
    let first = running
        .begin_answer(answer.clone())
        .await
        .unwrap()
        .ceremony
        .unwrap();
    let second = running
        .begin_answer(answer.clone())
        .await
        .unwrap()
        .ceremony
        .unwrap();
    assert_ne!(first.challenge, second.challenge);
    let signed = person.authenticator.sign(&first.challenge).unwrap();
    let taken = running
        .finish_answer(&person.session, &first, signed.clone(), 2)
        .await;
    assert_eq!(taken.unwrap().state(), RequestState::Decided);

    // Another request with the same scope: the same body, then the same assertion.
    running.ask(&gated("r6"), 3).await.unwrap();
    let replayed = running
        .finish_answer(&person.session, &first, signed.clone(), 4)
        .await;
    let spent = refused(Code::FailedPrecondition, "CEREMONY_NOT_OPEN");
    assert_eq!(refusal(replayed), spent);
    let other = running.only_item(&person.session).await;
    let other = grant_all(&person.session, &other);
    let mut crossed = answer.clone();
    crossed.approval_ref.clone_from(&other.approval_ref);
    let begun = running.begin_answer(crossed).await;
    assert_eq!(refusal(begun), refused(Code::Aborted, "APPROVAL_CHANGED"));
    let ceremony = running.begin_answer(other).await.unwrap().ceremony.unwrap();
    let crossed = running
        .finish_answer(&person.session, &ceremony, signed, 5)
        .await;
    assert_eq!(
        refusal(crossed),
        refused(Code::PermissionDenied, "ASSERTION_CHALLENGE")
    );

    // The second answer to the first request comes too late.
    let signed = person.authenticator.sign(&second.challenge).unwrap();
    let late = running
        .finish_answer(&person.session, &second, signed, 6)
        .await;
    let answered = refused(Code::FailedPrecondition, "APPROVAL_ANSWERED");
    assert_eq!(refusal(late), answered);
    assert_eq!(refusal(running.begin_answer(answer).await), answered);
    assert_eq!(
        reasons(&world),
        ["ASSERTION_CHALLENGE", "APPROVAL_ANSWERED"]
    );
    let status = running.look(&gated("r6")).await.unwrap();
    assert_eq!(status.state(), RequestState::PendingApproval);
    assert_eq!(world.receipts.of("policy.approve").len(), 1);
}

#[tokio::test]
async fn the_same_request_by_another_call_is_still_covered() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let ceremony = running
        .begin_answer(grant_all(&person.session, &item))
        .await;
    let ceremony = ceremony.unwrap().ceremony.unwrap();
    let again = running.ask(&gated("r1"), 2).await.unwrap();
    assert_eq!(again.state(), RequestState::PendingApproval);
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let status = running
        .finish_answer(&person.session, &ceremony, signed, 3)
        .await;
    assert_eq!(status.unwrap().state(), RequestState::Decided);
}

#[tokio::test]
async fn of_many_answers_at_once_one_is_taken() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let pending = running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let ceremony = running
        .begin_answer(grant_all(&person.session, &item))
        .await;
    let ceremony = ceremony.unwrap().ceremony.unwrap();
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let finishes = (0..64).map(|number| {
        let running = &running;
        let (session, ceremony) = (&person.session, &ceremony);
        let signed = signed.clone();
        async move {
            let finish = running.finish_answer(session, ceremony, signed, 0x1000 + number);
            finish.await
        }
    });
    let mut taken = Vec::new();
    let mut others = Vec::new();
    for result in crate::snapshots::join_all(finishes).await {
        match result {
            Ok(status) => taken.push(status),
            Err(status) => others.push(refusal::<()>(Err(status))),
        }
    }
    assert_eq!(taken.len(), 1);
    let spent = refused(Code::FailedPrecondition, "CEREMONY_NOT_OPEN");
    let busy = refused(Code::Aborted, "REQUEST_IN_PROGRESS");
    assert!(
        others.iter().all(|it| *it == spent || *it == busy),
        "{others:?}"
    );
    assert_ne!(decision(&taken[0])["id"], decision(&pending)["id"]);
    assert_eq!(running.look(&gated("r1")).await.unwrap(), taken[0]);
    assert_eq!(world.receipts.of("policy.approve").len(), 1);
    assert_eq!(world.receipts.of("policy.decide").len(), 2);
    assert!(reasons(&world).is_empty());
}
