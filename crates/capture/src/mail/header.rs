//! The fields of a header, cut by our own hand: a field that a value's parser trips over must not
//! take its neighbours along.

/// How much of a header is read.
pub(super) const MAX_HEADER_BYTES: usize = 1024 * 1024;

/// A field as it stands in the header.
pub(super) struct Field<'a> {
    /// Its name in lower case.
    pub(super) name: String,
    /// Its value, folds included.
    pub(super) raw: &'a [u8],
}

/// The message without empty lines and a byte order mark in front.
pub(super) fn trimmed(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let blank = bytes
        .iter()
        .take_while(|byte| matches!(**byte, b'\r' | b'\n'))
        .count();
    &bytes[blank..]
}

/// Whether a line ends a header.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line == b"\n" || line == b"\r\n"
}

/// The fields up to the first empty line, within the bound. Lines that are neither a field nor the
/// rest of one are passed over.
pub(super) fn fields(bytes: &[u8]) -> Vec<Field<'_>> {
    let bytes = &bytes[..bytes.len().min(MAX_HEADER_BYTES)];
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut at = 0;
    // Where the value of the field began to which the next line may belong.
    let mut open = None;
    while at < bytes.len() {
        let end = bytes[at..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(bytes.len(), |it| at + it + 1);
        let line = &bytes[at..end];
        if is_blank(line) {
            break;
        }
        let is_rest = line.starts_with(b" ") || line.starts_with(b"\t");
        match (is_rest, open, field_name(line)) {
            (true, Some(start), _) => {
                if let Some(field) = fields.last_mut() {
                    field.raw = &bytes[start..end];
                }
            }
            (false, _, Some((name, length))) => {
                open = Some(at + length);
                fields.push(Field {
                    name,
                    raw: &bytes[at + length..end],
                });
            }
            (true, None, _) | (false, _, None) => open = None,
        }
        at = end;
    }
    fields
}

/// The name before the colon, and how many bytes it takes with it.
fn field_name(line: &[u8]) -> Option<(String, usize)> {
    let length = line
        .iter()
        .take_while(|byte| matches!(**byte, b'!'..=b'9' | b';'..=b'~'))
        .count();
    let gap = line[length..]
        .iter()
        .take_while(|byte| matches!(**byte, b' ' | b'\t'))
        .count();
    let is_field = length > 0 && line.get(length + gap) == Some(&b':');
    let name = String::from_utf8_lossy(&line[..length]).to_ascii_lowercase();
    is_field.then_some((name, length + gap + 1))
}

/// A raw value on one line.
pub(super) fn one_line(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fields_as_they_stand() {
        let header = b"From nobody\nA: 1\r\n 2\nb :3\n: none\nno field\n\tlost\nC:\n\nD: 4\n";
        let found: Vec<_> = fields(header)
            .iter()
            .map(|it| (it.name.clone(), one_line(it.raw)))
            .collect();
        let expected = [("a", "1 2"), ("b", "3"), ("c", "")];
        assert_eq!(
            found,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert!(fields(b"").is_empty() && fields(b"\n\n").is_empty());
        assert!(fields(&[0xff, 0xfe, 0, 1, b':']).is_empty());
        assert_eq!(trimmed(b"\xef\xbb\xbf\r\n\nA: b"), b"A: b");
    }
}
