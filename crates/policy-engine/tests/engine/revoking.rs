//! Grants that people take back.

use cl_testbed::{eventually, refusal, refused};
use cl_wire::policy::v1::{
    DecisionSummary, GetDecisionRequest, ListDecisionsRequest, ListSubjectsRequest, RequestState,
    RevokeGrantRequest,
};
use serde_json::json;
use tonic::{Code, Status};

use crate::documents::{gated, operation, request};
use crate::people::{OWNER, decline_all, grant_all};
use crate::support::{Running, World, decision};

async fn decisions(running: &Running, session: &[u8], only: bool) -> Vec<DecisionSummary> {
    let mut all = Vec::new();
    let mut page_token = String::new();
    loop {
        let message = ListDecisionsRequest {
            session: session.to_vec(),
            active_grants_only: only,
            page_size: 2,
            page_token,
        };
        let page = running.approvals.clone().list_decisions(message).await;
        let page = page.unwrap().into_inner();
        all.extend(page.decisions);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return all;
        }
    }
}

async fn get(
    running: &Running,
    session: &[u8],
    decision_ref: &str,
) -> Result<DecisionSummary, Status> {
    let message = GetDecisionRequest {
        session: session.to_vec(),
        decision_ref: decision_ref.to_owned(),
    };
    let answer = running.approvals.clone().get_decision(message).await?;
    Ok(answer.into_inner().decision.unwrap())
}

async fn revoke(
    running: &Running,
    session: &[u8],
    decision_ref: &str,
    number: u32,
) -> Result<(), Status> {
    let message = RevokeGrantRequest {
        session: session.to_vec(),
        decision_ref: decision_ref.to_owned(),
        operation_id: operation(number),
    };
    running.approvals.clone().revoke_grant(message).await?;
    Ok(())
}

#[tokio::test]
async fn a_person_sees_decisions_and_takes_a_grant_back() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let stranger = running.person("urn:person:stranger", 0x110).await;
    let plain = running.ask(&request("r1"), 1).await.unwrap();
    world.clock.advance(5);
    running.ask(&gated("r2"), 2).await.unwrap();
    let item = running.only_item(&person.session).await;
    world.clock.advance(5);
    let answer = grant_all(&person.session, &item);
    let approved = running.answer(&person, answer, 3).await.unwrap();
    running.ask(&gated("r3"), 4).await.unwrap();
    let item = running.only_item(&person.session).await;
    world.clock.advance(5);
    let answer = decline_all(&person.session, &item);
    running.answer(&person, answer, 5).await.unwrap();

    let all = decisions(&running, &person.session, false).await;
    let outcomes: Vec<_> = all.iter().map(|it| it.decision.as_str()).collect();
    assert_eq!(outcomes[0], "deny");
    assert!(
        all[0]
            .reason_codes
            .contains(&"APPROVAL_DECLINED".to_owned())
    );
    assert!(!all[0].denied_selectors.is_empty());
    assert_eq!(all.len(), 5);
    assert!(
        decisions(&running, &stranger.session, false)
            .await
            .is_empty()
    );
    let grants = decisions(&running, &person.session, true).await;
    let refs: Vec<_> = grants.iter().map(|it| it.decision_ref.as_str()).collect();
    let (plain_ref, approved_ref) = (decision(&plain), decision(&approved));
    let (plain_ref, approved_ref) = (&plain_ref["id"], &approved_ref["id"]);
    assert_eq!(
        refs,
        [approved_ref.as_str().unwrap(), plain_ref.as_str().unwrap()]
    );
    assert_eq!(grants[0].state(), RequestState::Issued);
    assert_eq!(grants[0].bundle_ref, approved.bundle_ref);
    assert!(grants[0].approval_ref.is_some());
    assert_eq!(grants[1].approval_ref, None);
    assert_eq!(
        grants[0].granted_selectors,
        ["delivery_date", "stakeholder"]
    );

    let hidden = refused(Code::NotFound, "DECISION_NOT_FOUND");
    let by_stranger = revoke(&running, &stranger.session, refs[0], 6).await;
    assert_eq!(refusal(by_stranger), hidden);
    revoke(&running, &person.session, refs[0], 7).await.unwrap();
    revoke(&running, &person.session, refs[0], 7).await.unwrap();
    assert!(world.issuer.has_revoked(refs[0]));
    assert!(!world.issuer.has_revoked(refs[1]));
    let status = running.look(&gated("r2")).await.unwrap();
    assert_eq!(
        (status.state(), status.bundle_ref),
        (RequestState::Revoked, None)
    );
    assert_eq!(decisions(&running, &person.session, true).await.len(), 1);
    let receipts = world.receipts.of("policy.revoke_grant");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].receipt["decision_ref"], refs[0]);
    let denied = all[0].decision_ref.as_str();
    let nothing = revoke(&running, &person.session, denied, 8).await;
    assert_eq!(
        refusal(nothing),
        refused(Code::FailedPrecondition, "GRANT_NOT_ACTIVE")
    );
    let ended = revoke(&running, &[1; 32], refs[1], 9).await;
    assert_eq!(
        refusal(ended),
        refused(Code::Unauthenticated, "SESSION_NOT_OPEN")
    );
}

#[tokio::test]
async fn a_person_learns_for_whom_and_by_which_tags_receipts_are_found() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let subjects = async |session: &[u8]| {
        let session = session.to_vec();
        let mut approvals = running.approvals.clone();
        let listed = approvals.list_subjects(ListSubjectsRequest { session });
        listed.await.map(|listed| listed.into_inner().subjects)
    };
    let person = running.person(OWNER, 0x100).await;
    let listed = subjects(&person.session).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].subject, request("r1")["subject_ref"]);
    running.ask(&request("r1"), 1).await.unwrap();
    let receipts = world.receipts.of("policy.decide");
    let tag = receipts[0].routing.subject_tag.as_deref();
    assert_eq!(tag, Some(listed[0].subject_tag.as_str()));
    let stranger = running.person("urn:person:stranger", 0x110).await;
    assert!(subjects(&stranger.session).await.unwrap().is_empty());
    assert_eq!(
        refusal(subjects(&[1; 32]).await),
        refused(Code::Unauthenticated, "SESSION_NOT_OPEN")
    );
}

#[tokio::test]
async fn a_revoked_decision_issues_nothing_and_the_issuer_learns_of_it_later() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    world
        .issuer
        .set_refusing(Some((Code::Unavailable, "SERVICE_UNAVAILABLE")));
    let status = running.ask(&request("r1"), 1).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
    let decided = decision(&status);
    let decision_ref = decided["id"].as_str().unwrap();
    revoke(&running, &person.session, decision_ref, 2)
        .await
        .unwrap();
    assert!(!world.issuer.has_revoked(decision_ref));
    // Neither is lost when the engine is.
    running.kill().await;
    world.issuer.set_refusing(None);
    let running = world.start().await;
    eventually("the issuer knows", || {
        world.issuer.has_revoked(decision_ref)
    })
    .await;
    let status = running.look(&request("r1")).await.unwrap();
    assert_eq!(status.state(), RequestState::Revoked);
    assert_eq!(world.issuer.issued(), 0);
}

#[tokio::test]
async fn a_revocation_holds_while_receipts_cannot_be_written() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let status = running.ask(&request("r1"), 1).await.unwrap();
    let decided = decision(&status);
    let decision_ref = decided["id"].as_str().unwrap();
    world.receipts.set_down(true);
    let revoked = revoke(&running, &person.session, decision_ref, 2).await;
    assert_eq!(
        refusal(revoked),
        refused(Code::Unavailable, "SERVICE_UNAVAILABLE")
    );
    assert!(world.issuer.has_revoked(decision_ref));
    // Nor does another call learn of it before its receipt is durable.
    let again = revoke(&running, &person.session, decision_ref, 3).await;
    assert_eq!(
        refusal(again),
        refused(Code::Unavailable, "SERVICE_UNAVAILABLE")
    );
    world.receipts.set_down(false);
    revoke(&running, &person.session, decision_ref, 2)
        .await
        .unwrap();
    assert_eq!(world.receipts.of("policy.revoke_grant").len(), 1);
}

#[tokio::test]
async fn refused_requests_of_a_stranger_hide_no_grant_from_a_person() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let stranger = running.person("urn:person:stranger", 0x110).await;
    let granted = running.ask(&request("r1"), 1).await.unwrap();
    let granted_ref = decision(&granted)["id"].as_str().unwrap().to_owned();
    for number in 0..60 {
        world.clock.advance(5);
        let mut refused = request(&format!("noise-{number}"));
        refused["selectors"] = json!([{"predicate": "medical_record"}]);
        refused["requested_actions"] = json!([]);
        let status = running.ask(&refused, 0x1000 + number).await.unwrap();
        assert_eq!(decision(&status)["decision"], "deny");
    }
    // One page has it: it is filled by what is shown.
    let message = ListDecisionsRequest {
        session: person.session.clone(),
        active_grants_only: true,
        ..ListDecisionsRequest::default()
    };
    let page = running.approvals.clone().list_decisions(message).await;
    let page = page.unwrap().into_inner().decisions;
    assert_eq!(page.len(), 1);
    assert_eq!(page[0].decision_ref, granted_ref);
    let found = get(&running, &person.session, &granted_ref).await.unwrap();
    assert_eq!(found, page[0]);
    let not_found = refused(Code::NotFound, "DECISION_NOT_FOUND");
    let foreign = get(&running, &stranger.session, &granted_ref).await;
    assert_eq!(refusal(foreign), not_found);
    revoke(&running, &person.session, &granted_ref, 0x2000)
        .await
        .unwrap();
    let found = get(&running, &person.session, &granted_ref).await.unwrap();
    assert!(!found.active_grant);
}
