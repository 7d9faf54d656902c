//! How benchmarks compare and report: ratios of an operation to its floor.

use std::env;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What a ratio must be.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// The operation takes at most this many times as long as its floor.
    AtMost(f64),
    /// The operation does at least this many times as much as its floor in the same time.
    #[allow(dead_code, reason = "not every benchmark has such a goal")]
    AtLeast(f64),
}

impl Goal {
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::AtMost(goal) | Self::AtLeast(goal) => goal,
        }
    }
}

/// What is compared.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "not every benchmark measures memory")]
pub(crate) enum Measure {
    Time(Duration),
    Bytes(u64),
}

impl From<Duration> for Measure {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl Measure {
    /// In seconds, or in bytes.
    fn number(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Bytes(bytes) => bytes as f64,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Time(time) => format!("{time:.2?}"),
            Self::Bytes(bytes) => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Time(_) => "s",
            Self::Bytes(_) => "B",
        }
    }
}

/// One comparison.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) goal: Option<Goal>,
    pub(crate) ours: Measure,
    pub(crate) floor: Measure,
    pub(crate) floor_is: String,
    /// What a reader must know, such as why the goal does not apply.
    pub(crate) note: Option<String>,
}

impl Row {
    /// In the direction of the goal: of times, or of amounts.
    fn ratio(&self) -> f64 {
        let times = self.ours.number() / self.floor.number();
        match self.goal {
            Some(Goal::AtLeast(_)) => 1.0 / times,
            Some(Goal::AtMost(_)) | None => times,
        }
    }

    fn goal_text(&self) -> String {
        match self.goal {
            None => "-".to_owned(),
            Some(Goal::AtMost(goal)) => format!("<= {goal:.1}"),
            Some(Goal::AtLeast(goal)) => format!(">= {goal:.1}"),
        }
    }
}

/// The beginning of a time that is measured.
#[expect(
    clippy::disallowed_methods,
    reason = "measuring is what this program is for"
)]
pub(crate) fn start() -> Instant {
    Instant::now()
}

/// The value below which this share of the times lies.
pub(crate) fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    let last = times.len() - 1;
    times[(last as f64 * share).round() as usize]
}

/// Prints the rows, and adds them to the JSON report that the command line names, if any.
pub(crate) fn publish(rows: &[Row]) {
    println!(
        "{:<44}{:>12}{:>12}{:>8}{:>9}  floor",
        "operation", "ours", "floor", "ratio", "goal"
    );
    for row in rows {
        println!(
            "{:<44}{:>12}{:>12}{:>8.2}{:>9}  {}",
            row.name,
            row.ours.text(),
            row.floor.text(),
            row.ratio(),
            row.goal_text(),
            row.floor_is,
        );
        if let Some(note) = &row.note {
            println!("    {note}");
        }
    }
    if let Some(path) = arguments().next() {
        let earlier = fs::read(&path).unwrap_or_else(|_| b"[]".to_vec());
        let mut report: Vec<Value> = serde_json::from_slice(&earlier).expect("a report");
        report.extend(rows.iter().map(to_json));
        fs::write(path, format!("{:#}\n", Value::from(report))).expect("a writable report");
    }
}

/// The report's path and the sections asked for; `cargo bench` adds flags of its own.
pub(crate) fn arguments() -> impl Iterator<Item = String> {
    env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
}

fn to_json(row: &Row) -> Value {
    json!({
        "operation": row.name,
        "ours": row.ours.number(),
        "floor": row.floor.number(),
        "unit": row.ours.unit(),
        "ratio": row.ratio(),
        "goal": row.goal.map(Goal::number),
        "goal_is": row.goal.map(|goal| match goal {
            Goal::AtMost(_) => "at most",
            Goal::AtLeast(_) => "at least",
        }),
        "floor_is": row.floor_is,
        "note": row.note,
    })
}
