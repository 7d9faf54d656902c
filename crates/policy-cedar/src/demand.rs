//! What a policy is for: its annotations, read.

use cedar_policy::{Effect, Policy};
use cl_model::part::{Label, Trust};
use cl_model::policy::Limits;
use cl_model::scalar::{Confidence, MAX_RETENTION_SECONDS, ReasonCode};
use cl_model::transform::{MAX_TRANSFORMS, Transform};

/// The longest reason code, in characters.
const MAX_REASON_CHARS: usize = 63;

/// What one policy does where it matches.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// It permits.
    Permit,
    /// It denies, with a reason if it has one.
    Forbid(Option<ReasonCode>),
    /// It limits what others permit.
    Demand(Demand),
}

/// What a demand asks for where it matches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Demand {
    pub(crate) reason: ReasonCode,
    pub(crate) needs_approval: bool,
    pub(crate) forbids_onward_disclosure: bool,
    pub(crate) max_retention_seconds: Option<u64>,
    pub(crate) limits: Limits,
}

impl Role {
    /// Reads the annotations of a policy; the error says what is wrong with them.
    pub(crate) fn of(policy: &Policy) -> Result<Self, String> {
        let mut reason = None;
        let mut demand = Annotations::default();
        for (key, value) in policy.annotations() {
            let is_valid = match key {
                "reason" => {
                    reason = reason_code(value);
                    reason.is_some()
                }
                _ => demand.read(key, value)?,
            };
            if !is_valid {
                return Err(format!("the value of @{key} is out of its grammar"));
            }
        }
        match (policy.effect(), demand.count, reason) {
            (Effect::Permit, 0, None) => Ok(Self::Permit),
            (Effect::Permit, 0, Some(_)) => Err("a permit has no reason".to_owned()),
            (Effect::Permit, _, _) => {
                Err("a permit carries no demands: write a forbid for them".to_owned())
            }
            (Effect::Forbid, 0, reason) => Ok(Self::Forbid(reason)),
            (Effect::Forbid, _, None) => Err("a demand needs a @reason".to_owned()),
            (Effect::Forbid, _, Some(reason)) => Ok(Self::Demand(Demand {
                reason,
                needs_approval: demand.needs_approval,
                forbids_onward_disclosure: demand.forbids_onward_disclosure,
                max_retention_seconds: demand.max_retention_seconds,
                limits: demand.limits,
            })),
        }
    }
}

#[derive(Default)]
struct Annotations {
    count: usize,
    needs_approval: bool,
    forbids_onward_disclosure: bool,
    max_retention_seconds: Option<u64>,
    limits: Limits,
}

impl Annotations {
    /// Reads one annotation; says whether its value is within its grammar.
    fn read(&mut self, key: &str, value: &str) -> Result<bool, String> {
        self.count += 1;
        let limits = &mut self.limits;
        Ok(match key {
            "approval" => {
                self.needs_approval = true;
                value.is_empty()
            }
            "onward" => {
                self.forbids_onward_disclosure = true;
                value == "forbidden"
            }
            "max_retention" => {
                self.max_retention_seconds = seconds(value);
                self.max_retention_seconds.is_some()
            }
            "transform" => match transforms(value) {
                Some(transforms) => {
                    limits.transforms = transforms;
                    true
                }
                None => false,
            },
            "max_label" => {
                limits.max_label = Label::parse(value);
                limits.max_label.is_some()
            }
            "min_trust" => {
                limits.min_trust = Trust::parse(value);
                limits.min_trust.is_some()
            }
            "min_confidence" => {
                limits.min_confidence = confidence(value);
                limits.min_confidence.is_some()
            }
            _ => return Err(format!("@{key} is unknown")),
        })
    }
}

fn reason_code(value: &str) -> Option<ReasonCode> {
    ReasonCode::new(value).filter(|_| value.len() <= MAX_REASON_CHARS)
}

/// Seconds as decimal digits without a leading zero, up to the longest retention there is.
fn seconds(value: &str) -> Option<u64> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit()) && !value.starts_with('0');
    let seconds = value.parse().ok().filter(|_| is_plain)?;
    (1..=MAX_RETENTION_SECONDS.unsigned_abs())
        .contains(&seconds)
        .then_some(seconds)
}

/// Transforms of a decision, joined by commas, each once.
fn transforms(value: &str) -> Option<Vec<Transform>> {
    let mut distinct = Vec::new();
    for text in value.split(',') {
        let transform = Transform::parse(text)?;
        if distinct.contains(&transform) {
            return None;
        }
        distinct.push(transform);
    }
    (distinct.len() <= MAX_TRANSFORMS).then_some(distinct)
}

/// A decimal from 0 to 1 as Cedar writes it: digits, a point, and one to four digits.
fn confidence(value: &str) -> Option<Confidence> {
    let (whole, fraction) = value.split_once('.')?;
    let is_decimal = matches!(whole, "0" | "1")
        && (1..=4).contains(&fraction.len())
        && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|_| is_decimal)?;
    Confidence::new(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(text: &str) -> Result<Role, String> {
        Role::of(&text.parse().unwrap())
    }

    fn demand(annotations: &str) -> Option<Demand> {
        let text = format!("@reason(\"WHY\") {annotations} forbid (principal, action, resource);");
        match role(&text) {
            Ok(Role::Demand(demand)) => Some(demand),
            Ok(Role::Permit | Role::Forbid(_)) | Err(_) => None,
        }
    }

    #[test]
    fn values_have_one_grammar() {
        let retention = |value: &str| demand(&format!("@max_retention(\"{value}\")"));
        assert_eq!(retention("60").unwrap().max_retention_seconds, Some(60));
        for bad in ["", "0", "060", "86401", "+60", "60s", "1e3", " 60", "-1"] {
            assert_eq!(retention(bad), None, "{bad}");
        }
        let confidence = |value: &str| demand(&format!("@min_confidence(\"{value}\")"));
        let half = confidence("0.5").unwrap().limits.min_confidence;
        assert_eq!(half, Confidence::new(0.5));
        for bad in [
            "", "1", "1.0001", "0.12345", ".5", "0.", "00.5", "NaN", "-0.1",
        ] {
            assert_eq!(confidence(bad), None, "{bad}");
        }
        let transform = |value: &str| demand(&format!("@transform(\"{value}\")"));
        let two = transform("redact:a,compress:task-facts").unwrap();
        assert_eq!(two.limits.transforms.len(), 2);
        for bad in [
            "",
            "redact:a,",
            "redact:a, redact:b",
            "hide:a",
            "redact:a,redact:a",
        ] {
            assert_eq!(transform(bad), None, "{bad}");
        }
        for (good, bad) in [
            ("@approval", "@approval(\"yes\")"),
            ("@onward(\"forbidden\")", "@onward(\"allowed\")"),
            ("@max_label(\"private\")", "@max_label(\"secret\")"),
            ("@min_trust(\"verified\")", "@min_trust(\"full\")"),
        ] {
            assert!(demand(good).is_some(), "{good}");
            assert!(demand(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn permits_have_no_annotations_and_demands_have_a_reason() {
        let (permit, forbid) = (
            "permit (principal, action, resource);",
            "forbid (principal, action, resource);",
        );
        assert!(matches!(role(permit), Ok(Role::Permit)));
        assert!(matches!(role(forbid), Ok(Role::Forbid(None))));
        let with_reason = format!("@reason(\"WHY\") {forbid}");
        assert!(matches!(role(&with_reason), Ok(Role::Forbid(Some(_)))));
        for annotations in [
            "@approval",
            "@reason(\"WHY\")",
            "@reason(\"WHY\") @approval",
            "@id(\"x\")",
        ] {
            assert!(
                role(&format!("{annotations} {permit}")).is_err(),
                "{annotations}"
            );
        }
        for annotations in [
            "@approval",
            "@aproval @reason(\"WHY\")",
            "@reason(\"why\")",
            "@reason",
        ] {
            assert!(
                role(&format!("{annotations} {forbid}")).is_err(),
                "{annotations}"
            );
        }
    }
}
