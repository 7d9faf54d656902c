//! What two snapshots say differently.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::output::printable;

/// Names with what is said about each, in one part of a snapshot.
type Part = BTreeMap<String, Value>;

/// What two snapshots say differently, part by part.
pub(super) struct SnapshotDiff {
    parts: Vec<(&'static str, PartDiff)>,
}

#[derive(Default)]
struct PartDiff {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

/// How the entries of a part are read from a snapshot.
type ReadPart = fn(&Value) -> Part;

/// The parts of a snapshot.
const PARTS: [(&str, ReadPart); 9] = [
    ("policies", |snapshot| {
        members(&snapshot["cedar"]["policies"])
    }),
    ("entities", |snapshot| {
        entries(&snapshot["cedar"]["entities"], entity)
    }),
    ("policy settings", policy_settings),
    ("lists", lists),
    ("predicates", |snapshot| members(&snapshot["predicates"])),
    ("resolve", |snapshot| members(&snapshot["resolve"])),
    ("clients", |snapshot| {
        entries(&snapshot["clients"], |it| text(&it["client_instance"]))
    }),
    ("approvers", approvers),
    ("limits", |snapshot| {
        let mut limits = members(&snapshot["limits"]);
        limits.extend(
            Some(("expires_at".to_owned(), snapshot["expires_at"].clone()))
                .filter(|(_, ends)| !ends.is_null()),
        );
        limits
    }),
];

impl SnapshotDiff {
    /// What `other` says differently from `one`. Both are snapshots.
    pub(super) fn between(one: &Value, other: &Value) -> Self {
        let parts = PARTS.iter().map(|(name, read)| {
            let diff = PartDiff::between(&read(one), &read(other));
            (*name, diff)
        });
        Self {
            parts: parts.filter(|(_, diff)| !diff.is_empty()).collect(),
        }
    }

    /// For machines.
    pub(super) fn to_json(&self) -> Value {
        let parts = self.parts.iter().map(|(name, diff)| {
            let diff = json!({
                "added": diff.added,
                "removed": diff.removed,
                "changed": diff.changed,
            });
            ((*name).to_owned(), diff)
        });
        Value::Object(parts.collect::<Map<_, _>>())
    }

    /// For people.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        if self.parts.is_empty() {
            text.push_str("nothing but the version\n");
        }
        for (name, diff) in &self.parts {
            // Writing into a string does not fail.
            let _written = writeln!(text, "{name}");
            let changes = [
                ("added", &diff.added),
                ("removed", &diff.removed),
                ("changed", &diff.changed),
            ];
            for (word, names) in changes {
                for name in names {
                    let _written = writeln!(text, "  {word:8} {}", printable(name));
                }
            }
        }
        text
    }
}

impl PartDiff {
    fn between(one: &Part, other: &Part) -> Self {
        let mut diff = Self::default();
        let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for name in names {
            match (one.get(name), other.get(name)) {
                (None, Some(_)) => diff.added.push(name.clone()),
                (Some(_), None) => diff.removed.push(name.clone()),
                (Some(one), Some(other)) if one != other => diff.changed.push(name.clone()),
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        diff
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

fn members(value: &Value) -> Part {
    let members = value.as_object().into_iter().flatten();
    members
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn entries(value: &Value, name: impl Fn(&Value) -> String) -> Part {
    let entries = value.as_array().into_iter().flatten();
    entries.map(|entry| (name(entry), entry.clone())).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn entity(entity: &Value) -> String {
    format!("{}::{}", text(&entity["uid"]["type"]), entity["uid"]["id"])
}

/// Whom a person may approve for: one entry for each pair, since a person may be listed again.
fn approvers(snapshot: &Value) -> Part {
    let approvers = snapshot["approvers"].as_array().into_iter().flatten();
    let pairs = approvers.flat_map(|approver| {
        let principal = text(&approver["principal"]);
        let subjects = approver["subjects"].as_array().into_iter().flatten();
        subjects
            .map(|subject| format!("{principal} for {}", text(subject)))
            .collect::<Vec<_>>()
    });
    pairs.map(|pair| (pair, Value::Null)).collect()
}

/// Members of the policy that are no list of names: one entry each.
fn policy_settings(snapshot: &Value) -> Part {
    let listed = members(&snapshot["policy"]);
    let cedar = members(&snapshot["cedar"]);
    let is_setting = |(name, value): &(String, Value)| {
        !is_list_of_names(value) && name != "policies" && name != "entities"
    };
    let mut settings: Part = listed.into_iter().chain(cedar).filter(is_setting).collect();
    let form = if snapshot.get("cedar").is_some() {
        "cedar"
    } else {
        "lists"
    };
    settings.insert("form".to_owned(), json!(form));
    settings
}

/// What the policy's lists name: one entry for each name.
fn lists(snapshot: &Value) -> Part {
    let lists = members(&snapshot["policy"]);
    let lists = lists.into_iter().chain(members(&snapshot["cedar"]));
    let named = lists
        .filter(|(_, value)| is_list_of_names(value))
        .flat_map(|(list, names)| {
            let names = names.as_array().into_iter().flatten();
            let mut named: Vec<_> = names
                .map(|name| format!("{list}: {}", text(name)))
                .collect();
            // A list of nothing says something else than none.
            if named.is_empty() {
                named.push(format!("{list}: nothing"));
            }
            named.into_iter().map(|name| (name, Value::Null))
        });
    named.collect()
}

fn is_list_of_names(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|names| names.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Value {
        json!({
            "version": "v1",
            "policy": {"allowed_selectors": ["a", "b"], "decision_ttl_seconds": 300},
            "predicates": {"a": {"datatype": "text"}, "b": {"datatype": "text"}},
            "resolve": {},
            "clients": [{"client_instance": "c", "principals": ["p"]}],
            "approvers": [{"principal": "o", "subjects": ["s"]}],
            "limits": {"max_selectors": 3},
            "expires_at": null,
        })
    }

    #[test]
    fn names_each_entry_that_was_added_removed_or_changed() {
        let one = snapshot();
        let mut other = snapshot();
        assert!(SnapshotDiff::between(&one, &other).parts.is_empty());
        other["policy"]["allowed_selectors"] = json!(["b", "c"]);
        other["policy"]["decision_ttl_seconds"] = json!(60);
        other["predicates"]["c"] = json!({"datatype": "date"});
        other["clients"][0]["principals"] = json!(["q"]);
        other["approvers"] = json!([{"principal": "o", "subjects": ["t"]}]);
        other["limits"] = json!({"max_selectors": 4});
        other["expires_at"] = json!("2030-01-01T00:00:00Z");
        let diff = SnapshotDiff::between(&one, &other).to_json();
        let expected = json!({
            "policy settings":
                {"added": [], "removed": [], "changed": ["decision_ttl_seconds"]},
            "lists": {
                "added": ["allowed_selectors: c"],
                "removed": ["allowed_selectors: a"],
                "changed": [],
            },
            "predicates": {"added": ["c"], "removed": [], "changed": []},
            "clients": {"added": [], "removed": [], "changed": ["c"]},
            "approvers": {"added": ["o for t"], "removed": ["o for s"], "changed": []},
            "limits": {"added": ["expires_at"], "removed": [], "changed": ["max_selectors"]},
        });
        assert_eq!(diff, expected);
    }

    #[test]
    fn an_empty_list_is_another_one_than_none() {
        let one = snapshot();
        let mut other = snapshot();
        other["policy"]["allowed_onward_disclosure"] = json!([]);
        let diff = SnapshotDiff::between(&one, &other).to_json();
        assert_eq!(
            diff["lists"]["added"],
            json!(["allowed_onward_disclosure: nothing"])
        );
    }
}
