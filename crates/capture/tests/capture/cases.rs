//! `conformance/adapters/*.json`: what each native item comes to, in every form in which it can stand,
//! whatever the time zone of the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cl_capture::report::Report;
use cl_model::digest::Digest;
use cl_model::time::UnixTime;
use cl_wire::vault::v1::{MailContent, Meeting, TextOrigin};
use serde_json::{Value, json};

use crate::support::World;
use crate::vault::Kept;

const ZONES: [&str; 3] = ["UTC", "America/Los_Angeles", "Pacific/Auckland"];

/// Runs a test in a process of its own for each of some time zones.
fn in_each_zone(test: &str, body: impl Future<Output = ()>) {
    if std::env::args().any(|it| it == "--exact") {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        return runtime.unwrap().block_on(body);
    }
    for zone in ZONES {
        let own = std::env::current_exe().unwrap();
        let mut child = std::process::Command::new(own);
        let status = child.args([test, "--exact"]).env("TZ", zone).status();
        assert!(status.unwrap().success(), "in {zone}");
    }
}

struct Case {
    name: String,
    bytes: Vec<u8>,
    expect: Value,
}

fn cases(adapter: &str, native: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance/adapters")
        .join(adapter)
        .with_extension("json");
    let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap().iter();
    let read = cases.map(|case| {
        let lines = case[native].as_array().unwrap().iter();
        let lines: Vec<&str> = lines.map(|line| line.as_str().unwrap()).collect();
        let text = lines.join("\r\n");
        let bytes = if case["bytes"] == "latin1" {
            text.chars()
                .map(|it| u8::try_from(u32::from(it)).unwrap())
                .collect()
        } else {
            text.into_bytes()
        };
        Case {
            name: case["name"].as_str().unwrap().to_owned(),
            bytes,
            expect: case.clone(),
        }
    });
    let read: Vec<Case> = read.collect();
    assert!(read.len() > 20);
    read
}

/// What is captured of one payload.
fn find<'a, T>(kept: &'a BTreeMap<String, T>, payload: &[u8]) -> Option<&'a T> {
    let digest = Digest::of_bytes(payload).to_string();
    kept.iter()
        .find(|(key, _)| key.ends_with(&digest))
        .map(|(_, found)| found)
}

fn sorted(marks: &[String]) -> Vec<String> {
    let mut marks = marks.to_vec();
    marks.sort();
    marks
}

fn said(content: &MailContent, origin: TextOrigin) -> String {
    let parts = content.text.iter().filter(|it| it.origin() == origin);
    let texts: Vec<&str> = parts.map(|it| it.text.trim()).collect();
    texts.join("\n").replace("\r\n", "\n")
}

fn meetings(meetings: &[Meeting], expect: &Value) -> Value {
    let described = meetings.iter().enumerate().map(|(at, meeting)| {
        let times: Vec<&str> = meeting.times.iter().map(|it| it.time.as_str()).collect();
        let mut described = json!({
            "organizer": meeting.organizer.as_ref().map(|it| it.address.as_str()),
            "sequence": meeting.sequence,
            "is_cancelled": meeting.is_cancelled,
            "is_one_of_series": meeting.is_one_of_series,
            "times": times,
            "marks": meeting.marks,
        });
        let occurrences = meeting.times.iter().map(|it| it.occurrence.as_str());
        let stamped_at = meeting.stamped_at.as_ref();
        let stamped_at = stamped_at.map(|it| UnixTime::from_milliseconds(it.seconds * 1000));
        for (name, value) in [
            ("occurrences", occurrences.collect()),
            ("is_and_later", json!(meeting.is_and_later)),
            ("stamped_at", json!(stamped_at.map(|it| it.to_string()))),
        ] {
            if expect[at].get(name).is_some() {
                described[name] = value;
            }
        }
        described
    });
    described.collect()
}

/// What an adapter declares that it loses.
fn lossy_fields(adapter: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../schemas/adapters")
        .join(adapter)
        .with_extension("json");
    let manifest: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let declared = manifest["lossy_fields"].as_array().unwrap().iter();
    declared.map(|it| it["field"].clone()).collect()
}

#[test]
fn messages_within_stay_within_their_bounds() {
    let deep = "Content-Type: message/rfc822\r\n\r\n".repeat(3);
    let inner =
        |depth: &str| format!("From: a@b.example\r\n{depth}From: c@d.example\r\n\r\nPay.\r\n");
    let read = |text: &str| cl_capture::mail::read(text.as_bytes(), &[]).unwrap();
    let shallow = read(&inner(&deep));
    assert_eq!(said(&shallow.content, TextOrigin::Forwarded), "Pay.");
    let too_deep = read(&inner(&deep.repeat(2)));
    assert_eq!(said(&too_deep.content, TextOrigin::Forwarded), "");
    let mark = "attachment.message_not_read".to_owned();
    assert!(too_deep.content.marks.contains(&mark) && !shallow.content.marks.contains(&mark));
    let part = "--b\r\nContent-Type: message/rfc822\r\n\r\nFrom: c@d.example\r\n\r\nPay.\r\n";
    let many = format!(
        "From: a@b.example\r\nContent-Type: multipart/digest; boundary=b\r\n\r\n{}--b--\r\n",
        part.repeat(40)
    );
    let many = read(&many);
    assert_eq!(many.content.text.len(), 32);
    assert!(many.content.marks.contains(&mark));
}

fn check_event(event: &Value, expect: &Value, name: &str) {
    let adapter = event["adapter"]["name"].as_str().unwrap();
    let lossy = &event["adapter"]["lossy_fields"];
    assert_eq!(lossy, &lossy_fields(adapter), "{name}: as declared");
    let Some(places) = expect.as_object() else {
        return;
    };
    for (place, expected) in places {
        let found = event.pointer(place).unwrap_or(&Value::Null);
        assert_eq!(found, expected, "{name}: {place}");
    }
}

fn check_mail(kept: &Kept, case: &Case, form: &str) {
    let name = format!("{} ({form})", case.name);
    let expect = &case.expect["expect"];
    let found = find(&kept.contents, &case.bytes).zip(find(&kept.events, &case.bytes));
    let (content, event) = found.unwrap_or_else(|| panic!("{name}: not captured"));
    let found = json!({
        "author": content.from.as_ref().map(|it| it.address.as_str()),
        "author_name": content.from.as_ref().map(|it| it.name.as_str()),
        "subject": content.subject_line,
        "sent_at": event.get("occurred_at"),
        "offset_minutes": content.utc_offset_minutes,
        "own": said(content, TextOrigin::Author),
        "forwarded": said(content, TextOrigin::Forwarded),
        "marks": sorted(&content.marks),
        "meetings": meetings(&content.meetings, &expect["meetings"]),
    });
    for (member, expected) in expect.as_object().unwrap() {
        if member != "event" {
            assert_eq!(&found[member], expected, "{name}: {member}");
        }
    }
    assert!(expect.get("marks").is_some(), "{name}: say which marks");
    check_event(event, &expect["event"], &name);
}

async fn all_mail(form: &str, write: impl Fn(&Path, &[Case])) {
    let cases = cases("email", "message");
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &cases);
    let world = World::new().await;
    let report = world.run(folder.path()).await.unwrap();
    assert_eq!(report.captured, cases.len() as u64, "{form}: {report}");
    assert_eq!(report.total(), report.captured, "{form}: {report}");
    let kept = world.vault.kept.lock().unwrap();
    assert!(kept.broken.is_empty(), "{:?}", kept.broken);
    for case in &cases {
        check_mail(&kept, case, form);
    }
}

#[test]
fn every_message_in_a_file_of_its_own() {
    let body = all_mail("file", |folder, cases| {
        for (number, case) in cases.iter().enumerate() {
            fs::write(folder.join(format!("{number}.EML")), &case.bytes).unwrap();
        }
    });
    in_each_zone("cases::every_message_in_a_file_of_its_own", body);
}

#[test]
fn every_message_in_a_maildir() {
    let body = all_mail("Maildir", |folder, cases| {
        let parts = [
            "cur",
            "new",
            "tmp",
            ".Archive.2026/cur",
            ".Archive.2026/new",
        ];
        for part in parts {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        fs::write(folder.join("tmp/half"), "From: half").unwrap();
        fs::write(folder.join("dovecot-uidlist"), "3 V1 N2").unwrap();
        let places = ["cur", "new", ".Archive.2026/cur"];
        for (number, case) in cases.iter().enumerate() {
            let place = places[number % places.len()];
            let flags = if place == "new" { "" } else { ":2,S" };
            let name = format!("{place}/{number}.host{flags}");
            fs::write(folder.join(name), &case.bytes).unwrap();
        }
    });
    in_each_zone("cases::every_message_in_a_maildir", body);
}

#[test]
fn every_message_in_an_mbox() {
    let body = all_mail("mbox", |folder, cases| {
        let mut mbox = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            let separators = [
                "From tomas@lind-print.example Tue Nov 10 08:30:02 2026",
                "From - Tue Nov 10 08:30:02 2026",
                "From MAILER-DAEMON Tue Nov 10 08:30:02 +0000 2026",
            ];
            mbox.extend(separators[number % separators.len()].bytes());
            mbox.extend(b"\r\n");
            mbox.extend(&case.bytes);
            mbox.extend(b"\r\n");
        }
        fs::write(folder.join("all.mbox"), mbox).unwrap();
    });
    in_each_zone("cases::every_message_in_an_mbox", body);
}

#[test]
fn flags_of_a_maildir_are_kept_with_the_event() {
    in_each_zone("cases::flags_of_a_maildir_are_kept_with_the_event", async {
        let folder = tempfile::tempdir().unwrap();
        for part in ["cur", "new", "tmp"] {
            fs::create_dir(folder.path().join(part)).unwrap();
        }
        let message = "From: a@b.example\r\nMessage-ID: <a@b>\r\n\r\nhello\r\n";
        fs::write(folder.path().join("cur/1.a:2,DRST"), message).unwrap();
        let world = World::new().await;
        let report = world.run(folder.path()).await.unwrap();
        assert_eq!(report.marks["mail.draft"], 1);
        let kept = world.vault.kept.lock().unwrap();
        let event = kept.events.values().next().unwrap();
        let flags = &event["adapter_data"]["context-layer.email"]["flags"];
        assert_eq!(flags, &json!(["draft", "replied", "seen", "trashed"]));
        assert_eq!(event["deletion"]["reason"], "maildir.trashed");
    });
}

#[test]
fn every_calendar_file() {
    in_each_zone("cases::every_calendar_file", async {
        let cases = cases("calendar", "file");
        for case in &cases {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("one.ICS"), &case.bytes).unwrap();
            fs::write(folder.path().join("note.txt"), "no calendar").unwrap();
            let world = World::new().await;
            let report = world.run_calendar(folder.path()).await.unwrap();
            check_calendar(&world.vault.kept.lock().unwrap(), case, &report);
        }
    });
}

fn check_calendar(kept: &Kept, case: &Case, report: &Report) {
    let name = &case.name;
    assert!(kept.broken.is_empty(), "{name}: {:?}", kept.broken);
    assert_eq!(report.found, report.total(), "{name}");
    if let Some(code) = case.expect["refused"].as_str() {
        assert_eq!((report.captured, report.refused[code]), (0, 1), "{name}");
        return;
    }
    let objects = case.expect["objects"].as_array().unwrap();
    assert_eq!(report.captured, objects.len() as u64, "{name}: {report}");
    let mut left: Vec<&Value> = objects.iter().collect();
    for (key, content) in &kept.calendars {
        let at = left.iter().position(|expect| {
            meetings(&content.meetings, &expect["meetings"]) == expect["meetings"]
                && json!(sorted(&content.marks)) == expect["marks"]
        });
        let at = at.unwrap_or_else(|| {
            panic!(
                "{name}: {} {:?}",
                meetings(&content.meetings, &Value::Null),
                content.marks
            )
        });
        check_event(&kept.events[key], &left.remove(at)["event"], name);
    }
    assert!(left.is_empty(), "{name}");
}
