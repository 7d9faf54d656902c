//! How mail programs show that what follows are the words of somebody else, in the languages of the
//! programs: English, German, French, Spanish, Japanese, and some of Italian, Dutch and Portuguese.

use std::str::Lines;

/// How many lines behind its first one the fields of a copied header stand.
const HEADER_LINES: usize = 6;

/// How many lines an attribution ("On .. wrote:") may be wrapped to.
const ATTRIBUTION_LINES: usize = 3;

/// The longest line that may be part of one.
const MAX_LINE_BYTES: usize = 600;

/// The longest name before `>` in front of a quoted line.
const MAX_QUOTER_BYTES: usize = 12;

/// A marked line at least this long may have been broken.
const BROKEN_CHARS: usize = 60;

/// The most characters of an author's name.
const MAX_AUTHOR_CHARS: usize = 120;

/// Rules between dashes in front of an earlier message.
const ORIGINAL: &[&str] = &[
    "original message",
    "ursprüngliche nachricht",
    "originalnachricht",
    "original-nachricht",
    "message d'origine",
    "message d’origine",
    "message original",
    "mensaje original",
    "messaggio originale",
    "oorspronkelijk bericht",
    "mensagem original",
    "元のメッセージ",
    "元のメール",
];

/// Rules between dashes in front of a forwarded message.
const FORWARDED: &[&str] = &[
    "forwarded",
    "weitergeleitete nachricht",
    "message transféré",
    "message réexpédié",
    "mensaje reenviado",
    "messaggio inoltrato",
    "doorgestuurd bericht",
    "mensagem encaminhada",
    "転送されたメッセージ",
    "転送メッセージ",
];

/// Lines of their own in front of a forwarded message.
const FORWARDED_LINES: &[&str] = &[
    "begin forwarded message",
    "anfang der weitergeleiteten nachricht",
    "début du message transféré",
    "début du message réexpédié",
    "inicio del mensaje reenviado",
    "inizio messaggio inoltrato",
    "begin doorgestuurd bericht",
    "início da mensagem reencaminhada",
    "転送されたメッセージ",
];

/// Names of the field with the author in a copied header.
const AUTHOR_FIELDS: &[&str] = &["from", "von", "de", "da", "van", "差出人", "送信者"];

/// Names of its other fields.
const OTHER_FIELDS: &[&str] = &[
    "sent",
    "date",
    "to",
    "cc",
    "subject", // English
    "gesendet",
    "datum",
    "an",
    "betreff",
    "kopie", // German
    "envoyé",
    "à",
    "objet",
    "copie", // French
    "enviado",
    "enviado el",
    "fecha",
    "para",
    "asunto", // Spanish
    "送信日時",
    "日時",
    "日付",
    "宛先",
    "件名", // Japanese
    "inviato",
    "data",
    "a",
    "oggetto", // Italian
    "verzonden",
    "aan",
    "onderwerp", // Dutch
    "assunto",   // Portuguese
];

/// How attributions begin, and how they end.
const ATTRIBUTIONS: &[(&str, &[&str])] = &[
    ("on ", &["wrote:", "writes:"]),
    ("am ", &["schrieb:"]),
    ("le ", &["a écrit :", "a écrit:"]),
    ("el ", &["escribió:"]),
    ("il ", &["ha scritto:"]),
    ("op ", &["schreef:"]),
    ("em ", &["escreveu:"]),
];

/// Words between date and author, where the colon stands behind the author.
const BETWEEN: &[&str] = &[" schrieb "];

/// Ends of attributions that begin with the author.
const AUTHOR_FIRST: &[&str] = &["wrote:", "schrieb:", "a écrit :", "a écrit:", "escribió:"];

/// Ends of Japanese attributions.
const JAPANESE: &[&str] = &[
    "のメール:",
    "さんは書きました:",
    "は書きました:",
    "さんのメッセージ:",
];

/// Where the words of somebody else begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beginning {
    /// How many lines say so.
    pub(super) lines: usize,
    /// Whose words they are, as the text says: an address, else a name.
    pub(super) author: Option<String>,
}

/// A line in lower case, with plain spaces and colons, and no emphasis around.
fn plain(line: &str) -> String {
    let spaced: String = line
        .chars()
        .map(|it| match it {
            '\u{a0}' | '\u{202f}' | '\u{3000}' => ' ',
            '：' => ':',
            _ => it,
        })
        .collect();
    spaced.trim().trim_matches('*').trim().to_lowercase()
}

/// Whether a forwarded message begins: by a rule or a line of its own.
pub(super) fn forwarded(line: &str, lines: &Lines<'_>) -> Option<Beginning> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let text = plain(line);
    let is_ruled = text.starts_with("--") && FORWARDED.iter().any(|it| text.contains(it));
    let bare = text.trim_end_matches([':', ' ']);
    let is_line = text.ends_with(':') && FORWARDED_LINES.contains(&bare);
    (is_ruled || is_line).then(|| Beginning {
        lines: 1,
        author: author_field(lines.clone().skip(1)),
    })
}

/// Whether an earlier message begins: by a rule, or by a copied header.
pub(super) fn original(line: &str, lines: &Lines<'_>) -> Option<Beginning> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let text = plain(line);
    let beginning = |author| Some(Beginning { lines: 1, author });
    // "-----", or the stars that are no emphasis.
    let is_rule = text.starts_with("--") || line.trim_start().starts_with("***");
    if is_rule && ORIGINAL.iter().any(|it| text.contains(it)) {
        return beginning(author_field(lines.clone().skip(1)));
    }
    let is_ruled = text.len() >= 20 && text.bytes().all(|it| it == b'_');
    let mut header = lines.clone().skip(usize::from(is_ruled));
    let first = header.next()?;
    let (name, value) = field(first)?;
    if !AUTHOR_FIELDS.contains(&name.as_str()) {
        return None;
    }
    let others = header
        .take(HEADER_LINES)
        .filter(|line| field(line).is_some_and(|(name, _)| OTHER_FIELDS.contains(&name.as_str())));
    if others.count() < 2 {
        return None;
    }
    beginning(author(&value))
}

/// The name of a field in a copied header, in lower case, and its value.
fn field(line: &str) -> Option<(String, String)> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let (name, value) = line.split_once([':', '：'])?;
    let value = value.trim().trim_matches('*').trim();
    Some((plain(name), value.to_owned()))
}

/// The author that a copied header names.
fn author_field<'a>(lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut fields = lines.take(HEADER_LINES + 2).filter_map(field);
    let (_, value) = fields.find(|(name, _)| AUTHOR_FIELDS.contains(&name.as_str()))?;
    author(&value)
}

/// "On Thu, 29 Oct 2026, Ann wrote:", on up to three lines.
pub(super) fn attribution(line: &str, lines: &Lines<'_>) -> Option<Beginning> {
    let begins = begins_with_date(line);
    let ends = |line: &str| line.len() <= MAX_LINE_BYTES && ends_attribution(line);
    let wrapped = lines.clone().take(ATTRIBUTION_LINES).position(ends);
    let count = match wrapped.filter(|_| begins) {
        Some(last) => last + 1,
        None if is_author_first(line, lines) || is_shaped(line, lines) => 1,
        None => return None,
    };
    let text: Vec<&str> = lines.clone().take(count).map(str::trim).collect();
    Some(Beginning {
        lines: count,
        author: attributed(&text.join(" ")),
    })
}

fn begins_with_date(line: &str) -> bool {
    if line.len() > MAX_LINE_BYTES {
        return false;
    }
    let text = plain(line);
    let is_worded = ATTRIBUTIONS
        .iter()
        .any(|(start, _)| text.starts_with(start));
    is_worded || is_japanese_date(&text)
}

/// "2026年10月29日(木) 10:00 ..", "2026/10/29 10:00、..".
fn is_japanese_date(text: &str) -> bool {
    let year = text.get(..4).unwrap_or_default();
    let rest = text.get(4..).unwrap_or_default();
    let has_year = year.len() == 4 && year.bytes().all(|it| it.is_ascii_digit());
    let is_spelled = rest.starts_with('年') && rest.contains('月') && rest.contains('日');
    has_year && (is_spelled || (rest.starts_with('/') && text.contains('、')))
}

fn ends_attribution(line: &str) -> bool {
    let text = plain(line);
    if !text.ends_with(':') {
        return false;
    }
    let ends = ATTRIBUTIONS.iter().flat_map(|(_, ends)| *ends);
    ends.chain(JAPANESE).any(|end| text.ends_with(end))
        || BETWEEN.iter().any(|word| text.contains(word))
        // Japanese and German programs end with the address.
        || text.ends_with(">:")
}

/// "Ann <ann@b.example> wrote:": only where quoted lines follow, since people write so too.
fn is_author_first(line: &str, lines: &Lines<'_>) -> bool {
    if line.len() > MAX_LINE_BYTES {
        return false;
    }
    let text = plain(line);
    // Nobody but a program writes so.
    if JAPANESE.iter().any(|end| text.ends_with(end)) {
        return true;
    }
    let is_worded = AUTHOR_FIRST.iter().any(|end| text.ends_with(end))
        || (text.ends_with(':') && text.contains(" schrieb am "))
        || (text.ends_with(':') && text.contains(" wrote on "));
    is_worded
        && lines
            .clone()
            .skip(1)
            .find(|it| !it.trim().is_empty())
            .is_some_and(is_marked)
}

/// Whether a line is quoted by what stands in front of it: `>`, perhaps behind spaces or somebody's
/// initials, or the signs of other programs.
pub(super) fn is_marked(line: &str) -> bool {
    let line = line.trim_start();
    // "BR> ", "Tom> "
    let letters = line.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_named = (1..=MAX_QUOTER_BYTES).contains(&letters)
        && line.starts_with(|it: char| it.is_ascii_uppercase())
        && line[letters..].starts_with("> ");
    // A line of a table ends with a bar, too.
    let is_barred = line.starts_with("| ") && !line.trim_end().ends_with('|');
    is_named || is_barred || line.starts_with(['>', '＞', '»'])
}

/// Whether the program that sent a marked line has broken it, so that its end stands unmarked below
/// it, with other marked lines behind.
pub(super) fn is_broken(line: &str, lines: &Lines<'_>) -> bool {
    let is_long = line.trim_end().chars().count() >= BROKEN_CHARS;
    let is_over = line.trim_end().ends_with(['.', '!', '?', ':', ';', '>']);
    let mut behind = lines.clone().skip(1);
    let (end, next) = (behind.next(), behind.next());
    let is_end = end.is_some_and(|it| {
        let count = it.trim().chars().count();
        (1..BROKEN_CHARS).contains(&count) && !is_marked(it)
    });
    is_long && !is_over && is_end && next.is_some_and(is_marked)
}

/// "Ann <ann@b.example> ...:", in any language, where something follows; and the ways of programs
/// that name only the author.
fn is_shaped(line: &str, lines: &Lines<'_>) -> bool {
    const ENDS: &[&str] = &[":", "----"];
    if line.len() > MAX_LINE_BYTES {
        return false;
    }
    let text = plain(line);
    let is_field = || {
        field(line).is_some_and(|(name, _)| {
            AUTHOR_FIELDS.contains(&name.as_str()) || OTHER_FIELDS.contains(&name.as_str())
        })
    };
    // Looked at last, as it may be far away.
    let follows = || lines.clone().skip(1).any(|it| !it.trim().is_empty());
    ENDS.iter().any(|it| text.ends_with(it))
        && (names_address(&text) || is_dated(&text) || is_said(&text))
        && !is_field()
        && follows()
}

fn names_address(text: &str) -> bool {
    let behind = text.split_once('<');
    behind
        .and_then(|(_, rest)| rest.split_once('>'))
        .is_some_and(|(address, _)| address.contains('@') && !address.contains(' '))
}

/// Somebody wrote, and when or from where.
fn is_dated(text: &str) -> bool {
    const ENDS: &[&str] = &[
        " wrote:",
        " writes:",
        " said:",
        "wrote ----",
        " geschrieben:",
    ];
    const WITHIN: &[&str] = &[" wrote on ", " wrote (", " a écrit le ", " schrieb am "];
    let is_written =
        ENDS.iter().any(|it| text.ends_with(it)) || WITHIN.iter().any(|it| text.contains(it));
    is_written && (text.contains('@') || text.bytes().filter(u8::is_ascii_digit).count() >= 4)
}

fn is_said(text: &str) -> bool {
    const STARTS: &[&str] = &["quoting ", "zitat von ", "citando ", "in article <"];
    STARTS.iter().any(|it| text.starts_with(it))
}

/// Whose words an attribution says they are.
fn attributed(text: &str) -> Option<String> {
    if text.contains('@') {
        return author(text);
    }
    let text = text
        .trim()
        .trim_end_matches([':', '：', ' ', '\u{a0}', '\u{202f}']);
    for verb in [" wrote", " writes", " schrieb", " a écrit", " escribió"] {
        if let Some(at) = text.find(verb) {
            let behind = text[at + verb.len()..].trim();
            // A name stands behind the last comma, or behind the verb.
            let before = text[..at].rsplit(',').next().unwrap_or_default();
            let is_behind = verb == " schrieb" && !behind.is_empty() && !behind.starts_with("am ");
            return author(if is_behind { behind } else { before });
        }
    }
    None
}

/// An address in a text, else the text as a name.
fn author(text: &str) -> Option<String> {
    let is_of_address = |it: char| it.is_alphanumeric() || ".@_-+=%~!#$&'*/?^`{|}".contains(it);
    let address = text.split(|it: char| !is_of_address(it)).find(|it| {
        it.split_once('@')
            .is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
    });
    if let Some(address) = address {
        let known = crate::native::address::normalised(address.trim_matches(['\'', '.', '*']));
        if known.is_some() {
            return known;
        }
    }
    let name = text.trim_matches(|it: char| it.is_whitespace() || "\"'<>[]()*:,、".contains(it));
    let name: String = name.chars().take(MAX_AUTHOR_CHARS).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests;
