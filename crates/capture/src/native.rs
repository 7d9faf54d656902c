//! What all adapters read native items with: text out of bytes, addresses, and marks of what is odd.

pub mod address;
pub(crate) mod charset;
pub(crate) mod marks;

/// A text on one line, within a bound.
pub(crate) fn shown(text: &str, max_chars: usize) -> String {
    let plain: String = text
        .chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .take(max_chars)
        .collect();
    plain.trim().to_owned()
}
