//! How large one policy may be.
//!
//! Reading, typing and evaluating a policy recurse as deeply as its text nests, and a stack that
//! overflows takes the process with it. So the nesting is bounded before anything parses the text,
//! by what every text has to spend on it: brackets that are open at once, and operators.

use crate::tokens::{Token, Tokens};

/// The most brackets that are open at once.
const MAX_OPEN: usize = 24;
/// The most operators of one policy: each can nest the expression once more.
const MAX_OPERATORS: usize = 200;

/// Refuses a text that could nest too deeply; the error says what there is too much of.
pub(crate) fn check(text: &str) -> Result<(), &'static str> {
    let (mut open, mut operators) = (0_usize, 0_usize);
    for token in Tokens::of(text) {
        let nests = match token {
            Token::Sign("(" | "[" | "{") => {
                open += 1;
                false
            }
            Token::Sign(")" | "]" | "}") => {
                open = open.saturating_sub(1);
                false
            }
            Token::Sign(sign) => is_operator(sign),
            Token::Word(word) => matches!(word, "if" | "when" | "unless"),
            Token::Text => false,
        };
        operators += usize::from(nests);
        if open > MAX_OPEN {
            return Err("it nests too deeply: at most 24 brackets may be open at once");
        }
        if operators > MAX_OPERATORS {
            return Err("it has too many operators: at most 200, so split it");
        }
    }
    Ok(())
}

fn is_operator(sign: &str) -> bool {
    sign.starts_with(['&', '|', '+', '-', '*', '!', '.', '<', '>', '='])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nests_is_counted() {
        let long = format!("[{}]", vec!["\"a.b && (((\""; 1000].join(", "));
        assert_eq!(check(&long), Ok(()));
        assert_eq!(check(&format!("// {}\n", "(".repeat(100))), Ok(()));
        assert_eq!(check(&"(".repeat(MAX_OPEN)), Ok(()));
        assert!(check(&"(".repeat(MAX_OPEN + 1)).is_err());
        assert!(check(&format!("\"\\\"\"{}", "(".repeat(MAX_OPEN + 1))).is_err());
        assert_eq!(check(&"a && ".repeat(MAX_OPERATORS)), Ok(()));
        assert!(check(&"a && ".repeat(MAX_OPERATORS + 1)).is_err());
        assert!(check(&"if a then ".repeat(MAX_OPERATORS + 1)).is_err());
        assert!(check(&".a".repeat(MAX_OPERATORS + 1)).is_err());
        for text in ["\"", "\"\\", "é(", "//", "/", "\u{1F600}.", "&", "|||"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }
}
