//! Memory stays flat however large an mbox is.

use std::fs;
use std::io::{BufReader, Read};

use cl_capture::mail;
use cl_capture::mbox::Mbox;

/// The size of the generated mbox.
const MBOX_BYTES: u64 = 64 * 1024 * 1024;

/// How much the process may grow while it reads that.
const MAX_GROWTH_KIB: u64 = 24 * 1024;

/// An mbox without end, made as it is read.
struct Endless {
    message: Vec<u8>,
    at: usize,
    left: u64,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let from = &self.message[self.at..];
        let length = from
            .len()
            .min(buffer.len())
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        buffer[..length].copy_from_slice(&from[..length]);
        self.at = (self.at + length) % self.message.len();
        self.left -= length as u64;
        Ok(length)
    }
}

pub(crate) fn high_water_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs the body of a test in a process of its own, so that other tests do not count.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if std::env::args().any(|it| it == "--exact") {
        return body();
    }
    let own = std::env::current_exe().unwrap();
    let status = std::process::Command::new(own)
        .args([test, "--exact", "--test-threads=1"])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn reading_a_large_mbox_does_not_grow_with_it() {
    alone(
        "memory::reading_a_large_mbox_does_not_grow_with_it",
        read_all,
    );
}

fn read_all() {
    let body = "A line of the text that stands here for many.\n".repeat(200);
    let message =
        format!("From - Thu Oct 29 08:02:11 2026\nFrom: a@b.example\nSubject: s\n\n{body}\n");
    let endless = |left| Endless {
        message: message.clone().into_bytes(),
        at: 0,
        left,
    };
    let read = |bytes| {
        let mut mbox = Mbox::new(BufReader::new(endless(bytes)), 1 << 26);
        let mut count = 0_u64;
        while let Some(raw) = mbox.next_message().unwrap() {
            mail::read(&raw.bytes, &[]).unwrap();
            count += 1;
        }
        count
    };
    read(1024 * 1024);
    let before = high_water_kib();
    let count = read(MBOX_BYTES / 8);
    assert!(count > 800);
    let mut mbox = Mbox::new(BufReader::new(endless(MBOX_BYTES)), 1 << 26);
    while mbox.next_message().unwrap().is_some() {}
    let growth = high_water_kib() - before;
    assert!(growth < MAX_GROWTH_KIB, "grew by {growth} KiB");
}
