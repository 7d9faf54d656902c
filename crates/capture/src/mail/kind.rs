//! What kind of message it is, and what stands in it, as marks.

use super::marks::Marks;
use super::structure::Structure;

/// The mark of messages that no person wrote for the occasion.
pub const AUTOMATIC: &str = "mail.automatic";

/// The mark of messages to a list or to many.
pub const BULK: &str = "mail.bulk";

/// How the subject lines of automatic replies begin.
const AUTOMATIC_SUBJECTS: &[&str] = &[
    "automatic reply:",
    "auto:",
    "autoreply:",
    "auto-reply:",
    "out of office",
    "out of the office",
    "automatische antwort:",
    "abwesenheitsnotiz:",
    "abwesend:",
    "réponse automatique",
    "absence du bureau",
    "respuesta automática",
    "fuera de la oficina",
    "自動返信",
    "自動応答",
];

pub(super) fn mark_header(structure: &Structure<'_>, marks: &mut Marks) {
    let header = &structure.header;
    marks.add_if(header.has_other_bytes, "header.not_utf8");
    marks.add_if(header.is_cut, "header.fields_cut");
    for (name, mark) in [
        ("from", "header.from_repeated"),
        ("date", "header.date_repeated"),
        ("subject", "header.subject_repeated"),
        ("message-id", "header.message_id_repeated"),
    ] {
        marks.add_if(structure.all(name).nth(1).is_some(), mark);
    }
    marks.add_if(!structure.has("message-id"), "header.message_id_missing");
}

/// Whether a person wrote it for this occasion, and for whom (RFC 3834, RFC 2919, RFC 2369).
pub(super) fn mark_kind(structure: &Structure<'_>, marks: &mut Marks) {
    let is = |name: &str, values: &[&str]| {
        structure.text(name).is_some_and(|it| {
            let first = it
                .split([';', ',', ' '])
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            values.contains(&first.as_str())
        })
    };
    let subject = structure.subject.to_lowercase();
    let is_away = AUTOMATIC_SUBJECTS
        .iter()
        .any(|start| subject.starts_with(start));
    let is_automatic = (structure.has("auto-submitted") && !is("auto-submitted", &["no"]))
        || structure.has("x-autoreply")
        || structure.has("x-autorespond")
        || is("precedence", &["auto_reply", "auto-reply"])
        || is("return-path", &["<>"])
        || structure.media_type == "multipart/report"
        || is_away;
    marks.add_if(is_automatic, AUTOMATIC);
    let is_bulk = [
        "list-id",
        "list-unsubscribe",
        "list-post",
        "feedback-id",
        "x-campaign-id",
    ]
    .iter()
    .any(|name| structure.has(name))
        || is("precedence", &["bulk", "list", "junk"]);
    marks.add_if(is_bulk, BULK);
    let is_junk = is("x-spam-flag", &["yes"]) || is("x-spam-status", &["yes"]);
    marks.add_if(is_junk, "mail.called_junk");
    let is_draft = is("x-unsent", &["1"]);
    marks.add_if(is_draft, "mail.draft");
}

pub(super) fn mark_parts(structure: &Structure<'_>, marks: &mut Marks) {
    let has = |kinds: &[&str]| {
        let mut attached = structure.attachments.iter();
        attached.any(|it| kinds.contains(&it.media_type.as_str()))
            || kinds.contains(&structure.media_type.as_str())
    };
    marks.add_if(structure.has_tnef, "attachment.tnef_not_read");
    marks.add_if(
        has(&[
            "application/pkcs7-signature",
            "application/x-pkcs7-signature",
        ]),
        "signature.smime",
    );
    marks.add_if(has(&["application/pgp-signature"]), "signature.openpgp");
    let is_sealed = has(&["application/pkcs7-mime", "application/x-pkcs7-mime"]);
    marks.add_if(is_sealed, "smime.not_read");
    let is_encrypted = has(&["application/pgp-encrypted", "multipart/encrypted"]);
    marks.add_if(is_encrypted, "content.encrypted");
    let is_partial = has(&["message/partial", "message/external-body"]);
    marks.add_if(is_partial, "content.elsewhere");
    marks.add_if(!structure.attachments.is_empty(), "attachments.not_read");
}
