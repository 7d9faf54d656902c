//! Receipts, as the auditor.

use cl_model::json::{self, Limits};
use cl_wire::receipt::v1::verify_log_response::Result as Verdict;
use cl_wire::receipt::v1::{
    Attestation, GetReceiptRequest, ListReceiptsRequest, RecordedReceipt, VerifyLogRequest,
};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::tenant;
use crate::error::Error;
use crate::output;
use crate::peers::{self, Receipts};
use crate::policy::time;
use crate::processes::RECEIPT_STORE;
use crate::session::Session;

const PAGE_SIZE: u32 = 1000;

/// A receipt has at most 65,536 bytes; its text may have grown by the members that the store adds.
const MAX_RECEIPT_BYTES: usize = 128 * 1024;

const RECEIPT_PREFIX: &str = "urn:cl:receipt:";

/// Receipts of what was done.
#[derive(Debug, Subcommand)]
pub(crate) enum ReceiptsCommand {
    /// Lists receipts in the order of the log.
    List {
        /// Only receipts of this operation, such as policy.decide.
        #[arg(long)]
        operation: Option<String>,
        /// At most so many, the newest of those that match.
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// The tenant of the receipts.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Shows one receipt.
    Show {
        /// Its URN, or what follows `urn:cl:receipt:`.
        id: String,
        /// The tenant of the receipt.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Has the store check every receipt, every tile and the checkpoint of a log.
    Verify {
        /// The tenant of the log.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
}

pub(crate) async fn run(command: ReceiptsCommand, session: &Session) -> Result<(), Error> {
    let mut store = peers::receipts(session)?;
    match command {
        ReceiptsCommand::List {
            operation,
            limit,
            tenant,
        } => list(&mut store, session, operation, limit, tenant).await,
        ReceiptsCommand::Show { id, tenant } => show(&mut store, session, &id, tenant).await,
        ReceiptsCommand::Verify { tenant } => {
            let verified = verify(&mut store, tenant).await?;
            session.output.answer(&verified.to_json(), || {
                output::fields(&[
                    ("entries", verified.entries.to_string()),
                    ("checkpoint", verified.checkpoint.clone()),
                    ("verified", "yes".to_owned()),
                ])
            })
        }
    }
}

/// A log whose entries all verified.
#[derive(Debug)]
pub(crate) struct VerifiedLog {
    pub(crate) entries: u64,
    pub(crate) checkpoint: String,
}

impl VerifiedLog {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "entries": self.entries,
            "checkpoint": self.checkpoint,
            "verified": true,
        })
    }
}

/// Has the store check the log of a tenant.
pub(crate) async fn verify(store: &mut Receipts, tenant: String) -> Result<VerifiedLog, Error> {
    let answer = store.verify_log(VerifyLogRequest { tenant }).await;
    let answer = answer.map_err(|status| Error::of_status(RECEIPT_STORE.name, &status))?;
    let answer = answer.into_inner();
    match answer.result.ok_or(MALFORMED)? {
        Verdict::Checkpoint(checkpoint) => Ok(VerifiedLog {
            entries: answer.checked_entries,
            checkpoint,
        }),
        Verdict::Fault(fault) => Err(Error::LogFault {
            sequence: fault.sequence,
            code: fault.code,
        }),
    }
}

const MALFORMED: Error = Error::Answer {
    peer: RECEIPT_STORE.name,
};

async fn list(
    store: &mut Receipts,
    session: &Session,
    operation: Option<String>,
    limit: usize,
    tenant: String,
) -> Result<(), Error> {
    let mut request = ListReceiptsRequest {
        tenant,
        operation,
        page_size: PAGE_SIZE,
        ..ListReceiptsRequest::default()
    };
    let mut newest = Vec::new();
    let total = loop {
        let page = store.list_receipts(request.clone()).await;
        let page = page.map_err(|status| Error::of_status(RECEIPT_STORE.name, &status))?;
        let page = page.into_inner();
        newest.extend(page.receipts);
        let outdated = newest.len().saturating_sub(limit);
        newest.drain(..outdated);
        if page.next_page_token.is_empty() {
            break page.total_size;
        }
        request.page_token = page.next_page_token;
    };
    let shown = newest
        .iter()
        .map(Shown::of)
        .collect::<Result<Vec<_>, _>>()?;
    let receipts: Vec<Value> = shown.iter().map(Shown::to_json).collect();
    let document = json!({"receipts": receipts, "total": total});
    session.output.answer(&document, || {
        let rows: Vec<_> = shown.iter().map(Shown::row).collect();
        let table = output::table(
            ["ENTRY", "RECORDED", "OPERATION", "OUTCOME", "RECEIPT"],
            &rows,
        );
        format!("{table}{} of {total}\n", rows.len())
    })
}

async fn show(
    store: &mut Receipts,
    session: &Session,
    id: &str,
    tenant: String,
) -> Result<(), Error> {
    let receipt_ref = if id.starts_with(RECEIPT_PREFIX) {
        id.to_owned()
    } else {
        format!("{RECEIPT_PREFIX}{id}")
    };
    let request = GetReceiptRequest {
        tenant,
        receipt_ref,
    };
    let answer = store.get_receipt(request).await;
    let answer = answer.map_err(|status| Error::of_status(RECEIPT_STORE.name, &status))?;
    let recorded = answer.into_inner().receipt.ok_or(MALFORMED)?;
    let shown = Shown::of(&recorded)?;
    session.output.answer(&shown.to_json(), || {
        let fields = output::fields(&[
            ("receipt", shown.receipt_ref.clone()),
            ("entry", shown.sequence.to_string()),
            ("recorded", shown.recorded_at.clone()),
            ("writer", shown.writer.clone()),
            ("attested by", shown.attestation.to_owned()),
        ]);
        // JSON text may hold control characters above U+007E.
        let receipt = format!("{:#}", shown.receipt);
        let lines: Vec<String> = receipt.lines().map(output::printable).collect();
        format!("{fields}\n{}\n", lines.join("\n"))
    })
}

/// A recorded receipt, parsed.
#[derive(Debug)]
struct Shown {
    sequence: u64,
    receipt_ref: String,
    recorded_at: String,
    writer: String,
    attestation: &'static str,
    receipt: Value,
}

impl Shown {
    fn of(recorded: &RecordedReceipt) -> Result<Self, Error> {
        let entry = recorded.entry.as_ref().ok_or(MALFORMED)?;
        let receipt = json::parse(&recorded.receipt, Limits::network(MAX_RECEIPT_BYTES))
            .map_err(|_| MALFORMED)?;
        Ok(Self {
            sequence: entry.sequence,
            receipt_ref: entry.receipt_ref.clone(),
            recorded_at: time(recorded.recorded_at.as_ref()).ok_or(MALFORMED)?,
            writer: recorded.writer.clone(),
            attestation: match recorded.attestation() {
                Attestation::Authority => "authority",
                Attestation::Consumer => "consumer",
                Attestation::Unspecified => return Err(MALFORMED),
            },
            receipt,
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "sequence": self.sequence,
            "receipt_ref": self.receipt_ref,
            "recorded_at": self.recorded_at,
            "writer": self.writer,
            "attestation": self.attestation,
            "receipt": self.receipt,
        })
    }

    fn row(&self) -> [String; 5] {
        let text = |member: &str| self.receipt[member].as_str().unwrap_or("-").to_owned();
        [
            self.sequence.to_string(),
            self.recorded_at.clone(),
            text("operation"),
            text("outcome"),
            self.receipt_ref.clone(),
        ]
    }
}
