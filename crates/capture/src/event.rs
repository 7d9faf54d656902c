//! The `source_event` documents of messages and of calendar objects (spec 7.1, 12).

mod calendar;

use cl_model::digest::Digest;
use cl_model::object::{ProtocolObject as _, SourceEvent};
use cl_model::part::SPEC_VERSION;
use cl_model::record;
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;
use cl_model::urn::EventId;
use serde_json::{Map, Value, json};

pub use self::calendar::{CALENDAR_ADAPTER, CALENDAR_DATA, calendar_document, calendar_facts};
use crate::mail::{AUTOMATIC, BULK, Facts};

/// The name of the mail adapter.
pub const ADAPTER: &str = "email";

/// Under which name events carry what the mail adapter adds.
pub const ADAPTER_DATA: &str = "context-layer.email";

/// What the mail adapter cannot preserve beside the payload; see `schemas/adapters/email.json`.
pub const LOSSY_FIELDS: &[&str] = &[
    "attachment.contents",
    "html.layout",
    "mbox.separator",
    "message.structure",
    "message.within",
    "recipients.order",
    "text.invisible",
];

/// The most calendars of a message that its event describes.
const MAX_CALENDARS: usize = 8;

/// What all events of a run have in common.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Whose context it is.
    pub subject_ref: &'a str,
    /// When it was captured.
    pub captured_at: UnixTime,
}

/// The payload of an event and the way by which it came.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many there are.
    pub byte_length: u64,
    /// The digest of the path of its file: the path itself is the owner's business.
    pub path_digest: Digest,
    /// How its file says that it was deleted, if it does.
    pub deleted_as: Option<&'static str>,
    /// What its file says about it, e.g. `seen`.
    pub flags: Vec<&'static str>,
}

/// The canonical document of a message.
///
/// # Errors
///
/// A refusal, if the document would not fit its schema.
pub fn document(
    facts: &Facts,
    marks: &[String],
    origin: &Origin,
    run: Run<'_>,
) -> Result<Vec<u8>, Refusal> {
    let captured_at = run.captured_at.to_string();
    let native_id = facts.message_id.unwrap_or(origin.digest);
    let mut event = json!({
        "spec_version": SPEC_VERSION,
        "type": "source_event",
        "created_at": captured_at,
        "issuer": {"id": "urn:cl:adapter:email"},
        "subject_ref": run.subject_ref,
        "captured_at": captured_at,
        "source": {"adapter": ADAPTER, "native_id_digest": native_id.to_string()},
        "payload_ref": {
            "ref": format!("vault://payloads/{}", origin.digest.to_hex()),
            "media_type": "message/rfc822",
            "digest": origin.digest.to_string(),
            "byte_length": origin.byte_length,
        },
        "classification": classification(marks),
        "provenance": [{
            "kind": "direct_capture",
            "confidence": 1,
            "ref": format!("urn:cl:path:{}", origin.path_digest.to_hex()),
        }],
        "authorization": {"visibility": "recipients", "scopes": []},
        "adapter": {
            "name": ADAPTER,
            "version": env!("CARGO_PKG_VERSION"),
            "protocol": "RFC 5322, MIME (RFC 2045 to 2049)",
            "lossy_fields": LOSSY_FIELDS,
        },
        "trust": "untrusted",
        "label": "private",
        "adapter_data": {ADAPTER_DATA: adapter_data(facts, marks, origin)},
    });
    if let Some(members) = event.as_object_mut() {
        add_time(members, facts);
        add_evidence(members, facts, origin);
    }
    finished(event)
}

/// The canonical document of an event, once it fits its schema.
fn finished(event: Value) -> Result<Vec<u8>, Refusal> {
    let record = record::finalize(event, EventId::PREFIX)?;
    SourceEvent::read(record.value())?;
    Ok(record.text().as_bytes().to_vec())
}

fn classification(marks: &[String]) -> Vec<&'static str> {
    let mut classes = vec!["communications", "email"];
    let has = |mark: &str| marks.iter().any(|it| it == mark);
    if has(AUTOMATIC) {
        classes.push("automatic");
    }
    if has(BULK) {
        classes.push("bulk");
    }
    classes
}

fn add_time(members: &mut Map<String, Value>, facts: &Facts) {
    match facts.sent_at {
        Some(sent) => members.insert("occurred_at".to_owned(), json!(sent.instant.to_string())),
        None => members.insert("occurred_at_unknown".to_owned(), json!(true)),
    };
    if let Some(text) = &facts.written_date {
        let zone = facts
            .sent_at
            .and_then(|sent| sent.utc_offset_minutes)
            .map(zone_text);
        members.insert(
            "original_time".to_owned(),
            json!({"text": text, "zone": zone}),
        );
    }
}

/// An offset as RFC 3339 writes it.
fn zone_text(offset_minutes: i32) -> String {
    let sign = if offset_minutes < 0 { '-' } else { '+' };
    let minutes = offset_minutes.unsigned_abs();
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn add_evidence(members: &mut Map<String, Value>, facts: &Facts, origin: &Origin) {
    if !facts.signatures.is_empty() {
        let signatures = facts.signatures.iter().map(|signature| {
            let mut it = json!({"scheme": signature.scheme, "verification": "unverified"});
            it["signer"] = json!(signature.signer);
            it["value_digest"] = json!(signature.value_digest.map(|digest| digest.to_string()));
            without_nulls(it)
        });
        members.insert("signatures".to_owned(), signatures.collect());
    }
    if let Some(reason) = origin.deleted_as.or(facts.deleted_as) {
        members.insert(
            "deletion".to_owned(),
            json!({"deleted_at": null, "reason": reason}),
        );
    }
}

fn adapter_data(facts: &Facts, marks: &[String], origin: &Origin) -> Value {
    let attachments = facts.attachments.iter().map(|it| {
        let media_type: String = it.media_type.chars().take(255).collect();
        without_nulls(json!({
            "media_type": media_type,
            "name": it.name,
            "byte_length": it.byte_length,
            "digest": it.digest.to_string(),
        }))
    });
    let checked = facts.authentication_results.iter().map(|it| {
        json!({
            "server": it.server,
            "text": it.text,
            "is_outermost": it.is_outermost,
            "verification": "unverified",
        })
    });
    let attributions = facts.attributions.iter();
    let attributions = attributions.map(|it| json!({"origin": it.origin, "author": it.author}));
    let calendars = facts
        .calendars
        .iter()
        .take(MAX_CALENDARS)
        .map(calendar_facts);
    let mut flags = origin.flags.clone();
    flags.extend(&facts.flags);
    flags.sort_unstable();
    flags.dedup();
    without_nulls(json!({
        "marks": marks,
        "flags": flags,
        "header_fields": facts.header_fields,
        "in_reply_to_digest": facts.in_reply_to.map(|digest| digest.to_string()),
        "references": facts.references,
        "list_id": facts.list_id,
        "authentication_results": checked.collect::<Vec<_>>(),
        "attributions": attributions.collect::<Vec<_>>(),
        "calendars": calendars.collect::<Vec<_>>(),
        "attachments": attachments.collect::<Vec<_>>(),
    }))
}

/// Leaves out the members that are not known.
fn without_nulls(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
    value
}
