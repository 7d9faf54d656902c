//! The labelled messages of `conformance/fixtures/extraction`, read as mail and extracted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use cl_extract::{Extraction, Mailbox, Message, Origin, TextPart};
use cl_model::time::UnixTime;
use cl_wire::vault::v1::{MailContent, Mailbox as WireMailbox, TextOrigin};
use serde_json::Value;

/// The owner of the messages.
const OWNER: &str = "mira@solberg.example";

/// When a message was sent that does not say so.
const SENT: &str = "2026-10-28T10:12:00+00:00";

/// A labelled message.
pub(crate) struct Labelled {
    pub(crate) id: String,
    line: Value,
}

/// The two halves of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What the rules are developed on.
    Working,
    /// What only measures them.
    Measured,
}

impl Part {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Measured => "measured",
        }
    }
}

/// What a message says, by predicate: values in one form for comparing.
pub(crate) type Facts = BTreeMap<&'static str, BTreeSet<String>>;

/// The predicates with the members of a line that label them.
pub(crate) const LABELS: [(&str, &str); 9] = [
    ("amount_due", "due"),
    ("contact_email", "email"),
    ("contact_phone", "phone"),
    ("meeting_date", "meets"),
    ("meeting_starts_at", "starts"),
    ("promised_delivery_date", "promised"),
    ("request_summary", "summary"),
    ("requested_delivery_date", "by"),
    ("requesting_stakeholder", "asks"),
];

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../conformance/fixtures/extraction"
    ))
}

/// The messages of a part.
pub(crate) fn read(part: Part) -> Vec<Labelled> {
    let file = folder().join(format!("{}.jsonl", part.name()));
    let text = fs::read_to_string(file).expect("a part of the corpus");
    text.lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("a line of JSON");
            let id = line["id"].as_str().expect("an id").to_owned();
            Labelled { id, line }
        })
        .collect()
}

impl Labelled {
    pub(crate) fn voice(&self) -> &str {
        self.line["voice"].as_str().expect("a voice")
    }

    /// The names of its members.
    pub(crate) fn members(&self) -> Vec<&str> {
        let line = self.line.as_object().expect("an object");
        line.keys().map(String::as_str).collect()
    }

    /// What it says.
    pub(crate) fn facts(&self) -> Facts {
        facts(&self.line)
    }

    /// What is neither right nor wrong to find in it.
    pub(crate) fn allowed(&self) -> Facts {
        facts(&self.line["may"])
    }

    /// Whether any request may be summed up in any words.
    pub(crate) fn allows_any_summary(&self) -> bool {
        self.line["may"]["summary"] == Value::Bool(true)
    }

    /// When it was sent, with the sender's offset.
    pub(crate) fn sent(&self) -> &str {
        self.line["sent"].as_str().unwrap_or(SENT)
    }

    /// As a message on the wire.
    pub(crate) fn mail(&self) -> String {
        let text = |member: &str| self.line[member].as_str();
        let address = |member: &str, otherwise: &'static str| match text(member) {
            Some("owner") => OWNER.to_owned(),
            Some(other) => other.to_owned(),
            None => otherwise.to_owned(),
        };
        let mut fields = format!(
            "From: Nora Quist <nora@quayside.example>\r\nTo: {}\r\n",
            address("to", OWNER)
        );
        if text("cc").is_some() {
            fields.push_str(&format!("Cc: {}\r\n", address("cc", OWNER)));
        }
        for (name, value) in self.line["headers"].as_object().into_iter().flatten() {
            fields.push_str(&format!("{name}: {}\r\n", value.as_str().expect("text")));
        }
        let (kind, body) = match text("html") {
            Some(html) => ("html", html),
            None => ("plain", text("body").expect("a body")),
        };
        format!(
            "{fields}Date: {}\r\nMessage-ID: <{}@quayside.example>\r\nSubject: A message\r\n\
             MIME-Version: 1.0\r\nContent-Type: text/{kind}; charset=utf-8\r\n\
             Content-Transfer-Encoding: 8bit\r\n\r\n{}\r\n",
            date_field(self.sent()),
            self.id,
            body.replace('\n', "\r\n"),
        )
    }

    /// What comes of it.
    pub(crate) fn extract(&self) -> Extraction {
        extract(self.mail().as_bytes())
    }
}

/// The visible words of these origins in a message on the wire.
pub(crate) fn words(mail: &str, origins: &[TextOrigin]) -> String {
    let reading = cl_capture::mail::read(mail.as_bytes(), &[]).expect("a message");
    let parts = reading.content.text.iter();
    let own = parts.filter(|part| origins.contains(&part.origin()));
    own.map(|part| part.text.as_str())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// What comes of a message on the wire.
pub(crate) fn extract(mail: &[u8]) -> Extraction {
    let reading = cl_capture::mail::read(mail, &[]).expect("a message");
    cl_extract::extract(&message(&reading.content))
}

/// `2026-10-28T10:12:00+02:00` as a `Date` field (RFC 5322).
fn date_field(sent: &str) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month: usize = sent[5..7].parse().expect("a month");
    let zone = sent[19..].replace(':', "");
    let (day, year, time) = (&sent[8..10], &sent[..4], &sent[11..19]);
    format!("{day} {} {year} {time} {zone}", MONTHS[month - 1])
}

fn message(content: &MailContent) -> Message {
    let mailbox = |it: &WireMailbox| Mailbox {
        address: it.address.clone(),
        name: it.name.clone(),
    };
    let origin = |it| match it {
        TextOrigin::Author => Origin::Author,
        TextOrigin::Quoted => Origin::Quoted,
        TextOrigin::Forwarded => Origin::Forwarded,
        TextOrigin::Signature => Origin::Signature,
        TextOrigin::Unspecified => panic!("a part without an origin"),
    };
    let parts = content.text.iter();
    Message {
        from: content.from.as_ref().map(mailbox),
        to: content.to.iter().map(mailbox).collect(),
        cc: content.cc.iter().map(mailbox).collect(),
        subject_line: content.subject_line.clone(),
        sent_at: content
            .sent_at
            .map(|it| UnixTime::from_milliseconds(it.seconds * 1000)),
        utc_offset_minutes: content.utc_offset_minutes,
        text: parts
            .map(|it| TextPart {
                origin: origin(it.origin()),
                text: it.text.clone(),
            })
            .collect(),
        owner_addresses: vec![OWNER.to_owned()],
        marks: content.marks.clone(),
    }
}

fn facts(labels: &Value) -> Facts {
    LABELS
        .iter()
        .map(|(predicate, member)| (*predicate, labelled(&labels[*member])))
        .collect()
}

fn labelled(label: &Value) -> BTreeSet<String> {
    match label {
        Value::Bool(true) => ["yes".to_owned()].into(),
        Value::Array(values) => values
            .iter()
            .map(|value| comparable(value.as_str().expect("a text")))
            .collect(),
        Value::Null => BTreeSet::new(),
        Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            panic!("a label is true or a list")
        }
    }
}

/// What was extracted, in the form of the labels.
pub(crate) fn found(extraction: &Extraction) -> Facts {
    let mut facts: Facts = LABELS
        .iter()
        .map(|(predicate, _)| (*predicate, BTreeSet::new()))
        .collect();
    for candidate in &extraction.candidates {
        let value = &candidate.value;
        let text = match candidate.predicate {
            "requesting_stakeholder" => "yes".to_owned(),
            "amount_due" => {
                let member = |name: &str| value[name].as_str().expect("a text");
                format!("{} {}", member("amount"), member("currency"))
            }
            _ => value.as_str().expect("a text").to_owned(),
        };
        let of_predicate = facts.get_mut(candidate.predicate);
        of_predicate
            .expect("a known predicate")
            .insert(comparable(&text));
    }
    facts
}

/// `1200.00 EUR` and `1200 EUR` are one.
fn comparable(text: &str) -> String {
    match text.split_once(' ') {
        Some((amount, currency)) if amount.contains('.') && currency.len() == 3 => {
            let amount = amount.trim_end_matches('0').trim_end_matches('.');
            format!("{amount} {currency}").to_lowercase()
        }
        Some(_) | None => text.to_lowercase(),
    }
}
