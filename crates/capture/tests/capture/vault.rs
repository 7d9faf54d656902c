//! A vault that keeps to the contract of `CaptureService` and refuses what does not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use cl_model::digest::Digest;
use cl_model::json::{self, Limits};
use cl_model::object::{ProtocolObject as _, SourceEvent};
use cl_model::scalar::is_name;
use cl_model::urn::EventId;
use cl_model::{canonical, record};
use cl_wire::status::status;
use cl_wire::vault::v1::capture_outcome::Result as Outcome;
use cl_wire::vault::v1::capture_service_server::CaptureService;
use cl_wire::vault::v1::captured_item::{Content, Payload};
use cl_wire::vault::v1::store_payload_request::Piece;
use cl_wire::vault::v1::{
    CalendarContent, CaptureEventsRequest, CaptureEventsResponse, CaptureOutcome, CapturedEvent,
    CapturedItem, MailContent, Meeting, StorePayloadRequest, StorePayloadResponse, TextOrigin,
};
use serde_json::Value;
use tokio_stream::StreamExt as _;
use tonic::{Code, Request, Response, Status, Streaming};

/// What the vault does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Stores nothing.
    Before,
    /// Stores, and loses the answer.
    After,
    /// Refuses for good.
    Erased,
}

#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Events by what makes two captures the same item.
    pub(crate) events: BTreeMap<String, Value>,
    pub(crate) contents: BTreeMap<String, MailContent>,
    pub(crate) calendars: BTreeMap<String, CalendarContent>,
    pub(crate) payloads: BTreeMap<String, Vec<u8>>,
    pub(crate) operations: Vec<String>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) broken: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FakeVault {
    pub(crate) kept: Arc<Mutex<Kept>>,
}

fn refuse(reason: &'static str) -> Status {
    status(Code::InvalidArgument, reason, "the request does not fit")
}

impl Kept {
    fn batch(&mut self, request: &CaptureEventsRequest) -> Result<Vec<CaptureOutcome>, Status> {
        let bytes: usize = request.items.iter().map(prost::Message::encoded_len).sum();
        if !(1..=64).contains(&request.items.len()) || bytes > 3_145_728 {
            return Err(refuse("DOCUMENT_TOO_LARGE"));
        }
        if !request.operation_id.starts_with("urn:cl:operation:") {
            return Err(refuse("INVALID_OPERATION_ID"));
        }
        self.operations.push(request.operation_id.clone());
        let outcomes = request.items.iter().map(|item| {
            let result = match self.item(request, item) {
                Ok(outcome) => outcome,
                Err(code) => {
                    self.broken.insert(code.to_owned());
                    Outcome::RefusedCode(code.to_owned())
                }
            };
            CaptureOutcome {
                result: Some(result),
            }
        });
        Ok(outcomes.collect())
    }

    fn item(
        &mut self,
        request: &CaptureEventsRequest,
        item: &CapturedItem,
    ) -> Result<Outcome, &'static str> {
        if item.event.len() > 262_144 {
            return Err("DOCUMENT_TOO_LARGE");
        }
        let value =
            json::parse(&item.event, Limits::network(262_144)).map_err(|_| "INVALID_JSON")?;
        if canonical::to_text(&value).as_bytes() != item.event {
            return Err("NOT_CANONICAL");
        }
        record::verify(&value, EventId::PREFIX).map_err(|_| "RECORD_INTEGRITY_MISMATCH")?;
        let event = SourceEvent::read(&value).map_err(|_| "INVALID_SOURCE_EVENT")?;
        if event.subject_ref.as_str() != request.subject_ref {
            return Err("SUBJECT_MISMATCH");
        }
        let (digest, length) = match item.payload.as_ref().ok_or("PAYLOAD_REQUIRED")? {
            Payload::Inline(bytes) if bytes.len() > 1_048_576 => return Err("DOCUMENT_TOO_LARGE"),
            Payload::Inline(bytes) => {
                let digest = Digest::of_bytes(bytes);
                self.payloads.insert(digest.to_string(), bytes.clone());
                (digest, bytes.len())
            }
            Payload::StoredDigest(digest) => {
                let stored = self.payloads.get(digest).ok_or("PAYLOAD_UNKNOWN")?;
                (Digest::parse(digest).ok_or("INVALID_DIGEST")?, stored.len())
            }
        };
        let stated = event.payload_ref.byte_length.map(|it| it.get());
        if event.payload_ref.digest != Some(digest) || stated != i64::try_from(length).ok() {
            return Err("PAYLOAD_DIGEST_MISMATCH");
        }
        match &item.content {
            Some(Content::Mail(mail)) => check_mail(mail)?,
            Some(Content::Calendar(calendar)) => check_meetings(&calendar.meetings)?,
            None => {}
        }
        let native = event.source.native_id_digest.ok_or("NATIVE_ID_REQUIRED")?;
        let key = format!("{native} {digest}");
        let captured = CapturedEvent {
            event_ref: event.id.as_str().to_owned(),
            claims: 1,
        };
        if self.events.contains_key(&key) {
            return Ok(Outcome::Duplicate(captured));
        }
        match &item.content {
            Some(Content::Mail(mail)) => {
                self.contents.insert(key.clone(), mail.clone());
            }
            Some(Content::Calendar(calendar)) => {
                self.calendars.insert(key.clone(), calendar.clone());
            }
            None => {}
        }
        self.events.insert(key, value);
        Ok(Outcome::Captured(captured))
    }
}

fn check_mail(mail: &MailContent) -> Result<(), &'static str> {
    let is_line =
        |text: &str, max: usize| text.chars().count() <= max && !text.contains(char::is_control);
    let mailboxes = || mail.from.iter().chain(&mail.to).chain(&mail.cc);
    let text: usize = mail.text.iter().map(|it| it.text.len()).sum();
    let is_right = mail.to.len() <= 256
        && mail.cc.len() <= 256
        && is_line(&mail.subject_line, 2000)
        && mailboxes().all(|it| {
            is_line(&it.address, 320) && it.address.contains('@') && is_line(&it.name, 320)
        })
        && mail.text.len() <= 256
        && text <= 262_144
        && mail
            .text
            .iter()
            .all(|it| it.origin() != TextOrigin::Unspecified)
        && mail.marks.len() <= 64
        && mail.marks.iter().all(|it| is_name(it));
    is_right.then_some(()).ok_or("INVALID_CONTENT")?;
    check_meetings(&mail.meetings)
}

fn check_meetings(meetings: &[Meeting]) -> Result<(), &'static str> {
    let times: usize = meetings.iter().map(|it| it.times.len()).sum();
    let organizers = meetings.iter().filter_map(|it| it.organizer.as_ref());
    let organizers: BTreeSet<&str> = organizers.map(|it| it.address.as_str()).collect();
    // Days and times have one length each, and nothing but digits and their separators.
    let is_start = |text: &str| {
        let is_plain = text
            .chars()
            .all(|it| it.is_ascii_digit() || "-:TZ".contains(it));
        is_plain && [10, 19, 20].contains(&text.len())
    };
    let is_time = |text: &str| match text.split_once('/') {
        None => is_start(text),
        Some((start, end)) => is_start(start) && start.len() == end.len() && start < end,
    };
    let is_right = meetings.len() <= 32
        && times <= 40
        && organizers.len() <= 8
        && organizers.iter().all(|it| it.contains('@'))
        && meetings.iter().all(|it| {
            let digest = Digest::parse(&it.series_digest);
            let mut times = it.times.iter();
            digest.is_some()
                && (it.is_one_of_series || !it.is_and_later)
                && (!it.times.is_empty()
                    || it.is_cancelled && !it.is_one_of_series && it.organizer.is_some())
                && it.marks.len() <= 8
                && it.marks.iter().all(|mark| is_name(mark))
                && times.all(|it| is_time(&it.time) && is_start(&it.occurrence))
        });
    is_right.then_some(()).ok_or("INVALID_CONTENT")
}

#[tonic::async_trait]
impl CaptureService for FakeVault {
    async fn capture_events(
        &self,
        request: Request<CaptureEventsRequest>,
    ) -> Result<Response<CaptureEventsResponse>, Status> {
        let mut kept = self.kept.lock().unwrap();
        let fault = kept.faults.pop();
        if fault == Some(Fault::Before) {
            return Err(status(Code::Unavailable, "BUSY", "later"));
        }
        if fault == Some(Fault::Erased) {
            return Err(status(Code::FailedPrecondition, "SUBJECT_ERASED", "gone"));
        }
        let outcomes = kept.batch(request.get_ref())?;
        if fault == Some(Fault::After) {
            return Err(status(Code::Unavailable, "BUSY", "later"));
        }
        Ok(Response::new(CaptureEventsResponse { outcomes }))
    }

    async fn store_payload(
        &self,
        request: Request<Streaming<StorePayloadRequest>>,
    ) -> Result<Response<StorePayloadResponse>, Status> {
        let mut pieces = request.into_inner();
        let first = pieces
            .next()
            .await
            .ok_or_else(|| refuse("ANNOUNCEMENT_REQUIRED"))??;
        let Some(Piece::Announcement(announced)) = first.piece else {
            return Err(refuse("ANNOUNCEMENT_REQUIRED"));
        };
        if announced.byte_length > 268_435_456 {
            return Err(refuse("DOCUMENT_TOO_LARGE"));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.next().await {
            let Some(Piece::Data(data)) = piece?.piece else {
                return Err(refuse("DATA_REQUIRED"));
            };
            if data.len() > 1_048_576 {
                return Err(refuse("DOCUMENT_TOO_LARGE"));
            }
            bytes.extend(data);
        }
        let digest = Digest::of_bytes(&bytes).to_string();
        if digest != announced.digest || announced.byte_length != bytes.len() as u64 {
            return Err(refuse("PAYLOAD_DIGEST_MISMATCH"));
        }
        self.kept
            .lock()
            .unwrap()
            .payloads
            .insert(digest.clone(), bytes);
        Ok(Response::new(StorePayloadResponse { digest }))
    }
}
