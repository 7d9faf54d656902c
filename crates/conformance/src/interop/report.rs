//! Results of the checks, as lines while they run and as one JSON document at the end.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::data::{Manifest, PROFILE, SPEC_VERSION};
use super::failure::Failure;
use super::process::{ADAPTER_VERSION, Adapter};

/// Prints and keeps the outcome of each check.
pub(crate) struct Recorder<'w> {
    out: &'w mut dyn Write,
    results: Results,
}

impl<'w> Recorder<'w> {
    pub(crate) fn new(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            results: Results { checks: Vec::new() },
        }
    }

    pub(crate) fn record(
        &mut self,
        id: impl Into<String>,
        outcome: Result<(), Failure>,
    ) -> io::Result<()> {
        let id = id.into();
        match &outcome {
            Ok(()) => writeln!(self.out, "ok   {id}")?,
            Err(failure) => writeln!(self.out, "FAIL {id}: {failure}")?,
        }
        self.results.checks.push(Check { id, outcome });
        Ok(())
    }

    /// Records a check for each case; a list that is absent or empty is itself a failure.
    pub(crate) fn record_each<'v>(
        &mut self,
        group: &str,
        cases: Result<&'v [Value], Failure>,
        check: impl Fn(&'v Value) -> Result<(), Failure>,
    ) -> io::Result<()> {
        let cases = match cases {
            Ok(cases) => cases,
            Err(failure) => return self.record(format!("{group}.cases"), Err(failure)),
        };
        for case in cases {
            self.record(format!("{group}.{}", case_name(case)), check(case))?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Results {
        self.results
    }
}

pub(crate) struct Results {
    checks: Vec<Check>,
}

struct Check {
    id: String,
    outcome: Result<(), Failure>,
}

impl Results {
    pub(crate) fn passed(&self) -> usize {
        self.checks.len() - self.failed()
    }

    pub(crate) fn failed(&self) -> usize {
        let failed = self.checks.iter().filter(|check| check.outcome.is_err());
        failed.count()
    }
}

pub(crate) fn render(manifest: &Manifest, adapter: &Adapter, results: &Results) -> String {
    let checks: Vec<_> = results.checks.iter().map(Check::render).collect();
    let command: Vec<_> = adapter
        .command()
        .iter()
        .map(|part| part.to_string_lossy())
        .collect();
    let report = json!({
        "kit_version": manifest.kit_version,
        "spec_version": SPEC_VERSION,
        "profile": PROFILE,
        "adapter_version": ADAPTER_VERSION,
        "adapter": command,
        "data": {
            "manifest_sha256": manifest.sha256,
            "verified": manifest.verified,
            "skipped": manifest.skipped,
        },
        "counts": {
            "checks": results.checks.len(),
            "passed": results.passed(),
            "failed": results.failed(),
            "adapter_processes": adapter.launches(),
        },
        "checks": checks,
    });
    format!("{report:#}\n")
}

impl Check {
    fn render(&self) -> Value {
        match &self.outcome {
            Ok(()) => json!({"id": self.id, "status": "passed"}),
            Err(failure) => {
                json!({"id": self.id, "status": "failed", "reason": failure.to_string()})
            }
        }
    }
}

fn case_name(case: &Value) -> String {
    for member in ["id", "code"] {
        match case.get(member) {
            Some(Value::String(name)) => return name.clone(),
            Some(Value::Null) => return "null".into(),
            Some(_) | None => {}
        }
    }
    "unnamed".into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Recorder;
    use crate::interop::failure::Failure;
    use crate::interop::lookup;

    #[test]
    fn prints_a_line_for_each_check() {
        let mut out = Vec::new();
        let mut recorder = Recorder::new(&mut out);
        recorder.record("a.b", Ok(())).unwrap();
        recorder
            .record("a.c", Err(Failure::RecordIntegrity))
            .unwrap();
        let results = recorder.finish();
        assert_eq!((results.passed(), results.failed()), (1, 1));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "ok   a.b\nFAIL a.c: id or integrity is not that of the record\n"
        );
    }

    #[test]
    fn an_empty_list_of_cases_fails() {
        let mut out = Vec::new();
        let mut recorder = Recorder::new(&mut out);
        let data = json!({"none": [], "some": [{"id": "x"}, {"code": null}]});
        recorder
            .record_each("none", lookup::list(&data, "/none"), |_| Ok(()))
            .unwrap();
        recorder
            .record_each("some", lookup::list(&data, "/some"), |_| Ok(()))
            .unwrap();
        let results = recorder.finish();
        assert_eq!((results.passed(), results.failed()), (2, 1));
    }
}
