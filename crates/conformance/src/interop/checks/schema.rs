//! Verdicts on the closed schemas: fixtures and time offsets.

use std::io;

use serde_json::{Value, json};

use super::Context;
use crate::interop::failure::Failure;
use crate::interop::lookup;
use crate::interop::report::Recorder;

struct Fixture {
    file: &'static str,
    /// Where in the file the object is.
    pointer: &'static str,
    schema: &'static str,
    valid: bool,
}

const FIXTURES: [Fixture; 6] = [
    Fixture {
        file: "valid-exchange.json",
        pointer: "/request",
        schema: "context-request",
        valid: true,
    },
    Fixture {
        file: "valid-policy-decision.json",
        pointer: "",
        schema: "policy-decision",
        valid: true,
    },
    Fixture {
        file: "invalid-policy-decision.json",
        pointer: "",
        schema: "policy-decision",
        valid: false,
    },
    Fixture {
        file: "invalid-secret-receipt.json",
        pointer: "",
        schema: "receipt",
        valid: false,
    },
    Fixture {
        file: "valid-memory-update-proposal.json",
        pointer: "",
        schema: "memory-update-proposal",
        valid: true,
    },
    Fixture {
        file: "invalid-memory-update-proposal.json",
        pointer: "",
        schema: "memory-update-proposal",
        valid: false,
    },
];

/// Offsets that name no time of day; a time with one of them is no `date-time`.
const INVALID_OFFSETS: [&str; 5] = ["+00:60", "+00:99", "-00:60", "-00:99", "+24:00"];

pub(super) fn run(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    for fixture in &FIXTURES {
        let name = fixture.file.trim_end_matches(".json");
        recorder.record(format!("schema.{name}"), check_fixture(context, fixture))?;
    }
    recorder.record("schema.base-request", check_expiry(context, None))?;
    for offset in INVALID_OFFSETS {
        recorder.record(
            format!("schema.time-offset{offset}"),
            check_expiry(context, Some(offset)),
        )?;
    }
    Ok(())
}

/// Checks the adapter's verdict on a value.
pub(super) fn check_verdict(
    context: &Context<'_>,
    schema: &str,
    value: &Value,
    valid: bool,
) -> Result<(), Failure> {
    let input = json!({"schema_name": schema, "value": value});
    context.expect_result("validate_schema", input, &json!({"valid": valid}))
}

fn check_fixture(context: &Context<'_>, fixture: &Fixture) -> Result<(), Failure> {
    let file = context.data.fixtures.get(fixture.file);
    let file = file.ok_or_else(|| Failure::Absent {
        place: fixture.file.into(),
    })?;
    let value = lookup::at(file, fixture.pointer)?;
    check_verdict(context, fixture.schema, value, fixture.valid)
}

fn check_expiry(context: &Context<'_>, invalid_offset: Option<&str>) -> Result<(), Failure> {
    let request = lookup::at(&context.data.policy, "/base_request")?;
    let Some(offset) = invalid_offset else {
        return check_verdict(context, "context-request", request, true);
    };
    let utc = lookup::text(request, "/expires_at")?;
    let expiry = format!("{}{offset}", utc.trim_end_matches('Z'));
    let request = lookup::replaced(request, "/expires_at", expiry.into())?;
    check_verdict(context, "context-request", &request, false)
}
