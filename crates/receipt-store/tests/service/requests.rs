//! Requests as writers and readers make them.

use cl_host::clock::{Clock, SystemClock};
use cl_model::canonical;
use cl_model::record;
use cl_wire::receipt::v1::append_request::Body;
use cl_wire::receipt::v1::{
    AppendRequest, BeginRequest, CompleteRequest, ConsumerReceipt, GetReceiptRequest, Routing,
};
use prost_types::Timestamp;
use serde_json::{Value, json};

use crate::support::START_MS;

const NULL_DIGEST: &str = "sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b";

pub(crate) fn operation_id(number: u64) -> String {
    format!("urn:cl:operation:0190a3c5-7b7e-7c3d-8e4f-{number:012x}")
}

pub(crate) fn tag(byte: u8) -> String {
    data_encoding::BASE64URL_NOPAD.encode(&[byte; 32])
}

pub(crate) fn routing(number: u64) -> Routing {
    Routing {
        tenant: "acme".to_owned(),
        operation_id: operation_id(number),
        subject_tag: Some(tag(1)),
    }
}

/// All members of a receipt by the policy engine.
pub(crate) fn members(number: u64) -> Value {
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "receipt",
        "created_at": "2030-03-17T17:46:40Z",
        "issuer": {"id": "urn:cl:policy-engine:local"},
        "operation": "policy.decide",
        "actor": "urn:cl:policy-engine:local",
        "subject_ref": "urn:cl:alias:subject",
        "request_ref": "urn:cl:request:r1",
        "decision_ref": null,
        "bundle_ref": null,
        "started_at": "2030-03-17T17:46:40Z",
        "completed_at": "2030-03-17T17:46:41Z",
        "outcome": "success",
        "policy_snapshot": null,
        "input_digest": NULL_DIGEST,
        "output_digest": NULL_DIGEST,
        "payload_included": false,
        "user_summary": "A request was decided.",
        "metadata": {"operation_id": operation_id(number)},
    })
}

pub(crate) fn with(mut members: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        members[name] = value.clone();
    }
    members
}

pub(crate) fn without(mut members: Value, names: &[&str]) -> Value {
    for name in names {
        members.as_object_mut().unwrap().remove(*name);
    }
    members
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    canonical::to_text(value).into_bytes()
}

pub(crate) fn append_of(number: u64, members: &Value) -> AppendRequest {
    AppendRequest {
        routing: Some(routing(number)),
        body: Some(Body::Members(bytes(members))),
    }
}

pub(crate) fn append(number: u64) -> AppendRequest {
    append_of(number, &members(number))
}

/// A successful consumption of one bundle by one actor; receipts of other numbers differ.
pub(crate) fn consumption(number: u64) -> Value {
    with(
        members(number),
        json!({
            "operation": "bundle.consume",
            "actor": "urn:agent:recipient",
            "bundle_ref": "urn:cl:bundle:b1",
        }),
    )
}

/// A consumer's finished receipt, passed on by the bundle issuer.
pub(crate) fn consumer_append(members: Value) -> AppendRequest {
    let recipient = members["actor"].as_str().unwrap().to_owned();
    let finished = record::finalize(members, "urn:cl:receipt:").unwrap();
    AppendRequest {
        routing: Some(Routing {
            operation_id: format!("urn:cl:operation:{}", finished.digest().to_hex()),
            ..routing(0)
        }),
        body: Some(Body::ConsumerReceipt(ConsumerReceipt {
            receipt: finished.text().as_bytes().to_vec(),
            recipient,
        })),
    }
}

pub(crate) fn time(ms: i64) -> Timestamp {
    Timestamp {
        seconds: ms / 1000,
        nanos: i32::try_from(ms % 1000).unwrap() * 1_000_000,
    }
}

pub(crate) const BEGUN: [&str; 6] = [
    "issuer",
    "operation",
    "actor",
    "subject_ref",
    "started_at",
    "request_ref",
];

/// The members that `Begin` sends.
pub(crate) fn begun_members(number: u64) -> Value {
    let all = members(number);
    BEGUN
        .iter()
        .map(|name| ((*name).to_owned(), all[*name].clone()))
        .collect()
}

/// An intent that is over a minute after the start.
pub(crate) fn begin(number: u64) -> BeginRequest {
    BeginRequest {
        routing: Some(routing(number)),
        deadline: Some(time(START_MS + 60_000)),
        members: bytes(&begun_members(number)),
    }
}

/// An intent that is over in an hour, by the system's clock.
pub(crate) fn begin_later(number: u64) -> BeginRequest {
    BeginRequest {
        deadline: Some(time(SystemClock.now_unix_ms() + 3_600_000)),
        ..begin(number)
    }
}

pub(crate) fn complete(number: u64) -> CompleteRequest {
    CompleteRequest {
        routing: Some(routing(number)),
        members: bytes(&without(members(number), &BEGUN)),
    }
}

pub(crate) fn get(tenant: &str, reference: &str) -> GetReceiptRequest {
    GetReceiptRequest {
        tenant: tenant.to_owned(),
        receipt_ref: reference.to_owned(),
        actor: None,
    }
}
