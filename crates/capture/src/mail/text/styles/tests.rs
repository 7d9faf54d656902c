use super::*;

fn begins(text: &str, read: fn(&str, &Lines<'_>) -> Option<Beginning>) -> Option<(usize, String)> {
    let lines = text.lines();
    let first = lines.clone().next().unwrap_or_default();
    let found = read(first, &lines)?;
    Some((found.lines, found.author.unwrap_or_default()))
}

#[test]
fn attributions_of_many_programs_name_their_author() {
    let address = "ann@b.example";
    let rows = [
        (
            "On Thu, 29 Oct 2026 at 10:00, Ann Lee <ann@b.example> wrote:",
            1,
            address,
        ),
        (
            "On Thu, 29 Oct 2026 at 10:00, Ann Lee\n<ann@b.example> wrote:",
            2,
            address,
        ),
        ("On Oct 29, 2026, Ann Lee wrote:", 1, "Ann Lee"),
        (
            "Am 29.10.2026 um 10:00 schrieb Ann Lee <ann@b.example>:",
            1,
            address,
        ),
        (
            "Am Do., 29. Okt. 2026 um 10:00 Uhr schrieb Ann Lee <\nann@b.example>:",
            2,
            address,
        ),
        ("Am 29.10.2026 um 10:00 schrieb Ann Lee:", 1, "Ann Lee"),
        (
            "Ann Lee <ann@b.example> schrieb am 29.10.2026:\n> Ja.",
            1,
            address,
        ),
        (
            "Le jeu. 29 oct. 2026 à 10:00, Ann Lee <ann@b.example> a écrit\u{a0}:",
            1,
            address,
        ),
        (
            "Le jeu. 29 oct. 2026 à 10:00, Ann Lee <ann@b.example>\na écrit :",
            2,
            address,
        ),
        (
            "El jue, 29 oct 2026 a las 10:00, Ann Lee (<ann@b.example>)\nescribió:",
            2,
            address,
        ),
        (
            "2026年10月29日(木) 10:00 Ann Lee <ann@b.example>:",
            1,
            address,
        ),
        (
            "2026/10/29 10:00、Ann Lee <ann@b.example>のメール：",
            1,
            address,
        ),
        ("Ann Lee wrote:\n> Yes.", 1, "Ann Lee"),
    ];
    for (text, lines, author) in rows {
        let found = begins(text, attribution);
        assert_eq!(found, Some((lines, author.to_owned())), "{text}");
    }
}

#[test]
fn sentences_are_no_attributions() {
    for text in [
        "On Monday we start.",
        "Am Montag geht es los:",
        "Le devis est joint.",
        "El informe:",
        "As Ann wrote:\nplease come",
        "On\na\nb\nAnn wrote:",
        "2026年の予定:",
        "2026/10/29 10:00",
        "",
    ] {
        assert_eq!(begins(text, attribution), None, "{text}");
    }
}

#[test]
fn copied_headers_and_rules_in_five_languages() {
    let rows = [
        "From: Ann <ann@b.example>\nSent: x\nTo: y\nSubject: z",
        "*From:* Ann <ann@b.example>\n*Sent:* x\n*To:* y",
        "Von: Ann <ann@b.example>\nGesendet: x\nAn: y\nBetreff: z",
        "De : Ann <ann@b.example>\nEnvoyé : x\nÀ : y\nObjet : z",
        "De: Ann <ann@b.example>\nEnviado el: x\nPara: y\nAsunto: z",
        "差出人: Ann <ann@b.example>\n送信日時: x\n宛先: y\n件名: z",
        "差出人：Ann <ann@b.example>\n日時：x\n宛先：y\n件名：z",
        "________________________________\nFrom: Ann <ann@b.example>\nDate: x\nTo: y",
        "-----Original Message-----\nFrom: Ann <ann@b.example>",
        "-----Ursprüngliche Nachricht-----\nVon: Ann <ann@b.example>",
        "-----Message d'origine-----\nDe : Ann <ann@b.example>",
        "-----Mensaje original-----\nDe: Ann <ann@b.example>",
        "-----元のメッセージ-----\n差出人: Ann <ann@b.example>",
    ];
    for text in rows {
        let found = begins(text, original);
        assert_eq!(found, Some((1, "ann@b.example".to_owned())), "{text}");
    }
    for text in [
        "From: the top\nof the hill",
        "De: uno",
        "Von: a\nb\nc",
        "____",
    ] {
        assert_eq!(begins(text, original), None, "{text}");
    }
}

#[test]
fn forwarded_messages_in_five_languages() {
    for text in [
        "---------- Forwarded message ---------\nFrom: Ann <ann@b.example>",
        "Begin forwarded message:\n\nFrom: Ann <ann@b.example>",
        "-------- Weitergeleitete Nachricht --------\nBetreff: x\nVon: Ann <ann@b.example>",
        "Anfang der weitergeleiteten Nachricht:\n\nVon: Ann <ann@b.example>",
        "-------- Message transféré --------\nDe : Ann <ann@b.example>",
        "Début du message transféré :\n\nDe: Ann <ann@b.example>",
        "-------- Mensaje reenviado --------\nDe: Ann <ann@b.example>",
        "Inicio del mensaje reenviado:\n\nDe: Ann <ann@b.example>",
        "転送されたメッセージ:\n\n差出人: Ann <ann@b.example>",
    ] {
        let found = begins(text, forwarded);
        assert_eq!(found, Some((1, "ann@b.example".to_owned())), "{text}");
    }
    for text in ["-- forward", "I forwarded it:", "weitergeleitete nachricht"] {
        assert_eq!(begins(text, forwarded), None, "{text}");
    }
}
