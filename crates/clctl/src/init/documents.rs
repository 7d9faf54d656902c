//! The JSON documents of a fresh home.

use cl_model::key::SigningKey;
use cl_model::time::UnixTime;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value, json};

use crate::certificates::AUDITOR_PATH;
use crate::keys::Purpose;
use crate::owner::SUBJECT;
use crate::processes::{CONSOLE, GATEWAY, PROCESSES};
use crate::token::{DEMO_AGENT, DEMO_CLIENT, DEMO_MODEL};

/// How long signatures of a fresh key are accepted.
const KEY_LIFETIME_S: u64 = 5 * 365 * 24 * 60 * 60;

/// Who may approve for the subject of the first policy.
const APPROVER: &str = "urn:cl:person:primary";

/// How long the example requests are valid.
const REQUEST_LIFETIME_S: u64 = 600;

/// A requester, by the way it authenticates.
#[derive(Clone, Debug)]
pub(super) struct Party {
    principal: String,
    client_instance: String,
    method: &'static str,
    /// For whom it asks.
    recipient: String,
}

/// The two requesters that the first policy knows, and for whom they ask.
#[derive(Clone, Debug)]
pub(super) struct Parties {
    /// Shows an access token, and asks for a model.
    pub(super) agent: Party,
    /// Shows a client certificate, and asks for itself.
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
                recipient: DEMO_MODEL.to_owned(),
            },
            client: Party {
                principal: client.clone(),
                client_instance: client.clone(),
                method: "mtls",
                recipient: client,
            },
        }
    }
}

/// The public halves of the signing keys.
pub(super) fn trust(signing: &[(Purpose, SigningKey)], now: UnixTime) -> Value {
    let keys = signing.iter().map(|(purpose, key)| {
        json!({
            "kid": key.kid().as_str(),
            "purpose": purpose.as_str(),
            "alg": "Ed25519",
            "x": public(key),
            "not_before": now.to_string(),
            "not_after": now.plus_seconds(KEY_LIFETIME_S).to_string(),
            "revoked": false,
        })
    });
    json!({"keys": keys.collect::<Vec<_>>()})
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
            "consumer_operations": process.consumer_receipts,
        });
        (id, row)
    });
    json!({"writers_version": 1, "writers": rows.collect::<Map<_, _>>()})
}

/// Who may read which receipts: the auditor all, the gateway those that requesters ask it for, and the
/// console all, of which it shows people those about their own subjects.
pub(super) fn receipt_readers(trust_domain: &str) -> Value {
    let row = |path: &str, role: &str| {
        let id = format!("spiffe://{trust_domain}/{path}");
        (id, json!([{"role": role, "tenant": "*"}]))
    };
    let rows = [
        row(AUDITOR_PATH, "auditor"),
        row(&GATEWAY.spiffe_path(), "requester"),
        row(&CONSOLE.spiffe_path(), "auditor"),
    ];
    json!({"readers_version": 1, "readers": rows.into_iter().collect::<Map<_, _>>()})
}

/// A first policy, to be replaced: two requesters may have a response drafted with two facts about
/// one subject. Sending it needs a person's approval; everything else is denied.
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
            "allowed_recipients": [agent.recipient, client.recipient],
            "allowed_purpose_codes": ["draft.response"],
            "allowed_tasks": ["draft_only"],
            "allowed_selectors": ["requested_delivery_date", "requesting_stakeholder"],
            "allowed_actions": ["email.create_draft", "memory.propose", "model.generate_text"],
            "approval_required_actions": ["email.send"],
            "transforms": {
                "requesting_stakeholder": ["truncate:requesting_stakeholder:280"],
            },
            "bundle_instructions": ["Draft only."],
            "maximum_retention": {"mode": "ephemeral", "max_seconds": 3600},
            "decision_ttl_seconds": 300,
            "require_receipts": true,
        },
        "predicates": {
            "amount_due": {"datatype": "money", "label": "sensitive"},
            "requested_delivery_date": {"datatype": "date", "label": "private"},
            "requesting_stakeholder": {"datatype": "person", "label": "private"},
        },
        "resolve": {},
        "clients": [registered(agent), registered(client)],
        "approvers": [{"principal": APPROVER, "subjects": [SUBJECT]}],
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

/// A request that the first policy grants in part: what is owed is nothing that it lets out, and
/// paying nothing that it allows.
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
        "recipient": {"principal": party.recipient, "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "purpose": "Draft an answer to a question about a delivery.",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": [
            {"predicate": "requesting_stakeholder"},
            {"predicate": "requested_delivery_date"},
            {"predicate": "amount_due"},
        ],
        "requested_actions": [
            "email.create_draft",
            "model.generate_text",
            "memory.propose",
            "payment.send",
        ],
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
