//! Kinds of messages that readers of mail get wrong, several of each, and the claims that they give.

use std::fmt::Write as _;

use cl_extract::{Extraction, mark};

use crate::corpus::{extract, found};

/// One message of a kind.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) mail: Vec<u8>,
    /// All that it says but summaries, as `predicate value`.
    says: &'static [&'static str],
    /// What must be marked, on a claim or on the message.
    marks: &'static [&'static str],
}

/// A message of 28 October 2026, in place of whose fields others may stand.
fn mail(fields: &[(&str, &str)], body: &str) -> Vec<u8> {
    let ordinary = [
        ("From", "Nora Quist <nora@quayside.example>"),
        ("To", "Mira Solberg <mira@solberg.example>"),
        ("Date", "Wed, 28 Oct 2026 10:12:00 +0000"),
        ("Message-ID", "<k1@quayside.example>"),
        ("Subject", "A message"),
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Transfer-Encoding", "8bit"),
    ];
    let mut head = String::new();
    for (name, value) in ordinary {
        let other = fields.iter().find(|(other, _)| *other == name);
        let value = other.map_or(value, |(_, value)| *value);
        write!(head, "{name}: {value}\r\n").expect("a string");
    }
    for (name, value) in fields {
        if !ordinary.iter().any(|(other, _)| other == name) {
            write!(head, "{name}: {value}\r\n").expect("a string");
        }
    }
    format!("{head}\r\n{body}\r\n").into_bytes()
}

fn case(
    name: &'static str,
    mail: Vec<u8>,
    says: &'static [&'static str],
    marks: &'static [&'static str],
) -> Case {
    Case {
        name,
        mail,
        says,
        marks,
    }
}

const ASKS: &str = "requesting_stakeholder yes";

pub(crate) fn all() -> Vec<Case> {
    [readers(), dates(), amounts(), meetings(), others()]
        .into_iter()
        .flatten()
        .collect()
}

/// What the reader of mail hands over.
fn readers() -> Vec<Case> {
    let mut many = String::new();
    for at in 0..3000 {
        write!(many, "X-Note-{at}: v\r\n").expect("a string");
    }
    let after_many = mail(&[], "Please upload the survey by 19 November 2026.");
    let latin = |charset: &str, currency: u8| {
        let kind = format!("text/plain; charset={charset}");
        let mut mail = mail(&[("Content-Type", &kind)], "Please pay the deposit of ");
        mail.truncate(mail.len() - 2);
        mail.push(currency);
        mail.extend(b"450.00 by 9 November 2026.\r\n");
        mail
    };
    vec![
        case(
            "a line of the body begins like a separator",
            mail(
                &[],
                "From Monday the gate opens at 07:00.\nPlease confirm the plan by 6 November 2026.",
            ),
            &[ASKS, "requested_delivery_date 2026-11-06"],
            &[],
        ),
        case(
            "a display name holds another address",
            mail(
                &[(
                    "From",
                    "=?UTF-8?Q?Osei=2C_Ama_=3Cama=40bright.example=3E?= <notify@relay.example>",
                )],
                "I need the panel text by 11 November 2026.",
            ),
            &[ASKS, "requested_delivery_date 2026-11-11"],
            &["author.name_holds_address"],
        ),
        case(
            "a display name is nothing but another address",
            mail(
                &[("From", "\"ama@bright.example\" <notify@relay.example>")],
                "Could you send the panel text by 11 November 2026?",
            ),
            &[ASKS, "requested_delivery_date 2026-11-11"],
            &["author.name_holds_address"],
        ),
        case(
            "raw UTF-8 in a header",
            mail(
                &[
                    ("From", "Zoë Brandão <zoe@quayside.example>"),
                    ("Subject", "Zwei Titel – neu"),
                ],
                "Please send the cover files by 12 November 2026.",
            ),
            &[ASKS, "requested_delivery_date 2026-11-12"],
            &[],
        ),
        case(
            "a charset that nobody knows, and a pound sign",
            latin("\"unknown-8bit\"", 0xa3),
            &[
                ASKS,
                "amount_due 450 gbp",
                "requested_delivery_date 2026-11-09",
            ],
            &[mark::CHARSET_GUESSED],
        ),
        case(
            "a charset with a wrong name",
            latin("x-made-up", 0xa3),
            &[
                ASKS,
                "amount_due 450 gbp",
                "requested_delivery_date 2026-11-09",
            ],
            &[mark::CHARSET_GUESSED],
        ),
        case(
            "the real fields behind thousands of others",
            [many.into_bytes(), after_many].concat(),
            &[ASKS, "requested_delivery_date 2026-11-19"],
            &[],
        ),
        case(
            "an automatic reply that promises something",
            mail(
                &[("Auto-Submitted", "auto-replied")],
                "I am away until Monday. I will send it by Wednesday 18 November 2026.",
            ),
            &[],
            &[mark::AUTOMATIC],
        ),
        case(
            "an automatic reply that asks for something",
            mail(
                &[("Auto-Submitted", "auto-generated; type=x")],
                "Please pay 40 EUR by 2 November 2026.",
            ),
            &[],
            &[mark::AUTOMATIC],
        ),
    ]
}

fn dates() -> Vec<Case> {
    let of = |date: &str, body: &str| mail(&[("Date", date)], body);
    vec![
        case(
            "a year of two digits, and a zone by its old name",
            of(
                "Thu, 29 Oct 26 17:05 EST",
                "Please return the list by tomorrow.",
            ),
            &[ASKS, "requested_delivery_date 2026-10-30"],
            &[],
        ),
        case(
            "late in the evening, west of Greenwich",
            of("Thu, 29 Oct 26 23:05 PST", "Please return the list today."),
            &[ASKS, "requested_delivery_date 2026-10-29"],
            &[],
        ),
        case(
            "a year of three digits, and a military zone",
            of(
                "Thu, 29 Oct 126 09:10:00 K",
                "Please return the list by tomorrow.",
            ),
            &[ASKS, "requested_delivery_date 2026-10-30"],
            &[mark::ZONE_UNKNOWN],
        ),
        case(
            "early in the morning, east of Greenwich",
            of(
                "Fri, 30 Oct 2026 01:10:00 +1100",
                "Please return the list by tomorrow.",
            ),
            &[ASKS, "requested_delivery_date 2026-10-31"],
            &[],
        ),
        case(
            "this Friday and next Friday",
            mail(
                &[],
                "Please send the letter this Friday.\n\nPlease send the file next Friday.",
            ),
            &[
                ASKS,
                "requested_delivery_date 2026-10-30",
                "requested_delivery_date 2026-11-06",
            ],
            &[],
        ),
        case(
            "next Friday alone",
            mail(&[], "Please send the file next Friday."),
            &[
                ASKS,
                "requested_delivery_date 2026-10-30",
                "requested_delivery_date 2026-11-06",
            ],
            &[mark::DATE_NEXT_WEEKDAY],
        ),
        case(
            "one order of day and month",
            mail(
                &[],
                "Please deliver the first load by 03/11/2026 and the second by 17/11/2026.",
            ),
            &[
                ASKS,
                "requested_delivery_date 2026-11-03",
                "requested_delivery_date 2026-11-17",
            ],
            &[],
        ),
        case(
            "the other order of day and month",
            mail(
                &[],
                "Please deliver the first load by 11/03/2026 and the second by 11/17/2026.",
            ),
            &[
                ASKS,
                "requested_delivery_date 2026-11-03",
                "requested_delivery_date 2026-11-17",
            ],
            &[],
        ),
        case(
            "no order of day and month",
            mail(&[], "Please deliver the first load by 03/11/2026."),
            &[ASKS],
            &[mark::DATE_ORDER],
        ),
        case(
            "the end of a day and of a month",
            of(
                "Mon, 16 Nov 2026 18:20:00 +0100",
                "Please send the order by EOD Thursday.\n\nPlease send the list by the end of November.",
            ),
            &[
                ASKS,
                "requested_delivery_date 2026-11-19",
                "requested_delivery_date 2026-11-30",
            ],
            &[],
        ),
    ]
}

fn amounts() -> Vec<Case> {
    vec![
        case(
            "five ways to write an amount",
            mail(
                &[],
                "These amounts are open:\nItem A: 2.345,67 EUR\nItem B: EUR 36.000\nItem C: CHF 18'250.00\n\
                 Item D: USD 4,321.05\nItem E: £3.5k",
            ),
            &[
                "amount_due 18250 chf",
                "amount_due 2345.67 eur",
                "amount_due 3500 gbp",
                "amount_due 36000 eur",
                "amount_due 4321.05 usd",
            ],
            &[],
        ),
        case(
            "one separator that could mean either",
            mail(&[], "Please pay EUR 36.000 today."),
            &[ASKS, "requested_delivery_date 2026-10-28"],
            &[mark::AMOUNT_SEPARATOR],
        ),
        case(
            "a currency that is not read",
            mail(&[], "Please pay 300 doubloons and 12.50 more."),
            &[ASKS],
            &[mark::CURRENCY_UNKNOWN],
        ),
    ]
}

fn meetings() -> Vec<Case> {
    let of = |date: &str, zone: &str| {
        let body = format!("Let us meet on Thursday 5 November 2026 at 3 pm {zone}.");
        mail(&[("Date", date)], &body)
    };
    vec![
        case(
            "IST in India",
            of("Mon, 02 Nov 2026 12:00:00 +0530", "IST"),
            &[
                "meeting_date 2026-11-05",
                "meeting_starts_at 2026-11-05t09:30:00z",
            ],
            &[],
        ),
        case(
            "CST in China",
            of("Mon, 02 Nov 2026 14:00:00 +0800", "CST"),
            &[
                "meeting_date 2026-11-05",
                "meeting_starts_at 2026-11-05t07:00:00z",
            ],
            &[],
        ),
        case(
            "CST in America",
            of("Mon, 02 Nov 2026 14:00:00 -0600", "CST"),
            &[
                "meeting_date 2026-11-05",
                "meeting_starts_at 2026-11-05t21:00:00z",
            ],
            &[],
        ),
        case(
            "IST from elsewhere",
            of("Mon, 02 Nov 2026 14:00:00 -0500", "IST"),
            &["meeting_date 2026-11-05"],
            &[mark::TIME_ZONE_UNCLEAR],
        ),
        case(
            "no zone in the message",
            of("Mon, 02 Nov 2026 14:00:00 -0000", ""),
            &["meeting_date 2026-11-05"],
            &[mark::TIME_ZONE_UNCLEAR],
        ),
        case(
            "clocks change before the meeting",
            of("Mon, 19 Oct 2026 14:00:00 +0200", ""),
            &["meeting_date 2026-11-05"],
            &[mark::TIME_CLOCK_CHANGE],
        ),
    ]
}

/// What other formats say stays unsaid, with a mark.
fn others() -> Vec<Case> {
    let with_part = |kind: &str, body: &str| {
        let text = format!(
            "--b\r\nContent-Type: text/plain\r\n\r\nPlease bring the log.\r\n--b\r\n\
             Content-Type: {kind}\r\n\r\n{body}\r\n--b--"
        );
        mail(&[("Content-Type", "multipart/mixed; boundary=b")], &text)
    };
    vec![
        case(
            "a meeting only in a TNEF attachment",
            with_part(
                "application/ms-tnef; name=\"winmail.dat\"",
                "eJ8+IgEAAQaQCAAEAAAAAAABAAEAAQeQ",
            ),
            &[ASKS],
            &["attachment.tnef_not_read"],
        ),
        case(
            "words that only an attachment has",
            with_part(
                "text/x-notes; name=notes",
                "Please pay 90 EUR by 2 November 2026.",
            ),
            &[ASKS],
            &["attachments.not_read"],
        ),
    ]
}

fn has_mark(extraction: &Extraction, marks: &[String], mark: &str) -> bool {
    let on_claims = extraction.candidates.iter().flat_map(|it| &it.marks);
    extraction.marks.contains(&mark)
        || on_claims.into_iter().any(|it| *it == mark)
        || marks.iter().any(|it| it == mark)
}

#[test]
fn every_kind_gives_the_claims_that_it_says() {
    for case in all() {
        let extraction = extract(&case.mail);
        let facts = found(&extraction);
        let said = facts
            .iter()
            .filter(|(predicate, _)| **predicate != "request_summary")
            .flat_map(|(predicate, values)| {
                values.iter().map(move |it| format!("{predicate} {it}"))
            });
        let mut said: Vec<String> = said.collect();
        let mut says: Vec<String> = case.says.iter().map(|it| (*it).to_owned()).collect();
        said.sort();
        says.sort();
        assert_eq!(said, says, "{}", case.name);
        let reading = cl_capture::mail::read(&case.mail, &[]).unwrap();
        for mark in case.marks {
            assert!(
                has_mark(&extraction, &reading.content.marks, mark),
                "{}: {mark}",
                case.name
            );
        }
    }
}

/// A value that a mark of its own or of its message puts in doubt is less sure than a sound one.
#[test]
fn doubt_shows_in_the_confidence() {
    let confidence = |name: &str, predicate: &str| {
        let case = all().into_iter().find(|it| it.name == name).unwrap();
        let found = extract(&case.mail).candidates;
        found
            .iter()
            .find(|it| it.predicate == predicate)
            .unwrap()
            .confidence
    };
    let date = "requested_delivery_date";
    let sound = confidence("this Friday and next Friday", date);
    assert!(confidence("next Friday alone", date) < sound);
    let sound = confidence("a year of two digits, and a zone by its old name", date);
    assert!(confidence("a year of three digits, and a military zone", date) < sound);
    let sound = confidence("five ways to write an amount", "amount_due");
    assert!(
        confidence(
            "a charset that nobody knows, and a pound sign",
            "amount_due"
        ) < sound
    );
}

#[test]
fn the_author_is_the_mailbox_and_never_a_name() {
    for case in all()
        .into_iter()
        .filter(|it| it.name.starts_with("a display name"))
    {
        let found = extract(&case.mail).candidates;
        let who: Vec<_> = found
            .iter()
            .filter(|it| it.predicate == "requesting_stakeholder")
            .map(|it| it.value.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(who, ["notify@relay.example"]);
        let printed = found
            .iter()
            .map(|it| it.value.to_string())
            .collect::<String>();
        assert!(!printed.contains("bright.example"), "{printed}");
    }
}
