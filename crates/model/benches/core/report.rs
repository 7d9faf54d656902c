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

/// One comparison.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) goal: Option<Goal>,
    pub(crate) ours: Duration,
    pub(crate) floor: Duration,
    pub(crate) floor_is: String,
    /// What a reader must know, such as why the goal does not apply.
    pub(crate) note: Option<String>,
}

impl Row {
    /// In the direction of the goal: of times, or of amounts.
    fn ratio(&self) -> f64 {
        let times = self.ours.as_secs_f64() / self.floor.as_secs_f64();
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
            format!("{:.2?}", row.ours),
            format!("{:.2?}", row.floor),
            row.ratio(),
            row.goal_text(),
            row.floor_is,
        );
        if let Some(note) = &row.note {
            println!("    {note}");
        }
    }
    // `cargo bench` adds flags of its own; the report's path is the one argument without dashes.
    if let Some(path) = env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
    {
        let earlier = fs::read(&path).unwrap_or_else(|_| b"[]".to_vec());
        let mut report: Vec<Value> = serde_json::from_slice(&earlier).expect("a report");
        report.extend(rows.iter().map(to_json));
        fs::write(path, format!("{:#}\n", Value::from(report))).expect("a writable report");
    }
}

fn to_json(row: &Row) -> Value {
    json!({
        "operation": row.name,
        "ours_ns": u64::try_from(row.ours.as_nanos()).ok(),
        "floor_ns": u64::try_from(row.floor.as_nanos()).ok(),
        "ratio": row.ratio(),
        "goal": row.goal.map(Goal::number),
        "goal_is": row.goal.map(|goal| match goal {
            Goal::AtMost(_) => "at most",
            Goal::AtLeast(_) => "at least",
        }),
        "floor": row.floor_is,
        "note": row.note,
    })
}
