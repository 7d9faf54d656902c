//! Failures between the preflight, the batch and the receipt.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cl_kv::{Batch, Engine, Entry, Error, Fault, MemoryEngine, Scan, Stored};
use cl_testbed::{eventually, refusal, refused};
use cl_wire::vault::v1::capture_outcome::Result as CaptureResult;
use tonic::Code;

use crate::documents::{DATE, GrantDraft, batch, item, operation, proposal_without_id, submission};
use crate::support::World;

const DAY: &str = r#"requested_delivery_date 0.6 "2030-02-01""#;

/// An engine in memory that fails once, after some batches that succeed.
pub(crate) struct Counting {
    engine: MemoryEngine,
    left: AtomicUsize,
    is_armed: AtomicBool,
    fault: Fault,
}

impl Counting {
    pub(crate) fn new(engine: MemoryEngine, skipped: usize, fault: Fault) -> Self {
        Self {
            engine,
            left: AtomicUsize::new(skipped),
            is_armed: AtomicBool::new(false),
            fault,
        }
    }

    pub(crate) fn arm(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
    }
}

impl Engine for Counting {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error> {
        self.engine.get(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error> {
        self.engine.get_many(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error> {
        self.engine.scan(scan)
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        if self.is_armed.load(Ordering::SeqCst) {
            if self.left.load(Ordering::SeqCst) == 0 {
                self.is_armed.store(false, Ordering::SeqCst);
                self.engine.plan(self.fault);
            } else {
                self.left.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.engine.apply(batch)
    }

    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        batches.into_iter().map(|batch| self.apply(batch)).collect()
    }

    fn purge(&self) -> Result<(), Error> {
        self.engine.purge()
    }
}

fn stored(world: &World) -> usize {
    let count = |engine: &MemoryEngine| engine.scan(&Scan::new([], usize::MAX)).unwrap().len();
    count(&world.keys) + count(&world.data)
}

#[tokio::test]
async fn does_nothing_while_the_receipt_store_is_away() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    running
        .resolve(GrantDraft::new("r1", &[DATE]).call(2))
        .await
        .unwrap();
    let before = stored(&world);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    for is_down in [true, false] {
        world.receipts.set_down(is_down);
        world.receipts.set_refusing(!is_down);
        let message = batch(vec![item("m2", "Launch", &[DAY])], 3);
        let error = running.capture(message).await.unwrap_err();
        assert!(cl_wire::status::retry_delay(&error).is_some());
        assert_eq!(refusal::<()>(Err(error)), away);
        let grant = GrantDraft::new("r2", &[DATE]).call(4);
        assert_eq!(refusal(running.resolve(grant).await), away);
        let proposal = submission(proposal_without_id(&[]), 5);
        assert_eq!(refusal(running.propose(proposal).await), away);
    }
    assert_eq!(stored(&world), before);
}

#[tokio::test]
async fn nothing_leaves_before_its_receipt_is_durable() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    world.receipts.set_append_down(true);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    let grant = GrantDraft::new("r1", &[DATE]).call(2);
    for _ in 0..2 {
        assert_eq!(refusal(running.resolve(grant.clone()).await), unsettled);
    }
    world.receipts.set_append_down(false);
    let answer = running.resolve(grant).await.unwrap();
    assert_eq!(answer.claims.len(), 1);
    assert_eq!(world.receipts.of("vault.resolve").len(), 1);
}

#[tokio::test]
async fn a_crash_between_batch_and_receipt_leaves_one_receipt() {
    let world = World::new().await;
    let running = world.start().await;
    world.receipts.set_append_down(true);
    let message = batch(vec![item("m1", "Launch", &[DAY])], 1);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    assert_eq!(refusal(running.capture(message.clone()).await), unsettled);
    running.kill().await;
    world.keys.crash();
    world.data.crash();
    world.receipts.set_append_down(false);
    let again = world.start().await;
    let receipts = world.receipts.clone();
    eventually("the receipt", || receipts.of("vault.capture").len() == 1).await;
    let outcomes = again.capture(message).await.unwrap();
    assert!(matches!(outcomes[0], CaptureResult::Captured(_)));
    assert_eq!(world.receipts.of("vault.capture").len(), 1);
    assert_eq!(
        world.receipts.of("vault.capture")[0].routing.operation_id,
        operation(1)
    );
}

#[tokio::test]
async fn a_lost_answer_of_the_receipt_store_is_no_second_receipt() {
    let world = World::new().await;
    let running = world.start().await;
    world.receipts.set_loses_answers(true);
    let message = batch(vec![item("m1", "Launch", &[DAY])], 1);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    assert_eq!(refusal(running.capture(message.clone()).await), unsettled);
    let before = world.receipts.appends();
    running.kill().await;
    world.receipts.set_loses_answers(false);
    let again = world.start().await;
    let receipts = world.receipts.clone();
    eventually("another attempt", || receipts.appends() > before).await;
    again.capture(message).await.unwrap();
    assert_eq!(world.receipts.of("vault.capture").len(), 1);
}

#[tokio::test]
async fn a_batch_whose_outcome_is_unknown_is_found_by_a_retry() {
    for fault in [Fault::Full, Fault::BeforePersist, Fault::AfterPersist] {
        let world = World::new().await;
        let running = world.start().await;
        running.take(vec![item("m0", "Launch", &[DAY])], 1).await;
        world.data.plan(fault);
        let message = batch(vec![item("m1", "Launch", &[DAY])], 2);
        let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
        assert_eq!(refusal(running.capture(message.clone()).await), unsettled);
        let outcomes = running.capture(message).await.unwrap();
        assert!(
            matches!(outcomes[0], CaptureResult::Captured(_)),
            "{fault:?}"
        );
        assert_eq!(world.receipts.of("vault.capture").len(), 2, "{fault:?}");
        assert_eq!(running.events().await.len(), 2, "{fault:?}");
    }
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    let call = GrantDraft::new("r1", &[DATE]).call(2);
    let answer = running.resolve(call.clone()).await.unwrap();
    let (events, claims) = (running.events().await, running.claims().await);
    running.kill().await;
    world.keys.crash();
    world.data.crash();
    let again = world.start().await;
    assert_eq!(again.events().await, events);
    assert_eq!(again.claims().await, claims);
    assert_eq!(again.resolve(call).await.unwrap().claims, answer.claims);
    let proposal = submission(proposal_without_id(&[]), 3);
    again.propose(proposal).await.unwrap();
}

#[tokio::test]
async fn a_damaged_record_is_said_to_be_one() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    let found = world.data.scan(&Scan::new([], usize::MAX)).unwrap();
    let claim = found
        .into_iter()
        .find(|entry| entry.key.windows(7).any(|window| window == b"claim\0\x01"))
        .unwrap();
    let mut damaged = claim.stored;
    *damaged.value.last_mut().unwrap() ^= 1;
    world
        .data
        .apply(Batch::new().put(claim.key, damaged))
        .unwrap();
    let grant = GrantDraft::new("r1", &[DATE]).call(2);
    let corrupt = refused(Code::DataLoss, "STORE_CORRUPT");
    assert_eq!(refusal(running.resolve(grant).await), corrupt);
}
