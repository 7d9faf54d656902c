//! The fields of a header, cut by our own hand: a field that a value's parser trips over must not
//! take its neighbours along.

/// How much of the headers of a message is read.
pub(super) const MAX_HEADER_BYTES: usize = 16 * 1024 * 1024;

/// The most fields that are kept of one header; any number of others is passed over.
const MAX_KEPT: usize = 20_000;

/// The fields that anything is made of.
const KEPT: &[&str] = &[
    "arc-message-signature",
    "authentication-results",
    "auto-submitted",
    "cc",
    "content-disposition",
    "content-transfer-encoding",
    "content-type",
    "date",
    "dkim-signature",
    "feedback-id",
    "from",
    "in-reply-to",
    "list-id",
    "list-post",
    "list-unsubscribe",
    "message-id",
    "precedence",
    "received",
    "references",
    "reply-to",
    "return-path",
    "sender",
    "status",
    "subject",
    "to",
    "x-autoreply",
    "x-autorespond",
    "x-campaign-id",
    "x-mozilla-status",
    "x-spam-flag",
    "x-status",
    "x-unsent",
];

/// A field as it stands in the header.
pub(super) struct Field<'a> {
    /// Its name in lower case.
    pub(super) name: &'static str,
    /// Its value, folds included.
    pub(super) raw: &'a [u8],
    /// Which field of the header it is.
    pub(super) place: usize,
}

/// A header.
#[derive(Default)]
pub(super) struct Header<'a> {
    /// The fields that anything is made of, in order.
    pub(super) fields: Vec<Field<'a>>,
    /// How many fields there are of any name.
    pub(super) count: usize,
    /// Some field is not UTF-8.
    pub(super) has_other_bytes: bool,
    /// Not all fields were kept that something could be made of.
    pub(super) is_cut: bool,
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
pub(super) fn fields(bytes: &[u8]) -> Header<'_> {
    let bytes = &bytes[..bytes.len().min(MAX_HEADER_BYTES)];
    let mut header = Header::default();
    let mut at = 0;
    // Where the value of the field began to which the next line may belong, and whether it is kept.
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
            (true, Some((start, is_kept)), _) => {
                if let Some(field) = header.fields.last_mut().filter(|_| is_kept) {
                    field.raw = &bytes[start..end];
                }
            }
            (false, _, Some((name, length))) => {
                let name = KEPT
                    .iter()
                    .find(|it| it.as_bytes().eq_ignore_ascii_case(name));
                let is_kept = name.is_some() && header.fields.len() < MAX_KEPT;
                header.is_cut |= name.is_some() && !is_kept;
                if let Some(name) = name.filter(|_| is_kept) {
                    header.fields.push(Field {
                        name,
                        raw: &bytes[at + length..end],
                        place: header.count,
                    });
                }
                header.count += 1;
                open = Some((at + length, is_kept));
            }
            (true, None, _) | (false, _, None) => open = None,
        }
        // A fold within a character is no field of valid text, and so it may count as other bytes.
        header.has_other_bytes |= open.is_some() && std::str::from_utf8(line).is_err();
        at = end;
    }
    header
}

/// The name before the colon, and how many bytes it takes with it.
fn field_name(line: &[u8]) -> Option<(&[u8], usize)> {
    let length = line
        .iter()
        .take_while(|byte| matches!(**byte, b'!'..=b'9' | b';'..=b'~'))
        .count();
    let gap = line[length..]
        .iter()
        .take_while(|byte| matches!(**byte, b' ' | b'\t'))
        .count();
    let is_field = length > 0 && line.get(length + gap) == Some(&b':');
    is_field.then_some((&line[..length], length + gap + 1))
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
        let header =
            b"From nobody\nTo: 1\r\n 2\ncc :3\nX-A: 5\n 6\n: none\nno field\n\tlost\nDate:\n\nFrom: 4\n";
        let found = fields(header);
        let kept: Vec<_> = found
            .fields
            .iter()
            .map(|it| (it.name, one_line(it.raw), it.place))
            .collect();
        let expected = [("to", "1 2", 0), ("cc", "3", 1), ("date", "", 3)];
        assert_eq!(
            kept,
            expected.map(|(name, value, place)| (name, value.to_owned(), place))
        );
        assert_eq!(found.count, 4);
        for bytes in [&b""[..], b"\n\n", &[0xff, 0xfe, 0, 1, b':']] {
            assert_eq!(fields(bytes).count, 0);
        }
        assert_eq!(trimmed(b"\xef\xbb\xbf\r\n\nA: b"), b"A: b");
    }

    #[test]
    fn any_number_of_fields_is_counted_and_a_bounded_one_kept() {
        let many = "X-A: b\n".repeat(50_000) + &"To: b\n".repeat(MAX_KEPT);
        let found = fields(many.as_bytes());
        assert_eq!((found.count, found.fields.len()), (70_000, MAX_KEPT));
        assert!(!found.is_cut);
        let more = many + "From: c\n";
        assert!(fields(more.as_bytes()).is_cut);
        assert!(fields(b"X-A: \xe8\n").has_other_bytes);
        assert!(!fields("X-A: \u{e9}\n".as_bytes()).has_other_bytes);
    }

    #[test]
    fn the_list_of_kept_fields_is_in_order() {
        assert!(KEPT.is_sorted());
    }
}
