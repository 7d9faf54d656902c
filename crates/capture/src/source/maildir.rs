//! What the names of a Maildir say.

use std::path::Path;

/// Whether a folder holds the messages of a Maildir.
pub(super) fn is_messages_folder(path: &Path) -> bool {
    let is_named = path
        .file_name()
        .is_some_and(|name| name == "cur" || name == "new");
    let has = |name: &str| {
        path.parent()
            .is_some_and(|parent| parent.join(name).is_dir())
    };
    is_named && has("cur") && has("new")
}

/// The flags in the name of a message, behind `:2,`, or `!2,` where a colon cannot be.
pub(super) fn flags(path: &Path) -> Vec<&'static str> {
    let (_, letters) = parts(path);
    let named = letters.chars().filter_map(|letter| match letter {
        'D' => Some("draft"),
        'F' => Some("flagged"),
        'P' => Some("passed"),
        'R' => Some("replied"),
        'S' => Some("seen"),
        'T' => Some("trashed"),
        _ => None,
    });
    named.take(8).collect()
}

/// The name of a message that stays when its flags change, and the letters of the flags.
pub(super) fn parts(path: &Path) -> (&str, &str) {
    let name = path.file_name().and_then(|it| it.to_str());
    let name = name.unwrap_or_default();
    let split = name.rsplit_once(":2,").or_else(|| name.rsplit_once("!2,"));
    split.unwrap_or((name, ""))
}

/// The mark of the messages in a folder that mail programs keep for drafts, junk or what is thrown
/// away: the folder of a Maildir, that of a single file, or the name of an mbox.
pub(super) fn folder_mark(path: &Path) -> Option<&'static str> {
    const DRAFTS: &[&str] = &[
        "drafts",
        "draft",
        "entwürfe",
        "brouillons",
        "borradores",
        "下書き",
    ];
    const JUNK: &[&str] = &[
        "junk",
        "spam",
        "junk e-mail",
        "junk email",
        "junk mail",
        "bulk mail",
        "quarantine",
        "spamverdacht",
        "indésirables",
        "correo no deseado",
        "迷惑メール",
    ];
    const TRASH: &[&str] = &[
        "trash",
        "deleted items",
        "deleted messages",
        "bin",
        "papierkorb",
        "corbeille",
        "papelera",
        "ゴミ箱",
    ];
    let parent = path.parent()?;
    let folder = if is_messages_folder(parent) {
        parent.parent()?.file_name()
    } else {
        parent.file_name()
    };
    let names = [folder, path.file_stem()];
    names.into_iter().flatten().find_map(|name| {
        let name = name.to_str()?.to_lowercase();
        // Maildir++ joins the names of folders with points.
        let name = name.rsplit(['.', '/']).next()?;
        let marks = [
            (DRAFTS, "mail.draft"),
            (JUNK, "mail.called_junk"),
            (TRASH, "mail.thrown_away"),
        ];
        let found = marks.iter().find(|(names, _)| names.contains(&name));
        found.map(|(_, mark)| *mark)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_became_of_a_message() {
        let rows: [(&str, &str, &[&str]); 6] = [
            ("a.b.host:2,RS", "a.b.host", &["replied", "seen"]),
            ("a.b.host:2,", "a.b.host", &[]),
            ("a.b.host", "a.b.host", &[]),
            ("a.b.host!2,T", "a.b.host", &["trashed"]),
            ("a:2,b:2,DFPx", "a:2,b", &["draft", "flagged", "passed"]),
            ("a:1,S", "a:1,S", &[]),
        ];
        for (name, base, expected) in rows {
            let path = Path::new("/m/cur").join(name);
            assert_eq!(parts(&path).0, base, "{name}");
            assert_eq!(flags(&path), expected, "{name}");
        }
    }

    #[test]
    fn folders_say_what_their_messages_are() {
        let rows = [
            ("/m/Junk/1.eml", Some("mail.called_junk")),
            ("/m/Drafts/1.eml", Some("mail.draft")),
            ("/m/INBOX.Trash/1.eml", Some("mail.thrown_away")),
            ("/m/Spam", Some("mail.called_junk")),
            ("/m/Junk.mbox", Some("mail.called_junk")),
            ("/junk/inbox/1.eml", None),
            ("/m/Entwürfe/1.eml", Some("mail.draft")),
            ("/m/letters/spam filters.eml", None),
        ];
        for (path, mark) in rows {
            assert_eq!(folder_mark(Path::new(path)), mark, "{path}");
        }
    }
}
