//! Anomaly states that operators set for requesters.

use cl_testbed::{refusal, refused};
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::RequestState;
use serde_json::json;
use tonic::{Code, Status};

use crate::cedar::in_cedar;
use crate::documents::{AGENT, TENANT, gated, operation, request};
use crate::examining::explain;
use crate::people::{OWNER, grant_all};
use crate::requests::replay;
use crate::support::{Running, World, decision};

async fn set(
    running: &Running,
    requester: &str,
    state: &str,
    number: u32,
) -> Result<Option<wire::AnomalyState>, Status> {
    let message = wire::SetAnomalyStateRequest {
        tenant: TENANT.to_owned(),
        requester: requester.to_owned(),
        state: state.to_owned(),
        operation_id: operation(number),
    };
    let answer = running.admin.clone().set_anomaly_state(message).await?;
    Ok(answer.into_inner().anomaly_state)
}

async fn clear(running: &Running, requester: &str, number: u32) -> Result<(), Status> {
    let message = wire::ClearAnomalyStateRequest {
        tenant: TENANT.to_owned(),
        requester: requester.to_owned(),
        operation_id: operation(number),
    };
    running.admin.clone().clear_anomaly_state(message).await?;
    Ok(())
}

async fn listed(running: &Running, page_size: u32) -> Vec<(String, String)> {
    let mut message = wire::ListAnomalyStatesRequest {
        tenant: TENANT.to_owned(),
        page_size,
        page_token: String::new(),
    };
    let mut found = Vec::new();
    loop {
        let mut admin = running.admin.clone();
        let page = admin.list_anomaly_states(message.clone()).await;
        let page = page.unwrap().into_inner();
        let states = page.anomaly_states.into_iter();
        found.extend(states.map(|it| (it.requester, it.state)));
        if page.next_page_token.is_empty() {
            found.sort();
            return found;
        }
        message.page_token = page.next_page_token;
    }
}

fn blocked() -> serde_json::Value {
    json!(["ANOMALY_STATE_BLOCKED"])
}

#[tokio::test]
async fn a_list_style_policy_denies_a_requester_while_it_has_a_state() {
    let world = World::new().await;
    let running = world.ready().await;
    let state = set(&running, AGENT, "elevated", 0x20).await.unwrap();
    assert_eq!(state.unwrap().state, "elevated");
    set(&running, "urn:agent:other", "elevated", 0x21)
        .await
        .unwrap();
    let denied = decision(&running.ask(&request("r1"), 1).await.unwrap());
    assert_eq!(denied["decision"], "deny");
    assert_eq!(denied["reason_codes"], blocked());
    let id = denied["id"].as_str().unwrap();
    let explained = explain(&running, id).await.unwrap();
    assert_eq!(explained.reasons[0].member, None);
    assert!(explained.reasons[0].words.contains("An operator"));

    // It survives the process, and a decision is repeated with what was set then.
    running.kill().await;
    let running = world.start().await;
    let denied = decision(&running.ask(&request("r2"), 2).await.unwrap());
    assert_eq!(denied["reason_codes"], blocked());
    clear(&running, AGENT, 0x22).await.unwrap();
    let allowed = decision(&running.ask(&request("r3"), 3).await.unwrap());
    assert_eq!(allowed["decision"], "allow");
    assert!(replay(&running, id, operation(4)).await.unwrap().equal);
    set(&running, AGENT, "elevated", 0x23).await.unwrap();
    let id = allowed["id"].as_str().unwrap();
    assert!(replay(&running, id, operation(5)).await.unwrap().equal);
}

#[tokio::test]
async fn a_policy_in_cedar_asks_for_the_state() {
    let world = World::new().await;
    let running = world.start().await;
    let mut document = in_cedar("v1");
    document["cedar"]["policies"]["calm"] = json!(
        "@reason(\"NOT_CALM\") forbid (principal, action, resource)
         when { context.anomaly_state == \"severe\" };"
    );
    running.activate_new(&document, None).await;
    set(&running, AGENT, "elevated", 0x20).await.unwrap();
    let allowed = decision(&running.ask(&request("r1"), 1).await.unwrap());
    assert_eq!(allowed["decision"], "allow");
    set(&running, AGENT, "severe", 0x21).await.unwrap();
    let denied = decision(&running.ask(&request("r2"), 2).await.unwrap());
    assert_eq!(denied["decision"], "deny");
    let reasons = denied["reason_codes"].as_array().unwrap();
    assert!(reasons.contains(&json!("NOT_CALM")), "{reasons:?}");
    for (number, decided) in (3..).zip([&allowed, &denied]) {
        let id = decided["id"].as_str().unwrap();
        assert!(replay(&running, id, operation(number)).await.unwrap().equal);
    }
}

#[tokio::test]
async fn a_state_that_is_set_while_a_person_looks_counts() {
    let world = World::new().await;
    let running = world.ready().await;
    let owner = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&owner.session).await;
    let answer = grant_all(&owner.session, &item);
    let open = running.begin_answer(answer).await.unwrap();
    let ceremony = open.ceremony.unwrap();
    set(&running, AGENT, "elevated", 0x20).await.unwrap();
    let signed = owner.authenticator.sign(&ceremony.challenge).unwrap();
    let finished = running.finish_answer(&owner.session, &ceremony, signed, 2);
    finished.await.unwrap_err();
    assert!(world.receipts.of("policy.approve").is_empty());
    let status = running.look(&gated("r1")).await.unwrap();
    assert_eq!(status.state(), RequestState::PendingApproval);
}

#[tokio::test]
async fn states_are_set_listed_and_cleared_with_receipts() {
    let world = World::new().await;
    let running = world.ready().await;
    for (number, name) in (0x20..).zip(["urn:agent:a", "urn:agent:b", "urn:agent:c"]) {
        set(&running, name, "elevated", number).await.unwrap();
    }
    let expected = |names: &[(&str, &str)]| {
        let names = names.iter();
        names
            .map(|(name, state)| ((*name).to_owned(), (*state).to_owned()))
            .collect::<Vec<_>>()
    };
    let all = expected(&[
        ("urn:agent:a", "elevated"),
        ("urn:agent:b", "elevated"),
        ("urn:agent:c", "elevated"),
    ]);
    assert_eq!(listed(&running, 2).await, all);
    assert_eq!(listed(&running, 1).await, all);
    // The same state again, and the same call again, change nothing.
    set(&running, "urn:agent:a", "elevated", 0x30)
        .await
        .unwrap();
    set(&running, "urn:agent:a", "elevated", 0x20)
        .await
        .unwrap();
    assert_eq!(world.receipts.of("policy.set_anomaly").len(), 3);
    let other = set(&running, "urn:agent:a", "severe", 0x20).await;
    let conflict = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    assert_eq!(refusal(other), conflict);
    set(&running, "urn:agent:a", "severe", 0x31).await.unwrap();
    // A late repeat does not bring back what was replaced.
    let late = set(&running, "urn:agent:a", "elevated", 0x20)
        .await
        .unwrap();
    assert_eq!(late.unwrap().state, "severe");
    clear(&running, "urn:agent:b", 0x32).await.unwrap();
    clear(&running, "urn:agent:b", 0x32).await.unwrap();
    let cleared = clear(&running, "urn:agent:b", 0x33).await;
    let not_found = refused(Code::NotFound, "ANOMALY_NOT_FOUND");
    assert_eq!(refusal(cleared), not_found);
    assert_eq!(world.receipts.of("policy.clear_anomaly").len(), 1);
    let late = set(&running, "urn:agent:b", "elevated", 0x21)
        .await
        .unwrap();
    assert_eq!(late, None);
    let left = expected(&[("urn:agent:a", "severe"), ("urn:agent:c", "elevated")]);
    assert_eq!(listed(&running, 0).await, left);
    // A receipt does not say about whom, nor can that be guessed from its digests.
    for recorded in world.receipts.of("policy.set_anomaly") {
        let text = recorded.receipt.to_string();
        assert!(!text.contains("urn:agent"), "{text}");
        assert!(!text.contains("elevated"), "{text}");
        let guess = json!(["policy.set_anomaly", "urn:agent:a", "elevated"]);
        let guess = cl_model::digest::Digest::of_json(&guess).to_string();
        assert!(!text.contains(&guess), "{text}");
    }
}

#[tokio::test]
async fn refuses_states_that_say_nothing_and_changes_nothing_without_receipts() {
    let world = World::new().await;
    let running = world.ready().await;
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    let long = "a".repeat(65);
    for state in ["", "normal", "Elevated", "two words", &long] {
        assert_eq!(refusal(set(&running, AGENT, state, 0x20).await), invalid);
    }
    for requester in ["", "ab", &"x".repeat(513)] {
        let set = set(&running, requester, "elevated", 0x20).await;
        assert_eq!(refusal(set), invalid);
        assert_eq!(refusal(clear(&running, requester, 0x20).await), invalid);
    }
    world.receipts.set_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    let set_now = set(&running, AGENT, "elevated", 0x20).await;
    assert_eq!(refusal(set_now), away);
    world.receipts.set_down(false);
    assert!(listed(&running, 0).await.is_empty());
    set(&running, AGENT, "elevated", 0x20).await.unwrap();
    world.receipts.set_down(true);
    assert_eq!(refusal(clear(&running, AGENT, 0x21).await), away);
    world.receipts.set_down(false);
    assert_eq!(listed(&running, 0).await.len(), 1);
    let message = wire::ListAnomalyStatesRequest {
        tenant: TENANT.to_owned(),
        page_size: 0,
        page_token: "?".to_owned(),
    };
    let page = running.admin.clone().list_anomaly_states(message).await;
    assert_eq!(refusal(page), invalid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_decision_is_older_than_a_state_whose_setting_had_returned() {
    let world = World::new().await;
    let (one, other) = (world.ready().await, world.start().await);
    for round in 0..20 {
        let number = 0x1000 + round * 8;
        let ask = |tail: &str, at: u32| {
            let request = request(&format!("{tail}{round}"));
            let running = if at.is_multiple_of(2) { &one } else { &other };
            async move {
                let status = running.ask(&request, number + at).await.unwrap();
                decision(&status)["decision"] == "allow"
            }
        };
        // Whatever comes of it, the decision that races is one of the two.
        let (racing, was_set) =
            tokio::join!(ask("racing", 0), set(&other, AGENT, "elevated", number + 1));
        was_set.unwrap();
        let _either = racing;
        assert!(!ask("set", 2).await);
        clear(&one, AGENT, number + 3).await.unwrap();
        assert!(ask("cleared", 5).await);
    }
}
