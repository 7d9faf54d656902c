//! The event of a calendar object.

use cl_model::part::SPEC_VERSION;
use cl_model::refusal::Refusal;
use serde_json::{Map, Value, json};

use super::{Origin, Run, finished, without_nulls};
use crate::calendar::Facts;

/// The name of the calendar adapter.
pub const CALENDAR_ADAPTER: &str = "calendar";

/// Under which name events carry what the calendar adapter adds.
pub const CALENDAR_DATA: &str = "context-layer.calendar";

/// What the calendar adapter cannot preserve beside the payload; see
/// `schemas/adapters/calendar.json`.
const LOSSY_FIELDS: &[&str] = &[
    "alarm",
    "attendee.status",
    "component.other",
    "file.grouping",
    "recurrence.beyond_bound",
    "text.layout",
];

/// The canonical document of a calendar object.
///
/// # Errors
///
/// A refusal, if the document would not fit its schema.
pub fn calendar_document(
    facts: &Facts,
    marks: &[String],
    origin: &Origin,
    run: Run<'_>,
) -> Result<Vec<u8>, Refusal> {
    let captured_at = run.captured_at.to_string();
    let native_id = facts.uid.unwrap_or(origin.digest);
    let (visibility, label) = match facts.class.as_deref() {
        Some("private") => ("owner", "sensitive"),
        Some("confidential") => ("owner", "restricted"),
        Some(_) | None => ("attendees", "private"),
    };
    let mut classification = vec![CALENDAR_ADAPTER];
    classification.extend(&facts.kinds);
    let mut event = json!({
        "spec_version": SPEC_VERSION,
        "type": "source_event",
        "created_at": captured_at,
        "issuer": {"id": "urn:cl:adapter:calendar"},
        "subject_ref": run.subject_ref,
        "captured_at": captured_at,
        "source": {"adapter": CALENDAR_ADAPTER, "native_id_digest": native_id.to_string()},
        "payload_ref": {
            "ref": format!("vault://payloads/{}", origin.digest.to_hex()),
            "media_type": "text/calendar",
            "digest": origin.digest.to_string(),
            "byte_length": origin.byte_length,
        },
        "classification": classification,
        "provenance": [{
            "kind": "direct_capture",
            "confidence": 1,
            "ref": format!("urn:cl:path:{}", origin.path_digest.to_hex()),
        }],
        "authorization": {"visibility": visibility, "scopes": []},
        "adapter": {
            "name": CALENDAR_ADAPTER,
            "version": env!("CARGO_PKG_VERSION"),
            "protocol": "iCalendar 2.0 (RFC 5545)",
            "lossy_fields": LOSSY_FIELDS,
        },
        "trust": "untrusted",
        "label": label,
        "adapter_data": {CALENDAR_DATA: adapter_data(facts, marks)},
    });
    if let Some(members) = event.as_object_mut() {
        add_times(members, facts);
    }
    finished(event)
}

fn add_times(members: &mut Map<String, Value>, facts: &Facts) {
    let written_at = facts.written_at.map(|it| it.to_string());
    match &written_at {
        Some(time) => members.insert("occurred_at".to_owned(), json!(time)),
        None => members.insert("occurred_at_unknown".to_owned(), json!(true)),
    };
    if let Some((text, zone)) = &facts.start {
        let time = json!({"text": text, "zone": zone});
        members.insert("original_time".to_owned(), time);
    }
    if facts.is_cancelled {
        let deletion = json!({"deleted_at": written_at, "reason": "calendar.cancelled"});
        members.insert("deletion".to_owned(), deletion);
    } else if facts.sequence > 0 {
        let edit = json!({"edited_at": written_at, "replaces_ref": null});
        members.insert("edit".to_owned(), edit);
    }
}

fn adapter_data(facts: &Facts, marks: &[String]) -> Value {
    let mut data = calendar_facts(facts);
    data["marks"] = json!(marks);
    data
}

/// What an event says about a calendar object.
pub fn calendar_facts(facts: &Facts) -> Value {
    without_nulls(json!({
        "uid_digest": facts.uid.map(|digest| digest.to_string()),
        "method": facts.method,
        "sequence": facts.sequence,
        "summary": facts.summary,
        "location": facts.location,
        "is_cancelled": facts.is_cancelled,
    }))
}
