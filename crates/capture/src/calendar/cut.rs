//! Cuts a calendar file into its objects: all components with one `UID` (RFC 4791, 4.1).
//!
//! One pass over the lines, in bounded memory, before anything is read: what is nested too deep, or
//! never ends, costs no more than its bytes.

use std::collections::HashMap;
use std::ops::Range;

use super::nesting::{Begun, Nesting};

/// The most objects of a file.
const MAX_OBJECTS: usize = 100_000;

/// The most zones of one calendar that its objects get.
const MAX_ZONES: usize = 64;

/// The longest name or id that is compared.
const MAX_ID_BYTES: usize = 4096;

/// Why a file is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no calendar in it.
    #[error("not a calendar")]
    NotACalendar,
    /// It has more objects than are read.
    #[error("too many calendar objects")]
    TooManyObjects,
}

impl Refused {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotACalendar => "NOT_A_CALENDAR",
            Self::TooManyObjects => "CALENDAR_TOO_MANY_OBJECTS",
        }
    }
}

/// An object, as a calendar file of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The calendar's own properties, the zones that it names and its components, line by line as
    /// they stand; the whole file if there is nothing else in it.
    pub(crate) bytes: Vec<u8>,
    /// Where its first component begins in the file.
    pub(crate) start: usize,
    /// The file holds more than it.
    pub(crate) is_part: bool,
}

#[derive(Default)]
struct Calendar {
    properties: Vec<Range<usize>>,
    zones: Vec<(Vec<u8>, Range<usize>)>,
    objects: Vec<Vec<Range<usize>>>,
    by_id: HashMap<Vec<u8>, usize>,
}

/// A component that is being read, below its calendar.
struct Component {
    is_zone: bool,
    start: usize,
    id: Vec<u8>,
}

/// The objects of a file.
///
/// # Errors
///
/// [`Refused`].
pub(crate) fn objects(bytes: &[u8]) -> Result<Vec<Cut>, Refused> {
    let calendars = calendars(bytes)?;
    let count: usize = calendars.iter().map(|it| it.objects.len()).sum();
    let mut cuts = Vec::with_capacity(count);
    for calendar in &calendars {
        for ranges in &calendar.objects {
            let start = ranges.first().map_or(0, |range| range.start);
            cuts.push(if count == 1 {
                Cut {
                    bytes: bytes.to_vec(),
                    start,
                    is_part: false,
                }
            } else {
                Cut {
                    bytes: calendar.object(bytes, ranges),
                    start,
                    is_part: true,
                }
            });
        }
    }
    Ok(cuts)
}

impl Calendar {
    fn object(&self, bytes: &[u8], ranges: &[Range<usize>]) -> Vec<u8> {
        let own: Vec<u8> = ranges
            .iter()
            .flat_map(|range| bytes[range.clone()].iter().copied())
            .collect();
        // A fold within a name would hide it.
        let plain = unfolded(&own);
        let is_named = |id: &[u8]| plain.windows(id.len()).any(|window| window == id);
        let zones = self.zones.iter().filter(|(id, _)| is_named(id));
        let around = self.properties.iter().chain(zones.map(|(_, range)| range));
        let mut object = b"BEGIN:VCALENDAR\r\n".to_vec();
        for range in around {
            object.extend_from_slice(&bytes[range.clone()]);
        }
        object.extend_from_slice(&own);
        if !object.ends_with(b"\n") {
            object.extend_from_slice(b"\r\n");
        }
        object.extend_from_slice(b"END:VCALENDAR\r\n");
        object
    }

    fn add(&mut self, component: Component, end: usize) {
        let range = component.start..end;
        if component.is_zone {
            if self.zones.len() < MAX_ZONES && !component.id.is_empty() {
                self.zones.push((component.id, range));
            }
            return;
        }
        let known = self.by_id.get(&component.id).copied();
        match known.filter(|_| !component.id.is_empty()) {
            Some(at) => self.objects[at].push(range),
            None => {
                self.by_id.insert(component.id, self.objects.len());
                self.objects.push(vec![range]);
            }
        }
    }
}

fn calendars(bytes: &[u8]) -> Result<Vec<Calendar>, Refused> {
    let mut calendars: Vec<Calendar> = Vec::new();
    let mut nesting = Nesting::default();
    let mut open: Option<Component> = None;
    let mut count = 0;
    for (line, range) in logical_lines(bytes) {
        // Some programs begin a file with a byte order mark.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        let (name, value) = name_and_value(line);
        let is_begin = name.eq_ignore_ascii_case(b"begin");
        let is_calendar = value.eq_ignore_ascii_case(b"vcalendar");
        if nesting.depth() == 0 && !(is_begin && is_calendar) {
            // What stands beside calendars is nobody's.
            continue;
        }
        let is_end = name.eq_ignore_ascii_case(b"end");
        if is_begin {
            nesting.begin(value);
        } else if is_end {
            nesting.end(value);
        }
        // What is left open ends in front of what it cannot hold.
        let is_left = match nesting.depth() {
            0 | 1 => true,
            2 => is_begin,
            _ => false,
        };
        if let Some(component) = open.take_if(|_| is_left)
            && let Some(calendar) = calendars.last_mut()
        {
            let is_own_end = is_end && nesting.depth() == 1;
            let end = if is_own_end { range.end } else { range.start };
            count += usize::from(!component.is_zone);
            calendar.add(component, end);
        }
        if is_begin && nesting.depth() == 1 {
            calendars.push(Calendar::default());
        } else if is_begin && nesting.depth() == 2 {
            open = Some(Component {
                is_zone: value.eq_ignore_ascii_case(b"vtimezone"),
                start: range.start,
                id: Vec::new(),
            });
        } else if !is_begin && !is_end && nesting.depth() == 1 {
            let properties = calendars.last_mut().map(|it| &mut it.properties);
            properties.into_iter().for_each(|it| it.push(range.clone()));
        } else if nesting.depth() == 2
            && let Some(component) = &mut open
            && component.id.is_empty()
            && name.eq_ignore_ascii_case(if component.is_zone { b"tzid" } else { b"uid" })
        {
            component.id = value[..value.len().min(MAX_ID_BYTES)].to_vec();
        }
        if count > MAX_OBJECTS {
            return Err(Refused::TooManyObjects);
        }
    }
    if let (Some(component), Some(calendar)) = (open, calendars.last_mut()) {
        calendar.add(component, bytes.len());
    }
    if calendars.is_empty() {
        return Err(Refused::NotACalendar);
    }
    Ok(calendars)
}

/// Whether components are nested deeper than a parser should follow.
pub(crate) fn is_too_deep(bytes: &[u8]) -> bool {
    let mut nesting = Nesting::default();
    logical_lines(bytes).any(|(line, _)| {
        let (name, value) = name_and_value(&line);
        if name.eq_ignore_ascii_case(b"end") {
            nesting.end(value);
        }
        name.eq_ignore_ascii_case(b"begin") && nesting.begin(value) == Begun::TooDeep
    })
}

/// The name of a content line in front of its parameters, and the value behind the first colon that
/// is in no quotes.
fn name_and_value(line: &[u8]) -> (&[u8], &[u8]) {
    let name = line
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-')
        .count();
    let mut is_quoted = false;
    let colon = line.iter().position(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b':' && !is_quoted
    });
    let value = colon.map_or(&[][..], |at| &line[at + 1..]);
    (&line[..name], value.trim_ascii())
}

/// Content lines without their folds (RFC 5545, 3.1), and where each stands. Folds are taken out of
/// the bytes, before they are text: some programs fold within a character.
fn logical_lines(bytes: &[u8]) -> impl Iterator<Item = (Vec<u8>, Range<usize>)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        loop {
            at += bytes[at..]
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(bytes.len() - at, |it| it + 1);
            if !matches!(bytes.get(at), Some(b' ' | b'\t')) {
                break;
            }
        }
        (start < at).then(|| (unfolded(&bytes[start..at]), start..at))
    })
}

/// Bytes without folds and without the line break at their end.
pub(crate) fn unfolded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let is_folded = lines
            .peek()
            .is_some_and(|next| matches!(next.first(), Some(b' ' | b'\t')));
        let is_rest = !out.is_empty() && matches!(line.first(), Some(b' ' | b'\t'));
        let line = &line[usize::from(is_rest)..];
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
        out.extend_from_slice(bare);
        if !is_folded && lines.peek().is_some() {
            out.extend_from_slice(b"\r\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(file: &str) -> Vec<String> {
        let cuts = objects(file.as_bytes()).unwrap();
        let texts = cuts
            .into_iter()
            .map(|cut| String::from_utf8(cut.bytes).unwrap().replace("\r\n", "\n"));
        texts.collect()
    }

    #[test]
    fn an_object_alone_is_its_file() {
        let file = "BEGIN:VCALENDAR\nX-A:1\nBEGIN:VEVENT\nUID:a\nEND:VEVENT\nEND:VCALENDAR";
        let cuts = objects(file.as_bytes()).unwrap();
        assert_eq!(cuts.len(), 1);
        assert_eq!(cuts[0].bytes, file.as_bytes());
        assert!(!cuts[0].is_part);
    }

    #[test]
    fn components_with_one_id_stay_together_with_the_zones_they_name() {
        let zone = |id: &str| format!("BEGIN:VTIMEZONE\nTZID:{id}\nEND:VTIMEZONE\n");
        let event = |id: &str, more: &str| format!("BEGIN:VEVENT\nUID:{id}\n{more}END:VEVENT\n");
        let (one, other) = (event("a", "DTSTART;TZID=Ber\n lin:x\n"), event("b", ""));
        let again = event("a", "RECURRENCE-ID:y\n");
        let file = format!(
            "BEGIN:VCALENDAR\nMETHOD:PUBLISH\n{}{}{one}{other}{again}END:VCALENDAR\n",
            zone("Berlin"),
            zone("Paris")
        );
        let head = "BEGIN:VCALENDAR\nMETHOD:PUBLISH\n";
        let expected = [
            format!("{head}{}{one}{again}END:VCALENDAR\n", zone("Berlin")),
            format!("{head}{other}END:VCALENDAR\n"),
        ];
        assert_eq!(texts(&file), expected);
    }

    #[test]
    fn a_byte_order_mark_may_begin_a_file() {
        let event = |id: &str| format!("BEGIN:VEVENT\nUID:{id}\nEND:VEVENT\n");
        let calendar = |events: &str| format!("\u{feff}BEGIN:VCALENDAR\n{events}END:VCALENDAR\n");
        assert_eq!(texts(&calendar(&event("a"))), [calendar(&event("a"))]);
        let both = calendar(&format!("{}{}", event("a"), event("b")));
        assert_eq!(texts(&both).len(), 2);
    }

    #[test]
    fn components_without_an_id_are_objects_of_their_own() {
        let event = "BEGIN:VEVENT\nEND:VEVENT\n";
        let file = format!("BEGIN:VCALENDAR\n{event}{event}END:VCALENDAR\n");
        assert_eq!(texts(&file).len(), 2);
    }

    #[test]
    fn what_is_broken_ends_with_what_is_around_it() {
        let files = [
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nEND:VCALENDAR\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:b",
            "x\nEND:VEVENT\nBEGIN:VCARD\nEND:VCARD\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\n\
             BEGIN:VEVENT\nUID:c\n",
        ];
        for file in files {
            assert_eq!(texts(file).len(), 2, "{file}");
        }
        for file in ["", "BEGIN:VCARD\nEND:VCARD", "\u{0}", "END:VCALENDAR"] {
            assert_eq!(
                objects(file.as_bytes()),
                Err(Refused::NotACalendar),
                "{file}"
            );
        }
        assert!(is_too_deep("BEGIN:A\n".repeat(9).as_bytes()));
        assert!(!is_too_deep("BEGIN:A\nEND:A\n".repeat(9).as_bytes()));
    }

    #[test]
    fn folds_are_taken_out_of_the_bytes() {
        assert_eq!(
            unfolded(b"a\xc3\r\n \xa9b\n\tc\r\n"),
            "a\u{e9}bc".as_bytes()
        );
        assert_eq!(unfolded(b"a\nb\n c\n"), b"a\r\nbc");
        assert_eq!(unfolded(b" a"), b" a");
    }
}
