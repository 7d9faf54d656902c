//! The JSON documents of a fresh home.

use cl_model::key::SigningKey;
use cl_model::time::UnixTime;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value, json};

use crate::processes::PROCESSES;
use crate::token::{DEMO_AGENT, DEMO_CLIENT};

/// Whose context the examples ask for.
const SUBJECT: &str = "vault://subjects/demo";

/// How long signatures of a fresh key are accepted.
const KEY_LIFETIME_S: u64 = 5 * 365 * 24 * 60 * 60;

/// How long the example requests are valid.
const REQUEST_LIFETIME_S: u64 = 600;

/// A requester, by the way it authenticates.
#[derive(Clone, Debug)]
pub(super) struct Party {
    principal: String,
    client_instance: String,
    method: &'static str,
}

/// The two requesters that the first policy knows.
#[derive(Clone, Debug)]
pub(super) struct Parties {
    /// Shows an access token.
    pub(super) agent: Party,
    /// Shows a client certificate.
    pub(super) client: Party,
}

impl Parties {
    pub(super) fn of(trust_domain: &str) -> Self {
        let client = format!("spiffe://{trust_domain}/client/default/demo");
        Self {
            agent: Party {
                principal: DEMO_AGENT.to_owned(),
                client_instance: DEMO_CLIENT.to_owned(),
                method: "oauth2",
            },
            client: Party {
                principal: client.clone(),
                client_instance: client,
                method: "mtls",
            },
        }
    }
}

/// The public halves of the signing keys.
pub(super) fn trust(decision: &SigningKey, now: UnixTime) -> Value {
    json!({
        "keys": [{
            "kid": decision.kid().as_str(),
            "purpose": "decision",
            "alg": "Ed25519",
            "x": public(decision),
            "not_before": now.to_string(),
            "not_after": now.plus_seconds(KEY_LIFETIME_S).to_string(),
            "revoked": false,
        }],
    })
}

/// The public half of the token issuer's key (RFC 7517, RFC 8037).
pub(super) fn jwks(token: &SigningKey) -> Value {
    json!({
        "keys": [{
            "kty": "OKP",
            "crv": "Ed25519",
            "kid": token.kid().as_str(),
            "alg": "EdDSA",
            "use": "sig",
            "x": public(token),
        }],
    })
}

fn public(key: &SigningKey) -> String {
    BASE64URL_NOPAD.encode(key.public_key().as_bytes())
}

/// Who issues the tokens of this home, and for whom.
pub(super) fn token_issuer(trust_domain: &str) -> Value {
    json!({
        "issuer": format!("https://tokens.{trust_domain}"),
        "audience": format!("https://gateway.{trust_domain}"),
    })
}

/// Who may write which receipts: each process its own, under its own name.
pub(super) fn receipt_writers(trust_domain: &str) -> Value {
    let writers = PROCESSES
        .iter()
        .filter(|process| !process.receipts.is_empty());
    let rows = writers.map(|process| {
        let id = format!("spiffe://{trust_domain}/{}", process.spiffe_path());
        let row = json!({
            "actors": [&id],
            "operations": process.receipts,
            "consumer_operations": [],
        });
        (id, row)
    });
    json!({"writers_version": 1, "writers": rows.collect::<Map<_, _>>()})
}

/// A first policy, to be replaced: two requesters may draft a response with three facts about one
/// subject. A fourth fact and sending need a person's approval; everything else is denied.
pub(super) fn snapshot(parties: &Parties) -> Value {
    let Parties { agent, client } = parties;
    json!({
        "snapshot_version": 1,
        "version": "default-1",
        "policy": {
            "issuer": {"id": "urn:cl:policy-engine:local"},
            "allowed_subjects": [SUBJECT],
            "allowed_requesters": [agent.principal, client.principal],
            "allowed_clients": [agent.client_instance, client.client_instance],
            "allowed_authentication_methods": [agent.method, client.method],
            "allowed_recipients": [agent.principal, client.principal],
            "allowed_purpose_codes": ["draft.response"],
            "allowed_tasks": ["draft_only"],
            "allowed_selectors": ["delivery_date", "project_name", "timeline"],
            "approval_required_selectors": ["stakeholder"],
            "allowed_actions": ["email.create_draft"],
            "approval_required_actions": ["email.send"],
            "transforms": {"timeline": ["truncate:timeline:280"]},
            "bundle_instructions": ["Draft only."],
            "maximum_retention": {"mode": "ephemeral", "max_seconds": 3600},
            "decision_ttl_seconds": 300,
            "require_receipts": true,
        },
        "predicates": {
            "budget": {"datatype": "number", "label": "sensitive"},
            "delivery_date": {"datatype": "date", "label": "private"},
            "project_name": {"datatype": "text", "label": "internal"},
            "stakeholder": {"datatype": "text", "label": "private"},
            "timeline": {"datatype": "text", "label": "internal"},
        },
        "resolve": {},
        "clients": [registered(agent), registered(client)],
        "approvers": [],
        "limits": {"max_lifetime_seconds": 86_400},
        "expires_at": null,
    })
}

fn registered(party: &Party) -> Value {
    json!({
        "client_instance": party.client_instance,
        "principals": [party.principal],
    })
}

/// A request that the first policy grants in part: a budget is nothing that it lets out.
pub(super) fn request(party: &Party, now: UnixTime) -> Value {
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": "urn:cl:request:example",
        "created_at": now.to_string(),
        "issuer": {"id": party.principal},
        "subject_ref": SUBJECT,
        "requester": {
            "principal": party.principal,
            "authenticated_by": party.method,
            "client_instance": party.client_instance,
        },
        "recipient": {"principal": party.principal, "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "purpose": "Draft an answer to a question about a delivery.",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": [
            {"predicate": "delivery_date"},
            {"predicate": "timeline"},
            {"predicate": "budget"},
        ],
        "requested_actions": ["email.create_draft"],
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": now.plus_seconds(REQUEST_LIFETIME_S).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use cl_model::object::{ContextRequest, ProtocolObject};
    use cl_model::policy::Snapshot;

    use super::*;

    #[test]
    fn the_first_policy_is_a_snapshot() {
        let parties = Parties::of("context-layer.local");
        let snapshot = Snapshot::read(&snapshot(&parties)).unwrap();
        assert_eq!(snapshot.identity().version.as_str(), "default-1");
    }

    #[test]
    fn the_examples_are_requests() {
        let parties = Parties::of("context-layer.local");
        let now = UnixTime::from_milliseconds(0);
        for party in [&parties.agent, &parties.client] {
            ContextRequest::read(&request(party, now)).unwrap();
        }
    }
}
