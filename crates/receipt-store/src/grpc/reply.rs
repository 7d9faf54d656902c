//! From what the store has to messages.

use cl_model::digest::Digest;
use cl_wire::receipt::v1::{
    Attestation, BeginResponse, Intent, IntentState, ListOpenResponse, ListReceiptsResponse,
    LogEntry, LogFault, RecordedReceipt, Routing, VerifyLogResponse, verify_log_response,
};
use prost::Message;
use prost_types::Timestamp;

use crate::core::command::Answer;
use crate::core::intents::State;
use crate::core::records::{self, EntryRecord, OperationKeyRecord, RoutingRecord};
use crate::error::Error;
use crate::page_token::PageTokens;
use crate::reader::{Fault, Numbered, OpenIntent, Page, Progress};

const OTHER_ANSWER: Error = Error::Internal("the committer answered something else");

pub(super) fn entry_of(answer: Answer) -> Result<LogEntry, Error> {
    match answer {
        Answer::Entry(sequence, entry) => log_entry(sequence, &entry),
        Answer::Intent(..) | Answer::Done => Err(OTHER_ANSWER),
    }
}

pub(super) fn begun(answer: Answer) -> Result<BeginResponse, Error> {
    match answer {
        Answer::Intent(state, entry) => Ok(BeginResponse {
            state: wire_state(state).into(),
            entry: match entry {
                Some((sequence, entry)) => Some(log_entry(sequence, &entry)?),
                None => None,
            },
        }),
        Answer::Entry(..) | Answer::Done => Err(OTHER_ANSWER),
    }
}

pub(super) fn recorded(sequence: u64, entry: EntryRecord) -> Result<RecordedReceipt, Error> {
    let attestation = if entry.by_consumer {
        Attestation::Consumer
    } else {
        Attestation::Authority
    };
    Ok(RecordedReceipt {
        entry: Some(log_entry(sequence, &entry)?),
        receipt: entry.receipt.into_bytes(),
        routing: entry.routing.map(routing),
        writer: entry.writer,
        attestation: attestation.into(),
        recorded_at: Some(timestamp(entry.recorded_at_ms)?),
    })
}

pub(super) fn list_page(
    page: Page<Numbered, u64>,
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
    next: Option<u64>,
) -> Result<String, Error> {
    match next {
        Some(next) => tokens.seal(binding, &next.to_be_bytes()),
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
        None => verify_log_response::Result::HeadDigest(progress.digest.to_string()),
    };
    VerifyLogResponse {
        checked_entries: progress.checked,
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
        entry: match open.entry {
            Some((sequence, entry)) => Some(log_entry(sequence, &entry)?),
            None => None,
        },
    })
}

fn wire_state(state: State) -> IntentState {
    match state {
        State::Open => IntentState::Open,
        State::Overdue => IntentState::Overdue,
        State::Settled => IntentState::Settled,
    }
}

fn log_entry(sequence: u64, entry: &EntryRecord) -> Result<LogEntry, Error> {
    let digest: Digest = records::digest(&entry.digest)?;
    Ok(LogEntry {
        sequence,
        entry_digest: digest.to_string(),
        receipt_ref: entry.receipt_ref.clone(),
        supersedes_ref: entry.supersedes_ref.clone(),
    })
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
