//! Calendars that came as parts of a message (RFC 6047).

use std::borrow::Cow;
use std::collections::HashSet;

use cl_model::digest::Digest;
use cl_wire::vault::v1::Meeting;

use super::structure::CalendarPart;
use crate::calendar::{self, Facts, Room};
use crate::native::charset;
use crate::native::marks::Marks;

/// The most calendar objects of one message.
const MAX_OBJECTS: usize = 32;

/// Reads the calendars of a message. The same one often comes twice, inline and attached.
pub(super) fn read(parts: &[CalendarPart<'_>], marks: &mut Marks) -> (Vec<Meeting>, Vec<Facts>) {
    let (mut meetings, mut facts) = (Vec::new(), Vec::new());
    let (mut room, mut known) = (Room::default(), HashSet::new());
    for part in parts {
        let bytes = in_utf8(part, marks);
        let Ok(objects) = calendar::objects(&bytes) else {
            marks.add("calendar.not_read");
            continue;
        };
        for object in objects {
            let plain = calendar::cut::unfolded(&object.bytes);
            if !known.insert(Digest::of_bytes(plain.trim_ascii())) {
                continue;
            }
            if facts.len() == MAX_OBJECTS {
                marks.add("calendar.meetings_cut");
                break;
            }
            let (found, fact) = calendar::read_object(&object.bytes, &mut room, marks);
            meetings.extend(found);
            facts.push(fact);
        }
    }
    (meetings, facts)
}

/// The bytes of a calendar in UTF-8, by its label.
fn in_utf8<'a>(part: &'a CalendarPart<'_>, marks: &mut Marks) -> Cow<'a, [u8]> {
    let is_plain = ["", "utf-8", "utf8", "us-ascii"].contains(&part.charset.as_str());
    if is_plain {
        return Cow::Borrowed(&part.contents);
    }
    let text = charset::labelled(&part.contents, &part.charset, marks);
    Cow::Owned(text.into_bytes())
}
