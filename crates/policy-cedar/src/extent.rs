//! How large one policy may be.
//!
//! Reading, typing and evaluating a policy recurse as deeply as its text nests, and a stack that
//! overflows takes the process with it. So the nesting is bounded before anything parses the text,
//! by what every text has to spend on it: brackets that are open at once, and operators.

/// The most brackets that are open at once.
const MAX_OPEN: usize = 24;
/// The most operators of one policy: each can nest the expression once more.
const MAX_OPERATORS: usize = 200;

/// Refuses a text that could nest too deeply; the error says what there is too much of.
pub(crate) fn check(text: &str) -> Result<(), &'static str> {
    let mut rest = text;
    let (mut open, mut operators) = (0_usize, 0_usize);
    while let Some(first) = rest.chars().next() {
        let (length, nests) = match first {
            '"' => (string_length(rest), false),
            '/' if rest.starts_with("//") => (line_length(rest), false),
            '(' | '[' | '{' => {
                open += 1;
                (1, false)
            }
            ')' | ']' | '}' => {
                open = open.saturating_sub(1);
                (1, false)
            }
            _ if is_word(first) => {
                let length = rest.find(|next| !is_word(next)).unwrap_or(rest.len());
                (length, matches!(&rest[..length], "if" | "when" | "unless"))
            }
            '&' | '|' => {
                let doubled = rest.chars().take_while(|next| *next == first).count();
                (doubled.min(2), true)
            }
            '+' | '-' | '*' | '!' | '.' | '<' | '>' | '=' => (1, true),
            _ => (first.len_utf8(), false),
        };
        operators += usize::from(nests);
        if open > MAX_OPEN {
            return Err("it nests too deeply: at most 24 brackets may be open at once");
        }
        if operators > MAX_OPERATORS {
            return Err("it has too many operators: at most 200, so split it");
        }
        rest = &rest[length..];
    }
    Ok(())
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The length of a string literal with its quotes, or of all that is left if it does not end.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

fn line_length(text: &str) -> usize {
    text.find(['\n', '\r']).unwrap_or(text.len())
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
