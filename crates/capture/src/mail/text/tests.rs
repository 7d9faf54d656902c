use super::*;

fn cut(text: &str) -> Vec<(TextOrigin, String)> {
    let cut = parts(text, &mut Marks::default());
    cut.parts
        .into_iter()
        .map(|it| (it.origin(), it.text.trim().to_owned()))
        .collect()
}

fn is(text: &str, expected: &[(TextOrigin, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(origin, text)| (*origin, (*text).to_owned()))
        .collect();
    assert_eq!(cut(text), expected, "{text}");
}

#[test]
fn knows_whose_words_are_whose() {
    use TextOrigin::{Author, Forwarded, Quoted, Signature};
    is("Hello\nthere", &[(Author, "Hello\nthere")]);
    is(
        "Yes.\n\n> Do you?\n\nNo.",
        &[(Author, "Yes."), (Quoted, "> Do you?"), (Author, "No.")],
    );
    is(
        "Yes.\n\nOn Thu, Ann wrote:\n> Do you?",
        &[(Author, "Yes."), (Quoted, "On Thu, Ann wrote:\n> Do you?")],
    );
    is(
        "Yes.\n\nOn Thu, 29 Oct 2026 at 10:00, Ann\n<a@b.example> wrote:\n\nDo you?\nReally?",
        &[
            (Author, "Yes."),
            (
                Quoted,
                "On Thu, 29 Oct 2026 at 10:00, Ann\n<a@b.example> wrote:\n\nDo you?\nReally?",
            ),
        ],
    );
    is(
        "Yes.\n-- \nAnn\nHead of X",
        &[(Author, "Yes."), (Signature, "-- \nAnn\nHead of X")],
    );
    is(
        "Yes.\n\n-----Original Message-----\nFrom: x\nDo it.",
        &[
            (Author, "Yes."),
            (Quoted, "-----Original Message-----\nFrom: x\nDo it."),
        ],
    );
    is(
        "Yes.\n\n________________________________\nFrom: x\nSent: y\nTo: z\nSubject: q\n\nDo it.",
        &[
            (Author, "Yes."),
            (
                Quoted,
                "________________________________\nFrom: x\nSent: y\nTo: z\nSubject: q\n\nDo it.",
            ),
        ],
    );
    is(
        "FYI\n\n---------- Forwarded message ---------\nFrom: x\n\nDo it.",
        &[
            (Author, "FYI"),
            (
                Forwarded,
                "---------- Forwarded message ---------\nFrom: x\n\nDo it.",
            ),
        ],
    );
    is(
        "Yes.\nSent from my phone",
        &[(Author, "Yes."), (Signature, "Sent from my phone")],
    );
}

#[test]
fn knows_quotations_by_their_shape_in_any_language() {
    use TextOrigin::{Author, Quoted};
    for attribution in [
        "Bob Ray <bob@ray.example> wrote:",
        "Quoting Bob Ray <bob@ray.example>:",
        "Bob Ray wrote on 01/11/2026 12:00:",
        "Bob Ray wrote (2026-11-01):",
        "In a message dated 11/1/2026 12:00:00 PM, bob@ray.example writes:",
        "--- On Sun, 1/11/26, Bob Ray <bob@ray.example> wrote:",
        "---- On Sun, 01 Nov 2026 12:00:00 +0100 bob@ray.example wrote ----",
        "2026-11-01 12:00 GMT+01:00 Bob Ray <bob@ray.example>:",
        "Bob Ray <bob@ray.example> hat am 01.11.2026 12:00 geschrieben:",
        "Zitat von Bob Ray <bob@ray.example>:",
        "Den sön 1 nov. 2026 kl 12:00 skrev Bob Ray <bob@ray.example>:",
        "niedz., 1 lis 2026 o 12:00 Bob Ray <bob@ray.example> napisał(a):",
    ] {
        let quoted = format!("{attribution}\n\nDo it.");
        is(
            &format!("Yes.\n\n{quoted}"),
            &[(Author, "Yes."), (Quoted, &quoted)],
        );
    }
    for marked in [
        "BR> Do it.",
        "Tom> Do it.",
        "| Do it.",
        "» Do it.",
        "\t> Do it.",
        "＞ Do it.",
    ] {
        is(
            &format!("Yes.\n\n{marked}\n\nNo."),
            &[(Author, "Yes."), (Quoted, marked.trim()), (Author, "No.")],
        );
    }
    for own in [
        "| a | b |",
        "Please send to Bob <bob@ray.example>:",
        "We wrote to them, and they need it:\nthe plan",
    ] {
        is(own, &[(Author, own)]);
    }
}

#[test]
fn a_rule_of_stars_begins_an_earlier_message() {
    let quoted = "****** Original Message ******\nFrom: Tom\n\nDo it.";
    is(
        &format!("Yes.\n\n{quoted}"),
        &[(TextOrigin::Author, "Yes."), (TextOrigin::Quoted, quoted)],
    );
}

#[test]
fn the_broken_end_of_a_quoted_line_is_quoted() {
    use TextOrigin::{Author, Quoted};
    let long = "> We could not settle this within the last meeting, so please\npay it now.\n> Bo";
    is(long, &[(Quoted, long)]);
    is(
        "> Do you come?\nYes.\n> And Bo?",
        &[
            (Quoted, "> Do you come?"),
            (Author, "Yes."),
            (Quoted, "> And Bo?"),
        ],
    );
    let japanese = "Tom さんは書きました:\nDo it.";
    is(
        &format!("Yes.\n{japanese}"),
        &[(Author, "Yes."), (Quoted, japanese)],
    );
}

#[test]
fn names_whose_words_are_quoted_and_forwarded() {
    let text = "Ja.\n\nAm 29.10.2026 um 10:00 schrieb Ann <ann@b.example>:\n> Kommst du?\n\n\
                Gut.\n\n-------- Message transféré --------\nDe : Bo <bo@c.example>\n\nPayez.";
    let cut = parts(text, &mut Marks::default());
    let named: Vec<_> = cut
        .attributions
        .iter()
        .map(|it| (it.origin, it.author.as_str()))
        .collect();
    assert_eq!(
        named,
        [("quoted", "ann@b.example"), ("forwarded", "bo@c.example")]
    );
    let own = cut
        .parts
        .iter()
        .filter(|it| it.origin() == TextOrigin::Author);
    let own: Vec<_> = own.map(|it| it.text.trim().to_owned()).collect();
    assert_eq!(own, ["Ja.", "Gut."]);
}

#[test]
fn a_message_within_has_what_room_is_left() {
    let mut marks = Marks::default();
    let mut cut = parts(&"a".repeat(MAX_TEXT_BYTES - 10), &mut marks);
    cut.add_forwarded("0123456789012345", &mut marks);
    let bytes: usize = cut.parts.iter().map(|it| it.text.len()).sum();
    assert!(bytes <= MAX_TEXT_BYTES && cut.parts.len() == 2);
    assert_eq!(marks.into_list(), ["text.cut"]);
}

#[test]
fn removes_what_nobody_sees() {
    let mut marks = Marks::default();
    let found = parts("pay\u{200b} me\u{202e} now\u{7}", &mut marks).parts;
    assert_eq!(found[0].text, "pay me now");
    assert_eq!(
        marks.into_list(),
        ["text.invisible_removed", "text.direction_overridden"]
    );
}

#[test]
fn stays_within_its_bounds() {
    let mut marks = Marks::default();
    let found = parts(&"a\n> b\n".repeat(1000), &mut marks).parts;
    assert!(found.len() <= MAX_PARTS);
    let long = "word ".repeat(100_000).replace("word word ", "line\n");
    let found = parts(&long, &mut marks).parts;
    assert!(found.iter().map(|it| it.text.len()).sum::<usize>() <= MAX_TEXT_BYTES);
    assert_eq!(marks.into_list(), ["text.cut"]);
}
