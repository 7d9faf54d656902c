//! Parameters of MIME fields: continuations and character sets (RFC 2231).

use mail_parser::decoders::charsets::map::charset_decoder;

/// The most pieces of one value.
const MAX_PIECES: usize = 64;

/// One piece of a value.
struct Piece {
    number: usize,
    is_encoded: bool,
    value: String,
}

/// The value of a parameter in a field that stands on one line.
pub(super) fn value(field: &str, wanted: &str) -> Option<String> {
    let mut plain = None;
    let mut pieces: Vec<Piece> = Vec::new();
    for (name, value) in parameters(field) {
        let lower = name.to_ascii_lowercase();
        let Some(rest) = lower.strip_prefix(wanted) else {
            continue;
        };
        if rest.is_empty() {
            plain.get_or_insert(value);
            continue;
        }
        let Some(rest) = rest.strip_prefix('*') else {
            continue;
        };
        let (number, is_encoded) = match rest.strip_suffix('*') {
            Some(number) => (number, true),
            None => (rest, rest.is_empty()),
        };
        let number = if number.is_empty() {
            Some(0)
        } else {
            number.parse().ok()
        };
        if let Some(number) = number.filter(|_| pieces.len() < MAX_PIECES) {
            pieces.push(Piece {
                number,
                is_encoded,
                value,
            });
        }
    }
    if pieces.is_empty() {
        return plain.map(|it| words(&it));
    }
    pieces.sort_by_key(|piece| piece.number);
    Some(joined(&pieces))
}

/// Joins pieces; only those that say so are percent-encoded, and the first names the character set.
fn joined(pieces: &[Piece]) -> String {
    let mut charset = String::new();
    let mut bytes = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let mut value = piece.value.as_str();
        if at == 0 && piece.is_encoded {
            let mut parts = value.splitn(3, '\'');
            if let (Some(label), Some(_), Some(rest)) = (parts.next(), parts.next(), parts.next()) {
                charset = label.to_ascii_lowercase();
                value = rest;
            }
        }
        if piece.is_encoded {
            bytes.extend(percent_decoded(value));
        } else {
            bytes.extend_from_slice(value.as_bytes());
        }
    }
    match (
        String::from_utf8(bytes),
        charset_decoder(charset.as_bytes()),
    ) {
        (Ok(text), _) => text,
        (Err(error), Some(decode)) => decode(error.as_bytes()),
        (Err(error), None) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

/// Names and values of the parameters behind the first `;`.
fn parameters(field: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut rest = field.split_once(';').map_or("", |(_, rest)| rest);
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches(|it: char| it.is_whitespace() || it == ';');
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted_value(quoted),
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        found.push((name, value));
        rest = next.split_once(';').map_or("", |(_, rest)| rest);
    }
    found
}

/// A quoted string whose opening quote was taken, and what follows it.
fn quoted_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '\\' if !is_escaped => is_escaped = true,
            '"' if !is_escaped => return (value, &text[at + 1..]),
            _ => {
                value.push(character);
                is_escaped = false;
            }
        }
    }
    (value, "")
}

/// Decodes encoded words, which have no place in parameters and stand there all the same.
fn words(text: &str) -> String {
    if !text.contains("=?") {
        return text.to_owned();
    }
    let field = format!("Subject: {text}\r\n\r\n");
    let parsed = mail_parser::MessageParser::default().parse(field.as_bytes());
    let decoded = parsed.as_ref().and_then(|it| it.subject());
    decoded.unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_pieces_by_number_and_decodes_only_those_that_are_encoded() {
        let field = "attachment; filename*10=\"z\"; filename*0*=UTF-8''..%2Ft%2F; filename*1=\"5%25 \"; filename*2*=%E2%82%AC";
        assert_eq!(value(field, "filename").as_deref(), Some("../t/5%25 €z"));
    }

    #[test]
    fn reads_the_usual_forms() {
        let rows = [
            ("attachment; filename=a.pdf", Some("a.pdf")),
            (
                "attachment; filename=\"a; b\\\"c.pdf\"; size=3",
                Some("a; b\"c.pdf"),
            ),
            ("attachment; FILENAME = a.pdf ", Some("a.pdf")),
            ("attachment; filename*=ISO-8859-1'en'%A3.txt", Some("£.txt")),
            (
                "attachment; filename=\"=?utf-8?Q?=C3=A9.txt?=\"",
                Some("é.txt"),
            ),
            ("attachment", None),
            ("attachment; filename", None),
            ("attachment; filename*x=1", None),
            ("attachment; filename=\"open", Some("open")),
        ];
        for (field, expected) in rows {
            assert_eq!(value(field, "filename").as_deref(), expected, "{field}");
        }
    }
}
