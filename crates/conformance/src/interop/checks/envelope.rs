//! What a consumer accepts and, in which words, refuses.

use std::io;

use serde_json::{Value, json};

use super::exchange::authority;
use super::{BUNDLE_PREFIX, Context};
use crate::interop::canonical;
use crate::interop::failure::Failure;
use crate::interop::lookup;
use crate::interop::report::Recorder;

const VERIFY: &str = "verify_envelope";
const FORBIDDEN_MATERIAL: &str = "/expected/raw_material_error";
const MALFORMED_AUTHENTICATION: &str = "INVALID_BUNDLE_AUTHENTICATION";

pub(super) fn run(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    recorder.record("envelope.accepted", check_accepted(context))?;
    recorder.record("envelope.tampered-value", check_tampered_value(context))?;
    recorder.record(
        "envelope.forged-capability",
        check_forged_capability(context),
    )?;
    recorder.record("envelope.raw-vault-object", check_raw_material(context))?;
    run_signatures(context, recorder)?;
    recorder.record("envelope.hmac-without-opt-in", check_hmac(context, false))?;
    recorder.record("envelope.hmac-with-opt-in", check_hmac(context, true))?;
    run_circumstances(context, recorder)?;
    recorder.record("envelope.replay", check_replay(context))
}

/// The input with which the published envelope is accepted.
pub(super) fn accepted_input(context: &Context<'_>) -> Result<Value, Failure> {
    let vectors = &context.data.exchange;
    Ok(json!({
        "envelope": lookup::at(&context.data.expectations, "/envelope")?,
        "clock": lookup::at(vectors, "/fixed_time")?,
        "recipient": lookup::at(vectors, "/request/recipient/principal")?,
        "key_id": lookup::at(vectors, "/authority_key_id")?,
        "public_key_hex": authority(context)?.public_hex(),
        "revocation": "clear",
    }))
}

fn check_accepted(context: &Context<'_>) -> Result<(), Failure> {
    context.expect_result(VERIFY, accepted_input(context)?, &json!({"accepted": true}))
}

fn check_tampered_value(context: &Context<'_>) -> Result<(), Failure> {
    let input = lookup::replaced(
        &accepted_input(context)?,
        "/envelope/bundle/context/0/value",
        "SYNTHETIC_TEST_ONLY_TAMPERED_CONTEXT".into(),
    )?;
    let code = lookup::text(&context.data.exchange, "/expected/tampered_record_error")?;
    context.expect_refusal(VERIFY, input, code)
}

/// The bundle stays well formed and its hash is right, so that only the signature can tell.
fn check_forged_capability(context: &Context<'_>) -> Result<(), Failure> {
    let input = accepted_input(context)?;
    let mut bundle = lookup::at(&input, "/envelope/bundle")?.clone();
    for pointer in ["/capabilities", "/receipt_contract/required_operations"] {
        let mut names = lookup::list(&bundle, pointer)?.to_vec();
        names.push("email.send".into());
        names.sort_by_key(canonical::text);
        bundle = lookup::replaced(&bundle, pointer, names.into())?;
    }
    let input = with_rehashed_bundle(&input, &bundle)?;
    let code = lookup::text(&context.data.exchange, "/expected/forged_capability_error")?;
    context.expect_refusal(VERIFY, input, code)
}

fn check_raw_material(context: &Context<'_>) -> Result<(), Failure> {
    let input = accepted_input(context)?;
    let reference = json!({"ref": "vault://synthetic-test-only/objects/raw"});
    let bundle = lookup::extended(
        lookup::at(&input, "/envelope/bundle")?,
        "",
        [("raw_vault_object", reference)],
    )?;
    let input = with_rehashed_bundle(&input, &bundle)?;
    let code = lookup::text(&context.data.exchange, FORBIDDEN_MATERIAL)?;
    context.expect_refusal(VERIFY, input, code)
}

fn with_rehashed_bundle(input: &Value, bundle: &Value) -> Result<Value, Failure> {
    let bundle = canonical::finalize(lookup::object(bundle, "")?, BUNDLE_PREFIX);
    lookup::replaced(input, "/envelope/bundle", Value::Object(bundle))
}

fn run_signatures(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    let malformed = [
        ("empty", json!("")),
        ("null", Value::Null),
        ("number", json!(42)),
        ("85-characters", "A".repeat(85).into()),
        ("87-characters", "A".repeat(87).into()),
        ("86-equals-signs", "=".repeat(86).into()),
    ];
    for (name, signature) in malformed {
        let outcome = check_signature(context, signature, Ok(MALFORMED_AUTHENTICATION));
        recorder.record(format!("envelope.signature-{name}"), outcome)?;
    }
    let forged = lookup::text(&context.data.exchange, "/expected/forged_sig_error");
    recorder.record(
        "envelope.signature-forged",
        check_signature(context, "A".repeat(86).into(), forged),
    )
}

fn check_signature(
    context: &Context<'_>,
    signature: Value,
    code: Result<&str, Failure>,
) -> Result<(), Failure> {
    let pointer = "/envelope/authentication/sig";
    let input = lookup::replaced(&accepted_input(context)?, pointer, signature)?;
    context.expect_refusal(VERIFY, input, code?)
}

fn check_hmac(context: &Context<'_>, opt_in: bool) -> Result<(), Failure> {
    let input = accepted_input(context)?;
    let mac = authority(context)?.legacy_mac(lookup::at(&input, "/envelope/bundle")?);
    let authentication = json!({
        "algorithm": "hmac-sha256",
        "key_id": lookup::at(&input, "/key_id")?,
        "mac": mac,
    });
    let input = lookup::replaced(&input, "/envelope/authentication", authentication)?;
    if !opt_in {
        return context.expect_refusal(VERIFY, input, MALFORMED_AUTHENTICATION);
    }
    let seed = "/synthetic_test_only_ed25519_material_hex";
    let input = lookup::extended(
        &input,
        "",
        [
            ("legacy_hmac", true.into()),
            (
                "synthetic_legacy_key_hex",
                lookup::at(&context.data.exchange, seed)?.clone(),
            ),
        ],
    )?;
    context.expect_result(VERIFY, input, &json!({"accepted": true}))
}

fn run_circumstances(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    let expiry = lookup::at(&context.data.expectations, "/envelope/bundle/expires_at");
    let other = json!("urn:agent:synthetic-other-consumer");
    let cases = [
        (
            "other-recipient",
            "/recipient",
            Ok(&other),
            "BUNDLE_RECIPIENT_MISMATCH",
        ),
        ("expiry-instant", "/clock", expiry, "BUNDLE_EXPIRED"),
        (
            "revoked",
            "/revocation",
            Ok(&json!("revoked")),
            "BUNDLE_REVOKED",
        ),
        (
            "revocation-error",
            "/revocation",
            Ok(&json!("error")),
            "REVOCATION_CHECK_FAILED",
        ),
    ];
    for (name, pointer, value, code) in cases {
        let outcome = value.and_then(|value| {
            let input = lookup::replaced(&accepted_input(context)?, pointer, value.clone())?;
            context.expect_refusal(VERIFY, input, code)
        });
        recorder.record(format!("envelope.{name}"), outcome)?;
    }
    Ok(())
}

fn check_replay(context: &Context<'_>) -> Result<(), Failure> {
    let expected = json!({
        "first_accepted": true,
        "second_error": "BUNDLE_REPLAY",
        "restart_error": "BUNDLE_REPLAY",
    });
    context.expect_result("replay", accepted_input(context)?, &expected)
}
