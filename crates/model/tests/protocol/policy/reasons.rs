//! Reasons that deny whatever is asked for.

use cl_model::policy::Preflight;
use serde_json::{Value, json};

use crate::fixture::{Case, at, now, remove};

type Change = fn(&mut Case);

/// One change of the allowed case, and all the reasons that it is denied for.
const REASONS: &[(&[&str], Change)] = &[
    (&["UNSUPPORTED_REQUEST"], |it| {
        it.request["spec_version"] = json!("context-layer/0.1-draft");
    }),
    (&["UNSUPPORTED_REQUEST"], |it| {
        it.request["type"] = json!("policy_decision");
    }),
    (&["UNSUPPORTED_REQUEST"], |it| {
        remove(&mut it.request, "spec_version");
    }),
    (&["REQUEST_ID_MISSING"], |it| remove(&mut it.request, "id")),
    (&["REQUEST_ID_MISSING"], |it| it.request["id"] = json!("")),
    (&["REQUEST_ID_MISSING"], |it| it.request["id"] = json!(7)),
    (&["SUBJECT_MISSING", "SUBJECT_NOT_AUTHORIZED"], |it| {
        remove(&mut it.request, "subject_ref");
    }),
    // Without a principal, nothing that hangs on it is looked at.
    (&["SUBJECT_MISSING", "REQUESTER_UNAUTHENTICATED"], |it| {
        remove(&mut it.request, "subject_ref");
        remove(&mut it.request, "requester");
    }),
    (&["REQUESTER_UNAUTHENTICATED"], |it| {
        it.policy["allowed_subjects"] = json!([]);
        it.policy["allowed_clients"] = json!([]);
        it.policy["allowed_requesters"] = json!([]);
        it.policy["allowed_authentication_methods"] = json!([]);
        it.request["requester"]["principal"] = json!("");
    }),
    (&["REQUESTER_UNAUTHENTICATED"], |it| {
        it.request["requester"] = json!(["urn:agent:drafting-helper"]);
    }),
    (&["REQUESTER_UNAUTHENTICATED"], |it| {
        it.request["requester"]["authenticated_by"] = json!("None");
    }),
    (&["REQUESTER_UNAUTHENTICATED"], |it| {
        it.request["requester"]["authenticated_by"] = json!("ANONYMOUS");
    }),
    (&["REQUESTER_UNAUTHENTICATED"], |it| {
        remove(&mut it.request["requester"], "authenticated_by");
    }),
    (&["SUBJECT_NOT_AUTHORIZED"], |it| {
        it.request["subject_ref"] = json!("urn:person:example.test:bo");
    }),
    (&["REQUESTER_NOT_AUTHORIZED"], |it| {
        it.request["requester"]["principal"] = json!("urn:agent:drafting-helper-2");
    }),
    (&["CLIENT_NOT_AUTHORIZED"], |it| {
        it.request["requester"]["client_instance"] = json!("urn:client:example.test");
    }),
    (&["CLIENT_NOT_AUTHORIZED"], |it| {
        remove(&mut it.request["requester"], "client_instance");
    }),
    (&["AUTHENTICATION_METHOD_NOT_ALLOWED"], |it| {
        it.policy["allowed_authentication_methods"] = json!(["passkey"]);
    }),
    (&["RECIPIENT_AMBIGUOUS"], |it| {
        remove(&mut it.request, "recipient");
    }),
    (&["RECIPIENT_AMBIGUOUS"], |it| {
        it.policy["allowed_recipients"] = json!([]);
        it.policy["allowed_onward_disclosure"] = json!([]);
        it.request["recipient"]["principal"] = Value::Null;
    }),
    (&["RECIPIENT_NOT_AUTHORIZED"], |it| {
        it.request["recipient"]["principal"] = json!("urn:agent:Drafting-Helper");
    }),
    (&["ONWARD_DISCLOSURE_NOT_ALLOWED"], |it| {
        it.request["recipient"]["onward_disclosure"] = json!("allowed");
    }),
    (&["ONWARD_DISCLOSURE_NOT_ALLOWED"], |it| {
        remove(&mut it.request["recipient"], "onward_disclosure");
    }),
    (&["PURPOSE_CODE_MISSING"], |it| {
        remove(&mut it.request, "purpose_code");
    }),
    (&["PURPOSE_CODE_MISSING"], |it| {
        it.request["purpose_code"] = json!(["draft.response"]);
    }),
    (&["PURPOSE_CODE_INVALID"], |it| {
        it.request["purpose_code"] = json!("Draft.Response");
    }),
    (&["PURPOSE_CODE_INVALID"], |it| {
        it.request["purpose_code"] = json!("draft.*");
    }),
    (&["PURPOSE_CODE_NOT_ALLOWED"], |it| {
        it.request["purpose_code"] = json!("plan.task");
    }),
    (&["PURPOSE_CODE_NOT_ALLOWED"], |it| {
        it.request["purpose_code"] = json!("x.draft.response");
    }),
    (&["PURPOSE_INVALID"], |it| {
        it.request["purpose"] = json!("ab")
    }),
    (&["PURPOSE_INVALID"], |it| {
        it.request["purpose"] = json!("\u{1F600}\u{1F600}");
    }),
    (&["PURPOSE_INVALID"], |it| {
        it.request["purpose"] = Value::Null
    }),
    (&["PURPOSE_INVALID"], |it| {
        it.request["purpose"] = json!("x".repeat(241));
    }),
    (&["TASK_NOT_ALLOWED"], |it| {
        it.request["task"]["kind"] = json!("letter");
    }),
    (&["REQUEST_EXPIRED"], |it| {
        it.now = at("2031-05-04T10:00:00Z")
    }),
    (&["REQUEST_EXPIRED"], |it| {
        it.request["expires_at"] = json!("2031-05-04T11:29:59.999+02:00");
    }),
    (&["REQUEST_EXPIRY_INVALID"], |it| {
        remove(&mut it.request, "expires_at");
    }),
    (&["REQUEST_EXPIRY_INVALID"], |it| {
        it.request["expires_at"] = json!("2032");
    }),
    (&["REQUEST_EXPIRY_INVALID"], |it| {
        it.request["expires_at"] = json!("2032-02-30T00:00:00Z");
    }),
    (&["REQUEST_EXPIRY_INVALID"], |it| {
        it.request["expires_at"] = json!(1_956_000_000);
    }),
    (&["RETENTION_MODE_NOT_ALLOWED"], |it| {
        it.request["retention"]["mode"] = json!("single_use");
    }),
    (&["RETENTION_MODE_NOT_ALLOWED"], |it| {
        it.request["retention"]["mode"] = json!("forever");
    }),
    (&["RATE_LIMIT_EXCEEDED"], |it| {
        it.policy["rate_limit_ok"] = json!(false);
    }),
    (&["ANOMALY_STATE_BLOCKED"], |it| {
        it.policy["anomaly_state"] = json!("elevated");
    }),
    (&["ANOMALY_STATE_BLOCKED"], |it| {
        it.policy["anomaly_state"] = json!([]);
    }),
    (&["SELECTORS_EMPTY"], |it| {
        it.request["selectors"] = json!([])
    }),
    (&["ACTIONS_EMPTY"], |it| {
        it.request["requested_actions"] = json!([]);
    }),
    (&["ACTIONS_EMPTY"], |it| {
        remove(&mut it.request, "requested_actions");
    }),
    // Not even a policy that lists the wildcard allows it.
    (&["SELECTOR_WILDCARD_NOT_ALLOWED"], |it| {
        it.policy["allowed_selectors"] = json!(["*"]);
        it.request["selectors"] = json!([{"predicate": "*"}]);
    }),
    (
        &["SELECTORS_WITHHELD", "SELECTOR_WILDCARD_NOT_ALLOWED"],
        |it| it.request["selectors"] = json!([{"predicate": "trip.dates"}, {"predicate": "*"}]),
    ),
    (&["ACTION_WILDCARD_NOT_ALLOWED"], |it| {
        it.policy["allowed_actions"] = json!(["*"]);
        it.request["requested_actions"] = json!(["*"]);
    }),
    (&["ACTIONS_WITHHELD", "ACTION_WILDCARD_NOT_ALLOWED"], |it| {
        it.request["requested_actions"] = json!(["*"]);
    }),
    (&["RECEIPT_PREFLIGHT_FAILED"], |it| {
        it.preflight = Preflight::Absent
    }),
    (&["RECEIPT_PREFLIGHT_FAILED"], |it| {
        it.preflight = Preflight::Unavailable;
    }),
];

#[test]
fn denies_for_each_reason_alone_and_grants_nothing() {
    for (index, (reasons, change)) in REASONS.iter().enumerate() {
        assert_eq!(Case::new().decision()["decision"], "allow");
        let case = Case::new().with(change);
        let decision = case.decision();
        let row = format!("row {index}: {reasons:?}");
        assert_eq!(decision["reason_codes"], json!(reasons), "{row}");
        assert_eq!(decision["decision"], "deny", "{row}");
        assert_eq!(decision["granted_selectors"], json!([]), "{row}");
        assert_eq!(decision["granted_actions"], json!([]), "{row}");
        assert_eq!(
            decision["denied_selectors"], case.request["selectors"],
            "{row}"
        );
        let actions = case.request.get("requested_actions").cloned();
        let denied = &decision["denied_actions"];
        assert_eq!(*denied, actions.unwrap_or(json!([])), "{row}");
        assert_eq!(
            decision["retention"],
            json!({"mode": "ephemeral", "max_seconds": 0}),
            "{row}"
        );
        assert_eq!(decision["onward_disclosure"], "forbidden", "{row}");
        assert_eq!(decision["transform_requirements"], json!([]), "{row}");
    }
}

#[test]
fn lists_every_reason_in_the_fixed_order() {
    let case = Case::new().with(|it| {
        it.preflight = Preflight::Unavailable;
        it.now = at("2031-05-04T10:00:00.001Z");
        it.policy["rate_limit_ok"] = json!(false);
        it.policy["anomaly_state"] = json!(true);
        it.policy["allowed_authentication_methods"] = json!(["passkey"]);
        it.request["type"] = json!("receipt");
        it.request["id"] = Value::Null;
        it.request["subject_ref"] = json!("urn:person:example.test:bo");
        it.request["requester"] = json!({
            "principal": "urn:agent:stranger",
            "authenticated_by": "none",
            "client_instance": "urn:client:elsewhere",
        });
        it.request["recipient"] =
            json!({"principal": "urn:agent:stranger", "onward_disclosure": "allowed"});
        it.request["purpose_code"] = json!("plan.task");
        it.request["purpose"] = json!("");
        it.request["task"]["kind"] = json!("letter.burn");
        it.request["retention"] = json!({"mode": "single_use", "max_seconds": 901});
        it.request["selectors"] = json!([{"predicate": "*"}]);
        it.request["requested_actions"] = json!(["*"]);
    });
    let expected = json!([
        "SELECTORS_WITHHELD",
        "ACTIONS_WITHHELD",
        "RETENTION_REDUCED",
        "UNSUPPORTED_REQUEST",
        "REQUEST_ID_MISSING",
        "REQUESTER_UNAUTHENTICATED",
        "SUBJECT_NOT_AUTHORIZED",
        "REQUESTER_NOT_AUTHORIZED",
        "CLIENT_NOT_AUTHORIZED",
        "AUTHENTICATION_METHOD_NOT_ALLOWED",
        "RECIPIENT_NOT_AUTHORIZED",
        "ONWARD_DISCLOSURE_NOT_ALLOWED",
        "PURPOSE_CODE_NOT_ALLOWED",
        "PURPOSE_INVALID",
        "TASK_NOT_ALLOWED",
        "REQUEST_EXPIRED",
        "RETENTION_MODE_NOT_ALLOWED",
        "RATE_LIMIT_EXCEEDED",
        "ANOMALY_STATE_BLOCKED",
        "SELECTOR_WILDCARD_NOT_ALLOWED",
        "ACTION_WILDCARD_NOT_ALLOWED",
        "RECEIPT_PREFLIGHT_FAILED",
    ]);
    assert_eq!(case.decision()["reason_codes"], expected);
}

#[test]
fn lists_every_missing_member_in_the_fixed_order() {
    let case = Case::new().with(|it| {
        let absent = [
            "spec_version",
            "id",
            "subject_ref",
            "requester",
            "recipient",
            "purpose_code",
            "requested_actions",
            "expires_at",
        ];
        absent.iter().for_each(|name| remove(&mut it.request, name));
        it.request["selectors"] = json!([]);
    });
    let decision = case.decision();
    let expected = json!([
        "UNSUPPORTED_REQUEST",
        "REQUEST_ID_MISSING",
        "SUBJECT_MISSING",
        "REQUESTER_UNAUTHENTICATED",
        "RECIPIENT_AMBIGUOUS",
        "PURPOSE_CODE_MISSING",
        "REQUEST_EXPIRY_INVALID",
        "SELECTORS_EMPTY",
        "ACTIONS_EMPTY",
    ]);
    assert_eq!(decision["reason_codes"], expected);
    assert_eq!(decision["request_ref"], "urn:cl:request:invalid");
    assert_eq!(decision["expires_at"], now().to_string());
}

#[test]
fn values_that_only_look_like_a_reason_do_not_deny() {
    let changes: &[Change] = &[
        |it| it.policy["rate_limit_ok"] = json!(0),
        |it| it.policy["rate_limit_ok"] = Value::Null,
        |it| it.policy["anomaly_state"] = json!("normal"),
        |it| it.policy["anomaly_state"] = json!(""),
        |it| it.policy["anomaly_state"] = json!(0.0),
        |it| it.policy["anomaly_state"] = json!(false),
        |it| it.policy["allowed_authentication_methods"] = json!(["passkey", "mtls"]),
        |it| remove(&mut it.request, "purpose"),
        |it| it.request["purpose"] = json!("\u{1F600}".repeat(240)),
        |it| it.now = at("2031-05-04T09:59:59.999Z"),
        |it| {
            it.preflight = Preflight::Absent;
            it.request["receipt_requirement"] = json!({"level": "none", "required": false});
        },
    ];
    for (index, change) in changes.iter().enumerate() {
        let decision = Case::new().with(change).decision();
        assert_eq!(decision["decision"], "allow", "row {index}");
        assert_eq!(
            decision["reason_codes"],
            json!(["REQUEST_ALLOWED"]),
            "row {index}"
        );
    }
}
