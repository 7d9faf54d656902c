//! How a bundle is shown.

use std::path::PathBuf;

use cl_model::json::read::ToJson;
use cl_model::time::UnixTime;
use cl_sdk::{Fact, VerifiedDelivery};
use serde_json::{Value, json};

use crate::error::Error;
use crate::output;
use crate::session::Session;

/// What a bundle lets its recipient know and do.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) facts: Vec<Fact>,
    pub(super) instructions: Vec<String>,
    pub(super) capabilities: Vec<String>,
}

impl Contents {
    fn of(delivery: &VerifiedDelivery) -> Self {
        let bundle = delivery.bundle.bundle();
        let instructions = bundle.instructions.iter();
        let capabilities = bundle.capabilities.iter();
        Self {
            facts: Fact::of(delivery),
            instructions: instructions.map(|text| text.as_str().to_owned()).collect(),
            capabilities: capabilities.map(|name| name.as_str().to_owned()).collect(),
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "facts": self.facts.iter().map(fact_json).collect::<Vec<_>>(),
            "instructions": self.instructions,
            "capabilities": self.capabilities,
        })
    }

    fn text(&self) -> String {
        let rows: Vec<_> = self.facts.iter().map(row).collect();
        let facts = output::table(
            ["FACT", "CONFIDENCE", "TRUST", "STATUS", "TRANSFORMS"],
            &rows,
        );
        let instructions = output::joined(&self.instructions);
        let capabilities = output::joined(&self.capabilities);
        let fields = output::fields(&[
            ("instructions", instructions),
            ("capabilities", capabilities),
        ]);
        format!("{facts}\n{fields}")
    }
}

/// Shows what a saved delivery holds.
pub(super) fn verified(
    delivery: &VerifiedDelivery,
    now: UnixTime,
    session: &Session,
) -> Result<(), Error> {
    let contents = Contents::of(delivery);
    let bundle = delivery.bundle.bundle();
    let expires = bundle.expires_at.as_str();
    let is_expired = bundle.expires_at.instant() <= now;
    let mut document = contents.to_json();
    document["bundle"] = json!(bundle.id.as_str());
    document["recipient"] = json!(bundle.recipient.as_str());
    document["purpose_code"] = json!(bundle.purpose_code.as_str());
    document["expires_at"] = json!(expires);
    document["expired"] = json!(is_expired);
    document["verified"] = json!(true);
    session.output.answer(&document, || {
        let over = if is_expired { " (over)" } else { "" };
        let fields = output::fields(&[
            ("bundle", bundle.id.as_str().to_owned()),
            ("recipient", bundle.recipient.as_str().to_owned()),
            ("purpose", bundle.purpose_code.as_str().to_owned()),
            ("expires", format!("{expires}{over}")),
            ("verified", "yes".to_owned()),
        ]);
        format!("{fields}\n{}", contents.text())
    })
}

/// What came of an action.
#[derive(Debug)]
pub(super) struct Action {
    name: String,
    /// The code of its refusal; none if its receipt says that it succeeded.
    refused: Option<String>,
}

impl Action {
    pub(super) fn of(name: &str, failure: Option<&Error>) -> Self {
        Self {
            name: name.to_owned(),
            refused: failure.map(|error| error.code().to_owned()),
        }
    }

    const fn outcome(&self) -> &'static str {
        match self.refused {
            None => "success",
            Some(_) => "refused",
        }
    }

    fn to_json(&self) -> Value {
        json!({"action": self.name, "outcome": self.outcome(), "code": self.refused})
    }

    fn row(&self) -> [String; 3] {
        let code = self.refused.clone().unwrap_or_else(|| "-".to_owned());
        [self.name.clone(), self.outcome().to_owned(), code]
    }
}

/// A bundle that was taken, and what was done with it.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) bundle: String,
    pub(super) recipient: String,
    pub(super) contents: Contents,
    pub(super) actions: Vec<Action>,
    pub(super) proposal: Option<String>,
    pub(super) saved: Option<PathBuf>,
}

impl Opened {
    pub(super) fn show(&self, session: &Session) -> Result<(), Error> {
        let saved = self.saved.as_ref().map(|path| path.display().to_string());
        let mut document = self.contents.to_json();
        document["bundle"] = json!(self.bundle);
        document["recipient"] = json!(self.recipient);
        document["actions"] = self.actions.iter().map(Action::to_json).collect();
        document["proposal"] = json!(self.proposal);
        document["saved"] = json!(saved);
        session.output.answer(&document, || {
            let mut fields = vec![
                ("bundle", self.bundle.clone()),
                ("recipient", self.recipient.clone()),
            ];
            fields.extend(self.proposal.clone().map(|urn| ("proposal", urn)));
            fields.extend(saved.clone().map(|path| ("saved", path)));
            let mut text = format!("{}\n{}", output::fields(&fields), self.contents.text());
            if !self.actions.is_empty() {
                let rows: Vec<_> = self.actions.iter().map(Action::row).collect();
                text.push('\n');
                text.push_str(&output::table(["ACTION", "OUTCOME", "CODE"], &rows));
            }
            text
        })
    }
}

fn fact_json(fact: &Fact) -> Value {
    let transforms = fact.transforms.iter().map(ToJson::to_json);
    json!({
        "predicate": fact.predicate,
        "claim": fact.claim,
        "value": fact.value,
        "confidence": fact.confidence,
        "trust": fact.trust.as_str(),
        "status": fact.status.map(|status| status.as_str()),
        "validity": fact.validity.as_ref().map(ToJson::to_json),
        "transforms": transforms.collect::<Vec<_>>(),
        "provenance_handles": fact.provenance_handles,
    })
}

fn row(fact: &Fact) -> [String; 5] {
    let transforms = fact.transforms.iter();
    [
        fact.claim.clone(),
        fact.confidence.to_string(),
        fact.trust.as_str().to_owned(),
        fact.status.map_or("-", |status| status.as_str()).to_owned(),
        output::joined(transforms.map(|report| report.transform.as_str())),
    ]
}
