//! Approvals of gated scope.

use cl_model::digest::Digest;
use cl_model::policy::{ApprovalRule, VerifierOutcome};
use serde_json::{Value, json};

use crate::fixture::{Case, at};

type Change = fn(&mut Case);

/// Faults of an approval with outcome and reason, in the order in which they are found.
const OUTCOMES: &[(&str, &str, Change)] = &[
    ("not_provided", "APPROVAL_REQUIRED", |it| {
        it.approval = Value::Null
    }),
    ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
        it.approval["id"] = json!(5)
    }),
    ("expired", "APPROVAL_EXPIRED", |it| {
        it.approval["expires_at"] = json!("2031-05-04T09:30:00Z");
    }),
    ("scope_incomplete", "APPROVAL_SCOPE_INCOMPLETE", |it| {
        it.approval["granted_actions"] = json!([]);
    }),
    ("rejected", "APPROVAL_UNVERIFIED", |it| {
        it.verifier = VerifierOutcome::Rejected
    }),
];

fn check(case: &Case, outcome: &str, reason: &str, row: &str) {
    let decision = case.decision();
    assert_eq!(decision["approval_verification"], outcome, "{row}");
    assert_eq!(decision["decision"], "needs_approval", "{row}");
    assert_eq!(decision["reason_codes"], json!([reason]), "{row}");
    assert_eq!(decision["approval_binding"], Value::Null, "{row}");
    assert_eq!(decision["granted_selectors"], json!([]), "{row}");
}

#[test]
fn reports_the_first_fault_of_an_approval() {
    for (first, (outcome, reason, change)) in OUTCOMES.iter().enumerate() {
        assert_eq!(
            Case::approved().decision()["approval_verification"],
            "verified"
        );
        check(&Case::approved().with(change), outcome, reason, outcome);
        for (other, _, later) in &OUTCOMES[first + 1..] {
            // The earlier fault is made last, so that a missing approval stays missing.
            let case = Case::approved().with(later).with(change);
            check(&case, outcome, reason, &format!("{outcome} and {other}"));
        }
    }
}

#[test]
fn each_departure_has_its_outcome() {
    let rows: &[(&str, &str, Change)] = &[
        ("not_provided", "APPROVAL_REQUIRED", |it| {
            it.approval = json!(false)
        }),
        ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
            it.approval = json!([])
        }),
        ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
            it.approval = json!({})
        }),
        ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
            it.approval["id"] = json!("")
        }),
        ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
            it.approval["id"] = json!("x".repeat(513));
        }),
        ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
            it.approval["note"] = json!("surplus");
        }),
        ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
            it.approval["request_digest"] = json!(Digest::ZERO.to_string());
        }),
        ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
            it.approval["policy_digest"] = json!(Digest::ZERO.to_string());
        }),
        ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
            it.request["purpose"] = json!("Another letter.");
        }),
        ("binding_invalid", "APPROVAL_BINDING_INVALID", |it| {
            it.policy["version"] = json!("journeys-4");
        }),
        ("expired", "APPROVAL_EXPIRED", |it| {
            it.approval["expires_at"] = Value::Null
        }),
        ("expired", "APPROVAL_EXPIRED", |it| {
            it.approval["expires_at"] = json!("2039")
        }),
        ("expired", "APPROVAL_EXPIRED", |it| {
            it.now = at("2031-05-04T09:34:00Z")
        }),
        ("scope_incomplete", "APPROVAL_SCOPE_INCOMPLETE", |it| {
            it.approval["granted_selectors"] = json!(["home.address"]);
        }),
        ("scope_incomplete", "APPROVAL_SCOPE_INCOMPLETE", |it| {
            it.approval["granted_selectors"] = json!("home.address health.allergy");
        }),
        ("scope_incomplete", "APPROVAL_SCOPE_INCOMPLETE", |it| {
            it.approval["granted_actions"] = json!({"calendar.hold": true});
        }),
        ("scope_incomplete", "APPROVAL_SCOPE_INCOMPLETE", |it| {
            it.approval["granted_actions"] = json!(["*"]);
        }),
        ("verifier_missing", "APPROVAL_UNVERIFIED", |it| {
            it.verifier = VerifierOutcome::Absent;
        }),
    ];
    for (index, (outcome, reason, change)) in rows.iter().enumerate() {
        assert_eq!(Case::approved().decision()["decision"], "allow");
        let row = format!("row {index}");
        check(&Case::approved().with(change), outcome, reason, &row);
    }
}

#[test]
fn an_approval_is_not_looked_at_without_gated_scope() {
    let case = Case::new().with(|it| {
        it.approval = json!({"id": 5});
        it.verifier = VerifierOutcome::Rejected;
    });
    let decision = case.decision();
    assert_eq!(decision["decision"], "allow");
    assert_eq!(decision["approval_verification"], "not_required");
    assert_eq!(decision["approval_binding"], Value::Null);
}

#[test]
fn an_approval_cannot_add_what_was_not_asked_or_is_not_listed() {
    let case = Case::approved().with(|it| {
        it.ask(&["home.address", "pet.name"], &["letter.draft"]);
        it.approve(
            &["home.address", "health.allergy", "pet.name"],
            &["letter.burn"],
        );
    });
    let decision = case.decision();
    assert_eq!(decision["decision"], "allow_with_reductions");
    assert_eq!(
        decision["granted_selectors"],
        json!([{"predicate": "home.address"}])
    );
    assert_eq!(
        decision["denied_selectors"],
        json!([{"predicate": "pet.name"}])
    );
    assert_eq!(decision["granted_actions"], json!(["letter.draft"]));
}

#[test]
fn a_verified_approval_is_bound_word_for_word() {
    let case = Case::approved().with(|it| {
        it.approval["expires_at"] = json!("2031-05-04t11:34:00.5+02:00");
    });
    let decision = case.decision();
    assert_eq!(decision["approval_verification"], "verified");
    assert_eq!(
        decision["approval_binding"],
        json!({
            "approval_ref": "urn:approval:example.test:5",
            "request_digest": Digest::of_json(&case.request).to_string(),
            "policy_digest": Digest::of_json(&case.policy).to_string(),
            "expires_at": "2031-05-04t11:34:00.5+02:00",
        })
    );
    assert_eq!(decision["expires_at"], "2031-05-04T09:34:00.500Z");
}

#[test]
fn a_hard_denial_still_states_the_verified_approval() {
    let case = Case::approved().with(|it| {
        it.policy["rate_limit_ok"] = json!(false);
        it.approve(&["home.address", "health.allergy"], &["calendar.hold"]);
    });
    let decision = case.decision();
    assert_eq!(decision["decision"], "deny");
    assert_eq!(decision["reason_codes"], json!(["RATE_LIMIT_EXCEEDED"]));
    assert_eq!(decision["approval_verification"], "verified");
    let binding = &decision["approval_binding"];
    assert_eq!(binding["approval_ref"], "urn:approval:example.test:5");
    assert_eq!(decision["granted_selectors"], json!([]));
    assert_eq!(decision["denied_selectors"], case.request["selectors"]);
}

fn answer(granted: &[&str], declined: &[&str], actions: (&[&str], &[&str])) -> Case {
    Case::gated().with(|it| {
        it.rule = ApprovalRule::GrantOrDecline;
        it.approve(granted, actions.0);
        it.approval["declined_selectors"] = json!(declined);
        it.approval["declined_actions"] = json!(actions.1);
    })
}

#[test]
fn declined_scope_is_denied_and_reported() {
    let case = answer(
        &["home.address"],
        &["health.allergy"],
        (&[], &["calendar.hold"]),
    );
    let decision = case.decision();
    assert_eq!(decision["decision"], "allow_with_reductions");
    assert_eq!(decision["approval_verification"], "verified");
    assert_eq!(
        decision["reason_codes"],
        json!(["SCOPE_REDUCED", "SELECTORS_WITHHELD", "ACTIONS_WITHHELD"])
    );
    assert_eq!(
        decision["granted_selectors"],
        json!([{"predicate": "trip.dates"}, {"predicate": "home.address"}])
    );
    assert_eq!(
        decision["denied_selectors"],
        json!([{"predicate": "health.allergy"}])
    );
    assert_eq!(decision["granted_actions"], json!(["letter.draft"]));
    assert_eq!(decision["denied_actions"], json!(["calendar.hold"]));
    // The local profile's rule takes no half answers.
    let strict = case.with(|it| it.rule = ApprovalRule::AllOrNothing);
    check(
        &strict,
        "binding_invalid",
        "APPROVAL_BINDING_INVALID",
        "strict",
    );
}

#[test]
fn declined_scope_is_denied_also_where_the_policy_does_not_gate_it() {
    let both = ["home.address", "health.allergy"];
    let case = answer(&both, &["trip.dates"], (&["calendar.hold"], &[]));
    let decision = case.decision();
    assert_eq!(decision["decision"], "allow_with_reductions");
    assert_eq!(
        decision["denied_selectors"],
        json!([{"predicate": "trip.dates"}])
    );
    // Nor where nothing is gated at all.
    let mut case = answer(&[], &[], (&[], &["letter.draft"]));
    case = case.with(|it| {
        it.ask(&["trip.dates"], &["letter.draft"]);
        it.approve(&[], &[]);
        it.approval["declined_selectors"] = json!([]);
        it.approval["declined_actions"] = json!(["letter.draft"]);
    });
    let decision = case.decision();
    assert_eq!(decision["approval_verification"], "not_required");
    assert_eq!(decision["decision"], "deny");
    assert_eq!(decision["denied_actions"], json!(["letter.draft"]));
    // Nobody has authenticated it: it declines nothing.
    let forged = case.with(|it| it.verifier = VerifierOutcome::Rejected);
    assert_eq!(forged.decision()["decision"], "allow");
}

#[test]
fn answers_must_cover_gated_scope_without_gap_or_overlap() {
    let both = ["home.address", "health.allergy"];
    assert_eq!(
        answer(&both, &[], (&["calendar.hold"], &[])).decision()["decision"],
        "allow"
    );
    for (index, case) in [
        answer(&both, &[], (&[], &[])),
        answer(&["home.address"], &[], (&["calendar.hold"], &[])),
        answer(&both, &["home.address"], (&["calendar.hold"], &[])),
        answer(&both, &[], (&["calendar.hold"], &["calendar.hold"])),
    ]
    .iter()
    .enumerate()
    {
        let row = format!("row {index}");
        check(case, "scope_incomplete", "APPROVAL_SCOPE_INCOMPLETE", &row);
    }
}

#[test]
fn a_request_whose_every_gated_part_is_declined_is_denied() {
    let declined = ["home.address", "health.allergy"];
    let case = answer(&[], &declined, (&[], &["calendar.hold"])).with(|it| {
        it.ask(&declined, &["calendar.hold"]);
        it.approve(&[], &[]);
        it.approval["declined_selectors"] = json!(declined);
        it.approval["declined_actions"] = json!(["calendar.hold"]);
    });
    let decision = case.decision();
    assert_eq!(decision["decision"], "deny");
    assert_eq!(decision["approval_verification"], "verified");
    assert_eq!(
        decision["reason_codes"],
        json!([
            "SELECTORS_WITHHELD",
            "ACTIONS_WITHHELD",
            "NO_SELECTOR_GRANTED",
            "NO_ACTION_GRANTED",
        ])
    );
    assert_eq!(decision["denied_selectors"], case.request["selectors"]);
}

#[test]
fn a_malformed_list_of_declined_scope_is_no_empty_one() {
    let both = ["home.address", "health.allergy"];
    for declined in [
        json!(["home.address", ""]),
        json!("home.address"),
        json!({"x": 1}),
    ] {
        for name in ["declined_selectors", "declined_actions"] {
            let case = answer(&both, &[], (&["calendar.hold"], &[]));
            assert_eq!(case.decision()["decision"], "allow");
            let case = case.with(|it| it.approval[name] = declined.clone());
            check(&case, "scope_incomplete", "APPROVAL_SCOPE_INCOMPLETE", name);
        }
    }
}

#[test]
fn what_is_both_granted_and_declined_is_not_granted_under_either_rule() {
    for (rule, outcome, reason) in [
        // The strict rule does not know declined scope at all.
        (
            ApprovalRule::AllOrNothing,
            "binding_invalid",
            "APPROVAL_BINDING_INVALID",
        ),
        (
            ApprovalRule::GrantOrDecline,
            "scope_incomplete",
            "APPROVAL_SCOPE_INCOMPLETE",
        ),
    ] {
        let case = answer(
            &["home.address", "health.allergy"],
            &[],
            (&["calendar.hold"], &[]),
        );
        assert_eq!(case.decision()["decision"], "allow");
        let case = case.with(|it| it.rule = rule);
        let case = case.with(|it| it.approval["declined_actions"] = json!(["calendar.hold"]));
        check(&case, outcome, reason, &format!("{rule:?}"));
    }
}
