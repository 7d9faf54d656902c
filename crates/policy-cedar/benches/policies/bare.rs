//! Cedar itself: for each question the calls that it takes, and nothing around them.

use std::collections::BTreeSet;

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityUid, Policy, PolicyId, PolicySet, Request,
    Response, RestrictedExpression, Schema,
};
use cl_policy_cedar::SCHEMA;
use serde_json::{Value, json};

use crate::rules::{
    ACTIONS, AGENT, CLIENT, ENDS, GATED, NOW, RECIPIENT, Rule, SELECTORS, SUBJECT, entities,
};

/// One question about one item: a call over what permits and denies, and one over what demands.
///
/// A forbid hides the permits from the diagnostics, so one call cannot tell both.
struct Question {
    item: &'static str,
    request: Request,
}

/// Questions, policies and entities, all of them ready.
pub(crate) struct Bare {
    deciding: PolicySet,
    demanding: PolicySet,
    entities: Entities,
    questions: Vec<Question>,
    authorizer: Authorizer,
}

impl Bare {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let schema = Schema::from_cedarschema_str(SCHEMA).expect("the schema").0;
        let set = |is_demand| {
            let rules = rules.iter().filter(|rule| rule.is_demand == is_demand);
            let policies = rules.map(|rule| {
                Policy::parse(Some(PolicyId::new(&rule.name)), &rule.text).expect("a policy")
            });
            PolicySet::from_policies(policies).expect("distinct names")
        };
        let selectors = SELECTORS.map(|(name, ..)| ("disclose", "Predicate", name, "none"));
        let actions = ACTIONS.map(|(name, _)| ("act", "Operation", name, "none"));
        let answered = [("disclose", "Predicate", GATED, "granted")];
        let questions = selectors.into_iter().chain(actions).chain(answered);
        Self {
            deciding: set(false),
            demanding: set(true),
            entities: Entities::from_json_value(documents(), Some(&schema)).expect("entities"),
            questions: questions
                .map(|(action, kind, item, answer)| Question {
                    item,
                    request: Request::new(
                        uid("Agent", AGENT),
                        uid("Action", action),
                        uid(kind, item),
                        context(answer),
                        Some(&schema),
                    )
                    .expect("a request"),
                })
                .collect(),
            authorizer: Authorizer::new(),
        }
    }

    pub(crate) fn calls(&self) -> usize {
        2 * self.questions.len()
    }

    pub(crate) fn ask(&self) -> Vec<Response> {
        let sets = [&self.deciding, &self.demanding];
        let asked = self.questions.iter().flat_map(|question| {
            sets.map(|set| {
                self.authorizer
                    .is_authorized(&question.request, set, &self.entities)
            })
        });
        asked.collect()
    }

    /// What the answers grant: the gated item has its approval.
    pub(crate) fn granted(&self) -> BTreeSet<String> {
        let answers = self.ask();
        let deciding = answers.iter().step_by(2);
        let questions = self.questions.iter().zip(deciding);
        let allowed = questions.filter(|(_, answer)| answer.decision() == Decision::Allow);
        allowed.map(|(it, _)| it.item.to_owned()).collect()
    }
}

fn uid(kind: &str, id: &str) -> EntityUid {
    EntityUid::from_json(json!({"type": kind, "id": id})).expect("a name")
}

/// The described entities, with the attributes of predicates.
fn documents() -> Value {
    let mut documents = entities();
    for document in &mut documents {
        let id = document["uid"]["id"].as_str().map(str::to_owned);
        let known = SELECTORS
            .iter()
            .find(|(name, ..)| Some(*name) == id.as_deref());
        if let Some((_, label, sensitivity, _)) = known {
            document["attrs"] = json!({
                "label": {"type": "Label", "id": label},
                "sensitivity": sensitivity,
                "datatype": "text",
            });
        }
    }
    Value::Array(documents)
}

fn context(answer: &str) -> Context {
    let entity = |kind, id| RestrictedExpression::new_entity_uid(uid(kind, id));
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let members = [
        ("client", entity("Client", CLIENT)),
        ("authenticated_by", text("oauth2")),
        ("assurance", entity("Assurance", "substantial")),
        ("assurance_level", RestrictedExpression::new_long(2)),
        ("subject", entity("Subject", SUBJECT)),
        ("recipient", entity("Recipient", RECIPIENT)),
        ("onward_disclosure", entity("OnwardDisclosure", "forbidden")),
        ("purpose", text("draft.response")),
        ("task", text("draft_only")),
        ("retention_mode", entity("RetentionMode", "ephemeral")),
        ("retention_seconds", RestrictedExpression::new_long(600)),
        ("expires_at", RestrictedExpression::new_datetime(ENDS)),
        ("approval", entity("ApprovalAnswer", answer)),
        ("receipt_level", entity("ReceiptLevel", "operation")),
        ("receipts_available", RestrictedExpression::new_bool(true)),
        ("rate_limited", RestrictedExpression::new_bool(false)),
        ("anomaly_state", text("normal")),
        ("now", RestrictedExpression::new_datetime(NOW)),
    ];
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Context::from_pairs(members).expect("a context")
}
