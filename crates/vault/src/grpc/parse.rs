//! From messages to what they say. Nothing behind this module checks text again.

mod content;

use cl_host::identity::PeerId;
use cl_model::digest::Digest;
use cl_model::document::{InvalidBytes, MAX_DOCUMENT_BYTES, Signed, read_canonical};
use cl_model::object::{ContextRequest, ProtocolObject as _};
use cl_model::operation::{OperationId, TenantName};
use cl_model::scalar::{Predicate, Reference};
use cl_model::urn::{ClaimId, EventId, MAX_ID_BYTES};
use cl_wire::field_path::FieldPath;
use cl_wire::grant::{InvalidGrant, SignedGrant};
use cl_wire::vault::v1 as wire;
use cl_wire::vault::v1::captured_item::{Content as WireContent, Payload as WirePayload};
use cl_wire::vault::v1::store_payload_request::Piece;
use data_encoding::BASE64URL_NOPAD;
use prost::Message as _;
use tonic::Request;

use crate::core::content::Content;
use crate::core::event::{ItemRefusal, Payload, ReadEvent};
use crate::core::proposal::ReadProposal;
use crate::error::Error;
use crate::service::capture::{Batch, Item, ItemPayload};
use crate::service::memory::Submission;
use crate::service::owner::PageCall;
use crate::service::payload::{MAX_PAYLOAD_BYTES, MAX_PIECE_BYTES};
use crate::service::resolve::ResolveCall;
use crate::store::SubjectName;

const MAX_BATCH_BYTES: usize = 3 * 1024 * 1024;
const MAX_ITEMS: usize = 64;
const MAX_OWNER_ADDRESSES: usize = 32;
const MAX_ADDRESS_CHARS: usize = 320;
const DEFAULT_PAGE_SIZE: usize = 100;
const MAX_PAGE_SIZE: usize = 1000;

/// The tenant that the caller's certificate owns.
pub(super) struct Owner(TenantName);

pub(super) fn owner<T>(request: &Request<T>) -> Result<Owner, Error> {
    let peer = request
        .extensions()
        .get::<PeerId>()
        .ok_or(Error::NoCaller)?;
    let segments: Vec<_> = peer.id.segments().collect();
    match segments[..] {
        ["owner", tenant] => TenantName::parse(tenant)
            .map(Owner)
            .ok_or(Error::CallerNotAllowed),
        _ => Err(Error::CallerNotAllowed),
    }
}

pub(super) fn batch(message: wire::CaptureEventsRequest) -> Result<Batch, Error> {
    if message.encoded_len() > MAX_BATCH_BYTES || message.items.len() > MAX_ITEMS {
        return Err(Error::TooLarge("items"));
    }
    if message.items.is_empty() {
        return Err(invalid("items", "REQUIRED"));
    }
    let is_address =
        |address: &String| !address.is_empty() && address.chars().count() <= MAX_ADDRESS_CHARS;
    let addresses = &message.owner_addresses;
    if addresses.len() > MAX_OWNER_ADDRESSES || !addresses.iter().all(is_address) {
        return Err(invalid("owner_addresses", "OUT_OF_RANGE"));
    }
    Ok(Batch {
        name: subject_name(&message.tenant, &message.subject_ref)?,
        operation_id: operation_id(&message.operation_id)?,
        sent: message.encode_to_vec(),
        owner_addresses: message.owner_addresses,
        items: message.items.into_iter().map(item).collect(),
    })
}

fn item(message: wire::CapturedItem) -> Result<Item, ItemRefusal> {
    let payload = match message.payload.ok_or("PAYLOAD_REQUIRED")? {
        WirePayload::Inline(bytes) if bytes.len() > MAX_PIECE_BYTES => {
            return Err("PAYLOAD_TOO_LARGE");
        }
        WirePayload::Inline(bytes) => ItemPayload::Inline(bytes),
        WirePayload::StoredDigest(text) => {
            ItemPayload::Stored(Digest::parse(&text).ok_or("INVALID_DIGEST")?)
        }
    };
    let content = match message.content {
        None => None,
        Some(WireContent::Mail(mail)) => {
            let mail = content::mail(mail).ok_or("INVALID_CONTENT")?;
            Some(Content::Mail(Box::new(mail)))
        }
        Some(WireContent::Calendar(calendar)) => {
            let calendar = content::calendar(calendar).ok_or("INVALID_CONTENT")?;
            Some(Content::Calendar(calendar))
        }
    };
    Ok(Item {
        event: ReadEvent::parse(message.event)?,
        payload,
        content,
    })
}

pub(super) fn announcement(
    message: Option<wire::StorePayloadRequest>,
) -> Result<(SubjectName, Payload), Error> {
    let Some(Piece::Announcement(announcement)) = message.and_then(|message| message.piece) else {
        return Err(invalid("piece", "NOT_AN_ANNOUNCEMENT"));
    };
    if announcement.byte_length > MAX_PAYLOAD_BYTES {
        return Err(Error::TooLarge("byte_length"));
    }
    let name = subject_name(&announcement.tenant, &announcement.subject_ref)?;
    let digest = Digest::parse(&announcement.digest);
    let payload = Payload {
        digest: digest.ok_or_else(|| invalid("digest", "NOT_A_DIGEST"))?,
        byte_length: announcement.byte_length,
    };
    Ok((name, payload))
}

pub(super) fn piece(message: wire::StorePayloadRequest) -> Result<Vec<u8>, Error> {
    match message.piece {
        Some(Piece::Data(bytes)) if bytes.len() > MAX_PIECE_BYTES => Err(Error::TooLarge("data")),
        Some(Piece::Data(bytes)) => Ok(bytes),
        Some(Piece::Announcement(_)) | None => Err(invalid("piece", "NOT_DATA")),
    }
}

pub(super) fn resolve(message: wire::ResolveClaimsRequest) -> Result<ResolveCall, Error> {
    let tenant = tenant(&message.tenant)?;
    let operation_id = operation_id(&message.operation_id)?;
    let request = context_request(&message.request).map_err(Error::document("request"))?;
    let invalid_grant = |invalid: InvalidGrant| Error::Field {
        field: invalid.field,
        rule: invalid.rule,
    };
    let grant = SignedGrant::read(message.grant).map_err(invalid_grant)?;
    let is_large = |signed: &Signed| signed.document.len() > MAX_DOCUMENT_BYTES;
    if is_large(&grant.scope) || is_large(&grant.plan) {
        return Err(Error::TooLarge("grant"));
    }
    Ok(ResolveCall {
        tenant,
        request,
        grant,
        operation_id,
    })
}

fn context_request(bytes: &[u8]) -> Result<ContextRequest, InvalidBytes> {
    let value = read_canonical(bytes)?;
    Ok(ContextRequest::read(&value)?)
}

pub(super) fn events_page(
    message: wire::ListEventsRequest,
    owner: &Owner,
) -> Result<PageCall, Error> {
    Ok(PageCall {
        name: owned_subject(&message.tenant, &message.subject_ref, owner)?,
        after: page_token(&message.page_token)?,
        limit: page_size(message.page_size)?,
    })
}

pub(super) fn claims_page(
    message: wire::ListClaimsRequest,
    owner: &Owner,
) -> Result<(PageCall, Option<Predicate>), Error> {
    let predicate = match message.predicate {
        None => None,
        Some(text) if text.len() > MAX_ID_BYTES => return Err(invalid("predicate", "TOO_LONG")),
        Some(text) => {
            let predicate = Predicate::new(text);
            Some(predicate.ok_or_else(|| invalid("predicate", "NOT_A_PREDICATE"))?)
        }
    };
    let page = PageCall {
        name: owned_subject(&message.tenant, &message.subject_ref, owner)?,
        after: page_token(&message.page_token)?,
        limit: page_size(message.page_size)?,
    };
    Ok((page, predicate))
}

pub(super) fn subject_erasure(
    message: wire::EraseSubjectRequest,
    owner: &Owner,
) -> Result<(SubjectName, OperationId), Error> {
    Ok((
        owned_subject(&message.tenant, &message.subject_ref, owner)?,
        operation_id(&message.operation_id)?,
    ))
}

pub(super) fn event_erasure(
    message: wire::EraseEventRequest,
    owner: &Owner,
) -> Result<(SubjectName, EventId, OperationId), Error> {
    let name = owned_subject(&message.tenant, &message.subject_ref, owner)?;
    let event = (message.event_ref.len() <= MAX_ID_BYTES)
        .then(|| EventId::parse(&message.event_ref))
        .flatten();
    Ok((
        name,
        event.ok_or_else(|| invalid("event_ref", "NOT_AN_EVENT_ID"))?,
        operation_id(&message.operation_id)?,
    ))
}

pub(super) fn explanation(
    message: wire::ExplainClaimRequest,
    owner: &Owner,
) -> Result<(SubjectName, ClaimId), Error> {
    let name = owned_subject(&message.tenant, &message.subject_ref, owner)?;
    let claim = (message.claim_ref.len() <= MAX_ID_BYTES)
        .then(|| ClaimId::parse(&message.claim_ref))
        .flatten();
    let claim = claim.ok_or_else(|| invalid("claim_ref", "NOT_A_CLAIM_ID"))?;
    Ok((name, claim))
}

pub(super) fn submission(message: wire::SubmitProposalRequest) -> Result<Submission, Error> {
    let submitter = Reference::new(message.submitter);
    Ok(Submission {
        tenant: tenant(&message.tenant)?,
        submitter: submitter.ok_or_else(|| invalid("submitter", "LENGTH_OUT_OF_RANGE"))?,
        operation_id: operation_id(&message.operation_id)?,
        proposal: ReadProposal::parse(message.proposal).map_err(Error::document("proposal"))?,
    })
}

/// The token of the page after a place.
pub(super) fn write_page_token(place: u64) -> String {
    BASE64URL_NOPAD.encode(&place.to_be_bytes())
}

fn page_token(token: &str) -> Result<Option<u64>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    let read = || {
        let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    };
    let place = read().ok_or_else(|| invalid("page_token", "NOT_A_PAGE_TOKEN"))?;
    Ok(Some(place))
}

fn page_size(size: u32) -> Result<usize, Error> {
    match usize::try_from(size) {
        Ok(0) => Ok(DEFAULT_PAGE_SIZE),
        Ok(size) if size <= MAX_PAGE_SIZE => Ok(size),
        Ok(_) | Err(_) => Err(invalid("page_size", "OUT_OF_RANGE")),
    }
}

/// A certificate that owns another tenant learns nothing of this one.
fn owned_subject(
    tenant: &str,
    subject_ref: &str,
    Owner(owned): &Owner,
) -> Result<SubjectName, Error> {
    let name = subject_name(tenant, subject_ref)?;
    if name.tenant != *owned {
        return Err(Error::CallerNotAllowed);
    }
    Ok(name)
}

fn subject_name(tenant_name: &str, subject_ref: &str) -> Result<SubjectName, Error> {
    let subject = Reference::new(subject_ref);
    Ok(SubjectName {
        tenant: tenant(tenant_name)?,
        subject: subject.ok_or_else(|| invalid("subject_ref", "LENGTH_OUT_OF_RANGE"))?,
    })
}

fn tenant(text: &str) -> Result<TenantName, Error> {
    TenantName::parse(text).ok_or_else(|| invalid("tenant", "NOT_A_TENANT"))
}

fn operation_id(text: &str) -> Result<OperationId, Error> {
    OperationId::parse(text).ok_or_else(|| invalid("operation_id", "NOT_AN_OPERATION_ID"))
}

fn invalid(field: &'static str, rule: &'static str) -> Error {
    Error::Field {
        field: FieldPath::new(field),
        rule,
    }
}
