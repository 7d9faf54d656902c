//! From messages to what the store takes. What does not parse is refused as a whole.

use cl_host::identity::SpiffeId;
use cl_model::digest::Digest;
use cl_model::object::Outcome;
use cl_model::scalar::is_name;
use cl_model::urn::{BundleId, DecisionId, ReceiptId};
use cl_wire::field_path::FieldPath;
use cl_wire::receipt::v1::{
    AppendRequest, BeginRequest, CompleteRequest, ConsumerReceipt, GetReceiptRequest,
    ListReceiptsRequest, PreflightRequest, Routing as WireRouting, VerifyLogRequest,
    append_request,
};
use prost::Message;
use prost_types::Timestamp;

use crate::core::command::{Call, Command, Rules};
use crate::core::finished::Finished;
use crate::core::intents::overdue_receipt;
use crate::core::members::{Members, read_consumer_receipt};
use crate::core::readers::View;
use crate::core::records::{self, OperationKeyRecord};
use crate::core::routing::{OperationId, Routing, SubjectTag, Tenant};
use crate::core::writers::Authorized;
use crate::error::Error;
use crate::search::{Filter, Place, Query};

const MAX_OPERATIONS: usize = 64;
const MAX_PAGE_SIZE: u32 = 1000;
const DEFAULT_PAGE_SIZE: u32 = 100;

const TENANT: &str = "1 to 63 characters of a-z, 0-9 and -";
const TAG: &str = "43 characters of unpadded base64url";
const OPERATION: &str = "a lowercase dotted name";
const OUTCOME: &str = "success, failure or indeterminate";
const TIME: &str = "a time from 1970 to 9999";

pub(super) fn preflight(
    request: &PreflightRequest,
    writer: &SpiffeId,
    rules: &Rules,
) -> Result<Tenant, Error> {
    let tenant = tenant("tenant", &request.tenant)?;
    if !(1..=MAX_OPERATIONS).contains(&request.operations.len()) {
        return Err(Error::field("operations", "1 to 64 names"));
    }
    for (index, operation) in request.operations.iter().enumerate() {
        if !is_name(operation) {
            let field = FieldPath::new("operations").index(index);
            return Err(Error::field(field, OPERATION));
        }
        if !rules.writers.allows_operation(writer, operation) {
            return Err(Error::OperationNotAllowed);
        }
    }
    Ok(tenant)
}

pub(super) fn append(
    request: AppendRequest,
    writer: SpiffeId,
    rules: &Rules,
) -> Result<Command, Error> {
    let content = content("append", None, &request);
    let routing = routing(request.routing)?;
    let (receipt, by_consumer, authorized) = match request.body {
        Some(append_request::Body::Members(members)) => {
            own_operation(&routing)?;
            let receipt = Members::parse(&members)?.finish(&routing.operation_id)?;
            let authorized = rules.authorize(&writer, &receipt)?;
            (receipt, false, authorized)
        }
        Some(append_request::Body::ConsumerReceipt(sent)) => {
            let (receipt, authorized) = consumer_receipt(&sent, &routing, &writer, rules)?;
            (receipt, true, authorized)
        }
        None => return Err(Error::field("body", "members or consumer_receipt")),
    };
    Ok(Command::Append {
        call: Call {
            writer,
            routing,
            content,
        },
        receipt: Box::new(receipt),
        by_consumer,
        authorized,
    })
}

/// A consumer's receipt: its actor is the recipient that the writer authenticated, and its
/// operation is named by its digest.
fn consumer_receipt(
    sent: &ConsumerReceipt,
    routing: &Routing,
    writer: &SpiffeId,
    rules: &Rules,
) -> Result<(Finished, Authorized), Error> {
    let finished = read_consumer_receipt(&sent.receipt)?;
    let receipt = finished.receipt();
    let authorized = rules
        .writers
        .authorize_consumer(writer, receipt.operation.as_str())
        .filter(|_| receipt.actor.as_str() == sent.recipient)
        .filter(|_| receipt.actor.as_str() != rules.own_id.as_str())
        .ok_or(Error::OperationNotAllowed)?;
    let digest = finished.digest();
    if !digest.is_some_and(|digest| routing.operation_id.is_of_digest(digest)) {
        let field = FieldPath::new("routing").field("operation_id");
        return Err(Error::field(field, "the digest of the consumer's receipt"));
    }
    Ok((finished, authorized))
}

pub(super) fn begin(
    request: BeginRequest,
    writer: SpiffeId,
    rules: &Rules,
) -> Result<Command, Error> {
    let routing = routing(request.routing.clone())?;
    own_operation(&routing)?;
    let deadline = request.deadline.as_ref();
    let deadline = deadline.ok_or(Error::field("deadline", "required"))?;
    let deadline_ms = milliseconds("deadline", deadline, Rounding::Down)?;
    let members = Members::parse(&request.members)?;
    let checked = members.check_intent(&routing.operation_id)?;
    let authorized = rules.authorize(&writer, &checked)?;
    // What cannot be recorded when the time is over is not taken on.
    overdue_receipt(&members, &routing.operation_id, rules.own_id.as_str(), 0)?;
    Ok(Command::Begin {
        call: Call {
            writer,
            routing,
            content: content(
                "begin",
                Some(deadline_ms),
                &BeginRequest {
                    deadline: None,
                    ..request.clone()
                },
            ),
        },
        deadline_ms,
        members: request.members,
        authorized,
    })
}

pub(super) fn complete(request: CompleteRequest, writer: SpiffeId) -> Result<Command, Error> {
    let content = content("complete", None, &request);
    let routing = routing(request.routing)?;
    own_operation(&routing)?;
    Ok(Command::Complete {
        call: Call {
            writer,
            routing,
            content,
        },
        members: Members::parse(&request.members)?,
    })
}

/// Which receipt is asked for.
pub(super) struct Asked {
    pub(super) tenant: Tenant,
    pub(super) reference: String,
    pub(super) actor: Option<String>,
}

pub(super) fn receipt(request: GetReceiptRequest) -> Result<Asked, Error> {
    let tenant = tenant("tenant", &request.tenant)?;
    let reference = ReceiptId::parse(&request.receipt_ref);
    let reference = reference.ok_or(Error::field("receipt_ref", "a receipt's URN"))?;
    Ok(Asked {
        tenant,
        reference: reference.as_str().to_owned(),
        // One that is malformed is the actor of no receipt.
        actor: request.actor,
    })
}

pub(super) fn query(request: &ListReceiptsRequest, view: View) -> Result<Query, Error> {
    let is_bundle = |urn: &str| BundleId::parse(urn).is_some();
    let is_decision = |urn: &str| DecisionId::parse(urn).is_some();
    let is_outcome = |name: &str| Outcome::parse(name).is_some();
    let time = |field, time: Option<&Timestamp>| {
        time.map(|time| milliseconds(field, time, Rounding::Up))
            .transpose()
    };
    Ok(Query {
        tenant: tenant("tenant", &request.tenant)?,
        filter: Filter {
            subject_tag: subject_tag("subject_tag", request.subject_tag.as_deref())?,
            operation: checked("operation", &request.operation, OPERATION, is_name)?,
            outcome: checked("outcome", &request.outcome, OUTCOME, is_outcome)?,
            bundle_ref: checked(
                "bundle_ref",
                &request.bundle_ref,
                "a bundle's URN",
                is_bundle,
            )?,
            decision_ref: checked(
                "decision_ref",
                &request.decision_ref,
                "a decision's URN",
                is_decision,
            )?,
        },
        from_ms: time("recorded_from", request.recorded_from.as_ref())?,
        before_ms: time("recorded_before", request.recorded_before.as_ref())?,
        view,
    })
}

fn checked(
    field: &'static str,
    value: &Option<String>,
    description: &'static str,
    is_valid: impl Fn(&str) -> bool,
) -> Result<Option<String>, Error> {
    if value.as_deref().is_some_and(|value| !is_valid(value)) {
        return Err(Error::field(field, description));
    }
    Ok(value.clone())
}

pub(super) fn log(request: &VerifyLogRequest) -> Result<Tenant, Error> {
    tenant("tenant", &request.tenant)
}

pub(super) fn page_size(size: u32) -> Result<usize, Error> {
    let size = match size {
        0 => DEFAULT_PAGE_SIZE,
        1..=MAX_PAGE_SIZE => size,
        _ => return Err(Error::field("page_size", "0 to 1000")),
    };
    usize::try_from(size).map_err(|_| Error::field("page_size", "0 to 1000"))
}

/// What a token of `ListOpen` is bound to.
pub(super) fn open_binding(writer: &SpiffeId) -> Vec<u8> {
    format!("ListOpen\n{writer}").into_bytes()
}

/// What a token of `ListReceipts` is bound to: the caller and all fields but those of paging.
pub(super) fn list_binding(request: &ListReceiptsRequest, reader: &SpiffeId) -> Vec<u8> {
    let query = ListReceiptsRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    let mut binding = format!("ListReceipts\n{reader}\n").into_bytes();
    binding.extend(query.encode_to_vec());
    binding
}

pub(super) fn open_place(place: &[u8]) -> Result<OperationKeyRecord, Error> {
    records::decode(place)
}

pub(super) fn list_place(place: &[u8]) -> Result<Place, Error> {
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
    let place = place.split_at_checked(size_of::<u64>());
    let place = place.and_then(|(position, total)| {
        Some(Place {
            position: number(position)?,
            total: number(total)?,
        })
    });
    place.ok_or(Error::Internal("a page token holds no place"))
}

/// Tells a repeat from other content under the same operation id: over all fields.
pub(super) fn content(rpc: &str, deadline_ms: Option<u64>, request: &impl Message) -> Digest {
    let mut bytes = format!("{rpc}\n{}\n", deadline_ms.unwrap_or(0)).into_bytes();
    bytes.extend(request.encode_to_vec());
    Digest::of_bytes(&bytes)
}

fn routing(routing: Option<WireRouting>) -> Result<Routing, Error> {
    let routing = routing.ok_or(Error::field("routing", "required"))?;
    let field = |name| FieldPath::new("routing").field(name);
    Ok(Routing {
        tenant: tenant(field("tenant"), &routing.tenant)?,
        operation_id: OperationId::parse(&routing.operation_id).ok_or_else(invalid_operation)?,
        subject_tag: subject_tag(field("subject_tag"), routing.subject_tag.as_deref())?,
    })
}

/// An operation of the writer's own has a UUID; digests name those of consumers.
fn own_operation(routing: &Routing) -> Result<(), Error> {
    if routing.operation_id.is_uuid() {
        return Ok(());
    }
    Err(invalid_operation())
}

fn invalid_operation() -> Error {
    let field = FieldPath::new("routing").field("operation_id");
    Error::field(field, "urn:cl:operation: and a UUIDv7")
}

pub(super) fn tenant(field: impl Into<FieldPath>, text: &str) -> Result<Tenant, Error> {
    Tenant::parse(text).ok_or_else(|| Error::field(field, TENANT))
}

pub(super) fn subject_tag(
    field: impl Into<FieldPath>,
    text: Option<&str>,
) -> Result<Option<SubjectTag>, Error> {
    match text {
        None => Ok(None),
        Some(text) => match SubjectTag::parse(text) {
            Some(tag) => Ok(Some(tag)),
            None => Err(Error::field(field, TAG)),
        },
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Down,
    Up,
}

/// Entries and deadlines are kept in milliseconds.
fn milliseconds(field: &'static str, time: &Timestamp, rounding: Rounding) -> Result<u64, Error> {
    const LAST_SECOND: i64 = 253_402_300_799;
    let seconds = u64::try_from(time.seconds).ok();
    let nanos = u64::try_from(time.nanos).ok();
    match (seconds, nanos) {
        (Some(seconds), Some(nanos)) if time.seconds <= LAST_SECOND && nanos < 1_000_000_000 => {
            let fraction = match rounding {
                Rounding::Down => nanos / 1_000_000,
                Rounding::Up => nanos.div_ceil(1_000_000),
            };
            Ok(seconds * 1000 + fraction)
        }
        (Some(_) | None, Some(_) | None) => Err(Error::field(field, TIME)),
    }
}
