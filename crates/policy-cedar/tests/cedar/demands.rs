//! What permits, forbids and demands come to.

use cl_model::part::{Label, OnwardDisclosure, Trust};
use cl_model::policy::Limits;
use cl_model::scalar::Predicate;

use serde_json::json;

use crate::support::{
    PERMIT_ALL, Setting, brief, compile, decide, document, is_bound, outcome, read, request,
};

const ALL: [&str; 3] = ["city", "contact", "budget"];

#[test]
fn nothing_is_granted_that_nothing_permits() {
    let asked = request(&ALL, &["draft"]);
    let setting = Setting::default();
    let nothing = decide(&compile(&[]), &asked, &setting);
    assert_eq!(
        brief(&nothing),
        "deny [] [] SELECTORS_WITHHELD ACTIONS_WITHHELD NO_SELECTOR_GRANTED NO_ACTION_GRANTED"
    );
    let all = decide(&compile(&[PERMIT_ALL]), &asked, &setting);
    assert_eq!(
        brief(&all),
        "allow [city contact budget] [draft] REQUEST_ALLOWED"
    );
}

#[test]
fn a_forbid_wins_and_gives_its_reason() {
    let forbid = (
        "no-money",
        "@reason(\"MONEY_STAYS\") forbid (principal, action, resource == Predicate::\"budget\");",
    );
    let asked = request(&ALL, &["draft"]);
    let decision = decide(&compile(&[PERMIT_ALL, forbid]), &asked, &Setting::default());
    assert_eq!(
        brief(&decision),
        "allow_with_reductions [city contact] [draft] SCOPE_REDUCED SELECTORS_WITHHELD MONEY_STAYS"
    );
    // What is general denies what is named, and the other way round.
    let general = (
        "all-but",
        "@reason(\"TOO_SENSITIVE\") forbid (principal, action == Action::\"disclose\", resource) \
         when { resource.sensitivity >= 2 };",
    );
    let named = (
        "contact",
        "permit (principal, action, resource == Predicate::\"contact\");",
    );
    let act = (
        "act",
        "permit (principal, action == Action::\"act\", resource);",
    );
    let decision = decide(
        &compile(&[named, general, act]),
        &asked,
        &Setting::default(),
    );
    assert_eq!(
        brief(&decision),
        "deny [] [] SELECTORS_WITHHELD NO_SELECTOR_GRANTED TOO_SENSITIVE"
    );
}

#[test]
fn an_approval_demand_gates_what_it_matches() {
    let demand = (
        "ask",
        "@approval @reason(\"ASK_FIRST\") forbid (principal, action, resource == Predicate::\"budget\");",
    );
    let snapshot = compile(&[PERMIT_ALL, demand]);
    let asked = request(&ALL, &["draft"]);
    let gated = decide(&snapshot, &asked, &Setting::default());
    assert_eq!(
        brief(&gated),
        "needs_approval [] [] APPROVAL_REQUIRED ASK_FIRST"
    );
    let approved = decide(&snapshot, &asked, &Setting::default().approving());
    assert_eq!(
        brief(&approved),
        "allow [city contact budget] [draft] REQUEST_ALLOWED ASK_FIRST"
    );
    assert!(is_bound(&approved));
    // A demand alone permits nothing.
    let alone = decide(&compile(&[demand]), &asked, &Setting::default().approving());
    assert_eq!(
        brief(&alone),
        "deny [] [] SELECTORS_WITHHELD ACTIONS_WITHHELD NO_SELECTOR_GRANTED NO_ACTION_GRANTED ASK_FIRST"
    );
}

#[test]
fn demands_are_merged_to_the_strictest() {
    let demands = [
        PERMIT_ALL,
        (
            "one",
            "@max_retention(\"300\") @max_label(\"private\") @min_confidence(\"0.5\") \
             @transform(\"redact:name\") @reason(\"ONE\") \
             forbid (principal, action, resource == Predicate::\"contact\");",
        ),
        (
            "two",
            "@max_retention(\"120\") @max_label(\"internal\") @min_confidence(\"0.25\") \
             @min_trust(\"verified\") @transform(\"redact:name,truncate:contact:9\") \
             @reason(\"TWO\") forbid (principal, action, resource == Predicate::\"contact\");",
        ),
        (
            "acting",
            "@min_trust(\"user_asserted\") @reason(\"ACTING\") \
             forbid (principal, action, resource == Operation::\"send\");",
        ),
    ];
    let snapshot = compile(&demands);
    let asked = request(&["city", "contact"], &["draft"]);
    let found = outcome(&snapshot, &asked, &Setting::default());
    let limits = &found.limits["contact"];
    assert_eq!(limits.max_label, Some(Label::Internal));
    assert_eq!(limits.min_trust, Some(Trust::Verified));
    assert_eq!(limits.min_confidence.unwrap().get(), 0.5);
    let transforms: Vec<_> = limits.transforms.iter().map(|it| it.as_str()).collect();
    assert_eq!(transforms, ["redact:name", "truncate:contact:9"]);
    assert_eq!(found.limits["city"], Limits::default());
    let decision = decide(&snapshot, &asked, &Setting::default());
    assert_eq!(
        brief(&decision),
        "allow_with_reductions [city contact] [draft] SCOPE_REDUCED RETENTION_REDUCED ONE TWO"
    );
    assert_eq!(decision.retention.max_seconds.get(), 120);
    assert_eq!(decision.transform_requirements.len(), 2);
    // What is demanded for an action holds for all that it sees, and for nobody who does not act.
    let acting = request(&["city", "contact"], &["send"]);
    let found = outcome(&snapshot, &acting, &Setting::default());
    assert_eq!(found.limits["city"].min_trust, Some(Trust::UserAsserted));
    assert_eq!(found.limits["contact"].min_trust, Some(Trust::UserAsserted));

    // The plan for the vault has the stricter of snapshot and demand.
    let contact = Predicate::new("contact").unwrap();
    let rule = snapshot.resolve_rule(&contact, &found.limits["contact"]);
    let rule = rule.unwrap();
    assert_eq!(rule.max_label, Label::Internal);
    let loose = Limits {
        max_label: Some(Label::Restricted),
        ..Limits::default()
    };
    let rule = snapshot.resolve_rule(&contact, &loose).unwrap();
    assert_eq!(rule.max_label, Label::Private, "a demand widens nothing");
}

#[test]
fn onward_disclosure_is_forbidden_on_demand() {
    let demand = (
        "keep",
        "@onward(\"forbidden\") @reason(\"KEEP_IT\") \
         forbid (principal, action, resource == Predicate::\"contact\");",
    );
    let snapshot = compile(&[PERMIT_ALL, demand]);
    let mut asked = request(&["city"], &["draft"]);
    asked["recipient"]["onward_disclosure"] = "allowed".into();
    let open = decide(&snapshot, &asked, &Setting::default());
    assert_eq!(open.onward_disclosure, OnwardDisclosure::Allowed);
    let mut asked = request(&["city", "contact"], &["draft"]);
    asked["recipient"]["onward_disclosure"] = "allowed".into();
    let kept = decide(&snapshot, &asked, &Setting::default());
    assert_eq!(kept.onward_disclosure, OnwardDisclosure::Forbidden);
    assert_eq!(
        brief(&kept),
        "allow_with_reductions [city contact] [draft] SCOPE_REDUCED KEEP_IT"
    );
}

#[test]
fn passing_context_on_is_denied_unless_the_snapshot_allows_it() {
    let mut snapshot = document(&[PERMIT_ALL]);
    let mut asked = request(&["city"], &["draft"]);
    asked["recipient"]["onward_disclosure"] = "allowed".into();
    for allowed in [None, Some(json!(["forbidden"])), Some(json!([]))] {
        let cedar = snapshot["cedar"].as_object_mut().unwrap();
        cedar.remove("allowed_onward_disclosure");
        cedar.extend(allowed.map(|listed| ("allowed_onward_disclosure".to_owned(), listed)));
        let decision = decide(&read(&snapshot).unwrap(), &asked, &Setting::default());
        assert_eq!(brief(&decision), "deny [] [] ONWARD_DISCLOSURE_NOT_ALLOWED");
    }
}

#[test]
fn an_unregistered_predicate_is_nobodys() {
    let asked = request(&["city", "unknown"], &["draft"]);
    let decision = decide(&compile(&[PERMIT_ALL]), &asked, &Setting::default());
    assert_eq!(
        brief(&decision),
        "allow_with_reductions [city] [draft] SCOPE_REDUCED SELECTORS_WITHHELD"
    );
}

/// An overflow is the one mistake that strict validation cannot see.
#[test]
fn a_policy_that_fails_denies_everything() {
    let big = "9223372036854775807";
    let failing = [
        format!(
            "permit (principal, action, resource) when {{ context.retention_seconds + {big} > 0 }};"
        ),
        format!(
            "forbid (principal, action, resource) when {{ context.retention_seconds + {big} > 0 }};"
        ),
        format!(
            "@approval @reason(\"X\") forbid (principal, action, resource == Operation::\"draft\") \
             when {{ context.retention_seconds + {big} > 0 }};"
        ),
    ];
    for text in &failing {
        let snapshot = compile(&[PERMIT_ALL, ("fails", text)]);
        let asked = request(&["city"], &["draft"]);
        let decision = decide(&snapshot, &asked, &Setting::default().approving());
        assert_eq!(
            brief(&decision),
            "deny [] [] SELECTORS_WITHHELD ACTIONS_WITHHELD POLICY_EVALUATION_FAILED",
            "{text}"
        );
    }
    // A failure elsewhere is none here: the policy is not looked at.
    let elsewhere = format!(
        "forbid (principal, action, resource == Predicate::\"secret\") \
         when {{ context.retention_seconds + {big} > 0 }};"
    );
    let snapshot = compile(&[PERMIT_ALL, ("fails", &elsewhere)]);
    let decision = decide(
        &snapshot,
        &request(&["city"], &["draft"]),
        &Setting::default(),
    );
    assert_eq!(brief(&decision), "allow [city] [draft] REQUEST_ALLOWED");
}

#[test]
fn more_reasons_than_a_decision_carries_are_cut() {
    let texts: Vec<(String, String)> = (0..40)
        .map(|number| {
            let text = format!("@onward(\"forbidden\") @reason(\"R{number:02}\") forbid (principal, action, resource);");
            (format!("p{number}"), text)
        })
        .collect();
    let mut policies: Vec<(&str, &str)> = texts
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    policies.push(PERMIT_ALL);
    let asked = request(&["city"], &["draft"]);
    let decision = decide(&compile(&policies), &asked, &Setting::default());
    assert_eq!(decision.reason_codes.len(), 32);
    assert_eq!(decision.reason_codes[0].as_str(), "REQUEST_ALLOWED");
}
