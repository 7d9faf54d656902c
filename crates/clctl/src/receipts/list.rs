//! Lists of receipts, and one of them.

use cl_model::time::UnixTime;
use cl_wire::receipt::v1::ListReceiptsRequest;
use prost_types::Timestamp;
use serde_json::{Value, json};

use super::kept::Kept;
use super::recorded::Recorded;
use super::store::Pages;
use super::{MALFORMED, ReceiptArgs};
use crate::cli::tenant;
use crate::error::Error;
use crate::output;
use crate::peers;
use crate::session::Session;

/// Settings of `clctl receipts list`.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Only receipts of this operation, such as policy.decide.
    #[arg(long)]
    operation: Option<String>,
    /// Only receipts with this outcome: success, failure or indeterminate.
    #[arg(long, value_parser = ["success", "failure", "indeterminate"])]
    outcome: Option<String>,
    /// Only receipts about this bundle, by its URN.
    #[arg(long)]
    bundle: Option<String>,
    /// Only receipts about this decision, by its URN.
    #[arg(long)]
    decision: Option<String>,
    /// Only receipts recorded at this time or later, such as 2030-01-01T00:00:00Z.
    #[arg(long, value_parser = moment)]
    from: Option<UnixTime>,
    /// Only receipts recorded before this time.
    #[arg(long, value_parser = moment)]
    to: Option<UnixTime>,
    /// At most so many, the newest of those that match.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// The tenant of the receipts.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,
}

pub(crate) async fn run(args: ListArgs, session: &Session) -> Result<(), Error> {
    let request = ListReceiptsRequest {
        tenant: args.tenant,
        operation: args.operation,
        outcome: args.outcome,
        bundle_ref: args.bundle,
        decision_ref: args.decision,
        recorded_from: args.from.map(timestamp),
        recorded_before: args.to.map(timestamp),
        ..ListReceiptsRequest::default()
    };
    let mut pages = Pages::new(peers::receipts(session)?, request);
    let mut newest = Vec::new();
    while let Some(page) = pages.next().await? {
        newest.extend(page);
        let outdated = newest.len().saturating_sub(args.limit);
        newest.drain(..outdated);
    }
    let newest = newest.into_iter().map(Kept::of_store);
    let newest = newest.collect::<Option<Vec<_>>>().ok_or(MALFORMED)?;
    let total = pages.total;
    let receipts: Vec<Value> = newest.iter().map(to_json).collect();
    let document = json!({"receipts": receipts, "total": total});
    session.output.answer(&document, || {
        let rows: Vec<_> = newest.iter().map(row).collect();
        let table = output::table(
            ["ENTRY", "RECORDED", "OPERATION", "OUTCOME", "RECEIPT"],
            &rows,
        );
        format!("{table}{} of {total}\n", rows.len())
    })
}

/// Shows one receipt, or its proof file alone.
pub(crate) async fn show(
    receipt: &ReceiptArgs,
    proof_only: bool,
    session: &Session,
) -> Result<(), Error> {
    let (recorded, proof) = receipt.read(&mut peers::receipts(session)?).await?;
    if proof_only {
        return session
            .output
            .answer(&json!({"proof": proof}), || proof.clone());
    }
    let mut document = receipt_json(&recorded);
    document["subject_tag"] = recorded.subject_tag.clone().into();
    session.output.answer(&document, || {
        let fields = output::fields(&[
            ("receipt", recorded.receipt_ref().to_owned()),
            ("entry", recorded.sequence.to_string()),
            ("recorded", recorded.recorded_at.to_string()),
            ("writer", recorded.writer.clone()),
            ("attested by", recorded.word.as_str().to_owned()),
            (
                "subject tag",
                output::printable(recorded.subject_tag.as_deref().unwrap_or("-")),
            ),
        ]);
        // JSON text may hold control characters above U+007E.
        let receipt = format!("{:#}", recorded.receipt);
        let lines: Vec<String> = receipt.lines().map(output::printable).collect();
        format!("{fields}\n{}\n", lines.join("\n"))
    })
}

fn receipt_json(recorded: &Recorded) -> Value {
    let mut document = recorded.to_json();
    document["receipt_ref"] = recorded.receipt_ref().into();
    document
}

fn to_json(kept: &Kept) -> Value {
    match kept {
        Kept::Receipt(recorded) => receipt_json(recorded),
        Kept::Tombstone(_) => kept.to_json(),
    }
}

fn row(kept: &Kept) -> [String; 5] {
    let [operation, outcome, reference] = match kept {
        Kept::Receipt(recorded) => {
            let text = |member: &str| recorded.member(member).unwrap_or("-").to_owned();
            let reference = recorded.receipt_ref().to_owned();
            [text("operation"), text("outcome"), reference]
        }
        Kept::Tombstone(_) => ["(erased)", "-", "-"].map(str::to_owned),
    };
    [
        kept.sequence().to_string(),
        kept.recorded_at().to_string(),
        operation,
        outcome,
        reference,
    ]
}

/// Reads a time as an argument.
pub(crate) fn moment(text: &str) -> Result<UnixTime, String> {
    UnixTime::parse(text).ok_or_else(|| "a time such as 2030-01-01T00:00:00Z".to_owned())
}

/// A time as the store takes it.
pub(super) fn timestamp(time: UnixTime) -> Timestamp {
    let ms = time.milliseconds();
    let nanos = ms.rem_euclid(1000).saturating_mul(1_000_000);
    Timestamp {
        seconds: ms.div_euclid(1000),
        nanos: i32::try_from(nanos).unwrap_or_default(),
    }
}
