//! Cuts an mbox file into messages, in bounded memory.
//!
//! A separator is a line that begins with `From `, carries a weekday, a month, a day, a time of
//! day and a year (RFC 4155, appendix A; also with `-` for the address, and with a zone), stands at
//! the start of the file or after an empty line, and is followed by a header field. A line of a text
//! that only begins with `From ` is content. `Content-Length` is not used: it is wrong too often.

use std::io::{self, BufRead};

use cl_model::digest::Digest;
use ring::digest::{Context, SHA256};

/// Longer lines are taken in pieces; only the first can be a separator.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// How much of a message beyond the bound is kept, for its header.
const HEAD_BYTES: usize = 256 * 1024;

/// A message as it stands in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct RawMessage {
    /// Its bytes, or the first of them if it is beyond the bound.
    pub bytes: Vec<u8>,
    /// Where it begins in the file.
    pub start: u64,
    /// Its length.
    pub length: u64,
    /// Its digest, if only its first bytes are here.
    pub cut: Option<Digest>,
}

/// The messages of an mbox.
#[derive(Debug)]
pub struct Mbox<R> {
    reader: R,
    max_message_bytes: u64,
    position: u64,
    ahead: Option<Line>,
    is_line_start: bool,
    began: bool,
}

/// A line, or a piece of a long one, with its end.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    start: u64,
    /// It begins a line.
    is_first: bool,
}

impl Line {
    fn is_blank(&self) -> bool {
        self.is_first && (self.bytes == b"\n" || self.bytes == b"\r\n")
    }

    fn is_separator(&self) -> bool {
        self.is_first && is_separator(&self.bytes)
    }
}

impl<R: BufRead> Mbox<R> {
    /// Reads from `reader`; messages beyond `max_message_bytes` come cut.
    pub fn new(reader: R, max_message_bytes: u64) -> Self {
        Self {
            reader,
            max_message_bytes,
            position: 0,
            ahead: None,
            is_line_start: true,
            began: false,
        }
    }

    /// The next message.
    ///
    /// # Errors
    ///
    /// Those of the reader.
    pub fn next_message(&mut self) -> io::Result<Option<RawMessage>> {
        if !self.began && !self.skip_to_first()? {
            return Ok(None);
        }
        let mut gathered = Gathered::new(self.max_message_bytes);
        let mut is_after_blank = true;
        let mut is_empty = true;
        while let Some(line) = self.line()? {
            if !is_empty && line.is_separator() && self.is_header_ahead(is_after_blank)? {
                return Ok(Some(gathered.finish()));
            }
            is_empty = false;
            is_after_blank = line.is_blank();
            gathered.push(line);
        }
        // Only the last separator may stand alone.
        Ok((!is_empty).then(|| gathered.finish()))
    }

    /// Passes the first separator.
    fn skip_to_first(&mut self) -> io::Result<bool> {
        while let Some(line) = self.line()? {
            if line.is_separator() {
                self.began = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a header follows a separator. Some writers put no blank line before it; then the
    /// field must be one of those that begin a header.
    fn is_header_ahead(&mut self, is_after_blank: bool) -> io::Result<bool> {
        if self.ahead.is_none() {
            self.ahead = self.read_line()?;
        }
        Ok(self
            .ahead
            .as_ref()
            .is_some_and(|line| is_header_line(&line.bytes, is_after_blank)))
    }

    fn line(&mut self) -> io::Result<Option<Line>> {
        match self.ahead.take() {
            Some(line) => Ok(Some(line)),
            None => self.read_line(),
        }
    }

    fn read_line(&mut self) -> io::Result<Option<Line>> {
        let mut line = Line {
            bytes: Vec::new(),
            start: self.position,
            is_first: self.is_line_start,
        };
        loop {
            let available = match self.reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let room = MAX_LINE_BYTES - line.bytes.len();
            let window = &available[..available.len().min(room)];
            let end = window
                .iter()
                .position(|byte| *byte == b'\n')
                .map(|at| at + 1);
            let taken = end.unwrap_or(window.len());
            line.bytes.extend_from_slice(&window[..taken]);
            let is_over = available.is_empty();
            self.reader.consume(taken);
            self.position += taken as u64;
            if end.is_some() || is_over || line.bytes.len() >= MAX_LINE_BYTES {
                self.is_line_start = end.is_some();
                return Ok((!line.bytes.is_empty()).then_some(line));
            }
        }
    }
}

/// What there is of a message so far. The last line is held back: an empty one before a separator
/// belongs to the mbox.
struct Gathered {
    message: RawMessage,
    held: Line,
    max_bytes: u64,
    digest: Option<Context>,
}

impl Gathered {
    fn new(max_bytes: u64) -> Self {
        Self {
            message: RawMessage {
                bytes: Vec::new(),
                start: 0,
                length: 0,
                cut: None,
            },
            held: Line::default(),
            max_bytes,
            digest: None,
        }
    }

    fn push(&mut self, line: Line) {
        if self.message.length == 0 && self.held.bytes.is_empty() {
            self.message.start = line.start;
        }
        let held = std::mem::replace(&mut self.held, line);
        self.append(&held.bytes);
    }

    fn append(&mut self, bytes: &[u8]) {
        self.message.length += bytes.len() as u64;
        match &mut self.digest {
            Some(digest) => digest.update(bytes),
            None => self.message.bytes.extend_from_slice(bytes),
        }
        if self.digest.is_none() && self.message.length > self.max_bytes {
            let mut digest = Context::new(&SHA256);
            digest.update(&self.message.bytes);
            self.message.bytes.truncate(HEAD_BYTES);
            self.message.bytes.shrink_to_fit();
            self.digest = Some(digest);
        }
    }

    fn finish(mut self) -> RawMessage {
        let held = std::mem::take(&mut self.held);
        if !held.is_blank() {
            self.append(&held.bytes);
        }
        self.message.cut = self.digest.take().map(finished);
        self.message
    }
}

/// The digest that a context has come to.
pub(crate) fn finished(context: Context) -> Digest {
    let hex = data_encoding::HEXLOWER.encode(context.finish().as_ref());
    // The form is right by construction.
    Digest::parse(&format!("sha256:{hex}")).unwrap_or(Digest::ZERO)
}

/// Whether a file begins like an mbox.
pub fn begins_like_mbox(head: &[u8]) -> bool {
    let mut lines = head.split_inclusive(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.iter().all(u8::is_ascii_whitespace));
    first.is_some_and(is_separator)
}

/// Whether a line is a separator by its own form.
fn is_separator(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ") else {
        return false;
    };
    if rest.len() > 1024 {
        return false;
    }
    let words: Vec<&[u8]> = rest
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    let has_date = |at: usize| {
        let date = &words[at..];
        date.len() >= 5
            && is_one_of(date[0], &["mon", "tue", "wed", "thu", "fri", "sat", "sun"])
            && is_one_of(
                date[1],
                &[
                    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov",
                    "dec",
                ],
            )
            && is_number(date[2], 1, 2)
            && is_time(date[3])
            && date[4..].iter().take(3).any(|word| is_number(word, 4, 4))
    };
    (1..words.len().min(6)).any(has_date)
}

fn is_one_of(word: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

fn is_number(word: &[u8], min_digits: usize, max_digits: usize) -> bool {
    (min_digits..=max_digits).contains(&word.len()) && word.iter().all(u8::is_ascii_digit)
}

fn is_time(word: &[u8]) -> bool {
    let parts: Vec<&[u8]> = word.split(|byte| *byte == b':').collect();
    (2..=3).contains(&parts.len()) && parts.iter().all(|part| is_number(part, 1, 2))
}

/// Whether a line begins a header field, or is a separator that somebody quoted above the header.
fn is_header_line(line: &[u8], may_be_any: bool) -> bool {
    const FIRST: &[&str] = &[
        "return-path",
        "received",
        "from",
        "date",
        "message-id",
        "delivered-to",
        "x-original-to",
        "mime-version",
        "status",
        "x-status",
        "x-mozilla-status",
        "dkim-signature",
    ];
    let name = line
        .iter()
        .take_while(|byte| matches!(**byte, b'!'..=b'9' | b';'..=b'~'))
        .count();
    if !may_be_any && !is_one_of(&line[..name], FIRST) {
        return false;
    }
    let is_field = name > 0
        && line[name..]
            .iter()
            .find(|byte| **byte != b' ' && **byte != b'\t')
            == Some(&b':');
    is_field || line.starts_with(b">From ")
}

/// Takes the quotation off `>From ` lines where it cannot be a reply's quotation: the lines around
/// it are not quoted. Returns whether a line was left in doubt.
pub fn unquote(message: Vec<u8>) -> (Vec<u8>, bool) {
    let is_quoted_from = |line: &[u8]| {
        let marks = line.iter().take_while(|byte| **byte == b'>').count();
        marks > 0 && line[marks..].starts_with(b"From ")
    };
    let lines = || message.split_inclusive(|byte| *byte == b'\n');
    if !lines().any(is_quoted_from) {
        return (message, false);
    }
    let is_quote = |line: &[u8]| line.starts_with(b">") && !is_quoted_from(line);
    let mut restored = Vec::with_capacity(message.len());
    let mut is_in_doubt = false;
    let mut is_after_quote = false;
    let mut following = lines().skip(1);
    for line in lines() {
        let is_before_quote = following.next().is_some_and(is_quote);
        let is_among_quotes = is_after_quote || is_before_quote;
        let is_plain = is_quoted_from(line) && !is_among_quotes;
        is_in_doubt |= is_quoted_from(line) && is_among_quotes;
        restored.extend_from_slice(&line[usize::from(is_plain)..]);
        is_after_quote = is_quote(line);
    }
    (restored, is_in_doubt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut mbox = Mbox::new(text.as_bytes(), 1 << 20);
        let mut found = Vec::new();
        while let Some(message) = mbox.next_message().unwrap() {
            assert_eq!(message.length, message.bytes.len() as u64);
            let start = usize::try_from(message.start).unwrap();
            let stated = &text.as_bytes()[start..start + message.bytes.len()];
            assert_eq!(stated, message.bytes);
            found.push(String::from_utf8(message.bytes).unwrap());
        }
        found
    }

    #[test]
    fn a_line_of_a_text_that_begins_with_from_is_content() {
        let text = "From a@b.example Thu Oct 29 08:02:11 2026\nSubject: x\n\nFrom Monday on.\n\n\
                    From here Thu it is far.\n\nFrom c@d.example Fri Oct 30 08:02:11 2026\nSubject: y\n\nz\n";
        let found = split(text);
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            "Subject: x\n\nFrom Monday on.\n\nFrom here Thu it is far.\n"
        );
        assert_eq!(found[1], "Subject: y\n\nz\n");
    }

    #[test]
    fn reads_the_separators_of_several_programs() {
        for separator in [
            "From a@b.example Thu Oct 29 08:02:11 2026",
            "From - Thu Oct 29 08:02:11 2026",
            "From MAILER-DAEMON Thu Oct  9 08:02:11 2026",
            "From 1748@xxx Thu Oct 29 08:02:11 +0000 2026",
            "From a@b.example Thu Oct 29 08:02 CET 2026",
            "From a b c Thu Oct 29 08:02:11 2026",
        ] {
            let one = format!("{separator}\nSubject: x\n\nbody\n\n");
            assert_eq!(split(&one.repeat(3)).len(), 3, "{separator}");
            assert!(begins_like_mbox(one.as_bytes()), "{separator}");
        }
        for line in [
            "From me to you",
            "From: x",
            "from a Thu Oct 29 08:02:11 2026",
            "From a Thu Oct 29 2026",
        ] {
            assert!(!is_separator(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_separator_needs_an_empty_line_before_it_or_the_start_of_a_header_behind_it() {
        let start = "From a@b.example Thu Oct 29 08:02:11 2026\nSubject: x\n\n";
        let inside = "From c@d.example Thu Oct 29 08:02:11 2026";
        assert_eq!(
            split(&format!("{start}text\n{inside}\nSubject: y\n")).len(),
            1
        );
        assert_eq!(
            split(&format!("{start}text\n\n{inside}\nno field\n")).len(),
            1
        );
        assert_eq!(
            split(&format!("{start}text\n\n{inside}\nSubject: y\n")).len(),
            2
        );
    }

    #[test]
    fn a_writer_may_leave_out_the_empty_line() {
        let separator = "From a@b.example Mon Nov  2 10:00:00 2026";
        let text = format!(
            "{separator}\nFrom: a@b.example\n\nOne.\n{separator}\nFrom: c@d.example\n\nTwo.\n"
        );
        assert_eq!(split(&text).len(), 2);
        let told =
            format!("{separator}\nFrom: a@b.example\n\nOne.\n{separator}\nNote: no header.\n");
        assert_eq!(split(&told).len(), 1);
    }

    #[test]
    fn a_message_beyond_the_bound_comes_cut_with_the_digest_of_all_its_bytes() {
        let body = "x".repeat(700_000);
        let text = format!(
            "From - Thu Oct 29 08:02:11 2026\nSubject: x\n\n{body}\n\nFrom - Thu Oct 29 08:02:11 2026\nSubject: y\n\n"
        );
        let mut mbox = Mbox::new(text.as_bytes(), 500_000);
        let first = mbox.next_message().unwrap().unwrap();
        let whole = format!("Subject: x\n\n{body}\n");
        assert_eq!(first.length, whole.len() as u64);
        assert_eq!(first.cut, Some(Digest::of_bytes(whole.as_bytes())));
        assert!(first.bytes.len() <= HEAD_BYTES);
        let second = mbox.next_message().unwrap().unwrap();
        assert_eq!(second.bytes, b"Subject: y\n");
    }

    #[test]
    fn takes_quotation_off_only_where_it_is_the_mbox_that_quoted() {
        let (plain, doubt) = unquote(b"a\n>From me\nb\n".to_vec());
        assert_eq!(
            (plain.as_slice(), doubt),
            (b"a\nFrom me\nb\n".as_slice(), false)
        );
        let (plain, doubt) = unquote(b"a\n>>From me\n".to_vec());
        assert_eq!(
            (plain.as_slice(), doubt),
            (b"a\n>From me\n".as_slice(), false)
        );
        let (kept, doubt) = unquote(b"> a\n>From me\n> b\n".to_vec());
        assert_eq!(
            (kept.as_slice(), doubt),
            (b"> a\n>From me\n> b\n".as_slice(), true)
        );
    }
}
