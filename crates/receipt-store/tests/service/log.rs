//! The log of a tenant as others see it: proofs, checkpoints and tiles.

use cl_model::leaf;
use cl_testbed::{Serving, TRUST_DOMAIN, within};
use cl_tlog::{Entry, Prover, SignedCheckpoint, Tile, TilePath};
use cl_wire::receipt::v1::AppendRequest;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use tokio::task::JoinSet;
use tonic::body::Body;
use tower::{Service, ServiceExt};

use crate::requests::{append, get};
use crate::support::{
    AUDITOR, Client, ENGINE, GATEWAY, OPERATOR, World, verified_entries, verify_proof,
};

fn append_to(tenant: &str, number: u64) -> AppendRequest {
    let mut request = append(number);
    request.routing.as_mut().unwrap().tenant = tenant.to_owned();
    request
}

/// Appends, reads what became of it, and checks the proof of both answers.
async fn append_and_check(writer: &mut Client, reader: &mut Client, request: AppendRequest) -> u64 {
    let tenant = request.routing.as_ref().unwrap().tenant.clone();
    let answer = writer.append(request).await.unwrap().into_inner();
    let entry = answer.entry.unwrap();
    let found = reader.get_receipt(get(&tenant, &entry.receipt_ref)).await;
    let found = found.unwrap().into_inner();
    let receipt = found.receipt.unwrap();
    let appended = verify_proof(&tenant, &receipt.receipt, &answer.proof);
    assert!(appended.size() >= entry.sequence);
    let read = verify_proof(&tenant, &receipt.receipt, &found.proof);
    assert!(read.size() >= appended.size());
    entry.sequence
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_proof_verifies_against_its_checkpoint_under_load() {
    const CALLERS: u64 = 64;
    const EACH: u64 = 5;
    let world = World::new();
    let store = world.start().await;
    let (writer, reader) = (
        world.client(store.addr, ENGINE),
        world.client(store.addr, GATEWAY),
    );
    let mut calls = JoinSet::new();
    for caller in 0..CALLERS {
        let (mut writer, mut reader) = (writer.clone(), reader.clone());
        calls.spawn(async move {
            for call in 0..EACH {
                let request = append(caller * EACH + call);
                append_and_check(&mut writer, &mut reader, request).await;
            }
        });
    }
    within("the calls", calls.join_all()).await;
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, CALLERS * EACH);
}

#[tokio::test]
async fn each_tenant_has_a_log_of_its_own() {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let reader = &mut world.client(store.addr, GATEWAY);
    for (tenant, number, sequence) in [("acme", 1, 1), ("beta", 2, 1), ("acme", 3, 2)] {
        let request = append_to(tenant, number);
        assert_eq!(append_and_check(writer, reader, request).await, sequence);
    }
}

/// A file of a log, as a caller gets it over HTTP.
pub(crate) async fn file(
    world: &World,
    store: &Serving,
    caller: &str,
    path: &str,
) -> (StatusCode, Vec<u8>) {
    let mut channel = store.channel(world.authority.credentials(caller));
    let request = Request::get(format!("https://localhost{path}"));
    let request = request.body(Body::empty()).unwrap();
    let answer = channel.ready().await.unwrap().call(request).await.unwrap();
    let (head, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status, body.to_vec())
}

async fn files_of(world: &World, store: &Serving, paths: &[String]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for path in paths {
        let (status, bytes) = file(world, store, AUDITOR, &format!("/tlog/acme/{path}")).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        files.push(bytes);
    }
    files
}

async fn filled(entries: u64) -> (World, Serving) {
    let world = World::new();
    let store = world.start().await;
    let writer = world.client(store.addr, ENGINE);
    let mut calls = JoinSet::new();
    for number in 0..entries {
        let mut writer = writer.clone();
        calls.spawn(async move { writer.append(append(number)).await.map(drop) });
    }
    let appended = within("the calls", calls.join_all()).await;
    assert!(appended.iter().all(Result::is_ok));
    (world, store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tiles_and_bundles_lead_to_the_checkpoint() {
    let (world, store) = filled(259).await;
    let checkpoint = files_of(&world, &store, &["checkpoint".to_owned()]).await;
    let signed = SignedCheckpoint::parse(&checkpoint[0]).unwrap();
    let checkpoint = signed.checkpoint();
    assert_eq!(checkpoint.origin(), leaf::origin(TRUST_DOMAIN, "acme"));
    assert_eq!(checkpoint.size(), 259);

    let tiles: Vec<_> = Tile::all_of(259).collect();
    let paths: Vec<_> = tiles.iter().map(Tile::to_string).collect();
    assert_eq!(paths, ["tile/0/000", "tile/0/001.p/3", "tile/1/000.p/1"]);
    let bytes = files_of(&world, &store, &paths).await;
    let reader = |tile: Tile| {
        let place = tiles.iter().position(|it| *it == tile);
        Ok::<_, ()>(place.map(|place| bytes[place].clone()))
    };
    let mut prover = Prover::load(259, checkpoint.root(), reader).unwrap();
    for tile in tiles.iter().filter(|tile| tile.level() == 0) {
        let path = TilePath::Entries(*tile).to_string();
        let bundle = files_of(&world, &store, &[path]).await.remove(0);
        let entries = Entry::parse_bundle(&bundle).unwrap();
        assert_eq!(entries.len(), usize::from(tile.width()));
        for (index, entry) in (tile.index() * 256..).zip(entries) {
            assert_eq!(entry.bytes().len(), leaf::LEAF_BYTES);
            assert_eq!(prover.leaf(index).unwrap(), entry.leaf_hash());
        }
    }
    // A narrower tile of an earlier size is still there.
    let narrow = files_of(&world, &store, &["tile/0/001.p/1".to_owned()]).await;
    assert_eq!(narrow[0], bytes[1][..32]);
}

#[tokio::test]
async fn other_paths_are_not_found_and_other_callers_refused() {
    let (world, store) = filled(3).await;
    for path in [
        "tile/0/000.p/0",
        "tile/0/000.p/4",
        "tile/0/000.p/256",
        "tile/0/000.p/01",
        "tile/0/000",
        "tile/00/000.p/3",
        "tile/0/0.p/3",
        "tile/0/x000/000.p/3",
        "tile/0/001.p/1",
        "tile/1/000.p/1",
        "tile/64/000.p/1",
        "tile/-1/000.p/1",
        "tile/0/../checkpoint",
        "tile/0/000%2ep/1",
        "tile/entries/000",
        "tile/entries/000.p/4",
        "checkpoint/",
        "Checkpoint",
        "",
    ] {
        let (status, body) = file(&world, &store, AUDITOR, &format!("/tlog/acme/{path}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(body.is_empty(), "{path}");
    }
    let (status, _) = file(&world, &store, AUDITOR, "/tlog/beta/checkpoint").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    for caller in [ENGINE, OPERATOR, "surface/eve"] {
        let mut channel = store.channel(world.authority.credentials(caller));
        let request = Request::get("https://localhost/tlog/acme/checkpoint");
        let request = request.body(Body::empty()).unwrap();
        let answer = channel.ready().await.unwrap().call(request).await.unwrap();
        let refused = tonic::Status::from_header_map(answer.headers()).unwrap();
        assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    }
}

#[tokio::test]
async fn a_restart_goes_on_with_the_same_tree() {
    let (world, store) = filled(5).await;
    let before = files_of(&world, &store, &["checkpoint".to_owned()]).await;
    store.end().await;
    let store = world.start().await;
    assert_eq!(
        files_of(&world, &store, &["checkpoint".to_owned()]).await,
        before
    );
    let writer = &mut world.client(store.addr, ENGINE);
    let reader = &mut world.client(store.addr, GATEWAY);
    assert_eq!(append_and_check(writer, reader, append(9)).await, 6);
    let after = files_of(&world, &store, &["checkpoint".to_owned()]).await;
    let [before, after] = [before, after].map(|it| SignedCheckpoint::parse(&it[0]).unwrap());
    let tile = files_of(&world, &store, &["tile/0/000.p/6".to_owned()]).await;
    let reader = |_| Ok::<_, ()>(Some(tile[0].clone()));
    let mut prover = Prover::load(6, after.checkpoint().root(), reader).unwrap();
    let proof = prover.consistency(5).unwrap();
    let consistent = after
        .checkpoint()
        .verify_consistency(before.checkpoint(), &proof);
    assert_eq!(consistent, Ok(()));
}
