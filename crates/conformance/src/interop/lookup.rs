//! Reading, comparing and changing JSON trees by JSON Pointer.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::canonical;
use super::failure::Failure;

/// Members that follow from the content around them.
const DERIVED: [&str; 5] = ["id", "integrity", "authentication", "entry_digest", "sig"];

/// Longest text of one side that a failure quotes.
const QUOTED_CHARS: usize = 160;

pub(crate) fn at<'v>(value: &'v Value, pointer: &str) -> Result<&'v Value, Failure> {
    value.pointer(pointer).ok_or_else(|| absent(pointer))
}

pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> Result<&'v str, Failure> {
    at(value, pointer)?.as_str().ok_or_else(|| absent(pointer))
}

pub(crate) fn object<'v>(
    value: &'v Value,
    pointer: &str,
) -> Result<&'v Map<String, Value>, Failure> {
    at(value, pointer)?
        .as_object()
        .ok_or_else(|| absent(pointer))
}

/// A list with at least one item, so that a loop over it checks something.
pub(crate) fn list<'v>(value: &'v Value, pointer: &str) -> Result<&'v [Value], Failure> {
    match at(value, pointer)?.as_array() {
        Some(items) if !items.is_empty() => Ok(items),
        Some(_) | None => Err(absent(pointer)),
    }
}

/// A copy in which an existing value is replaced.
pub(crate) fn replaced(value: &Value, pointer: &str, new: Value) -> Result<Value, Failure> {
    let mut value = value.clone();
    *value.pointer_mut(pointer).ok_or_else(|| absent(pointer))? = new;
    Ok(value)
}

/// A copy in which the object at `pointer` also has, or has anew, the given members.
pub(crate) fn extended<const N: usize>(
    value: &Value,
    pointer: &str,
    members: [(&str, Value); N],
) -> Result<Value, Failure> {
    let mut value = value.clone();
    let object = value
        .pointer_mut(pointer)
        .and_then(Value::as_object_mut)
        .ok_or_else(|| absent(pointer))?;
    for (name, member) in members {
        object.insert(name.into(), member);
    }
    Ok(value)
}

/// Compares whole values by their canonical text and reports the first place that differs.
pub(crate) fn same(expected: &Value, found: &Value) -> Result<(), Failure> {
    compare(String::new(), expected, found)
}

/// Compares what is at `pointer` in the value that was found.
pub(crate) fn same_at(found: &Value, pointer: &str, expected: &Value) -> Result<(), Failure> {
    compare(pointer.into(), expected, at(found, pointer)?)
}

fn compare(place: String, expected: &Value, found: &Value) -> Result<(), Failure> {
    if canonical::text(expected) == canonical::text(found) {
        return Ok(());
    }
    let (place, expected, found) = first_difference(place, Some(expected), Some(found));
    Err(Failure::Differs {
        place,
        expected: quoted(expected),
        found: quoted(found),
    })
}

fn first_difference<'v>(
    place: String,
    expected: Option<&'v Value>,
    found: Option<&'v Value>,
) -> (String, Option<&'v Value>, Option<&'v Value>) {
    match (expected, found) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let names: BTreeSet<_> = left.keys().chain(right.keys()).collect();
            // They change with any content, so the content is looked at first.
            let (derived, content): (Vec<_>, Vec<_>) = names
                .into_iter()
                .partition(|name| DERIVED.contains(&name.as_str()));
            for name in content.into_iter().chain(derived) {
                if !equal(left.get(name), right.get(name)) {
                    let place = format!("{place}/{name}");
                    return first_difference(place, left.get(name), right.get(name));
                }
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                if !equal(left.get(index), right.get(index)) {
                    let place = format!("{place}/{index}");
                    return first_difference(place, left.get(index), right.get(index));
                }
            }
        }
        _ => {}
    }
    (place, expected, found)
}

fn equal(left: Option<&Value>, right: Option<&Value>) -> bool {
    left.map(canonical::text) == right.map(canonical::text)
}

fn quoted(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "nothing".into();
    };
    let text = canonical::text(value);
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

fn absent(pointer: &str) -> Failure {
    Failure::Absent {
        place: pointer.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{extended, list, replaced, same};
    use crate::interop::failure::Failure;

    fn place(expected: &serde_json::Value, found: &serde_json::Value) -> String {
        match same(expected, found) {
            Err(Failure::Differs { place, .. }) => place,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn equal_numbers_are_the_same_value() {
        assert_eq!(same(&json!({"n": 60}), &json!({"n": 60.0})), Ok(()));
    }

    #[test]
    fn names_the_first_content_that_differs() {
        let expected = json!({"id": "a", "list": [1, {"x": 1}], "z": null});
        assert_eq!(
            place(&expected, &json!({"id": "b", "list": [1, {"x": 2}]})),
            "/list/1/x"
        );
        assert_eq!(
            place(&expected, &json!({"id": "b", "list": [1]})),
            "/list/1"
        );
        assert_eq!(
            place(&expected, &json!({"id": "a", "list": [1, {"x": 1}]})),
            "/z"
        );
        let more = json!({"id": "a", "list": [1, {"x": 1}], "z": null, "more": null});
        assert_eq!(place(&expected, &more), "/more");
        assert_eq!(place(&expected, &json!([])), "");
    }

    #[test]
    fn an_empty_list_is_no_list_of_cases() {
        assert!(list(&json!({"cases": []}), "/cases").is_err());
        assert!(list(&json!({"cases": [1]}), "/cases").is_ok());
    }

    #[test]
    fn changes_a_copy() {
        let value = json!({"a": {"b": 1}});
        assert_eq!(
            replaced(&value, "/a/b", json!(2)),
            Ok(json!({"a": {"b": 2}}))
        );
        assert!(replaced(&value, "/a/c", json!(2)).is_err());
        assert_eq!(
            extended(&value, "/a", [("c", json!(2))]),
            Ok(json!({"a": {"b": 1, "c": 2}}))
        );
        assert!(extended(&value, "/a/b", [("c", json!(2))]).is_err());
    }
}
