//! The receipt store, as the console needs it: receipts of one subject, each proved.

mod proof;

use cl_host::client::PeerChannel;
use cl_host::deadline::Deadline;
use cl_model::explanation::{self, Facts, Word};
use cl_model::json::{self, Limits};
use cl_model::leaf::Salt;
use cl_model::object::Receipt;
use cl_model::time::UnixTime;
use cl_model::urn::ReceiptId;
use cl_model::{canonical, receipt};
use cl_wire::receipt::v1 as wire;
use cl_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use cl_wire::time;
use tonic::{Request, Status};

pub use self::proof::Log;
use crate::engine::Page;
use crate::error::{Error, Peer};

/// The longest receipt, in bytes; its text may have grown by the members that the store adds.
const MAX_RECEIPT_BYTES: usize = 128 * 1024;

/// Receipts on one page.
const PAGE_SIZE: u32 = 50;

/// Which receipts are wanted.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Search {
    pub(crate) operation: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) from: Option<UnixTime>,
    pub(crate) before: Option<UnixTime>,
    pub(crate) bundle: Option<String>,
    pub(crate) decision: Option<String>,
}

/// A receipt that was read and checked, but not proved.
pub(crate) struct Recorded {
    /// The part of its URN behind the prefix.
    pub(crate) id: String,
    pub(crate) sequence: u64,
    pub(crate) recorded_at: UnixTime,
    pub(crate) receipt: Receipt,
    pub(crate) text: String,
    writer: String,
    word: Word,
    tag: Option<String>,
    salt: Salt,
}

/// A receipt and what its proof says.
pub(crate) struct Shown {
    pub(crate) recorded: Recorded,
    pub(crate) sentences: Vec<String>,
    /// The number of entries of the log, or the stable code of what does not verify.
    pub(crate) proven: Result<u64, &'static str>,
    pub(crate) verdict: String,
}

/// The receipt store over gRPC, for reading only, and the keys of its log.
#[derive(Clone, Debug)]
pub struct Receipts {
    client: ReceiptServiceClient<PeerChannel>,
    log: Log,
}

impl Receipts {
    /// Calls the store over `channel`, and proves what it gives by `log`.
    pub fn new(channel: PeerChannel, log: Log) -> Self {
        Self {
            client: ReceiptServiceClient::new(channel),
            log,
        }
    }

    /// The receipts of one subject, newest of a page first.
    pub(crate) async fn list(
        &self,
        tenant: &str,
        tag: &str,
        search: &Search,
        page_token: &str,
        deadline: Deadline,
    ) -> Result<(Page<Recorded>, u64), Error> {
        let message = wire::ListReceiptsRequest {
            tenant: tenant.to_owned(),
            subject_tag: Some(tag.to_owned()),
            operation: search.operation.clone(),
            outcome: search.outcome.clone(),
            recorded_from: search.from.map(time::to_message),
            recorded_before: search.before.map(time::to_message),
            bundle_ref: search.bundle.clone(),
            decision_ref: search.decision.clone(),
            page_size: PAGE_SIZE,
            page_token: page_token.to_owned(),
        };
        let mut call = Request::new(message);
        deadline.limit(&mut call);
        let answer = self.client.clone().list_receipts(call).await;
        let answer = answer
            .map_err(|status| Error::of_status(Peer::ReceiptStore, &status))?
            .into_inner();
        let entries = answer.receipts.into_iter().map(recorded);
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        if entries.iter().any(|it| it.tag.as_deref() != Some(tag)) {
            return Err(broken("a receipt of another subject"));
        }
        let next = Some(answer.next_page_token).filter(|next| !next.is_empty());
        Ok((Page { entries, next }, answer.total_size))
    }

    /// One receipt of one of these subjects, proved.
    pub(crate) async fn show(
        &self,
        tenant: &str,
        tags: &[&str],
        id: &str,
        now: UnixTime,
        deadline: Deadline,
    ) -> Result<Shown, Error> {
        let message = wire::GetReceiptRequest {
            tenant: tenant.to_owned(),
            receipt_ref: format!("{}{id}", ReceiptId::PREFIX),
            actor: None,
        };
        let mut call = Request::new(message);
        deadline.limit(&mut call);
        let answer = self.client.clone().get_receipt(call).await;
        let answer = answer.map_err(|status| refused(&status))?.into_inner();
        let recorded = recorded(answer.receipt.ok_or(broken("no receipt"))?)?;
        if recorded.id != id {
            return Err(broken("another receipt"));
        }
        // As one that does not exist, whoever it is about.
        let is_theirs = recorded
            .tag
            .as_deref()
            .is_some_and(|tag| tags.contains(&tag));
        if !is_theirs {
            return Err(not_found());
        }
        let proven = self.log.prove(tenant, &recorded, &answer.proof, now);
        let verdict = match &proven {
            Ok(proven) => explanation::proven(recorded.sequence, proven.size, &proven.origin),
            Err(why) => explanation::not_proven(why),
        };
        let facts = Facts {
            receipt: &recorded.receipt,
            word: recorded.word,
            writer: &recorded.writer,
            recorded_at: recorded.recorded_at,
            pointer: "",
        };
        Ok(Shown {
            sentences: facts.sentences(),
            proven: proven.map(|it| it.size).map_err(proof::Why::code),
            verdict,
            recorded,
        })
    }
}

const fn broken(what: &'static str) -> Error {
    Error::BrokenContract(Peer::ReceiptStore, what)
}

fn not_found() -> Error {
    Error::of_reason("RECEIPT_NOT_FOUND").unwrap_or(Error::NotFound)
}

/// Of one that was erased nobody can tell any more whose it was.
fn refused(status: &Status) -> Error {
    if cl_wire::status::reason(status).as_deref() == Some("RECEIPT_ERASED") {
        return not_found();
    }
    Error::of_status(Peer::ReceiptStore, status)
}

/// Checks an answer: a canonical receipt by every rule of the specification.
fn recorded(message: wire::RecordedReceipt) -> Result<Recorded, Error> {
    let word = match message.attestation() {
        wire::Attestation::Authority => Word::Authority,
        wire::Attestation::Consumer => Word::Consumer,
        wire::Attestation::Unspecified => return Err(broken("attestation")),
    };
    let value = json::parse(&message.receipt, Limits::network(MAX_RECEIPT_BYTES));
    let value = value.map_err(|_| broken("receipt"))?;
    let text = canonical::to_text(&value);
    if text.as_bytes() != message.receipt {
        return Err(broken("receipt"));
    }
    let receipt = receipt::check(&value).map_err(|_| broken("receipt"))?;
    let id = receipt.id.as_str().strip_prefix(ReceiptId::PREFIX);
    let recorded_at = message.recorded_at.as_ref().and_then(time::read);
    Ok(Recorded {
        id: id.ok_or(broken("receipt id"))?.to_owned(),
        sequence: message.entry.ok_or(broken("no entry"))?.sequence,
        recorded_at: recorded_at.ok_or(broken("recorded_at"))?,
        text,
        receipt,
        writer: message.writer,
        word,
        tag: message.routing.and_then(|routing| routing.subject_tag),
        salt: Salt::read(&message.salt).ok_or(broken("salt"))?,
    })
}
