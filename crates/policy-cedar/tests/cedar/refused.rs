//! Policies and entities that are not accepted.

use cl_policy_cedar::{Fault, InvalidSnapshot, Place};
use serde_json::{Value, json};

use crate::support::{PERMIT_ALL, document, read};

fn fault(document: &Value) -> Option<(Fault, String)> {
    match read(document) {
        Ok(_) => None,
        Err(InvalidSnapshot::Policies(invalid)) => {
            let first = &invalid.findings[0];
            Some((first.fault, first.place.to_string()))
        }
        Err(InvalidSnapshot::Refused(refusal)) => panic!("refused otherwise: {refusal}"),
    }
}

#[test]
fn policies_are_refused_by_name() {
    let cases = [
        (Fault::Syntax, "permit (principal, action, resource)"),
        (
            Fault::Syntax,
            "permit (principal, action, resource); permit (principal, action, resource);",
        ),
        (
            Fault::Syntax,
            "permit (principal == ?principal, action, resource);",
        ),
        (Fault::Syntax, "// nothing"),
        (
            Fault::Syntax,
            "@reason(\"A\") @reason(\"B\") forbid (principal, action, resource);",
        ),
        (
            Fault::Annotation,
            "@id(\"x\") permit (principal, action, resource);",
        ),
        (
            Fault::Annotation,
            "@approval permit (principal, action, resource);",
        ),
        (
            Fault::Annotation,
            "@approval forbid (principal, action, resource);",
        ),
        (
            Fault::Annotation,
            "@aproval @reason(\"A\") forbid (principal, action, resource);",
        ),
        (
            Fault::Annotation,
            "@max_retention(\"1h\") @reason(\"A\") forbid (principal, action, resource);",
        ),
        (
            Fault::Unregistered,
            "permit (principal, action, resource == Predicate::\"cty\");",
        ),
        (
            Fault::Unregistered,
            "permit (principal in Group::\"agent\", action, resource);",
        ),
        (
            Fault::Unregistered,
            "forbid (principal, action, resource) when { context.client == Client::\"urn:device:x\" };",
        ),
        (
            Fault::Schema,
            "permit (principal, action, resource) when { context.purpos == \"a\" };",
        ),
        (
            Fault::Schema,
            "permit (principal, action, resource) when { principal.suspended };",
        ),
        (
            Fault::Schema,
            "permit (principal, action, resource) when { context.purpose == 1 };",
        ),
        (
            Fault::Schema,
            "forbid (principal, action, resource) when { context.assurance == Assurance::\"hgh\" };",
        ),
        (
            Fault::Schema,
            "permit (principal, action == Action::\"read\", resource);",
        ),
        (
            Fault::Schema,
            "permit (principal == Subject::\"vault://subjects/s\", action, resource);",
        ),
        (
            Fault::Schema,
            "permit (principal, action == Action::\"act\", resource == Predicate::\"city\");",
        ),
        (
            Fault::Schema,
            "forbid (principal, action, resource) when { false };",
        ),
        (
            Fault::Schema,
            "permit (principal, action, resource) when { resource.sensitivity > 1 };",
        ),
        (
            Fault::Schema,
            "permit (principal is User, action, resource);",
        ),
    ];
    for (expected, text) in cases {
        let found = fault(&document(&[PERMIT_ALL, ("bad", text)]));
        assert_eq!(found, Some((expected, "policy bad".to_owned())), "{text}");
    }
    assert_eq!(fault(&document(&[PERMIT_ALL])), None);
}

#[test]
fn all_mistakes_are_named_and_no_text_is_repeated() {
    let bad = "permit (principal, action, resource) when { context.canaryattribute };";
    let document = document(&[("b", bad), ("a", bad), PERMIT_ALL]);
    let Err(InvalidSnapshot::Policies(invalid)) = read(&document) else {
        panic!("accepted");
    };
    let places: Vec<String> = invalid
        .findings
        .iter()
        .map(|it| it.place.to_string())
        .collect();
    assert!(places.contains(&"policy a".to_owned()) && places.contains(&"policy b".to_owned()));
    let shown = format!("{invalid} {invalid:?}");
    assert!(!shown.contains("canaryattribute"), "{shown}");
    assert!(invalid.findings[0].detail.contains("canaryattribute"));
    let compiled = read(&self::document(&[(
        "a",
        "permit (principal == Agent::\"urn:canary\", action, resource);",
    )]));
    assert!(!format!("{:?}", compiled.unwrap()).contains("canary"));
}

#[test]
fn entities_are_held_to_the_schema() {
    type Change = fn(&mut Value);
    let cases: &[(Fault, Place, Change)] = &[
        (Fault::Entity, Place::Entity(0), |it| {
            it[0]["uid"]["type"] = json!("User")
        }),
        (Fault::Entity, Place::Entity(0), |it| {
            it[0]["uid"]["type"] = json!("Action")
        }),
        (Fault::Entity, Place::Entity(0), |it| {
            it[0]["uid"]["type"] = json!("Label")
        }),
        (Fault::Entity, Place::Entity(0), |it| {
            it[0]["parents"] = json!([{"type": "Agent", "id": "urn:agent:b"}]);
        }),
        (Fault::Entity, Place::Entity(2), |it| {
            it[2] = json!({
                "uid": {"type": "Predicate", "id": "city"},
                "attrs": {"label": {"type": "Label", "id": "public"}}, "parents": [],
            });
        }),
        (Fault::Unregistered, Place::Entity(2), |it| {
            it[2] = json!({"uid": {"type": "Predicate", "id": "town"}, "attrs": {}, "parents": []});
        }),
        (Fault::Unregistered, Place::Entity(2), |it| {
            it[2] = json!({"uid": {"type": "Client", "id": "urn:device:x"}, "attrs": {}, "parents": []});
        }),
        (Fault::Entity, Place::Entities, |it| {
            it[0]["attrs"] = json!({"admin": true})
        }),
        (Fault::Entity, Place::Entities, |it| {
            it[0]["attrs"] = json!({"suspended": "no"})
        }),
        (Fault::Entity, Place::Entities, |it| {
            it[0]["attrs"] = json!({"suspended": null})
        }),
        (Fault::Entity, Place::Entities, |it| {
            it[0]["tags"] = json!({"team": "red"})
        }),
        (Fault::Entity, Place::Entities, |it| {
            it[0]["tags"] = json!({"team": [1.5]})
        }),
        (Fault::Entity, Place::Entities, |it| {
            it[1]["attrs"] = json!({})
        }),
        (Fault::Entity, Place::Entities, |it| {
            it[1]["attrs"]["side_effect"]["id"] = json!("harmless");
        }),
        (Fault::Entity, Place::Entities, |it| {
            it[2] = json!({
                "uid": {"type": "Group", "id": "agents"}, "attrs": {},
                "parents": [{"type": "Group", "id": "agents"}],
            });
        }),
    ];
    for (index, (expected, place, change)) in cases.iter().enumerate() {
        let mut document = document(&[PERMIT_ALL]);
        let entities = &mut document["cedar"]["entities"];
        entities.as_array_mut().unwrap().push(json!({
            "uid": {"type": "Group", "id": "other"}, "attrs": {}, "parents": [],
        }));
        change(entities);
        let found = fault(&document);
        assert_eq!(found, Some((*expected, place.to_string())), "case {index}");
    }
}

#[test]
fn predicates_are_grouped_and_tagged_and_keep_their_registry() {
    let mut document = document(&[(
        "grouped",
        "permit (principal, action == Action::\"disclose\", resource in Group::\"facts\") \
         when { resource.sensitivity == 0 && resource.hasTag(\"kind\") };",
    )]);
    document["cedar"]["entities"] = json!([{
        "uid": {"type": "Predicate", "id": "city"}, "attrs": {},
        "parents": [{"type": "Group", "id": "facts"}], "tags": {"kind": ["place"]},
    }]);
    let snapshot = read(&document).unwrap();
    let asked = crate::support::request(&["city", "date"], &["draft"]);
    let found = crate::support::outcome(&snapshot, &asked, &crate::support::Setting::default());
    assert_eq!(
        found.record.value()["decision"],
        "deny",
        "nothing permits to act"
    );
    let (ruling, names) = (snapshot.cedar().unwrap(), ["grouped"]);
    assert!(ruling.names().map(|name| name.as_str()).eq(names));
}
