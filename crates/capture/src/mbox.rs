//! Cuts an mbox file into messages, in bounded memory.
//!
//! A separator is a line that begins with `From `, carries a weekday, a month, a day, a time of
//! day and a year (RFC 4155, appendix A; also with `-` for the address, and with a zone), stands at
//! the start of the file or after an empty line, and is followed by a header field. A line of a text
//! that only begins with `From ` is content. `Content-Length` is not used: it is wrong too often.

mod quotation;
mod separator;

use std::io::{self, BufRead};

use cl_model::digest::Digest;
use ring::digest::{Context, SHA256};

pub use self::quotation::unquote;
pub use self::separator::begins_like_mbox;
use self::separator::{is_header_line, is_separator};

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

#[cfg(test)]
mod tests;
