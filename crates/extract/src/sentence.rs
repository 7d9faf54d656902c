//! Cuts text into sentences, across wrapped lines and along list items.

use crate::token::{Token, tokens};

/// A longer run without an end is cut, so that looking around in a sentence stays cheap.
const MAX_TOKENS: usize = 200;

/// A line at least this long may have been wrapped by the sender's program.
const WRAPPED_CHARS: usize = 50;

/// How many bytes of a sentence are kept as the words that a candidate came from.
const MAX_WORDS_BYTES: usize = 320;

/// One sentence, or one item of a list.
#[derive(Clone, Debug)]
pub(crate) struct Sentence {
    /// Its text, with single spaces where lines were wrapped.
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
    /// It ends with a question mark.
    pub(crate) is_question: bool,
    /// It ends with a colon, and so introduces what follows.
    pub(crate) introduces: bool,
    /// It begins a paragraph.
    pub(crate) starts_paragraph: bool,
    /// It is a line or item of its own.
    pub(crate) is_item: bool,
}

impl Sentence {
    /// The words around a token, for whoever asks where a candidate came from.
    pub(crate) fn words(&self, at: usize) -> String {
        let text = self.text.as_str();
        if text.len() <= MAX_WORDS_BYTES {
            return text.to_owned();
        }
        let place = self.tokens.get(at).map_or(0, |token| token.start);
        let start = place.saturating_sub(MAX_WORDS_BYTES / 2);
        let start = text.floor_char_boundary(start.min(text.len() - MAX_WORDS_BYTES));
        let end = text.floor_char_boundary(start + MAX_WORDS_BYTES);
        let before = if start > 0 { "…" } else { "" };
        let after = if end < text.len() { "…" } else { "" };
        format!("{before}{}{after}", &text[start..end])
    }
}

/// All sentences of a text.
pub(crate) fn sentences(text: &str) -> Vec<Sentence> {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.line(line.trim());
    }
    reader.flush();
    reader.found
}

#[derive(Default)]
struct Reader {
    found: Vec<Sentence>,
    run: String,
    last_line_chars: usize,
    starts_paragraph: bool,
    is_item: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if line.is_empty() {
            self.flush();
            self.starts_paragraph = true;
            return;
        }
        let item = item_text(line);
        if item.is_some() || !self.continues_with(line) {
            self.flush();
            self.is_item = true;
        }
        let text = item.unwrap_or(line);
        if !self.run.is_empty() {
            self.run.push(' ');
            self.is_item = false;
        }
        self.run.push_str(text);
        self.last_line_chars = line.chars().count();
    }

    fn continues_with(&self, line: &str) -> bool {
        if self.run.is_empty() || self.run.ends_with([':', '.', '!', '?', ';']) {
            // After a full stop the sentence ends in any case, but its paragraph goes on.
            return !self.run.is_empty() && !self.run.ends_with(':') && self.is_wrapped();
        }
        let first = line.chars().next();
        self.is_wrapped()
            || first.is_some_and(|first| first.is_lowercase() || first.is_ascii_digit())
            || self.is_unfinished()
    }

    /// Whether the last word leaves its phrase open: "by", "the", a day without its month.
    fn is_unfinished(&self) -> bool {
        const OPEN: &[&str] = &[
            "by", "the", "a", "an", "of", "and", "to", "on", "for", "please", "your", "our", "at",
            "with", "in", "before",
        ];
        let last = self.run.rsplit(' ').next().unwrap_or_default();
        let is_day = (1..=2).contains(&last.len()) && last.bytes().all(|it| it.is_ascii_digit());
        is_day || OPEN.contains(&last)
    }

    fn is_wrapped(&self) -> bool {
        self.last_line_chars >= WRAPPED_CHARS
    }

    fn flush(&mut self) {
        let run = std::mem::take(&mut self.run);
        let is_item = std::mem::take(&mut self.is_item);
        let mut rest = run.as_str();
        while !rest.is_empty() {
            let (sentence, after) = rest.split_at(sentence_length(rest));
            self.push(sentence.trim(), is_item);
            rest = after.trim_start();
        }
    }

    fn push(&mut self, text: &str, is_item: bool) {
        let is_question = text.ends_with('?');
        let introduces = text.ends_with(':');
        let all = tokens(text);
        for chunk in all.chunks(MAX_TOKENS) {
            let start = chunk.first().map_or(0, |token| token.start);
            let end = chunk.last().map_or(0, |token| token.end);
            let placed = chunk.iter().cloned().map(|token| Token {
                start: token.start - start,
                end: token.end - start,
                ..token
            });
            self.found.push(Sentence {
                text: text[start..end].to_owned(),
                tokens: placed.collect(),
                is_question,
                introduces,
                starts_paragraph: std::mem::take(&mut self.starts_paragraph),
                is_item,
            });
        }
    }
}

/// What follows the bullet or number of a list item.
fn item_text(line: &str) -> Option<&str> {
    let bullets = ["- ", "* ", "• ", "– ", "+ ", "o "];
    if let Some(rest) = bullets.iter().find_map(|bullet| line.strip_prefix(bullet)) {
        return Some(rest.trim_start());
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=2).contains(&digits) {
        return None;
    }
    let rest = line[digits..].strip_prefix(')')?;
    Some(rest.trim_start())
}

/// The length of the first sentence, its end mark included.
fn sentence_length(text: &str) -> usize {
    let mut word_start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character.is_whitespace() {
            word_start = at + character.len_utf8();
            continue;
        }
        let end = at + character.len_utf8();
        let is_end = match character {
            '!' | '?' | ';' => characters
                .peek()
                .is_none_or(|(_, next)| next.is_whitespace()),
            '.' => ends_at_stop(&text[word_start..at], &text[end..]),
            _ => false,
        };
        if is_end {
            return end;
        }
    }
    text.len()
}

/// Whether a full stop after `word` and before `rest` ends the sentence.
fn ends_at_stop(word: &str, rest: &str) -> bool {
    const ABBREVIATIONS: &[&str] = &[
        "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "mon",
        "tue", "tues", "wed", "thu", "thur", "thurs", "fri", "sat", "sun", "mr", "mrs", "ms", "dr",
        "prof", "no", "nr", "st", "approx", "e.g", "i.e", "inc", "ltd", "vs", "incl", "excl",
        "a.m", "p.m", "ca", "cf", "ref", "inv",
    ];
    let after = rest.trim_start();
    if !rest.is_empty() && after.len() == rest.len() {
        return false;
    }
    let Some(next) = after.chars().next() else {
        return true;
    };
    let is_ordinal =
        !word.is_empty() && word.len() <= 2 && word.bytes().all(|it| it.is_ascii_digit());
    let is_short = word.len() <= 6 && ABBREVIATIONS.contains(&word.to_lowercase().as_str());
    !(next.is_lowercase() || is_ordinal || is_short)
}
