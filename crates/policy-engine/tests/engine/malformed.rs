//! What does not parse names its field and rule, and repeats nothing.

use cl_wire::policy::v1::{
    ListSnapshotsRequest, PutSnapshotRequest, ReplayDecisionRequest, SubmitRequestRequest,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::documents::{TENANT, bytes, operation, request, snapshot, submission};
use crate::support::World;

const CANARY: &str = "CANARY-3f9c";

/// Reason, field and rule of a malformed call.
fn violation(status: &Status) -> [String; 3] {
    assert_eq!(status.code(), Code::InvalidArgument);
    let shown = format!("{status:?}");
    assert!(!shown.contains(CANARY), "{shown}");
    let details = status.details();
    assert!(!details.windows(6).any(|window| window == b"CANARY"));
    let violations = cl_wire::status::violations(status);
    assert_eq!(violations.len(), 1);
    [
        cl_wire::status::reason(status).unwrap(),
        violations[0].field.clone(),
        violations[0].reason.clone(),
    ]
}

#[tokio::test]
async fn malformed_submissions_name_field_and_rule() {
    type Change = fn(&mut SubmitRequestRequest);
    fn document(message: &mut SubmitRequestRequest, change: impl FnOnce(&mut Value)) {
        let mut value = request("r1");
        change(&mut value);
        message.request = bytes(&value);
    }
    let cases: &[([&str; 3], Change)] = &[
        (["INVALID_FIELD", "tenant", "NOT_A_TENANT"], |it| {
            it.tenant = CANARY.to_owned();
        }),
        (
            ["INVALID_FIELD", "operation_id", "NOT_AN_OPERATION_ID"],
            |it| {
                it.operation_id = CANARY.to_owned();
            },
        ),
        (["INVALID_FIELD", "facts", "REQUIRED"], |it| it.facts = None),
        (
            ["INVALID_FIELD", "facts.principal", "LENGTH_OUT_OF_RANGE"],
            |it| {
                it.facts.as_mut().unwrap().principal = CANARY.repeat(60);
            },
        ),
        (["INVALID_FIELD", "facts.method", "NOT_A_METHOD"], |it| {
            it.facts.as_mut().unwrap().method = 0;
        }),
        (["INVALID_FIELD", "facts.assurance", "NOT_A_LEVEL"], |it| {
            it.facts.as_mut().unwrap().assurance = 99;
        }),
        (
            ["INVALID_FIELD", "facts.jwk_thumbprint", "NOT_A_THUMBPRINT"],
            |it| {
                use cl_wire::policy::v1::authenticated_facts::BoundKey;
                let key = BoundKey::JwkThumbprint(CANARY.to_owned());
                it.facts.as_mut().unwrap().bound_key = Some(key);
            },
        ),
        (["INVALID_JSON", "request", "INVALID_JSON"], |it| {
            it.request = CANARY.as_bytes().to_vec();
        }),
        (["DUPLICATE_MEMBER", "request", "DUPLICATE_MEMBER"], |it| {
            it.request = br#"{"CANARY-3f9c":1,"CANARY-3f9c":2}"#.to_vec();
        }),
        (["INVALID_FIELD", "request", "NOT_CANONICAL"], |it| {
            it.request.push(b' ');
        }),
        (["DOCUMENT_TOO_LARGE", "request", "TOO_LARGE"], |it| {
            it.request = vec![b' '; 1_048_577];
        }),
        (["INVALID_REQUEST", "request", "INVALID_REQUEST"], |it| {
            document(it, |request| request[CANARY] = json!(1));
        }),
        (
            [
                "INVALID_REQUEST",
                "request.selectors[1].predicate",
                "INVALID_REQUEST",
            ],
            |it| {
                document(it, |request| {
                    request["selectors"] =
                        json!([{"predicate": "delivery_date"}, {"predicate": CANARY}]);
                });
            },
        ),
        (
            ["INVALID_REQUEST", "request.expires_at", "INVALID_REQUEST"],
            |it| document(it, |request| request["expires_at"] = json!(CANARY)),
        ),
    ];
    let world = World::new().await;
    let running = world.ready().await;
    for (expected, change) in cases {
        let mut message = submission(&request("r1"), 1);
        change(&mut message);
        let error = running.submit(message).await.unwrap_err();
        assert_eq!(violation(&error), *expected);
    }
    assert!(world.receipts.of("policy.decide").is_empty());
}

#[tokio::test]
async fn malformed_admin_calls_name_field_and_rule() {
    let world = World::new().await;
    let running = world.start().await;
    let mut admin = running.admin.clone();
    let mut document = snapshot("v1");
    document["policy"]["allowed_tasks"] = json!(CANARY);
    let message = PutSnapshotRequest {
        tenant: TENANT.to_owned(),
        snapshot: bytes(&document),
        operation_id: operation(1),
        signature: None,
    };
    let error = admin.put_snapshot(message).await.unwrap_err();
    let expected = [
        "INVALID_POLICY",
        "snapshot.policy.allowed_tasks",
        "INVALID_POLICY",
    ];
    assert_eq!(violation(&error), expected);

    for (page_size, page_token, field, rule) in [
        (1001, "", "page_size", "OUT_OF_RANGE"),
        (1, "!CANARY-3f9c", "page_token", "NOT_A_PAGE_TOKEN"),
    ] {
        let message = ListSnapshotsRequest {
            tenant: TENANT.to_owned(),
            page_size,
            page_token: page_token.to_owned(),
        };
        let error = admin.list_snapshots(message).await.unwrap_err();
        assert_eq!(violation(&error), ["INVALID_FIELD", field, rule]);
    }
    let message = ReplayDecisionRequest {
        tenant: TENANT.to_owned(),
        decision_ref: CANARY.to_owned(),
        operation_id: operation(2),
    };
    let error = admin.replay_decision(message).await.unwrap_err();
    let expected = ["INVALID_FIELD", "decision_ref", "NOT_A_DECISION_ID"];
    assert_eq!(violation(&error), expected);
    let message = format!("{:?}", running.activate(TENANT, CANARY, None, 3).await);
    assert!(message.contains("digest") && !message.contains(CANARY));
}
