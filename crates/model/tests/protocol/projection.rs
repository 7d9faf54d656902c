//! From candidate claims to the context of a bundle.

use cl_model::alias::AliasScheme;
use cl_model::canonical::{cmp_utf16, to_text};
use cl_model::refusal::Code;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{CANARY, Case, Exchange, open, refused, remove};

type Change = fn(&mut Vec<Value>);

fn sources(count: usize) -> Value {
    (0..count)
        .map(|index| format!("urn:event:n{index}"))
        .collect()
}

const REFUSALS: &[(Code, Change)] = &[
    (Code::InvalidObject, |it| {
        it[0] = json!("The journey goes to Trondheim.")
    }),
    (Code::ClaimProvenanceRequired, |it| {
        remove(&mut it[0], "provenance_refs")
    }),
    (Code::ClaimProvenanceRequired, |it| {
        it[0]["provenance_refs"] = json!([])
    }),
    // An empty list is not made up for by the other member.
    (Code::ClaimProvenanceRequired, |it| {
        it[0]["provenance_refs"] = json!([]);
        it[0]["provenance_handles"] = sources(1);
    }),
    (Code::InvalidStringList, |it| {
        it[0]["provenance_refs"] = json!("urn:event:n0")
    }),
    (Code::InvalidStringList, |it| {
        it[0]["provenance_refs"] = json!(["urn:event:n0", ""])
    }),
    (Code::InvalidStringList, |it| {
        it[0]["provenance_refs"] = json!([{"ref": "x"}])
    }),
    (Code::TooManyProvenanceHandles, |it| {
        it[0]["provenance_refs"] = sources(33)
    }),
    (Code::InvalidString, |it| remove(&mut it[0], "claim")),
    (Code::InvalidString, |it| it[0]["claim"] = json!("")),
    (Code::InvalidString, |it| it[0]["claim"] = json!(["x"])),
    (Code::InvalidClaimText, |it| {
        it[0]["claim"] = json!("\u{1F600}".repeat(2001))
    }),
    (Code::NonJsonValue, |it| remove(&mut it[0], "value")),
    (Code::InvalidClaimConfidence, |it| {
        remove(&mut it[0], "confidence")
    }),
    (Code::InvalidClaimConfidence, |it| {
        it[0]["confidence"] = json!(1.000_001)
    }),
    (Code::InvalidClaimConfidence, |it| {
        it[0]["confidence"] = json!(-0.1)
    }),
    (Code::InvalidClaimConfidence, |it| {
        it[0]["confidence"] = json!("0.9")
    }),
    (Code::InvalidClaimConfidence, |it| {
        it[0]["confidence"] = json!(true)
    }),
    (Code::NoContextGranted, Vec::clear),
    (Code::NoContextGranted, |it| {
        it.iter_mut()
            .for_each(|claim| claim["predicate"] = json!("home.address"));
    }),
    (Code::TooManyClaims, |it| *it = vec![it[0].clone(); 65]),
];

#[test]
fn refuses_what_a_granted_claim_lacks() {
    for (index, (code, change)) in REFUSALS.iter().enumerate() {
        assert_eq!(refused(Exchange::new().issue()), None);
        let exchange = Exchange::new().with(|it| change(&mut it.claims));
        assert_eq!(refused(exchange.issue()), Some(*code), "row {index}");
    }
}

#[test]
fn takes_what_is_just_within_its_limits() {
    let changes: &[Change] = &[
        |it| it[0]["provenance_refs"] = sources(32),
        |it| {
            let mut repeated = sources(32);
            let list = repeated.as_array_mut().expect("an array");
            list.push(json!("urn:event:n0"));
            it[0]["provenance_refs"] = repeated;
        },
        |it| {
            it[0]["provenance_handles"] = sources(1);
            it[0]["provenance_refs"] = Value::Null;
        },
        |it| it[0]["claim"] = json!("\u{1F600}".repeat(2000)),
        |it| it[0]["value"] = Value::Null,
        |it| it[0]["confidence"] = json!(0),
        |it| *it = vec![it[0].clone(); 64],
    ];
    for (index, change) in changes.iter().enumerate() {
        let exchange = Exchange::new().with(|it| change(&mut it.claims));
        assert_eq!(refused(open(&exchange.envelope())), None, "row {index}");
    }
}

#[test]
fn passes_over_what_is_not_granted_in_silence() {
    let plain = Exchange::new().text();
    let withheld = [
        // Not granted, and so malformed that a granted claim would be refused.
        json!({"predicate": "home.address", "claim": CANARY}),
        json!({"predicate": "trip.dates.canaryword", "value": CANARY}),
        json!({"predicate": "Trip.Dates", "claim": CANARY}),
        json!({"predicate": 7, "claim": CANARY}),
        json!({}),
    ];
    let exchange = Exchange::new().with(|it| it.claims.extend(withheld));
    let text = exchange.text();
    assert!(!text.contains(CANARY));
    assert_eq!(text, plain, "nothing tells a withheld claim from none");
}

#[test]
fn discloses_only_the_members_of_a_context_item() {
    let exchange = Exchange::new().with(|it| it.claims[0]["note"] = json!(CANARY));
    assert_eq!(exchange.text(), Exchange::new().text());
}

#[test]
fn transforms_redact_cut_and_compress_before_disclosure() {
    let exchange = Exchange::new().with(|it| {
        it.case.policy["transforms"] = json!({
            "trip.dates": ["redact:trip.dates"],
            "trip.destination": ["truncate:trip.destination:11", "compress:task-facts"],
        });
        it.claims[0]["claim"] = json!("  The   journey \u{1F600} canaryword");
        it.claims[0]["value"] = json!("Trondheim canaryword");
        it.claims[1]["claim"] = json!(CANARY);
    });
    let bundle = exchange.bundle();
    assert!(!to_text(&bundle).contains(CANARY));
    let context = bundle["context"].as_array().expect("an array");
    assert_eq!(context.len(), 1);
    assert_eq!(context[0]["claim"], "The journey");
    assert_eq!(context[0]["value"], "Trondheim c");
}

#[test]
fn claims_that_transforms_empty_are_refused() {
    let exchange = Exchange::new().with(|it| {
        let transforms = json!({"trip.destination": ["compress:task-facts"]});
        it.case.policy["transforms"] = transforms;
    });
    assert_eq!(refused(exchange.issue()), None);
    let blank = exchange.with(|it| it.claims[0]["claim"] = json!(" \u{2003}\n\u{feff}"));
    assert_eq!(refused(blank.issue()), Some(Code::InvalidClaimText));
}

#[test]
fn a_decision_that_redacts_everything_leaves_no_bundle() {
    let exchange = Exchange::new().with(|it| {
        it.case.policy["transforms"] =
            json!({"trip.dates": ["redact:trip.dates", "redact:trip.destination"]});
    });
    assert_eq!(refused(exchange.issue()), Some(Code::NoContextGranted));
}

#[test]
fn sorts_items_and_handles_by_utf16_code_units() {
    let exchange = Exchange::new().with(|it| {
        let claim = |text: &str| {
            let mut claim = it.claims[1].clone();
            claim["claim"] = json!(text);
            claim
        };
        it.claims = ["\u{E000}", "b", "\u{1F600}", "a"].map(claim).to_vec();
    });
    let bundle = exchange.bundle();
    let items = bundle["context"].as_array().expect("an array");
    let texts: Vec<_> = items.iter().map(|item| item["claim"].clone()).collect();
    // U+1F600 begins with the unit D83D, which is below E000.
    assert_eq!(texts, ["a", "b", "\u{1F600}", "\u{E000}"].map(Value::from));
    for item in items {
        let handles = item["provenance_handles"].as_array().expect("an array");
        assert_eq!(handles.len(), 2);
        assert!(handles.iter().map(Value::as_str).is_sorted());
    }
}

/// JSON of which both number domains think the same.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1.0e6..1.0e6).prop_map(Value::from),
        text(0..20).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(text(0..6), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn text(length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let character = prop_oneof![
        any::<char>(),
        proptest::char::range('\u{10000}', '\u{10FFFF}'),
        proptest::char::range('\u{0}', '\u{7f}'),
        Just('\u{85}'),
        Just('\u{2028}'),
        Just('\u{E000}'),
    ];
    proptest::collection::vec(character, length).prop_map(|it| it.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn content_is_the_same_after_issue_and_opening(
        facts in proptest::collection::vec((text(1..40), value(), 0.0..=1.0, any::<bool>()), 1..6),
    ) {
        let exchange = Exchange::new().with(|it| {
            let claims = facts.iter().map(|(claim, value, confidence, first)| json!({
                "claim": claim,
                "predicate": if *first { "trip.dates" } else { "trip.destination" },
                "value": value,
                "confidence": confidence,
                "provenance_refs": [claim],
            }));
            it.claims = claims.collect();
        });
        let request = exchange.case.typed_request().id;
        let handle = |claim: &Value| {
            let source = claim["claim"].as_str().expect("text");
            let provenance = AliasScheme::Parity.provenance(source, &request);
            provenance.expect("a source").handle().as_str().to_owned()
        };
        let mut expected: Vec<_> = exchange.claims.iter().map(|claim| {
            let mut item = claim.clone();
            item["provenance_handles"] = json!([handle(claim)]);
            remove(&mut item, "provenance_refs");
            to_text(&item)
        }).collect();
        expected.sort_by(|left, right| cmp_utf16(left, right));
        let opened = open(&exchange.envelope()).expect("opened");
        let context = cl_model::json::read::ToJson::to_json(&opened.bundle().context);
        prop_assert_eq!(to_text(&context), format!("[{}]", expected.join(",")));
    }

    #[test]
    fn a_claim_of_any_shape_is_passed_over_unless_granted(claim in value()) {
        let mut hidden = claim;
        if let Some(members) = hidden.as_object_mut() {
            members.insert("predicate".to_owned(), json!("home.address"));
            let exchange = Exchange::new().with(|it| it.claims.push(hidden));
            prop_assert_eq!(exchange.text(), Exchange::new().text());
        } else {
            let exchange = Exchange::new().with(|it| it.claims.push(hidden));
            prop_assert_eq!(refused(exchange.issue()), Some(Code::InvalidObject));
        }
    }
}

#[test]
fn an_approved_predicate_is_disclosed_and_a_declined_one_is_not() {
    let address = json!({
        "claim": "Lives at the harbour.",
        "predicate": "home.address",
        "value": "Harbour Street 1",
        "confidence": 1,
        "provenance_refs": ["urn:event:example.test:mail-13"],
    });
    let exchange = Exchange::new().with(|it| {
        it.case = Case::approved();
        it.claims.push(address.clone());
    });
    assert!(exchange.text().contains("Harbour Street 1"));
    let ordinary = Exchange::new().with(|it| it.claims.push(address));
    assert!(!ordinary.text().contains("Harbour"));
}
