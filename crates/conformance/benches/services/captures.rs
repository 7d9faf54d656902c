//! The capture of a large mailbox, against parsing its messages and nothing else.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use mail_parser::MessageParser;
use serde_json::Value;
use tempfile::TempDir;

use crate::FOLDER;
use crate::mailbox;
use crate::memory;
use crate::processes::{Deployment, VAULT, programs};
use crate::report::{Goal, Measure, Row, start};

const MAILBOX_BYTES: u64 = 1 << 30;

/// The mailbox whose memory the large one must not exceed by much.
const SMALL_MAILBOX_BYTES: u64 = MAILBOX_BYTES / 4;

const THROUGHPUT_GOAL: f64 = 0.4;
const MEMORY_GOAL: f64 = 1.25;

const POLL: Duration = Duration::from_millis(20);

pub(crate) async fn rows() -> Vec<Row> {
    let folder = TempDir::new_in(FOLDER).expect("a folder");
    let path = folder.path().join("large.mbox");
    let small_path = folder.path().join("small.mbox");
    let messages = mailbox::write(&path, MAILBOX_BYTES).expect("a mailbox");
    let small_messages = mailbox::write(&small_path, SMALL_MAILBOX_BYTES).expect("a mailbox");

    let small = capture(&small_path, small_messages).await;
    let large = capture(&path, messages).await;
    let parsing = parse(&path, messages).expect("a readable mailbox");
    let per_message = |time: Duration| time / u32::try_from(messages).expect("few");
    let memory = |name: &str, large, small| Row {
        name: format!("{name}, peak memory, 1 GiB captured"),
        goal: Some(Goal::AtMost(MEMORY_GOAL)),
        ours: Measure::Bytes(large),
        floor: Measure::Bytes(small),
        floor_is: "256 MiB captured".to_owned(),
        note: None,
    };
    vec![
        Row {
            name: format!("capture of {messages} messages, 1 GiB, each"),
            goal: Some(Goal::AtLeast(THROUGHPUT_GOAL)),
            ours: per_message(large.time).into(),
            floor: per_message(parsing).into(),
            floor_is: "mail-parser on each message, one thread".to_owned(),
            note: None,
        },
        memory("cl-capture", large.capture_peak, small.capture_peak),
        memory(VAULT, large.vault_peak, small.vault_peak),
    ]
}

/// What a run took.
struct Run {
    time: Duration,
    capture_peak: u64,
    vault_peak: u64,
}

/// Captures a mailbox into a new vault, from the start of the program to its end.
async fn capture(path: &Path, messages: u64) -> Run {
    let folder = TempDir::new_in(FOLDER).expect("a folder");
    let deployment = Deployment::start_in(folder, "info", |_| ()).await;
    let mut command = Command::new(programs().join("clctl"));
    command
        .env_clear()
        .arg("--home")
        .arg(deployment.home())
        .args(["--json", "capture", "mail"])
        .args(["--owner-address", "mira@solberg.example"])
        .arg(path)
        .stdout(Stdio::piped());
    let start = start();
    let mut child = command.spawn().expect("a process");
    let mut capture_peak = 0;
    while child.try_wait().expect("a child").is_none() {
        capture_peak = capture_peak.max(memory::peak(child.id()).unwrap_or(0));
        thread::sleep(POLL);
    }
    let time = start.elapsed();
    let output = child.wait_with_output().expect("an answer");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["captured"], messages, "{report}");
    Run {
        time,
        capture_peak,
        vault_peak: memory::peak(deployment.pid(VAULT)).expect("a running process"),
    }
}

/// The time to read the mailbox and to parse each of its messages.
fn parse(path: &Path, messages: u64) -> io::Result<Duration> {
    let start = start();
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (mut message, mut line) = (Vec::new(), Vec::new());
    let mut parsed = 0;
    loop {
        line.clear();
        let is_end = reader.read_until(b'\n', &mut line)? == 0;
        if (is_end || line.starts_with(b"From ")) && !message.is_empty() {
            let read = MessageParser::default().parse(&message);
            parsed += u64::from(read.is_some());
            message.clear();
        }
        if is_end {
            break;
        }
        if !line.starts_with(b"From ") {
            message.extend_from_slice(&line);
        }
    }
    let time = start.elapsed();
    assert_eq!(parsed, messages);
    Ok(time)
}
