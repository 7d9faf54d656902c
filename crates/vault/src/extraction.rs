//! The rules of `cl-extract` behind the vault's port.

use cl_extract::{Extraction, Message};
use cl_model::scalar::{Confidence, Name, Predicate};

use crate::core::content::{Candidate, Extractor, Found, Mailbox, Source, TextOrigin, TextPart};

/// The mark of an item with a candidate that is not well-formed.
const MALFORMED: &str = "candidate.malformed";

/// Reads claims by the published rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleExtractor;

impl Extractor for RuleExtractor {
    fn extract(&self, source: &Source<'_>) -> Found {
        let Extraction { candidates, marks } = cl_extract::extract(&message(source));
        let expected = candidates.len();
        let candidates: Vec<_> = candidates.into_iter().filter_map(candidate).collect();
        let mut marks: Vec<_> = marks.into_iter().filter_map(Name::new).collect();
        if candidates.len() < expected {
            marks.extend(Name::new(MALFORMED));
        }
        Found { candidates, marks }
    }

    fn reason(&self, rule: &str) -> Option<&'static str> {
        cl_extract::rule::reason(rule)
    }

    fn meaning(&self, mark: &str) -> Option<&'static str> {
        cl_extract::mark::meaning(mark)
    }
}

fn message(source: &Source<'_>) -> Message {
    let mail = source.mail;
    Message {
        from: mail.from.as_ref().map(mailbox),
        to: mail.to.iter().map(mailbox).collect(),
        cc: mail.cc.iter().map(mailbox).collect(),
        subject_line: mail.subject_line.clone(),
        sent_at: mail.sent_at,
        utc_offset_minutes: mail.utc_offset_minutes,
        text: mail.text.iter().map(text_part).collect(),
        owner_addresses: source.owner_addresses.to_vec(),
        marks: mail
            .marks
            .iter()
            .map(|mark| mark.as_str().to_owned())
            .collect(),
    }
}

fn mailbox(mailbox: &Mailbox) -> cl_extract::Mailbox {
    cl_extract::Mailbox {
        address: mailbox.address.clone(),
        name: mailbox.name.clone(),
    }
}

fn text_part(part: &TextPart) -> cl_extract::TextPart {
    cl_extract::TextPart {
        origin: match part.origin {
            TextOrigin::Author => cl_extract::Origin::Author,
            TextOrigin::Quoted => cl_extract::Origin::Quoted,
            TextOrigin::Forwarded => cl_extract::Origin::Forwarded,
            TextOrigin::Signature => cl_extract::Origin::Signature,
        },
        text: part.text.clone(),
    }
}

fn candidate(found: cl_extract::Candidate) -> Option<Candidate> {
    let marks = found.marks.into_iter().map(Name::new);
    Some(Candidate {
        predicate: Predicate::new(found.predicate)?,
        value: found.value,
        confidence: Confidence::new(found.confidence)?,
        valid_from: found.valid_from,
        valid_until: found.valid_until,
        rule: Name::new(found.rule)?,
        marks: marks.collect::<Option<_>>()?,
        words: found.words,
        revision: None,
    })
}

#[cfg(test)]
mod tests {
    use cl_model::object::{ProtocolObject as _, SourceEvent};
    use cl_model::time::UnixTime;
    use cl_model::vocabulary::Vocabulary;
    use serde_json::json;

    use super::*;
    use crate::core::content::{Mail, extract};

    #[test]
    fn what_the_rules_find_fits_the_vocabulary() {
        let mailbox = |address: &str| Mailbox {
            address: address.to_owned(),
            name: String::new(),
        };
        let mail = Mail {
            from: Some(mailbox("ann@example.org")),
            to: vec![mailbox("owner@example.org")],
            cc: Vec::new(),
            subject_line: "Launch".to_owned(),
            sent_at: UnixTime::parse("2030-01-01T10:00:00Z"),
            utc_offset_minutes: Some(0),
            text: vec![TextPart {
                origin: TextOrigin::Author,
                text: "Please send me the report by 14 March 2030.".to_owned(),
            }],
            marks: Vec::new(),
            thread: None,
            meetings: Vec::new(),
        };
        let event = SourceEvent::read(&json!({
            "spec_version": "context-layer/0.2-draft",
            "type": "source_event",
            "id": "urn:cl:event:a",
            "created_at": "2030-01-01T11:00:00Z",
            "issuer": {"id": "urn:cl:adapter:email"},
            "subject_ref": "vault://subjects/primary",
            "occurred_at": "2030-01-01T10:00:00Z",
            "captured_at": "2030-01-01T11:00:00Z",
            "source": {"adapter": "email", "native_id_ref": "urn:message:a"},
            "payload_ref": {"ref": "vault://objects/a", "media_type": "message/rfc822"},
            "classification": ["communications"],
            "provenance": [{"kind": "direct_capture", "confidence": 1.0}],
        }))
        .unwrap();
        let source = Source {
            event: &event,
            mail: &mail,
            owner_addresses: &["owner@example.org".to_owned()],
        };
        let vocabulary = Vocabulary::published().unwrap();
        let extracted = extract(&RuleExtractor, &vocabulary, &source);
        let dates: Vec<_> = extracted
            .candidates
            .iter()
            .filter(|(candidate, _)| candidate.predicate.as_str() == "requested_delivery_date")
            .map(|(candidate, _)| candidate.value.clone())
            .collect();
        assert_eq!(dates, ["2030-03-14"]);
    }
}
