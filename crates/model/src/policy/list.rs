//! The list-style policy document.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::ruling::Terms;
use crate::digest::Digest;
use crate::json::MAX_SAFE_INTEGER;
use crate::json::read::FromJson;
use crate::opaque::opaque_debug;
use crate::part::{Issuer, PolicySnapshot, RetentionMode};
use crate::purpose::PurposeCode;
use crate::refusal::{Code, Refusal};
use crate::scalar::{Text, integer};
use crate::transform::Transform;

const DEFAULT_DECISION_TTL_SECONDS: u64 = 300;
const DEFAULT_ISSUER: &str = "urn:cl:policy-engine:local";
const MAX_INSTRUCTIONS: usize = 32;

/// A list-style policy: what is allowed by name, what needs an approval, and nothing else.
///
/// Only arrays of non-empty strings are lists; any other form refuses the whole document, so that
/// a mistake can never widen what it allows. Members that this version does not know are covered
/// by the digest and have no effect.
#[derive(Clone)]
pub struct ListPolicy {
    pub(super) terms: Terms,
    pub(super) subjects: HashSet<String>,
    pub(super) requesters: HashSet<String>,
    pub(super) clients: HashSet<String>,
    pub(super) authentication_methods: Option<HashSet<String>>,
    pub(super) recipients: HashSet<String>,
    pub(super) onward_disclosure: HashSet<String>,
    pub(super) purpose_codes: HashSet<String>,
    pub(super) tasks: HashSet<String>,
    pub(super) selectors: Gate,
    pub(super) actions: Gate,
    pub(super) transforms: HashMap<String, Vec<Transform>>,
    pub(super) is_rate_limited: bool,
    pub(super) is_anomalous: bool,
    /// Predicates whose values leave in a form that the decision's own grammar cannot state.
    pub(super) projected: HashSet<String>,
}

/// What of one kind of scope is allowed at once, and what after an approval.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) ordinary: HashSet<String>,
    pub(super) gated: HashSet<String>,
}

opaque_debug!(ListPolicy);

impl ListPolicy {
    /// Reads a policy document; its digest covers all of it.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidObject`], [`Code::InvalidPolicy`], [`Code::InvalidStringList`],
    /// [`Code::InvalidPolicyPurposeCode`], [`Code::AmbiguousPolicyScope`], [`Code::InvalidString`],
    /// [`Code::InvalidPositiveInteger`] or [`Code::UnsupportedTransform`], with the place.
    pub fn read(document: &Value) -> Result<Self, Refusal> {
        let members = Members::of(document)?;
        let snapshot = members.snapshot(Digest::of_json(document))?;
        Self::within(document, snapshot, HashSet::new())
    }

    /// Reads the policy that is a part of a larger document: `snapshot` is the version and digest of
    /// the whole, and `projected` are the predicates that the rest of it projects further, which
    /// makes a grant of one a reduced grant.
    pub(super) fn within(
        document: &Value,
        snapshot: PolicySnapshot,
        projected: HashSet<String>,
    ) -> Result<Self, Refusal> {
        let members = Members::of(document)?;
        let selectors = members.gate("allowed_selectors", "approval_required_selectors")?;
        let purpose_codes = members.list("allowed_purpose_codes")?;
        if !purpose_codes
            .iter()
            .all(|code| PurposeCode::new(code).is_some())
        {
            return Err(Refusal::at_member(
                Code::InvalidPolicyPurposeCode,
                "allowed_purpose_codes",
            ));
        }
        let (retention_mode, max_retention_seconds) = members.maximum_retention()?;
        let issuer = members.issuer()?;
        let mut policy = Self {
            subjects: members.list("allowed_subjects")?,
            requesters: members.list("allowed_requesters")?,
            clients: members.list("allowed_clients")?,
            authentication_methods: members.optional_list("allowed_authentication_methods")?,
            recipients: members.list("allowed_recipients")?,
            onward_disclosure: members
                .optional_list("allowed_onward_disclosure")?
                .unwrap_or_else(|| HashSet::from(["forbidden".to_owned()])),
            purpose_codes,
            tasks: members.list("allowed_tasks")?,
            selectors,
            actions: members.gate("allowed_actions", "approval_required_actions")?,
            terms: Terms {
                snapshot,
                issuer,
                retention_mode,
                max_retention_seconds,
                decision_ttl_seconds: match members.get("decision_ttl_seconds") {
                    Some(seconds) => positive_integer(seconds, "decision_ttl_seconds")?,
                    None => DEFAULT_DECISION_TTL_SECONDS,
                },
                requires_receipts: members.flag("require_receipts")?,
                instructions: Vec::new(),
            },
            transforms: members.transforms()?,
            is_rate_limited: members.get("rate_limit_ok") == Some(&Value::Bool(false)),
            is_anomalous: members
                .get("anomaly_state")
                .is_some_and(|state| is_truthy(state) && state != "normal"),
            projected,
        };
        policy.terms.instructions = members.instructions()?;
        Ok(policy)
    }

    /// The version and digest of this document.
    pub const fn snapshot(&self) -> &PolicySnapshot {
        &self.terms.snapshot
    }

    /// The policy engine that decides by this document.
    pub const fn issuer(&self) -> &Issuer {
        &self.terms.issuer
    }
}

/// The members of a policy document. Null is a value like any other: it is not absence.
struct Members<'a>(&'a Map<String, Value>);

impl<'a> Members<'a> {
    fn of(document: &'a Value) -> Result<Self, Refusal> {
        document
            .as_object()
            .map(Self)
            .ok_or_else(|| Code::InvalidObject.into())
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn flag(&self, name: &'static str) -> Result<bool, Refusal> {
        self.get(name).map_or(Ok(false), |flag| {
            flag.as_bool()
                .ok_or_else(|| Refusal::at_member(Code::InvalidPolicy, name))
        })
    }

    fn list(&self, name: &'static str) -> Result<HashSet<String>, Refusal> {
        self.optional_list(name)?
            .ok_or_else(|| Refusal::at_member(Code::InvalidPolicy, name))
    }

    fn optional_list(&self, name: &'static str) -> Result<Option<HashSet<String>>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let elements = value
            .as_array()
            .ok_or_else(|| Refusal::at_member(Code::InvalidPolicy, name))?;
        let strings =
            strings(elements).ok_or_else(|| Refusal::at_member(Code::InvalidStringList, name))?;
        Ok(Some(strings.map(str::to_owned).collect()))
    }

    fn gate(&self, ordinary: &'static str, gated: &'static str) -> Result<Gate, Refusal> {
        let gate = Gate {
            ordinary: self.list(ordinary)?,
            gated: self.optional_list(gated)?.unwrap_or_default(),
        };
        if !gate.ordinary.is_disjoint(&gate.gated) {
            return Err(Refusal::at_member(Code::AmbiguousPolicyScope, gated));
        }
        Ok(gate)
    }

    fn snapshot(&self, digest: Digest) -> Result<PolicySnapshot, Refusal> {
        let version = self
            .get("version")
            .and_then(Value::as_str)
            .filter(|version| !version.is_empty())
            .ok_or_else(|| Refusal::at_member(Code::InvalidString, "version"))?;
        let version =
            Text::new(version).ok_or_else(|| Refusal::at_member(Code::InvalidPolicy, "version"))?;
        Ok(PolicySnapshot { version, digest })
    }

    fn issuer(&self) -> Result<Issuer, Refusal> {
        let issuer = match self.get("issuer") {
            Some(issuer) => Issuer::from_json(issuer).ok(),
            None => Issuer::new(DEFAULT_ISSUER),
        };
        issuer.ok_or_else(|| Refusal::at_member(Code::InvalidPolicy, "issuer"))
    }

    fn maximum_retention(&self) -> Result<(RetentionMode, u64), Refusal> {
        const NAME: &str = "maximum_retention";
        let retention = self
            .get(NAME)
            .and_then(Value::as_object)
            .ok_or_else(|| Refusal::at_member(Code::InvalidObject, NAME))?;
        let mode = retention
            .get("mode")
            .and_then(Value::as_str)
            .filter(|mode| !mode.is_empty())
            .ok_or_else(|| Refusal::at_member(Code::InvalidString, NAME))?;
        let mode = RetentionMode::parse(mode)
            .ok_or_else(|| Refusal::at_member(Code::InvalidPolicy, NAME))?;
        let seconds = retention.get("max_seconds").unwrap_or(&Value::Null);
        Ok((mode, positive_integer(seconds, NAME)?))
    }

    fn transforms(&self) -> Result<HashMap<String, Vec<Transform>>, Refusal> {
        const NAME: &str = "transforms";
        let Some(value) = self.get(NAME) else {
            return Ok(HashMap::new());
        };
        let by_predicate = value
            .as_object()
            .ok_or_else(|| Refusal::at_member(Code::InvalidPolicy, NAME))?;
        by_predicate
            .iter()
            .map(|(predicate, entries)| {
                let entries = entries
                    .as_array()
                    .ok_or_else(|| Refusal::at_member(Code::InvalidPolicy, NAME))?;
                let transforms = strings(entries)
                    .ok_or_else(|| Refusal::at_member(Code::InvalidStringList, NAME))?
                    .map(Transform::parse)
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| Refusal::at_member(Code::UnsupportedTransform, NAME))?;
                Ok((predicate.clone(), transforms))
            })
            .collect()
    }

    fn instructions(&self) -> Result<Vec<Text<1, 500>>, Refusal> {
        const NAME: &str = "bundle_instructions";
        let Some(value) = self.get(NAME) else {
            return Ok(Vec::new());
        };
        let strings = value
            .as_array()
            .and_then(|elements| strings(elements))
            .ok_or_else(|| Refusal::at_member(Code::InvalidStringList, NAME))?;
        let mut instructions = Vec::new();
        for text in strings {
            let text =
                Text::new(text).ok_or_else(|| Refusal::at_member(Code::InvalidPolicy, NAME))?;
            if !instructions.contains(&text) {
                instructions.push(text);
            }
            if instructions.len() > MAX_INSTRUCTIONS {
                return Err(Refusal::at_member(Code::InvalidPolicy, NAME));
            }
        }
        Ok(instructions)
    }
}

/// The elements as strings, unless one of them is empty or no string.
pub(super) fn strings(elements: &[Value]) -> Option<impl Iterator<Item = &str>> {
    let is_string = |element: &Value| element.as_str().is_some_and(|text| !text.is_empty());
    elements
        .iter()
        .all(is_string)
        .then(|| elements.iter().filter_map(Value::as_str))
}

/// A positive integer that binary64 holds exactly.
pub(super) fn positive_integer(value: &Value, member: &'static str) -> Result<u64, Refusal> {
    integer(value)
        .ok()
        .and_then(|number| u64::try_from(number).ok())
        .filter(|number| (1..=MAX_SAFE_INTEGER).contains(number))
        .ok_or_else(|| Refusal::at_member(Code::InvalidPositiveInteger, member))
}

/// Truth as ECMAScript sees it.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}
