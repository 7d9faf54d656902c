//! Which policies made an answer as it is: their names and demands, and nothing of their texts.

use std::collections::BTreeSet;

use cl_model::policy::{ListPolicy, Question, Scope};
use cl_model::scalar::{PolicyName, ReasonCode};

use crate::demand::{Demand, Role};
use crate::inquiry::{Failed, Inquiry};
use crate::policy::CedarPolicy;

/// What a policy does where it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It grants, unless another one forbids.
    Permit,
    /// It denies.
    Forbid,
    /// It denies nothing; what it demands holds.
    Demand,
}

/// A policy that matched an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched {
    /// Its name.
    pub name: String,
    /// What it does.
    pub effect: Effect,
    /// The reason that it gives, if it gives one.
    pub reason: Option<ReasonCode>,
    /// What it demands, each as the name of the demand and its value.
    pub demands: Vec<String>,
}

/// The policies that matched each requested selector and each requested action, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchedItems {
    /// Those of the selectors.
    pub selectors: Vec<Vec<Matched>>,
    /// Those of the actions.
    pub actions: Vec<Vec<Matched>>,
}

impl CedarPolicy {
    /// The policies that matched each item; none at all if one of them fails, which denies the
    /// whole request.
    pub fn matched(&self, question: &Question<'_>) -> MatchedItems {
        self.try_matched(question)
            .unwrap_or_else(|Failed| MatchedItems::default())
    }

    fn try_matched(&self, question: &Question<'_>) -> Result<MatchedItems, Failed> {
        let Some(inquiry) = Inquiry::of(self, question)? else {
            return Ok(MatchedItems::default());
        };
        let find = |scope, names: &[String]| -> Result<Vec<Vec<Matched>>, Failed> {
            let found = names.iter().map(|name| {
                let decided_by = self.decided_by(&inquiry, scope, name)?;
                Ok(self.describe(&decided_by))
            });
            found.collect()
        };
        Ok(MatchedItems {
            selectors: find(Scope::Selectors, question.selectors())?,
            actions: find(Scope::Actions, question.actions())?,
        })
    }

    fn describe(&self, names: &BTreeSet<&PolicyName>) -> Vec<Matched> {
        let roles = self.roles.iter().filter(|(name, _)| names.contains(name));
        roles
            .map(|(name, role)| {
                let (effect, reason, demands) = match role {
                    Role::Permit => (Effect::Permit, None, Vec::new()),
                    Role::Forbid(reason) => (Effect::Forbid, reason.clone(), Vec::new()),
                    Role::Demand(demand) => {
                        (Effect::Demand, Some(demand.reason.clone()), demand.words())
                    }
                };
                Matched {
                    name: name.as_str().to_owned(),
                    effect,
                    reason,
                    demands,
                }
            })
            .collect()
    }
}

/// The members of a list-style policy that name each item.
pub(crate) fn listed(policy: &ListPolicy, question: &Question<'_>) -> MatchedItems {
    let listed = policy.listed();
    let member = |name: &str, demands: Vec<String>| Matched {
        name: name.to_owned(),
        effect: if demands.is_empty() {
            Effect::Permit
        } else {
            Effect::Demand
        },
        reason: None,
        demands,
    };
    let gated = || vec!["approval".to_owned()];
    let selectors = question.selectors().iter().map(|name| {
        let mut found = Vec::new();
        if listed.selectors.contains(name.as_str()) {
            found.push(member("allowed_selectors", Vec::new()));
        }
        if listed.gated_selectors.contains(name.as_str()) {
            found.push(member("approval_required_selectors", gated()));
        }
        let transforms = listed.transforms_of(name);
        if !transforms.is_empty() {
            let demands = transforms.iter();
            let demands = demands.map(|transform| format!("transform {}", transform.as_str()));
            found.push(member("transforms", demands.collect()));
        }
        found
    });
    let actions = question.actions().iter().map(|name| {
        let mut found = Vec::new();
        if listed.actions.contains(name.as_str()) {
            found.push(member("allowed_actions", Vec::new()));
        }
        if listed.gated_actions.contains(name.as_str()) {
            found.push(member("approval_required_actions", gated()));
        }
        found
    });
    MatchedItems {
        selectors: selectors.collect(),
        actions: actions.collect(),
    }
}

impl Demand {
    /// What it demands, as its annotations name it.
    fn words(&self) -> Vec<String> {
        let limits = &self.limits;
        let plain = [
            (self.needs_approval, "approval"),
            (self.forbids_onward_disclosure, "onward forbidden"),
        ];
        let plain = plain.into_iter().filter(|(is_demanded, _)| *is_demanded);
        let transforms = limits.transforms.iter();
        let seconds = self.max_retention_seconds.into_iter();
        let label = limits.max_label.into_iter();
        let trust = limits.min_trust.into_iter();
        let confidence = limits.min_confidence.into_iter();
        plain
            .map(|(_, word)| word.to_owned())
            .chain(transforms.map(|transform| format!("transform {}", transform.as_str())))
            .chain(seconds.map(|seconds| format!("max_retention {seconds}")))
            .chain(label.map(|label| format!("max_label {}", label.as_str())))
            .chain(trust.map(|trust| format!("min_trust {}", trust.as_str())))
            .chain(confidence.map(|lowest| format!("min_confidence {}", lowest.get())))
            .collect()
    }
}
