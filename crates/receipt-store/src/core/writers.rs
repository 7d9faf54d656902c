//! Who may write which receipts: a table, deny by default.
//!
//! ```json
//! {
//!   "writers_version": 1,
//!   "writers": {
//!     "spiffe://example.org/exchange/cl-policy-engine": {
//!       "actors": ["urn:cl:policy-engine:*"],
//!       "operations": ["policy.*"],
//!       "consumer_operations": []
//!     }
//!   }
//! }
//! ```
//!
//! A pattern is exact, or ends in `*`, which stands for any rest; `*` alone allows everything.
//! `consumer_operations` are the operations whose receipts, made by consumers, the writer may pass
//! on; their actor is the recipient that the writer authenticated.

use std::collections::BTreeMap;

use cl_host::identity::SpiffeId;
use cl_model::json::{self, Limits};
use serde_json::{Map, Value};

/// Size limit of the table's file.
pub const MAX_TABLE_BYTES: usize = 256 * 1024;

const MAX_PATTERN_BYTES: usize = 512;

/// Who may write what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writers {
    rows: BTreeMap<SpiffeId, Row>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    actors: Vec<Pattern>,
    operations: Vec<Pattern>,
    consumer_operations: Vec<Pattern>,
}

/// Proof that a writer may write an actor's receipt of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorized(());

impl Writers {
    /// Reads the table, strictly: no unknown, repeated or missing member.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidWriters> {
        let table = json::parse(bytes, Limits::network(MAX_TABLE_BYTES))
            .map_err(|_| InvalidWriters::Json)?;
        let table = closed(&table, &["writers_version", "writers"], "the table")?;
        if table["writers_version"] != 1 {
            return Err(InvalidWriters::Version);
        }
        let rows = table["writers"]
            .as_object()
            .ok_or(InvalidWriters::Shape("writers"))?;
        let rows = rows
            .iter()
            .map(|(id, row)| {
                let id = id
                    .parse()
                    .map_err(|_| InvalidWriters::Shape("a writer's id"))?;
                Ok((id, Row::parse(row)?))
            })
            .collect::<Result<_, InvalidWriters>>()?;
        Ok(Self { rows })
    }

    /// The writers.
    pub fn ids(&self) -> impl Iterator<Item = &SpiffeId> {
        self.rows.keys()
    }

    /// Whether `writer` may write receipts of its own, or pass on consumers', of `operation`.
    pub fn allows_operation(&self, writer: &SpiffeId, operation: &str) -> bool {
        self.rows.get(writer).is_some_and(|row| {
            any(&row.operations, operation) || any(&row.consumer_operations, operation)
        })
    }

    /// Whether `writer` may write this actor's receipt of this operation as its own.
    pub fn authorize(&self, writer: &SpiffeId, actor: &str, operation: &str) -> Option<Authorized> {
        let row = self.rows.get(writer)?;
        (any(&row.actors, actor) && any(&row.operations, operation)).then_some(Authorized(()))
    }

    /// Whether `writer` may pass on a consumer's receipt of this operation.
    pub fn authorize_consumer(&self, writer: &SpiffeId, operation: &str) -> Option<Authorized> {
        let row = self.rows.get(writer)?;
        any(&row.consumer_operations, operation).then_some(Authorized(()))
    }
}

impl Row {
    fn parse(row: &Value) -> Result<Self, InvalidWriters> {
        let row = closed(
            row,
            &["actors", "operations", "consumer_operations"],
            "a writer",
        )?;
        let patterns = |name: &'static str| {
            let list = row[name].as_array().ok_or(InvalidWriters::Shape(name))?;
            list.iter()
                .map(|pattern| {
                    let text = pattern.as_str().ok_or(InvalidWriters::Shape(name))?;
                    Pattern::parse(text).ok_or(InvalidWriters::Pattern(name))
                })
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            actors: patterns("actors")?,
            operations: patterns("operations")?,
            consumer_operations: patterns("consumer_operations")?,
        })
    }
}

fn closed<'a>(
    value: &'a Value,
    names: &[&str],
    what: &'static str,
) -> Result<&'a Map<String, Value>, InvalidWriters> {
    value
        .as_object()
        .filter(|object| {
            object.len() == names.len() && names.iter().all(|name| object.contains_key(*name))
        })
        .ok_or(InvalidWriters::Shape(what))
}

/// A text, or a beginning with any rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Exact(String),
    Prefix(String),
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > MAX_PATTERN_BYTES {
            return None;
        }
        let (rest, is_prefix) = match text.strip_suffix('*') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let rest = Some(rest.to_owned()).filter(|rest| !rest.contains('*'))?;
        Some(if is_prefix {
            Self::Prefix(rest)
        } else {
            Self::Exact(rest)
        })
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == text,
            Self::Prefix(prefix) => text.starts_with(prefix),
        }
    }
}

/// Whether one of them matches.
pub(super) fn any(patterns: &[Pattern], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(text))
}

/// A mistake in the table; a store with one does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWriters {
    /// Not strict JSON.
    #[error("the writers table is not strict JSON")]
    Json,
    /// Another version.
    #[error("writers_version must be 1")]
    Version,
    /// A member is missing, unknown or of another type.
    #[error("the writers table does not fit its schema: {0}")]
    Shape(&'static str),
    /// A pattern is empty, too long, or has a `*` before its end.
    #[error("a pattern of {0} is malformed")]
    Pattern(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "spiffe://example.org/exchange/cl-policy-engine";

    fn table(row: &str) -> String {
        format!(r#"{{"writers_version":1,"writers":{{"{ID}":{row}}}}}"#)
    }

    #[test]
    fn allows_only_what_a_row_names() {
        let row = r#"{"actors":["urn:cl:policy-engine:*","urn:a:b"],"operations":["policy.*"],"consumer_operations":["bundle.consume"]}"#;
        let writers = Writers::parse(table(row).as_bytes()).unwrap();
        let id: SpiffeId = ID.parse().unwrap();
        let other: SpiffeId = "spiffe://example.org/exchange/other".parse().unwrap();
        let may = |actor, operation| writers.authorize(&id, actor, operation).is_some();
        assert!(may("urn:cl:policy-engine:local", "policy.decide"));
        assert!(may("urn:a:b", "policy.decide"));
        assert!(!may("urn:a:bc", "policy.decide"));
        assert!(!may("urn:a:b", "policy"));
        assert!(!may("urn:a:b", "bundle.consume"));
        assert!(writers.authorize_consumer(&id, "bundle.consume").is_some());
        assert!(writers.authorize_consumer(&id, "policy.decide").is_none());
        assert!(writers.allows_operation(&id, "bundle.consume"));
        assert!(!writers.allows_operation(&other, "policy.decide"));
        assert!(writers.authorize(&other, "urn:a:b", "policy.x").is_none());
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let good = r#"{"actors":["a"],"operations":["b"],"consumer_operations":[]}"#;
        assert!(Writers::parse(table(good).as_bytes()).is_ok());
        let repeated =
            format!(r#"{{"writers_version":1,"writers":{{"{ID}":{good},"{ID}":{good}}}}}"#);
        for bad in [
            table(r#"{"actors":["a"],"operations":["b"]}"#),
            table(r#"{"actors":["a"],"operations":["b"],"consumer_operations":[],"x":1}"#),
            table(r#"{"actors":["a*b"],"operations":["b"],"consumer_operations":[]}"#),
            table(r#"{"actors":[""],"operations":["b"],"consumer_operations":[]}"#),
            table(r#"{"actors":"a","operations":["b"],"consumer_operations":[]}"#),
            table(good).replace("spiffe", "http"),
            table(good).replace(":1", ":2"),
            repeated,
            String::new(),
        ] {
            assert!(Writers::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
