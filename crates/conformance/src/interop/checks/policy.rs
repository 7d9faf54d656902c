//! Purpose codes, the four policy states, and approvals.

use std::io;

use serde_json::{Value, json};

use super::{Context, DECISION_PREFIX};
use crate::interop::canonical;
use crate::interop::failure::Failure;
use crate::interop::lookup;
use crate::interop::report::Recorder;

pub(super) fn run(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    let vectors = &context.data.policy;
    recorder.record_each(
        "purpose",
        lookup::list(vectors, "/purpose_code_cases"),
        |case| check_purpose_code(context, case),
    )?;
    recorder.record_each("policy", lookup::list(vectors, "/state_cases"), |case| {
        check_state(context, case)
    })?;
    recorder.record_each(
        "approval",
        lookup::list(vectors, "/approval/cases"),
        |case| check_approval(context, case),
    )
}

/// Compares a decision with the expected one and recomputes every digest in it.
pub(super) fn check_decision(
    expected: &Value,
    found: &Value,
    request: &Value,
    policy: &Value,
) -> Result<(), Failure> {
    lookup::same(expected, found)?;
    canonical::verify_record(found, DECISION_PREFIX)?;
    for (pointer, subject) in [
        ("/request_digest", request),
        ("/policy_snapshot/digest", policy),
    ] {
        lookup::same_at(found, pointer, &canonical::digest(subject).into())?;
    }
    Ok(())
}

fn check_purpose_code(context: &Context<'_>, case: &Value) -> Result<(), Failure> {
    let valid = lookup::at(case, "/expected_syntax_valid")?;
    let input = json!({"value": lookup::at(case, "/code")?});
    context.expect_result("purpose_code", input, &json!({"valid": valid}))
}

fn check_state(context: &Context<'_>, case: &Value) -> Result<(), Failure> {
    let vectors = &context.data.policy;
    let request = patched_request(vectors, case)?;
    let policy = lookup::at(vectors, "/base_policy")?;
    let input = json!({
        "request": request,
        "policy": policy,
        "clock": lookup::at(vectors, "/fixed_time")?,
    });
    let decision = context.result("evaluate_policy", input)?;

    let expected = expectation(context, "decisions", case)?;
    check_decision(expected, &decision, &request, policy)?;
    for (pointer, member) in [
        ("/decision", "decision"),
        ("/reason_codes", "reason_codes"),
        ("/retention/max_seconds", "retention_seconds"),
        ("/approval_verification", "approval_verification"),
    ] {
        let expected = lookup::at(case, &format!("/expected/{member}"))?;
        lookup::same_at(&decision, pointer, expected)?;
    }
    Ok(())
}

fn check_approval(context: &Context<'_>, case: &Value) -> Result<(), Failure> {
    let vectors = &context.data.policy;
    let group = lookup::at(vectors, "/approval")?;
    let request = patched_request(vectors, group)?;
    let policy = lookup::at(vectors, "/base_policy")?;
    let mode = lookup::text(case, "/mode")?;
    let input = json!({
        "request": request,
        "policy": policy,
        "clock": lookup::at(vectors, "/fixed_time")?,
        "approval": approval(group, mode, &request, policy)?,
        "approval_verifier": if mode == "authenticated" { "authenticated" } else { "absent" },
    });
    let decision = context.result("evaluate_policy", input)?;

    let expected = expectation(context, "approvals", case)?;
    check_decision(expected, &decision, &request, policy)?;
    lookup::same_at(
        &decision,
        "/decision",
        lookup::at(case, "/expected_decision")?,
    )?;
    lookup::same_at(
        &decision,
        "/reason_codes/0",
        lookup::at(case, "/expected_reason")?,
    )?;
    lookup::same_at(
        &decision,
        "/approval_verification",
        lookup::at(case, "/expected_verification")?,
    )?;
    match case.get("expected_expires_at") {
        Some(expiry) => lookup::same_at(&decision, "/expires_at", expiry),
        None => Ok(()),
    }
}

/// The candidate, bound to exactly this request and policy.
fn approval(group: &Value, mode: &str, request: &Value, policy: &Value) -> Result<Value, Failure> {
    let approval = lookup::extended(
        lookup::at(group, "/candidate")?,
        "",
        [
            ("request_digest", canonical::digest(request).into()),
            ("policy_digest", canonical::digest(policy).into()),
        ],
    )?;
    if mode != "expired" {
        return Ok(approval);
    }
    let expiry = lookup::at(group, "/expired_candidate_expires_at")?;
    lookup::replaced(&approval, "/expires_at", expiry.clone())
}

/// The base request, whose top-level members the patch replaces.
fn patched_request(vectors: &Value, case: &Value) -> Result<Value, Failure> {
    let mut request = lookup::object(vectors, "/base_request")?.clone();
    for (name, value) in lookup::object(case, "/request_patch")? {
        request.insert(name.clone(), value.clone());
    }
    Ok(Value::Object(request))
}

fn expectation<'c>(context: &Context<'c>, group: &str, case: &Value) -> Result<&'c Value, Failure> {
    let id = lookup::text(case, "/id")?;
    lookup::at(&context.data.expectations, &format!("/{group}/{id}"))
}
