//! The lines that separate messages, and what follows them.

/// Whether a file begins like an mbox.
pub fn begins_like_mbox(head: &[u8]) -> bool {
    let mut lines = head.split_inclusive(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.iter().all(u8::is_ascii_whitespace));
    first.is_some_and(is_separator)
}

/// Whether a line is a separator by its own form.
pub(super) fn is_separator(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ") else {
        return false;
    };
    if rest.len() > 1024 {
        return false;
    }
    let words: Vec<&[u8]> = rest
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    let has_date = |at: usize| {
        let date = &words[at..];
        date.len() >= 5
            && is_one_of(date[0], &["mon", "tue", "wed", "thu", "fri", "sat", "sun"])
            && is_one_of(
                date[1],
                &[
                    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov",
                    "dec",
                ],
            )
            && is_number(date[2], 1, 2)
            && is_time(date[3])
            && date[4..].iter().take(3).any(|word| is_number(word, 4, 4))
    };
    (1..words.len().min(6)).any(has_date)
}

fn is_one_of(word: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

fn is_number(word: &[u8], min_digits: usize, max_digits: usize) -> bool {
    (min_digits..=max_digits).contains(&word.len()) && word.iter().all(u8::is_ascii_digit)
}

fn is_time(word: &[u8]) -> bool {
    let parts: Vec<&[u8]> = word.split(|byte| *byte == b':').collect();
    (2..=3).contains(&parts.len()) && parts.iter().all(|part| is_number(part, 1, 2))
}

/// Whether a line begins a header field, or is a separator that somebody quoted above the header.
pub(super) fn is_header_line(line: &[u8], may_be_any: bool) -> bool {
    const FIRST: &[&str] = &[
        "return-path",
        "received",
        "from",
        "date",
        "message-id",
        "delivered-to",
        "x-original-to",
        "mime-version",
        "status",
        "x-status",
        "x-mozilla-status",
        "dkim-signature",
    ];
    let name = line
        .iter()
        .take_while(|byte| matches!(**byte, b'!'..=b'9' | b';'..=b'~'))
        .count();
    if !may_be_any && !is_one_of(&line[..name], FIRST) {
        return false;
    }
    let is_field = name > 0
        && line[name..]
            .iter()
            .find(|byte| **byte != b' ' && **byte != b'\t')
            == Some(&b':');
    is_field || line.starts_with(b">From ")
}
