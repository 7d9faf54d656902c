//! The keys that the vault names things with.

use cl_model::alias::{AliasScheme, Provenance, subject_tag, tenant_alias};
use cl_model::digest::Digest;
use cl_model::key::{MacKey, Seed};
use cl_model::operation::{OperationId, TenantName};
use cl_model::scalar::Reference;
use cl_model::urn::{Alias, EventId, RequestId};
use serde_json::json;

const CONTENT_DOMAIN: &[u8] = b"context-layer/vault-content/v1\0";

/// The vault's keys beside those that seal.
#[derive(Debug)]
pub struct Keys {
    aliases: AliasScheme,
    alias: MacKey,
    subject_tag: MacKey,
}

impl Keys {
    /// The keys of their secrets.
    pub fn new(alias: &Seed, subject_tag: &Seed) -> Self {
        Self {
            aliases: AliasScheme::Keyed(MacKey::from_seed(alias)),
            alias: MacKey::from_seed(alias),
            subject_tag: MacKey::from_seed(subject_tag),
        }
    }

    /// The stable tag of a subject in receipts; the policy engine makes the same one.
    pub fn tag(&self, tenant: &TenantName, subject: &Reference) -> String {
        subject_tag(&self.subject_tag, tenant.as_str(), subject.as_str())
    }

    /// What a subject is called in the receipt of one operation, and nowhere else. Without a
    /// subject, what the tenant is called.
    pub fn alias(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        operation_id: &OperationId,
        own: &str,
    ) -> Alias {
        let uuid = operation_id.as_str().rsplit(':').next().unwrap_or_default();
        match RequestId::parse(&format!("{}{uuid}", RequestId::PREFIX)) {
            Some(operation) => self
                .aliases
                .subject_alias(subject.as_str(), &operation, own),
            None => tenant_alias(&self.alias, tenant.as_str()),
        }
    }

    /// The handle and the opaque reference of an event in the exchange that calls its subject
    /// `alias`. A request id alone is unique for its requester only.
    pub fn provenance(
        &self,
        event: &EventId,
        request: &RequestId,
        alias: &Alias,
    ) -> Option<Provenance> {
        let source = json!([alias.as_str(), event.as_str()]).to_string();
        self.aliases.provenance(&source, request)
    }

    /// A digest of content that may be easy to guess: it tells equal content only to the vault.
    pub fn content(&self, content: &[u8]) -> Digest {
        Digest::from(self.alias.tag(&[CONTENT_DOMAIN, content].concat()))
    }
}
