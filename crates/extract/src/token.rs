//! Words, numbers and signs of a sentence.

/// Longer runs of letters are no words of the grammar.
const MAX_WORD_BYTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Number,
    Sign,
}

/// One token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Words in lower case with plain apostrophes; empty for a word of excessive length.
    pub(crate) text: String,
    /// No white space stands before it.
    pub(crate) is_glued: bool,
    /// Its first letter is upper-case.
    pub(crate) is_capital: bool,
    /// All its letters are upper-case.
    pub(crate) is_upper: bool,
    /// Where it starts in the sentence, in bytes.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
}

impl Token {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        steps::count();
        self.kind == Kind::Word && self.text == word
    }

    pub(crate) fn is_one_of(&self, words: &[&str]) -> bool {
        steps::count();
        self.kind == Kind::Word && words.contains(&self.text.as_str())
    }

    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        steps::count();
        self.kind == Kind::Sign && self.text == sign
    }
}

/// Cuts a sentence into tokens.
pub(crate) fn tokens(sentence: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sentence;
    let mut is_glued = false;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            is_glued = false;
            continue;
        }
        let (kind, length) = if first.is_ascii_digit() {
            (Kind::Number, number_length(rest))
        } else if first.is_alphabetic() {
            (Kind::Word, word_length(rest))
        } else {
            (Kind::Sign, first.len_utf8())
        };
        let (raw, after) = rest.split_at(length);
        let start = sentence.len() - rest.len();
        tokens.push(token(kind, raw, is_glued, start));
        rest = after;
        is_glued = true;
    }
    tokens
}

fn token(kind: Kind, raw: &str, is_glued: bool, start: usize) -> Token {
    let is_long = raw.len() > MAX_WORD_BYTES;
    let text = match kind {
        Kind::Word if is_long => String::new(),
        Kind::Word => raw.replace('’', "'").to_lowercase(),
        Kind::Number if is_long => "?".to_owned(),
        Kind::Number | Kind::Sign => raw.to_owned(),
    };
    Token {
        kind,
        text,
        is_glued,
        is_capital: raw.starts_with(char::is_uppercase),
        is_upper: kind == Kind::Word && raw.chars().all(char::is_uppercase),
        start,
        end: start + raw.len(),
    }
}

/// Letters, with apostrophes between letters.
fn word_length(text: &str) -> usize {
    run_length(text, char::is_alphabetic, &['\'', '’'])
}

/// Digits, with the separators of numbers, dates and times between digits.
fn number_length(text: &str) -> usize {
    const SEPARATORS: &[char] = &[
        '.', ',', '\'', '’', '/', '-', '–', ':', '\u{a0}', '\u{202f}', '\u{2009}',
    ];
    run_length(text, |it| it.is_ascii_digit(), SEPARATORS)
}

/// The length of a run of characters that `is_inside` admits, and of single `joints` between them.
fn run_length(text: &str, is_inside: impl Fn(char) -> bool, joints: &[char]) -> usize {
    let mut end = 0;
    let mut joint = 0;
    for character in text.chars() {
        if is_inside(character) {
            end += joint + character.len_utf8();
            joint = 0;
        } else if joint == 0 && joints.contains(&character) {
            joint = character.len_utf8();
        } else {
            break;
        }
    }
    end
}

/// Where `phrase` stands first in `tokens`, at or after `from`.
pub(crate) fn find(tokens: &[Token], phrase: &[&str], from: usize) -> Option<usize> {
    let windows = tokens.get(from..)?.windows(phrase.len());
    windows
        .into_iter()
        .position(|window| stands(window, phrase))
        .map(|at| at + from)
}

/// Whether `tokens` begin with `phrase`.
pub(crate) fn stands(tokens: &[Token], phrase: &[&str]) -> bool {
    tokens.len() >= phrase.len()
        && phrase
            .iter()
            .zip(tokens)
            .all(|(word, token)| token.is_word(word))
}

/// Counts what reading a message looks at, for the tests of how that grows; nothing elsewhere.
pub(crate) mod steps {
    #[cfg(test)]
    thread_local! {
        static COUNTED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// One token or character was looked at.
    #[inline]
    pub(crate) fn count() {
        #[cfg(test)]
        COUNTED.with(|counted| counted.set(counted.get() + 1));
    }

    /// How many were looked at while `work` ran.
    #[cfg(test)]
    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> u64 {
        let before = COUNTED.with(std::cell::Cell::get);
        let _done = work();
        COUNTED.with(std::cell::Cell::get) - before
    }
}
