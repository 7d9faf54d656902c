//! Requests and policies for which there is no decision at all.

use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::policy::{Asked, ListPolicy};
use cl_model::refusal::Code;
use serde_json::{Value, json};

use crate::fixture::{Case, policy, refused, remove, request};

type Change = fn(&mut Value);

fn check(valid: &Value, refuse: impl Fn(&Value) -> Option<Code>, cases: &[(Code, Change)]) {
    for (index, (code, change)) in cases.iter().enumerate() {
        assert_eq!(refuse(valid), None, "the unchanged input");
        let mut changed = valid.clone();
        change(&mut changed);
        assert_eq!(refuse(&changed), Some(*code), "row {index}");
    }
}

fn selectors(count: usize) -> Value {
    (0..count)
        .map(|index| json!({"predicate": format!("fact.n{index}")}))
        .collect()
}

fn names(count: usize) -> Value {
    (0..count).map(|index| format!("act.n{index}")).collect()
}

const REQUESTS: &[(Code, Change)] = &[
    (Code::InvalidObject, |it| *it = json!([])),
    (Code::InvalidObject, |it| *it = Value::Null),
    (Code::InvalidSelectors, |it| remove(it, "selectors")),
    (Code::InvalidSelectors, |it| {
        it["selectors"] = json!({"0": {"predicate": "trip.dates"}})
    }),
    (Code::InvalidSelectors, |it| {
        it["selectors"] = json!("trip.dates")
    }),
    (Code::InvalidSelectors, |it| it["selectors"] = selectors(65)),
    (Code::InvalidSelectors, |it| {
        it["selectors"] = json!([{"predicate": "trip.dates"}, {"predicate": "trip.dates"}]);
    }),
    (Code::InvalidObject, |it| {
        it["selectors"][1] = json!("trip.dates")
    }),
    (Code::InvalidString, |it| it["selectors"][1] = json!({})),
    (Code::InvalidString, |it| {
        it["selectors"][1]["predicate"] = json!("")
    }),
    (Code::InvalidString, |it| {
        it["selectors"][1]["predicate"] = json!(["trip.dates"])
    }),
    (Code::UnsupportedSelectorField, |it| {
        it["selectors"][1]["limit"] = json!(1)
    }),
    (Code::InvalidStringList, |it| {
        it["requested_actions"] = json!("letter.draft")
    }),
    (Code::InvalidStringList, |it| {
        it["requested_actions"] = json!({"letter.draft": true})
    }),
    (Code::InvalidStringList, |it| {
        it["requested_actions"] = json!(["letter.draft", ""])
    }),
    (Code::InvalidStringList, |it| {
        it["requested_actions"] = json!([1])
    }),
    (Code::InvalidStringList, |it| {
        it["requested_actions"] = json!(["a.b", "a.b"])
    }),
    (Code::InvalidStringList, |it| {
        it["requested_actions"] = names(65)
    }),
    (Code::InvalidObject, |it| remove(it, "retention")),
    (Code::InvalidObject, |it| it["retention"] = json!(600)),
    (Code::InvalidString, |it| {
        remove(&mut it["retention"], "mode")
    }),
    (Code::InvalidString, |it| {
        it["retention"]["mode"] = json!("")
    }),
    (Code::InvalidPositiveInteger, |it| {
        remove(&mut it["retention"], "max_seconds")
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["retention"]["max_seconds"] = json!(0)
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["retention"]["max_seconds"] = json!(-1)
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["retention"]["max_seconds"] = json!(1.5)
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["retention"]["max_seconds"] = json!(true)
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["retention"]["max_seconds"] = json!("600")
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["retention"]["max_seconds"] = json!(86_401)
    }),
    (Code::InvalidRequestTask, |it| remove(it, "task")),
    (Code::InvalidRequestTask, |it| {
        it["task"] = json!("letter.reply")
    }),
    (Code::InvalidRequestTask, |it| {
        it["task"]["kind"] = json!("Letter Reply")
    }),
    (Code::InvalidRequestTask, |it| {
        it["task"]["user_visible"] = json!(1)
    }),
    (Code::InvalidRequestTask, |it| {
        it["task"]["urgent"] = json!(true)
    }),
    (Code::InvalidObject, |it| remove(it, "receipt_requirement")),
    (Code::InvalidObject, |it| {
        it["receipt_requirement"] = json!("operation")
    }),
    (Code::InvalidReceiptRequirement, |it| {
        it["receipt_requirement"]["required"] = json!(false);
    }),
    (Code::InvalidReceiptRequirement, |it| {
        it["receipt_requirement"]["level"] = json!("none");
    }),
    (Code::InvalidReceiptRequirement, |it| {
        it["receipt_requirement"]["extra"] = json!(1)
    }),
];

const POLICIES: &[(Code, Change)] = &[
    (Code::InvalidObject, |it| *it = json!("allow")),
    (Code::InvalidPolicy, |it| remove(it, "allowed_subjects")),
    (Code::InvalidPolicy, |it| remove(it, "allowed_requesters")),
    (Code::InvalidPolicy, |it| remove(it, "allowed_clients")),
    (Code::InvalidPolicy, |it| remove(it, "allowed_recipients")),
    (Code::InvalidPolicy, |it| {
        remove(it, "allowed_purpose_codes")
    }),
    (Code::InvalidPolicy, |it| remove(it, "allowed_tasks")),
    (Code::InvalidPolicy, |it| remove(it, "allowed_selectors")),
    (Code::InvalidPolicy, |it| {
        it["allowed_actions"] = Value::Null
    }),
    // A text or a map must not authorise by what it contains.
    (Code::InvalidPolicy, |it| {
        it["allowed_recipients"] = json!("urn:agent:drafting-helper");
    }),
    (Code::InvalidPolicy, |it| {
        it["allowed_recipients"] = json!({"urn:agent:drafting-helper": true});
    }),
    (Code::InvalidPolicy, |it| {
        it["allowed_onward_disclosure"] = json!("allowed")
    }),
    (Code::InvalidPolicy, |it| {
        it["allowed_authentication_methods"] = json!("mtls")
    }),
    (Code::InvalidPolicy, |it| {
        it["allowed_authentication_methods"] = Value::Null
    }),
    (Code::InvalidPolicy, |it| {
        it["require_receipts"] = json!("true")
    }),
    (Code::InvalidPolicy, |it| {
        it["transforms"] = json!({"trip.dates": null})
    }),
    (Code::InvalidPolicy, |it| {
        it["approval_required_actions"] = json!({})
    }),
    (Code::InvalidStringList, |it| {
        it["allowed_subjects"][0] = json!("")
    }),
    (Code::InvalidStringList, |it| {
        it["allowed_clients"][0] = json!(["x"])
    }),
    (Code::InvalidStringList, |it| {
        it["allowed_authentication_methods"] = json!([7])
    }),
    (Code::InvalidStringList, |it| {
        it["approval_required_selectors"] = json!([""])
    }),
    (Code::InvalidPolicyPurposeCode, |it| {
        it["allowed_purpose_codes"] = json!(["draft"])
    }),
    (Code::InvalidPolicyPurposeCode, |it| {
        it["allowed_purpose_codes"] = json!(["*"])
    }),
    (Code::AmbiguousPolicyScope, |it| {
        it["approval_required_selectors"] = json!(["home.address", "trip.dates"]);
    }),
    (Code::AmbiguousPolicyScope, |it| {
        it["approval_required_actions"] = json!(["letter.draft"]);
    }),
    (Code::InvalidString, |it| remove(it, "version")),
    (Code::InvalidString, |it| it["version"] = json!("")),
    (Code::InvalidString, |it| it["version"] = json!(3)),
    (Code::InvalidPolicy, |it| {
        it["version"] = json!("v".repeat(241))
    }),
    (Code::InvalidPolicy, |it| {
        it["issuer"] = json!("urn:cl:policy-engine:x")
    }),
    (Code::InvalidPolicy, |it| it["issuer"]["name"] = json!("x")),
    (Code::InvalidObject, |it| remove(it, "maximum_retention")),
    (Code::InvalidString, |it| {
        remove(&mut it["maximum_retention"], "mode")
    }),
    (Code::InvalidPolicy, |it| {
        it["maximum_retention"]["mode"] = json!("forever")
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["maximum_retention"]["max_seconds"] = json!(0);
    }),
    (Code::InvalidPositiveInteger, |it| {
        remove(&mut it["maximum_retention"], "max_seconds");
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["decision_ttl_seconds"] = json!(0)
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["decision_ttl_seconds"] = json!(0.5)
    }),
    (Code::InvalidPositiveInteger, |it| {
        it["decision_ttl_seconds"] = json!(9_007_199_254_740_992_u64);
    }),
    (Code::InvalidPolicy, |it| {
        it["transforms"] = json!(["redact:trip.dates"])
    }),
    // A map in place of a list would drop the transforms.
    (Code::InvalidPolicy, |it| {
        it["transforms"] = json!({"trip.dates": {}})
    }),
    (Code::InvalidStringList, |it| {
        it["transforms"] = json!({"trip.dates": [""]})
    }),
    (Code::UnsupportedTransform, |it| {
        it["transforms"] = json!({"other": ["hide:a"]})
    }),
    (Code::UnsupportedTransform, |it| {
        it["transforms"] = json!({"trip.dates": ["truncate:trip.dates:0"]});
    }),
    (Code::InvalidStringList, |it| {
        it["bundle_instructions"] = json!("Be kind.")
    }),
    (Code::InvalidStringList, |it| {
        it["bundle_instructions"] = json!([""])
    }),
    (Code::InvalidPolicy, |it| {
        it["bundle_instructions"] = json!(["x".repeat(501)])
    }),
    (Code::InvalidPolicy, |it| {
        it["bundle_instructions"] = names(33)
    }),
];

#[test]
fn refuses_requests_for_which_there_is_no_denial() {
    check(&request(), |it| refused(Asked::read(it)), REQUESTS);
}

#[test]
fn refuses_policies_that_could_be_misread() {
    check(&policy(), |it| refused(ListPolicy::read(it)), POLICIES);
}

#[test]
fn reads_what_is_just_within_its_limits() {
    let mut largest = request();
    largest["selectors"] = selectors(64);
    largest["requested_actions"] = names(64);
    largest["retention"]["max_seconds"] = json!(86_400.0);
    assert_eq!(refused(Asked::read(&largest)), None);
    let mut largest = policy();
    largest["bundle_instructions"] = names(32);
    largest["version"] = json!("\u{1F600}".repeat(240));
    largest["decision_ttl_seconds"] = json!(9_007_199_254_740_991_u64);
    largest["note"] = json!({"unknown members": "are covered by the digest"});
    assert_eq!(refused(ListPolicy::read(&largest)), None);
}

#[test]
fn reads_the_same_from_a_typed_request() {
    let typed = ContextRequest::read(&request()).expect("a request");
    let of_typed = Asked::of(&typed).expect("readable").digest();
    let of_value = Asked::read(&request()).expect("readable").digest();
    assert_eq!(of_typed, of_value);
}

#[test]
fn places_name_members_and_never_content() {
    let mut bad = request();
    bad["selectors"][1] = json!({"predicate": "canary", "canary": 1});
    let refusal = Asked::read(&bad).expect_err("refused");
    assert_eq!(
        refusal.to_string(),
        "UNSUPPORTED_SELECTOR_FIELD: a selector may only name a predicate (at /selectors/1)"
    );
}

#[test]
fn a_request_outside_its_schema_is_never_granted() {
    let changes: &[Change] = &[
        |it| it["surplus"] = json!(1),
        |it| remove(it, "created_at"),
        |it| it["issuer"]["role"] = json!("x"),
        |it| it["id"] = json!("urn:example:no-request-id"),
        |it| it["selectors"][0]["predicate"] = json!("Not A Name"),
        |it| it["retention"]["grace"] = json!(5),
        |it| it["requester"]["role"] = json!("admin"),
    ];
    for (index, change) in changes.iter().enumerate() {
        let case = Case::new();
        assert_eq!(case.decision()["decision"], "allow");
        let case = case.with(|it| change(&mut it.request));
        assert_eq!(
            refused(case.evaluate()),
            Some(Code::InvalidRequest),
            "row {index}"
        );
        let denied = case.with(|it| it.policy["rate_limit_ok"] = json!(false));
        assert_eq!(denied.decision()["decision"], "deny", "row {index}");
    }
    let gated = Case::gated().with(|it| it.request["surplus"] = json!(1));
    assert_eq!(refused(gated.evaluate()), Some(Code::InvalidRequest));
}
