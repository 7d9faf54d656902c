//! Why a decision is as it is: names of rules that matched, and nothing else of a snapshot.

use cl_model::policy::Treatment;
use cl_policy_cedar::{Effect, Matched};

use super::evaluation::{Decided, Inputs};
use super::item::{Fate, fate};
use super::reasons::{Meaning, meaning};

/// Why a decision is as it is.
pub struct Explanation {
    /// Its reasons, in their order.
    pub reasons: Vec<ExplainedReason>,
    /// The requested predicates, in their order.
    pub selectors: Vec<ExplainedItem>,
    /// The requested actions, in their order.
    pub actions: Vec<ExplainedItem>,
}

/// One reason of a decision.
pub struct ExplainedReason {
    /// The code.
    pub code: String,
    /// What it means.
    pub words: &'static str,
    /// The member of the snapshot that it comes from.
    pub member: Option<&'static str>,
}

/// How one requested predicate or action came out.
pub struct ExplainedItem {
    /// Its name.
    pub name: String,
    /// What the policy does with it, before any answer of a person.
    pub fate: Fate,
    /// Whether the decision grants it.
    pub is_granted: bool,
    /// The same in words.
    pub words: &'static str,
    /// The rules that matched it.
    pub rules: Vec<Matched>,
}

impl Explanation {
    /// Explains a decision that was made from these inputs.
    pub fn of(inputs: &Inputs<'_>, decided: &Decided) -> Self {
        let decision = &decided.decision;
        let request = &inputs.request.request;
        let (selectors, actions) = inputs.treatments();
        let matched = inputs.matched();
        let circumstances = Circumstances {
            allows: decided.state().allows(),
            is_answered: inputs.approved.is_some(),
        };
        let asked = request.selectors.iter();
        let asked: Vec<&str> = asked.map(|it| it.predicate.as_str()).collect();
        let granted = decision.granted_selectors.iter();
        let granted: Vec<&str> = granted.map(|it| it.predicate.as_str()).collect();
        let explained_selectors =
            circumstances.items(&asked, &granted, &selectors, matched.selectors);
        let asked = request.requested_actions.iter();
        let asked: Vec<&str> = asked.map(|it| it.as_str()).collect();
        let granted = decision.granted_actions.iter();
        let granted: Vec<&str> = granted.map(|it| it.as_str()).collect();
        let explained_actions = circumstances.items(&asked, &granted, &actions, matched.actions);
        let reasons = decision.reason_codes.iter().map(|code| {
            let meaning = meaning_in(code.as_str(), inputs);
            ExplainedReason {
                code: code.as_str().to_owned(),
                words: meaning.words,
                member: meaning.member,
            }
        });
        Self {
            reasons: reasons.collect(),
            selectors: explained_selectors,
            actions: explained_actions,
        }
    }
}

/// The meaning of a reason; two of them need not come from the policy.
fn meaning_in(code: &str, inputs: &Inputs<'_>) -> Meaning {
    let meaning = meaning(code);
    match code {
        "RATE_LIMIT_EXCEEDED" if inputs.is_over_rate() => Meaning {
            member: Some("limits.rates"),
            ..meaning
        },
        "ANOMALY_STATE_BLOCKED" if inputs.signals.anomaly.is_some() => Meaning {
            words: "An operator has set an anomaly state for the requester.",
            member: None,
        },
        _ => meaning,
    }
}

#[derive(Clone, Copy)]
struct Circumstances {
    /// Whether the decision grants anything.
    allows: bool,
    /// Whether it was made with a person's answer.
    is_answered: bool,
}

impl Circumstances {
    fn items(
        self,
        asked: &[&str],
        granted: &[&str],
        treatment: &Treatment,
        matched: Vec<Vec<Matched>>,
    ) -> Vec<ExplainedItem> {
        // Where the policy failed, or was not asked, nothing matched.
        let matched = matched.into_iter().chain(std::iter::repeat(Vec::new()));
        let items = asked.iter().zip(matched).map(|(name, rules)| {
            let fate = fate(treatment, name);
            let is_granted = granted.contains(name);
            ExplainedItem {
                name: (*name).to_owned(),
                words: self.words(fate, is_granted, &rules),
                fate,
                is_granted,
                rules,
            }
        });
        items.collect()
    }

    fn words(self, fate: Fate, is_granted: bool, rules: &[Matched]) -> &'static str {
        let is_forbidden = rules.iter().any(|rule| rule.effect == Effect::Forbid);
        match (fate, is_granted) {
            (Fate::Ordinary, true) => "It is permitted, and granted.",
            (Fate::Ordinary, false) => {
                "It is permitted, but the request as a whole is not allowed."
            }
            (Fate::Gated, true) => "It needs a person's approval, which was given.",
            (Fate::Gated, false) if self.is_answered && self.allows => {
                "It needs a person's approval, which was declined."
            }
            (Fate::Gated, false) => "It needs a person's approval.",
            (Fate::Denied, _) if is_forbidden => "It is forbidden.",
            (Fate::Denied, _) => "No rule permits it.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_the_evaluation_have_words_of_their_own() {
        let own = meaning("SENDING_IS_OFF");
        assert_eq!(own.member, None);
        for code in ["REQUESTER_NOT_AUTHORIZED", "SELECTOR_LIMIT_EXCEEDED"] {
            assert_ne!(meaning(code).words, own.words);
            assert!(meaning(code).member.is_some());
        }
    }
}
