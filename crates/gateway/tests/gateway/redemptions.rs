//! Bundles over HTTP: handed out once, repeated under a key, and looked at.

use cl_model::delivery::{self, Delivery};
use cl_wire::bundle::v1::BundleState;
use http::{Method, StatusCode};
use serde_json::json;
use tonic::Code;

use crate::bundle_issuer::FakeIssuer;
use crate::client::{Answer, BUNDLES, Call, PROPOSALS, RECEIPTS};
use crate::documents::{PRINCIPAL, TENANT, canonical_bytes, consumption};
use crate::engine::later;
use crate::support::World;

fn is_replay(answer: &Answer) -> bool {
    answer.header("idempotency-replayed") == Some("true")
}

#[tokio::test]
async fn a_bundle_is_handed_out_once_as_it_was_signed() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("once");
    let answer = gateway.call(Call::redeem(&bundle)).await;
    assert_eq!(answer.status, 200);
    answer.check_common_headers();
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.body, FakeIssuer::delivery(&bundle).envelope);
    assert!(!is_replay(&answer));
    let again = gateway.call(Call::redeem(&bundle)).await;
    assert_eq!(again.refusal(), (409, "BUNDLE_REPLAY".to_owned()));
    let keyed = gateway.call(Call::redeem(&bundle).key("key-1")).await;
    assert_eq!(keyed.refusal(), (409, "BUNDLE_REPLAY".to_owned()));

    let arrived = &world.bundles.redemptions()[0];
    assert_eq!(arrived.tenant, TENANT);
    assert_eq!(arrived.recipient, PRINCIPAL);
    assert_eq!(arrived.bundle_ref, bundle);
    assert_eq!(arrived.idempotency_key, None);
}

#[tokio::test]
async fn who_names_the_delivery_gets_all_of_it() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("whole");
    let call = Call::redeem(&bundle).header("accept", delivery::MEDIA_TYPE);
    let answer = gateway.call(call).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some(delivery::MEDIA_TYPE));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let found = Delivery::parse(&answer.body).unwrap();
    assert_eq!(found.to_text().as_bytes(), answer.body);
    let signed = FakeIssuer::delivery(&bundle);
    assert_eq!(found.envelope, signed.envelope);
    assert_eq!(found.scope.document, signed.scope_statement);
    assert_eq!(found.scope.signature.as_bytes()[..], signed.scope_signature);
    assert_eq!(found.notes.document, signed.notes);
    assert_eq!(found.notes.signature.as_bytes()[..], signed.notes_signature);

    // A refusal is the protocol's error object all the same.
    let call = Call::redeem(&bundle).header("accept", delivery::MEDIA_TYPE);
    let refused = gateway.call(call).await;
    assert_eq!(refused.refusal(), (409, "BUNDLE_REPLAY".to_owned()));
    let other = world.bundles.issue("other");
    let call = Call::redeem(&other).header("accept", "text/html");
    let refused = gateway.call(call).await;
    assert_eq!(refused.refusal(), (406, "NOT_ACCEPTABLE".to_owned()));
    assert_eq!(world.bundles.state(&other), BundleState::Live);
}

#[tokio::test]
async fn the_same_key_gets_the_same_bytes_until_the_bundle_is_consumed() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("keyed");
    let redeem = || Call::redeem(&bundle).key("key-1");
    let first = gateway.call(redeem()).await;
    let second = gateway.call(redeem()).await;
    assert_eq!(
        (first.status, second.status),
        (StatusCode::OK, StatusCode::OK)
    );
    assert_eq!(first.body, second.body);
    assert!(!is_replay(&first) && is_replay(&second));
    let arrived = world.bundles.redemptions();
    assert_eq!(arrived[0].idempotency_key.as_deref(), Some("key-1"));
    assert_eq!(arrived[0].operation_id, arrived[1].operation_id);
    let replay = (409, "BUNDLE_REPLAY".to_owned());
    let other = gateway.call(Call::redeem(&bundle).key("key-2")).await;
    assert_eq!(other.refusal(), replay);

    assert_eq!(
        gateway.record(&bundle, &consumption(&bundle)).await.status,
        201
    );
    assert_eq!(gateway.call(redeem()).await.refusal(), replay);
}

#[tokio::test]
async fn a_redemption_whose_answer_was_lost_is_repeated_under_its_key() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("lost");
    world.bundles.faults.lose_next_answer();
    let lost = gateway.call(Call::redeem(&bundle).key("key-1")).await;
    assert_eq!(lost.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    let found = gateway.call(Call::redeem(&bundle).key("key-1")).await;
    assert_eq!(found.status, 200);
    assert!(is_replay(&found));
    let arrived = world.bundles.redemptions();
    assert_eq!(arrived[0].operation_id, arrived[1].operation_id);

    // The issuer may have begun when evidence could not be written, so the operation stays.
    let other = world.bundles.issue("evidence");
    let unavailable = later(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE", 3);
    world.bundles.faults.refuse_next(unavailable);
    let refused = gateway.call(Call::redeem(&other).key("key-2")).await;
    let expected = (503, "RECEIPT_STORE_UNAVAILABLE".to_owned());
    assert_eq!(refused.refusal(), expected);
    assert_eq!(refused.header("retry-after"), Some("3"));
    assert_eq!(
        gateway.call(Call::redeem(&other).key("key-2")).await.status,
        200
    );
    let arrived = world.bundles.redemptions();
    assert_eq!(arrived[2].operation_id, arrived[3].operation_id);
}

#[tokio::test]
async fn each_state_of_a_bundle_has_its_answers() {
    let world = World::new().await;
    let gateway = world.start().await;
    let replay = Some((409, "BUNDLE_REPLAY"));
    for (state, name, refusal) in [
        (BundleState::Live, "live", None),
        (BundleState::Redeemed, "redeemed", replay),
        (BundleState::Consumed, "consumed", replay),
        (
            BundleState::Revoked,
            "revoked",
            Some((410, "BUNDLE_REVOKED")),
        ),
        (
            BundleState::Expired,
            "expired",
            Some((410, "BUNDLE_EXPIRED")),
        ),
    ] {
        let bundle = world.bundles.issue(name);
        world.bundles.set(&bundle, state);
        let answer = gateway.call(Call::check(&bundle)).await;
        assert_eq!(answer.status, 200);
        answer.check_common_headers();
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let expected = json!({
            "bundle_ref": bundle, "state": name, "expires_at": "2030-06-01T08:10:00.500Z",
        });
        assert_eq!(answer.body, canonical_bytes(&expected));
        let answer = gateway.call(Call::redeem(&bundle)).await;
        match refusal {
            None => assert_eq!(answer.status, 200),
            Some((status, code)) => assert_eq!(answer.refusal(), (status, code.to_owned())),
        }
    }
    // A check spends nothing.
    let bundle = world.bundles.issue("checked");
    gateway.call(Call::check(&bundle)).await;
    assert_eq!(world.bundles.state(&bundle), BundleState::Live);
}

#[tokio::test]
async fn only_get_redeems() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("head");
    let head = gateway
        .call(Call::new(Method::HEAD, &format!("{BUNDLES}/{bundle}")).key("key-1"))
        .await;
    assert_eq!(head.status, 405);
    assert_eq!(head.header("allow"), Some("GET"));
    assert!(head.body.is_empty());
    assert_eq!(world.bundles.state(&bundle), BundleState::Live);
    for (method, path, allowed) in [
        (Method::POST, format!("{BUNDLES}/{bundle}"), "GET"),
        (Method::DELETE, format!("{BUNDLES}/{bundle}"), "GET"),
        (
            Method::POST,
            format!("{BUNDLES}/{bundle}/status"),
            "GET, HEAD",
        ),
        (Method::GET, format!("{BUNDLES}/{bundle}/receipts"), "POST"),
        (
            Method::PUT,
            format!("{RECEIPTS}/urn:cl:receipt:r"),
            "GET, HEAD",
        ),
        (Method::GET, PROPOSALS.to_owned(), "POST"),
    ] {
        let answer = gateway.call(Call::new(method.clone(), &path)).await;
        let expected = (405, "METHOD_NOT_ALLOWED".to_owned());
        assert_eq!(answer.refusal(), expected, "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
    assert_eq!(world.bundles.faults.calls(), 0);
}
