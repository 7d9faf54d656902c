//! The mail adapter: one message in, its content and what the event says about it out.
//!
//! Nothing in a message stops a run. What is odd becomes a mark; only bytes without any header
//! field are refused.

mod date;
mod facts;
mod forwarded;
mod header;
mod html;
mod invitation;
mod kind;
mod parameter;
mod part;
mod structure;
mod text;

use std::fmt;

use cl_wire::vault::v1::{MailContent, Mailbox as WireMailbox};

pub use self::date::SentAt;
use self::facts::facts;
pub use self::facts::{AttachmentFacts, Checked, Facts, Signature};
pub use self::kind::{AUTOMATIC, BULK};
use self::kind::{mark_header, mark_kind, mark_parts};
use self::part::Flow;
use self::structure::{Mailbox, Structure};
pub use self::text::Attribution;
use crate::native::marks::Marks;
use crate::native::{address, shown};
use crate::wire_time;

/// The most mailboxes of one field (the contract's bound).
const MAX_MAILBOXES: usize = 256;

/// The most characters of the subject line.
const MAX_SUBJECT_CHARS: usize = 2000;

/// Bytes without a header field: not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a mail message")]
pub struct NotAMessage;

/// What a message says, and what its event keeps of it. Its `Debug` shows no content.
#[derive(Clone, PartialEq)]
pub struct Reading {
    /// What it says, for extraction.
    pub content: MailContent,
    /// What the event says about it.
    pub facts: Facts,
}

impl fmt::Debug for Reading {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Reading({:?})", self.content.marks)
    }
}

/// Reads a message. `extra_marks` are those of the file it came from.
///
/// # Errors
///
/// [`NotAMessage`] if there is no header field.
pub fn read(bytes: &[u8], extra_marks: &[&str]) -> Result<Reading, NotAMessage> {
    let mut marks = Marks::default();
    for mark in extra_marks {
        marks.add(mark);
    }
    let structure = Structure::of(bytes, &mut marks).ok_or(NotAMessage)?;
    mark_header(&structure, &mut marks);
    mark_kind(&structure, &mut marks);
    mark_parts(&structure, &mut marks);
    let sent_at = sent_at(&structure, &mut marks);
    let from = author(&structure, &mut marks);
    let to = recipients(&structure.to, &mut marks);
    let cc = recipients(&structure.cc, &mut marks);
    let mut text = text::parts(&visible_text(&structure, &mut marks), &mut marks);
    let mut facts = facts(&structure, sent_at, &marks);
    forwarded::add(&structure, &mut text, &mut marks);
    let (meetings, calendars) = invitation::read(&structure.calendars, &mut marks);
    facts.attributions = text.attributions;
    facts.calendars = calendars;
    let content = MailContent {
        from,
        to,
        cc,
        subject_line: shown(&structure.subject, MAX_SUBJECT_CHARS),
        sent_at: sent_at.map(|sent| wire_time(sent.instant.milliseconds())),
        utc_offset_minutes: sent_at.and_then(|sent| sent.utc_offset_minutes),
        text: text.parts,
        marks: marks.into_list(),
        meetings,
        thread_digest: facts.conversation.map(|digest| digest.to_string()),
    };
    Ok(Reading { content, facts })
}

fn sent_at(structure: &Structure<'_>, marks: &mut Marks) -> Option<SentAt> {
    let Some(field) = structure.text("date") else {
        marks.add("date.missing");
        return None;
    };
    let Some(sent) = SentAt::parse(&field) else {
        marks.add("date.unreadable");
        return None;
    };
    marks.add_if(sent.utc_offset_minutes.is_none(), "date.zone_unknown");
    marks.add_if(sent.has_short_year, "date.short_year");
    marks.add_if(
        is_far_from_arrival(structure, sent),
        "date.far_from_received",
    );
    Some(sent)
}

/// Whether the last server says that it took the message at quite another time.
fn is_far_from_arrival(structure: &Structure<'_>, sent: SentAt) -> bool {
    const FAR_MS: u64 = 7 * 24 * 60 * 60 * 1000;

    let received = structure.text("received");
    let arrived = received
        .as_deref()
        .and_then(|it| it.rsplit_once(';'))
        .and_then(|(_, date)| SentAt::parse(date));
    arrived.is_some_and(|arrived| {
        let (sent, arrived) = (sent.instant.milliseconds(), arrived.instant.milliseconds());
        sent.abs_diff(arrived) > FAR_MS
    })
}

fn author(structure: &Structure<'_>, marks: &mut Marks) -> Option<WireMailbox> {
    let from = &structure.from;
    marks.add_if(from.len() > 1, "author.several");
    let author = from.first().and_then(wire_mailbox);
    marks.add_if(author.is_none(), "author.unreadable");
    let claims_another = author
        .as_ref()
        .is_some_and(|it| it.name.contains('@') && !it.name.contains(&it.address));
    marks.add_if(claims_another, "author.name_holds_address");
    let is_another = |others: &[Mailbox]| {
        let known = |it: &WireMailbox| {
            from.iter()
                .filter_map(wire_mailbox)
                .any(|one| one.address == it.address)
        };
        let others: Vec<WireMailbox> = others.iter().filter_map(wire_mailbox).collect();
        !others.is_empty() && !others.iter().any(known)
    };
    marks.add_if(is_another(&structure.reply_to), "author.reply_elsewhere");
    marks.add_if(is_another(&structure.sender), "author.sent_by_another");
    author
}

fn recipients(mailboxes: &[Mailbox], marks: &mut Marks) -> Vec<WireMailbox> {
    let read: Vec<WireMailbox> = mailboxes.iter().filter_map(wire_mailbox).collect();
    marks.add_if(read.len() < mailboxes.len(), "recipients.unreadable");
    marks.add_if(mailboxes.len() > MAX_MAILBOXES, "recipients.cut");
    read.into_iter().take(MAX_MAILBOXES).collect()
}

fn wire_mailbox(mailbox: &Mailbox) -> Option<WireMailbox> {
    address::mailbox(&mailbox.address, &mailbox.name)
}

fn visible_text(structure: &Structure<'_>, marks: &mut Marks) -> String {
    let mut all = String::new();
    for body in &structure.bodies {
        if all.len() > text::MAX_READ_BYTES {
            break;
        }
        if !all.is_empty() {
            all.push_str("\n\n");
        }
        if body.is_html {
            let visible = html::visible(&body.text);
            marks.add_if(visible.has_hidden, html::HIDDEN_REMOVED);
            marks.add_if(visible.has_unread_rules, "html.style_not_read");
            all.push_str(&visible.text);
        } else if body.flow == Flow::Fixed {
            all.push_str(&body.text);
        } else {
            all.push_str(&unflowed(&body.text, body.flow));
        }
    }
    all
}

/// Joins the soft breaks of flowed text (RFC 3676).
fn unflowed(text: &str, flow: Flow) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let is_soft = line.ends_with(' ') && line != "-- " && !line.starts_with('>');
        let line = line.strip_prefix(' ').unwrap_or(line);
        let is_joined = is_soft && flow == Flow::Unspaced;
        let line = line.strip_suffix(' ').filter(|_| is_joined).unwrap_or(line);
        out.push_str(line);
        if !is_soft {
            out.push('\n');
        }
    }
    out
}
