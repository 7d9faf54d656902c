//! What the author tells of others, or only asks about.

use crate::token::{Kind, Token, find, stands};

/// Whether a line introduces the words of somebody else: "Tom wrote:", "The client says:", "His answer:".
pub(crate) fn introduces_words_of_others(tokens: &[Token]) -> bool {
    const VERBS: &[&str] = &[
        "wrote", "writes", "said", "says", "replied", "replies", "answered", "answers", "asked",
        "asks", "texted", "emailed", "quote", "told",
    ];
    const WORDS: &[&str] = &[
        "mail", "email", "message", "letter", "answer", "reply", "words", "note",
    ];
    let last_verb = tokens.iter().rposition(|it| it.is_one_of(VERBS));
    let by_author = last_verb
        .and_then(|at| at.checked_sub(1))
        .is_some_and(|at| tokens[at].is_one_of(&["i", "we", "i've", "we've"]));
    let is_said = last_verb.is_some_and(|at| tokens.len() - at <= 6) && !by_author;
    // "FYI, from Tom:", "See the mail from Tom:"
    let is_handed_on = tokens
        .iter()
        .any(|it| it.is_one_of(WORDS) || it.is_one_of(&["fyi", "below", "fw", "fwd"]))
        && tokens.windows(2).any(|it| {
            it[0].is_one_of(&["from", "of", "by"]) && it[1].is_capital && it[1].kind == Kind::Word
        });
    let is_theirs = tokens.windows(2).any(|it| {
        let owner = it[0].is_one_of(&["his", "her", "their"])
            || (it[0].kind == Kind::Word && it[0].is_capital && it[0].text.ends_with("'s"));
        owner && it[1].is_one_of(WORDS)
    });
    is_said || is_theirs || is_handed_on
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
    let is_according = find(before, &["according", "to"], 0).is_some();
    let plain = before.iter().filter(|it| it.is_sign("\"")).count();
    let opened = before
        .iter()
        .filter(|it| it.is_sign("“") || it.is_sign("„") || it.is_sign("«"))
        .count();
    let closed = before
        .iter()
        .filter(|it| it.is_sign("”") || it.is_sign("»"))
        .count();
    // "For example: please pay"
    let is_example = [&["for", "example"][..], &["for", "instance"]]
        .iter()
        .any(|it| stands(before, it))
        && before
            .get(2)
            .is_some_and(|it| it.is_sign(":") || it.is_sign(",") || it.is_sign("\""));
    tells || is_according || is_example || plain % 2 == 1 || opened > closed
}

/// Whether the sentence asks if something is so, before `at`.
pub(crate) fn is_asked_about(tokens: &[Token], at: usize) -> bool {
    let before = &tokens[..at.min(tokens.len())];
    (0..before.len()).any(|at| {
        let asks = at > 0
            && before[at - 1].is_one_of(&[
                "know",
                "check",
                "ask",
                "wonder",
                "wondering",
                "sure",
                "unsure",
            ]);
        before[at].is_word("whether") || (before[at].is_word("if") && asks)
    })
}
