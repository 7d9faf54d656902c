//! Lines, numbers and base64, each in one spelling.

use data_encoding::BASE64;

use crate::hash::Hash;

/// Takes the first line off a text. The newline must be there.
pub(crate) fn take_line<'t>(text: &mut &'t str) -> Option<&'t str> {
    let (line, rest) = text.split_once('\n')?;
    *text = rest;
    Some(line)
}

/// Takes lines of one hash each off a text, up to and with an empty line; at most `limit`.
pub(crate) fn take_hashes(text: &mut &str, limit: usize) -> Option<Vec<Hash>> {
    let mut hashes = Vec::new();
    loop {
        match take_line(text)? {
            "" => return Some(hashes),
            line if hashes.len() < limit => hashes.push(Hash::parse(line)?),
            _ => return None,
        }
    }
}

/// An ASCII decimal of 64 bits without leading zeros or sign.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| canonical)
}

/// Padded base64 with zero trailing bits (RFC 4648 section 4). The decoder alone would also take
/// several padded texts in a row.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    let bytes = BASE64.decode(text.as_bytes()).ok()?;
    (BASE64.encode(&bytes) == text).then_some(bytes)
}
