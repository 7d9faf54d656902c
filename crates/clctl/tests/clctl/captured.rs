//! What people have, in the forms in which they have it: claims and a report of it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::TestHome;

const OWNER: &str = "--owner-address=mira@solberg.example";

fn fixtures(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/fixtures");
    folder.join(name)
}

/// Predicate, value and status of each claim of a subject, in order.
fn claims(home: &TestHome, subject: &str) -> Vec<(String, String, String)> {
    let subject = format!("--subject={subject}");
    let listed = home.json(&["claims", "list", "--limit=500", &subject]);
    let entries = listed["claims"].as_array().unwrap();
    assert_eq!(listed["total"], entries.len(), "one page");
    let claims = entries.iter().map(|entry| {
        let claim = &entry["claim"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (
            text(&claim["predicate"]),
            claim["object"]["value"].to_string(),
            text(&claim["status"]),
        )
    });
    let mut claims: Vec<_> = claims.collect();
    claims.sort();
    claims
}

/// The messages of the fixtures.
fn messages() -> Vec<Vec<u8>> {
    let files = fs::read_dir(fixtures("mail/eml")).unwrap();
    let mut paths: Vec<_> = files.map(|it| it.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|it| fs::read(it).unwrap()).collect()
}

#[test]
fn files_a_maildir_and_an_mbox_give_the_same_claims() {
    let home = TestHome::new();
    let _up = home.up();
    let all = messages();
    let maildir = PathBuf::from(home.beside("Maildir"));
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(maildir.join(part)).unwrap();
    }
    let mut mbox = Vec::new();
    for (number, message) in all.iter().enumerate() {
        fs::write(maildir.join(format!("cur/{number}.host:2,S")), message).unwrap();
        mbox.extend(b"From a@b.example Tue Nov 10 08:30:02 2026\n");
        for line in message.split_inclusive(|it| *it == b'\n') {
            if line.starts_with(b"From ") {
                mbox.push(b'>');
            }
            mbox.extend(line);
        }
        mbox.extend(b"\n\n");
    }
    let mailbox = home.beside("all.mbox");
    fs::write(&mailbox, mbox).unwrap();
    let forms = [
        ("files", fixtures("mail/eml").display().to_string()),
        ("maildir", maildir.display().to_string()),
        ("mbox", mailbox),
    ];
    let found = forms.map(|(form, path)| {
        let subject = format!("vault://subjects/{form}");
        let of = format!("--subject={subject}");
        let report = home.json(&["capture", "mail", &path, OWNER, &of]);
        assert_eq!(report["found"], all.len(), "{form}: {report}");
        assert_eq!(report["captured"], all.len(), "{form}: {report}");
        claims(&home, &subject)
    });
    assert!(found[0].len() > all.len(), "{:?}", found[0]);
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
}

fn times(home: &TestHome, subject: &str) -> Vec<(String, String)> {
    let claims = claims(home, subject).into_iter();
    let times = claims.filter(|(predicate, ..)| predicate == "meeting_time");
    times.map(|(_, value, status)| (value, status)).collect()
}

fn half_hour(day: &str) -> String {
    json!(format!("2026-11-{day}T09:00:00Z/2026-11-{day}T09:30:00Z")).to_string()
}

#[test]
fn a_calendar_gives_meetings_and_its_later_word_counts() {
    const SUBJECT: &str = "vault://subjects/calendar";
    let home = TestHome::new();
    let _up = home.up();
    let of = format!("--subject={SUBJECT}");
    let calendar = |path: &str| {
        let answer = home.run(&["--json", "capture", "calendar", path, &of]);
        let report: Value = serde_json::from_str(&answer.stdout).unwrap();
        (answer.code, report)
    };
    let series = fs::read_to_string(fixtures("calendar/series.ics")).unwrap();
    let folder = PathBuf::from(home.beside("Calendars"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("series.ics"), &series).unwrap();
    fs::write(folder.join("broken.ics"), "no calendar").unwrap();
    let path = folder.display().to_string();
    let (code, report) = calendar(&path);
    assert_eq!(code, Some(3), "some were refused: {report}");
    assert_eq!(report["captured"], 1, "{report}");
    assert_eq!(report["refused"]["NOT_A_CALENDAR"], 1, "{report}");
    let (_, again) = calendar(&path);
    assert_eq!(again["duplicates"], 1, "{again}");
    let derived = |day: &str| (half_hour(day), "derived".to_owned());
    let all = ["05", "12", "19", "26"].map(derived);
    assert_eq!(times(&home, SUBJECT), all);

    // A stranger's message takes nothing back.
    let cancelled = series
        .replace("METHOD:REQUEST", "METHOD:CANCEL")
        .replace("SEQUENCE:0", "SEQUENCE:9");
    let message = format!(
        "From: Mal <mal@evil.example>\r\nTo: mira@solberg.example\r\nMessage-ID: <c@evil.example>\r\n\
         Content-Type: text/calendar; method=CANCEL\r\n\r\n{cancelled}"
    );
    let message = home.write("forged.eml", &message);
    home.json(&["capture", "mail", &message, OWNER, &of]);
    assert_eq!(times(&home, SUBJECT), all);

    // The same calendar says later that two of them are half an hour earlier.
    let moved = series.replace("SEQUENCE:0", "SEQUENCE:1").replace(
        "END:VEVENT",
        "END:VEVENT\nBEGIN:VEVENT\nUID:a@roth-hall.example\nDTSTAMP:20261028T090000Z\n\
         ORGANIZER:mailto:ilse@roth-hall.example\nSEQUENCE:1\n\
         RECURRENCE-ID;RANGE=THISANDFUTURE:20261119T090000Z\nDTSTART:20261119T083000Z\n\
         DTEND:20261119T090000Z\nEND:VEVENT",
    );
    let moved = home.write("moved.ics", &moved);
    let (code, report) = calendar(&moved);
    assert_eq!(code, Some(0), "{report}");
    let early = |day: &str| json!(format!("2026-11-{day}T08:30:00Z/2026-11-{day}T09:00:00Z"));
    let early = |day: &str| (early(day).to_string(), "derived".to_owned());
    let superseded = |day: &str| (half_hour(day), "superseded".to_owned());
    let expected = [
        derived("05"),
        derived("12"),
        early("19"),
        superseded("19"),
        early("26"),
        superseded("26"),
    ];
    assert_eq!(times(&home, SUBJECT), expected);

    let listed = home.json(&["claims", "list", "--predicate=meeting_time", &of]);
    let id = listed["claims"][0]["claim"]["id"].as_str().unwrap();
    let explained = home.ok(&["claims", "explain", id, &of]);
    let reason = "The calendar object says so.";
    assert!(explained.contains(reason), "{explained}");
}
