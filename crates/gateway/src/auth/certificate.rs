//! Callers by client certificate: `spiffe://<trust-domain>/client/<tenant>/<name>`.

use cl_host::identity::PeerId;
use cl_model::scalar::Reference;

use super::Refused;
use super::caller::{Caller, Method, TenantName};
use super::scope::Scopes;

const CLIENT_ZONE: &str = "client";

pub(super) fn caller(peer: &PeerId, trust_domain: &str) -> Result<Caller, Refused> {
    let segments: Vec<_> = peer.id.segments().collect();
    let [CLIENT_ZONE, tenant, _name] = segments[..] else {
        return Err(Refused::Certificate);
    };
    if peer.id.trust_domain() != trust_domain {
        return Err(Refused::Certificate);
    }
    let id = Reference::new(peer.id.as_str()).ok_or(Refused::Certificate)?;
    Ok(Caller {
        tenant: TenantName::parse(tenant).ok_or(Refused::Certificate)?,
        principal: id.clone(),
        client_instance: id,
        method: Method::Mtls,
        certificate: Some(peer.thumbprint),
        // A certificate names no scopes: it stands for the client as a whole.
        scopes: Scopes::all(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: &str) -> PeerId {
        PeerId {
            id: id.parse().unwrap(),
            serial: "01".to_owned(),
            thumbprint: [7; 32],
            not_before_unix_s: 0,
            not_after_unix_s: 0,
        }
    }

    #[test]
    fn a_client_is_its_own_principal_in_its_tenant() {
        let id = "spiffe://example.org/client/acme/agent";
        let caller = caller(&peer(id), "example.org").unwrap();
        assert_eq!(caller.tenant().as_str(), "acme");
        assert_eq!(caller.principal().as_str(), id);
        assert_eq!(caller.client_instance().as_str(), id);
        assert_eq!(caller.method(), Method::Mtls);
    }

    #[test]
    fn other_zones_trust_domains_and_tenants_are_refused() {
        let long = format!("spiffe://example.org/client/acme/{}", "x".repeat(512));
        for id in [
            "spiffe://example.org/exchange/cl-policy-engine",
            "spiffe://example.org/edge/cl-gateway",
            "spiffe://example.org/owner/acme/x",
            "spiffe://example.org/client/acme",
            "spiffe://example.com/client/acme/agent",
            "spiffe://example.org/client/Acme/agent",
            "spiffe://example.org/client/a.b/agent",
            &long,
        ] {
            let refused = caller(&peer(id), "example.org").err();
            assert_eq!(refused, Some(Refused::Certificate), "{id}");
        }
    }
}
