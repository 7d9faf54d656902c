//! How a list-style policy answers, and what it lists.

use std::collections::{BTreeSet, HashSet};

use super::ListPolicy;
use super::list::Gate;
use super::question::Question;
use super::ruling::{Access, ItemRuling, Limits, Part, Policy, Ruling, Terms};
use crate::transform::Transform;

/// What a list-style policy lists, in order of the names, so that it can be written in another
/// language.
#[derive(Clone)]
pub struct ListedPolicy<'a> {
    policy: &'a ListPolicy,
    /// What holds for every decision.
    pub terms: &'a Terms,
    /// Subjects whose context may be asked for.
    pub subjects: BTreeSet<&'a str>,
    /// Principals that may ask.
    pub requesters: BTreeSet<&'a str>,
    /// Client instances that may ask.
    pub clients: BTreeSet<&'a str>,
    /// How a requester may have authenticated; any way if it is not stated.
    pub authentication_methods: Option<BTreeSet<&'a str>>,
    /// Principals that may receive context.
    pub recipients: BTreeSet<&'a str>,
    /// What a request may say about passing context on.
    pub onward_disclosure: BTreeSet<&'a str>,
    /// Purposes that are allowed.
    pub purpose_codes: BTreeSet<&'a str>,
    /// Kinds of task that are allowed.
    pub tasks: BTreeSet<&'a str>,
    /// Predicates that are granted at once.
    pub selectors: BTreeSet<&'a str>,
    /// Predicates that are granted after an approval.
    pub gated_selectors: BTreeSet<&'a str>,
    /// Actions that are granted at once.
    pub actions: BTreeSet<&'a str>,
    /// Actions that are granted after an approval.
    pub gated_actions: BTreeSet<&'a str>,
    /// Whether requesters are over their rate.
    pub is_rate_limited: bool,
    /// Whether the anomaly state denies.
    pub is_anomalous: bool,
}

impl ListedPolicy<'_> {
    /// The transforms of a predicate, each once.
    pub fn transforms_of(&self, predicate: &str) -> Vec<Transform> {
        self.policy.transforms_of(predicate)
    }
}

fn sorted(names: &HashSet<String>) -> BTreeSet<&str> {
    names.iter().map(String::as_str).collect()
}

impl ListPolicy {
    /// What it lists.
    pub fn listed(&self) -> ListedPolicy<'_> {
        ListedPolicy {
            policy: self,
            terms: &self.terms,
            subjects: sorted(&self.subjects),
            requesters: sorted(&self.requesters),
            clients: sorted(&self.clients),
            authentication_methods: self.authentication_methods.as_ref().map(sorted),
            recipients: sorted(&self.recipients),
            onward_disclosure: sorted(&self.onward_disclosure),
            purpose_codes: sorted(&self.purpose_codes),
            tasks: sorted(&self.tasks),
            selectors: sorted(&self.selectors.ordinary),
            gated_selectors: sorted(&self.selectors.gated),
            actions: sorted(&self.actions.ordinary),
            gated_actions: sorted(&self.actions.gated),
            is_rate_limited: self.is_rate_limited,
            is_anomalous: self.is_anomalous,
        }
    }

    /// The transforms of a predicate, each once.
    pub(super) fn transforms_of(&self, predicate: &str) -> Vec<Transform> {
        let mut distinct = Vec::new();
        for transform in self.transforms.get(predicate).into_iter().flatten() {
            if !distinct.contains(transform) {
                distinct.push(transform.clone());
            }
        }
        distinct
    }

    /// The parts of a question that deny whatever is asked for.
    fn refused_parts(&self, question: &Question<'_>) -> Vec<Part> {
        let is_listed = |list: &HashSet<String>, value: Option<&str>| {
            value.is_some_and(|value| list.contains(value))
        };
        let methods = self.authentication_methods.as_ref();
        let parts = [
            (Part::Subject, is_listed(&self.subjects, question.subject())),
            (
                Part::Requester,
                is_listed(&self.requesters, question.requester()),
            ),
            (Part::Client, is_listed(&self.clients, question.client())),
            (
                Part::AuthenticationMethod,
                methods.is_none_or(|methods| is_listed(methods, question.authenticated_by())),
            ),
            (
                Part::Recipient,
                is_listed(&self.recipients, question.recipient()),
            ),
            (
                Part::OnwardDisclosure,
                is_listed(&self.onward_disclosure, question.onward_disclosure()),
            ),
            (
                Part::Purpose,
                is_listed(&self.purpose_codes, question.purpose_code()),
            ),
            (Part::Task, self.tasks.contains(question.task_kind())),
            (Part::Rate, !self.is_rate_limited),
            (
                Part::Anomaly,
                !self.is_anomalous && question.anomaly_state().is_none(),
            ),
        ];
        let refused = parts.into_iter().filter(|(_, is_allowed)| !is_allowed);
        refused.map(|(part, _)| part).collect()
    }
}

impl Policy for ListPolicy {
    fn terms(&self) -> &Terms {
        &self.terms
    }

    fn rule(&self, question: &Question<'_>) -> Ruling {
        let selectors = question.selectors().iter().map(|name| ItemRuling {
            access: self.selectors.access(name),
            is_reduced: self.projected.contains(name),
            limits: Limits {
                transforms: self.transforms_of(name),
                ..Limits::default()
            },
        });
        let actions = question.actions().iter().map(|name| ItemRuling {
            access: self.actions.access(name),
            ..ItemRuling::denied()
        });
        Ruling {
            refused: self.refused_parts(question),
            selectors: selectors.collect(),
            actions: actions.collect(),
            ..Ruling::default()
        }
    }
}

impl Gate {
    fn access(&self, name: &str) -> Access {
        if self.ordinary.contains(name) {
            Access::Granted
        } else if self.gated.contains(name) {
            Access::Gated
        } else {
            Access::Denied
        }
    }
}
