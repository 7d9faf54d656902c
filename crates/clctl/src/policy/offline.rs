//! Policies without any process: the same checks as the engine's, on files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cl_model::json::{self, Limits};
use cl_policy_cedar::{CaseFile, CompiledSnapshot, InvalidSnapshot, Report, translate};
use serde_json::{Value, json};

use crate::error::Error;
use crate::home::{read_json, read_text};
use crate::output::printable;
use crate::session::Session;

/// Says whether an engine would accept a snapshot.
pub(super) fn validate(file: &Path, session: &Session) -> Result<(), Error> {
    let snapshot = compiled(file)?;
    let policies = snapshot.cedar().map(|cedar| cedar.names().count());
    let identity = snapshot.identity();
    let digest = identity.digest.to_string();
    let document = json!({
        "version": identity.version.as_str(),
        "digest": digest,
        "policies": policies,
    });
    session.output.answer(&document, || match policies {
        Some(count) => format!("valid, with {count} policies in Cedar: {digest}\n"),
        None => format!("valid, in list style: {digest}\n"),
    })
}

/// Evaluates the cases of a file.
pub(super) fn test(file: &Path, session: &Session) -> Result<(), Error> {
    let invalid = |invalid: cl_policy_cedar::InvalidCases| Error::Cases {
        path: file.to_owned(),
        invalid,
    };
    let cases = CaseFile::read(&read(file)?).map_err(invalid)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let snapshot = compiled(&folder.join(cases.snapshot()))?;
    let report = cases.run(&snapshot).map_err(invalid)?;
    session
        .output
        .answer(&document(&report), || text(&report))?;
    let results = report.results.iter();
    let failed = results.filter(|it| !it.differences.is_empty()).count();
    if failed == 0 {
        Ok(())
    } else {
        Err(Error::CasesFailed { failed })
    }
}

/// Prints a list-style snapshot with its policy in Cedar.
pub(super) fn print_translation(file: &Path, session: &Session) -> Result<(), Error> {
    let translated = translate(&read(file)?).map_err(|cause| Error::Untranslatable {
        path: file.to_owned(),
        cause,
    })?;
    session
        .output
        .answer(&translated, || format!("{translated:#}\n"))
}

/// A file of strict JSON, or of YAML where its name says so.
pub(super) fn read(file: &Path) -> Result<Value, Error> {
    let is_yaml = file
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_yaml {
        return read_json(file);
    }
    let malformed = || Error::Malformed {
        path: file.to_owned(),
        expected: "YAML with distinct keys",
    };
    let tree: Value = serde_saphyr::from_str(&read_text(file)?).map_err(|_| malformed())?;
    // What YAML can say and strict JSON cannot is refused as it is in JSON.
    let text = serde_json::to_vec(&tree).map_err(|_| malformed())?;
    json::parse(&text, Limits::network(text.len())).map_err(|refusal| Error::Document {
        path: file.to_owned(),
        refusal,
    })
}

/// Refuses what an engine would not accept.
pub(super) fn check(file: &Path) -> Result<(), Error> {
    compiled(file).map(|_| ())
}

fn compiled(file: &Path) -> Result<CompiledSnapshot, Error> {
    CompiledSnapshot::read(&read(file)?).map_err(|invalid| match invalid {
        InvalidSnapshot::Refused(refusal) => Error::Document {
            path: PathBuf::from(file),
            refusal,
        },
        InvalidSnapshot::Policies(invalid) => Error::Policies {
            path: PathBuf::from(file),
            invalid,
        },
    })
}

fn document(report: &Report) -> Value {
    let cases = report.results.iter().map(|result| {
        json!({
            "name": result.name,
            "passed": result.differences.is_empty(),
            "differences": result.differences,
        })
    });
    json!({
        "passed": report.has_passed(),
        "cases": cases.collect::<Vec<_>>(),
        "policies": report.policies,
        "unused": report.unused.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
    })
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for result in &report.results {
        let verdict = if result.differences.is_empty() {
            "ok"
        } else {
            "FAILED"
        };
        // Writing into a string does not fail.
        let _written = writeln!(text, "{verdict:6}  {}", printable(&result.name));
        for difference in &result.differences {
            let _written = writeln!(text, "        {}", printable(difference));
        }
    }
    let used = report.policies - report.unused.len();
    let _written = writeln!(
        text,
        "{used} of {} policies decided something",
        report.policies
    );
    for name in &report.unused {
        let _written = writeln!(text, "  never: {name}");
    }
    text
}
