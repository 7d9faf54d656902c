//! Canonical bytes, digests and record identities.

use std::io;

use serde_json::{Value, json};

use super::Context;
use crate::interop::canonical;
use crate::interop::failure::Failure;
use crate::interop::lookup;
use crate::interop::report::Recorder;

pub(super) fn run(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    recorder.record_each(
        "canonical",
        lookup::list(&context.data.expectations, "/canonical_cases"),
        |case| check_case(context, case, "/canonical_json", "/digest"),
    )?;
    recorder.record_each(
        "canonical",
        lookup::list(&context.data.canonicalization, "/cases"),
        |case| {
            check_case(
                context,
                case,
                "/expected_canonical_json",
                "/expected_digest",
            )
        },
    )?;
    recorder.record("canonical.record", check_record(context))
}

fn check_case(
    context: &Context<'_>,
    case: &Value,
    canonical_pointer: &str,
    digest_pointer: &str,
) -> Result<(), Failure> {
    let value = lookup::at(case, "/value")?;
    let expected = json!({
        "canonical_json": lookup::at(case, canonical_pointer)?,
        "digest": lookup::at(case, digest_pointer)?,
    });
    let own = json!({
        "canonical_json": canonical::text(value),
        "digest": canonical::digest(value),
    });
    lookup::same(&expected, &own)?;
    context.expect_result("canonicalize", json!({"value": value}), &expected)
}

fn check_record(context: &Context<'_>) -> Result<(), Failure> {
    let case = lookup::at(&context.data.canonicalization, "/record_case")?;
    let prefix = lookup::text(case, "/id_prefix")?;
    let unsigned = lookup::at(case, "/unsigned")?;
    let digest = lookup::at(case, "/expected_digest")?;
    let expected = lookup::extended(
        unsigned,
        "",
        [
            ("id", lookup::at(case, "/expected_id")?.clone()),
            (
                "integrity",
                json!({"algorithm": "sha-256", "digest": digest}),
            ),
        ],
    )?;
    canonical::verify_record(&expected, prefix)?;
    lookup::same(
        lookup::at(case, "/expected_canonical_json")?,
        &canonical::text(unsigned).into(),
    )?;
    let input = json!({"unsigned": unsigned, "id_prefix": prefix});
    context.expect_result("finalize_record", input, &expected)
}
