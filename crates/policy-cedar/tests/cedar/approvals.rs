//! Policies that ask what an approval says.

use cl_model::object::ApprovalVerification;

use crate::support::{Scope, Setting, brief, compile, decide, is_bound, request};

const WITH_APPROVAL: (&str, &str) = (
    "approved",
    "permit (principal, action, resource) \
     when { context.approval == ApprovalAnswer::\"granted\" };",
);
const CITY: (&str, &str) = (
    "city",
    "permit (principal, action, resource == Predicate::\"city\");",
);
const ACT: (&str, &str) = (
    "act",
    "permit (principal, action == Action::\"act\", resource);",
);

fn approving(granted: &[&str], declined: &[&str]) -> Setting {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Setting {
        approval: Some(Scope {
            granted_selectors: names(granted),
            declined_selectors: names(declined),
            ..Scope::default()
        }),
        ..Setting::default()
    }
}

#[test]
fn what_an_approval_opens_is_bound_to_it() {
    let snapshot = compile(&[WITH_APPROVAL, CITY, ACT]);
    let asked = request(&["city", "budget"], &["draft"]);
    let without = decide(&snapshot, &asked, &Setting::default());
    assert_eq!(
        brief(&without),
        "allow_with_reductions [city] [draft] SCOPE_REDUCED SELECTORS_WITHHELD"
    );
    let with = decide(&snapshot, &asked, &approving(&["budget"], &[]));
    assert_eq!(brief(&with), "allow [city budget] [draft] REQUEST_ALLOWED");
    assert_eq!(
        with.approval_verification,
        Some(ApprovalVerification::Verified)
    );
    assert_eq!(with.expires_at.as_str(), "2027-03-01T09:05:00.000Z");
    // An approval of something else opens nothing, and is not recorded.
    let other = decide(&snapshot, &asked, &approving(&["contact"], &["budget"]));
    assert_eq!(brief(&other), brief(&without));
    assert!(!is_bound(&other));
}

#[test]
fn an_approval_does_not_lift_the_demand_of_another_item() {
    let demand = (
        "ask",
        "@approval @reason(\"ASK\") forbid (principal, action == Action::\"disclose\", resource) \
         unless { context.approval == ApprovalAnswer::\"granted\" };",
    );
    let all = ("all", "permit (principal, action, resource);");
    let snapshot = compile(&[all, demand]);
    let asked = request(&["city", "budget"], &["draft"]);
    let half = decide(&snapshot, &asked, &approving(&["city"], &[]));
    assert_eq!(
        brief(&half),
        "needs_approval [] [] APPROVAL_SCOPE_INCOMPLETE ASK"
    );
    let both = decide(&snapshot, &asked, &approving(&["city", "budget"], &[]));
    assert_eq!(brief(&both), "allow [city budget] [draft] REQUEST_ALLOWED");
    assert!(is_bound(&both), "bound to the approval");
    let declined = decide(&snapshot, &asked, &approving(&["city"], &["budget"]));
    assert_eq!(
        brief(&declined),
        "allow_with_reductions [city] [draft] SCOPE_REDUCED SELECTORS_WITHHELD ASK"
    );
}
