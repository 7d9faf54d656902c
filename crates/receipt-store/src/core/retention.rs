//! How long receipts are kept: a class for each operation (spec 11.7, 11.8).
//!
//! ```json
//! {
//!   "retention_version": 1,
//!   "classes": [
//!     {"class": "evidence", "days": 3650, "operations": ["policy.*", "receipts.*"]},
//!     {"class": "other", "days": 1825, "operations": ["*"]}
//!   ]
//! }
//! ```
//!
//! A receipt has the first class with a pattern for its operation; the last class takes all that is
//! left. Days are whole days of UTC: a receipt goes when the day has ended on which it became so old.

use std::collections::BTreeSet;

use cl_model::digest::Digest;
use cl_model::json::{self, Limits};
use cl_model::scalar::is_name;
use serde_json::Value;

use super::writers::{Pattern, any};

/// Size limit of the table's file.
pub const MAX_TABLE_BYTES: usize = 64 * 1024;

/// The table of a store that has none of its own.
pub const DEFAULT_TABLE: &str = include_str!("retention/default.json");

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const MAX_DAYS: u64 = 36_500;
const MAX_CLASSES: usize = 32;
const MAX_CLASS_BYTES: usize = 64;

/// The classes, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    classes: Vec<Class>,
    digest: Digest,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    name: String,
    days: u64,
    operations: Vec<Pattern>,
}

impl Retention {
    /// Reads the table, strictly.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidRetention> {
        let table = json::parse(bytes, Limits::network(MAX_TABLE_BYTES))
            .map_err(|_| InvalidRetention::Json)?;
        check_members(&table, &["retention_version", "classes"], "the table")?;
        if table["retention_version"] != 1 {
            return Err(InvalidRetention::Version);
        }
        let classes = table["classes"].as_array();
        let classes = classes.filter(|it| it.len() <= MAX_CLASSES);
        let classes = classes.ok_or(InvalidRetention::Shape("classes"))?;
        let classes: Vec<Class> = classes.iter().map(Class::parse).collect::<Result<_, _>>()?;
        let names: BTreeSet<_> = classes.iter().map(|class| &class.name).collect();
        if names.len() < classes.len() {
            return Err(InvalidRetention::Repeated);
        }
        let all = Pattern::parse("*");
        let has_rest = classes
            .last()
            .is_some_and(|last| last.operations.iter().any(|it| Some(it) == all.as_ref()));
        if !has_rest {
            return Err(InvalidRetention::NoRest);
        }
        Ok(Self {
            classes,
            digest: Digest::of_json(&table),
        })
    }

    /// The classes, in order.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Tells one table from another.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The name of the class of an operation.
    pub fn class_of(&self, operation: &str) -> &str {
        let mut classes = self.classes.iter();
        let found = classes.find(|class| any(&class.operations, operation));
        // The last one takes all.
        found.or(self.classes.last()).map_or("", Class::name)
    }
}

impl Class {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Before which time a receipt was recorded that is not kept any more.
    pub fn cutoff_ms(&self, now_ms: u64) -> u64 {
        let today = now_ms - now_ms % DAY_MS;
        today.saturating_sub(self.days.saturating_mul(DAY_MS))
    }

    fn parse(class: &Value) -> Result<Self, InvalidRetention> {
        check_members(class, &["class", "days", "operations"], "a class")?;
        let name = class["class"].as_str();
        let name = name.filter(|it| is_name(it) && it.len() <= MAX_CLASS_BYTES);
        let days = class["days"].as_u64();
        let days = days.filter(|days| (1..=MAX_DAYS).contains(days));
        let operations = class["operations"].as_array();
        let operations = operations.ok_or(InvalidRetention::Shape("operations"))?;
        let operations = operations.iter().map(|pattern| {
            let pattern = pattern.as_str().and_then(Pattern::parse);
            pattern.ok_or(InvalidRetention::Shape("operations"))
        });
        Ok(Self {
            name: name.ok_or(InvalidRetention::Shape("class"))?.to_owned(),
            days: days.ok_or(InvalidRetention::Shape("days"))?,
            operations: operations.collect::<Result<_, _>>()?,
        })
    }
}

fn check_members(
    value: &Value,
    names: &[&str],
    what: &'static str,
) -> Result<(), InvalidRetention> {
    let is_exact = value.as_object().is_some_and(|object| {
        object.len() == names.len() && names.iter().all(|name| object.contains_key(*name))
    });
    is_exact.then_some(()).ok_or(InvalidRetention::Shape(what))
}

/// A mistake in the table; a store with one does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRetention {
    /// Not strict JSON.
    #[error("the retention table is not strict JSON")]
    Json,
    /// Another version.
    #[error("retention_version must be 1")]
    Version,
    /// A member is missing, unknown, or out of its bounds.
    #[error("the retention table does not fit its schema: {0}")]
    Shape(&'static str),
    /// Two classes have one name.
    #[error("two retention classes have one name")]
    Repeated,
    /// Some operations have no class.
    #[error("the last retention class must take all operations: *")]
    NoRest,
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"retention_version":1,"classes":[
        {"class":"short","days":2,"operations":["a.b","c.*"]},
        {"class":"other","days":10,"operations":["*"]}]}"#;

    #[test]
    fn the_first_class_counts() {
        let table = Retention::parse(GOOD.as_bytes()).unwrap();
        for (operation, class) in [("a.b", "short"), ("a.bc", "other"), ("c.d", "short")] {
            assert_eq!(table.class_of(operation), class);
        }
        let default = Retention::parse(DEFAULT_TABLE.as_bytes()).unwrap();
        assert_eq!(default.class_of("policy.decide"), "evidence");
        assert_eq!(default.class_of("vault.capture"), "capture");
        assert_eq!(default.class_of("email.send"), "other");
        assert_ne!(default.digest(), table.digest());
    }

    #[test]
    fn a_receipt_goes_after_the_day_on_which_its_time_was_over() {
        let table = Retention::parse(GOOD.as_bytes()).unwrap();
        let short = &table.classes()[0];
        let day = DAY_MS;
        assert_eq!(short.cutoff_ms(100 * day), 98 * day);
        assert_eq!(short.cutoff_ms(101 * day - 1), 98 * day);
        assert_eq!(short.cutoff_ms(day), 0);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        for (from, to) in [
            ("\"days\":2", "\"days\":0"),
            ("\"days\":2", "\"days\":36501"),
            ("\"days\":2", "\"days\":1.5"),
            ("[\"*\"]", "[\"c.*\"]"),
            ("\"other\"", "\"short\""),
            ("short", "Short"),
            ("a.b", "a*b"),
            (":1,", ":2,"),
            ("\"class\":\"short\",", ""),
        ] {
            let bad = GOOD.replace(from, to);
            assert_ne!(bad, GOOD);
            assert!(Retention::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let none = r#"{"retention_version":1,"classes":[]}"#;
        assert_eq!(
            Retention::parse(none.as_bytes()),
            Err(InvalidRetention::NoRest)
        );
    }
}
