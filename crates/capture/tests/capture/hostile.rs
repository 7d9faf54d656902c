//! Messages of sizes that nobody writes: they are kept, and cost little more than their bytes.

use cl_capture::mail::{self, Reading};
use data_encoding::BASE64;

use crate::memory::{alone, high_water_kib};

const FROM: &str = "From: a@b.example\r\n";

/// The size of a message that is measured.
const BYTES: usize = 4 * 1024 * 1024;

/// How much the process may grow while it reads such messages: a few times their size, and what the
/// largest header comes to.
const MAX_GROWTH_KIB: u64 = 64 * 1024;

fn read(text: &str) -> Reading {
    let reading = mail::read(text.as_bytes(), &[]).unwrap();
    assert_eq!(
        reading.content.from.as_ref().unwrap().address,
        "a@b.example"
    );
    reading
}

fn has(reading: &Reading, mark: &str) -> bool {
    reading.content.marks.iter().any(|it| it == mark)
}

/// Its author and nothing else is known of a message.
fn is_kept_unread(text: &str, mark: &str) {
    let reading = read(text);
    assert!(has(&reading, mark), "{mark}: {:?}", reading.content.marks);
    assert!(reading.content.text.is_empty() && reading.facts.attachments.is_empty());
}

#[test]
fn messages_nested_without_end_are_read_a_few_deep() {
    let nested = "Content-Type: message/rfc822\r\n\r\n".repeat(100_000);
    let encoded = BASE64.encode(nested.as_bytes());
    let encoding = "Content-Transfer-Encoding: base64\r\n";
    for text in [
        format!("{FROM}{nested}"),
        format!("{FROM}{encoding}Content-Type: message/rfc822\r\n\r\n{encoded}"),
    ] {
        let reading = read(&text);
        assert!(has(&reading, "attachment.message_not_read"));
        assert_eq!(reading.facts.attachments.len(), 1);
        assert!(reading.content.text.is_empty());
    }
}

#[test]
fn a_message_of_too_many_parts_is_kept_unread() {
    let parts = |count: usize| {
        let kind = "Content-Type: multipart/mixed; boundary=b\r\n\r\n";
        format!(
            "{FROM}{kind}{}--b--\r\n",
            "--b\r\n\r\nPay.\r\n".repeat(count)
        )
    };
    assert!(!read(&parts(4000)).content.text.is_empty());
    is_kept_unread(&parts(4200), "mime.parts_not_read");
}

#[test]
fn a_message_of_too_deep_containers_is_kept_unread() {
    let containers = |depth: usize| {
        let containers = (0..depth).map(|at| {
            format!("Content-Type: multipart/mixed; boundary=b{at}.\r\n\r\n--b{at}.\r\n")
        });
        let containers: String = containers.collect();
        format!("{FROM}{containers}\r\nPay.\r\n")
    };
    assert_eq!(read(&containers(32)).content.text[0].text, "Pay.");
    is_kept_unread(&containers(33), "mime.nesting_not_read");
}

#[test]
fn a_message_with_too_large_headers_is_kept_unread() {
    let fields = "X-Hop: v\r\n".repeat(1_800_000);
    let top = format!("{FROM}{fields}Auto-Submitted: yes\r\n\r\nPay.\r\n");
    is_kept_unread(&top, "header.too_large");
    let part = format!(
        "{FROM}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n{fields}\r\nPay.\r\n"
    );
    is_kept_unread(&part, "header.too_large");
}

#[test]
fn a_mailbox_more_than_are_named_gets_a_mark() {
    let to = |count: usize| format!("{FROM}To: {}\r\n\r\nPay.\r\n", "c@d.example,".repeat(count));
    let exact = read(&to(256));
    assert!(exact.content.to.len() == 256 && !has(&exact, "recipients.cut"));
    let more = read(&to(50_000));
    assert!(more.content.to.len() == 256 && has(&more, "recipients.cut"));
    assert!(has(&more, "header.fields_cut") && !has(&exact, "header.fields_cut"));
}

#[test]
fn a_message_costs_little_more_than_its_bytes() {
    alone(
        "hostile::a_message_costs_little_more_than_its_bytes",
        || {
            let filled = |head: &str, unit: &str| {
                let mut text = String::with_capacity(BYTES + 256);
                text.push_str(FROM);
                text.push_str(head);
                text.extend(std::iter::repeat_n(unit, BYTES / unit.len()));
                text
            };
            let mixed = "Content-Type: multipart/mixed; boundary=";
            let mut text = filled("\r\n", "x");
            let before = high_water_kib();
            for (head, unit) in [
                ("", "a:\n"),
                ("To: ", "a@b,"),
                ("Subject: ", "=?utf-8?q?x?= "),
                ("Content-Type: text/plain", ";a=b"),
                ("Content-Type: multipart/mixed; boundary=", "-"),
                (&format!("{mixed}b\n\n"), "--b\n\n"),
                (&format!("{mixed}b\n\n"), "--b\na:b\n"),
                (&format!("{mixed}-\n\n"), "-"),
                ("\n", "\n"),
                ("\n", "> a\nb\n"),
                ("\n", "On a wrote:\n"),
                ("Content-Type: text/html\n\n", "<p>\u{200b}x"),
                ("Content-Transfer-Encoding: base64\n\n", "QUFB\n"),
                ("Content-Transfer-Encoding: quoted-printable\n\n", "=41=\n"),
            ] {
                drop(std::mem::take(&mut text));
                text = filled(head, unit);
                mail::read(text.as_bytes(), &[]).unwrap();
            }
            let (quoted, _) = cl_capture::mbox::unquote(filled("\n>From a\n", "\n").into_bytes());
            assert!(quoted.len() < 2 * BYTES);
            let growth = high_water_kib() - before;
            assert!(growth < MAX_GROWTH_KIB, "grew by {growth} KiB");
        },
    );
}
