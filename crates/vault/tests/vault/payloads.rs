//! Large payloads, piece by piece.

use std::collections::BTreeSet;

use cl_kv::{Engine, Scan};
use cl_model::digest::Digest;
use cl_testbed::{eventually, refusal, refused, within};
use cl_wire::vault::v1::capture_outcome::Result as CaptureResult;
use cl_wire::vault::v1::captured_item::Payload;
use cl_wire::vault::v1::store_payload_request::Piece;
use cl_wire::vault::v1::{CapturedItem, PayloadAnnouncement, StorePayloadRequest};
use tokio::sync::mpsc::{self, Sender};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use crate::documents::{SUBJECT, TENANT, batch, bytes, event_without_id, finalized, item};
use crate::support::{Running, World};

const PIECE: usize = 700_000;

fn large() -> Vec<u8> {
    (0..2_500_000_u32).map(|at| (at % 251) as u8).collect()
}

fn announcement(payload: &[u8]) -> PayloadAnnouncement {
    PayloadAnnouncement {
        tenant: TENANT.to_owned(),
        subject_ref: SUBJECT.to_owned(),
        digest: Digest::of_bytes(payload).to_string(),
        byte_length: payload.len().try_into().unwrap(),
    }
}

async fn store(
    running: &Running,
    announcement: PayloadAnnouncement,
    payload: &[u8],
) -> Result<String, Status> {
    let mut messages = vec![Piece::Announcement(announcement)];
    messages.extend(
        payload
            .chunks(PIECE)
            .map(|piece| Piece::Data(piece.to_vec())),
    );
    send(running, messages).await
}

async fn send(running: &Running, pieces: Vec<Piece>) -> Result<String, Status> {
    let messages = pieces
        .into_iter()
        .map(|piece| StorePayloadRequest { piece: Some(piece) });
    let mut capture = running.capture.clone();
    let stream = tokio_stream::iter(messages.collect::<Vec<_>>());
    let answer = within("a payload", capture.store_payload(stream)).await?;
    Ok(answer.into_inner().digest)
}

fn named(payload: &[u8]) -> CapturedItem {
    CapturedItem {
        event: bytes(&finalized(event_without_id("large", payload))),
        payload: Some(Payload::StoredDigest(Digest::of_bytes(payload).to_string())),
        content: None,
    }
}

/// The keys of pieces: their kind is in the clear.
fn pieces(world: &World) -> BTreeSet<Vec<u8>> {
    let entries = world.data.scan(&Scan::new([], usize::MAX)).unwrap();
    let keys = entries.into_iter().map(|entry| entry.key);
    keys.filter(|key| key.windows(5).any(|window| window == b"piece"))
        .collect()
}

#[tokio::test]
async fn an_event_names_a_payload_that_was_stored_before() {
    let world = World::new().await;
    let running = world.start().await;
    let payload = large();
    let digest = store(&running, announcement(&payload), &payload)
        .await
        .unwrap();
    assert_eq!(digest, Digest::of_bytes(&payload).to_string());
    let events = running.take(vec![named(&payload)], 1).await;
    let before = pieces(&world);
    assert!(!before.is_empty());
    // Named, so that the sweep leaves it alone; once more, which the sweep drops.
    store(&running, announcement(&payload), &payload)
        .await
        .unwrap();
    assert!(pieces(&world).len() > before.len());
    world.clock.advance(60 * 60 * 1000);
    eventually("the sweep", || pieces(&world) == before).await;
    let outcomes = running
        .capture(batch(vec![named(&payload)], 2))
        .await
        .unwrap();
    assert!(matches!(outcomes[0], CaptureResult::Duplicate(_)));

    running.erase_event(&events[0], 3).await.unwrap();
    eventually("the sweep", || pieces(&world).is_empty()).await;
}

#[tokio::test]
async fn a_payload_that_nothing_names_is_dropped_after_an_hour() {
    let world = World::new().await;
    let running = world.start().await;
    let payload = large();
    store(&running, announcement(&payload), &payload)
        .await
        .unwrap();
    world.clock.advance(60 * 60 * 1000 - 1);
    running.take(vec![item("m1", "Launch", &[])], 1).await;
    world.clock.advance(1);
    let inline = 1;
    eventually("the sweep", || pieces(&world).len() == inline).await;
    let outcomes = running
        .capture(batch(vec![named(&payload)], 2))
        .await
        .unwrap();
    assert_eq!(
        outcomes,
        [CaptureResult::RefusedCode("PAYLOAD_NOT_FOUND".to_owned())]
    );
}

const MINUTE_MS: i64 = 60 * 1000;

/// An upload under way, of which the vault has stored the beginning.
async fn begun(
    world: &World,
    running: &Running,
    payload: &[u8],
) -> (
    Sender<StorePayloadRequest>,
    JoinHandle<Result<String, Status>>,
) {
    let (sender, receiver) = mpsc::channel(8);
    let mut capture = running.capture.clone();
    let upload = tokio::spawn(async move {
        let answer = capture.store_payload(ReceiverStream::new(receiver)).await?;
        Ok(answer.into_inner().digest)
    });
    let messages = [
        Piece::Announcement(announcement(payload)),
        Piece::Data(payload[..1_000_000].to_vec()),
        Piece::Data(payload[1_000_000..2_000_000].to_vec()),
    ];
    for piece in messages {
        let message = StorePayloadRequest { piece: Some(piece) };
        sender.send(message).await.unwrap();
    }
    eventually("the first pieces", || !pieces(world).is_empty()).await;
    (sender, upload)
}

async fn end(
    (sender, upload): (
        Sender<StorePayloadRequest>,
        JoinHandle<Result<String, Status>>,
    ),
    payload: &[u8],
) -> Result<String, Status> {
    let piece = Some(Piece::Data(payload[2_000_000..].to_vec()));
    sender.send(StorePayloadRequest { piece }).await.unwrap();
    drop(sender);
    within("an upload", upload).await.unwrap()
}

#[tokio::test]
async fn storing_a_payload_again_renews_its_hour() {
    let world = World::new().await;
    let running = world.start().await;
    let (payload, other) = (large(), large().split_off(1));
    for payload in [&payload, &other] {
        store(&running, announcement(payload), payload)
            .await
            .unwrap();
    }
    world.clock.advance(40 * MINUTE_MS);
    store(&running, announcement(&payload), &payload)
        .await
        .unwrap();
    let before = pieces(&world).len();
    world.clock.advance(40 * MINUTE_MS);
    // The other payload's hour is over, and so is the first hour of this one.
    eventually("the sweep", || pieces(&world).len() < before).await;
    running.take(vec![named(&payload)], 1).await;
    world.clock.advance(40 * MINUTE_MS);
    eventually("the sweep", || pieces(&world).len() == before / 3).await;
}

#[tokio::test]
async fn the_hour_begins_when_an_upload_ends() {
    let world = World::new().await;
    let running = world.start().await;
    let payload = large();
    let upload = begun(&world, &running, &payload).await;
    world.clock.advance(50 * MINUTE_MS);
    end(upload, &payload).await.unwrap();
    let other = large().split_off(1);
    store(&running, announcement(&other), &other).await.unwrap();
    world.clock.advance(50 * MINUTE_MS);
    running.take(vec![named(&payload)], 1).await;
    let before = pieces(&world).len();
    world.clock.advance(20 * MINUTE_MS);
    eventually("the sweep", || pieces(&world).len() < before).await;
    let again = running.capture(batch(vec![named(&payload)], 2)).await;
    assert!(matches!(again.unwrap()[0], CaptureResult::Duplicate(_)));
}

#[tokio::test]
async fn an_upload_that_takes_longer_than_its_pieces_stay_is_refused() {
    let world = World::new().await;
    let running = world.start().await;
    let payload = large();
    let upload = begun(&world, &running, &payload).await;
    world.clock.advance(60 * MINUTE_MS);
    eventually("the sweep", || pieces(&world).is_empty()).await;
    let answer = refusal(end(upload, &payload).await);
    assert_eq!(answer, refused(Code::Aborted, "CONCURRENT_CHANGE"));
    let named = running.capture(batch(vec![named(&payload)], 2)).await;
    assert_eq!(
        named.unwrap(),
        [CaptureResult::RefusedCode("PAYLOAD_NOT_FOUND".to_owned())]
    );
}

#[tokio::test]
async fn refuses_payloads_that_are_not_what_was_announced() {
    let world = World::new().await;
    let running = world.start().await;
    let payload = large();
    let announced = || announcement(&payload);
    let mut too_large = announced();
    too_large.byte_length = 268_435_457;
    let mut other = announced();
    other.digest = Digest::of_bytes(b"other").to_string();
    let data = |length: usize| Piece::Data(payload[..length].to_vec());
    let field = "INVALID_FIELD";
    for (pieces, reason) in [
        (vec![Piece::Announcement(too_large)], "DOCUMENT_TOO_LARGE"),
        (
            vec![Piece::Announcement(other), data(9)],
            "PAYLOAD_DIGEST_MISMATCH",
        ),
        (
            vec![Piece::Announcement(announced()), data(9)],
            "PAYLOAD_DIGEST_MISMATCH",
        ),
        (
            vec![
                Piece::Announcement(announced()),
                Piece::Data(vec![0; 1024 * 1024 + 1]),
            ],
            "DOCUMENT_TOO_LARGE",
        ),
        (
            vec![
                Piece::Announcement(announced()),
                data(1_000_000),
                data(1_000_000),
                data(1_000_000),
            ],
            "PAYLOAD_DIGEST_MISMATCH",
        ),
        (vec![], field),
        (vec![data(9)], field),
        (
            vec![
                Piece::Announcement(announced()),
                Piece::Announcement(announced()),
            ],
            field,
        ),
        (
            vec![Piece::Announcement(PayloadAnnouncement {
                digest: "sha256:".to_owned(),
                ..announced()
            })],
            field,
        ),
    ] {
        let answer = refusal(send(&running, pieces).await);
        assert_eq!(answer, refused(Code::InvalidArgument, reason));
    }
    let outcomes = running
        .capture(batch(vec![named(&payload)], 2))
        .await
        .unwrap();
    assert_eq!(
        outcomes,
        [CaptureResult::RefusedCode("PAYLOAD_NOT_FOUND".to_owned())]
    );
}
