//! What a receipt is evidence of, for a person.

use cl_model::explanation::{self, Facts, OVERDUE};
use cl_tlog::ProofFile;
use cl_wire::receipt::v1::ListReceiptsRequest;
use serde_json::json;

use super::ReceiptArgs;
use super::fault::{Place, Why};
use super::keys::LogKeys;
use super::list::timestamp;
use super::offline::check_proof;
use super::recorded::Recorded;
use super::store::Pages;
use super::walk::check_receipt;
use crate::error::Error;
use crate::output;
use crate::peers::{self, Receipts};
use crate::session::Session;

pub(crate) async fn run(args: &ReceiptArgs, session: &Session) -> Result<(), Error> {
    let keys = LogKeys::of_home(session, &args.tenant)?;
    let mut store = peers::receipts(session)?;
    let (recorded, proof) = args.read(&mut store).await?;
    let place = Place::Entry(recorded.sequence);
    let (receipt, _) = check_receipt(&recorded).map_err(|why| place.clone().is(why))?;
    let proven = prove(&recorded, &proof, &keys);
    let superseded_by = superseded_by(store, &recorded, &args.tenant).await?;
    let facts = Facts {
        receipt: &receipt,
        word: recorded.word,
        writer: &recorded.writer,
        recorded_at: recorded.recorded_at,
        pointer: "clctl receipts list --decision",
    };
    let mut sentences = facts.sentences();
    sentences.extend(superseded_by.as_deref().map(explanation::superseded_by));
    sentences.push(match &proven {
        Ok(size) => explanation::proven(recorded.sequence, *size, keys.origin()),
        Err(why) => explanation::not_proven(why),
    });
    let document = json!({
        "receipt_ref": recorded.receipt_ref(),
        "sequence": recorded.sequence,
        "operation": receipt.operation.as_str(),
        "superseded_by": superseded_by,
        "proof_verifies": proven.is_ok(),
        "explanation": sentences,
    });
    session.output.answer(&document, || {
        let lines = sentences.iter().map(|line| output::printable(line) + "\n");
        lines.collect()
    })?;
    proven.map(drop).map_err(|why| place.is(why).into())
}

/// Checks a proof; the size of the log that the proof is of.
fn prove(recorded: &Recorded, proof: &str, keys: &LogKeys) -> Result<u64, Why> {
    let proof = ProofFile::parse(proof.as_bytes()).map_err(|_| Why::ProofMalformed)?;
    check_proof(recorded.sequence, &recorded.leaf(), &proof, keys)?;
    Ok(proof.checkpoint.checkpoint().size())
}

/// The receipt that supersedes this one: one of the same operation, recorded later.
async fn superseded_by(
    store: Receipts,
    recorded: &Recorded,
    tenant: &str,
) -> Result<Option<String>, Error> {
    let mut operation = recorded.member("operation");
    if operation == Some(OVERDUE) {
        operation = recorded.receipt["metadata"]["operation"].as_str();
    }
    let request = ListReceiptsRequest {
        tenant: tenant.to_owned(),
        operation: operation.map(str::to_owned),
        recorded_from: Some(timestamp(recorded.recorded_at)),
        ..ListReceiptsRequest::default()
    };
    let mut pages = Pages::new(store, request);
    while let Some(page) = pages.next().await? {
        let mut entries = page.into_iter().filter_map(|it| it.entry);
        let newer = entries.find(|it| it.supersedes_ref.as_deref() == Some(recorded.receipt_ref()));
        if let Some(newer) = newer {
            return Ok(Some(newer.receipt_ref));
        }
    }
    Ok(None)
}
