//! From messages to what they say. Nothing behind this module checks text again.

use cl_host::deadline::Deadline;
use cl_model::document::{InvalidBytes, read_canonical};
use cl_model::object::{ContextRequest, ProtocolObject, Receipt};
use cl_model::operation::{OperationId, TenantName};
use cl_model::receipt;
use cl_model::scalar::{Name, Reference};
use cl_model::urn::{Alias, BundleId, DecisionId, MAX_ID_BYTES, ProvenanceRef};
use cl_wire::bundle::v1 as wire;
use cl_wire::bundle::v1::revoke_bundles_request as revoke_request;
use cl_wire::field_path::FieldPath;
use cl_wire::grant::SignedGrant;

use crate::error::Error;
use crate::service::{BundleKey, ConsumerReceiptCall, IssueCall, RedeemCall, RevokeCall};
use crate::store::Target;

const MAX_KEY_BYTES: usize = 255;
const MAX_RECEIPT_BYTES: usize = 65_536;
const MAX_REASON_BYTES: usize = 128;

pub(super) fn issue(
    message: wire::IssueBundleRequest,
    deadline: Option<Deadline>,
) -> Result<IssueCall, Error> {
    Ok(IssueCall {
        tenant: tenant(&message.tenant)?,
        operation_id: operation_id(&message.operation_id)?,
        grant: SignedGrant::read(message.grant)?,
        request: request(&message.request).map_err(Error::Request)?,
        request_bytes: message.request,
        deadline,
    })
}

pub(super) fn redeem(message: wire::RedeemBundleRequest) -> Result<RedeemCall, Error> {
    let key = message.idempotency_key;
    if key.as_deref().is_some_and(|key| !is_idempotency_key(key)) {
        return Err(invalid("idempotency_key", "NOT_AN_IDEMPOTENCY_KEY"));
    }
    Ok(RedeemCall {
        key: self::key(&message.tenant, &message.bundle_ref, message.recipient)?,
        idempotency_key: key,
        operation_id: operation_id(&message.operation_id)?,
    })
}

pub(super) fn key(tenant: &str, bundle_ref: &str, recipient: String) -> Result<BundleKey, Error> {
    let id = bounded(bundle_ref).and_then(BundleId::parse);
    let recipient = Reference::new(recipient);
    Ok(BundleKey {
        tenant: self::tenant(tenant)?,
        id: id.ok_or_else(|| invalid("bundle_ref", "NOT_A_BUNDLE_ID"))?,
        recipient: recipient.ok_or_else(|| invalid("recipient", "LENGTH_OUT_OF_RANGE"))?,
    })
}

pub(super) fn receipt(
    message: wire::RecordConsumerReceiptRequest,
) -> Result<ConsumerReceiptCall, Error> {
    Ok(ConsumerReceiptCall {
        key: key(&message.tenant, &message.bundle_ref, message.recipient)?,
        receipt: read_receipt(&message.receipt).map_err(Error::Receipt)?,
        receipt_bytes: message.receipt,
    })
}

pub(super) fn revoke(message: wire::RevokeBundlesRequest) -> Result<RevokeCall, Error> {
    let target = message
        .target
        .ok_or_else(|| invalid("target", "REQUIRED"))?;
    let reason = Some(message.reason).filter(|reason| reason.len() <= MAX_REASON_BYTES);
    let reason = reason.and_then(Name::new);
    Ok(RevokeCall {
        tenant: tenant(&message.tenant)?,
        target: read_target(&target)?,
        reason: reason.ok_or_else(|| invalid("reason", "NOT_A_REASON"))?,
        operation_id: operation_id(&message.operation_id)?,
    })
}

fn read_target(target: &revoke_request::Target) -> Result<Target, Error> {
    let (field, read) = match target {
        revoke_request::Target::BundleRef(text) => (
            "bundle_ref",
            bounded(text).and_then(BundleId::parse).map(Target::Bundle),
        ),
        revoke_request::Target::DecisionRef(text) => (
            "decision_ref",
            bounded(text)
                .and_then(DecisionId::parse)
                .map(Target::Decision),
        ),
        revoke_request::Target::SubjectAlias(text) => (
            "subject_alias",
            bounded(text).and_then(Alias::parse).map(Target::Alias),
        ),
        revoke_request::Target::ProvenanceRef(text) => (
            "provenance_ref",
            bounded(text)
                .and_then(ProvenanceRef::parse)
                .map(Target::Source),
        ),
    };
    read.ok_or_else(|| invalid(field, "NOT_AN_IDENTIFIER"))
}

fn request(bytes: &[u8]) -> Result<ContextRequest, InvalidBytes> {
    Ok(ContextRequest::read(&read_canonical(bytes)?)?)
}

fn read_receipt(bytes: &[u8]) -> Result<Receipt, InvalidBytes> {
    if bytes.len() > MAX_RECEIPT_BYTES {
        return Err(InvalidBytes::TooLarge);
    }
    Ok(receipt::check(&read_canonical(bytes)?)?)
}

fn tenant(text: &str) -> Result<TenantName, Error> {
    TenantName::parse(text).ok_or_else(|| invalid("tenant", "NOT_A_TENANT"))
}

fn operation_id(text: &str) -> Result<OperationId, Error> {
    OperationId::parse(text).ok_or_else(|| invalid("operation_id", "NOT_AN_OPERATION_ID"))
}

fn is_idempotency_key(text: &str) -> bool {
    (1..=MAX_KEY_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn bounded(text: &str) -> Option<&str> {
    (text.len() <= MAX_ID_BYTES).then_some(text)
}

fn invalid(field: &'static str, rule: &'static str) -> Error {
    Error::Field {
        field: FieldPath::new(field),
        rule,
    }
}
