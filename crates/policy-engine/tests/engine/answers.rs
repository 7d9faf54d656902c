//! Answers of people: what is shown, what is taken, and what follows.

use cl_model::artefact::{ApprovalDocument, Artefact, challenge};
use cl_model::passkey::RelyingParty;
use cl_testbed::{eventually, refusal, refused};
use cl_wire::policy::v1::{
    ApprovalState, GetApprovalRequest, ListPendingApprovalsRequest, RequestState, ScopeTreatment,
    SideEffect,
};
use serde_json::json;
use tonic::Code;

use crate::documents::{AGENT, DEVICE, SUBJECT, TENANT, gated, operation, request};
use crate::people::{OWNER, decline_all, grant_all};
use crate::requests::replay;
use crate::support::{ORIGIN, RP_ID, World, decision};

#[tokio::test]
async fn a_person_sees_everything_and_grants() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let mut asked = gated("r1");
    asked["requested_actions"] = json!(["email.create_draft", "email.send", "email.delete"]);
    let pending = running.ask(&asked, 1).await.unwrap();
    assert_eq!(pending.state(), RequestState::PendingApproval);

    let item = running.only_item(&person.session).await;
    assert_eq!(item.state(), ApprovalState::Pending);
    let summary = item.summary.clone().unwrap();
    assert_eq!(summary.subject, SUBJECT);
    assert_eq!(summary.requester, AGENT);
    assert_eq!(summary.recipient, "urn:model:drafting");
    assert_eq!(summary.purpose_code, "draft.response");
    assert_eq!(item.client_instance, DEVICE);
    assert_eq!(item.purpose, "draft a response");
    assert_eq!(item.task_kind, "draft_only");
    assert_eq!(item.onward_disclosure, "forbidden");
    assert_eq!(
        (item.retention_mode.as_str(), item.retention_seconds),
        ("ephemeral", 600)
    );
    assert_eq!(item.policy_version, "v1");
    assert!(!item.policy_changed);
    assert_eq!(item.receipt_level, "operation");
    assert_eq!(item.evidence_operations[0], "policy.approve");
    assert_eq!(item.reason_codes[0], "APPROVAL_REQUIRED");
    let selectors: Vec<_> = item
        .selectors
        .iter()
        .map(|it| {
            (
                it.predicate.as_str(),
                it.label.as_str(),
                it.sensitive,
                it.treatment(),
            )
        })
        .collect();
    assert_eq!(
        selectors,
        [
            ("delivery_date", "private", false, ScopeTreatment::Ordinary),
            ("stakeholder", "restricted", true, ScopeTreatment::Gated),
        ]
    );
    let actions: Vec<_> = item
        .actions
        .iter()
        .map(|it| (it.action.as_str(), it.side_effect(), it.treatment()))
        .collect();
    assert_eq!(
        actions,
        [
            (
                "email.create_draft",
                SideEffect::None,
                ScopeTreatment::Ordinary
            ),
            ("email.send", SideEffect::External, ScopeTreatment::Gated),
            ("email.delete", SideEffect::External, ScopeTreatment::Denied),
        ]
    );

    let open = running
        .begin_answer(grant_all(&person.session, &item))
        .await
        .unwrap();
    let ceremony = open.ceremony.unwrap();
    assert_eq!(ceremony.challenge, challenge(&open.approval));
    assert_eq!(open.credential_ids, [person.authenticator.id().to_vec()]);
    let document = ApprovalDocument::parse(&open.approval).unwrap();
    assert_eq!(document.request_digest.to_string(), item.request_digest);
    assert_eq!(document.policy_digest.to_string(), item.policy_digest);
    assert_eq!(document.approver.as_str(), OWNER);
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let status = running
        .finish_answer(&person.session, &ceremony, signed.clone(), 2)
        .await
        .unwrap();
    assert_eq!(status.state(), RequestState::Issued);
    let decided = decision(&status);
    assert_eq!(decided["decision"], "allow_with_reductions");
    assert_eq!(decided["approval_verification"], "verified");
    assert_eq!(
        decided["approval_binding"]["approval_ref"],
        summary.approval_ref
    );
    assert_eq!(
        decided["granted_actions"],
        json!(["email.create_draft", "email.send"])
    );
    assert_eq!(decided["denied_actions"], json!(["email.delete"]));
    assert_eq!(running.look(&asked).await.unwrap(), status);

    // The same call again gets the same answer, and nothing is done twice.
    let again = running
        .finish_answer(&person.session, &ceremony, signed, 2)
        .await;
    assert_eq!(again.unwrap(), status);
    let receipts = world.receipts.of("policy.approve");
    assert_eq!(receipts.len(), 1);
    let receipt = &receipts[0].receipt;
    assert_eq!(receipt["decision_ref"], decided["id"]);
    assert_eq!(receipt["request_ref"], asked["id"]);
    assert_eq!(receipt["metadata"]["approval_ref"], summary.approval_ref);
    assert_eq!(receipt["metadata"]["answer"], "granted");
    assert_eq!(receipt["outcome"], "success");
    let decides = world.receipts.of("policy.decide");
    assert_eq!(decides.len(), 2);
    assert_eq!(decides[1].receipt["decision_ref"], decided["id"]);
    assert_eq!(
        decides[1].receipt["metadata"]["approval_ref"],
        summary.approval_ref
    );
    assert!(running.queue(&person.session).await.unwrap().is_empty());
    let shown = running
        .item(&person.session, &summary.approval_ref)
        .await
        .unwrap();
    assert_eq!(shown.state(), ApprovalState::Answered);

    // What was signed is verified elsewhere, and the decision repeats from its recorded inputs.
    let decision_ref = decided["id"].as_str().unwrap().to_owned();
    let message = GetApprovalRequest {
        tenant: TENANT.to_owned(),
        decision_ref: decision_ref.clone(),
    };
    let exported = running
        .approvers
        .clone()
        .get_approval(message)
        .await
        .unwrap();
    let artefact = Artefact::parse(&exported.into_inner().artefact).unwrap();
    let console = RelyingParty::new(RP_ID, vec![ORIGIN.to_owned()]).unwrap();
    let verified = artefact.verify(&console).unwrap();
    assert_eq!(verified.document().id.as_str(), summary.approval_ref);
    let replayed = replay(&running, &decision_ref, operation(3)).await.unwrap();
    assert!(replayed.equal);
}

#[tokio::test]
async fn a_part_is_granted_and_the_rest_declined() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let mut asked = gated("r1");
    asked["requested_actions"] = json!(["email.create_draft", "email.send"]);
    running.ask(&asked, 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let mut answer = grant_all(&person.session, &item);
    answer.declined_actions = std::mem::take(&mut answer.granted_actions);
    let status = running.answer(&person, answer, 2).await.unwrap();
    let decided = decision(&status);
    assert_eq!(decided["decision"], "allow_with_reductions");
    assert_eq!(decided["granted_actions"], json!(["email.create_draft"]));
    assert_eq!(decided["denied_actions"], json!(["email.send"]));
    let predicates = json!([{"predicate": "delivery_date"}, {"predicate": "stakeholder"}]);
    assert_eq!(decided["granted_selectors"], predicates);
    let receipt = &world.receipts.of("policy.approve")[0].receipt;
    assert_eq!(receipt["metadata"]["answer"], "granted_in_part");
}

#[tokio::test]
async fn who_declines_everything_denies_for_good() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = decline_all(&person.session, &item);
    let status = running.answer(&person, answer, 2).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
    let decided = decision(&status);
    assert_eq!(decided["decision"], "deny");
    assert_eq!(
        decided["reason_codes"],
        json!(["SELECTORS_WITHHELD", "APPROVAL_DECLINED"])
    );
    assert_eq!(decided["granted_selectors"], json!([]));
    assert_eq!(running.ask(&gated("r1"), 3).await.unwrap(), status);
    let receipt = &world.receipts.of("policy.approve")[0].receipt;
    assert_eq!(receipt["metadata"]["answer"], "declined");
    let replayed = replay(&running, decided["id"].as_str().unwrap(), operation(4)).await;
    assert!(replayed.unwrap().equal);
}

#[tokio::test]
async fn an_answer_covers_exactly_the_gated_scope() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let mut asked = gated("r1");
    asked["requested_actions"] = json!(["email.create_draft", "email.send"]);
    running.ask(&asked, 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let good = grant_all(&person.session, &item);
    let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let incomplete = refused(Code::FailedPrecondition, "APPROVAL_SCOPE_INCOMPLETE");
    for (selectors, actions, declined) in [
        (&["stakeholder"][..], &[][..], &[][..]),
        (&[], &["email.send"], &[]),
        (&["stakeholder", "delivery_date"], &["email.send"], &[]),
        (&["stakeholder"], &["email.send", "email.create_draft"], &[]),
        (&["stakeholder"], &["email.send"], &["stakeholder"]),
        (&["timeline"], &["email.send"], &[]),
    ] {
        let mut answer = good.clone();
        answer.granted_selectors = names(selectors);
        answer.granted_actions = names(actions);
        answer.declined_selectors = names(declined);
        assert_eq!(refusal(running.begin_answer(answer).await), incomplete);
    }
    let mut twice = good.clone();
    twice.granted_selectors = names(&["stakeholder", "stakeholder"]);
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(refusal(running.begin_answer(twice).await), invalid);
    let mut other_page = good.clone();
    other_page.item_digest = format!("sha256:{}", "0".repeat(64));
    let changed = refused(Code::Aborted, "APPROVAL_CHANGED");
    assert_eq!(refusal(running.begin_answer(other_page).await), changed);
    assert!(running.begin_answer(good).await.is_ok());
}

#[tokio::test]
async fn people_see_and_answer_for_their_own_subjects_only() {
    let world = World::new().await;
    let running = world.ready().await;
    let owner = running.person(OWNER, 0x100).await;
    let stranger = running.person("urn:person:stranger", 0x110).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    running.ask(&request("r2"), 2).await.unwrap();
    let item = running.only_item(&owner.session).await;
    assert!(running.queue(&stranger.session).await.unwrap().is_empty());
    let approval_ref = item.summary.clone().unwrap().approval_ref;
    let hidden = refused(Code::NotFound, "APPROVAL_NOT_FOUND");
    let read = running.item(&stranger.session, &approval_ref).await;
    assert_eq!(refusal(read), hidden);
    let answer = grant_all(&stranger.session, &item);
    assert_eq!(refusal(running.begin_answer(answer).await), hidden);

    // A stranger's session does not finish what the owner has begun, nor does a stranger's passkey.
    let begun = running
        .begin_answer(grant_all(&owner.session, &item))
        .await
        .unwrap();
    let ceremony = begun.ceremony.unwrap();
    let signed = stranger.authenticator.sign(&ceremony.challenge).unwrap();
    let finished = running
        .finish_answer(&stranger.session, &ceremony, signed.clone(), 3)
        .await;
    assert_eq!(
        refusal(finished),
        refused(Code::FailedPrecondition, "CEREMONY_NOT_OPEN")
    );
    let finished = running
        .finish_answer(&owner.session, &ceremony, signed, 4)
        .await;
    assert_eq!(
        refusal(finished),
        refused(Code::PermissionDenied, "CREDENTIAL_OF_ANOTHER")
    );
    let receipts = world.receipts.of("policy.refuse_approval");
    assert_eq!(receipts.len(), 1);
    assert_eq!(
        receipts[0].receipt["metadata"]["reason"],
        "CREDENTIAL_OF_ANOTHER"
    );
    assert_eq!(receipts[0].receipt["outcome"], "failure");
    // The challenge is spent with that.
    let signed = owner.authenticator.sign(&ceremony.challenge).unwrap();
    let finished = running
        .finish_answer(&owner.session, &ceremony, signed, 5)
        .await;
    assert_eq!(
        refusal(finished),
        refused(Code::FailedPrecondition, "CEREMONY_NOT_OPEN")
    );
    assert_eq!(
        running.only_item(&owner.session).await.state(),
        ApprovalState::Pending
    );
}

#[tokio::test]
async fn queues_are_read_in_pages() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    for number in 0..5 {
        running
            .ask(&gated(&format!("r{number}")), 1 + number)
            .await
            .unwrap();
        world.clock.advance(2);
    }
    let all = running.queue(&person.session).await.unwrap();
    assert_eq!(all.len(), 5);
    let mut paged = Vec::new();
    let mut page_token = String::new();
    loop {
        let message = ListPendingApprovalsRequest {
            session: person.session.clone(),
            page_size: 2,
            page_token,
        };
        let page = running
            .approvals
            .clone()
            .list_pending_approvals(message)
            .await;
        let page = page.unwrap().into_inner();
        assert!(page.approvals.len() <= 2);
        paged.extend(page.approvals);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(paged, all);
}

#[tokio::test]
async fn a_page_of_what_has_run_out_is_not_the_last() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    for number in 0..3 {
        let mut asked = gated(&format!("r{number}"));
        if number < 2 {
            asked["expires_at"] = json!("2030-01-01T12:01:00Z");
        }
        running.ask(&asked, 1 + number).await.unwrap();
        world.clock.advance(2);
    }
    world.clock.advance(120_000);
    let mut message = ListPendingApprovalsRequest {
        session: person.session.clone(),
        page_size: 2,
        page_token: String::new(),
    };
    let mut approvals = running.approvals.clone();
    let page = approvals.list_pending_approvals(message.clone()).await;
    let page = page.unwrap().into_inner();
    assert!(page.approvals.is_empty());
    assert!(!page.next_page_token.is_empty());
    message.page_token = page.next_page_token;
    let page = approvals.list_pending_approvals(message).await;
    assert_eq!(page.unwrap().into_inner().approvals.len(), 1);
}

#[tokio::test]
async fn nothing_is_issued_before_the_receipt_of_the_answer_is_durable() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    world.receipts.set_down_for(Some("policy.approve"));
    let answer = grant_all(&person.session, &item);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    assert_eq!(refusal(running.answer(&person, answer, 2).await), unsettled);
    assert_eq!(refusal(running.look(&gated("r1")).await), unsettled);
    let receipts = world.receipts.clone();
    eventually("the other receipt", || {
        receipts.of("policy.decide").len() == 2
    })
    .await;
    let before = receipts.appends();
    eventually("more attempts", || receipts.appends() > before + 2).await;
    assert_eq!(world.issuer.issued(), 0);
    assert_eq!(refusal(running.look(&gated("r1")).await), unsettled);
    world.receipts.set_down_for(None);
    eventually("the bundle", || world.issuer.issued() == 1).await;
    assert_eq!(world.receipts.of("policy.approve").len(), 1);
}
