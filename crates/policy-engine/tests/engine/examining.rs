//! Looking into recorded decisions: lists, explanations, and simulations of another snapshot.

use cl_model::time::UnixTime;
use cl_testbed::{refusal, refused, within};
use cl_wire::policy::v1::{
    ApprovalServiceExplainDecisionRequest, DecisionExplanation, DecisionRange,
    ExplainDecisionRequest, ExplainedItem, ListRecordedDecisionsRequest, RuleEffect,
    ScopeTreatment, SimulateSnapshotRequest, SimulateSnapshotResponse,
};
use cl_wire::time::to_message;
use prost::Message as _;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::cedar::in_cedar;
use crate::documents::{self, NOW_MS, TENANT, bytes, gated, operation, request, snapshot};
use crate::people::{OWNER, grant_all};
use crate::requests::replay;
use crate::support::{Running, World, decision};

pub(crate) fn everything() -> DecisionRange {
    DecisionRange {
        tenant: TENANT.to_owned(),
        since: None,
        until: None,
    }
}

async fn decision_of(running: &Running, request: &Value, number: u32) -> String {
    let status = running.ask(request, number).await.unwrap();
    decision(&status)["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn explain(
    running: &Running,
    decision_ref: &str,
) -> Result<DecisionExplanation, Status> {
    let message = ExplainDecisionRequest {
        tenant: TENANT.to_owned(),
        decision_ref: decision_ref.to_owned(),
    };
    let mut admin = running.admin.clone();
    let answer = within("an explanation", admin.explain_decision(message)).await?;
    Ok(answer.into_inner().explanation.unwrap())
}

async fn explain_to(
    running: &Running,
    session: &[u8],
    decision_ref: &str,
) -> Result<DecisionExplanation, Status> {
    let message = ApprovalServiceExplainDecisionRequest {
        session: session.to_vec(),
        decision_ref: decision_ref.to_owned(),
    };
    let mut approvals = running.approvals.clone();
    let answer = within("an explanation", approvals.explain_decision(message)).await?;
    Ok(answer.into_inner().explanation.unwrap())
}

pub(crate) async fn simulate(
    running: &Running,
    snapshot: &Value,
    range: DecisionRange,
    page_size: u32,
    page_token: &str,
) -> Result<SimulateSnapshotResponse, Status> {
    let message = SimulateSnapshotRequest {
        range: Some(range),
        snapshot: bytes(snapshot),
        page_size,
        page_token: page_token.to_owned(),
    };
    let mut admin = running.admin.clone();
    let answer = within("a simulation", admin.simulate_snapshot(message)).await?;
    Ok(answer.into_inner())
}

async fn listed(running: &Running, range: DecisionRange, page_size: u32) -> Vec<String> {
    let mut found = Vec::new();
    let mut page_token = String::new();
    loop {
        let message = ListRecordedDecisionsRequest {
            range: Some(range.clone()),
            page_size,
            page_token,
        };
        let page = running.admin.clone().list_recorded_decisions(message).await;
        let page = page.unwrap().into_inner();
        found.extend(page.decisions.into_iter().map(|it| it.decision_ref));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return found;
        }
    }
}

fn rules(item: &ExplainedItem) -> Vec<(&str, RuleEffect, Option<&str>)> {
    let rules = item.rules.iter();
    rules
        .map(|rule| {
            (
                rule.name.as_str(),
                rule.effect(),
                rule.reason_code.as_deref(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_list_style_decision_is_explained_by_its_lists() {
    let world = World::new().await;
    let running = world.ready().await;
    let mut asked = gated("r1");
    asked["requested_actions"] = json!(["email.create_draft", "payment.send"]);
    let id = decision_of(&running, &asked, 1).await;
    let explained = explain(&running, &id).await.unwrap();
    assert_eq!(explained.decision_ref, id);
    assert_eq!(explained.decision, "needs_approval");
    let [ordinary, stakeholder] = &explained.selectors[..] else {
        panic!("two selectors");
    };
    assert_eq!(
        rules(ordinary),
        [("allowed_selectors", RuleEffect::Permit, None)]
    );
    assert_eq!(ordinary.treatment(), ScopeTreatment::Ordinary);
    assert!(!ordinary.granted);
    assert_eq!(
        rules(stakeholder),
        [("approval_required_selectors", RuleEffect::Demand, None)]
    );
    assert_eq!(stakeholder.rules[0].demands, ["approval"]);
    assert_eq!(stakeholder.treatment(), ScopeTreatment::Gated);
    assert_eq!(explained.actions[1].words, "No rule permits it.");
    assert!(explained.actions[1].rules.is_empty());

    let mut other = request("r2");
    other["purpose_code"] = json!("plan.task");
    let id = decision_of(&running, &other, 2).await;
    let explained = explain(&running, &id).await.unwrap();
    assert_eq!(explained.decision, "deny");
    let reason = &explained.reasons[0];
    assert_eq!(reason.reason_code, "PURPOSE_CODE_NOT_ALLOWED");
    assert_eq!(reason.member.as_deref(), Some("allowed_purpose_codes"));
    assert!(!explained.selectors[0].granted);
}

#[tokio::test]
async fn a_decision_in_cedar_is_explained_without_a_word_about_others() {
    let world = World::new().await;
    let running = world.start().await;
    let mut document = in_cedar("cedar-1");
    let policies = &mut document["cedar"]["policies"];
    // Rules about others, which the engine must not speak of.
    policies["for-canary-subject"] = json!(
        "permit (principal == Agent::\"urn:canary:requester\", action, resource)
         when { context.subject == Subject::\"vault://canary/subject\" &&
                context.recipient == Recipient::\"urn:canary:recipient\" };"
    );
    running.activate_new(&document, None).await;
    let mut asked = request("r1");
    asked["selectors"] = json!([{"predicate": "delivery_date"}, {"predicate": "timeline"}]);
    asked["requested_actions"] = json!(["email.create_draft", "email.send"]);
    let id = decision_of(&running, &asked, 1).await;
    let explained = explain(&running, &id).await.unwrap();
    assert_eq!(explained.decision, "allow_with_reductions");
    let timeline = &explained.selectors[1];
    assert!(timeline.granted);
    assert_eq!(
        rules(timeline),
        [
            ("drafting", RuleEffect::Permit, None),
            ("timeline", RuleEffect::Demand, Some("TIMELINE_REDUCED")),
        ]
    );
    assert_eq!(
        timeline.rules[1].demands,
        [
            "transform truncate:timeline:40",
            "max_label public",
            "min_trust verified",
            "min_confidence 0.75",
        ]
    );
    let sending = &explained.actions[1];
    assert_eq!(sending.words, "It is forbidden.");
    assert!(rules(sending).contains(&("no-sending", RuleEffect::Forbid, Some("SENDING_IS_OFF"))));
    let message = explained.encode_to_vec();
    let text = String::from_utf8_lossy(&message);
    for secret in [
        "canary",
        "permit (",
        "forbid (",
        documents::SUBJECT,
        documents::AGENT,
    ] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn people_are_told_about_their_own_subjects_only() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let owner = running.person(OWNER, 0x100).await;
    let stranger = running.person("urn:person:stranger", 0x110).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&owner.session).await;
    let answer = grant_all(&owner.session, &item);
    let status = running.answer(&owner, answer, 2).await.unwrap();
    let id = decision(&status)["id"].as_str().unwrap().to_owned();
    let explained = explain_to(&running, &owner.session, &id).await.unwrap();
    let stakeholder = &explained.selectors[1];
    assert!(stakeholder.granted);
    assert_eq!(
        stakeholder.words,
        "It needs a person's approval, which was given."
    );
    let not_found = refused(Code::NotFound, "DECISION_NOT_FOUND");
    let to_stranger = explain_to(&running, &stranger.session, &id).await;
    assert_eq!(refusal(to_stranger), not_found);
    // Nobody learns from the answer whether there is such a decision.
    let of_nothing = explain_to(&running, &owner.session, "urn:cl:decision:none").await;
    assert_eq!(refusal(of_nothing), not_found);
    let without_session = explain_to(&running, &[7; 32], &id).await;
    assert_eq!(
        refusal(without_session),
        refused(Code::Unauthenticated, "SESSION_NOT_OPEN")
    );
}

#[tokio::test]
async fn a_simulation_says_what_would_change_and_changes_nothing() {
    let world = World::with_issuer().await;
    let running = world.ready().await;
    let owner = running.person(OWNER, 0x100).await;
    let plain = decision_of(&running, &request("r1"), 1).await;
    world.clock.advance(1000);
    running.ask(&gated("r2"), 2).await.unwrap();
    let item = running.only_item(&owner.session).await;
    world.clock.advance(1000);
    let answer = grant_all(&owner.session, &item);
    let approved = running.answer(&owner, answer, 3).await.unwrap();
    let approved = decision(&approved)["id"].as_str().unwrap().to_owned();
    let receipts = world.receipts.of("policy.decide").len();

    // The same rules under another name: what a person approved counts.
    let same = simulate(&running, &snapshot("v2"), everything(), 0, "")
        .await
        .unwrap();
    assert_eq!((same.evaluated, same.differences.len()), (3, 0));

    let mut stricter = snapshot("v3");
    stricter["policy"]["approval_required_selectors"] = json!([]);
    stricter["policy"]["maximum_retention"]["max_seconds"] = json!(60);
    let found = simulate(&running, &stricter, everything(), 0, "")
        .await
        .unwrap();
    assert_eq!(found.evaluated, 3);
    assert_eq!(found.differences.len(), 3);
    let newest = &found.differences[0];
    assert_eq!(newest.decision_ref, approved);
    assert_eq!(newest.recorded_decision, "allow");
    assert_eq!(newest.other_decision, "allow_with_reductions");
    assert_eq!(newest.lost_selectors, ["stakeholder"]);
    let oldest = &found.differences[2];
    assert_eq!(oldest.decision_ref, plain);
    assert!(oldest.changed_members.contains(&"retention".to_owned()));
    let text = String::from_utf8_lossy(&found.encode_to_vec()).into_owned();
    for secret in [documents::SUBJECT, documents::AGENT, documents::DEVICE] {
        assert!(!text.contains(secret), "{secret}");
    }

    // A limit that no member of a decision states.
    let mut distrustful = snapshot("v4");
    distrustful["resolve"]["delivery_date"] = json!({"min_trust": "verified"});
    let found = simulate(&running, &distrustful, everything(), 0, "")
        .await
        .unwrap();
    assert!(
        found
            .differences
            .iter()
            .all(|it| it.changed_members == ["claim_limits"])
    );
    assert_eq!(found.differences.len(), 2);

    // In Cedar, with a policy that fails for nobody here and forbids everybody.
    let mut closed = in_cedar("v5");
    closed["cedar"]["policies"] = json!({});
    let found = simulate(&running, &closed, everything(), 0, "")
        .await
        .unwrap();
    assert!(
        found
            .differences
            .iter()
            .all(|it| it.other_decision == "deny")
    );

    // Nothing was stored, decided or receipted.
    assert_eq!(world.receipts.of("policy.decide").len(), receipts);
    assert_eq!(listed(&running, everything(), 0).await.len(), 3);
    let mut admin = running.admin.clone();
    let stored = admin.list_snapshots(cl_wire::policy::v1::ListSnapshotsRequest {
        tenant: TENANT.to_owned(),
        page_size: 0,
        page_token: String::new(),
    });
    assert_eq!(stored.await.unwrap().into_inner().total_size, 1);
}

#[tokio::test]
async fn a_range_is_paged_newest_first_and_bounded_on_both_sides() {
    let world = World::new().await;
    let running = world.ready().await;
    let mut made = Vec::new();
    for number in 1..=5_u32 {
        made.push(decision_of(&running, &request(&format!("r{number}")), number).await);
        world.clock.advance(1000);
    }
    made.reverse();
    for page_size in [0, 1, 2, 5] {
        assert_eq!(listed(&running, everything(), page_size).await, made);
    }
    let at = |unix_ms| to_message(UnixTime::from_milliseconds(unix_ms));
    let within = DecisionRange {
        since: Some(at(NOW_MS + 1000)),
        until: Some(at(NOW_MS + 3000)),
        ..everything()
    };
    // `since` is included, `until` is not.
    for page_size in [1, 2, 0] {
        assert_eq!(
            listed(&running, within.clone(), page_size).await,
            made[2..4]
        );
    }
    let first = simulate(&running, &snapshot("v2"), everything(), 2, "")
        .await
        .unwrap();
    assert_eq!(first.evaluated, 2);
    let token = first.next_page_token;
    let rest = simulate(&running, &snapshot("v2"), everything(), 100, &token).await;
    assert_eq!(rest.unwrap().evaluated, 3);
    let other_tenant = DecisionRange {
        tenant: "elsewhere".to_owned(),
        ..everything()
    };
    assert!(listed(&running, other_tenant, 0).await.is_empty());
}

#[tokio::test]
async fn refuses_what_it_cannot_read() {
    let world = World::new().await;
    let running = world.ready().await;
    let id = decision_of(&running, &request("r1"), 1).await;
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    for page_token in ["!", "AAAA", "WzEsMV0"] {
        let found = simulate(&running, &snapshot("v2"), everything(), 0, page_token).await;
        assert_eq!(refusal(found), invalid, "{page_token}");
    }
    let too_many = simulate(&running, &snapshot("v2"), everything(), 1001, "").await;
    assert_eq!(refusal(too_many), invalid);
    let mut stamp = to_message(UnixTime::from_milliseconds(0));
    stamp.nanos = -1;
    let malformed = DecisionRange {
        since: Some(stamp),
        ..everything()
    };
    let found = simulate(&running, &snapshot("v2"), malformed, 0, "").await;
    assert_eq!(refusal(found), invalid);
    let mut unknown = snapshot("v2");
    unknown["delegations"] = json!([]);
    let found = simulate(&running, &unknown, everything(), 0, "").await;
    assert_eq!(
        refusal(found),
        refused(Code::InvalidArgument, "INVALID_POLICY")
    );
    assert_eq!(refusal(explain(&running, "none").await), invalid);
    let unknown = explain(&running, "urn:cl:decision:none").await;
    assert_eq!(
        refusal(unknown),
        refused(Code::NotFound, "DECISION_NOT_FOUND")
    );
    // The id of a decision is a part of the tenant's own.
    let message = ExplainDecisionRequest {
        tenant: "elsewhere".to_owned(),
        decision_ref: id,
    };
    let found = running.admin.clone().explain_decision(message).await;
    assert_eq!(
        refusal(found),
        refused(Code::NotFound, "DECISION_NOT_FOUND")
    );
}

#[tokio::test]
async fn a_thousand_decisions_come_out_as_they_were_recorded() {
    const COUNT: u32 = 1000;
    let world = World::new().await;
    let running = world.start().await;
    running.activate_new(&in_cedar("cedar-1"), None).await;
    for number in 1..=COUNT {
        let tail = format!("r{number}");
        let mut asked = if number % 3 == 0 {
            gated(&tail)
        } else {
            request(&tail)
        };
        if number % 5 == 0 {
            asked["purpose_code"] = json!("plan.task");
        }
        if number % 7 == 0 {
            asked["retention"]["max_seconds"] = json!(number);
        }
        running.ask(&asked, number).await.unwrap();
        world.clock.advance(1);
    }
    // Whatever is active meanwhile, and after a restart.
    let active = snapshot("v2");
    let current = in_cedar("cedar-1");
    let current = cl_model::digest::Digest::of_json(&current).to_string();
    running.activate_new(&active, Some(&current)).await;
    running.kill().await;
    let running = world.start().await;
    let all = listed(&running, everything(), 300).await;
    assert_eq!(all.len(), usize::try_from(COUNT).unwrap());
    for (number, id) in (0x10_000..).zip(&all) {
        let replayed = replay(&running, id, operation(number)).await.unwrap();
        assert!(replayed.equal, "{id}");
        assert_eq!(replayed.decision, replayed.recorded_decision);
    }
}
