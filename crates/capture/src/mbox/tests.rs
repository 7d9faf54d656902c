use super::*;

fn split(text: &str) -> Vec<String> {
    let mut mbox = Mbox::new(text.as_bytes(), 1 << 20);
    let mut found = Vec::new();
    while let Some(message) = mbox.next_message().unwrap() {
        assert_eq!(message.length, message.bytes.len() as u64);
        let start = usize::try_from(message.start).unwrap();
        let stated = &text.as_bytes()[start..start + message.bytes.len()];
        assert_eq!(stated, message.bytes);
        found.push(String::from_utf8(message.bytes).unwrap());
    }
    found
}

#[test]
fn a_line_of_a_text_that_begins_with_from_is_content() {
    let text = "From a@b.example Thu Oct 29 08:02:11 2026\nSubject: x\n\nFrom Monday on.\n\n\
                From here Thu it is far.\n\nFrom c@d.example Fri Oct 30 08:02:11 2026\nSubject: y\n\nz\n";
    let found = split(text);
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[0],
        "Subject: x\n\nFrom Monday on.\n\nFrom here Thu it is far.\n"
    );
    assert_eq!(found[1], "Subject: y\n\nz\n");
}

#[test]
fn reads_the_separators_of_several_programs() {
    for separator in [
        "From a@b.example Thu Oct 29 08:02:11 2026",
        "From - Thu Oct 29 08:02:11 2026",
        "From MAILER-DAEMON Thu Oct  9 08:02:11 2026",
        "From 1748@xxx Thu Oct 29 08:02:11 +0000 2026",
        "From a@b.example Thu Oct 29 08:02 CET 2026",
        "From a b c Thu Oct 29 08:02:11 2026",
    ] {
        let one = format!("{separator}\nSubject: x\n\nbody\n\n");
        assert_eq!(split(&one.repeat(3)).len(), 3, "{separator}");
        assert!(begins_like_mbox(one.as_bytes()), "{separator}");
    }
    for line in [
        "From me to you",
        "From: x",
        "from a Thu Oct 29 08:02:11 2026",
        "From a Thu Oct 29 2026",
    ] {
        assert!(!is_separator(line.as_bytes()), "{line}");
    }
}

#[test]
fn a_separator_needs_an_empty_line_before_it_or_the_start_of_a_header_behind_it() {
    let start = "From a@b.example Thu Oct 29 08:02:11 2026\nSubject: x\n\n";
    let inside = "From c@d.example Thu Oct 29 08:02:11 2026";
    assert_eq!(
        split(&format!("{start}text\n{inside}\nSubject: y\n")).len(),
        1
    );
    assert_eq!(
        split(&format!("{start}text\n\n{inside}\nno field\n")).len(),
        1
    );
    assert_eq!(
        split(&format!("{start}text\n\n{inside}\nSubject: y\n")).len(),
        2
    );
}

#[test]
fn a_writer_may_leave_out_the_empty_line() {
    let separator = "From a@b.example Mon Nov  2 10:00:00 2026";
    let text =
        format!("{separator}\nFrom: a@b.example\n\nOne.\n{separator}\nFrom: c@d.example\n\nTwo.\n");
    assert_eq!(split(&text).len(), 2);
    let told = format!("{separator}\nFrom: a@b.example\n\nOne.\n{separator}\nNote: no header.\n");
    assert_eq!(split(&told).len(), 1);
}

#[test]
fn a_message_beyond_the_bound_comes_cut_with_the_digest_of_all_its_bytes() {
    let body = "x".repeat(700_000);
    let text = format!(
        "From - Thu Oct 29 08:02:11 2026\nSubject: x\n\n{body}\n\nFrom - Thu Oct 29 08:02:11 2026\nSubject: y\n\n"
    );
    let mut mbox = Mbox::new(text.as_bytes(), 500_000);
    let first = mbox.next_message().unwrap().unwrap();
    let whole = format!("Subject: x\n\n{body}\n");
    assert_eq!(first.length, whole.len() as u64);
    assert_eq!(first.cut, Some(Digest::of_bytes(whole.as_bytes())));
    assert!(first.bytes.len() <= HEAD_BYTES);
    let second = mbox.next_message().unwrap().unwrap();
    assert_eq!(second.bytes, b"Subject: y\n");
}

#[test]
fn takes_quotation_off_only_where_it_is_the_mbox_that_quoted() {
    let (plain, doubt) = unquote(b"a\n>From me\nb\n".to_vec());
    assert_eq!(
        (plain.as_slice(), doubt),
        (b"a\nFrom me\nb\n".as_slice(), false)
    );
    let (plain, doubt) = unquote(b"a\n>>From me\n".to_vec());
    assert_eq!(
        (plain.as_slice(), doubt),
        (b"a\n>From me\n".as_slice(), false)
    );
    let (kept, doubt) = unquote(b"> a\n>From me\n> b\n".to_vec());
    assert_eq!(
        (kept.as_slice(), doubt),
        (b"> a\n>From me\n> b\n".as_slice(), true)
    );
}
