//! Texts from anywhere are refused or accepted, and never break anything.

use cl_policy_cedar::{CaseFile, CompiledSnapshot, Fault, InvalidSnapshot};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::support::{Setting, document, outcome, request};

/// Whatever is accepted can be evaluated.
fn read(document: &Value) -> bool {
    match CompiledSnapshot::read(document) {
        Ok(snapshot) => {
            let asked = request(&["city", "budget"], &["draft", "send"]);
            outcome(&snapshot, &asked, &Setting::default());
            true
        }
        Err(_) => false,
    }
}

fn tokens() -> impl Strategy<Value = String> {
    let tokens = select(vec![
        "permit",
        "forbid",
        "(",
        ")",
        "principal",
        "action",
        "resource",
        ",",
        ";",
        "when",
        "{",
        "}",
        "unless",
        "==",
        "in",
        "is",
        "Agent::\"a\"",
        "Action::\"act\"",
        "context",
        ".",
        "now",
        "purpose",
        "&&",
        "||",
        "!",
        "-",
        "9223372036854775807",
        "\"x\"",
        "\"\\u{0}\"",
        "[",
        "]",
        "@reason(\"A\")",
        "@approval",
        "@transform(\"redact:a\")",
        "has",
        "like",
        "\"*\"",
        "if",
        "then",
        "else",
        "datetime(\"x\")",
        "decimal(\"1.0\")",
        "// c\n",
        "?principal",
    ]);
    vec(tokens, 0..40).prop_map(|tokens| tokens.join(" "))
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(vec!["Agent", "x", "__entity", "__extn", "urn:agent:a"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = select(vec![
            "type",
            "id",
            "__entity",
            "__extn",
            "fn",
            "arg",
            "acts_for",
            "suspended",
            "team",
        ]);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name, inner), 0..4).prop_map(|members| {
                let members = members.into_iter();
                members
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn texts_are_read_without_a_panic(
        text in prop_oneof![tokens(), ".{0,120}"],
        prefix in select(vec!["", "permit (principal, action, resource) when { "]),
    ) {
        read(&document(&[("foreign", &format!("{prefix}{text}"))]));
    }

    #[test]
    fn entities_are_read_without_a_panic(attributes in tree(), tags in tree()) {
        let mut snapshot = document(&[]);
        snapshot["cedar"]["entities"][0]["attrs"] = attributes;
        snapshot["cedar"]["entities"][0]["tags"] = tags;
        read(&snapshot);
    }

    #[test]
    fn cases_are_read_without_a_panic(tree in tree(), place in 0..4_u8) {
        let mut file = json!({
            "snapshot": "s.json",
            "now": "2027-03-01T09:00:00Z",
            "cases": [{"name": "one", "request": {}, "expect": {"decision": "deny"}}],
        });
        match place {
            0 => file["cases"][0]["request"] = tree,
            1 => file["cases"][0]["expect"] = tree,
            2 => file["cases"] = tree,
            _ => file = tree,
        }
        prop_assert!(CaseFile::read(&file).is_err());
    }
}

fn deep(count: usize, open: &str, middle: &str, close: &str) -> String {
    let nested = format!("{}{middle}{}", open.repeat(count), close.repeat(count));
    format!("permit (principal, action, resource) when {{ {nested} }};")
}

/// What opens, what is inside, what closes, and how often that is just within the limits.
const NESTED: [(&str, &str, &str, usize); 10] = [
    ("(", "true", ")", 23),
    ("[", "1", "]", 23),
    ("{a: ", "1", "}", 23),
    ("if true then ", "true", " else false", 199),
    ("if ", "true", " then true else false", 199),
    ("", "context", ".purpose", 199),
    ("true && ", "true", "", 199),
    ("", "true", " || true", 199),
    ("context.retention_seconds + ", "1 > 0", "", 98),
    ("!(", "true", ")", 23),
];

#[test]
fn deep_texts_are_refused_rather_than_followed() {
    for (open, middle, close, limit) in NESTED {
        let far = 60_000 / (open.len() + close.len());
        for (count, may_pass) in [(limit, true), (limit + 2, false), (far, false)] {
            let text = deep(count, open, middle, close);
            let document = document(&[("deep", &text)]);
            match CompiledSnapshot::read(&document) {
                Ok(snapshot) => {
                    assert!(may_pass, "{open}{close} {count}");
                    let asked = request(&["city"], &["draft"]);
                    outcome(&snapshot, &asked, &Setting::default());
                }
                Err(InvalidSnapshot::Policies(invalid)) => {
                    let is_extent = invalid.findings[0].fault == Fault::Extent;
                    assert_eq!(is_extent, !may_pass, "{open}{close} {count}");
                }
                Err(InvalidSnapshot::Refused(refusal)) => panic!("{refusal}"),
            }
        }
    }
}
