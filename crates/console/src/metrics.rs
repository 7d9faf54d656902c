//! What operators see: answers by fixed names of routes, never by paths.

use axum::response::Response;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

/// The console's own instruments.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    answers: Counter<u64>,
    refusals: Counter<u64>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            answers: meter
                .u64_counter("console_answers")
                .with_description("Answers to browsers by kind of page and status.")
                .build(),
            refusals: meter
                .u64_counter("console_refusals")
                .with_description("Refusals by code.")
                .build(),
        }
    }

    pub(crate) fn answered(&self, path: &str, response: &Response) {
        let labels = [
            KeyValue::new("page", page(path)),
            KeyValue::new("status", i64::from(response.status().as_u16())),
        ];
        self.answers.add(1, &labels);
    }

    pub(crate) fn refused(&self, code: &'static str) {
        self.refusals.add(1, &[KeyValue::new("code", code)]);
    }
}

/// The kind of page at a path.
fn page(path: &str) -> &'static str {
    const KINDS: [&str; 8] = [
        "sign-in",
        "sign-out",
        "enrol",
        "approvals",
        "access",
        "decisions",
        "receipts",
        "assets",
    ];
    let first = path.strip_prefix('/').unwrap_or(path);
    let first = first.split_once('/').map_or(first, |(first, _)| first);
    let known = KINDS.iter().find(|kind| **kind == first);
    known.copied().unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_counts_as_its_kind_and_an_id_never_shows() {
        for (path, kind) in [
            ("/approvals", "approvals"),
            ("/approvals/0190-secret/answer", "approvals"),
            ("/assets/console.js", "assets"),
            ("/", "other"),
            ("/0190-secret", "other"),
            ("", "other"),
        ] {
            assert_eq!(page(path), kind, "{path}");
        }
    }
}
