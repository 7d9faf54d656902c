//! The capability document (spec 10.2): what callers can know before they have a credential.

use cl_model::canonical;
use serde_json::{Map, Value, json};

use crate::auth::{Scope, TokenPolicy};
use crate::http::{BUNDLES, PROPOSALS, RECEIPTS, RECEIPTS_OF_BUNDLE, REQUESTS, STATUS_OF_BUNDLE};

/// What is served beside requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) bundles: bool,
    pub(crate) receipts: bool,
    pub(crate) proposals: bool,
}

/// The document's bytes. `public_url` has no slash at its end; without it addresses are relative.
pub(crate) fn document(
    public_url: Option<&str>,
    tokens: Option<&TokenPolicy>,
    served: Served,
) -> Vec<u8> {
    let mut methods = vec!["mtls"];
    if tokens.is_some() {
        methods.push("oauth2");
    }
    let scopes = Scope::ALL.into_iter().filter(|scope| served.needs(*scope));
    let scopes: Vec<_> = scopes.map(Scope::as_str).collect();
    let oauth2 = tokens.map(|policy| {
        json!({
            "issuer": policy.issuer,
            "audience": policy.audience,
            "scopes": scopes,
            "algorithms": ["EdDSA", "ES256"],
            "certificate_bound_tokens": true,
        })
    });
    let document = json!({
        "spec_version": "context-layer/0.2-draft",
        "protocol_versions": ["0.2-draft"],
        "roles": ["gateway"],
        "endpoints": served.endpoints(public_url.unwrap_or_default()),
        "object_types": served.object_types(),
        "authentication": {"methods": methods, "oauth2": oauth2},
        "extensions": [],
        "receipts": {"decisions": true, "consumer_receipts": served.bundles},
        // Each tenant's policy sets its own, and no report is published.
        "max_bundle_lifetime_seconds": Value::Null,
        "conformance_report": Value::Null,
    });
    canonical::to_text(&document).into_bytes()
}

impl Served {
    const fn needs(self, scope: Scope) -> bool {
        match scope {
            Scope::Request => true,
            Scope::Redeem | Scope::WriteReceipts => self.bundles,
            Scope::ReadReceipts => self.receipts,
            Scope::ProposeMemory => self.proposals,
        }
    }

    fn endpoints(self, base: &str) -> Value {
        let mut endpoints = Map::new();
        let mut add = |name: &str, path: String| {
            endpoints.insert(name.to_owned(), format!("{base}{path}").into());
        };
        add("requests", REQUESTS.to_owned());
        add("request", format!("{REQUESTS}/{{id}}"));
        if self.bundles {
            let bundle = format!("{BUNDLES}/{{id}}");
            add("bundle_status", format!("{bundle}{STATUS_OF_BUNDLE}"));
            add("bundle_receipts", format!("{bundle}{RECEIPTS_OF_BUNDLE}"));
            add("bundle", bundle);
        }
        if self.receipts {
            add("receipt", format!("{RECEIPTS}/{{id}}"));
        }
        if self.proposals {
            add("memory_proposals", PROPOSALS.to_owned());
        }
        let services = json!(["contextlayer.exchange.v1.ExchangeService"]);
        endpoints.insert("grpc_services".to_owned(), services);
        Value::Object(endpoints)
    }

    fn object_types(self) -> Vec<&'static str> {
        let served = [
            (true, "context_request"),
            (true, "policy_decision"),
            (self.bundles, "scoped_context_bundle"),
            (self.bundles || self.receipts, "receipt"),
            (self.proposals, "memory_update_proposal"),
            (true, "error"),
        ];
        let served = served.into_iter().filter(|(is_served, _)| *is_served);
        served.map(|(_, name)| name).collect()
    }
}
