//! What a subject has delegated, as policies ask about it.

use cl_model::time::UnixTime;

use crate::support::{PERMIT_ALL, Setting, compile, decide, granted, request};

const DELEGATED: (&str, &str) = (
    "delegated",
    "permit (principal, action == Action::\"disclose\", resource)
     when { context has delegation && context.delegation.predicates.contains(resource) };",
);
const ACT: (&str, &str) = (
    "act",
    "permit (principal, action == Action::\"act\", resource) when { context has delegation };",
);

fn delegating(names: &[&'static str], until: &'static str) -> Setting {
    Setting {
        delegated: Some((names.to_vec(), until)),
        ..Setting::default()
    }
}

#[test]
fn grants_what_was_delegated_and_no_more() {
    let snapshot = compile(&[DELEGATED, ACT]);
    let asked = request(&["city", "date"], &["draft"]);
    let none = decide(&snapshot, &asked, &Setting::default());
    assert!(granted(&none).is_empty());
    let some = decide(
        &snapshot,
        &asked,
        &delegating(&["city"], "2027-03-01T09:05:00Z"),
    );
    let found = granted(&some);
    assert!(
        found.iter().eq(&["act draft", "disclose city"]),
        "{found:?}"
    );
    // A forbid still forbids, and an unknown predicate is nobody's to delegate.
    let forbid = (
        "no-city",
        "forbid (principal, action == Action::\"disclose\", resource == Predicate::\"city\");",
    );
    let snapshot = compile(&[DELEGATED, ACT, forbid]);
    let setting = delegating(&["city", "nowhere"], "2027-03-01T09:05:00Z");
    let asked = request(&["city", "nowhere"], &["draft"]);
    assert!(granted(&decide(&snapshot, &asked, &setting)).is_empty());
}

#[test]
fn nothing_outlasts_the_delegation() {
    let asked = request(&["city"], &["draft"]);
    let until = "2027-03-01T09:00:30Z";
    for policies in [&[DELEGATED, ACT][..], &[PERMIT_ALL]] {
        let decision = decide(&compile(policies), &asked, &delegating(&["city"], until));
        assert!(!granted(&decision).is_empty());
        let ends = decision.expires_at.instant();
        assert_eq!(Some(ends), UnixTime::parse(until));
    }
    // From its end on it is none.
    let ended = delegating(&["city"], "2027-03-01T09:00:00Z");
    let decision = decide(&compile(&[DELEGATED, ACT]), &asked, &ended);
    assert!(granted(&decision).is_empty());
}
