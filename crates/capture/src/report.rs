//! What a run did: counts, and where the refused items are.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

use serde_json::{Value, json};

/// The most refused items that are named one by one.
const MAX_NAMED: usize = 1000;

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Items that the source came upon; each was captured, was there already, or was refused.
    pub found: u64,
    /// Their bytes, as far as they were handed over.
    pub read_bytes: u64,
    /// Items that got a mark.
    pub marked: u64,
    /// Items that are new in the vault.
    pub captured: u64,
    /// Items that were there already.
    pub duplicates: u64,
    /// Claims that the vault extracted.
    pub claims: u64,
    /// Refused items by code.
    pub refused: BTreeMap<String, u64>,
    /// Marked items by mark.
    pub marks: BTreeMap<String, u64>,
    /// The first refused items.
    pub refused_items: Vec<RefusedItem>,
}

/// An item that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedItem {
    /// The code.
    pub code: String,
    /// Its file.
    pub path: PathBuf,
    /// Where it begins in the file.
    pub start: u64,
}

impl Report {
    /// How many items were refused.
    pub fn refused_total(&self) -> u64 {
        self.refused.values().sum()
    }

    /// All items of the run.
    pub fn total(&self) -> u64 {
        self.captured + self.duplicates + self.refused_total()
    }

    pub(crate) fn refuse(&mut self, item: RefusedItem) {
        *self.refused.entry(item.code.clone()).or_default() += 1;
        if self.refused_items.len() < MAX_NAMED {
            self.refused_items.push(item);
        }
    }

    pub(crate) fn mark(&mut self, marks: &[String]) {
        self.marked += u64::from(!marks.is_empty());
        for mark in marks {
            *self.marks.entry(mark.clone()).or_default() += 1;
        }
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Value {
        let items = self.refused_items.iter().map(|item| {
            json!({"code": item.code, "file": item.path.to_string_lossy(), "start": item.start})
        });
        json!({
            "report_version": 1,
            "found": self.found,
            "captured": self.captured,
            "duplicates": self.duplicates,
            "claims": self.claims,
            "marked": self.marked,
            "refused": self.refused,
            "marks": self.marks,
            "refused_items": items.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![
            ("captured".to_owned(), self.captured),
            ("duplicates".to_owned(), self.duplicates),
            ("marked".to_owned(), self.marked),
            ("refused".to_owned(), self.refused_total()),
            ("claims".to_owned(), self.claims),
        ];
        rows.extend(
            self.refused
                .iter()
                .map(|(code, count)| (format!("refused {code}"), *count)),
        );
        rows.extend(
            self.marks
                .iter()
                .map(|(mark, count)| (format!("mark {mark}"), *count)),
        );
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut out = String::new();
        for (name, count) in rows {
            writeln!(out, "{name:width$}  {count:>8}")?;
        }
        for item in &self.refused_items {
            writeln!(
                out,
                "{}: {} at byte {}",
                item.code,
                item.path.display(),
                item.start
            )?;
        }
        formatter.write_str(&out)
    }
}
