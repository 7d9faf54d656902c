//! The words and signs of a policy's text, without parsing it.

/// One of them. White space and comments are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A name, a keyword or a number.
    Word(&'a str),
    /// A string literal with its quotes; the last one may lack its end.
    Text,
    /// `&&` or `||`, or one character that is no word.
    Sign(&'a str),
}

/// Reads a text from its start to its end.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    pub(crate) const fn of(text: &'a str) -> Self {
        Self(text)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.0;
            let first = rest.chars().next()?;
            let is_comment = rest.starts_with("//");
            let length = match first {
                '"' => string_length(rest),
                '/' if is_comment => line_length(rest),
                _ if is_word(first) => rest.find(|next| !is_word(next)).unwrap_or(rest.len()),
                '&' | '|' => rest
                    .chars()
                    .take_while(|next| *next == first)
                    .take(2)
                    .count(),
                _ => first.len_utf8(),
            };
            let (read, rest) = rest.split_at(length);
            self.0 = rest;
            return Some(match first {
                _ if is_comment || first.is_whitespace() => continue,
                '"' => Token::Text,
                _ if is_word(first) => Token::Word(read),
                _ => Token::Sign(read),
            });
        }
    }
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_and_comments_hide_what_is_in_them() {
        let text = "a.b9 \"x \\\" resource\" // resource\n&&& |\r\n(é";
        let tokens: Vec<_> = Tokens::of(text).collect();
        let expected = [
            Token::Word("a"),
            Token::Sign("."),
            Token::Word("b9"),
            Token::Text,
            Token::Sign("&&"),
            Token::Sign("&"),
            Token::Sign("|"),
            Token::Sign("("),
            Token::Word("é"),
        ];
        assert_eq!(tokens, expected);
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in ".{0,64}") {
            prop_assert!(Tokens::of(&text).count() <= text.chars().count());
        }
    }
}
