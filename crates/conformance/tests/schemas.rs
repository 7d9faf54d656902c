//! The JSON Schemas in `schemas/` and the types of the library give every value one verdict.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "tests"
)]

use std::fs;
use std::path::PathBuf;

use cl_model::json::read::FromJson;
use cl_model::object::{
    ContextClaim, ContextRequest, ErrorObject, MemoryUpdateProposal, MinimumRevealResponse,
    PolicyDecision, Receipt, ScopedContextBundle, SourceEvent,
};
use cl_model::policy::Snapshot;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

fn read_json(path: &str) -> Value {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let text = fs::read_to_string(root.join(path)).expect("a readable file");
    serde_json::from_str(&text).expect("valid JSON")
}

/// One object's schema beside its type.
struct Twins {
    name: &'static str,
    schema: Validator,
    fits_type: fn(&Value) -> bool,
}

impl Twins {
    fn new<T: FromJson>(name: &'static str) -> Self {
        Self::with_type(name, |value| T::from_json(value).is_ok())
    }

    fn with_type(name: &'static str, fits_type: fn(&Value) -> bool) -> Self {
        let schema = read_json(&format!("schemas/{name}.schema.json"));
        jsonschema::meta::validate(&schema).expect("a valid schema");
        Self {
            name,
            schema: jsonschema::options()
                .should_validate_formats(true)
                .build(&schema)
                .expect("a usable schema"),
            fits_type,
        }
    }

    /// The verdict of both; fails if they differ.
    fn verdict(&self, value: &Value, label: &str) -> bool {
        let by_schema = self.schema.is_valid(value);
        let by_type = (self.fits_type)(value);
        assert_eq!(
            by_schema, by_type,
            "{}: {label}: schema says {by_schema}, type says {by_type}: {value}",
            self.name
        );
        by_type
    }
}

fn all_twins() -> [Twins; 10] {
    [
        Twins::new::<ContextRequest>("context-request"),
        Twins::new::<PolicyDecision>("policy-decision"),
        Twins::new::<ScopedContextBundle>("scoped-context-bundle"),
        Twins::new::<Receipt>("receipt"),
        Twins::new::<MemoryUpdateProposal>("memory-update-proposal"),
        Twins::new::<SourceEvent>("source-event"),
        Twins::new::<ContextClaim>("context-claim"),
        Twins::new::<MinimumRevealResponse>("minimum-reveal-response"),
        Twins::new::<ErrorObject>("error"),
        snapshot_twins(),
    ]
}

fn snapshot_twins() -> Twins {
    Twins::with_type("policy-snapshot", |value| {
        Snapshot::check_form(value).is_ok()
    })
}

/// The instances of one group in `conformance/objects`, by name.
///
/// An instance has its whole `value`, or takes another one by `from` and then sets `set` (a JSON
/// Pointer) to `to`, or removes `remove`.
fn instances(data: &Value, group: &str) -> Vec<(String, Value)> {
    let listed = |group: &str| data[group].as_array().expect("a list").clone();
    let whole: Map<String, Value> = listed("valid")
        .into_iter()
        .filter_map(|entry| {
            Some((
                entry["name"].as_str()?.to_owned(),
                entry.get("value")?.clone(),
            ))
        })
        .collect();
    listed(group)
        .into_iter()
        .map(|entry| {
            let name = entry["name"].as_str().expect("a name").to_owned();
            let value = entry.get("value").cloned().unwrap_or_else(|| {
                let mut value = whole[entry["from"].as_str().expect("a base")].clone();
                match entry["set"].as_str() {
                    Some(pointer) => set(&mut value, pointer, Some(entry["to"].clone())),
                    None => set(
                        &mut value,
                        entry["remove"].as_str().expect("a change"),
                        None,
                    ),
                }
                value
            });
            (name, value)
        })
        .collect()
}

/// Sets or removes the member or element at a JSON Pointer.
fn set(value: &mut Value, pointer: &str, to: Option<Value>) {
    let (parent, last) = pointer.rsplit_once('/').expect("not the root");
    match (value.pointer_mut(parent).expect("a parent"), to) {
        (Value::Object(members), Some(to)) => {
            members.insert(last.replace("~1", "/").replace("~0", "~"), to);
        }
        (Value::Object(members), None) => {
            members.remove(last).expect("a member");
        }
        (Value::Array(elements), to) => {
            let index: usize = last.parse().expect("an index");
            match to {
                Some(to) => elements[index] = to,
                None => {
                    elements.remove(index);
                }
            }
        }
        _ => panic!("no container at {parent}"),
    }
}

#[test]
fn schemas_and_types_agree_on_every_listed_instance() {
    for twins in all_twins() {
        let data = read_json(&format!("conformance/objects/{}.json", twins.name));
        for (name, value) in instances(&data, "valid") {
            assert!(twins.verdict(&value, &name), "{}: {name}", twins.name);
        }
        for (name, value) in instances(&data, "invalid") {
            assert!(!twins.verdict(&value, &name), "{}: {name}", twins.name);
        }
    }
}

#[test]
fn snapshots_whose_parts_disagree_are_refused_by_the_type() {
    let schema = snapshot_twins().schema;
    let data = read_json("conformance/objects/policy-snapshot.json");
    for (name, value) in instances(&data, "valid") {
        assert!(Snapshot::read(&value).is_ok(), "{name}");
    }
    for (name, value) in instances(&data, "disagreeing") {
        assert!(schema.is_valid(&value), "{name}");
        assert!(Snapshot::read(&value).is_err(), "{name}");
    }
}

#[test]
fn types_write_back_what_they_read() {
    fn check<T: FromJson + cl_model::json::read::ToJson>(name: &str) {
        let data = read_json(&format!("conformance/objects/{name}.json"));
        for (instance, value) in instances(&data, "valid") {
            let written = T::from_json(&value).expect("valid").to_json();
            assert_eq!(
                cl_model::canonical::to_text(&written),
                cl_model::canonical::to_text(&value),
                "{name}: {instance}"
            );
        }
    }
    check::<ContextRequest>("context-request");
    check::<PolicyDecision>("policy-decision");
    check::<ScopedContextBundle>("scoped-context-bundle");
    check::<Receipt>("receipt");
    check::<MemoryUpdateProposal>("memory-update-proposal");
    check::<SourceEvent>("source-event");
    check::<ContextClaim>("context-claim");
    check::<MinimumRevealResponse>("minimum-reveal-response");
    check::<ErrorObject>("error");
}

#[test]
fn schemas_and_types_agree_on_every_small_mutation() {
    for twins in all_twins() {
        let data = read_json(&format!("conformance/objects/{}.json", twins.name));
        let (mut accepted, mut refused) = (0, 0);
        // The first instances are the smallest object and one with every optional member.
        for (name, value) in instances(&data, "valid").into_iter().take(4) {
            for pointer in pointers(&value) {
                for mutant in mutants(&value, &pointer) {
                    match twins.verdict(&mutant, &format!("{name} at {pointer}")) {
                        true => accepted += 1,
                        false => refused += 1,
                    }
                }
            }
        }
        assert!(
            accepted > 20 && refused > 500,
            "{}: {accepted} {refused}",
            twins.name
        );
    }
}

/// JSON Pointers to everything inside a value.
fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, child)| (name.replace('~', "~0").replace('/', "~1"), child))
            .collect(),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .map(|(index, child)| (index.to_string(), child))
            .collect(),
        _ => Vec::new(),
    };
    children
        .into_iter()
        .flat_map(|(step, child)| {
            let inner = pointers(child).into_iter();
            std::iter::once(format!("/{step}"))
                .chain(inner.map(move |rest| format!("/{step}{rest}")))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The value with one thing changed at `pointer`, in each way that a careless or hostile writer
/// might change it.
fn mutants(value: &Value, pointer: &str) -> Vec<Value> {
    let old = value.pointer(pointer).expect("inside").clone();
    let mut replacements = vec![
        None,
        Some(Value::Null),
        Some(json!(true)),
        Some(json!(false)),
        Some(json!(0)),
        Some(json!(1)),
        Some(json!(1.0)),
        Some(json!(0.5)),
        Some(json!(-1)),
        Some(json!(86_400)),
        Some(json!(86_401)),
        Some(json!("")),
        Some(json!("a")),
        Some(json!("abc")),
        Some(json!("A.b")),
        Some(json!("a\n")),
        Some(json!("2026-03-01t08:15:30.25z")),
        Some(json!("2026-02-30T08:15:30Z")),
        Some(json!([])),
        Some(json!({})),
        Some(json!([old])),
        Some(json!({"abc": old})),
    ];
    match &old {
        Value::String(text) => {
            replacements.push(Some(json!(format!("{text}\n"))));
            replacements.push(Some(json!(text.to_uppercase())));
            replacements.push(Some(json!({ text.as_str(): null })));
        }
        Value::Number(number) => {
            let double = number.as_f64().expect("finite");
            replacements.push(Some(json!(double + 0.5)));
            replacements.push(Some(json!(double.to_string())));
        }
        Value::Array(elements) => {
            let doubled: Vec<_> = elements.iter().chain(elements).cloned().collect();
            replacements.push(Some(json!(doubled)));
            let reversed: Vec<_> = elements.iter().rev().cloned().collect();
            replacements.push(Some(json!(reversed)));
        }
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("unknown_member".to_owned(), json!("x"));
            replacements.push(Some(Value::Object(more)));
            replacements.push(Some(members.values().cloned().collect()));
        }
        Value::Null | Value::Bool(_) => {}
    }
    replacements
        .into_iter()
        .map(|to| {
            let mut mutant = value.clone();
            set(&mut mutant, pointer, to);
            mutant
        })
        .collect()
}
