//! Announced operations: their states, and the receipt that stands in for a writer who is silent.

use cl_model::digest::Digest;
use cl_model::part::SPEC_VERSION;
use cl_model::time::{Timestamp, UnixTime};
use serde_json::{Value, json};

use super::finished::Finished;
use super::members::Members;
use super::records::{IntentRecord, OperationRecord};
use super::routing::OperationId;
use crate::error::Error;

/// The operation that the store's own receipts record.
pub const OVERDUE_OPERATION: &str = "operation.overdue";

/// How far away a deadline may be.
pub const MAX_DEADLINE_MS: u64 = 24 * 60 * 60 * 1000;

/// The states of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The operation may still be running.
    Open,
    /// The deadline has passed and the store said so.
    Overdue,
    /// The writer's receipt is durable.
    Settled,
}

impl IntentRecord {
    /// Its state.
    pub fn state(&self) -> State {
        if !self.settled.is_empty() {
            State::Settled
        } else if self.overdue_sequence > 0 {
            State::Overdue
        } else {
            State::Open
        }
    }

    /// Whether the store must say that its time is over.
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.state() == State::Open && self.deadline_ms <= now_ms
    }
}

impl OperationRecord {
    /// The intent that an index says is there.
    pub fn expect_intent(&self) -> Result<&IntentRecord, Error> {
        self.intent
            .as_ref()
            .ok_or(Error::Corrupt("an operation has no intent"))
    }
}

/// The store's own receipt about an operation whose writer did not report in time.
///
/// It names the store as actor, and the writer's operation in its metadata.
pub fn overdue_receipt(
    intent: &Members,
    operation_id: &OperationId,
    own_id: &str,
    now_ms: u64,
) -> Result<Finished, Error> {
    let copied = |name: &str| intent.value(name).cloned().unwrap_or_default();
    let nothing = Digest::of_json(&Value::Null).to_string();
    let started_at = copied("started_at");
    let now = UnixTime::from_milliseconds(i64::try_from(now_ms).unwrap_or(i64::MAX));
    let started = started_at.as_str().and_then(Timestamp::parse);
    let completed_at = now.max(started.map_or(now, |started| started.instant()));
    let members = json!({
        "spec_version": SPEC_VERSION,
        "type": "receipt",
        "created_at": now.to_string(),
        "issuer": {"id": own_id},
        "operation": OVERDUE_OPERATION,
        "actor": own_id,
        "subject_ref": copied("subject_ref"),
        "request_ref": copied("request_ref"),
        "decision_ref": copied("decision_ref"),
        "bundle_ref": copied("bundle_ref"),
        "started_at": started_at,
        "completed_at": completed_at.to_string(),
        "outcome": "indeterminate",
        "policy_snapshot": copied("policy_snapshot"),
        "input_digest": nothing,
        "output_digest": nothing,
        "payload_included": false,
        "user_summary": "The operation did not report its outcome by its deadline.",
        "metadata": {
            "operation": copied("operation"),
            "operation_id": operation_id.as_str(),
        },
    });
    Ok(Finished::new(members)?)
}
