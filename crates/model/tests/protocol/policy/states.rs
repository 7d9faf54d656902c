//! The four states, and what a decision says in each.

use cl_model::digest::Digest;
use cl_model::policy::{ApprovalRule, Preflight};
use cl_model::record;
use cl_model::refusal::Code;
use cl_model::time::UnixTime;
use cl_model::urn::DecisionId;
use serde_json::{Value, json};

use crate::fixture::{Case, at, now, refused, remove};

fn selectors(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| json!({"predicate": name}))
        .collect()
}

#[test]
fn allows_with_every_member_in_place() {
    let case = Case::new();
    let expected = json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "policy_decision",
        "created_at": "2031-05-04T09:30:00.000Z",
        "issuer": {"id": "urn:cl:policy-engine:example.test"},
        "request_ref": "urn:cl:request:trip-reply-7",
        "request_digest": Digest::of_json(&case.request).to_string(),
        "decision": "allow",
        "policy_snapshot": {
            "version": "journeys-3",
            "digest": Digest::of_json(&case.policy).to_string(),
        },
        "granted_selectors": selectors(&["trip.destination", "trip.dates"]),
        "denied_selectors": [],
        "granted_actions": ["letter.draft", "memory.propose"],
        "denied_actions": [],
        "transform_requirements": [],
        "bundle_instructions": ["Use the context for this letter only."],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "onward_disclosure": "forbidden",
        "receipt_requirement": {"level": "operation", "required": true},
        "receipt_preflight": {"required": true, "status": "available"},
        "approval_verification": "not_required",
        "approval_binding": null,
        "expires_at": "2031-05-04T09:35:00.000Z",
        "reason_codes": ["REQUEST_ALLOWED"],
    });
    let expected = record::finalize(expected, DecisionId::PREFIX).expect("a record");
    assert_eq!(case.decision(), expected.into_value());
}

#[test]
fn equal_inputs_give_equal_bytes() {
    let bytes = || {
        Case::approved()
            .evaluate()
            .expect("a decision")
            .text()
            .to_owned()
    };
    assert_eq!(bytes(), bytes());
    let later = Case::approved().with(|it| it.now = now().plus_seconds(1));
    assert_ne!(bytes(), later.evaluate().expect("a decision").text());
}

/// Each row adds a ground to all of the rows above it, and the new ground decides.
#[test]
fn a_stronger_ground_wins_over_all_weaker_ones() {
    type Change = fn(&mut Case);
    let steps: &[(&str, &[&str], Change)] = &[
        ("allow", &["REQUEST_ALLOWED"], |_| ()),
        ("allow_with_reductions", &["SCOPE_REDUCED"], |it| {
            it.policy["transforms"] = json!({"trip.dates": ["compress:task-facts"]});
        }),
        (
            "allow_with_reductions",
            &["SCOPE_REDUCED", "RETENTION_REDUCED"],
            |it| it.request["retention"]["max_seconds"] = json!(901),
        ),
        (
            "allow_with_reductions",
            &[
                "SCOPE_REDUCED",
                "SELECTORS_WITHHELD",
                "ACTIONS_WITHHELD",
                "RETENTION_REDUCED",
            ],
            |it| {
                it.ask(
                    &["pet.name", "trip.dates"],
                    &["letter.burn", "letter.draft"],
                )
            },
        ),
        (
            "deny",
            &[
                "SELECTORS_WITHHELD",
                "ACTIONS_WITHHELD",
                "RETENTION_REDUCED",
                "NO_SELECTOR_GRANTED",
                "NO_ACTION_GRANTED",
            ],
            |it| it.ask(&["pet.name"], &["letter.burn"]),
        ),
        (
            "needs_approval",
            &[
                "APPROVAL_REQUIRED",
                "SELECTORS_WITHHELD",
                "ACTIONS_WITHHELD",
                "RETENTION_REDUCED",
            ],
            |it| it.ask(&["pet.name", "home.address"], &["letter.burn"]),
        ),
        (
            "deny",
            &[
                "SELECTORS_WITHHELD",
                "ACTIONS_WITHHELD",
                "RETENTION_REDUCED",
                "RATE_LIMIT_EXCEEDED",
            ],
            |it| it.policy["rate_limit_ok"] = json!(false),
        ),
    ];
    let mut case = Case::new();
    for (state, reasons, change) in steps {
        case = case.with(change);
        let decision = case.decision();
        assert_eq!(decision["decision"], *state, "{reasons:?}");
        assert_eq!(decision["reason_codes"], json!(reasons));
    }
}

#[test]
fn either_empty_grant_denies_with_its_own_reason() {
    for (selectors, actions, reasons) in [
        (
            ["pet.name"],
            ["letter.draft"],
            ["SELECTORS_WITHHELD", "NO_SELECTOR_GRANTED"],
        ),
        (
            ["trip.dates"],
            ["letter.burn"],
            ["ACTIONS_WITHHELD", "NO_ACTION_GRANTED"],
        ),
    ] {
        let decision = Case::new()
            .with(|it| it.ask(&selectors, &actions))
            .decision();
        assert_eq!(decision["decision"], "deny");
        assert_eq!(decision["reason_codes"], json!(reasons));
        assert_eq!(decision["denied_actions"], json!(actions));
    }
}

#[test]
fn needing_approval_leaves_ordinary_scope_in_neither_array() {
    let decision = Case::gated()
        .with(|it| {
            it.ask(
                &["home.address", "pet.name", "trip.dates", "health.allergy"],
                &["calendar.hold", "letter.draft", "letter.burn"],
            );
        })
        .decision();
    assert_eq!(decision["decision"], "needs_approval");
    assert_eq!(decision["granted_selectors"], json!([]));
    assert_eq!(decision["granted_actions"], json!([]));
    assert_eq!(
        decision["denied_selectors"],
        selectors(&["pet.name", "home.address", "health.allergy"])
    );
    assert_eq!(
        decision["denied_actions"],
        json!(["letter.burn", "calendar.hold"])
    );
    assert_eq!(decision["retention"]["max_seconds"], 0);
    assert_eq!(decision["approval_verification"], "not_provided");
    assert_eq!(decision["approval_binding"], Value::Null);
}

#[test]
fn grants_ordinary_scope_first_in_request_order() {
    let decision = Case::approved().decision();
    assert_eq!(decision["decision"], "allow");
    assert_eq!(
        decision["granted_selectors"],
        selectors(&["trip.dates", "health.allergy", "home.address"])
    );
    assert_eq!(
        decision["granted_actions"],
        json!(["letter.draft", "calendar.hold"])
    );
    assert_eq!(decision["denied_selectors"], json!([]));
}

#[test]
fn retention_is_the_smaller_of_request_and_policy() {
    for (asked, allowed, seconds, state) in [
        (600, 900, 600, "allow"),
        (900, 900, 900, "allow"),
        (901, 900, 900, "allow_with_reductions"),
        (86_400, 9_000_000, 86_400, "allow"),
        (1, 1, 1, "allow"),
    ] {
        let decision = Case::new()
            .with(|it| {
                it.request["retention"]["max_seconds"] = json!(asked);
                it.policy["maximum_retention"]["max_seconds"] = json!(allowed);
            })
            .decision();
        let retention = json!({"mode": "ephemeral", "max_seconds": seconds});
        assert_eq!(decision["retention"], retention, "{asked} of {allowed}");
        assert_eq!(decision["decision"], state, "{asked} of {allowed}");
    }
}

#[test]
fn ends_with_the_earliest_of_request_policy_and_approval() {
    type Change = fn(&mut Case);
    let rows: &[(&str, Change)] = &[
        // The approval, though it starts before the other two end.
        ("2031-05-04T09:34:00.000Z", |_| ()),
        ("2031-05-04T09:31:40.000Z", |it| {
            it.policy["decision_ttl_seconds"] = json!(100);
            it.approve(&["home.address", "health.allergy"], &["calendar.hold"]);
        }),
        ("2031-05-04T09:30:00.001Z", |it| {
            it.request["expires_at"] = json!("2031-05-04T11:30:00.0019+02:00");
            it.approve(&["home.address", "health.allergy"], &["calendar.hold"]);
        }),
        // An approval that does not hold does not count.
        ("2031-05-04T09:35:00.000Z", |it| {
            it.approval["id"] = json!(1)
        }),
        // Without a lifetime of its own, a decision lives five minutes.
        ("2031-05-04T09:35:00.000Z", |it| {
            remove(&mut it.policy, "decision_ttl_seconds");
            it.approval = Value::Null;
        }),
    ];
    for (index, (expected, change)) in rows.iter().enumerate() {
        let decision = Case::approved().with(change).decision();
        assert_eq!(decision["expires_at"], *expected, "row {index}");
    }
}

#[test]
fn a_lifetime_beyond_the_end_of_time_saturates() {
    let case = Case::new().with(|it| {
        it.now = UnixTime::from_milliseconds(at("9999-12-31T23:59:59Z").milliseconds());
        it.request["expires_at"] = json!("9999-12-31T23:59:59.999Z");
        it.policy["decision_ttl_seconds"] = json!(9_007_199_254_740_991_u64);
    });
    let decision = case.decision();
    assert_eq!(decision["decision"], "allow");
    assert_eq!(decision["expires_at"], "9999-12-31T23:59:59.999Z");
}

#[test]
fn policy_upgrades_the_receipt_requirement_and_never_lowers_it() {
    let none = json!({"level": "none", "required": false});
    let decision = json!({"level": "decision", "required": true});
    let operation = json!({"level": "operation", "required": true});
    for (asked, requires, expected) in [
        (&none, json!(true), &operation),
        (&none, json!(false), &none),
        (&decision, json!(true), &decision),
        (&decision, json!(false), &decision),
        (&operation, json!(true), &operation),
    ] {
        let case = Case::new().with(|it| {
            it.request["receipt_requirement"] = asked.clone();
            it.policy["require_receipts"] = requires.clone();
        });
        assert_eq!(
            case.decision()["receipt_requirement"],
            *expected,
            "{asked} {requires}"
        );
    }
}

#[test]
fn preflight_is_asked_for_only_where_receipts_are_required() {
    for (level, preflight, status, state) in [
        ("operation", Preflight::Available, "available", "allow"),
        ("operation", Preflight::Unavailable, "unavailable", "deny"),
        ("decision", Preflight::Absent, "unavailable", "deny"),
        ("none", Preflight::Absent, "not_required", "allow"),
        ("none", Preflight::Unavailable, "not_required", "allow"),
    ] {
        let required = level != "none";
        let case = Case::new().with(|it| {
            it.preflight = preflight;
            it.request["receipt_requirement"] = json!({"level": level, "required": required});
        });
        let decision = case.decision();
        let expected = json!({"required": required, "status": status});
        assert_eq!(
            decision["receipt_preflight"], expected,
            "{level} {preflight:?}"
        );
        assert_eq!(decision["decision"], state, "{level} {preflight:?}");
    }
}

#[test]
fn collects_the_transforms_of_granted_predicates_sorted_and_once() {
    let decision = Case::new()
        .with(|it| {
            it.policy["transforms"] = json!({
                "trip.dates": ["truncate:trip.dates:9", "compress:task-facts"],
                "trip.destination": ["redact:pet.name", "compress:task-facts"],
                "home.address": ["redact:home.address"],
            });
        })
        .decision();
    assert_eq!(
        decision["transform_requirements"],
        json!([
            "compress:task-facts",
            "redact:pet.name",
            "truncate:trip.dates:9"
        ])
    );
    assert_eq!(decision["decision"], "allow_with_reductions");
    assert_eq!(decision["reason_codes"], json!(["SCOPE_REDUCED"]));
}

#[test]
fn refuses_more_transforms_than_a_decision_can_carry() {
    let with = |count: usize| {
        let names: Vec<_> = (0..count)
            .map(|it| format!("truncate:trip.dates:1{it}"))
            .collect();
        Case::new().with(|it| it.policy["transforms"] = json!({"trip.dates": names}))
    };
    let most = with(64).decision();
    assert_eq!(
        most["transform_requirements"].as_array().map(Vec::len),
        Some(64)
    );
    assert_eq!(
        refused(with(65).evaluate()),
        Some(Code::UnsupportedTransform)
    );
    let withheld = with(65).with(|it| it.ask(&["trip.destination"], &["letter.draft"]));
    assert_eq!(withheld.decision()["decision"], "allow");
}

#[test]
fn onward_disclosure_follows_the_request_only_where_it_is_allowed() {
    let onward = |change: fn(&mut Case)| {
        let case = Case::new().with(|it| {
            it.rule = ApprovalRule::GrantOrDecline;
            it.policy["allowed_onward_disclosure"] = json!(["allowed"]);
            it.request["recipient"]["onward_disclosure"] = json!("allowed");
            change(it);
        });
        let decision = case.decision();
        (
            decision["decision"].clone(),
            decision["onward_disclosure"].clone(),
        )
    };
    assert_eq!(onward(|_| ()), (json!("allow"), json!("allowed")));
    let gated = onward(|it| it.ask(&["home.address"], &["letter.draft"]));
    assert_eq!(gated, (json!("needs_approval"), json!("forbidden")));
    let denied = onward(|it| it.policy["rate_limit_ok"] = json!(false));
    assert_eq!(denied, (json!("deny"), json!("forbidden")));
}
