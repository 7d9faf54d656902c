use super::*;
use crate::token::steps;
use crate::{Mailbox, Origin, TextPart};

/// Each would take hours on a long message if the work grew with the square of it.
const HOSTILE: &[&str] = &[
    "please send it by Friday ",
    "I will meet you on Friday at 3 pm ",
    "let's meet Friday or Friday or ",
    "+44 20 79",
    "call me on +44 ",
    "a.b@",
    "pay EUR 1.234,56 not ",
    "9.",
    "1 ",
    "please\n",
    "- by 3 November 2026\n",
    "Please:\n",
    "“said ",
    "14 November ",
    "next Friday, next Friday. ",
    "will you we i'll you'll have the ",
    "regards\nT: +\n",
    "end of the end of ",
];

fn steps_of(text: String, origin: Origin) -> u64 {
    let message = Message {
        from: Some(Mailbox::default()),
        text: vec![TextPart { origin, text }],
        ..Message::default()
    };
    steps::of(|| read(&message))
}

#[test]
fn the_work_grows_with_the_text_and_no_faster() {
    for origin in [Origin::Author, Origin::Signature] {
        for piece in HOSTILE {
            let steps = |bytes: usize| steps_of(piece.repeat(bytes / piece.len()), origin);
            let (some, more) = (steps(4096), steps(16_384));
            assert!(
                more <= 5 * some + 10_000,
                "{piece:?} as {origin:?}: {some} steps, and {more} for four times the text"
            );
        }
    }
}
