//! How much of a labelled corpus extraction finds, and how much of what it finds is right. See
//! `docs/benchmarks.md` for the method.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and talks to a terminal"
)]

#[allow(dead_code, reason = "the tests of the corpus use the rest")]
#[path = "../../tests/extraction/corpus.rs"]
mod corpus;
#[allow(dead_code, reason = "the tests of the corpus use the rest")]
#[path = "../../tests/extraction/score.rs"]
mod score;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use cl_wire::vault::v1::TextOrigin;
use serde_json::{Value, json};

use crate::corpus::{Facts, LABELS, Labelled, Part, found, read};
use crate::score::{Score, score};

/// The goals, for each predicate of the measured part.
const PRECISION: f64 = 0.95;
const RECALL: f64 = 0.85;

const DATE: &str = "requested_delivery_date";

#[expect(
    clippy::disallowed_methods,
    reason = "the script names the interpreter in the environment"
)]
fn main() {
    let mut rows = Vec::new();
    println!(
        "{:<10}{:<26}{:>7}{:>7}{:>7}{:>11}{:>9}",
        "part", "predicate", "right", "wrong", "missed", "precision", "recall"
    );
    for part in [Part::Working, Part::Measured] {
        let messages = read(part);
        let (scores, _) = score(&messages, |it| found(&it.extract()));
        for (predicate, score) in scores {
            rows.push(row(part, predicate, "cl-extract", score));
        }
        println!("{} messages", messages.len());
    }
    println!("goals for the measured part: precision >= {PRECISION}, recall >= {RECALL}");
    match env::var_os("CL_DATEPARSER_PYTHON") {
        Some(python) => rows.extend(compared(&python)),
        None => println!("dateparser: CL_DATEPARSER_PYTHON names no interpreter, not compared"),
    }
    publish(&rows);
}

/// Prints a row, and makes it one of the report.
fn row(part: Part, predicate: &str, by: &str, score: Score) -> Value {
    let (precision, recall) = (score.precision(), score.recall());
    let Score {
        right,
        wrong,
        missed,
    } = score;
    println!(
        "{:<10}{predicate:<26}{right:>7}{wrong:>7}{missed:>7}{precision:>11.3}{recall:>9.3}",
        part.name()
    );
    json!({
        "operation": format!("extraction, {}: {predicate} by {by}", part.name()),
        "right": right,
        "wrong": wrong,
        "missed": missed,
        "precision": precision,
        "recall": recall,
        "goal": (part == Part::Measured && by == "cl-extract")
            .then(|| json!({"precision": PRECISION, "recall": RECALL})),
    })
}

/// The days that the package finds in the same messages, twice: in all of them, and only in those
/// whose author asks for something, as if it could tell.
fn compared(python: &OsStr) -> Vec<Value> {
    let mut rows = Vec::new();
    println!("dateparser ({DATE}), in all messages and in those with a request:");
    for part in [Part::Working, Part::Measured] {
        let messages = read(part);
        let days = days(python, &messages);
        let all = |message: &Labelled| only_days(&days, message);
        let asked = |message: &Labelled| {
            let facts = message.facts();
            let is_asked = !facts["requesting_stakeholder"].is_empty() || !facts[DATE].is_empty();
            let mut found = only_days(&days, message);
            if !is_asked && let Some(days) = found.get_mut(DATE) {
                days.clear();
            }
            found
        };
        let (of_all, _) = score(&messages, all);
        let (of_asked, _) = score(&messages, asked);
        rows.push(row(part, DATE, "dateparser in all", of_all[DATE]));
        rows.push(row(part, DATE, "dateparser where asked", of_asked[DATE]));
    }
    rows
}

fn only_days(days: &BTreeMap<String, BTreeSet<String>>, message: &Labelled) -> Facts {
    let mut facts: Facts = LABELS
        .iter()
        .map(|(predicate, _)| (*predicate, BTreeSet::new()))
        .collect();
    facts.insert(DATE, days.get(&message.id).cloned().unwrap_or_default());
    facts
}

fn days(python: &OsStr, messages: &[Labelled]) -> BTreeMap<String, BTreeSet<String>> {
    let lines = messages.iter().map(|message| {
        let text = corpus::words(&message.mail(), &[TextOrigin::Author]);
        json!({"id": message.id, "sent": message.sent(), "text": text}).to_string()
    });
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extraction-messages.jsonl");
    fs::write(&file, lines.collect::<Vec<_>>().join("\n")).expect("a writable folder");
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../conformance/extraction/dates.py"
    );
    let run = Command::new(python)
        .arg(script)
        .arg(&file)
        .output()
        .expect("a Python interpreter");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    let printed = String::from_utf8(run.stdout).expect("text");
    printed
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("a line of JSON");
            let days = line["days"].as_array().expect("days").iter();
            let days = days.map(|day| day.as_str().expect("a day").to_owned());
            (
                line["id"].as_str().expect("an id").to_owned(),
                days.collect(),
            )
        })
        .collect()
}

/// Adds the rows to the report that the command line names, if any.
fn publish(rows: &[Value]) {
    let mut arguments = env::args().skip(1);
    if let Some(path) = arguments.find(|argument| !argument.starts_with('-')) {
        let earlier = fs::read(&path).unwrap_or_else(|_| b"[]".to_vec());
        let mut report: Vec<Value> = serde_json::from_slice(&earlier).expect("a report");
        report.extend_from_slice(rows);
        fs::write(path, format!("{:#}\n", Value::from(report))).expect("a writable report");
    }
}
