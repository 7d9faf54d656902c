//! From messages to what they say. Nothing behind this module checks text again.

use cl_host::deadline::Deadline;
use cl_host::identity::SpiffeId;
use cl_model::digest::Digest;
use cl_model::key::Signature;
use cl_model::policy::{Assurance, SnapshotSignature};
use cl_model::scalar::{KeyId, Reference};
use cl_model::urn::{DecisionId, MAX_ID_BYTES, RequestId};
use cl_wire::field_path::FieldPath;
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::authenticated_facts;
use data_encoding::BASE64URL_NOPAD;

use crate::core::facts::{BoundKey, Facts, Method};
use crate::core::operation::{OperationId, TenantName};
use crate::core::request::{ReadRequest, ReadSnapshot};
use crate::error::Error;
use crate::service::{PolicyEngine, Submission};
use crate::store::RequestKey;

const DEFAULT_PAGE_SIZE: usize = 100;
const MAX_PAGE_SIZE: usize = 1000;

pub(super) fn submission(
    message: wire::SubmitRequestRequest,
    deadline: Option<Deadline>,
    engine: &PolicyEngine,
) -> Result<Submission, Error> {
    let tenant = tenant(&message.tenant)?;
    Ok(Submission {
        facts: facts(message.facts, &tenant, engine)?,
        operation_id: operation_id(&message.operation_id)?,
        request: ReadRequest::parse(message.request).map_err(Error::document("request"))?,
        deadline,
        tenant,
    })
}

pub(super) fn request_key(
    message: wire::GetRequestRequest,
    engine: &PolicyEngine,
) -> Result<RequestKey, Error> {
    let wire::GetRequestRequest {
        tenant,
        request_ref,
        facts,
    } = message;
    key_of(&tenant, &request_ref, facts, engine)
}

pub(super) fn watched(
    message: wire::WatchRequestRequest,
    engine: &PolicyEngine,
) -> Result<RequestKey, Error> {
    let wire::WatchRequestRequest {
        tenant,
        request_ref,
        facts,
    } = message;
    key_of(&tenant, &request_ref, facts, engine)
}

fn key_of(
    tenant_name: &str,
    request_ref: &str,
    authenticated: Option<wire::AuthenticatedFacts>,
    engine: &PolicyEngine,
) -> Result<RequestKey, Error> {
    let tenant = tenant(tenant_name)?;
    let id = bounded(request_ref).and_then(RequestId::parse);
    Ok(RequestKey {
        principal: facts(authenticated, &tenant, engine)?.principal,
        id: id.ok_or_else(|| invalid("request_ref", "NOT_A_REQUEST_ID"))?,
        tenant,
    })
}

/// A snapshot to store, with its signature if it has one.
pub(super) struct NewSnapshot {
    pub(super) tenant: TenantName,
    pub(super) read: ReadSnapshot,
    pub(super) signature: Option<SnapshotSignature>,
    pub(super) operation_id: OperationId,
}

pub(super) fn snapshot(message: wire::PutSnapshotRequest) -> Result<NewSnapshot, Error> {
    let tenant = tenant(&message.tenant)?;
    let operation_id = operation_id(&message.operation_id)?;
    let signature = message.signature.map(signature).transpose()?;
    let snapshot = ReadSnapshot::parse(message.snapshot).map_err(Error::snapshot)?;
    Ok(NewSnapshot {
        tenant,
        read: snapshot,
        signature,
        operation_id,
    })
}

fn signature(message: wire::SnapshotSignature) -> Result<SnapshotSignature, Error> {
    let invalid = |field, rule| Error::Field {
        field: FieldPath::new("signature").field(field),
        rule,
    };
    let kid = bounded(&message.kid).and_then(KeyId::new);
    let bytes = message.signature.try_into();
    Ok(SnapshotSignature {
        kid: kid.ok_or_else(|| invalid("kid", "NOT_A_KEY_ID"))?,
        signature: Signature::new(bytes.map_err(|_| invalid("signature", "NOT_64_BYTES"))?),
    })
}

pub(super) fn activation(
    message: &wire::ActivateSnapshotRequest,
) -> Result<(TenantName, Digest, Option<Digest>, OperationId), Error> {
    let expected = message.expected_current_digest.as_deref();
    Ok((
        tenant(&message.tenant)?,
        digest("digest", &message.digest)?,
        optional_digest("expected_current_digest", expected)?,
        operation_id(&message.operation_id)?,
    ))
}

pub(super) fn replay(
    message: &wire::ReplayDecisionRequest,
) -> Result<(TenantName, DecisionId, OperationId), Error> {
    let decision = bounded(&message.decision_ref).and_then(DecisionId::parse);
    Ok((
        tenant(&message.tenant)?,
        decision.ok_or_else(|| invalid("decision_ref", "NOT_A_DECISION_ID"))?,
        operation_id(&message.operation_id)?,
    ))
}

pub(super) fn page(
    message: &wire::ListSnapshotsRequest,
) -> Result<(TenantName, Option<u64>, usize), Error> {
    let limit = admin_page_size(message.page_size)?;
    let after = match message.page_token.as_str() {
        "" => None,
        token => {
            Some(read_page_token(token).ok_or_else(|| invalid("page_token", "NOT_A_PAGE_TOKEN"))?)
        }
    };
    Ok((tenant(&message.tenant)?, after, limit))
}

pub(super) fn admin_page_size(size: u32) -> Result<usize, Error> {
    match usize::try_from(size) {
        Ok(0) => Ok(DEFAULT_PAGE_SIZE),
        Ok(size) if size <= MAX_PAGE_SIZE => Ok(size),
        Ok(_) | Err(_) => Err(invalid("page_size", "OUT_OF_RANGE")),
    }
}

/// The token of the page after a place.
pub(super) fn page_token(place: u64) -> String {
    BASE64URL_NOPAD.encode(&place.to_be_bytes())
}

fn read_page_token(token: &str) -> Option<u64> {
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

pub(super) fn tenant(text: &str) -> Result<TenantName, Error> {
    TenantName::parse(text).ok_or_else(|| invalid("tenant", "NOT_A_TENANT"))
}

pub(super) fn optional_digest(
    field: &'static str,
    text: Option<&str>,
) -> Result<Option<Digest>, Error> {
    text.map(|text| digest(field, text)).transpose()
}

pub(super) fn digest(field: &'static str, text: &str) -> Result<Digest, Error> {
    Digest::parse(text).ok_or_else(|| invalid(field, "NOT_A_DIGEST"))
}

pub(super) fn operation_id(text: &str) -> Result<OperationId, Error> {
    OperationId::parse(text).ok_or_else(|| invalid("operation_id", "NOT_AN_OPERATION_ID"))
}

pub(super) fn bounded(text: &str) -> Option<&str> {
    (text.len() <= MAX_ID_BYTES).then_some(text)
}

fn facts(
    message: Option<wire::AuthenticatedFacts>,
    tenant: &TenantName,
    engine: &PolicyEngine,
) -> Result<Facts, Error> {
    let message = message.ok_or_else(|| invalid("facts", "REQUIRED"))?;
    let method = method(&message)?;
    let reference = |field, text: &str| {
        Reference::new(text).ok_or_else(|| invalid_fact(field, "LENGTH_OUT_OF_RANGE"))
    };
    let principal = reference("principal", &message.principal)?;
    let client_instance = reference("client_instance", &message.client_instance)?;
    if method == Method::Mtls {
        let is_own_client = principal == client_instance
            && is_client_of(&message.principal, engine.trust_domain(), tenant);
        if !is_own_client {
            return Err(invalid_fact("principal", "NOT_A_CLIENT_OF_THE_TENANT"));
        }
    }
    Ok(Facts {
        principal,
        client_instance,
        method,
        assurance: assurance(&message)?,
        bound_key: message.bound_key.map(bound_key).transpose()?,
    })
}

/// A client certificate names its tenant: `spiffe://<trust-domain>/client/<tenant>/<name>`.
fn is_client_of(principal: &str, trust_domain: &str, tenant: &TenantName) -> bool {
    principal.parse::<SpiffeId>().is_ok_and(|id| {
        let segments: Vec<_> = id.segments().collect();
        id.trust_domain() == trust_domain
            && matches!(segments[..], ["client", named, _] if named == tenant.as_str())
    })
}

fn method(message: &wire::AuthenticatedFacts) -> Result<Method, Error> {
    match wire::AuthenticationMethod::try_from(message.method) {
        Ok(wire::AuthenticationMethod::Oauth2) => Ok(Method::Oauth2),
        Ok(wire::AuthenticationMethod::Mtls) => Ok(Method::Mtls),
        Ok(wire::AuthenticationMethod::Unspecified) | Err(_) => {
            Err(invalid_fact("method", "NOT_A_METHOD"))
        }
    }
}

fn assurance(message: &wire::AuthenticatedFacts) -> Result<Assurance, Error> {
    match wire::Assurance::try_from(message.assurance) {
        Ok(wire::Assurance::Low) => Ok(Assurance::Low),
        Ok(wire::Assurance::Substantial) => Ok(Assurance::Substantial),
        Ok(wire::Assurance::High) => Ok(Assurance::High),
        Ok(wire::Assurance::Unspecified) | Err(_) => Err(invalid_fact("assurance", "NOT_A_LEVEL")),
    }
}

fn bound_key(key: authenticated_facts::BoundKey) -> Result<BoundKey, Error> {
    let is_thumbprint = |text: &str| {
        BASE64URL_NOPAD
            .decode(text.as_bytes())
            .is_ok_and(|bytes| bytes.len() == 32)
    };
    match key {
        authenticated_facts::BoundKey::CertificateThumbprint(text) if is_thumbprint(&text) => {
            Ok(BoundKey::Certificate(text))
        }
        authenticated_facts::BoundKey::JwkThumbprint(text) if is_thumbprint(&text) => {
            Ok(BoundKey::Jwk(text))
        }
        authenticated_facts::BoundKey::CertificateThumbprint(_) => {
            Err(invalid_fact("certificate_thumbprint", "NOT_A_THUMBPRINT"))
        }
        authenticated_facts::BoundKey::JwkThumbprint(_) => {
            Err(invalid_fact("jwk_thumbprint", "NOT_A_THUMBPRINT"))
        }
    }
}

pub(super) fn invalid(field: &'static str, rule: &'static str) -> Error {
    Error::Field {
        field: FieldPath::new(field),
        rule,
    }
}

fn invalid_fact(field: &'static str, rule: &'static str) -> Error {
    Error::Field {
        field: FieldPath::new("facts").field(field),
        rule,
    }
}
