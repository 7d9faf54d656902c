//! What subjects delegate to requesters.

use cl_model::time::UnixTime;
use cl_testbed::{refusal, refused};
use cl_wire::policy::v1 as wire;
use cl_wire::time::to_message;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::cedar::in_cedar;
use crate::documents::{AGENT, NOW_MS, SUBJECT, TENANT, operation, request};
use crate::requests::replay;
use crate::support::{Running, World, decision};

/// Lets requesters have what the subject has delegated, and draft with it.
fn by_delegation(version: &str) -> Value {
    let mut document = in_cedar(version);
    document["cedar"]["policies"] = json!({
        "delegated": "permit (principal, action == Action::\"disclose\", resource) when {
            context has delegation && context.delegation.predicates.contains(resource) };",
        "drafting": "permit (principal, action == Action::\"act\",
            resource == Operation::\"email.create_draft\") when { context has delegation };",
        "never": "@reason(\"NEVER\") forbid (principal, action == Action::\"disclose\",
            resource == Predicate::\"stakeholder\");",
    });
    document
}

/// The usual delegation, for so many seconds.
fn delegation(predicates: &[&str], seconds: u64, number: u32) -> wire::SetDelegationRequest {
    let until = UnixTime::from_milliseconds(NOW_MS).plus_seconds(seconds);
    wire::SetDelegationRequest {
        tenant: TENANT.to_owned(),
        subject: SUBJECT.to_owned(),
        delegate: AGENT.to_owned(),
        purpose_codes: vec!["draft.response".to_owned()],
        predicates: predicates.iter().map(|it| (*it).to_owned()).collect(),
        expires_at: Some(to_message(until)),
        operation_id: operation(number),
    }
}

async fn set(
    running: &Running,
    message: wire::SetDelegationRequest,
) -> Result<Option<wire::Delegation>, Status> {
    let answer = running.admin.clone().set_delegation(message).await?;
    Ok(answer.into_inner().delegation)
}

async fn revoke(running: &Running, number: u32) -> Result<(), Status> {
    let message = wire::RevokeDelegationRequest {
        tenant: TENANT.to_owned(),
        subject: SUBJECT.to_owned(),
        delegate: AGENT.to_owned(),
        operation_id: operation(number),
    };
    running.admin.clone().revoke_delegation(message).await?;
    Ok(())
}

async fn listed(running: &Running, page_size: u32) -> Vec<wire::Delegation> {
    let mut message = wire::ListDelegationsRequest {
        tenant: TENANT.to_owned(),
        page_size,
        page_token: String::new(),
    };
    let mut found = Vec::new();
    loop {
        let mut admin = running.admin.clone();
        let page = admin.list_delegations(message.clone()).await;
        let page = page.unwrap().into_inner();
        found.extend(page.delegations);
        if page.next_page_token.is_empty() {
            return found;
        }
        message.page_token = page.next_page_token;
    }
}

async fn decide(running: &Running, request: &Value, number: u32) -> Value {
    decision(&running.ask(request, number).await.unwrap())
}

fn everything(tail: &str) -> Value {
    let mut request = request(tail);
    request["selectors"] = json!([{"predicate": "delivery_date"}, {"predicate": "stakeholder"}]);
    request
}

#[tokio::test]
async fn a_policy_in_cedar_grants_what_was_delegated_and_no_more() {
    let world = World::new().await;
    let running = world.start().await;
    running.activate_new(&by_delegation("v1"), None).await;
    let denied = decide(&running, &everything("r1"), 1).await;
    assert_eq!(denied["decision"], "deny");
    let both = delegation(&["delivery_date", "stakeholder"], 120, 0x20);
    set(&running, both).await.unwrap().unwrap();
    let granted = decide(&running, &everything("r2"), 2).await;
    assert_eq!(granted["decision"], "allow_with_reductions");
    assert_eq!(
        granted["granted_selectors"],
        json!([{"predicate": "delivery_date"}])
    );
    // The decision would hold for five minutes; the delegation does not.
    assert_eq!(granted["expires_at"], "2030-01-01T12:02:00.000Z");
    let mut other = everything("r3");
    other["purpose_code"] = json!("plan.task");
    assert_eq!(decide(&running, &other, 3).await["decision"], "deny");
    let mut other = everything("r4");
    other["subject_ref"] = json!("vault://subjects/other");
    assert_eq!(decide(&running, &other, 4).await["decision"], "deny");

    // It survives the process, is replaced, ends and is revoked.
    running.kill().await;
    let running = world.start().await;
    let again = decide(&running, &everything("r5"), 5).await;
    assert_eq!(again["granted_selectors"], granted["granted_selectors"]);
    set(&running, delegation(&["timeline"], 120, 0x21))
        .await
        .unwrap();
    assert_eq!(
        decide(&running, &everything("r6"), 6).await["decision"],
        "deny"
    );
    set(&running, delegation(&["delivery_date"], 120, 0x22))
        .await
        .unwrap();
    let last = decide(&running, &request("r7"), 7).await;
    assert_eq!(last["decision"], "allow");
    world.clock.advance(120_000);
    assert_eq!(
        decide(&running, &request("r8"), 8).await["decision"],
        "deny"
    );
    set(&running, delegation(&["delivery_date"], 600, 0x23))
        .await
        .unwrap();
    assert_eq!(
        decide(&running, &request("r9"), 9).await["decision"],
        "allow"
    );
    revoke(&running, 0x24).await.unwrap();
    assert_eq!(
        decide(&running, &request("r10"), 10).await["decision"],
        "deny"
    );
    // Each is repeated with what was delegated then.
    for (number, decided) in (0x30..).zip([&denied, &granted, &again, &last]) {
        let id = decided["id"].as_str().unwrap();
        assert!(replay(&running, id, operation(number)).await.unwrap().equal);
    }
}

#[tokio::test]
async fn a_list_style_policy_takes_no_notice() {
    let world = World::new().await;
    let running = world.ready().await;
    let mut asked = everything("r1");
    asked["selectors"] = json!([{"predicate": "delivery_date"}, {"predicate": "other"}]);
    let delegated = delegation(&["delivery_date", "other"], 30, 0x20);
    set(&running, delegated).await.unwrap();
    let decided = decide(&running, &asked, 1).await;
    assert_eq!(
        decided["granted_selectors"],
        json!([{"predicate": "delivery_date"}])
    );
    // Nor does its grant end with the delegation.
    assert_eq!(decided["expires_at"], "2030-01-01T12:05:00.000Z");
}

#[tokio::test]
async fn delegations_are_set_listed_and_revoked_with_receipts_of_their_subject() {
    let world = World::new().await;
    let running = world.ready().await;
    let first = delegation(&["timeline", "delivery_date"], 60, 0x20);
    let stored = set(&running, first.clone()).await.unwrap().unwrap();
    assert_eq!(stored.predicates, ["delivery_date", "timeline"]);
    assert_eq!(stored.expires_at, first.expires_at);
    // The same again, in another order and by another call, changes nothing.
    set(&running, first.clone()).await.unwrap();
    set(
        &running,
        delegation(&["delivery_date", "timeline"], 60, 0x21),
    )
    .await
    .unwrap();
    let conflict = set(&running, delegation(&["timeline"], 60, 0x20)).await;
    let expected = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    assert_eq!(refusal(conflict), expected);
    for (number, name) in (0x22..).zip(["urn:agent:a", "urn:agent:b"]) {
        let mut other = delegation(&["timeline"], 60, number);
        other.delegate = name.to_owned();
        set(&running, other).await.unwrap();
    }
    for page_size in [0, 1, 2] {
        let mut names: Vec<_> = listed(&running, page_size).await;
        names.sort_by(|one, other| one.delegate.cmp(&other.delegate));
        let names: Vec<_> = names.iter().map(|it| it.delegate.as_str()).collect();
        assert_eq!(names, ["urn:agent:a", "urn:agent:b", AGENT]);
    }
    let receipts = world.receipts.of("policy.delegate");
    assert_eq!(receipts.len(), 3);
    let tags: Vec<_> = receipts.iter().map(|it| &it.routing.subject_tag).collect();
    assert!(tags[0].is_some() && tags.iter().all(|tag| *tag == tags[0]));
    for recorded in &receipts {
        let text = recorded.receipt.to_string();
        for word in [SUBJECT, "urn:agent", "timeline"] {
            assert!(!text.contains(word), "{text}");
        }
    }
    let aliases: std::collections::BTreeSet<_> = receipts
        .iter()
        .map(|it| it.receipt["subject_ref"].to_string())
        .collect();
    assert_eq!(
        aliases.len(),
        3,
        "nobody can tell that they are of one subject"
    );
    revoke(&running, 0x30).await.unwrap();
    revoke(&running, 0x30).await.unwrap();
    let not_found = refused(Code::NotFound, "DELEGATION_NOT_FOUND");
    assert_eq!(refusal(revoke(&running, 0x31).await), not_found);
    assert_eq!(world.receipts.of("policy.revoke_delegation").len(), 1);
    assert_eq!(listed(&running, 0).await.len(), 2);
    // A late repeat does not bring it back.
    assert_eq!(set(&running, first).await.unwrap(), None);
}

#[tokio::test]
async fn refuses_what_delegates_nothing_and_changes_nothing_without_receipts() {
    let world = World::new().await;
    let running = world.ready().await;
    type Change = fn(&mut wire::SetDelegationRequest);
    let changes: [(&str, Change); 10] = [
        ("tenant", |it| it.tenant = "A".to_owned()),
        ("subject", |it| it.subject = "s".to_owned()),
        ("delegate", |it| it.delegate = "d".repeat(513)),
        ("purpose_codes", |it| it.purpose_codes.clear()),
        ("purpose_codes", |it| {
            it.purpose_codes = vec!["draft.*".to_owned()]
        }),
        ("predicates", |it| it.predicates = vec!["*".to_owned()]),
        ("predicates", |it| it.predicates = vec!["a".to_owned(); 2]),
        ("predicates", |it| {
            it.predicates = (0..65).map(|number| format!("p{number}")).collect();
        }),
        ("expires_at", |it| it.expires_at = None),
        ("operation_id", |it| it.operation_id.clear()),
    ];
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    for (field, change) in changes {
        let mut message = delegation(&["timeline"], 60, 0x20);
        change(&mut message);
        let error = set(&running, message).await.unwrap_err();
        assert_eq!(cl_wire::status::violations(&error)[0].field, field);
        assert_eq!(refusal::<()>(Err(error)), invalid);
    }
    for seconds in [0, 367 * 86_400] {
        let message = delegation(&["timeline"], seconds, 0x20);
        assert_eq!(refusal(set(&running, message).await), invalid);
    }
    world.receipts.set_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    let message = delegation(&["timeline"], 60, 0x20);
    assert_eq!(refusal(set(&running, message.clone()).await), away);
    world.receipts.set_down(false);
    assert!(listed(&running, 0).await.is_empty());
    set(&running, message).await.unwrap();
    world.receipts.set_down(true);
    assert_eq!(refusal(revoke(&running, 0x21).await), away);
    world.receipts.set_down(false);
    assert_eq!(listed(&running, 0).await.len(), 1);
}
