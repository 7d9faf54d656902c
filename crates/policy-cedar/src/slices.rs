//! Policies by what they can match, so that one question looks at no unrelated policy.

use std::collections::HashMap;

use cedar_policy::{ActionConstraint, Policy, PolicySet, ResourceConstraint};
use cl_model::policy::Scope;

use crate::data::chain;
use crate::entity::{Kind, action};

const SCOPES: [Scope; 2] = [Scope::Selectors, Scope::Actions];

/// Policies that name one predicate or operation in their scope, by its id, beside the others.
///
/// A scope such as `resource == Predicate::"a"` can match nothing else, so leaving the policy out
/// of every other question changes no answer.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    selectors: Slice,
    actions: Slice,
}

#[derive(Debug, Default)]
struct Slice {
    general: PolicySet,
    named: HashMap<String, PolicySet>,
}

impl Slices {
    /// Adds a policy wherever it can match. Its id must be new; the error says so.
    pub(crate) fn add(&mut self, policy: &Policy) -> Result<(), String> {
        let insert = |set: &mut PolicySet| {
            let added = set.add(policy.clone());
            added.map_err(|error| chain(&error))
        };
        let constraint = policy.action_constraint();
        let resource = policy.resource_constraint();
        for scope in SCOPES {
            let wanted = Kind::Action.named(action(scope));
            let asks = match &constraint {
                ActionConstraint::Any => true,
                ActionConstraint::In(actions) => actions.contains(&wanted),
                ActionConstraint::Eq(action) => *action == wanted,
            };
            if !asks {
                continue;
            }
            let slice = match scope {
                Scope::Selectors => &mut self.selectors,
                Scope::Actions => &mut self.actions,
            };
            match &resource {
                ResourceConstraint::Eq(uid) if Kind::of(scope).is_of(uid) => {
                    let id: &str = uid.id().as_ref();
                    insert(slice.named.entry(id.to_owned()).or_default())?;
                }
                ResourceConstraint::Eq(_) => {}
                ResourceConstraint::Any
                | ResourceConstraint::In(_)
                | ResourceConstraint::Is(_)
                | ResourceConstraint::IsIn(..) => insert(&mut slice.general)?,
            }
        }
        Ok(())
    }

    /// The sets that a question about one item has to ask.
    pub(crate) fn about(&self, scope: Scope, name: &str) -> impl Iterator<Item = &PolicySet> {
        let slice = match scope {
            Scope::Selectors => &self.selectors,
            Scope::Actions => &self.actions,
        };
        let sets = [Some(&slice.general), slice.named.get(name)];
        sets.into_iter().flatten().filter(|set| !set.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_looks_at_what_can_match_only() {
        let texts = [
            ("any", "permit (principal, action, resource);"),
            (
                "disclose",
                "permit (principal, action == Action::\"disclose\", resource);",
            ),
            (
                "a",
                "permit (principal, action, resource == Predicate::\"a\");",
            ),
            (
                "b",
                "permit (principal, action in [Action::\"disclose\"], resource == Predicate::\"b\");",
            ),
            (
                "act-a",
                "permit (principal, action == Action::\"act\", resource == Operation::\"a\");",
            ),
            (
                "in",
                "permit (principal, action, resource in Group::\"g\");",
            ),
        ];
        let mut slices = Slices::default();
        for (id, text) in texts {
            let id = cedar_policy::PolicyId::new(id);
            slices.add(&Policy::parse(Some(id), text).unwrap()).unwrap();
        }
        let about = |scope, name: &str| {
            let sets = slices.about(scope, name);
            let ids = sets.flat_map(|set| set.policies().map(|policy| policy.id().to_string()));
            let mut ids: Vec<String> = ids.collect();
            ids.sort();
            ids.join(" ")
        };
        assert_eq!(about(Scope::Selectors, "a"), "a any disclose in");
        assert_eq!(about(Scope::Selectors, "b"), "any b disclose in");
        assert_eq!(about(Scope::Selectors, "c"), "any disclose in");
        assert_eq!(about(Scope::Actions, "a"), "act-a any in");
    }
}
