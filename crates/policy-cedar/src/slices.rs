//! Policies by what they can match, so that one question looks at few that cannot.

use std::collections::HashMap;

use cedar_policy::{
    ActionConstraint, Entities, EntityUid, Policy, PolicySet, PrincipalConstraint,
    ResourceConstraint,
};
use cl_model::policy::Scope;

use crate::data::chain;
use crate::entity::{Kind, action};
use crate::tokens::{Token, Tokens};

const SCOPES: [Scope; 2] = [Scope::Selectors, Scope::Actions];

/// The attribute of the context that differs between the items of one request.
const APPROVAL: &str = "approval";

/// Policies by the one entity that their scope names, beside those that name none.
///
/// A scope such as `resource == Predicate::"a"` or `principal in Group::"g"` can match nothing but
/// the named entity and its members, so leaving the policy out of every other question changes no
/// answer.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    selectors: Slice,
    actions: Slice,
}

#[derive(Debug, Default)]
struct Slice {
    /// Policies that say the same about every item of a request.
    shared: ByPrincipal,
    /// Policies whose scope names no resource.
    general: ByPrincipal,
    /// Policies by the resource that their scope names, or a group of it.
    by_resource: HashMap<EntityUid, PolicySet>,
}

#[derive(Debug, Default)]
struct ByPrincipal {
    any: PolicySet,
    /// Policies by the principal that their scope names, or a group of it.
    named: HashMap<EntityUid, PolicySet>,
}

/// An entity with all groups that it is in: what a scope has to name in order to match it.
pub(crate) struct Lineage(Vec<EntityUid>);

impl Lineage {
    pub(crate) fn of(uid: &EntityUid, entities: &Entities) -> Self {
        let ancestors = entities.ancestors(uid).into_iter().flatten();
        Self(std::iter::once(uid).chain(ancestors).cloned().collect())
    }

    fn find<'a>(
        &'a self,
        named: &'a HashMap<EntityUid, PolicySet>,
    ) -> impl Iterator<Item = &'a PolicySet> {
        self.0.iter().filter_map(|uid| named.get(uid))
    }
}

impl Slices {
    /// Adds a policy, which has this text, wherever it can match. Its id must be new; the error says
    /// so.
    pub(crate) fn add(&mut self, policy: &Policy, text: &str) -> Result<(), String> {
        let constraint = policy.action_constraint();
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
            let added = slice.place(policy, text).add(policy.clone());
            added.map_err(|error| chain(&error))?;
        }
        Ok(())
    }

    /// The sets that say the same about every item of a principal's request.
    pub(crate) fn shared<'a>(
        &'a self,
        scope: Scope,
        principal: &'a Lineage,
    ) -> impl Iterator<Item = &'a PolicySet> {
        self.of(scope).shared.about(principal)
    }

    /// The other sets that a question about one item has to ask.
    pub(crate) fn about<'a>(
        &'a self,
        scope: Scope,
        principal: &'a Lineage,
        resource: &'a Lineage,
    ) -> impl Iterator<Item = &'a PolicySet> {
        let slice = self.of(scope);
        let general = slice.general.about(principal);
        general.chain(resource.find(&slice.by_resource))
    }

    const fn of(&self, scope: Scope) -> &Slice {
        match scope {
            Scope::Selectors => &self.selectors,
            Scope::Actions => &self.actions,
        }
    }
}

impl Slice {
    /// The set that a policy belongs to.
    fn place(&mut self, policy: &Policy, text: &str) -> &mut PolicySet {
        let by_principal = match policy.resource_constraint() {
            ResourceConstraint::Eq(uid)
            | ResourceConstraint::In(uid)
            | ResourceConstraint::IsIn(_, uid) => {
                return self.by_resource.entry(uid).or_default();
            }
            ResourceConstraint::Any if is_same_for_all_items(text) => &mut self.shared,
            ResourceConstraint::Any | ResourceConstraint::Is(_) => &mut self.general,
        };
        match policy.principal_constraint() {
            PrincipalConstraint::Eq(uid)
            | PrincipalConstraint::In(uid)
            | PrincipalConstraint::IsIn(_, uid) => by_principal.named.entry(uid).or_default(),
            PrincipalConstraint::Any | PrincipalConstraint::Is(_) => &mut by_principal.any,
        }
    }
}

impl ByPrincipal {
    fn about<'a>(&'a self, principal: &'a Lineage) -> impl Iterator<Item = &'a PolicySet> {
        let any = (!self.any.is_empty()).then_some(&self.any);
        any.into_iter().chain(principal.find(&self.named))
    }
}

/// Whether the conditions of a policy look at nothing that differs between the items of a request:
/// neither at the item, nor at what an approval says about it. Whatever is not certainly something
/// else does.
///
/// The text is read word by word: to follow its expressions could take more stack than there is.
fn is_same_for_all_items(text: &str) -> bool {
    let mut tokens = Tokens::of(text);
    // Behind the scope, which is the first pair of brackets behind the effect.
    if !tokens.any(|it| matches!(it, Token::Word("permit" | "forbid")))
        || !tokens.any(|it| it == Token::Sign(")"))
    {
        return false;
    }
    while let Some(token) = tokens.next() {
        match token {
            Token::Word("resource" | "action") => return false,
            Token::Word("context") => {
                let how = tokens.next();
                let attribute = tokens.next();
                match (how, attribute) {
                    (Some(Token::Sign(".") | Token::Word("has")), Some(Token::Word(attribute)))
                        if attribute != APPROVAL => {}
                    _ => return false,
                }
            }
            Token::Word(_) | Token::Sign(_) | Token::Text => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(id: &str, text: &str) -> Policy {
        Policy::parse(Some(cedar_policy::PolicyId::new(id)), text).unwrap()
    }

    fn ids<'a>(sets: impl Iterator<Item = &'a PolicySet>) -> String {
        let ids = sets.flat_map(|set| set.policies().map(|policy| policy.id().to_string()));
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids.join(" ")
    }

    #[test]
    fn a_question_looks_at_what_can_match_only() {
        let texts = [
            ("any", "permit (principal, action, resource);"),
            (
                "disclose",
                "permit (principal, action == Action::\"disclose\", resource) \
                 when { resource.sensitivity < 2 };",
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
            (
                "self",
                "permit (principal, action, resource in Predicate::\"a\");",
            ),
            (
                "one",
                "permit (principal == Agent::\"x\", action, resource);",
            ),
            (
                "members",
                "permit (principal in Group::\"outer\", action, resource) \
                 when { action == Action::\"act\" };",
            ),
        ];
        let mut slices = Slices::default();
        for (id, text) in texts {
            slices.add(&policy(id, text), text).unwrap();
        }
        let entities = serde_json::json!([
            {"uid": {"type": "Predicate", "id": "b"}, "attrs": {},
             "parents": [{"type": "Group", "id": "g"}]},
            {"uid": {"type": "Agent", "id": "y"}, "attrs": {},
             "parents": [{"type": "Group", "id": "inner"}]},
            {"uid": {"type": "Group", "id": "inner"}, "attrs": {},
             "parents": [{"type": "Group", "id": "outer"}]},
        ]);
        let entities = Entities::from_json_value(entities, None).unwrap();
        let about = |scope, principal: &str, name: &str| {
            let principal = Lineage::of(&Kind::Agent.named(principal), &entities);
            let resource = Lineage::of(&Kind::of(scope).named(name), &entities);
            [
                ids(slices.shared(scope, &principal)),
                ids(slices.about(scope, &principal, &resource)),
            ]
            .join(" | ")
        };
        let selectors = |principal, name| about(Scope::Selectors, principal, name);
        assert_eq!(selectors("x", "a"), "any one | a disclose self");
        assert_eq!(selectors("y", "b"), "any | b disclose in members");
        assert_eq!(selectors("z", "c"), "any | disclose");
        assert_eq!(about(Scope::Actions, "y", "a"), "any | act-a members");
    }

    #[test]
    fn only_what_cannot_see_the_item_is_asked_once() {
        let is_same = |condition: &str| {
            let text = format!("forbid (principal, action, resource) when {{ {condition} }};");
            policy("p", &text);
            is_same_for_all_items(&text)
        };
        for condition in [
            "true",
            "context.purpose == \"approval\" && context.now < datetime(\"2027-03-01\")",
            "principal has suspended && principal.suspended",
            "principal.hasTag(context.task) && principal in Group::\"g\"",
            "{purpose: context.purpose}.purpose == \"resource\"",
            "context . purpose == \"action\" // resource\n",
        ] {
            assert!(is_same(condition), "{condition}");
        }
        for condition in [
            "resource.sensitivity > 1",
            "resource in Group::\"g\"",
            "resource has side_effect",
            "principal.hasTag(resource.datatype)",
            "action == Action::\"act\"",
            "context.approval == ApprovalAnswer::\"none\"",
            "context has approval",
            "context == {}",
            "{all: context}.all.approval == ApprovalAnswer::\"none\"",
            "(if true then context else context).approval == ApprovalAnswer::\"none\"",
            "[context].contains(context)",
            "context[\"approval\"] == ApprovalAnswer::\"none\"",
            "context has \"approval\"",
            "{context: 1}.context == 1",
            "context // none\n . approval == ApprovalAnswer::\"none\"",
        ] {
            assert!(!is_same(condition), "{condition}");
        }
    }
}
