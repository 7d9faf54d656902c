//! One adapter process per operation, within limits of time and output.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::json;

pub(crate) const ADAPTER_VERSION: &str = "context-layer-conformance-adapter/1";

/// How long to wait between two looks at a process that closed its output but still runs.
const EXIT_POLL: Duration = Duration::from_millis(2);

pub(crate) struct Limits {
    pub(crate) per_process: Duration,
    pub(crate) in_total: Duration,
    pub(crate) output_bytes: usize,
}

impl Limits {
    /// What every adapter must keep.
    pub(crate) const PUBLISHED: Self = Self {
        per_process: Duration::from_secs(10),
        in_total: Duration::from_secs(120),
        output_bytes: 4 * 1024 * 1024,
    };
}

/// A well-formed answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Result(Value),
    Refusal(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdapterFault {
    #[error("the adapter cannot be started: {0}")]
    Start(io::ErrorKind),
    #[error("the adapter's output cannot be read: {0}")]
    Read(io::ErrorKind),
    #[error("the adapter did not end in time")]
    Deadline,
    #[error("the time for all operations is used up")]
    TotalDeadline,
    #[error("the adapter wrote more than is allowed")]
    OutputTooLong,
    #[error("the adapter ended with {0}")]
    ExitStatus(ExitStatus),
    #[error("the adapter's output is not one line of strict JSON")]
    NotOneJsonLine,
    #[error("the adapter's answer is neither a result nor a refusal")]
    AnswerShape,
}

pub(crate) struct Adapter {
    command: Vec<OsString>,
    limits: Limits,
    started: Instant,
    launches: Cell<u32>,
}

impl Adapter {
    /// The time for all operations runs from here.
    pub(crate) fn new(command: Vec<OsString>, limits: Limits) -> Self {
        Self {
            command,
            limits,
            started: now(),
            launches: Cell::new(0),
        }
    }

    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }

    pub(crate) fn launches(&self) -> u32 {
        self.launches.get()
    }

    /// Runs one operation, which `request` names.
    pub(crate) fn call(&self, request: &Value) -> Result<Answer, AdapterFault> {
        parse_answer(&self.exchange(format!("{request}\n"))?)
    }

    fn exchange(&self, line: String) -> Result<Vec<u8>, AdapterFault> {
        let now = now();
        let end = self.started + self.limits.in_total;
        if now >= end {
            return Err(AdapterFault::TotalDeadline);
        }
        let deadline = end.min(now + self.limits.per_process);

        self.launches.set(self.launches.get() + 1);
        let (mut child, stdin, stdout) = self.start()?;
        // Not joined: it ends when the process has read all or has ended.
        thread::spawn(move || feed(stdin, &line));
        let output = collect(stdout, self.limits.output_bytes);
        let answer = self.wait(&mut child, &output, deadline);
        if answer.is_err() {
            // Both fail only if the process has already ended, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
        answer
    }

    fn start(&self) -> Result<(Child, ChildStdin, ChildStdout), AdapterFault> {
        let invalid = AdapterFault::Start(io::ErrorKind::InvalidInput);
        let (program, arguments) = self.command.split_first().ok_or(invalid.clone())?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| AdapterFault::Start(error.kind()))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok((child, stdin, stdout)),
            _ => Err(invalid),
        }
    }

    fn wait(
        &self,
        child: &mut Child,
        output: &Receiver<io::Result<Vec<u8>>>,
        deadline: Instant,
    ) -> Result<Vec<u8>, AdapterFault> {
        let remaining = deadline.saturating_duration_since(now());
        let bytes = match output.recv_timeout(remaining) {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return Err(AdapterFault::Read(error.kind())),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(AdapterFault::Deadline);
            }
        };
        if bytes.len() > self.limits.output_bytes {
            return Err(AdapterFault::OutputTooLong);
        }
        let status = wait_for_exit(child, deadline)?;
        if !status.success() {
            return Err(AdapterFault::ExitStatus(status));
        }
        Ok(bytes)
    }
}

fn feed(mut stdin: ChildStdin, line: &str) {
    // An adapter that does not read its input shows that by its answer.
    let _ = stdin.write_all(line.as_bytes());
}

/// Reads up to one byte more than is allowed, so that too much output can be told.
fn collect(stdout: ChildStdout, limit: usize) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(limit as u64 + 1).read_to_end(&mut bytes);
        // Nobody listens any more once the deadline has passed.
        let _ = sender.send(read.map(|_| bytes));
    });
    receiver
}

fn wait_for_exit(child: &mut Child, deadline: Instant) -> Result<ExitStatus, AdapterFault> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if now() < deadline => thread::sleep(EXIT_POLL),
            Ok(None) => return Err(AdapterFault::Deadline),
            Err(error) => return Err(AdapterFault::Read(error.kind())),
        }
    }
}

fn parse_answer(output: &[u8]) -> Result<Answer, AdapterFault> {
    let line = output.strip_suffix(b"\n").unwrap_or(output);
    if line.contains(&b'\n') {
        return Err(AdapterFault::NotOneJsonLine);
    }
    let answer = json::parse(line).map_err(|_| AdapterFault::NotOneJsonLine)?;
    let Value::Object(mut members) = answer else {
        return Err(AdapterFault::AnswerShape);
    };
    if members.len() != 2 {
        return Err(AdapterFault::AnswerShape);
    }
    let result = members.remove("result");
    match (members.get("ok"), result) {
        (Some(Value::Bool(true)), Some(result)) => Ok(Answer::Result(result)),
        (Some(Value::Bool(false)), None) => refusal_code(members.get("error")),
        _ => Err(AdapterFault::AnswerShape),
    }
}

/// The code of a refusal; adapters may add words for people, which are not looked at.
fn refusal_code(error: Option<&Value>) -> Result<Answer, AdapterFault> {
    error
        .and_then(|error| error.get("code"))
        .and_then(Value::as_str)
        .filter(|code| is_upper_snake(code))
        .map(|code| Answer::Refusal(code.to_owned()))
        .ok_or(AdapterFault::AnswerShape)
}

fn is_upper_snake(code: &str) -> bool {
    code.starts_with(|first: char| first.is_ascii_uppercase())
        && code
            .chars()
            .all(|unit| unit.is_ascii_uppercase() || unit.is_ascii_digit() || unit == '_')
}

#[expect(
    clippy::disallowed_methods,
    reason = "the deadlines are of this process's own time, not of the protocol's"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::{Adapter, AdapterFault, Answer, Limits, parse_answer};

    const LIMITS: Limits = Limits {
        output_bytes: 1024,
        ..Limits::PUBLISHED
    };

    fn shell(script: &str, limits: Limits) -> Adapter {
        Adapter::new(vec!["/bin/sh".into(), "-c".into(), script.into()], limits)
    }

    fn call(script: &str) -> Result<Answer, AdapterFault> {
        shell(script, LIMITS).call(&Value::Null)
    }

    #[test]
    fn sends_the_request_as_one_line() {
        let adapter = shell(
            r#"read -r line; printf '{"ok":true,"result":%s}\n' "$line""#,
            LIMITS,
        );
        let request = json!({"operation": "canonicalize", "value": [1]});
        assert_eq!(adapter.call(&request), Ok(Answer::Result(request)));
        assert_eq!(adapter.launches(), 1);
    }

    #[test]
    fn does_not_wait_for_an_adapter_that_never_reads() {
        let request = json!({"value": "x".repeat(1 << 20)});
        let adapter = shell(r#"echo '{"ok":true,"result":null}'"#, LIMITS);
        assert_eq!(adapter.call(&request), Ok(Answer::Result(json!(null))));
    }

    #[test]
    fn stops_an_adapter_at_the_deadline() {
        let short = Duration::from_millis(50);
        for script in ["exec sleep 60", "exec >&-; exec sleep 60"] {
            let limits = Limits {
                per_process: short,
                ..LIMITS
            };
            let found = shell(script, limits).call(&Value::Null);
            assert_eq!(found, Err(AdapterFault::Deadline), "{script}");
        }
        let limits = Limits {
            in_total: Duration::ZERO,
            ..LIMITS
        };
        let adapter = shell("exec sleep 60", limits);
        assert_eq!(adapter.call(&Value::Null), Err(AdapterFault::TotalDeadline));
        assert_eq!(adapter.launches(), 0);
    }

    #[test]
    fn refuses_an_adapter_that_breaks_the_protocol() {
        assert_eq!(
            call("exec head -c 4096 /dev/zero"),
            Err(AdapterFault::OutputTooLong)
        );
        assert!(matches!(
            call(r#"echo '{"ok":true,"result":null}'; exit 3"#),
            Err(AdapterFault::ExitStatus(_))
        ));
        let missing = Adapter::new(vec!["/nonexistent/adapter".into()], LIMITS);
        assert!(matches!(
            missing.call(&Value::Null),
            Err(AdapterFault::Start(_))
        ));
    }

    #[test]
    fn reads_only_exact_answers() {
        let read = |text: &str| parse_answer(text.as_bytes());
        assert_eq!(
            read("{\"ok\":false,\"error\":{\"code\":\"BUNDLE_EXPIRED\"}}\n"),
            Ok(Answer::Refusal("BUNDLE_EXPIRED".into()))
        );
        for text in [
            "",
            "log\n{\"ok\":true,\"result\":1}\n",
            "{\"ok\":true,\"result\":1}\n\n",
        ] {
            assert_eq!(read(text), Err(AdapterFault::NotOneJsonLine), "{text}");
        }
        for text in [
            "[]",
            r#"{"ok":true}"#,
            r#"{"ok":1,"result":1}"#,
            r#"{"ok":true,"result":1,"more":1}"#,
            r#"{"ok":false,"result":1}"#,
            r#"{"ok":false,"error":{"code":"lower"}}"#,
            r#"{"ok":false,"error":{"code":""}}"#,
            r#"{"ok":false,"error":"CODE"}"#,
            r#"{"ok":true,"error":{"code":"CODE"}}"#,
        ] {
            assert_eq!(read(text), Err(AdapterFault::AnswerShape), "{text}");
        }
        assert_eq!(
            read(r#"{"ok":true,"result":1,"result":2}"#),
            Err(AdapterFault::NotOneJsonLine)
        );
    }
}
