//! What holds for every division of scope.

use std::collections::BTreeSet;

use cl_model::policy::{ApprovalRule, VerifierOutcome};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::Case;

/// What a policy and an approval say about one name, and whether it is asked for.
#[derive(Clone, Copy, Debug)]
struct Part {
    asked: bool,
    is_ordinary: bool,
    is_gated: bool,
    is_granted: bool,
    is_declined: bool,
}

fn part() -> impl Strategy<Value = Part> {
    let flags = (any::<bool>(), 0..3u8, any::<bool>(), any::<bool>());
    flags.prop_map(|(asked, gate, is_granted, is_declined)| Part {
        asked,
        is_ordinary: gate == 0,
        is_gated: gate == 1,
        is_granted,
        is_declined,
    })
}

fn names(prefix: &str, parts: &[Part], choose: impl Fn(&Part) -> bool) -> Vec<String> {
    let chosen = parts.iter().enumerate().filter(|(_, part)| choose(part));
    chosen
        .map(|(index, _)| format!("{prefix}.n{index}"))
        .collect()
}

fn case(
    selectors: &[Part],
    actions: &[Part],
    rule: ApprovalRule,
    verifier: VerifierOutcome,
) -> Case {
    Case::new().with(|it| {
        it.rule = rule;
        it.verifier = verifier;
        for (kind, prefix, parts) in [
            ("selectors", "fact", selectors),
            ("actions", "act", actions),
        ] {
            it.policy[format!("allowed_{kind}")] = json!(names(prefix, parts, |it| it.is_ordinary));
            it.policy[format!("approval_required_{kind}")] =
                json!(names(prefix, parts, |it| it.is_gated));
        }
        let asked = names("fact", selectors, |it| it.asked);
        let asked: Vec<_> = asked.iter().map(String::as_str).collect();
        let acts = names("act", actions, |it| it.asked);
        let acts: Vec<_> = acts.iter().map(String::as_str).collect();
        it.ask(&asked, &acts);
        it.approve(&[], &[]);
        for (kind, prefix, parts) in [
            ("selectors", "fact", selectors),
            ("actions", "act", actions),
        ] {
            it.approval[format!("granted_{kind}")] =
                json!(names(prefix, parts, |it| it.is_granted));
            it.approval[format!("declined_{kind}")] =
                json!(names(prefix, parts, |it| it.is_declined));
        }
    })
}

/// The members of a decision's array, which are distinct.
fn set(decision: &Value, name: &str) -> BTreeSet<String> {
    let elements = decision[name].as_array().expect("an array");
    let texts = elements.iter().map(|element| {
        let text = element.as_str().or_else(|| element["predicate"].as_str());
        text.expect("a name").to_owned()
    });
    let set: BTreeSet<_> = texts.collect();
    assert_eq!(set.len(), elements.len(), "{name} has no repeats");
    set
}

/// `declines`: whether an authentic approval declines what its parts say.
fn check_kind(decision: &Value, kind: &str, prefix: &str, parts: &[Part], declines: bool) {
    let granted = set(decision, &format!("granted_{kind}"));
    let denied = set(decision, &format!("denied_{kind}"));
    let is_verified = decision["approval_verification"] == "verified";
    let as_set = |choose: fn(&Part) -> bool| -> BTreeSet<_> {
        names(prefix, parts, choose).into_iter().collect()
    };
    let asked = as_set(|it| it.asked);
    let mut allowed = as_set(|it| it.is_ordinary);
    if is_verified {
        allowed.extend(as_set(|it| it.is_gated && it.is_granted));
    }
    let mut declined = as_set(|it| it.asked && it.is_declined);
    if !declines {
        declined.clear();
    }
    allowed.retain(|name| !declined.contains(name));
    assert!(granted.is_subset(&allowed), "{granted:?} of {allowed:?}");
    assert!(granted.is_subset(&asked), "{granted:?} of {asked:?}");
    assert!(granted.is_disjoint(&denied), "{granted:?} and {denied:?}");
    let covered: BTreeSet<_> = granted.union(&denied).cloned().collect();
    if decision["decision"] == "needs_approval" {
        let mut expected = as_set(|it| it.asked && !it.is_ordinary);
        expected.extend(declined);
        assert_eq!(covered, expected);
        assert!(granted.is_empty());
    } else {
        assert_eq!(covered, asked);
    }
    if decision["decision"] == "deny" {
        assert!(granted.is_empty());
    } else if decision["decision"] != "needs_approval" {
        let expected: BTreeSet<_> = asked.intersection(&allowed).cloned().collect();
        assert_eq!(granted, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn grants_are_asked_for_and_allowed_and_the_record_verifies(
        selectors in proptest::collection::vec(part(), 0..9),
        actions in proptest::collection::vec(part(), 0..5),
        rule in prop_oneof![Just(ApprovalRule::AllOrNothing), Just(ApprovalRule::GrantOrDecline)],
        verifier in prop_oneof![
            4 => Just(VerifierOutcome::Authenticated),
            1 => Just(VerifierOutcome::Rejected),
        ],
    ) {
        let case = case(&selectors, &actions, rule, verifier);
        let decision = case.decision();
        let declines =
            rule == ApprovalRule::GrantOrDecline && verifier == VerifierOutcome::Authenticated;
        check_kind(&decision, "selectors", "fact", &selectors, declines);
        check_kind(&decision, "actions", "act", &actions, declines);
        if decision["decision"] == "allow" {
            prop_assert_eq!(&decision["denied_selectors"], &json!([]));
            prop_assert_eq!(&decision["denied_actions"], &json!([]));
        }
        // Whatever fits the request's schema is decided in a form that fits the decision's.
        if !selectors.iter().all(|it| !it.asked) {
            case.verified();
        }
    }
}
