//! The capability document (spec 10.2): what callers can know before they have a credential.

use cl_model::canonical;
use serde_json::{Value, json};

use crate::auth::{REQUEST_SCOPE, TokenPolicy};
use crate::http::REQUESTS;

/// The document's bytes. `public_url` has no slash at its end; without it addresses are relative.
pub(crate) fn document(public_url: Option<&str>, tokens: Option<&TokenPolicy>) -> Vec<u8> {
    let base = public_url.unwrap_or_default();
    let mut methods = vec!["mtls"];
    if tokens.is_some() {
        methods.push("oauth2");
    }
    let oauth2 = tokens.map(|policy| {
        json!({
            "issuer": policy.issuer,
            "audience": policy.audience,
            "scopes": [REQUEST_SCOPE],
            "algorithms": ["EdDSA", "ES256"],
            "certificate_bound_tokens": true,
        })
    });
    let document = json!({
        "spec_version": "context-layer/0.2-draft",
        "protocol_versions": ["0.2-draft"],
        "roles": ["gateway"],
        "endpoints": {
            "requests": format!("{base}{REQUESTS}"),
            "request": format!("{base}{REQUESTS}/{{id}}"),
            "grpc_services": ["contextlayer.exchange.v1.ExchangeService"],
        },
        "object_types": ["context_request", "policy_decision", "error"],
        "authentication": {"methods": methods, "oauth2": oauth2},
        "extensions": [],
        "receipts": {"decisions": true, "consumer_receipts": false},
        // No bundle can be redeemed here yet, and no report is published.
        "max_bundle_lifetime_seconds": Value::Null,
        "conformance_report": Value::Null,
    });
    canonical::to_text(&document).into_bytes()
}
