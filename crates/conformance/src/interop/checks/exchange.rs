//! From a request to a signed envelope.

use std::io;

use serde_json::{Value, json};

use super::{BUNDLE_PREFIX, Context, policy, schema};
use crate::interop::canonical;
use crate::interop::failure::Failure;
use crate::interop::keys::SyntheticKey;
use crate::interop::lookup;
use crate::interop::report::Recorder;

const BUNDLE_SCHEMA: &str = "scoped-context-bundle";

pub(super) fn run(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    recorder.record("exchange.decision", check_decision(context))?;

    let issued = issue(context);
    let mut record = |id: &str, check: fn(&Context<'_>, &Value) -> Result<(), Failure>| {
        let outcome = issued
            .clone()
            .and_then(|envelope| check(context, &envelope));
        recorder.record(format!("exchange.{id}"), outcome)
    };
    record("envelope", check_whole_envelope)?;
    record("record", check_record)?;
    record("signature", check_signature)?;
    record("forbidden-fragments", check_fragments)?;
    record("summary", check_summary)?;

    recorder.record("exchange.bundle-schema", check_bundle_schema(context))?;
    recorder.record(
        "exchange.bundle-rejects-authentication",
        check_bundle_rejects_authentication(context),
    )
}

/// The key that the published seed stands for.
pub(super) fn authority(context: &Context<'_>) -> Result<SyntheticKey, Failure> {
    SyntheticKey::from_seed_hex(lookup::text(
        &context.data.exchange,
        "/synthetic_test_only_ed25519_material_hex",
    )?)
}

fn check_decision(context: &Context<'_>) -> Result<(), Failure> {
    let vectors = &context.data.exchange;
    let request = lookup::at(vectors, "/request")?;
    let policy = lookup::at(vectors, "/policy")?;
    let input = json!({
        "request": request,
        "policy": policy,
        "clock": lookup::at(vectors, "/fixed_time")?,
        "receipt_preflight": "available",
    });
    let decision = context.result("evaluate_policy", input)?;
    let expected = lookup::at(&context.data.expectations, "/exchange_decision")?;
    policy::check_decision(expected, &decision, request, policy)?;
    let expected = lookup::at(vectors, "/expected/decision")?;
    lookup::same_at(&decision, "/decision", expected)
}

fn issue(context: &Context<'_>) -> Result<Value, Failure> {
    let vectors = &context.data.exchange;
    let input = json!({
        "request": lookup::at(vectors, "/request")?,
        "policy": lookup::at(vectors, "/policy")?,
        "claims": lookup::at(vectors, "/claims")?,
        "clock": lookup::at(vectors, "/fixed_time")?,
        "key_id": lookup::at(vectors, "/authority_key_id")?,
        "synthetic_seed_hex": lookup::at(vectors, "/synthetic_test_only_ed25519_material_hex")?,
    });
    context.result("issue_bundle", input)
}

fn check_whole_envelope(context: &Context<'_>, envelope: &Value) -> Result<(), Failure> {
    let expected = lookup::at(&context.data.expectations, "/envelope")?;
    lookup::same(expected, envelope)
}

fn check_record(context: &Context<'_>, envelope: &Value) -> Result<(), Failure> {
    let bundle = lookup::at(envelope, "/bundle")?;
    canonical::verify_record(bundle, BUNDLE_PREFIX)?;
    let request = lookup::at(&context.data.exchange, "/request")?;
    lookup::same_at(
        bundle,
        "/request_digest",
        &canonical::digest(request).into(),
    )?;
    let decision = lookup::at(&context.data.expectations, "/exchange_decision")?;
    for (pointer, of_decision) in [
        ("/decision_ref", "/id"),
        ("/decision_digest", "/integrity/digest"),
    ] {
        lookup::same_at(bundle, pointer, lookup::at(decision, of_decision)?)?;
    }
    Ok(())
}

fn check_signature(context: &Context<'_>, envelope: &Value) -> Result<(), Failure> {
    let bundle = lookup::at(envelope, "/bundle")?;
    let signature = lookup::text(envelope, "/authentication/sig")?;
    let key_id = lookup::at(&context.data.exchange, "/authority_key_id")?;
    lookup::same_at(envelope, "/authentication/kid", key_id)?;
    authority(context)?.verify(bundle, signature, "bundle")
}

fn check_fragments(context: &Context<'_>, envelope: &Value) -> Result<(), Failure> {
    let serialized = canonical::text(envelope);
    let pointer = "/expected/forbidden_serialized_fragments";
    for fragment in lookup::list(&context.data.exchange, pointer)? {
        let fragment = lookup::text(fragment, "")?;
        if serialized.contains(fragment) {
            return Err(Failure::ForbiddenFragment {
                fragment: fragment.into(),
            });
        }
    }
    Ok(())
}

fn check_summary(context: &Context<'_>, envelope: &Value) -> Result<(), Failure> {
    let expected = lookup::at(&context.data.exchange, "/expected")?;
    for (pointer, of_envelope) in [
        ("/bundle_expires_at", "/bundle/expires_at"),
        ("/envelope_version", "/envelope_version"),
        ("/authentication_algorithm", "/authentication/algorithm"),
    ] {
        lookup::same_at(envelope, of_envelope, lookup::at(expected, pointer)?)?;
    }
    Ok(())
}

fn check_bundle_schema(context: &Context<'_>) -> Result<(), Failure> {
    let bundle = lookup::at(&context.data.expectations, "/envelope/bundle")?;
    schema::check_verdict(context, BUNDLE_SCHEMA, bundle, true)
}

fn check_bundle_rejects_authentication(context: &Context<'_>) -> Result<(), Failure> {
    let envelope = lookup::at(&context.data.expectations, "/envelope")?;
    let authentication = lookup::at(envelope, "/authentication")?.clone();
    let bundle = lookup::extended(
        lookup::at(envelope, "/bundle")?,
        "",
        [("authentication", authentication)],
    )?;
    schema::check_verdict(context, BUNDLE_SCHEMA, &bundle, false)
}
