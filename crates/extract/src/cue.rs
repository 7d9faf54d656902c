//! The words around a date or an amount that say what it is for.

mod condition;
mod deadline;
mod meeting;
mod promise;
mod request;
mod tie;
mod told;

pub(crate) use self::condition::{condition_follows, is_conditional};
pub(crate) use self::deadline::{deadlines, introduces_tasks};
pub(crate) use self::meeting::{Meeting, is_off, meeting};
pub(crate) use self::promise::{
    Promise, begins_other_clause, commitments, is_hedged, is_said_to_others,
};
use self::request::IMPERATIVES;
pub(crate) use self::request::{Cue, is_unwanted, requests};
pub(crate) use self::tie::{Tie, has_unread_deadline, stands_alone, tie};
pub(crate) use self::told::{introduces_words_of_others, is_asked_about, is_reported};
use crate::token::{Kind, Token, stands};

/// How far around a word its meaning is looked for.
const NEAR: usize = 8;

/// Whether the words from `from` to `to` announce what somebody will do.
pub(crate) fn promises(tokens: &[Token], from: usize, to: usize) -> bool {
    (from..to.min(tokens.len())).any(|at| {
        let token = &tokens[at];
        let next = tokens.get(at + 1);
        // "you will have to"
        let is_duty = stands(&tokens[at + 1..], &["have", "to"])
            && (token.is_word("you'll") || (at > 0 && tokens[at - 1].is_word("you")));
        let is_asked = is_duty
            || next.is_some_and(|it| it.is_one_of(&["you", "need", "require", "appreciate"]));
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
    (from..to.min(tokens.len())).any(|at| {
        let is_told = tokens[at].is_one_of(DONE) && !describes_a_thing(tokens, at);
        is_told || tokens[at].is_one_of(&["was", "were", "had", "did", "ago"])
    })
}

/// Whether a participle belongs to a noun or a passive: "the signed copy", "must be signed".
fn describes_a_thing(tokens: &[Token], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| {
        let before = &tokens[before];
        before.kind == Kind::Number
            || before.is_one_of(&[
                "the", "a", "an", "your", "our", "my", "all", "any", "these", "those", "this",
                "both", "two", "three", "each", "every", "be", "being",
            ])
    })
}

/// Whether the words from `from` to `to` ask for a delivery on the day that follows, rather than
/// for a meeting, and tell of nothing else that was or is on that day.
pub(crate) fn asks_for_delivery_on(
    tokens: &[Token],
    from: usize,
    to: usize,
    needs_verb: bool,
) -> bool {
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
    // "tickets for the match on": the day is that of the event.
    const EVENTS: &[&str] = &[
        "match", "game", "concert", "show", "flight", "train", "trip", "exam", "wedding",
        "birthday", "race", "stay", "course", "class", "hearing", "trial",
    ];
    const OTHER_CLAUSE: &[&str] = &[
        "why", "what", "how", "when", "where", "who", "that", "which", "whether", "while", "left",
        "went", "came", "took", "gave", "got", "brought", "saw", "ran", "fell", "broke", "lost",
        "found", "made", "is", "are",
    ];
    let words = || from..to.min(tokens.len());
    // What is to be made sure of may be told as if it were so.
    let is_state = words().any(|at| {
        [
            &["make", "sure"][..],
            &["see", "that"],
            &["see", "to"],
            &["ensure"],
        ]
        .iter()
        .any(|it| stands(&tokens[at..], it))
    });
    let tells_other = !is_state
        && words().any(|at| {
            let is_past = tokens[at].text.len() > 4
                && tokens[at].text.ends_with("ed")
                && !tokens[at].is_word("need");
            let is_other = tokens[at].is_one_of(OTHER_CLAUSE);
            (is_past || is_other) && !describes_a_thing(tokens, at)
        });
    let is_call = |at: usize| {
        let is_noun = at
            .checked_sub(1)
            .is_some_and(|it| tokens[it].is_one_of(&["a", "the", "our", "quick", "short", "for"]));
        tokens[at].is_word("call") && !is_noun
    };
    // "Please confirm the delivery on": the day is that of the thing.
    const ABOUT_A_THING: &[&str] = &["confirm", "cancel", "approve", "check"];
    let is_about_a_thing = |at: usize| {
        tokens[at].is_one_of(ABOUT_A_THING)
            && tokens[at + 1..to]
                .iter()
                .any(|it| it.is_one_of(&["the", "your", "our", "my", "a"]))
    };
    let last_verb = words()
        .rev()
        .find(|at| tokens[*at].is_one_of(MEETING) || tokens[*at].is_one_of(IMPERATIVES));
    let is_delivery = match last_verb {
        _ if is_state => true,
        Some(at) if tokens[at].is_one_of(MEETING) => is_call(at),
        Some(at) if is_about_a_thing(at) => false,
        Some(_) => true,
        None => !needs_verb,
    };
    let is_of_event = words().any(|at| {
        let lead = &tokens[at.saturating_sub(3).max(from)..at];
        tokens[at].is_one_of(EVENTS)
            && lead
                .iter()
                .any(|it| it.is_one_of(&["for", "from", "of", "about", "to"]))
    });
    is_delivery && !tells_other && !is_of_event
}

/// Whether the clause around `at` denies what it says.
pub(crate) fn is_negated(tokens: &[Token], at: usize) -> bool {
    let (start, end) = clause(tokens, at);
    (start..end).any(|at| {
        let token = &tokens[at];
        let after = &tokens[at + 1..];
        let is_untroubled = token.is_word("without")
            && after.first().is_some_and(|it| {
                it.is_one_of(&[
                    "deduction",
                    "deductions",
                    "delay",
                    "fail",
                    "undue",
                    "further",
                    "exception",
                    "notice",
                ])
            });
        let is_exempt = is_untroubled
            || after.first().is_some_and(|it| {
                it.is_one_of(&["later", "forget", "sooner", "only", "already", "hesitate"])
            });
        let is_no = token.is_one_of(&[
            "not",
            "never",
            "cannot",
            "without",
            "neither",
            "nor",
            "nothing",
            "rather",
            "refrain",
            "refraining",
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

/// Whether a reason begins between `from` and `at`, whose days are not what is asked for.
pub(crate) fn gives_reason(tokens: &[Token], from: usize, at: usize) -> bool {
    // "since Monday" is a start, not a reason.
    let end = at.min(tokens.len()).saturating_sub(1);
    (from..end).any(|at| tokens[at].is_one_of(&["because", "since"]))
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
