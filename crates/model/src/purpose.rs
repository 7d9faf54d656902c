//! The registry of purpose codes (spec 7.3.1).

use std::fmt;

use serde_json::Value;

use crate::json::read::{Expected, FromJson, Mismatch, ToJson, string};
use crate::scalar::has_groups;

/// The purpose codes of the core registry.
pub const REGISTERED: [&str; 7] = [
    "draft.response",
    "summarize.material",
    "retrieve.context",
    "plan.task",
    "execute.approved_action",
    "discover.minimum_reveal",
    "propose.memory_update",
];

/// A registered purpose code, or an extension under `x.` with at least two more labels.
///
/// Codes are compared as a whole: no prefix, letter case or similarity ever matches (spec 7.3.1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PurposeCode(String);

impl PurposeCode {
    /// The code, if it is registered or a well-formed extension. Linear in the length of the text.
    pub fn new(code: &str) -> Option<Self> {
        (REGISTERED.contains(&code) || is_extension(code)).then(|| Self(code.to_owned()))
    }

    /// The code as objects write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_extension(code: &str) -> bool {
    code.strip_prefix("x.")
        .is_some_and(|labels| labels.contains('.') && has_groups(labels))
}

impl fmt::Display for PurposeCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromJson for PurposeCode {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        Self::new(string(value)?).ok_or_else(|| Expected::Pattern("a purpose code").into())
    }
}

impl ToJson for PurposeCode {
    fn to_json(&self) -> Value {
        Value::String(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_registered_codes_and_extensions_only() {
        for good in REGISTERED.into_iter().chain([
            "x.example.review",
            "x.example.review.contract",
            "x.a-b.c_d",
            "x.a_1.b",
            "x.1.2",
        ]) {
            assert!(PurposeCode::new(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "draft",
            "draft.responses",
            "draft.response ",
            "draft.response\n",
            "Draft.Response",
            "draft.anything",
            "x",
            "x.",
            "x.a",
            "x.a-b_c",
            "x.a.",
            "x..a.b",
            "x.a..b",
            "x.a.B",
            "x.a.*",
            "y.a.b",
            "xa.b.c",
            "x.é.a",
        ] {
            assert!(PurposeCode::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn decides_hostile_codes_in_linear_time() {
        // Patterns with nested repetition blow up here; this must simply return.
        let hostile = format!("x.{}!", "a.".repeat(1 << 20));
        assert!(PurposeCode::new(&hostile).is_none());
        let long = format!("x.a.{}", "b".repeat(1 << 20));
        assert!(PurposeCode::new(&long).is_some());
    }
}
