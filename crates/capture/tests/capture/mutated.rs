//! Thousands of broken messages and calendars in one run: no panic, bounded memory, and as many
//! outcomes as files.

use std::fs;
use std::path::Path;

use cl_capture::mail;

use crate::memory::{alone, high_water_kib};
use crate::support::{World, fixtures, fixtures_of};

/// How many files are made unless `CL_MUTATIONS` says otherwise.
const DEFAULT_COUNT: usize = 600;

/// How much the process may grow while it reads them.
const MAX_GROWTH_KIB: u64 = 96 * 1024;

/// Pieces that mean something to a reader.
const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"\n\n",
    b"--",
    b"Content-Type: multipart/mixed; boundary=b\r\n",
    b"Content-Type: message/rfc822\r\n\r\n",
    b"Content-Type: text/calendar\r\n\r\n",
    b"Content-Transfer-Encoding: base64\r\n",
    b"=?utf-8?b?",
    b"?=",
    b"<!--",
    b"<div style='display:none'>",
    b"BEGIN:VCALENDAR\r\n",
    b"BEGIN:VEVENT\r\n",
    b"END:VEVENT\r\n",
    b"RRULE:FREQ=DAILY;INTERVAL=0\r\n",
    b"RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30\r\n",
    b"RRULE:FREQ=HOURLY;BYMINUTE=0,30\r\n",
    b"EXRULE:FREQ=DAILY;BYHOUR=1,2,3\r\n",
    b"RDATE;VALUE=PERIOD:20261106T100000/P1D\r\n",
    b"RECURRENCE-ID;RANGE=THISANDFUTURE:20261112T090000Z\r\n",
    b"BEGIN:VALARM\r\n",
    b"DTSTART;TZID=x:99991231T235959\r\n",
    b"EXDATE:20260101,",
    b"\xff\xfe\x00",
    b"\xe2\x80\xae",
    b"From - Thu Oct 29 08:02:11 2026\r\n",
    b"\x78\x9f\x3e\x22",
];

/// A generator that gives the same numbers each time (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap();
        usize::try_from(self.next() % bound).unwrap()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test that may take longer has no other settings"
)]
fn count() -> usize {
    let stated = std::env::var("CL_MUTATIONS").ok();
    stated.map_or(DEFAULT_COUNT, |it| it.parse().unwrap())
}

fn seeds(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|it| it == "eml" || it == "ics")
        })
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn mutated(seeds: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seeds[numbers.below(seeds.len())].clone();
    for _ in 0..=numbers.below(6) {
        let at = numbers.below(bytes.len());
        let end = (at + numbers.below(80)).min(bytes.len());
        match numbers.below(7) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = u8::try_from(numbers.below(256)).unwrap();
                }
            }
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copied = bytes[at..end].to_vec();
                bytes.splice(at..at, copied);
            }
            3 => bytes.truncate(at),
            4 => {
                let other = &seeds[numbers.below(seeds.len())];
                let from = numbers.below(other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => {
                let piece = PIECES[numbers.below(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

fn write_all(folder: &Path, seeds: &[Vec<u8>], suffix: &str) -> usize {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let count = count();
    for number in 0..count {
        let path = folder.join(format!("{number}.{suffix}"));
        fs::write(path, mutated(seeds, &mut numbers)).unwrap();
    }
    count
}

fn run(body: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(body);
}

#[test]
fn each_broken_message_has_an_outcome() {
    alone("mutated::each_broken_message_has_an_outcome", || {
        let folder = tempfile::tempdir().unwrap();
        let mut all = seeds(&fixtures().join("eml"));
        all.extend(seeds(&fixtures_of("calendar")).into_iter().map(|ics| {
            let head = b"From: a@b.example\r\nContent-Type: text/calendar\r\n\r\n";
            [head.as_slice(), &ics].concat()
        }));
        let files = write_all(folder.path(), &all, "eml") as u64;
        run(async {
            let world = World::new().await;
            // A first run, so that what every run takes does not count.
            world.run(&fixtures().join("eml")).await.unwrap();
            let before = high_water_kib();
            let report = world.run(folder.path()).await.unwrap();
            let growth = high_water_kib() - before;
            assert_eq!(report.found, files, "a file without an outcome: {report}");
            assert_eq!(report.total(), files);
            let kept = world.vault.kept.lock().unwrap();
            assert!(kept.broken.is_empty(), "{:?}", kept.broken);
            // The vault of the test keeps all of it, and what was read out of it.
            let payloads: usize = kept.payloads.values().map(Vec::len).sum();
            let kept_kib = 8 * (payloads as u64 / 1024 + files);
            assert!(growth < MAX_GROWTH_KIB + kept_kib, "grew by {growth} KiB");
        });
    });
}

#[test]
fn each_broken_calendar_has_an_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let seeds = seeds(&fixtures_of("calendar"));
    assert!(!seeds.is_empty());
    write_all(folder.path(), &seeds, "ics");
    run(async {
        let world = World::new().await;
        let report = world.run_calendar(folder.path()).await.unwrap();
        assert_eq!(report.found, report.total(), "{report}");
        assert!(
            report.captured > 0 && report.refused_total() > 0,
            "{report}"
        );
        let kept = world.vault.kept.lock().unwrap();
        assert!(kept.broken.is_empty(), "{:?}", kept.broken);
    });
}

#[test]
fn thirty_thousand_and_more_fields_hide_neither_author_nor_references() {
    for fields in [3_000, 30_000, 300_000] {
        let mut text = String::new();
        for at in 0..fields {
            text.push_str(&format!("X-Hop-Note-{at}: v{at}\r\n"));
        }
        text.push_str(
            "From: ops@drift.example\r\nDate: Thu, 12 Nov 2026 07:00:00 +0000\r\nReferences:\r\n",
        );
        let references = fields / 5;
        for at in 0..references {
            text.push_str(&format!(" <d-{at}@drift.example>\r\n"));
        }
        text.push_str("\r\nPlease upload the data by 19 November 2026.\r\n");
        let reading = mail::read(text.as_bytes(), &[]).unwrap();
        assert_eq!(reading.content.from.unwrap().address, "ops@drift.example");
        assert!(reading.content.sent_at.is_some());
        assert_eq!(reading.facts.references, references);
        assert_eq!(reading.facts.header_fields, fields + 3);
        assert!(reading.content.text[0].text.contains("19 November"));
        assert_eq!(reading.content.marks, ["header.message_id_missing"]);
    }
}
