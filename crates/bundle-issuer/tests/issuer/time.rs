//! What time does, and what a clock that steps back or jumps ahead does not.

use cl_kv::{Engine, Scan};
use cl_testbed::{eventually, refusal, refused};
use cl_wire::bundle::v1::BundleState;
use tokio::time::Instant;
use tonic::Code;

use crate::exchange::{Exchange, NOW_MS};
use crate::support::{TIMES, World};

/// How many records there are whose kind has this name, without opening them.
pub(crate) fn records(world: &World, kind: &str) -> usize {
    let entries = world.memory.scan(&Scan::new([], usize::MAX)).unwrap();
    let name = [kind.as_bytes(), &[0, 1]].concat();
    let has = |key: &[u8]| key.windows(name.len()).any(|it| it == name);
    entries.iter().filter(|entry| has(&entry.key)).count()
}

/// The sealed record of the latest time.
fn stored_time(world: &World) -> Option<Vec<u8>> {
    let entries = world.memory.scan(&Scan::new([], usize::MAX)).unwrap();
    let is_clock = |key: &[u8]| key.windows(5).any(|it| it == b"clock");
    let mut entries = entries.into_iter();
    let found = entries.find(|entry| is_clock(&entry.key));
    found.map(|entry| entry.stored.value)
}

#[tokio::test]
async fn an_expired_bundle_is_stored_as_such_and_wiped() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    assert_eq!(records(&world, "content"), 1);
    world.clock.advance(300_000);
    eventually("the sweep", || records(&world, "content") == 0).await;
    let expired = refused(Code::FailedPrecondition, "BUNDLE_EXPIRED");
    assert_eq!(refusal(running.redeem(&bundle_ref, None, 2).await), expired);
    // A clock that steps back revives nothing, neither now nor after a restart.
    world.clock.set(NOW_MS);
    assert_eq!(
        running.check(&bundle_ref).await.unwrap(),
        BundleState::Expired
    );
    assert_eq!(refusal(running.redeem(&bundle_ref, None, 3).await), expired);
    running.kill().await;
    let again = world.start().await;
    assert_eq!(refusal(again.redeem(&bundle_ref, None, 4).await), expired);
    assert_eq!(
        again.check(&bundle_ref).await.unwrap(),
        BundleState::Expired
    );
}

#[tokio::test]
async fn the_latest_time_survives_a_restart() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    eventually("a first time", || stored_time(&world).is_some()).await;
    let stored = stored_time(&world);
    world.clock.advance(200_000);
    eventually("the stored time", || stored_time(&world) != stored).await;
    running.kill().await;
    world.clock.set(NOW_MS - 3_600_000);
    let again = world.start().await;
    // By the clock alone the grant would not be valid yet.
    assert_eq!(again.issue(&exchange).await.unwrap().bundle_ref, bundle_ref);
}

#[tokio::test]
async fn a_redeemed_bundle_is_wiped_when_nobody_can_ask_again() {
    for (key, wiped_after_ms) in [(None, 0), (Some("k"), 120_000)] {
        let exchange = Exchange::new("r1");
        let world = World::with(&exchange).await;
        let running = world.start().await;
        let bundle_ref = running.issued(&exchange).await;
        running.redeem(&bundle_ref, key, 2).await.unwrap();
        assert_eq!(records(&world, "content"), usize::from(key.is_some()));
        world.clock.advance(wiped_after_ms);
        eventually("the sweep", || records(&world, "content") == 0).await;
        assert_eq!(
            running.check(&bundle_ref).await.unwrap(),
            BundleState::Redeemed
        );
        world.clock.advance(300_000);
        assert_eq!(
            running.check(&bundle_ref).await.unwrap(),
            BundleState::Expired
        );
    }
}

#[tokio::test]
async fn the_state_is_kept_for_its_retention_and_then_gone() {
    let exchange = Exchange::new("r1");
    let world = World::with(&exchange).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    world.clock.advance(300_000);
    eventually("the end", || records(&world, "content") == 0).await;
    let retention_ms = i64::try_from(TIMES.retention_seconds * 1000).unwrap();
    world.clock.advance(retention_ms - 1000);
    assert_eq!(
        running.check(&bundle_ref).await.unwrap(),
        BundleState::Expired
    );
    world.clock.advance(1000);
    eventually("the removal", || records(&world, "bundle") == 0).await;
    for kind in ["content", "carries", "due", "issue"] {
        assert_eq!(records(&world, kind), 0, "{kind}");
    }
    let missing = refused(Code::NotFound, "BUNDLE_NOT_FOUND");
    assert_eq!(refusal(running.check(&bundle_ref).await), missing);
}

const HOUR_MS: i64 = 3_600_000;

/// A world whose issuers believe a clock that steps ahead by so many seconds at once.
async fn sceptical(exchange: &Exchange, max_step_seconds: u64) -> World {
    let mut world = World::with(exchange).await;
    world.times.max_clock_step_seconds = max_step_seconds;
    world
}

#[tokio::test]
async fn a_jump_ahead_that_is_taken_back_ends_nothing() {
    let exchange = Exchange::new("r1");
    // Longer than this test: the jump never lasts.
    let world = sceptical(&exchange, 1000).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    eventually("a first time", || stored_time(&world).is_some()).await;
    world.clock.advance(HOUR_MS);
    let unsettled = refused(Code::Unavailable, "CLOCK_UNSETTLED");
    assert_eq!(refusal(running.check(&bundle_ref).await), unsettled);
    assert_eq!(
        refusal(running.redeem(&bundle_ref, None, 2).await),
        unsettled
    );
    assert_eq!(refusal(running.issue(&exchange).await), unsettled);
    // No sweep makes it true, and a restart once it was taken back knows nothing of it.
    let stored = stored_time(&world);
    eventually("a sweep", || stored_time(&world) != stored).await;
    assert_eq!(records(&world, "content"), 1);
    running.kill().await;
    world.clock.advance(-HOUR_MS);
    let again = world.start().await;
    assert_eq!(again.check(&bundle_ref).await.unwrap(), BundleState::Live);
    again.redeem(&bundle_ref, None, 3).await.unwrap();
}

#[tokio::test]
async fn a_jump_ahead_that_lasts_ends_what_it_ends_for_good() {
    let exchange = Exchange::new("r1");
    let world = sceptical(&exchange, 1).await;
    let running = world.start().await;
    let bundle_ref = running.issued(&exchange).await;
    let jumped = Instant::now();
    eventually("the sweep", || {
        let since = i64::try_from(jumped.elapsed().as_millis()).unwrap();
        world.clock.set(NOW_MS + HOUR_MS + since);
        records(&world, "content") == 0
    })
    .await;
    world.clock.set(NOW_MS);
    assert_eq!(
        running.check(&bundle_ref).await.unwrap(),
        BundleState::Expired
    );
    running.kill().await;
    let again = world.start().await;
    let expired = refused(Code::FailedPrecondition, "BUNDLE_EXPIRED");
    assert_eq!(refusal(again.redeem(&bundle_ref, None, 2).await), expired);
}
