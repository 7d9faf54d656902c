//! The decisions of a compiled policy.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use cedar_policy::{Authorizer, Decision, Entities, EntityUid, PolicySet, Request};
use cl_model::policy::{
    Access, Answer, CedarForm, ItemRuling, Limits, Part, Policy, Question, Ruling, Scope, Terms,
};
use cl_model::scalar::{PolicyName, ReasonCode};

use crate::data::Data;
use crate::demand::{Demand, Role};
use crate::entity::Kind;
use crate::inquiry::{Failed, Inquiry};
use crate::slices::{Lineage, Slices};

/// A policy in Cedar, read and validated.
///
/// Its `Debug` form shows nothing of it, since policies may name people.
pub struct CedarPolicy {
    pub(crate) form: CedarForm,
    pub(crate) data: Data,
    /// The snapshot's own limits, by predicate, and whether it projects the predicate.
    pub(crate) own: HashMap<String, (Limits, bool)>,
    /// Permits and plain forbids.
    pub(crate) deciding: Slices,
    /// Forbids that demand something.
    pub(crate) demanding: Slices,
    pub(crate) roles: BTreeMap<PolicyName, Role>,
    pub(crate) authorizer: Authorizer,
}

impl fmt::Debug for CedarPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CedarPolicy")
            .finish_non_exhaustive()
    }
}

impl Policy for CedarPolicy {
    fn terms(&self) -> &Terms {
        self.form.terms()
    }

    fn rule(&self, question: &Question<'_>) -> Ruling {
        self.rule_traced(question).0
    }
}

/// What was found about one requested item.
#[derive(Clone, Debug, Default, PartialEq)]
struct Found<'a> {
    is_permitted: bool,
    is_forbidden: bool,
    denials: BTreeSet<&'a ReasonCode>,
    demands: BTreeMap<&'a PolicyName, &'a Demand>,
    decided_by: BTreeSet<&'a PolicyName>,
    /// Whether it is as it is only because of what an approval says.
    depends_on_approval: bool,
}

impl CedarPolicy {
    /// The answer, and the policies that took part in it.
    pub fn rule_traced(&self, question: &Question<'_>) -> (Ruling, BTreeSet<PolicyName>) {
        self.try_rule(question).unwrap_or_else(|Failed| {
            let failed = Ruling {
                has_failed: true,
                ..Ruling::default()
            };
            (failed, BTreeSet::new())
        })
    }

    /// The names of all policies.
    pub fn names(&self) -> impl Iterator<Item = &PolicyName> {
        self.roles.keys()
    }

    pub(crate) const fn entities(&self) -> &Entities {
        &self.data.entities
    }

    /// The entities that policies name, but for those that a scope asks the request to be about.
    pub(crate) fn named_in_conditions(&self) -> impl Iterator<Item = &EntityUid> {
        self.data.named_in_conditions.iter()
    }

    pub(crate) const fn form(&self) -> &CedarForm {
        &self.form
    }

    fn try_rule(&self, question: &Question<'_>) -> Result<(Ruling, BTreeSet<PolicyName>), Failed> {
        let Some(inquiry) = Inquiry::of(self, question)? else {
            return Ok((Ruling::default(), BTreeSet::new()));
        };
        let find = |scope, names: &[String]| -> Result<Vec<Found<'_>>, Failed> {
            let mut shared = None;
            let found = names
                .iter()
                .map(|name| self.find(&inquiry, scope, name, &mut shared));
            found.collect()
        };
        let selectors = find(Scope::Selectors, question.selectors())?;
        let actions = find(Scope::Actions, question.actions())?;
        let names = question.selectors().iter();
        let shared = limits_of(actions.iter());
        let rulings = names.zip(&selectors).map(|(name, found)| {
            let mut limits = limits_of([found]);
            limits.restrict(&shared);
            ItemRuling {
                access: found.access(),
                is_reduced: self.is_reduced(name, &limits),
                limits,
            }
        });
        let all = || selectors.iter().chain(&actions);
        let demands = || all().flat_map(|found| found.demands.values().copied());
        let reasons = all().flat_map(|found| found.denials.iter().copied());
        let reasons: BTreeSet<_> = demands()
            .map(|demand| &demand.reason)
            .chain(reasons)
            .collect();
        let actions = actions.iter().map(|found| ItemRuling {
            access: found.access(),
            ..ItemRuling::denied()
        });
        let onward = question.onward_disclosure().unwrap_or_default();
        let is_allowed = self.form.allows_onward_disclosure(onward);
        let ruling = Ruling {
            refused: (!is_allowed)
                .then_some(Part::OnwardDisclosure)
                .into_iter()
                .collect(),
            selectors: rulings.collect(),
            actions: actions.collect(),
            max_retention_seconds: demands()
                .filter_map(|demand| demand.max_retention_seconds)
                .min(),
            // Whatever asked for the delegation, nothing outlasts it.
            ends_at: question.delegated().map(|delegated| delegated.until),
            forbids_onward_disclosure: demands().any(|demand| demand.forbids_onward_disclosure),
            reasons: reasons.into_iter().cloned().collect(),
            ..Ruling::default()
        };
        let decided_by = all().flat_map(|found| found.decided_by.iter().copied());
        let decided_by = decided_by.cloned().collect();
        Ok((ruling, decided_by))
    }

    /// Asks about one item: as if there were no approval, and then with what the approval says. What
    /// depends on an approval counts as gated, so that the decision is bound to the approval.
    fn find<'a>(
        &'a self,
        inquiry: &Inquiry<'_>,
        scope: Scope,
        name: &str,
        shared: &mut Option<Found<'a>>,
    ) -> Result<Found<'a>, Failed> {
        // Nothing is known about a predicate that is not registered, so nobody may have it.
        if scope == Scope::Selectors && !self.data.has_predicate(name) {
            return Ok(Found::default());
        }
        let item = Kind::of(scope).named(name);
        let lineage = Lineage::of(&item, inquiry.entities());
        let request = inquiry.about(scope, item.clone(), Answer::None)?;
        let shared = match shared {
            Some(shared) => shared,
            None => shared.insert(self.ask_shared(inquiry, scope, &request)?),
        };
        let unanswered = self.ask(inquiry, scope, &lineage, &request, shared)?;
        let answer = inquiry.answer(scope, name);
        if answer == Answer::None {
            return Ok(unanswered);
        }
        let request = inquiry.about(scope, item, answer)?;
        let mut answered = self.ask(inquiry, scope, &lineage, &request, shared)?;
        answered.depends_on_approval = answered != unanswered;
        Ok(answered)
    }

    /// The policies that take part in the answer about one item.
    pub(crate) fn decided_by(
        &self,
        inquiry: &Inquiry<'_>,
        scope: Scope,
        name: &str,
    ) -> Result<BTreeSet<&PolicyName>, Failed> {
        self.find(inquiry, scope, name, &mut None)
            .map(|found| found.decided_by)
    }

    /// Asks what is the same for all items of a request, with the request about any of them.
    fn ask_shared(
        &self,
        inquiry: &Inquiry<'_>,
        scope: Scope,
        request: &Request,
    ) -> Result<Found<'_>, Failed> {
        let mut found = Found::default();
        let principal = &inquiry.lineage;
        for set in self.deciding.shared(scope, principal) {
            self.decide(inquiry, set, request, &mut found)?;
        }
        for set in self.demanding.shared(scope, principal) {
            self.demand(inquiry, set, request, &mut found)?;
        }
        Ok(found)
    }

    /// Asks about one item, and adds what is the same for all.
    fn ask<'a>(
        &'a self,
        inquiry: &Inquiry<'_>,
        scope: Scope,
        item: &Lineage,
        request: &Request,
        shared: &Found<'a>,
    ) -> Result<Found<'a>, Failed> {
        let mut found = shared.clone();
        let principal = &inquiry.lineage;
        for set in self.deciding.about(scope, principal, item) {
            self.decide(inquiry, set, request, &mut found)?;
        }
        for set in self.demanding.about(scope, principal, item) {
            self.demand(inquiry, set, request, &mut found)?;
        }
        Ok(found)
    }

    /// Asks a set of permits and plain forbids.
    fn decide<'a>(
        &'a self,
        inquiry: &Inquiry<'_>,
        set: &PolicySet,
        request: &Request,
        found: &mut Found<'a>,
    ) -> Result<(), Failed> {
        for (policy, role) in self.matching(inquiry, set, request)? {
            found.decided_by.insert(policy);
            match role {
                Role::Permit => found.is_permitted = true,
                Role::Forbid(reason) => {
                    found.is_forbidden = true;
                    found.denials.extend(reason);
                }
                Role::Demand(_) => return Err(Failed),
            }
        }
        Ok(())
    }

    /// Asks a set of demands.
    fn demand<'a>(
        &'a self,
        inquiry: &Inquiry<'_>,
        set: &PolicySet,
        request: &Request,
        found: &mut Found<'a>,
    ) -> Result<(), Failed> {
        for (policy, role) in self.matching(inquiry, set, request)? {
            let Role::Demand(demand) = role else {
                return Err(Failed);
            };
            found.decided_by.insert(policy);
            found.demands.insert(policy, demand);
        }
        Ok(())
    }

    /// The policies of a set that decide about a request: its matching forbids, or else its
    /// matching permits. One that fails is no policy that does not match, so everything fails.
    fn matching(
        &self,
        inquiry: &Inquiry<'_>,
        set: &PolicySet,
        request: &Request,
    ) -> Result<Vec<(&PolicyName, &Role)>, Failed> {
        let response = self
            .authorizer
            .is_authorized(request, set, inquiry.entities());
        let diagnostics = response.diagnostics();
        if diagnostics.errors().next().is_some() {
            return Err(Failed);
        }
        let found = diagnostics.reason().map(|id| {
            let id: &str = id.as_ref();
            self.roles.get_key_value(id).ok_or(Failed)
        });
        let found: Vec<_> = found.collect::<Result<_, _>>()?;
        let permits = found.iter().any(|(_, role)| matches!(role, Role::Permit));
        let is_consistent = permits == (response.decision() == Decision::Allow);
        if is_consistent {
            Ok(found)
        } else {
            Err(Failed)
        }
    }

    /// Whether claims within these limits are less than the snapshot would let out anyway.
    fn is_reduced(&self, predicate: &str, limits: &Limits) -> bool {
        let Some((own, is_projected)) = self.own.get(predicate) else {
            return false;
        };
        let mut both = own.clone();
        both.restrict(limits);
        *is_projected || both != *own
    }
}

impl Found<'_> {
    fn access(&self) -> Access {
        let is_gated = self.demands.values().any(|demand| demand.needs_approval);
        if !self.is_permitted || self.is_forbidden {
            Access::Denied
        } else if is_gated || self.depends_on_approval {
            Access::Gated
        } else {
            Access::Granted
        }
    }
}

/// The limits of all demands about these items together.
fn limits_of<'a>(found: impl IntoIterator<Item = &'a Found<'a>>) -> Limits {
    let mut limits = Limits::default();
    for found in found {
        for demand in found.demands.values() {
            limits.restrict(&demand.limits);
        }
    }
    limits
}
