//! The words around a date or an amount that say what it is for.

use crate::token::{Kind, Token, find, stands};

/// How far around a word its meaning is looked for.
const NEAR: usize = 8;

/// A phrase by which an author asks for something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cue {
    pub(crate) at: usize,
    pub(crate) confidence: f64,
}

/// Verbs that ask for a delivery when a sentence begins with them.
const IMPERATIVES: &[&str] = &[
    "send", "provide", "deliver", "submit", "return", "confirm", "upload", "share", "review",
    "approve", "sign", "reply", "respond", "complete", "prepare", "pay", "forward", "email",
    "mail", "ship", "finish", "update", "check", "fill", "transfer", "remit", "give", "bring",
    "get", "book", "order", "settle",
];

/// What stands behind such a verb if it is one.
const AFTER_IMPERATIVE: &[&str] = &[
    "the", "a", "an", "us", "me", "your", "this", "these", "those", "it", "them", "back", "all",
    "any", "both", "our", "my", "over", "by", "to", "in", "out", "that", "him", "her", "with",
];

/// What follows "please" where nothing is asked for.
const NO_REQUEST_AFTER_PLEASE: &[&str] = &[
    "find",
    "note",
    "see",
    "be",
    "ignore",
    "disregard",
    "enjoy",
    "accept",
    "visit",
    "click",
    "consider",
    "feel",
    "excuse",
    "forgive",
    "contact",
    "do",
    "don't",
    "unsubscribe",
    "never",
    "not",
    "refer",
    "stop",
    "keep",
    "remember",
    "bear",
];

/// What follows "could you" where nothing is asked for.
const NO_REQUEST_AFTER_YOU: &[&str] = &[
    "be", "believe", "imagine", "see", "like", "prefer", "have", "agree", "ever", "really", "not",
    "attend", "make",
];

/// Everything by which the sentence asks for something, in order.
pub(crate) fn requests(tokens: &[Token]) -> Vec<Cue> {
    if is_courtesy(tokens) {
        return Vec::new();
    }
    let start = opening_length(tokens);
    (0..tokens.len())
        .filter_map(|at| {
            let confidence = request_at(tokens, at, at == start)?;
            Some(Cue { at, confidence })
        })
        .collect()
}

fn request_at(tokens: &[Token], at: usize, is_first: bool) -> Option<f64> {
    let token = &tokens[at];
    if token.kind != Kind::Word {
        return None;
    }
    let before = |back: usize| at.checked_sub(back).and_then(|it| tokens.get(it));
    let after = &tokens[at + 1..];
    match token.text.as_str() {
        "please" | "pls" | "plz" | "kindly" => {
            let next = word_after(
                after,
                &[
                    "also", "just", "then", "kindly", "both", "could", "can", "would", "you",
                ],
            );
            let is_empty = next.is_some_and(|it| it.is_one_of(NO_REQUEST_AFTER_PLEASE));
            (!is_empty).then_some(0.8)
        }
        "can" | "could" | "would" | "will" => {
            let is_asked = after.first().is_some_and(|it| it.is_word("you"));
            let next = word_after(
                after.get(1..)?,
                &[
                    "please", "also", "kindly", "possibly", "just", "maybe", "then",
                ],
            )?;
            let is_verb = next.kind == Kind::Word && !next.is_one_of(NO_REQUEST_AFTER_YOU);
            (is_asked && is_verb).then_some(0.8)
        }
        "need" | "require" => {
            let subject = (1..=3)
                .filter_map(before)
                .any(|it| it.is_one_of(&["i", "we", "i'd", "we'd", "i'll", "we'll"]));
            let is_to = after.first().is_some_and(|it| it.is_word("to"));
            let is_for_you = before(1).is_some_and(|it| it.is_word("you")) && is_to;
            ((subject && !is_to) || is_for_you).then_some(0.7)
        }
        "like" | "want" => {
            let subject = (1..=3)
                .filter_map(before)
                .any(|it| it.is_one_of(&["i", "we", "i'd", "we'd"]));
            let asks = [
                &["you", "to"][..],
                &["to", "have"],
                &["to", "receive"],
                &["to", "get"],
                &["to", "ask"],
            ];
            (subject && asks.iter().any(|it| stands(after, it))).then_some(0.75)
        }
        "appreciate" => {
            let is_wish = (1..=2)
                .filter_map(before)
                .any(|it| it.is_one_of(&["would", "i'd", "we'd"]));
            is_wish.then_some(0.75)
        }
        "grateful" => {
            let is_wish = after.first().is_some_and(|it| it.is_one_of(&["if", "for"]))
                && (1..=3)
                    .filter_map(before)
                    .any(|it| it.is_one_of(&["would", "i'd", "we'd"]));
            is_wish.then_some(0.75)
        }
        "ask" | "asking" | "request" | "requesting" => {
            let subject = (1..=3)
                .filter_map(before)
                .any(|it| it.is_one_of(&["i", "we", "i'm", "we're", "must"]));
            let asks = after
                .first()
                .is_some_and(|it| it.is_one_of(&["you", "for", "that", "the", "your"]));
            (subject && asks).then_some(0.75)
        }
        "must" | "have" => {
            let is_must = token.text == "must" || after.first().is_some_and(|it| it.is_word("to"));
            (is_must && before(1).is_some_and(|it| it.is_word("you"))).then_some(0.65)
        }
        "let" => {
            let asks = stands(after, &["me", "know"]) || stands(after, &["us", "know"]);
            asks.then_some(0.75)
        }
        "forget" => {
            let is_reminder = before(1).is_some_and(|it| it.is_one_of(&["don't", "not"]))
                && after.first().is_some_and(|it| it.is_word("to"));
            is_reminder.then_some(0.7)
        }
        verb if is_first && IMPERATIVES.contains(&verb) => {
            let is_verb = after
                .first()
                .is_some_and(|it| it.is_one_of(AFTER_IMPERATIVE));
            is_verb.then_some(0.7)
        }
        _ => None,
    }
}

/// The first word behind `fillers`.
fn word_after<'a>(tokens: &'a [Token], fillers: &[&str]) -> Option<&'a Token> {
    tokens
        .iter()
        .take(NEAR)
        .find(|it| !it.is_one_of(fillers) && it.kind == Kind::Word)
}

/// Greeting and connecting words before the first verb: "Hi Asha,", "Asha,", "Also,".
fn opening_length(tokens: &[Token]) -> usize {
    let comma = tokens.iter().take(4).position(|it| it.is_sign(","));
    let greeting = comma.filter(|at| {
        let is_greeting =
            tokens[0].is_one_of(&["hi", "hello", "dear", "hey", "also", "then", "so", "and"]);
        is_greeting || (*at == 1 && tokens[0].is_capital)
    });
    let start = greeting.map_or(0, |at| at + 1);
    let joined = tokens[start..]
        .iter()
        .take(2)
        .take_while(|it| it.is_one_of(&["and", "then", "also"]))
        .count();
    start + joined
}

/// Phrases of politeness that ask for nothing.
fn is_courtesy(tokens: &[Token]) -> bool {
    const PHRASES: &[&[&str]] = &[
        &["have", "any", "questions"],
        &["have", "questions"],
        &["have", "any", "further", "questions"],
        &["any", "questions"],
        &["have", "already", "paid"],
        &["already", "paid"],
        &["not", "hesitate"],
        &["don't", "hesitate"],
        &["feel", "free"],
        &["the", "environment"],
        &["wish", "to", "unsubscribe"],
        &["received", "this", "in", "error"],
        &["received", "this", "email", "in", "error"],
        &["received", "this", "message", "in", "error"],
    ];
    PHRASES
        .iter()
        .any(|phrase| find(tokens, phrase, 0).is_some())
}

/// Phrases by which a sentence states that something has a day by which it is wanted.
pub(crate) fn deadlines(tokens: &[Token]) -> Vec<usize> {
    (0..tokens.len())
        .filter(|at| {
            let token = &tokens[*at];
            let is_past = at
                .checked_sub(1)
                .is_some_and(|it| tokens[it].is_one_of(&["was", "were", "been"]));
            let after = &tokens[at + 1..];
            let is_cue = match token.text.as_str() {
                "deadline" => true,
                "due" => !after.first().is_some_and(|it| it.is_word("to")),
                "must" | "should" => stands(after, &["be"]),
                "needs" | "has" | "have" | "need" => stands(after, &["to", "be"]),
                "needed" | "required" | "expected" | "wanted" => after
                    .first()
                    .is_some_and(|it| it.is_one_of(&["by", "on", "no", "before"])),
                "until" | "till" => at
                    .checked_sub(1)
                    .is_some_and(|it| tokens[it].is_one_of(&["have", "has"])),
                "delivery" => after.first().is_some_and(|it| it.is_word("date")),
                _ => false,
            };
            is_cue && !is_past && token.kind == Kind::Word
        })
        .collect()
}

/// Whether the words from `from` to `to` announce what somebody will do.
pub(crate) fn promises(tokens: &[Token], from: usize, to: usize) -> bool {
    (from..to.min(tokens.len())).any(|at| {
        let token = &tokens[at];
        let next = tokens.get(at + 1);
        let is_asked =
            next.is_some_and(|it| it.is_one_of(&["you", "need", "require", "appreciate"]));
        let is_future = token.is_one_of(&["will", "shall", "won't"]) || token.text.ends_with("'ll");
        let subject = at
            .checked_sub(1)
            .is_some_and(|it| tokens[it].is_one_of(&["i", "we", "he", "she", "they", "it"]));
        let is_able = token.is_one_of(&[
            "can", "could", "plan", "hope", "intend", "expect", "aim", "promise",
        ]) && subject;
        let is_going = token.is_word("going") && next.is_some_and(|it| it.is_word("to"));
        let is_away = token.is_one_of(&["away", "closed", "holiday", "leave"]);
        ((is_future || is_able) && !is_asked) || is_going || is_away
    })
}

/// Whether the words from `from` to `to` tell of what has happened.
pub(crate) fn tells_past(tokens: &[Token], from: usize, to: usize) -> bool {
    const DONE: &[&str] = &[
        "discussed",
        "sent",
        "agreed",
        "mentioned",
        "talked",
        "spoke",
        "met",
        "received",
        "shared",
        "signed",
        "asked",
        "wrote",
        "said",
        "promised",
        "delivered",
        "shipped",
        "paid",
        "issued",
        "posted",
        "emailed",
        "submitted",
        "started",
        "began",
        "arrived",
        "happened",
        "held",
        "ordered",
        "bought",
        "called",
        "presented",
        "published",
        "got",
        "made",
    ];
    const SUBJECTS: &[&str] = &[
        "i", "we", "you", "he", "she", "they", "it", "which", "that", "who", "have", "has", "i've",
        "we've", "you've", "they've",
    ];
    (from..to.min(tokens.len())).any(|at| {
        let token = &tokens[at];
        let subject = at.checked_sub(1).is_some_and(|it| {
            let before = &tokens[it];
            before.is_one_of(SUBJECTS) || (before.is_capital && it > 0)
        });
        token.is_one_of(&["was", "were", "had", "did", "ago"]) || (token.is_one_of(DONE) && subject)
    })
}

/// Whether the nearest verb from `from` to `to` is about meeting rather than delivering.
pub(crate) fn is_about_meeting(tokens: &[Token], from: usize, to: usize) -> bool {
    const MEETING: &[&str] = &[
        "meet",
        "join",
        "attend",
        "call",
        "speak",
        "talk",
        "come",
        "visit",
        "discuss",
        "meeting",
        "appointment",
        "lunch",
        "dinner",
        "interview",
        "webinar",
        "event",
        "party",
        "available",
        "free",
        "see",
        "session",
        "workshop",
    ];
    let last = (from..to.min(tokens.len()))
        .rev()
        .find(|at| tokens[*at].is_one_of(MEETING) || tokens[*at].is_one_of(IMPERATIVES));
    last.is_some_and(|at| tokens[at].is_one_of(MEETING))
}

/// Whether the clause around `at` denies what it says.
pub(crate) fn is_negated(tokens: &[Token], at: usize) -> bool {
    let (start, end) = clause(tokens, at);
    (start..end).any(|at| {
        let token = &tokens[at];
        let after = &tokens[at + 1..];
        let is_exempt = after.first().is_some_and(|it| {
            it.is_one_of(&["later", "forget", "sooner", "only", "already", "hesitate"])
        });
        let is_no = token.is_one_of(&[
            "not", "never", "cannot", "without", "neither", "nor", "nothing", "rather",
        ]) || token.text.ends_with("n't")
            || (token.is_word("instead") && at > start);
        let is_none = token.is_word("no")
            && after.first().is_some_and(|it| {
                it.is_one_of(&[
                    "need", "longer", "action", "payment", "deadline", "rush", "hurry", "request",
                    "further", "amount", "money", "fee", "charge", "one", "delivery",
                ])
            });
        let is_off = token.is_one_of(&[
            "cancelled",
            "canceled",
            "postponed",
            "obsolete",
            "withdrawn",
        ]);
        (is_no && !is_exempt) || is_none || is_off
    })
}

/// Whether a condition governs the clause around `at`.
pub(crate) fn is_conditional(tokens: &[Token], at: usize) -> bool {
    let (start, _) = clause(tokens, at);
    (start..at).any(|at| {
        let after = &tokens[at + 1..];
        let is_polite = [
            &["possible"][..],
            &["you", "can"],
            &["at", "all"],
            &["necessary"],
        ]
        .iter()
        .any(|it| stands(after, it));
        let is_thanks =
            at > 0 && tokens[at - 1].is_one_of(&["grateful", "appreciate", "it", "know"]);
        let is_inverted =
            tokens[at].is_word("should") && after.first().is_some_and(|it| it.is_word("you"));
        let opens = tokens[at].is_one_of(&["if", "unless", "once", "when", "assuming", "provided"]);
        (opens || is_inverted) && !is_polite && !is_thanks
    })
}

/// Whether the words at `at` are told, not said, by the author.
pub(crate) fn is_reported(tokens: &[Token], at: usize) -> bool {
    let before = &tokens[..at.min(tokens.len())];
    let tells = before.iter().enumerate().any(|(at, token)| {
        let is_own = at > 0 && before[at - 1].is_one_of(&["as", "i", "i've", "we"]);
        token.is_one_of(&[
            "said", "says", "wrote", "writes", "told", "tells", "asked", "asks", "claims",
            "claimed",
        ]) && !is_own
    });
    let plain = before.iter().filter(|it| it.is_sign("\"")).count();
    let opened = before
        .iter()
        .filter(|it| it.is_sign("“") || it.is_sign("„") || it.is_sign("«"))
        .count();
    let closed = before
        .iter()
        .filter(|it| it.is_sign("”") || it.is_sign("»"))
        .count();
    tells || plain % 2 == 1 || opened > closed
}

/// Whether the sentence asks if something is so, before `at`.
pub(crate) fn is_asked_about(tokens: &[Token], at: usize) -> bool {
    let before = &tokens[..at.min(tokens.len())];
    before.iter().any(|it| it.is_word("whether"))
}

/// The clause around `at`: up to a comma, a dash, or a word that begins another clause.
fn clause(tokens: &[Token], at: usize) -> (usize, usize) {
    let ends = |token: &Token| {
        token.is_sign(",")
            || token.is_sign("–")
            || token.is_sign("—")
            || token.is_sign(";")
            || token.is_one_of(&["but", "because"])
    };
    let start = (0..at.min(tokens.len()))
        .rev()
        .find(|it| ends(&tokens[*it]))
        .map_or(0, |it| it + 1);
    let end = (at..tokens.len())
        .find(|it| ends(&tokens[*it]))
        .unwrap_or(tokens.len());
    (start, end)
}

/// What ties a date to its sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// By that day.
    By,
    /// Before that day, without it.
    Before,
    /// On that day.
    On,
    /// Nothing: the date may belong to a noun.
    Bare,
    /// It is a topic, an origin or a start.
    Other,
}

/// What ties the date from `start` to `end`.
pub(crate) fn tie(
    tokens: &[Token],
    start: usize,
    end: usize,
    is_end_of_period: bool,
    is_bare: bool,
) -> Tie {
    if stands(&tokens[end..], &["at", "the", "latest"]) || stands(&tokens[end..], &["latest"]) {
        return Tie::By;
    }
    let mut at = start;
    let mut has_on = false;
    let mut has_time = false;
    while at > 0 && start - at < NEAR && is_between(&tokens[at - 1]) {
        at -= 1;
        has_on |= tokens[at].is_word("on");
        has_time |= tokens[at].kind == Kind::Number
            || tokens[at].is_one_of(&["noon", "midnight", "midday"]);
    }
    let loose = match (has_on, is_bare || !follows_freely(tokens, end)) {
        (true, _) | (false, false) => Tie::On,
        (false, true) => Tie::Bare,
    };
    let Some(word) = at.checked_sub(1).map(|it| &tokens[it]) else {
        return loose;
    };
    let earlier = &tokens[at.saturating_sub(NEAR)..at];
    match word.text.as_str() {
        "by" | "due" | "deadline" => Tie::By,
        "before" if is_end_of_period || has_time => Tie::By,
        "before"
            if earlier
                .iter()
                .rev()
                .skip(1)
                .take(1)
                .any(|it| it.is_word("or")) =>
        {
            Tie::By
        }
        "before" => Tie::Before,
        "than" if earlier.iter().any(|it| it.is_word("later")) => Tie::By,
        "until" | "till"
            if earlier
                .iter()
                .rev()
                .take(4)
                .any(|it| it.is_one_of(&["have", "has"])) =>
        {
            Tie::By
        }
        "date" if earlier.iter().any(|it| it.is_one_of(&["due", "delivery"])) => Tie::By,
        "is" | "are" | "=" if names_deadline(earlier) => Tie::By,
        "from" | "of" | "since" | "dated" | "after" | "between" | "through" | "during" | "for"
        | "than" | "until" | "till" | "to" | "about" | "as" | "starting" | "is" | "are" | "was"
        | "were" | "date" => Tie::Other,
        _ if tokens.get(at).is_some_and(|it| it.is_sign(":")) && names_deadline(earlier) => Tie::By,
        _ => loose,
    }
}

fn names_deadline(earlier: &[Token]) -> bool {
    earlier.iter().any(|it| it.is_word("deadline"))
        || find(earlier, &["due", "date"], 0).is_some()
        || find(earlier, &["delivery", "date"], 0).is_some()
}

/// Words between a preposition and its day: "by 5 pm on the", "by close of business on".
fn is_between(token: &Token) -> bool {
    let is_time = token.kind == Kind::Number
        && (token.text.contains(':') || token.text.parse::<u8>().is_ok_and(|it| it <= 24));
    let is_sign = token.is_sign(",") || token.is_sign("(") || token.is_sign(":");
    is_time
        || is_sign
        || token.is_one_of(&[
            "on",
            "the",
            "at",
            "latest",
            "noon",
            "midday",
            "midnight",
            "am",
            "pm",
            "morning",
            "afternoon",
            "evening",
            "o'clock",
            "cet",
            "gmt",
            "utc",
            "very",
        ])
}

/// Whether no noun follows that the date may modify.
fn follows_freely(tokens: &[Token], end: usize) -> bool {
    tokens.get(end).is_none_or(|it| {
        it.kind == Kind::Sign
            || it.is_one_of(&[
                "please", "at", "and", "so", "if", "latest", "because", "as", "or", "by", "to",
                "for",
            ])
    })
}

/// Whether a bare date is followed by nothing that it could modify.
pub(crate) fn stands_alone(tokens: &[Token], end: usize) -> bool {
    tokens
        .get(end)
        .is_none_or(|it| it.kind == Kind::Sign || it.is_one_of(&["please", "at"]))
}
