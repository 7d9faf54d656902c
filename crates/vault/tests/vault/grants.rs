//! Each way in which a grant does not hold, on its own.

use cl_model::alias::subject_tag;
use cl_model::digest::Digest;
use cl_model::key::{MacKey, Seed};
use cl_testbed::{refusal, refused};
use serde_json::json;
use tonic::Code;

use crate::documents::{DATE, GrantDraft, NOW_MS, PERSON, TAG_SEED, bytes, item, request};
use crate::support::World;

#[tokio::test]
async fn refuses_every_grant_that_does_not_hold() {
    let world = World::new().await;
    let running = world.start().await;
    let line = r#"requested_delivery_date 0.6 "2030-02-01""#;
    running.take(vec![item("m1", "Launch", &[line])], 1).await;
    let draft = || GrantDraft::new("r1", &[DATE]);
    let other_subject_tag = {
        let key = MacKey::from_seed(&Seed::new(&TAG_SEED).unwrap());
        subject_tag(&key, "acme", "vault://subjects/other")
    };
    let signed_by_another = draft().with(|grant| grant.key = 7);
    let unknown_key = draft().with(|grant| {
        grant.scope["kid"] = json!("urn:cl:key:decision:test");
        grant.plan["tenant"] = json!("globex");
    });
    let for_another_audience = draft().with(|grant| {
        grant.plan["audiences"] = json!(["spiffe://example.org/exchange/cl-semantic-proxy"]);
    });
    let of_another_subject = draft().with(|grant| {
        grant.plan["subject_ref"] = json!("vault://subjects/other");
    });
    let with_another_tag = draft().with(|grant| {
        grant.plan["subject_tag"] = json!(other_subject_tag);
    });
    let with_more_predicates = draft().with(|grant| {
        let more = crate::documents::rule(PERSON);
        grant.plan["rules"].as_array_mut().unwrap().push(more);
    });
    let for_another_recipient = draft().with(|grant| {
        grant.scope["recipient"] = json!("urn:model:other");
    });
    let for_longer = draft().with(|grant| {
        grant.scope["expires_at"] = json!("2030-01-01T13:00:00Z");
    });
    let not_bound = draft().with(|grant| {
        grant.plan["scope_digest"] = json!(Digest::of_bytes(b"other").to_string());
    });
    let another_request = draft().with(|grant| grant.request = request("r2", &[DATE]));
    let of_another_tenant = draft().with(|grant| grant.tenant = "globex".to_owned());
    for (name, grant, code) in [
        (
            "another key",
            signed_by_another,
            "DOCUMENT_SIGNATURE_INVALID",
        ),
        ("another tenant in the plan", unknown_key, "TENANT_MISMATCH"),
        (
            "another audience",
            for_another_audience,
            "GRANT_AUDIENCE_MISMATCH",
        ),
        ("another subject", of_another_subject, "GRANT_MISMATCH"),
        ("another subject's tag", with_another_tag, "GRANT_MISMATCH"),
        ("more predicates", with_more_predicates, "GRANT_MISMATCH"),
        ("another recipient", for_another_recipient, "GRANT_MISMATCH"),
        ("a longer time", for_longer, "GRANT_MISMATCH"),
        ("an unbound plan", not_bound, "GRANT_MISMATCH"),
        ("another request", another_request, "GRANT_MISMATCH"),
        (
            "another tenant in the call",
            of_another_tenant,
            "TENANT_MISMATCH",
        ),
    ] {
        let answer = refusal(running.resolve(grant.call(2)).await);
        assert_eq!(answer, refused(Code::PermissionDenied, code), "{name}");
    }

    // Documents of two grants that both hold.
    let (one, other) = (draft().call(2), GrantDraft::new("r2", &[DATE]).call(2));
    let mut swapped = one.clone();
    let mut grant = one.grant.clone().unwrap();
    let of_other = other.grant.unwrap();
    grant.plan = of_other.plan;
    grant.plan_signature = of_other.plan_signature;
    swapped.grant = Some(grant);
    let mismatch = refused(Code::PermissionDenied, "GRANT_MISMATCH");
    assert_eq!(refusal(running.resolve(swapped).await), mismatch);
    let mut swapped = one.clone();
    swapped.request = bytes(&request("r2", &[DATE]));
    assert_eq!(refusal(running.resolve(swapped).await), mismatch);

    // Bytes that were changed after they were signed.
    let mut changed = one.clone();
    changed.grant.as_mut().unwrap().plan.push(b' ');
    let invalid = refused(Code::PermissionDenied, "INVALID_DOCUMENT");
    assert_eq!(refusal(running.resolve(changed).await), invalid);
    let mut changed = one.clone();
    changed.grant.as_mut().unwrap().scope_signature[0] ^= 1;
    let forged = refused(Code::PermissionDenied, "DOCUMENT_SIGNATURE_INVALID");
    assert_eq!(refusal(running.resolve(changed).await), forged);

    for (now_ms, code) in [
        (NOW_MS - 1, "GRANT_NOT_YET_VALID"),
        (NOW_MS + 300_000, "GRANT_EXPIRED"),
    ] {
        world.clock.set(now_ms);
        let answer = refusal(running.resolve(one.clone()).await);
        assert_eq!(answer, refused(Code::PermissionDenied, code));
    }
    world.clock.set(NOW_MS);
    // Nothing of all that left a trace, and the grant itself holds.
    assert!(world.receipts.of("vault.resolve").is_empty());
    assert_eq!(running.resolve(one).await.unwrap().claims.len(), 1);
}

#[tokio::test]
async fn refuses_a_key_that_is_not_trusted() {
    let world = World::new().await;
    world.trust(&json!({"keys": []}));
    let running = world.start().await;
    let untrusted = refused(Code::PermissionDenied, "UNTRUSTED_DOCUMENT_KEY");
    let grant = GrantDraft::new("r1", &[DATE]).call(1);
    assert_eq!(refusal(running.resolve(grant.clone()).await), untrusted);
    running.kill().await;
    for (name, value) in [
        ("revoked", json!(true)),
        ("purpose", json!("bundle")),
        ("not_after", json!("2030-01-01T12:00:00Z")),
    ] {
        let mut file = crate::support::trust_file();
        file["keys"][0][name] = value;
        world.trust(&file);
        let running = world.start().await;
        let answer = refusal(running.resolve(grant.clone()).await);
        assert_eq!(answer, untrusted, "{name}");
        running.kill().await;
    }
}
