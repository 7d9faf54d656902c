//! What an event keeps of a message beside its payload.

use cl_model::digest::Digest;

use super::date::SentAt;
use super::header::one_line;
use super::structure::{Attachment, Structure};
use super::text::Attribution;
use crate::calendar;
use crate::native::marks::Marks;

/// The most signatures that an event lists.
const MAX_SIGNATURES: usize = 16;

/// What an event keeps of a message beside its payload.
#[derive(Clone, PartialEq)]
pub struct Facts {
    /// The digest of the `Message-ID`, if there is one.
    pub message_id: Option<Digest>,
    /// The digest of the `Message-ID` that it answers.
    pub in_reply_to: Option<Digest>,
    /// How many earlier messages it names.
    pub references: usize,
    /// The digest of the id of the message that the conversation began with, as far as this one
    /// says; its own if it answers none.
    pub conversation: Option<Digest>,
    /// When it says that it was sent.
    pub sent_at: Option<SentAt>,
    /// The `Date` field as written, and its zone.
    pub written_date: Option<String>,
    /// Signatures of the mail's own protocols: scheme, signer and digest of the value. Nobody
    /// checked them.
    pub signatures: Vec<Signature>,
    /// `Authentication-Results` fields: what some server says it checked.
    pub authentication_results: Vec<Checked>,
    /// The `List-ID`, if there is one.
    pub list_id: Option<String>,
    /// Parts that are not the visible text.
    pub attachments: Vec<AttachmentFacts>,
    /// How the message was deleted at its source, if it was.
    pub deleted_as: Option<&'static str>,
    /// What a mail program noted in the header, e.g. `seen`.
    pub flags: Vec<&'static str>,
    /// How many header fields there are.
    pub header_fields: usize,
    /// Whose words are quoted and forwarded, by what stands in front of them.
    pub attributions: Vec<Attribution>,
    /// What calendars came with it.
    pub calendars: Vec<calendar::Facts>,
}

/// What some server says that it checked (RFC 8601). Whoever sent the message can have written it.
#[derive(Clone, PartialEq, Eq)]
pub struct Checked {
    /// The server, by its own word.
    pub server: String,
    /// All that it says.
    pub text: String,
    /// It stands above every `Received` field: if anybody, the last server added it.
    pub is_outermost: bool,
}

/// A signature that the message carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// `dkim`, `arc`, `smime` or `openpgp`.
    pub scheme: &'static str,
    /// The domain that it names.
    pub signer: Option<String>,
    /// The digest of its value.
    pub value_digest: Option<Digest>,
}

/// A part that is described and not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentFacts {
    /// Its media type as stated.
    pub media_type: String,
    /// Its name without any folder.
    pub name: Option<String>,
    /// Its decoded length in bytes.
    pub byte_length: usize,
    /// The digest of its decoded bytes.
    pub digest: Digest,
}

pub(super) fn facts(structure: &Structure<'_>, sent_at: Option<SentAt>, marks: &Marks) -> Facts {
    let id_digest = |name: &str| {
        let id = structure.text(name)?;
        (!id.is_empty()).then(|| Digest::of_bytes(id.as_bytes()))
    };
    let written: Option<String> = structure
        .text("date")
        .map(|it| it.chars().take(120).collect());
    Facts {
        message_id: id_digest("message-id"),
        in_reply_to: id_digest("in-reply-to"),
        references: structure
            .text("references")
            .map_or(0, |it| it.matches('<').count()),
        conversation: ["references", "in-reply-to", "message-id"]
            .iter()
            .find_map(|name| first_id(&structure.text(name)?)),
        sent_at,
        written_date: written.filter(|it| !it.is_empty()),
        signatures: signatures(structure, marks),
        authentication_results: checked(structure),
        list_id: structure
            .text("list-id")
            .map(|it| it.chars().take(255).collect()),
        attachments: structure
            .attachments
            .iter()
            .map(AttachmentFacts::of)
            .collect(),
        deleted_as: deleted_as(structure),
        flags: flags(structure),
        header_fields: structure.header.count,
        attributions: Vec::new(),
        calendars: Vec::new(),
    }
}

fn checked(structure: &Structure<'_>) -> Vec<Checked> {
    let first_hop = structure.fields("received").next().map(|it| it.place);
    let fields = structure.fields("authentication-results").take(8);
    let read = fields.map(|field| {
        let text: String = one_line(field.raw).chars().take(1000).collect();
        let server = text.split([';', ' ']).next().unwrap_or_default();
        Checked {
            server: server.to_owned(),
            is_outermost: first_hop.is_none_or(|place| field.place < place),
            text,
        }
    });
    read.collect()
}

/// The first message id of a field, without its brackets.
fn first_id(field: &str) -> Option<Digest> {
    let (id, _) = field.split_once('<')?.1.split_once('>')?;
    let id = id.trim();
    (!id.is_empty()).then(|| Digest::of_bytes(id.as_bytes()))
}

impl AttachmentFacts {
    fn of(it: &Attachment) -> Self {
        Self {
            media_type: it.media_type.clone(),
            name: it.name.clone(),
            byte_length: it.byte_length,
            digest: it.digest,
        }
    }
}

fn signatures(structure: &Structure<'_>, marks: &Marks) -> Vec<Signature> {
    let tag = |raw: &[u8], name: &str| {
        let line = one_line(raw);
        line.split(';').find_map(|it| {
            let (key, value) = it.split_once('=')?;
            (key.trim() == name).then(|| value.trim().chars().take(255).collect::<String>())
        })
    };
    let of_fields = [("dkim-signature", "dkim"), ("arc-message-signature", "arc")];
    let mut found: Vec<Signature> = of_fields
        .iter()
        .flat_map(|(field, scheme)| {
            structure.all(field).map(|raw| Signature {
                scheme,
                signer: tag(raw, "d").filter(|it| it.chars().count() >= 3),
                value_digest: Some(Digest::of_bytes(one_line(raw).as_bytes())),
            })
        })
        .collect();
    for (mark, scheme) in [
        ("signature.smime", "smime"),
        ("smime.not_read", "smime"),
        ("signature.openpgp", "openpgp"),
    ] {
        if marks.has(mark) {
            found.push(Signature {
                scheme,
                signer: None,
                value_digest: None,
            });
        }
    }
    found.truncate(MAX_SIGNATURES);
    found
}

/// What Mozilla's programs note about a message, as bits.
fn mozilla_bits(structure: &Structure<'_>) -> u32 {
    let noted = structure.text("x-mozilla-status");
    let bits = noted.and_then(|it| u32::from_str_radix(it.trim(), 16).ok());
    bits.unwrap_or(0)
}

fn flags(structure: &Structure<'_>) -> Vec<&'static str> {
    let bits = mozilla_bits(structure);
    let has = |field: &str, letter: char| {
        let noted = structure.text(field);
        noted.is_some_and(|it| it.len() <= 8 && it.contains(letter))
    };
    let noted = [
        ("seen", bits & 0x0001 != 0 || has("status", 'R')),
        ("replied", bits & 0x0002 != 0 || has("x-status", 'A')),
        ("flagged", bits & 0x0004 != 0 || has("x-status", 'F')),
        ("draft", has("x-status", 'T')),
    ];
    let set = noted.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(flag, _)| flag).collect()
}

/// Marks that mail programs leave in the header of a deleted message.
fn deleted_as(structure: &Structure<'_>) -> Option<&'static str> {
    const MOZILLA_EXPUNGED: u32 = 0x0008;

    let mozilla = mozilla_bits(structure) & MOZILLA_EXPUNGED != 0;
    let status = structure
        .text("x-status")
        .is_some_and(|it| it.contains('D'));
    match (mozilla, status) {
        (true, _) => Some("mozilla.expunged"),
        (false, true) => Some("mbox.deleted"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::mail::read;

    fn conversation(header: &str) -> Option<String> {
        let message = format!("From: a@b.example\r\n{header}\r\nHello.\r\n");
        let reading = read(message.as_bytes(), &[]).unwrap();
        reading.content.thread_digest
    }

    #[test]
    fn an_answer_belongs_to_the_conversation_that_it_answers() {
        let first = conversation("Message-ID: <one@b.example>\r\n");
        assert!(first.is_some());
        let answers = [
            "Message-ID: <two@b.example>\r\nIn-Reply-To: <one@b.example>\r\n",
            "Message-ID: <three@b.example>\r\nIn-Reply-To: <two@b.example>\r\n\
             References: <one@b.example> <two@b.example>\r\n",
        ];
        for answer in answers {
            assert_eq!(conversation(answer), first, "{answer}");
        }
        let other = conversation("Message-ID: <two@b.example>\r\n");
        assert!(other.is_some() && other != first);
    }

    #[test]
    fn without_an_id_no_conversation_is_named() {
        for header in [
            "",
            "Message-ID: one\r\n",
            "References: <>\r\n",
            "In-Reply-To: <one\r\n",
        ] {
            assert_eq!(conversation(header), None, "{header}");
        }
    }
}
