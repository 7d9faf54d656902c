//! Searches: few at a time, and none goes on for nobody.

use std::sync::Arc;

use cl_host::identity::PeerId;
use cl_host::life::{Shutdown, Tasks};
use cl_receipt_store::grpc::Service;
use cl_receipt_store::start;
use cl_testbed::{refusal, refused, spiffe_id, within};
use cl_wire::receipt::v1::ListReceiptsRequest;
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use tokio::task::JoinSet;
use tonic::{Code, Request};

use crate::requests::append;
use crate::support::{AUDITOR, ENGINE, GATEWAY, World};

/// As many as run and wait.
const ROOM: usize = 4 + 28;

/// Chunks of one piece of work.
const PIECE: u64 = 16;

/// Of no receipt, and in no list: all have to be looked at.
fn failures() -> ListReceiptsRequest {
    ListReceiptsRequest {
        tenant: "acme".to_owned(),
        outcome: Some("failure".to_owned()),
        ..ListReceiptsRequest::default()
    }
}

#[tokio::test]
async fn beyond_a_queue_searches_are_refused() {
    let world = World::new();
    let store = world.start().await;
    world
        .client(store.addr, ENGINE)
        .append(append(1))
        .await
        .unwrap();
    world.points.hold_reads(true);
    let mut calls = JoinSet::new();
    for number in 0..=ROOM {
        let path = if number % 2 == 0 { GATEWAY } else { AUDITOR };
        let mut reader = world.client(store.addr, path);
        calls.spawn(async move { reader.list_receipts(failures()).await });
    }
    // Nobody else gets an answer as long as nothing can be read.
    let first = within("a refusal", calls.join_next()).await;
    let status = first.unwrap().unwrap().unwrap_err();
    assert!(cl_wire::status::retry_delay(&status).is_some());
    let limited = refused(Code::ResourceExhausted, "RATE_LIMITED");
    assert_eq!(refusal(Err::<(), _>(status)), limited);
    world.points.hold_reads(false);
    let others = within("the others", calls.join_all()).await;
    assert_eq!(others.len(), ROOM);
    for answer in others {
        assert_eq!(answer.unwrap().into_inner().total_size, 0);
    }
}

/// A request as if it came over the network.
fn from(path: &str, message: ListReceiptsRequest) -> Request<ListReceiptsRequest> {
    let mut request = Request::new(message);
    request.extensions_mut().insert(PeerId {
        id: spiffe_id(path).parse().unwrap(),
        serial: "01".to_owned(),
        thumbprint: [1; 32],
        not_before_unix_s: 0,
        not_after_unix_s: i64::MAX,
    });
    request
}

#[tokio::test]
async fn a_search_ends_with_its_caller() {
    let world = World::new();
    let store = world.start().await;
    let writer = world.client(store.addr, ENGINE);
    let mut calls = JoinSet::new();
    for number in 0..2500 {
        let mut writer = writer.clone();
        calls.spawn(async move { writer.append(append(number)).await.map(drop) });
    }
    for answer in calls.join_all().await {
        answer.unwrap();
    }
    store.end().await;
    let shutdown = Shutdown::default();
    let tasks = Tasks::new(shutdown.clone());
    let service: Arc<Service> = Arc::new(start(world.deps(&shutdown, &tasks).unwrap()).unwrap());

    let before = world.points.chunks_read();
    let found = service.list_receipts(from(AUDITOR, failures())).await;
    assert_eq!(found.unwrap().into_inner().total_size, 0);
    let whole = world.points.chunks_read() - before;
    assert!(whole > 2 * PIECE, "{whole}");

    world.points.hold_reads(true);
    let before = world.points.chunks_read();
    let searching = Arc::clone(&service);
    let call = tokio::spawn(async move {
        let request = from(AUDITOR, failures());
        searching.list_receipts(request).await.map(drop)
    });
    within("a search", async {
        while world.points.held_reads() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    world.points.hold_reads(false);
    // As long as it takes to look at everything.
    let found = service.list_receipts(from(AUDITOR, failures())).await;
    assert_eq!(found.unwrap().into_inner().total_size, 0);
    let read = world.points.chunks_read() - before;
    assert!(read <= whole + PIECE, "{read} of {whole}");
    shutdown.request();
}
