//! Messages that came whole within another one: their words are their authors', never the sender's.

use super::html;
use super::kind::mark_parts;
use super::structure::Structure;
use super::text::{Cut, MAX_READ_BYTES};
use super::{visible_text, wire_mailbox};
use crate::native::marks::Marks;

/// How deep messages in messages are read.
const MAX_DEPTH: usize = 4;

/// The most messages in one message that are read.
const MAX_MESSAGES: usize = 32;

/// The mark of a message within that was not read.
const NOT_READ: &str = "attachment.message_not_read";

/// Marks of a message within that are true of the message around it too; its signatures are not.
const PASSED_ON: &[&str] = &[
    "attachment.tnef_not_read",
    "attachments.not_read",
    "content.elsewhere",
    "content.encrypted",
    "smime.not_read",
];

/// Adds what the messages within a message say, and whose words that is.
pub(super) fn add(structure: &Structure<'_>, cut: &mut Cut, marks: &mut Marks) {
    let mut left = MAX_MESSAGES;
    within(structure, MAX_DEPTH, &mut left, cut, marks);
}

fn within(
    structure: &Structure<'_>,
    depth: usize,
    left: &mut usize,
    cut: &mut Cut,
    marks: &mut Marks,
) {
    for bytes in &structure.messages {
        if depth == 0 || *left == 0 {
            marks.add(NOT_READ);
            return;
        }
        *left -= 1;
        // What is odd about its header is nothing odd about the message around it.
        let mut own = Marks::default();
        let Some(inner) = Structure::of(bytes, &mut own) else {
            marks.add(NOT_READ);
            continue;
        };
        let mut text = visible_text(&inner, &mut own);
        text.truncate(text.floor_char_boundary(MAX_READ_BYTES));
        marks.add_if(own.has(html::HIDDEN_REMOVED), html::HIDDEN_REMOVED);
        let mut of_parts = Marks::default();
        mark_parts(&inner, &mut of_parts);
        for mark in PASSED_ON.iter().filter(|mark| of_parts.has(mark)) {
            marks.add(mark);
        }
        marks.add_if(!inner.calendars.is_empty(), "calendar.not_read");
        let author = inner.from.first().and_then(wire_mailbox);
        cut.attribute("forwarded", author.map(|it| it.address));
        cut.add_forwarded(&text, marks);
        within(&inner, depth - 1, left, cut, marks);
    }
}
