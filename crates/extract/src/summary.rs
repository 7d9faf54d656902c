//! What a request is for, in a few of its own words: from its verb up to a date, a comma or a reason.

use std::sync::LazyLock;

use cl_model::vocabulary::Vocabulary;

use crate::date::Mention;
use crate::sentence::Sentence;
use crate::token::{Kind, Token};

/// The most words of a summary.
const MAX_WORDS: usize = 14;

/// The most bytes of a summary.
const MAX_BYTES: usize = 120;

/// Words that only lead to the verb of a request.
const LEADS: &[&str] = &[
    "please",
    "pls",
    "plz",
    "kindly",
    "also",
    "just",
    "then",
    "could",
    "can",
    "would",
    "will",
    "you",
    "u",
    "possibly",
    "maybe",
    "be",
    "so",
    "kind",
    "as",
    "to",
    "able",
    "willing",
    "mind",
    "both",
    "it",
    "if",
    "possible",
    "for",
    "chance",
    "any",
    "that",
    "and",
    "like",
    "want",
    "grateful",
    "obliged",
    "appreciate",
    "ask",
    "asking",
    "request",
    "requesting",
    "requested",
    "required",
    "asked",
    "is",
    "are",
    "must",
    "shall",
    "i",
    "we",
    "sure",
    "remember",
    "don't",
    "forget",
    "not",
    "do",
    "me",
    "us",
    "would've",
    "thankful",
    "happy",
    "glad",
    "very",
    "much",
    "hereby",
    "now",
    "i'd",
    "we'd",
];

/// Words that end a summary.
const ENDS: &[&str] = &[
    "because",
    "so",
    "as",
    "but",
    "if",
    "when",
    "otherwise",
    "ideally",
    "since",
    "until",
    "till",
    "unless",
    "failing",
    "before",
    "once",
    "while",
    "preferably",
    "latest",
    "asap",
    "please",
    "pls",
    "plz",
    "thanks",
    "thx",
    "although",
    "though",
    "by",
    "then",
];

/// Words that stand between what is asked for and its day.
const BEFORE_DAY: &[&str] = &[
    "by", "on", "until", "till", "before", "at", "latest", "no", "not", "later", "than", "or",
    "within", "in", "due", "for", "the", "from", "after", "sooner", "rather", "end", "of", "any",
    "case", "event", "and", "to", "very", "first", "thing",
];

/// The summary of the request whose cue stands at `cue`; none where no verb follows.
pub(crate) fn summary(sentence: &Sentence, cue: usize, mentions: &[Mention]) -> Option<String> {
    let tokens = &sentence.tokens;
    let start = verb(tokens, cue).or_else(|| verb_before(tokens, cue))?;
    let end = end(tokens, start, mentions);
    let last = tokens.get(end.checked_sub(1)?)?;
    let first = tokens.get(start)?;
    if end <= start || tokens[start..end].iter().all(|it| it.kind != Kind::Word) {
        return None;
    }
    let text = sentence.text.get(first.start..last.end)?;
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_plain = !text
        .chars()
        .any(|it| it.is_control() || "<>{}[]`|\\".contains(it));
    let is_short = text.len() <= MAX_BYTES;
    (is_plain && is_short && !is_of_a_template(&text)).then(|| lowered(&text, first))
}

/// The letters of the published templates. A summary like a part of one would be found in sentences
/// about other claims, and what guards it would hold them back.
static TEMPLATES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let published = Vocabulary::published();
    let templates = published.iter().flat_map(Vocabulary::iter);
    templates.map(|it| letters(it.template.as_str())).collect()
});

fn is_of_a_template(text: &str) -> bool {
    let letters = letters(text);
    TEMPLATES.iter().any(|template| template.contains(&letters))
}

fn letters(text: &str) -> String {
    let letters = text.chars().filter(|it| it.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Without the capital of a sentence's first word.
fn lowered(text: &str, first: &Token) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(letter) if first.is_capital && (!first.is_upper || text.len() == 1) => {
            letter.to_lowercase().chain(characters).collect()
        }
        Some(_) | None => text.to_owned(),
    }
}

/// Where the verb of the request stands.
fn verb(tokens: &[Token], cue: usize) -> Option<usize> {
    let is_own_verb = |token: &Token| token.kind == Kind::Word && !token.is_one_of(LEADS);
    let at = (cue..tokens.len().min(cue + 14)).find(|at| {
        let token = &tokens[*at];
        is_own_verb(token)
            || token.kind == Kind::Number
            || (token.kind == Kind::Sign && !token.is_sign(",") && !token.is_sign(":"))
    })?;
    tokens.get(at).filter(|it| it.kind == Kind::Word)?;
    Some(at)
}

/// Where the verb stands if the cue ends its sentence: "just leave the gate open please".
fn verb_before(tokens: &[Token], cue: usize) -> Option<usize> {
    let is_last = tokens[cue + 1..].iter().all(|it| it.kind == Kind::Sign);
    let is_please = tokens[cue].is_one_of(&["please", "pls", "plz"]);
    let comma = tokens[..cue].iter().rposition(|it| it.is_sign(","));
    let start = comma.map_or(0, |at| at + 1);
    let verb = (start..cue).find(|at| !tokens[*at].is_one_of(LEADS))?;
    (is_last && is_please && tokens[verb].kind == Kind::Word).then_some(verb)
}

fn end(tokens: &[Token], start: usize, mentions: &[Mention]) -> usize {
    let day = mentions.iter().map(|it| it.start).find(|at| *at > start);
    let limit = (start + MAX_WORDS).min(tokens.len());
    let stop = (start + 1..limit).find(|at| {
        let token = &tokens[*at];
        let is_sign = token.kind == Kind::Sign
            && ![
                "-", "'", "’", "/", "&", "%", "€", "$", "£", "#", "+", "\"", ".",
            ]
            .contains(&token.text.as_str());
        let is_stop = token.is_sign(".") && !tokens.get(at + 1).is_some_and(|it| it.is_glued);
        let is_dash = token.is_sign("-") && !token.is_glued;
        is_sign || is_stop || is_dash || token.is_one_of(ENDS)
    });
    let mut end = stop.unwrap_or(limit);
    if let Some(day) = day.filter(|day| *day < end) {
        end = day;
    }
    while end > start + 1 && tokens[end - 1].is_one_of(BEFORE_DAY) {
        end -= 1;
    }
    end
}
