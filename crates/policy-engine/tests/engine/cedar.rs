//! Policies in Cedar, end to end.

use cl_model::grant::ResolvePlan;
use cl_model::json::read::FromJson;
use cl_testbed::{logs, refusal, refused};
use cl_wire::policy::v1::RequestState;
use serde_json::{Value, json};
use tonic::Code;

use crate::documents::{self, AGENT, DEVICE, SUBJECT, TENANT, operation, request, snapshot};
use crate::people::{OWNER, grant_all};
use crate::requests::replay;
use crate::support::{World, decision};

/// The ordinary snapshot with its policy in Cedar.
pub(crate) fn in_cedar(version: &str) -> Value {
    let mut document = snapshot(version);
    let members = document.as_object_mut().unwrap();
    members.remove("policy");
    members.insert(
        "cedar".to_owned(),
        json!({
            "policies": {
                "drafting": format!(
                    "permit (principal == Agent::\"{AGENT}\", action, resource)
                     when {{
                       context.subject == Subject::\"{SUBJECT}\" &&
                       context.client == Client::\"{DEVICE}\" &&
                       context.purpose == \"draft.response\"
                     }};"
                ),
                "no-sending": "@reason(\"SENDING_IS_OFF\")
                     forbid (principal, action == Action::\"act\", resource == Operation::\"email.send\");",
                "ask-about-people": "@approval @reason(\"PEOPLE_NEED_A_PERSON\")
                     forbid (principal, action == Action::\"disclose\", resource == Predicate::\"stakeholder\");",
                "timeline": "@transform(\"truncate:timeline:40\") @min_trust(\"verified\")
                     @min_confidence(\"0.75\") @max_label(\"public\") @reason(\"TIMELINE_REDUCED\")
                     forbid (principal, action == Action::\"disclose\", resource == Predicate::\"timeline\");",
            },
            "entities": [],
            "maximum_retention": {"mode": "ephemeral", "max_seconds": 86400},
            "require_receipts": true,
        }),
    );
    document
}

#[tokio::test]
async fn decides_grants_and_replays() {
    let world = World::new().await;
    let running = world.start().await;
    let digest = running.activate_new(&in_cedar("cedar-1"), None).await;
    let allowed = running.ask(&request("r1"), 1).await.unwrap();
    assert_eq!(allowed.state(), RequestState::Decided);
    let record = decision(&allowed);
    assert_eq!(record["decision"], "allow");
    assert_eq!(record["policy_snapshot"]["digest"], digest);
    let id = record["id"].as_str().unwrap();
    assert!(replay(&running, id, operation(2)).await.unwrap().equal);

    let mut reduced = request("r2");
    reduced["selectors"] = json!([{"predicate": "delivery_date"}, {"predicate": "timeline"}]);
    reduced["requested_actions"] = json!(["email.create_draft", "email.send"]);
    let status = running.ask(&reduced, 3).await.unwrap();
    let record = decision(&status);
    assert_eq!(record["decision"], "allow_with_reductions");
    assert_eq!(record["granted_actions"], json!(["email.create_draft"]));
    assert_eq!(
        record["transform_requirements"],
        json!(["truncate:timeline:40"])
    );
    assert_eq!(
        record["reason_codes"],
        json!([
            "SCOPE_REDUCED",
            "ACTIONS_WITHHELD",
            "SENDING_IS_OFF",
            "TIMELINE_REDUCED"
        ])
    );

    let gated = running.ask(&documents::gated("r3"), 4).await.unwrap();
    assert_eq!(gated.state(), RequestState::PendingApproval);
    assert_eq!(
        decision(&gated)["reason_codes"],
        json!(["APPROVAL_REQUIRED", "PEOPLE_NEED_A_PERSON"])
    );

    let mut other = request("r4");
    other["purpose_code"] = json!("plan.task");
    let denied = running.ask(&other, 5).await.unwrap();
    assert_eq!(decision(&denied)["decision"], "deny");
}

#[tokio::test]
async fn demands_travel_in_the_resolve_plan() {
    let world = World::new().await;
    let running = world.start().await;
    running.activate_new(&in_cedar("cedar-1"), None).await;
    let mut asked = request("r1");
    asked["selectors"] = json!([{"predicate": "delivery_date"}, {"predicate": "timeline"}]);
    let status = running.ask(&asked, 1).await.unwrap();
    let record = decision(&status);
    let id = record["id"].as_str().unwrap();
    let tenant = cl_policy_engine::core::operation::TenantName::parse(TENANT).unwrap();
    let recorded = running.store.decision(&tenant, id).unwrap().unwrap();
    let plan: Value = serde_json::from_slice(&recorded.grant.unwrap().plan.document).unwrap();
    let plan = ResolvePlan::from_json(&plan).unwrap();
    let rules: Vec<Value> = plan
        .rules
        .iter()
        .map(|rule| {
            json!([
                rule.predicate.as_str(),
                rule.max_label.as_str(),
                rule.min_trust.as_str(),
                rule.min_confidence.get(),
                rule.transforms.len(),
            ])
        })
        .collect();
    assert_eq!(
        rules,
        [
            json!(["delivery_date", "private", "untrusted", 0.0, 0]),
            json!(["timeline", "public", "verified", 0.75, 1]),
        ]
    );
}

#[tokio::test]
async fn refused_policies_are_named_and_never_repeated() {
    let world = World::new().await;
    let running = world.start().await;
    let active = running.activate_new(&in_cedar("cedar-1"), None).await;
    let texts = [
        ("POLICY_SYNTAX", "permit (principal, action, canarytext)"),
        (
            "POLICY_SCHEMA_MISMATCH",
            "permit (principal, action, resource) when { context.canarytext };",
        ),
        (
            "POLICY_ANNOTATION_INVALID",
            "@canarytext permit (principal, action, resource);",
        ),
        (
            "POLICY_NAME_UNREGISTERED",
            "permit (principal in Group::\"canarytext\", action, resource);",
        ),
    ];
    for (number, (rule, text)) in (10..).zip(texts) {
        let mut document = in_cedar("cedar-2");
        document["cedar"]["policies"]["mistake"] = json!(text);
        let error = running.put(TENANT, &document, number).await.unwrap_err();
        let violations = cl_wire::status::violations(&error);
        assert_eq!(violations[0].field, "snapshot.cedar.policies[mistake]");
        assert_eq!(violations[0].reason, rule);
        let shown = format!("{error:?}");
        assert!(!shown.contains("canarytext"), "{shown}");
        let expected = refused(Code::InvalidArgument, "INVALID_POLICY");
        assert_eq!(refusal::<()>(Err(error)), expected);
    }
    assert!(!logs().contains("canarytext"));

    // An entity that is described twice, in either order, and names that are spelled twice.
    let entity = |suspended: bool| {
        json!({
            "uid": {"type": "Agent", "id": AGENT}, "attrs": {"suspended": suspended},
            "parents": [],
        })
    };
    for (number, pair) in (20..).zip([[true, false], [false, true], [true, true]]) {
        let mut document = in_cedar("cedar-3");
        document["cedar"]["entities"] = json!(pair.map(entity));
        let error = running.put(TENANT, &document, number).await.unwrap_err();
        let violations = cl_wire::status::violations(&error);
        assert_eq!(violations[0].field, "snapshot.cedar.entities[1]");
        let expected = refused(Code::InvalidArgument, "INVALID_POLICY");
        assert_eq!(refusal::<()>(Err(error)), expected);
    }
    let status = running.ask(&request("r1"), 30).await.unwrap();
    assert_eq!(decision(&status)["policy_snapshot"]["digest"], active);
}

#[tokio::test]
async fn members_that_are_spelled_twice_refuse_the_snapshot() {
    let world = World::new().await;
    let running = world.start().await;
    let text = String::from_utf8(documents::bytes(&in_cedar("cedar-1"))).unwrap();
    let spelled = [
        text.replace("\"drafting\":", "\"no-sending\":"),
        text.replace("\"drafting\":", "\"no-sendin\\u0067\":"),
        text.replace(
            "\"entities\":[]",
            "\"entities\":[{\"uid\":{\"type\":\"Agent\",\"id\":\"a\"},\"parents\":[],\
             \"attrs\":{\"suspended\":true,\"\\u0073uspended\":false}}]",
        ),
    ];
    for (number, text) in (1..).zip(spelled) {
        let message = cl_wire::policy::v1::PutSnapshotRequest {
            tenant: TENANT.to_owned(),
            snapshot: text.into_bytes(),
            operation_id: operation(number),
            signature: None,
        };
        let refused_one = running.admin.clone().put_snapshot(message).await;
        let expected = refused(Code::InvalidArgument, "DUPLICATE_MEMBER");
        assert_eq!(refusal(refused_one), expected);
    }
}

#[tokio::test]
async fn what_was_declined_stays_declined_when_the_policy_asks_no_more() {
    for always in ["", "delivery_date"] {
        let world = World::new().await;
        let running = world.start().await;
        let mut document = in_cedar("cedar-1");
        let policies = document["cedar"]["policies"].as_object_mut().unwrap();
        let ask = |predicate: &str, condition: &str| {
            json!(format!(
                "@approval @reason(\"ASK\") forbid (principal, action == Action::\"disclose\",
                 resource == Predicate::\"{predicate}\") {condition};"
            ))
        };
        let until = "when { context.now < datetime(\"2030-01-01T12:02:00Z\") }";
        policies.insert("ask-about-people".to_owned(), ask("stakeholder", until));
        if !always.is_empty() {
            policies.insert("ask-always".to_owned(), ask(always, ""));
        }
        running.activate_new(&document, None).await;
        let person = running.person(OWNER, 0x100).await;
        running.ask(&documents::gated("r1"), 1).await.unwrap();
        let item = running.only_item(&person.session).await;
        let mut answer = grant_all(&person.session, &item);
        answer
            .granted_selectors
            .retain(|name| name != "stakeholder");
        answer.declined_selectors = vec!["stakeholder".to_owned()];
        let begun = running.begin_answer(answer.clone()).await.unwrap();
        let ceremony = begun.ceremony.unwrap();
        world.clock.advance(150_000);
        let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
        let finished = running
            .finish_answer(&person.session, &ceremony, signed, 2)
            .await;
        let changed = refused(Code::Aborted, "APPROVAL_CHANGED");
        assert_eq!(refusal(finished), changed);
        assert!(world.receipts.of("policy.approve").is_empty());
        // What was shown as gated is shown as ordinary by now: that is another item.
        assert_eq!(refusal(running.begin_answer(answer).await), changed);
        let approval_ref = &item.summary.unwrap().approval_ref;
        let anew = running.item(&person.session, approval_ref).await.unwrap();
        assert_ne!(anew.item_digest, item.item_digest);
    }
}

#[tokio::test]
async fn an_answer_counts_for_what_was_shown_also_where_it_was_denied() {
    let world = World::new().await;
    let running = world.start().await;
    let mut document = in_cedar("cedar-1");
    let policies = document["cedar"]["policies"].as_object_mut().unwrap();
    let on = |predicate: &str, annotations: &str, condition: &str| {
        json!(format!(
            "{annotations} forbid (principal, action == Action::\"disclose\",
             resource == Predicate::\"{predicate}\") {condition};"
        ))
    };
    let until = "when { context.now < datetime(\"2030-01-01T12:02:00Z\") }";
    policies.insert(
        "not-yet".to_owned(),
        on("timeline", "@reason(\"NOT_YET\")", until),
    );
    let ask = "@approval @reason(\"ASK\")";
    policies.insert("ask".to_owned(), on("delivery_date", ask, ""));
    running.activate_new(&document, None).await;
    let person = running.person(OWNER, 0x100).await;
    let mut asked = request("r1");
    asked["selectors"] = json!([{"predicate": "delivery_date"}, {"predicate": "timeline"}]);
    running.ask(&asked, 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let begun = running
        .begin_answer(grant_all(&person.session, &item))
        .await;
    let ceremony = begun.unwrap().ceremony.unwrap();
    world.clock.advance(150_000);
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let finished = running
        .finish_answer(&person.session, &ceremony, signed, 2)
        .await;
    let changed = refused(Code::Aborted, "APPROVAL_CHANGED");
    assert_eq!(refusal(finished), changed);
    assert!(world.receipts.of("policy.approve").is_empty());
}
