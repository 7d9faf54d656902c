//! What is kept for its time, and what a repeat gets after that.

use cl_testbed::{eventually, refusal, refused};
use cl_wire::bundle::v1::revoke_bundles_request::Target;
use tonic::Code;

use crate::exchange::{Exchange, NOW_MS, operation_made_at};
use crate::support::{TIMES, World, redeem_message};
use crate::time::records;

/// The retention of the tests' issuers, in milliseconds.
pub(crate) fn retention_ms() -> i64 {
    i64::try_from(TIMES.retention_seconds).unwrap() * 1000
}

#[tokio::test]
async fn nothing_is_left_of_an_exchange_after_its_retention() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let replica = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    running.redeem(&bundle_ref, None, 2).await.unwrap();
    let target = Target::SubjectAlias(exchange.alias());
    assert_eq!(running.revoke(target.clone(), 3).await.unwrap(), 1);
    // A name that is revoked again is kept from then on.
    world.clock.advance(1000);
    assert_eq!(replica.revoke(target, 4).await.unwrap(), 0);
    world.clock.advance(retention_ms() - 1000);
    eventually("the first sweep", || records(&world, "operation") == 1).await;
    assert_eq!(records(&world, "barred"), 1);
    world.clock.advance(300_000);
    eventually("the end of all", || records(&world, "bundle") == 0).await;
    for kind in ["operation", "barred", "kept", "issue", "content", "carries"] {
        eventually(kind, || records(&world, kind) == 0).await;
    }
    assert_eq!(world.peers.receipts.log().len(), 4);
}

#[tokio::test]
async fn an_attempt_that_failed_is_forgotten_after_its_grant() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    world
        .peers
        .proxy
        .set_refusing(Some((Code::FailedPrecondition, "DISCLOSURE_LEAK")));
    let running = world.start().await;
    let leak = refused(Code::FailedPrecondition, "DISCLOSURE_LEAK");
    assert_eq!(refusal(running.issue(&exchange).await), leak);
    world.clock.advance(retention_ms());
    eventually("the operation", || records(&world, "operation") == 0).await;
    assert_eq!(records(&world, "issue"), 1);
    world.clock.advance(300_000);
    eventually("the attempt", || records(&world, "issue") == 0).await;
    // The grant has ended, so a repeat issues nothing either.
    let ended = refused(Code::PermissionDenied, "GRANT_EXPIRED");
    assert_eq!(refusal(running.issue(&exchange).await), ended);
}

#[tokio::test]
async fn an_operation_id_that_may_be_forgotten_is_used_for_nothing() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let old = operation_made_at(NOW_MS - retention_ms(), 2);
    let mut message = redeem_message(&bundle_ref, None, 2);
    message.operation_id = old;
    let too_old = refused(Code::FailedPrecondition, "OPERATION_TOO_OLD");
    assert_eq!(refusal(running.redeem_with(message).await), too_old);
    running.redeem(&bundle_ref, None, 3).await.unwrap();
}

#[tokio::test]
async fn a_revocation_that_may_be_forgotten_ends_what_is_alive_and_says_nothing_twice() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    world.clock.advance(1000);
    let old = |number| operation_made_at(NOW_MS - retention_ms(), number);
    let target = Target::BundleRef(bundle_ref);
    assert_eq!(running.revoke_as(target.clone(), old(2)).await.unwrap(), 1);
    assert_eq!(running.revoke_as(target, old(3)).await.unwrap(), 0);
    assert_eq!(world.peers.receipts.of("bundle.revoke").len(), 1);
}
