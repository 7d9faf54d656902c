//! The sign that an mbox puts before lines that begin with `From `.

/// Takes the quotation off `>From ` lines where it cannot be a reply's quotation: the lines around
/// it are not quoted. Returns whether a line was left in doubt.
pub fn unquote(message: Vec<u8>) -> (Vec<u8>, bool) {
    let is_quoted_from = |line: &[u8]| {
        let marks = line.iter().take_while(|byte| **byte == b'>').count();
        marks > 0 && line[marks..].starts_with(b"From ")
    };
    let lines = || message.split_inclusive(|byte| *byte == b'\n');
    if !lines().any(is_quoted_from) {
        return (message, false);
    }
    let is_quote = |line: &[u8]| line.starts_with(b">") && !is_quoted_from(line);
    let mut restored = Vec::with_capacity(message.len());
    let mut is_in_doubt = false;
    let mut is_after_quote = false;
    let mut following = lines().skip(1);
    for line in lines() {
        let is_before_quote = following.next().is_some_and(is_quote);
        let is_among_quotes = is_after_quote || is_before_quote;
        let is_plain = is_quoted_from(line) && !is_among_quotes;
        is_in_doubt |= is_quoted_from(line) && is_among_quotes;
        restored.extend_from_slice(&line[usize::from(is_plain)..]);
        is_after_quote = is_quote(line);
    }
    (restored, is_in_doubt)
}
