//! Putting, listing, reading and activating snapshots.

use cl_model::digest::Digest;
use cl_testbed::{refusal, refused, within};
use cl_wire::policy::v1::{GetSnapshotRequest, GetSnapshotResponse, ListSnapshotsRequest};
use serde_json::json;
use tonic::{Code, Status};

use crate::documents::{self, TENANT, snapshot};
use crate::support::{Running, World};

async fn read(
    running: &Running,
    tenant: &str,
    digest: Option<&str>,
) -> Result<GetSnapshotResponse, Status> {
    let message = GetSnapshotRequest {
        tenant: tenant.to_owned(),
        digest: digest.map(str::to_owned),
    };
    let mut admin = running.admin.clone();
    Ok(within("a read", admin.get_snapshot(message))
        .await?
        .into_inner())
}

#[tokio::test]
async fn stores_and_reads_exact_bytes() {
    let world = World::new().await;
    let running = world.start().await;
    let document = snapshot("v1");
    let digest = running.put(TENANT, &document, 1).await.unwrap();
    assert_eq!(digest, Digest::of_json(&document).to_string());
    let stored = read(&running, TENANT, Some(&digest)).await.unwrap();
    assert_eq!(stored.snapshot, documents::bytes(&document));
    let info = stored.info.unwrap();
    assert_eq!((info.version.as_str(), info.active), ("v1", false));
    assert_eq!(info.stored_at.unwrap().seconds, documents::NOW_MS / 1000);
    assert_eq!(info.activated_at, None);

    // A repeat changes nothing, whatever its operation id.
    assert_eq!(running.put(TENANT, &document, 2).await.unwrap(), digest);
    let receipts = world.receipts.of("policy.put_snapshot");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].receipt["policy_snapshot"], digest);
    assert_eq!(receipts[0].routing.subject_tag, None);

    let missing = refused(Code::NotFound, "SNAPSHOT_NOT_FOUND");
    assert_eq!(refusal(read(&running, TENANT, None).await), missing);
    let other = read(&running, "other", Some(&digest)).await;
    assert_eq!(refusal(other), missing);
}

#[tokio::test]
async fn lists_pages_newest_first() {
    let world = World::new().await;
    let running = world.start().await;
    for number in 1..=5 {
        let document = snapshot(&format!("v{number}"));
        running.put(TENANT, &document, number).await.unwrap();
    }
    running.put("other", &snapshot("foreign"), 9).await.unwrap();
    let mut versions = Vec::new();
    let mut page_token = String::new();
    loop {
        let message = ListSnapshotsRequest {
            tenant: TENANT.to_owned(),
            page_size: 2,
            page_token,
        };
        let mut admin = running.admin.clone();
        let page = admin.list_snapshots(message).await.unwrap().into_inner();
        assert_eq!(page.total_size, 5);
        assert!(page.snapshots.len() <= 2);
        versions.extend(page.snapshots.into_iter().map(|info| info.version));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(versions, ["v5", "v4", "v3", "v2", "v1"]);
}

#[tokio::test]
async fn activates_only_over_the_expected_snapshot() {
    let world = World::new().await;
    let running = world.start().await;
    let one = running.put(TENANT, &snapshot("v1"), 1).await.unwrap();
    let two = running.put(TENANT, &snapshot("v2"), 2).await.unwrap();
    let stale = refused(Code::Aborted, "SNAPSHOT_NOT_CURRENT");
    let missing = refused(Code::NotFound, "SNAPSHOT_NOT_FOUND");
    let early = running.activate(TENANT, &one, Some(&two), 3).await;
    assert_eq!(refusal(early), stale);
    running.activate(TENANT, &one, None, 4).await.unwrap();
    running.activate(TENANT, &one, None, 4).await.unwrap();
    assert_eq!(
        refusal(running.activate(TENANT, &two, None, 5).await),
        stale
    );
    running.activate(TENANT, &two, Some(&one), 6).await.unwrap();
    let active = read(&running, TENANT, None).await.unwrap().info.unwrap();
    assert_eq!((active.version.as_str(), active.active), ("v2", true));
    let former = read(&running, TENANT, Some(&one)).await.unwrap();
    assert!(!former.info.unwrap().active);
    // The retry of an activation that was superseded does not undo what superseded it.
    let late = running.activate(TENANT, &one, Some(&two), 4).await;
    assert_eq!(
        refusal(late),
        refused(Code::AlreadyExists, "OPERATION_CONFLICT")
    );
    assert_eq!(
        refusal(running.activate(TENANT, &one, None, 4).await),
        stale
    );
    let elsewhere = running.activate("other", &one, None, 7).await;
    assert_eq!(refusal(elsewhere), missing);
    assert_eq!(world.receipts.of("policy.activate_snapshot").len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_activations_at_once_one_wins() {
    let world = World::new().await;
    let running = world.start().await;
    let mut digests = Vec::new();
    for number in 0..8 {
        let document = snapshot(&format!("v{number}"));
        digests.push(running.put(TENANT, &document, number).await.unwrap());
    }
    let attempts = digests.iter().zip(100..).map(|(digest, number)| {
        let running = &running;
        async move { running.activate(TENANT, digest, None, number).await }
    });
    let mut won = 0;
    for outcome in join_all(attempts).await {
        match outcome {
            Ok(()) => won += 1,
            refused_one => assert_eq!(
                refusal(refused_one),
                refused(Code::Aborted, "SNAPSHOT_NOT_CURRENT")
            ),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(world.receipts.of("policy.activate_snapshot").len(), 1);
}

pub(crate) async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut done: Vec<_> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn refuses_snapshots_that_cannot_be_kept() {
    let world = World::new().await;
    let running = world.start().await;
    let mut expiring = snapshot("expiring");
    expiring["expires_at"] = json!("2030-01-01T12:00:01Z");
    let digest = running.put(TENANT, &expiring, 1).await.unwrap();
    world.clock.advance(1_000);
    let expired = refused(Code::FailedPrecondition, "SNAPSHOT_EXPIRED");
    let late = running.activate(TENANT, &digest, None, 2).await;
    assert_eq!(refusal(late), expired);

    let mut same_version = expiring.clone();
    same_version["limits"]["max_selectors"] = json!(3);
    let put = running.put(TENANT, &same_version, 3).await;
    let conflict = refused(Code::AlreadyExists, "SNAPSHOT_VERSION_CONFLICT");
    assert_eq!(refusal(put), conflict);

    let mut sealed = snapshot("sealed");
    sealed["recipient_keys"] = json!({"urn:model:drafting": "CANARY-KEY"});
    let error = running.put(TENANT, &sealed, 4).await.unwrap_err();
    let violations = cl_wire::status::violations(&error);
    assert_eq!(violations[0].field, "snapshot.recipient_keys");
    let reason = refused(Code::InvalidArgument, "RECIPIENT_KEY_UNSUPPORTED");
    assert_eq!(refusal::<()>(Err(error)), reason);
    assert_eq!(world.receipts.log().len(), 1);
}

#[tokio::test]
async fn changes_nothing_while_the_receipt_store_is_away() {
    let world = World::new().await;
    let running = world.start().await;
    let digest = running.put(TENANT, &snapshot("v1"), 1).await.unwrap();
    world.receipts.set_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    let put = running.put(TENANT, &snapshot("v2"), 2).await;
    assert_eq!(refusal(put), away);
    let activation = running.activate(TENANT, &digest, None, 3).await;
    assert_eq!(refusal(activation), away);
    let missing = refused(Code::NotFound, "SNAPSHOT_NOT_FOUND");
    assert_eq!(refusal(read(&running, TENANT, None).await), missing);
    world.receipts.set_down(false);
    running.put(TENANT, &snapshot("v2"), 2).await.unwrap();
    running.activate(TENANT, &digest, None, 3).await.unwrap();
}
