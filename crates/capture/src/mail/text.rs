//! Cuts visible text into parts by whose words they are.

mod styles;

use std::str::Lines;

use cl_wire::vault::v1::{TextOrigin, TextPart};

use self::styles::Beginning;
use crate::native::marks::Marks;

/// The most parts of one message.
const MAX_PARTS: usize = 256;

/// The most bytes of text of one message.
const MAX_TEXT_BYTES: usize = 262_144;

/// How much of a text is looked at for that.
pub(super) const MAX_READ_BYTES: usize = 4 * MAX_TEXT_BYTES;

/// The most attributions of one message that are kept.
const MAX_ATTRIBUTIONS: usize = 16;

/// Whose words a part is, by what stands in front of it. Anybody can write that.
#[derive(Clone, PartialEq, Eq)]
pub struct Attribution {
    /// `quoted` or `forwarded`.
    pub origin: &'static str,
    /// An address, else a name.
    pub author: String,
}

/// Text, cut.
#[derive(Default)]
pub(super) struct Cut {
    pub(super) parts: Vec<TextPart>,
    pub(super) attributions: Vec<Attribution>,
}

impl Cut {
    /// Adds whose words something is, once.
    pub(super) fn attribute(&mut self, origin: &'static str, author: Option<String>) {
        let Some(author) = author else {
            return;
        };
        let attribution = Attribution { origin, author };
        let is_new = !self.attributions.contains(&attribution);
        if is_new && self.attributions.len() < MAX_ATTRIBUTIONS {
            self.attributions.push(attribution);
        }
    }

    /// Adds a message that came whole within another one, as far as there is room.
    pub(super) fn add_forwarded(&mut self, text: &str, marks: &mut Marks) {
        let read = &text[..text.floor_char_boundary(MAX_READ_BYTES)];
        let text = visible(read, marks);
        let used: usize = self.parts.iter().map(|part| part.text.len()).sum();
        let room = MAX_TEXT_BYTES.saturating_sub(used);
        let kept = text[..text.floor_char_boundary(room)].trim();
        let has_room = self.parts.len() < MAX_PARTS;
        if read.len() > room || !has_room {
            marks.add("text.cut");
        }
        if has_room && !kept.is_empty() {
            self.parts.push(TextPart {
                origin: TextOrigin::Forwarded.into(),
                text: kept.to_owned(),
            });
        }
    }
}

/// The parts of a text.
pub(super) fn parts(text: &str, marks: &mut Marks) -> Cut {
    let read = &text[..text.floor_char_boundary(MAX_READ_BYTES)];
    let cleaned = visible(read, marks);
    let mut cutter = Cutter::default();
    let mut cut = Cut::default();
    let mut rest = TextOrigin::Author;
    let mut lines = cleaned.lines();
    while let Some(line) = lines.clone().next() {
        let run = classify(line, &lines, rest, marks);
        rest = run.after;
        cut.attribute(named(run.origin), run.author);
        for line in lines.by_ref().take(run.lines) {
            cutter.push(run.origin, line);
        }
    }
    cutter.is_cut |= read.len() < text.len();
    cut.parts = cutter.finish(marks);
    cut
}

const fn named(origin: TextOrigin) -> &'static str {
    match origin {
        TextOrigin::Forwarded => "forwarded",
        TextOrigin::Quoted
        | TextOrigin::Author
        | TextOrigin::Signature
        | TextOrigin::Unspecified => "quoted",
    }
}

/// The next lines, at least one.
struct Run {
    /// Whose words they are.
    origin: TextOrigin,
    lines: usize,
    /// Whose words those after them are.
    after: TextOrigin,
    /// Whom the text names as their author.
    author: Option<String>,
}

impl Run {
    const fn new(origin: TextOrigin, lines: usize, after: TextOrigin) -> Self {
        Self {
            origin,
            lines,
            after,
            author: None,
        }
    }

    fn beginning(origin: TextOrigin, beginning: Beginning, after: TextOrigin) -> Self {
        Self {
            author: beginning.author,
            ..Self::new(origin, beginning.lines, after)
        }
    }
}

/// Whose words the next lines are, of which `line` is the first.
fn classify(line: &str, lines: &Lines<'_>, rest: TextOrigin, marks: &mut Marks) -> Run {
    use TextOrigin::{Author, Forwarded, Quoted, Signature};

    if rest == Quoted || rest == Forwarded {
        return Run::new(rest, 1, rest);
    }
    if styles::is_marked(line) {
        // A signature ends where a quotation begins: somebody answered below it.
        let count = 1 + usize::from(styles::is_broken(line, lines));
        return Run::new(Quoted, count, Author);
    }
    if begins_pgp(line, "SIGNATURE") {
        marks.add("signature.openpgp");
        return Run::new(Signature, pgp_length(lines), rest);
    }
    if begins_pgp(line, "MESSAGE") {
        marks.add("content.encrypted");
        return Run::new(Signature, pgp_length(lines), rest);
    }
    if let Some(beginning) = styles::forwarded(line, lines) {
        return Run::beginning(Forwarded, beginning, Forwarded);
    }
    if let Some(beginning) = styles::original(line, lines) {
        return Run::beginning(Quoted, beginning, Quoted);
    }
    if let Some(beginning) = styles::attribution(line, lines) {
        let mut behind = lines.clone().skip(beginning.lines);
        let is_marked = behind
            .find(|it| !it.trim().is_empty())
            .is_some_and(styles::is_marked);
        let after = if is_marked { Author } else { Quoted };
        return Run::beginning(Quoted, beginning, after);
    }
    if rest == Signature {
        return Run::new(rest, 1, rest);
    }
    if line == "-- " || line == "--" || is_device_line(line) {
        return Run::new(Signature, 1, Signature);
    }
    Run::new(Author, 1, Author)
}

fn begins_pgp(line: &str, kind: &str) -> bool {
    line.strip_prefix("-----BEGIN PGP ")
        .and_then(|rest| rest.strip_prefix(kind))
        .is_some_and(|rest| rest.starts_with("-----"))
}

fn pgp_length(lines: &Lines<'_>) -> usize {
    let mut is_over = false;
    let within = lines.clone().take_while(|line| {
        let was_over = is_over;
        is_over = line.starts_with("-----END PGP");
        !was_over
    });
    within.count()
}

/// The line that a device puts below what was written on it.
fn is_device_line(line: &str) -> bool {
    const STARTS: &[&str] = &[
        "Sent from my ",
        "Get Outlook for ",
        "Sent from Outlook",
        "Gesendet von meinem ",
        "Von meinem iP",
        "Envoyé de mon ",
        "Envoyé depuis mon ",
        "Enviado desde mi ",
        "iPhoneから送信",
        "iPadから送信",
    ];
    let line = line.trim();
    STARTS.iter().any(|start| line.starts_with(start)) && line.len() < 80
}

/// The text without characters that nobody sees, and with line feeds only.
fn visible(text: &str, marks: &mut Marks) -> String {
    let mut is_changed = false;
    let cleaned: String = text
        .replace("\r\n", "\n")
        .chars()
        .map(|it| {
            if it == '\r' || it == '\u{2028}' || it == '\u{2029}' || it == '\u{b}' || it == '\u{c}'
            {
                '\n'
            } else {
                it
            }
        })
        .filter(|it| {
            let is_shown = !is_invisible(*it);
            is_changed |= !is_shown && *it != '\u{ad}' && *it != '\u{feff}';
            is_shown
        })
        .collect();
    if is_changed {
        marks.add("text.invisible_removed");
    }
    // A reader sees what is within them turned around.
    marks.add_if(
        text.contains(['\u{202d}', '\u{202e}']),
        "text.direction_overridden",
    );
    cleaned
}

pub(super) fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e007f}')
        || (character.is_control() && character != '\n' && character != '\t')
}

/// Joins lines to parts, within the bounds.
#[derive(Default)]
struct Cutter {
    parts: Vec<TextPart>,
    bytes: usize,
    is_cut: bool,
}

impl Cutter {
    fn push(&mut self, origin: TextOrigin, line: &str) {
        if self.bytes + line.len() + 1 > MAX_TEXT_BYTES {
            self.is_cut = true;
            return;
        }
        if self.is_cut {
            return;
        }
        self.bytes += line.len() + 1;
        let is_full = self.parts.len() == MAX_PARTS;
        match self.parts.last_mut().filter(|part| part.origin() == origin) {
            Some(part) => {
                part.text.push('\n');
                part.text.push_str(line);
            }
            // Words whose author is lost among so many parts must not count as the author's.
            None if is_full => self.is_cut = true,
            None => self.parts.push(TextPart {
                origin: origin.into(),
                text: line.to_owned(),
            }),
        }
    }

    fn finish(mut self, marks: &mut Marks) -> Vec<TextPart> {
        if self.is_cut {
            marks.add("text.cut");
        }
        self.parts.retain(|part| !part.text.trim().is_empty());
        self.parts
    }
}

#[cfg(test)]
mod tests;
