//! Reading cases: a closed form, with defaults for what most cases share.

use std::collections::BTreeSet;

use cl_model::object::DecisionState;
use cl_model::part::SPEC_VERSION;
use cl_model::policy::{Assurance, Delegated};
use cl_model::scalar::{Name, Predicate};
use cl_model::time::UnixTime;
use serde_json::{Map, Value, json};

use super::{Case, CaseFile, Expectation, InvalidCases};

/// How long a request holds unless a case says otherwise, in seconds.
const LIFETIME_SECONDS: u64 = 300;
const MAX_CASES: usize = 4096;

impl CaseFile {
    /// Reads a file of cases. Members that the form does not know refuse it.
    ///
    /// # Errors
    ///
    /// [`InvalidCases`] with the place and what was expected there.
    pub fn read(value: &Value) -> Result<Self, InvalidCases> {
        let mut members = Members::of(value, String::new())?;
        let snapshot = members.required("snapshot", text)?;
        let now = members.required("now", time)?;
        let cases = members.required("cases", |value, place| {
            let cases = value
                .as_array()
                .filter(|cases| (1..=MAX_CASES).contains(&cases.len()));
            let cases = cases.ok_or_else(|| invalid(place, "1 to 4096 cases"))?;
            let numbered = cases.iter().enumerate();
            numbered
                .map(|(index, case)| Case::read(case, now, index, &format!("{place}/{index}")))
                .collect()
        })?;
        members.end()?;
        Ok(Self { snapshot, cases })
    }
}

impl Case {
    fn read(value: &Value, now: UnixTime, index: usize, place: &str) -> Result<Self, InvalidCases> {
        let mut members = Members::of(value, place.to_owned())?;
        let now = members.optional("now", time)?.unwrap_or(now);
        let case = Self {
            name: members.required("name", text)?,
            place: place.to_owned(),
            now,
            request: members
                .required("request", |value, place| request(value, place, index, now))?,
            assurance: members
                .optional("assurance", |value, place| {
                    let assurance = value.as_str().and_then(Assurance::parse);
                    assurance.ok_or_else(|| invalid(place, "low, substantial or high"))
                })?
                .unwrap_or(Assurance::Substantial),
            has_receipt_store: members
                .optional("receipts_available", |value, place| {
                    let flag = value.as_bool();
                    flag.ok_or_else(|| invalid(place, "true or false"))
                })?
                .unwrap_or(true),
            anomaly: members.optional("anomaly_state", |value, place| {
                let state = value.as_str().and_then(Name::new);
                state.ok_or_else(|| invalid(place, "a lowercase name"))
            })?,
            delegated: members
                .optional("delegation", |value, place| delegation(value, place, now))?,
            approval: members.optional("approval", approval)?,
            expect: members.required("expect", Expectation::read)?,
        };
        members.end()?;
        Ok(case)
    }
}

impl Expectation {
    fn read(value: &Value, place: &str) -> Result<Self, InvalidCases> {
        let mut members = Members::of(value, place.to_owned())?;
        let decision = members.required("decision", |value, place| {
            let state = value.as_str().and_then(DecisionState::parse);
            let state = state.ok_or_else(|| {
                invalid(
                    place,
                    "allow, allow_with_reductions, deny or needs_approval",
                )
            })?;
            Ok(state.as_str().to_owned())
        })?;
        let expectation = Self {
            decision,
            granted_selectors: members.optional("granted_selectors", names)?,
            granted_actions: members.optional("granted_actions", names)?,
            transforms: members.optional("transforms", names)?,
            max_seconds: members.optional("max_seconds", number)?,
            onward_disclosure: members.optional("onward_disclosure", text)?,
            reasons: members.optional("reasons", names)?.unwrap_or_default(),
        };
        members.end()?;
        Ok(expectation)
    }
}

/// The whole request that a short one stands for.
fn request(value: &Value, place: &str, index: usize, now: UnixTime) -> Result<Value, InvalidCases> {
    let mut members = Members::of(value, place.to_owned())?;
    let requester = members.required("requester", text)?;
    let mut or = |name, default: &str| {
        let text = members.optional(name, text)?;
        Ok::<_, InvalidCases>(text.unwrap_or_else(|| default.to_owned()))
    };
    let authenticated_by = or("authenticated_by", "oauth2")?;
    let onward_disclosure = or("onward_disclosure", "forbidden")?;
    let mode = or("retention_mode", "ephemeral")?;
    let level = or("receipts", "operation")?;
    let lifetime = members.optional("lifetime_seconds", number)?;
    let lifetime = lifetime.unwrap_or(LIFETIME_SECONDS);
    let seconds = members.optional("retention_seconds", number)?.unwrap_or(60);
    let selectors = members.required("selectors", names)?;
    let request = json!({
        "spec_version": SPEC_VERSION,
        "type": "context_request",
        "id": format!("urn:cl:request:case-{}", index + 1),
        "created_at": now.to_string(),
        "issuer": {"id": requester},
        "subject_ref": members.required("subject", text)?,
        "requester": {
            "principal": requester,
            "authenticated_by": authenticated_by,
            "client_instance": members.required("client", text)?,
        },
        "recipient": {
            "principal": members.required("recipient", text)?,
            "onward_disclosure": onward_disclosure,
        },
        "purpose_code": members.required("purpose", text)?,
        "task": {"kind": members.required("task", text)?, "user_visible": true},
        "selectors": selectors
            .iter()
            .map(|name| json!({"predicate": name}))
            .collect::<Vec<_>>(),
        "requested_actions": members.required("actions", names)?,
        "retention": {"mode": mode, "max_seconds": seconds},
        "receipt_requirement": {"level": level, "required": level != "none"},
        "expires_at": now.plus_seconds(lifetime).to_string(),
    });
    members.end()?;
    Ok(request)
}

/// What is delegated, for as long as a request lasts unless the case says otherwise.
fn delegation(value: &Value, place: &str, now: UnixTime) -> Result<Delegated, InvalidCases> {
    let mut members = Members::of(value, place.to_owned())?;
    let until = members.optional("until", time)?;
    let predicates = members.required("predicates", |value, place| {
        let predicates = names(value, place)?.into_iter().map(Predicate::new);
        let predicates: Option<Vec<_>> = predicates.collect();
        predicates.ok_or_else(|| invalid(place, "expected names of predicates"))
    })?;
    members.end()?;
    Ok(Delegated {
        predicates,
        until: until.unwrap_or(now.plus_seconds(LIFETIME_SECONDS)),
    })
}

fn approval(value: &Value, place: &str) -> Result<Value, InvalidCases> {
    let mut members = Members::of(value, place.to_owned())?;
    let mut scope = Map::new();
    for name in [
        "granted_selectors",
        "granted_actions",
        "declined_selectors",
        "declined_actions",
    ] {
        let listed = members.optional(name, names)?.unwrap_or_default();
        scope.insert(name.to_owned(), json!(listed));
    }
    members.end()?;
    Ok(Value::Object(scope))
}

fn invalid(place: &str, expected: &'static str) -> InvalidCases {
    let place = if place.is_empty() { "/" } else { place };
    InvalidCases {
        place: place.to_owned(),
        expected,
    }
}

fn text(value: &Value, place: &str) -> Result<String, InvalidCases> {
    let text = value.as_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| invalid(place, "expected text"))?;
    Ok(text.to_owned())
}

fn number(value: &Value, place: &str) -> Result<u64, InvalidCases> {
    let number = value.as_u64();
    number.ok_or_else(|| invalid(place, "expected a whole number"))
}

fn time(value: &Value, place: &str) -> Result<UnixTime, InvalidCases> {
    let time = value.as_str().and_then(UnixTime::parse);
    time.ok_or_else(|| invalid(place, "expected an RFC 3339 date and time"))
}

fn names(value: &Value, place: &str) -> Result<BTreeSet<String>, InvalidCases> {
    let expected = "expected a list of distinct names";
    let elements = value.as_array().ok_or_else(|| invalid(place, expected))?;
    let mut names = BTreeSet::new();
    for element in elements {
        if !names.insert(text(element, place)?) {
            return Err(invalid(place, expected));
        }
    }
    Ok(names)
}

/// The members of an object, taken one by one; none may be left.
struct Members<'a> {
    object: &'a Map<String, Value>,
    place: String,
    taken: usize,
}

impl<'a> Members<'a> {
    fn of(value: &'a Value, place: String) -> Result<Self, InvalidCases> {
        let object = value.as_object();
        let object = object.ok_or_else(|| invalid(&place, "expected a mapping"))?;
        Ok(Self {
            object,
            place,
            taken: 0,
        })
    }

    fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value, &str) -> Result<T, InvalidCases>,
    ) -> Result<Option<T>, InvalidCases> {
        let Some(value) = self.object.get(name) else {
            return Ok(None);
        };
        self.taken += 1;
        read(value, &format!("{}/{name}", self.place)).map(Some)
    }

    fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value, &str) -> Result<T, InvalidCases>,
    ) -> Result<T, InvalidCases> {
        let place = format!("{}/{name}", self.place);
        self.optional(name, read)?
            .ok_or_else(|| invalid(&place, "expected this member"))
    }

    fn end(self) -> Result<(), InvalidCases> {
        if self.taken == self.object.len() {
            return Ok(());
        }
        Err(invalid(&self.place, "expected no other members"))
    }
}
