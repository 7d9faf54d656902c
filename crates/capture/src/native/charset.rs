//! Bytes become text by their label, and by a marked guess where there is none that helps.

use mail_parser::decoders::charsets::map::charset_decoder;

use super::marks::Marks;

/// The text of bytes with a label in lower case. Bytes that do not fit it are kept as well as they
/// can be.
pub(crate) fn labelled(bytes: &[u8], label: &str, marks: &mut Marks) -> String {
    let known = charset_decoder(label.as_bytes());
    let is_ascii = ["", "us-ascii", "ascii", "ansi_x3.4-1968"].contains(&label);
    let is_utf8 = label == "utf-8" || label == "utf8";
    if let Some(decode) = known.filter(|_| !is_ascii && !is_utf8) {
        let text = decode(bytes);
        marks.add_if(text.contains('\u{fffd}'), "charset.invalid");
        return text;
    }
    marks.add_if(!is_ascii && !is_utf8, "charset.unknown");
    if is_utf8 && std::str::from_utf8(bytes).is_err() {
        marks.add("charset.invalid");
        return String::from_utf8_lossy(bytes).into_owned();
    }
    or_guessed(bytes, marks)
}

/// UTF-8, else what most programs meant by bytes without a usable label.
pub(crate) fn or_guessed(bytes: &[u8], marks: &mut Marks) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    marks.add("charset.guessed");
    match charset_decoder(b"windows-1252") {
        Some(decode) => decode(bytes),
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
}
