//! From what the store has to messages.

use cl_wire::receipt::v1 as wire;
use cl_wire::receipt::v1::{
    Attestation, BeginResponse, Hold, Intent, IntentState, ListOpenResponse, ListReceiptsResponse,
    LogEntry, LogFault, RecordedReceipt, Routing, Tombstone, VerifyLogResponse, hold_target,
    verify_log_response,
};
use prost::Message;
use prost_types::Timestamp;

use crate::check::{Fault, Progress};
use crate::core::command::{Answer, Erased};
use crate::core::holds::{HoldRecord, HoldTarget};
use crate::core::intents::State;
use crate::core::records::{EntryRecord, OperationKeyRecord, RoutingRecord, TombstoneRecord};
use crate::error::Error;
use crate::page_token::PageTokens;
use crate::reader::{Numbered, OpenIntent, Page};
use crate::search::Place;

const OTHER_ANSWER: Error = Error::Internal("the committer answered something else");

pub(super) fn entry_of(answer: Answer) -> Result<(LogEntry, String), Error> {
    match answer {
        Answer::Entry(placed, proof) => Ok((log_entry(placed.sequence, &placed.entry), proof)),
        Answer::Intent(..) | Answer::Erased(_) | Answer::Done => Err(OTHER_ANSWER),
    }
}

pub(super) fn erased(answer: Answer) -> Result<Erased, Error> {
    match answer {
        Answer::Erased(erased) => Ok(erased),
        Answer::Entry(..) | Answer::Intent(..) | Answer::Done => Err(OTHER_ANSWER),
    }
}

pub(super) fn begun(answer: Answer) -> Result<BeginResponse, Error> {
    match answer {
        Answer::Intent(state, entry) => Ok(BeginResponse {
            state: wire_state(state).into(),
            entry: entry.map(|placed| log_entry(placed.sequence, &placed.entry)),
        }),
        Answer::Entry(..) | Answer::Erased(_) | Answer::Done => Err(OTHER_ANSWER),
    }
}

pub(super) fn recorded(sequence: u64, entry: EntryRecord) -> Result<RecordedReceipt, Error> {
    if let Some(tombstone) = &entry.tombstone {
        return Ok(RecordedReceipt {
            entry: Some(log_entry(sequence, &entry)),
            recorded_at: Some(timestamp(entry.recorded_at_ms)?),
            tombstone: Some(buried(&entry.leaf, tombstone)?),
            ..RecordedReceipt::default()
        });
    }
    let attestation = if entry.by_consumer {
        Attestation::Consumer
    } else {
        Attestation::Authority
    };
    Ok(RecordedReceipt {
        entry: Some(log_entry(sequence, &entry)),
        receipt: entry.receipt.into_bytes(),
        salt: entry.salt,
        routing: entry.routing.map(routing),
        writer: entry.writer,
        attestation: attestation.into(),
        recorded_at: Some(timestamp(entry.recorded_at_ms)?),
        tombstone: None,
    })
}

fn buried(leaf: &[u8], tombstone: &TombstoneRecord) -> Result<Tombstone, Error> {
    Ok(Tombstone {
        leaf: leaf.to_vec(),
        erased_at: Some(timestamp(tombstone.erased_at_ms)?),
        retention_class: tombstone.class.clone(),
    })
}

pub(super) fn hold(record: HoldRecord) -> Result<Hold, Error> {
    let target = match record.target()? {
        HoldTarget::Tenant => hold_target::Target::WholeTenant(true),
        HoldTarget::Subject(tag) => hold_target::Target::SubjectTag(tag.as_str().to_owned()),
        HoldTarget::Bundle(bundle) => hold_target::Target::BundleRef(bundle),
        HoldTarget::Receipt(receipt) => hold_target::Target::ReceiptRef(receipt),
    };
    Ok(Hold {
        hold_id: record.hold_id,
        target: Some(wire::HoldTarget {
            target: Some(target),
        }),
        reason: record.reason,
        placed_by: record.placed_by,
        placed_at: Some(timestamp(record.placed_at_ms)?),
    })
}

pub(super) fn list_page(
    page: Page<Numbered, Place>,
    next_page_token: String,
) -> Result<ListReceiptsResponse, Error> {
    let receipts = page.items.into_iter();
    Ok(ListReceiptsResponse {
        receipts: receipts
            .map(|(sequence, entry)| recorded(sequence, entry))
            .collect::<Result<_, _>>()?,
        next_page_token,
        total_size: page.total,
    })
}

pub(super) fn open_page(
    page: Page<OpenIntent, OperationKeyRecord>,
    next_page_token: String,
) -> Result<ListOpenResponse, Error> {
    Ok(ListOpenResponse {
        intents: page
            .items
            .into_iter()
            .map(intent)
            .collect::<Result<_, _>>()?,
        next_page_token,
        total_size: page.total,
    })
}

pub(super) fn list_token(
    tokens: &PageTokens,
    binding: &[u8],
    next: Option<Place>,
) -> Result<String, Error> {
    match next {
        Some(Place { position, total }) => {
            let place = [position.to_be_bytes(), total.to_be_bytes()].concat();
            tokens.seal(binding, &place)
        }
        None => Ok(String::new()),
    }
}

pub(super) fn open_token(
    tokens: &PageTokens,
    binding: &[u8],
    next: Option<&OperationKeyRecord>,
) -> Result<String, Error> {
    match next {
        Some(next) => tokens.seal(binding, &next.encode_to_vec()),
        None => Ok(String::new()),
    }
}

pub(super) fn checked(progress: &Progress, fault: Option<Fault>) -> VerifyLogResponse {
    let result = match fault {
        Some(Fault { sequence, code }) => verify_log_response::Result::Fault(LogFault {
            sequence,
            code: code.as_str().to_owned(),
        }),
        None => verify_log_response::Result::Checkpoint(progress.checkpoint().to_owned()),
    };
    VerifyLogResponse {
        checked_entries: progress.checked(),
        erased_entries: progress.erased(),
        result: Some(result),
    }
}

fn intent(open: OpenIntent) -> Result<Intent, Error> {
    let record = open.operation.expect_intent()?.clone();
    Ok(Intent {
        routing: open.operation.routing.map(routing),
        state: wire_state(record.state()).into(),
        deadline: Some(timestamp(record.deadline_ms)?),
        begun_at: Some(timestamp(record.begun_at_ms)?),
        members: record.members,
        entry: open
            .entry
            .map(|(sequence, entry)| log_entry(sequence, &entry)),
    })
}

fn wire_state(state: State) -> IntentState {
    match state {
        State::Open => IntentState::Open,
        State::Overdue => IntentState::Overdue,
        State::Settled => IntentState::Settled,
    }
}

fn log_entry(sequence: u64, entry: &EntryRecord) -> LogEntry {
    LogEntry {
        sequence,
        receipt_ref: entry.receipt_ref.clone(),
        supersedes_ref: entry.supersedes_ref.clone(),
    }
}

fn routing(record: RoutingRecord) -> Routing {
    Routing {
        tenant: record.tenant,
        operation_id: record.operation_id,
        subject_tag: record.subject_tag,
    }
}

fn timestamp(ms: u64) -> Result<Timestamp, Error> {
    let out_of_range = |_| Error::Corrupt("a time is out of range");
    Ok(Timestamp {
        seconds: i64::try_from(ms / 1000).map_err(out_of_range)?,
        nanos: i32::try_from(ms % 1000 * 1_000_000).map_err(out_of_range)?,
    })
}
