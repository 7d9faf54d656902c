//! The same rules in Rego, by an interpreter in this process.

use std::collections::BTreeSet;

use regorus::{Engine, Value};
use serde_json::json;

use crate::rules::{ACTIONS, AGENT, CLIENT, ENDS_MS, GATED, NOW_MS, RECIPIENT, SELECTORS, SUBJECT};

const RULES: &str = include_str!("rules.rego");
const ENTRY: &str = "data.context.decision";

/// An engine that has read rules and entities, and the input.
pub(crate) struct Rego {
    engine: Engine,
    input: Value,
}

impl Rego {
    pub(crate) fn new() -> Self {
        let mut engine = Engine::new();
        let added = engine.add_policy("rules.rego".to_owned(), RULES.to_owned());
        added.expect("rules");
        let data = engine.add_data_json(&entities().to_string());
        data.expect("data");
        let input = Value::from_json_str(&input().to_string()).expect("an input");
        Self { engine, input }
    }

    pub(crate) fn evaluate(&mut self) -> Value {
        self.engine.set_input(self.input.clone());
        let decision = self.engine.eval_rule(ENTRY.to_owned());
        decision.expect("a decision")
    }

    pub(crate) fn granted(&mut self) -> BTreeSet<String> {
        let decision = self.evaluate().to_json_str().expect("JSON");
        let decision: serde_json::Value = serde_json::from_str(&decision).expect("JSON");
        let granted = decision["granted"].as_array().expect("a set");
        let names = granted.iter().map(|name| name.as_str().expect("a name"));
        names.map(str::to_owned).collect()
    }
}

fn entities() -> serde_json::Value {
    let predicates = SELECTORS.map(|(name, label, sensitivity, is_work)| {
        let groups = is_work.then_some("work").into_iter().collect::<Vec<_>>();
        let about = json!({"label": label, "sensitivity": sensitivity, "groups": groups});
        (name.to_owned(), about)
    });
    let operations =
        ACTIONS.map(|(name, effect)| (name.to_owned(), json!({"side_effect": effect})));
    json!({
        "agents": {(AGENT): {
            "acts_for": [SUBJECT],
            "suspended": false,
            "groups": ["drafters"],
            "tags": {"team": ["red", "blue"]},
        }},
        "clients": {(CLIENT): {"groups": ["desks"]}},
        "recipients": {(RECIPIENT): {"groups": ["models"]}},
        "predicates": serde_json::Map::from_iter(predicates),
        "operations": serde_json::Map::from_iter(operations),
    })
}

fn input() -> serde_json::Value {
    json!({
        "principal": AGENT,
        "client": CLIENT,
        "authenticated_by": "oauth2",
        "assurance_level": 2,
        "subject": SUBJECT,
        "recipient": RECIPIENT,
        "onward_disclosure": "forbidden",
        "purpose": "draft.response",
        "task": "draft_only",
        "retention_mode": "ephemeral",
        "retention_seconds": 600,
        "expires_at": ENDS_MS,
        "receipt_level": "operation",
        "receipts_available": true,
        "rate_limited": false,
        "anomaly_state": "normal",
        "now": NOW_MS,
        "approval": {"granted": [GATED], "declined": []},
        "selectors": SELECTORS.map(|(name, ..)| name),
        "actions": ACTIONS.map(|(name, _)| name),
    })
}
