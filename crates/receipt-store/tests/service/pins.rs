//! A store against its pins: put back, copied, damaged, and while pins cannot be written.

use std::fs;

use cl_kv::{Batch, Engine, MemoryEngine, Scan};
use cl_model::leaf;
use cl_receipt_store::pin::Pin;
use cl_testbed::{Serving, TRUST_DOMAIN, refusal, refused, within};
use cl_tlog::SignedCheckpoint;
use cl_wire::receipt::v1::{ListReceiptsRequest, PreflightRequest, VerifyLogRequest};
use tokio::process::Command;
use tonic::{Code, Status};

use crate::failpoints::{Action, MemoryPin};
use crate::process::Home;
use crate::requests::{append, begin, complete, get};
use crate::support::{AUDITOR, Client, ENGINE, GATEWAY, World, open_intents, verified_entries};

fn acme() -> String {
    leaf::origin(TRUST_DOMAIN, "acme")
}

/// How many entries the pin of the log has.
fn pinned(world: &World) -> u64 {
    world.pin.read(&acme()).unwrap().map_or(0, |text| {
        let signed = SignedCheckpoint::parse(text.as_bytes()).unwrap();
        signed.checkpoint().size()
    })
}

/// Writes a pin over what is there.
fn set_pin(pin: &MemoryPin, text: &str) {
    let before = pin.read(&acme()).unwrap();
    pin.advance(&acme(), before.as_deref(), text).unwrap();
}

/// The data as they are now, apart from the store that goes on.
pub(crate) fn copy_of(engine: &MemoryEngine) -> MemoryEngine {
    let entries = engine.scan(&Scan::new([], usize::MAX)).unwrap();
    let batch = entries
        .into_iter()
        .fold(Batch::new(), |batch, it| batch.put(it.key, it.stored));
    let copy = MemoryEngine::new();
    copy.apply(batch).unwrap();
    copy
}

/// Another machine on other data, and the same pins.
fn on(world: &World, engine: MemoryEngine) -> World {
    World {
        engine,
        pin: world.pin.clone(),
        ..World::new()
    }
}

fn unavailable() -> (Code, String) {
    refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE")
}

async fn filled(entries: u64) -> (World, Serving) {
    let world = World::new();
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    for number in 1..=entries {
        writer.append(append(number)).await.unwrap();
        assert_eq!(pinned(&world), number);
    }
    (world, store)
}

#[tokio::test]
async fn data_that_were_put_back_are_refused_as_a_rollback() {
    let (world, store) = filled(2).await;
    let earlier = copy_of(&world.engine);
    let writer = &mut world.client(store.addr, ENGINE);
    writer.append(append(3)).await.unwrap();
    store.end().await;
    for data in [earlier, MemoryEngine::new()] {
        let refused = on(&world, data).refuses_to_start().to_string();
        assert!(refused.contains("rollback"), "{refused}");
    }
}

#[tokio::test]
async fn a_folder_that_was_put_back_is_not_served() {
    let home = Home::new();
    let data = home.path().join("data");
    let [earlier, later] = ["earlier", "later"].map(|name| home.path().join(name));
    for number in 1..3 {
        let process = home.start().await;
        let writer = &mut home.client(&process, ENGINE);
        writer.append(append(number)).await.unwrap();
        process.end().await;
        if number == 1 {
            let copied = Command::new("cp")
                .arg("-r")
                .args([&data, &earlier])
                .status();
            assert!(copied.await.unwrap().success());
        }
    }
    fs::rename(&data, &later).unwrap();
    fs::rename(&earlier, &data).unwrap();
    let output = within("an end", home.command().output()).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("rollback"), "{log}");
    // With the newest data it starts again.
    fs::rename(&data, &earlier).unwrap();
    fs::rename(&later, &data).unwrap();
    home.start().await;
}

#[tokio::test]
async fn data_that_went_on_by_themselves_are_refused_as_a_fork() {
    let (world, store) = filled(2).await;
    let copy = copy_of(&world.engine);
    let writer = &mut world.client(store.addr, ENGINE);
    writer.append(append(3)).await.unwrap();
    store.end().await;
    // The copy goes on where nobody compares, also past the others.
    for number in 4..6 {
        let alone = World {
            engine: copy.clone(),
            adopts_lost_pins: true,
            ..World::new()
        };
        let store = alone.start().await;
        let writer = &mut alone.client(store.addr, ENGINE);
        writer.append(append(number)).await.unwrap();
        store.end().await;
        let refused = on(&world, copy.clone()).refuses_to_start();
        assert!(refused.to_string().contains("fork"), "{refused}");
    }
}

#[tokio::test]
async fn of_two_stores_on_copies_the_second_is_refused_before_it_writes() {
    let (world, store) = filled(2).await;
    let copy = on(&world, copy_of(&world.engine));
    let second = copy.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let second_writer = &mut copy.client(second.addr, ENGINE);
    writer.append(append(3)).await.unwrap();
    let before = copy.engine.scan(&Scan::new([], usize::MAX)).unwrap();
    for _ in 0..2 {
        let refusal = refusal(second_writer.append(append(4)).await);
        assert_eq!(refusal, refused(Code::DataLoss, "STORE_CORRUPT"));
    }
    let after = copy.engine.scan(&Scan::new([], usize::MAX)).unwrap();
    assert_eq!(before, after);
    writer.append(append(5)).await.unwrap();
    assert_eq!(pinned(&world), 4);
}

#[tokio::test]
async fn a_pin_that_the_log_did_not_sign_is_refused() {
    let (world, store) = filled(2).await;
    let newest = world.pin.read(&acme()).unwrap().unwrap();
    store.end().await;
    let forged = newest.replace("\n2\n", "\n1\n");
    let foreign = newest.replace("/acme\n", "/beta\n");
    for text in [forged.as_str(), &foreign, "", "no checkpoint"] {
        set_pin(&world.pin, text);
        let refused = world.refuses_to_start().to_string();
        assert!(refused.contains("not signed"), "{refused}");
    }
    set_pin(&world.pin, &newest);
    world.start().await;
}

#[tokio::test]
async fn a_pin_that_is_lost_is_not_taken_anew() {
    let (mut world, store) = filled(2).await;
    let writer = &mut world.client(store.addr, ENGINE);
    let reader = &mut world.client(store.addr, GATEWAY);
    let known = writer.append(append(1)).await.unwrap().into_inner();
    let known = known.entry.unwrap().receipt_ref;
    world.pin.lose(&acme());
    let damaged = refused(Code::DataLoss, "STORE_CORRUPT");
    assert_eq!(refusal(writer.append(append(3)).await), damaged);
    assert_eq!(
        refusal(reader.get_receipt(get("acme", &known)).await),
        damaged
    );
    assert_eq!(pinned(&world), 0);
    store.end().await;
    let refused = world.refuses_to_start().to_string();
    assert!(refused.contains("pin of a log is missing"), "{refused}");
    // An operator who looked into it has it pinned again, once.
    world.adopts_lost_pins = true;
    world.start().await.end().await;
    assert_eq!(pinned(&world), 2);
    world.adopts_lost_pins = false;
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    writer.append(append(3)).await.unwrap();
    assert_eq!(pinned(&world), 3);
}

#[tokio::test]
async fn adopting_lost_pins_forgives_nothing_else() {
    let (mut world, store) = filled(2).await;
    let earlier = copy_of(&world.engine);
    let writer = &mut world.client(store.addr, ENGINE);
    writer.append(append(3)).await.unwrap();
    store.end().await;
    world.adopts_lost_pins = true;
    let mut older = on(&world, earlier);
    older.adopts_lost_pins = true;
    let refused = older.refuses_to_start().to_string();
    assert!(refused.contains("rollback"), "{refused}");
}

#[tokio::test]
async fn a_store_ahead_of_its_pin_starts_and_brings_the_pin_up() {
    let (world, store) = filled(1).await;
    let before = world.pin.read(&acme()).unwrap().unwrap();
    let writer = &mut world.client(store.addr, ENGINE);
    writer.append(append(2)).await.unwrap();
    store.end().await;
    set_pin(&world.pin, &before);
    let store = world.start().await;
    assert_eq!(pinned(&world), 2);
    let writer = &mut world.client(store.addr, ENGINE);
    let repeat = writer.append(append(2)).await.unwrap().into_inner();
    assert_eq!(repeat.entry.unwrap().sequence, 2);
}

async fn preflight(writer: &mut Client) -> Result<bool, Status> {
    let request = PreflightRequest {
        tenant: "acme".to_owned(),
        operations: vec!["policy.decide".to_owned()],
    };
    let answer = writer.preflight(request).await?;
    Ok(answer.into_inner().ok)
}

#[tokio::test]
async fn while_pins_cannot_be_written_nothing_is_acknowledged() {
    let (world, store) = filled(1).await;
    let writer = &mut world.client(store.addr, ENGINE);
    let reader = &mut world.client(store.addr, GATEWAY);
    let auditor = &mut world.client(store.addr, AUDITOR);
    let first = writer.append(append(1)).await.unwrap().into_inner();
    let first_ref = first.entry.unwrap().receipt_ref;
    writer.begin(begin(5)).await.unwrap();

    world.points.set_pins_down(true);
    // The first one is stored, and everything behind it is not.
    let status = writer.append(append(2)).await.unwrap_err();
    assert!(cl_wire::status::retry_delay(&status).is_some());
    assert_eq!(refusal(Err::<(), _>(status)), unavailable());
    assert_eq!(refusal(writer.append(append(2)).await), unavailable());
    assert_eq!(refusal(writer.append(append(3)).await), unavailable());
    assert_eq!(refusal(writer.complete(complete(5)).await), unavailable());
    assert_eq!(refusal(writer.begin(begin(4)).await), unavailable());
    assert_eq!(refusal(preflight(writer).await), unavailable());
    assert_eq!(open_intents(writer).await.total_size, 1);
    // What was acknowledged before is served, with proofs from the pinned tree.
    let found = reader.get_receipt(get("acme", &first_ref)).await.unwrap();
    assert!(found.into_inner().proof.contains("\n1\n"));
    for operation in [None, Some("policy.decide".to_owned())] {
        let request = ListReceiptsRequest {
            tenant: "acme".to_owned(),
            operation,
            ..ListReceiptsRequest::default()
        };
        let listed = reader.list_receipts(request).await.unwrap().into_inner();
        assert_eq!((listed.receipts.len(), listed.total_size), (1, 1));
    }
    let request = VerifyLogRequest {
        tenant: "acme".to_owned(),
    };
    assert_eq!(refusal(auditor.verify_log(request).await), unavailable());
    assert_eq!(pinned(&world), 1);

    world.points.set_pins_down(false);
    let repeat = writer.append(append(2)).await.unwrap().into_inner();
    assert_eq!(repeat.entry.unwrap().sequence, 2);
    assert_eq!(pinned(&world), 2);
    preflight(writer).await.unwrap();
    writer.begin(begin(4)).await.unwrap();
    writer.complete(complete(5)).await.unwrap();
    assert_eq!(verified_entries(auditor).await, 3);
}

#[tokio::test]
async fn a_repeat_is_acknowledged_only_once_the_pin_has_its_entry() {
    let (world, store) = filled(1).await;
    let writer = &mut world.client(store.addr, ENGINE);
    for (number, action) in [(2, Action::Fail), (3, Action::FailAfter)] {
        // The next step stores the entry, the one behind it is the pin's.
        world.points.plan(1, action);
        assert_eq!(refusal(writer.append(append(number)).await), unavailable());
        let repeat = writer.append(append(number)).await.unwrap().into_inner();
        assert_eq!(repeat.entry.unwrap().sequence, number);
        assert_eq!(pinned(&world), number);
    }
}

#[tokio::test]
async fn a_reader_brings_up_a_pin_that_stayed_behind() {
    let (world, store) = filled(1).await;
    let writer = &mut world.client(store.addr, ENGINE);
    let auditor = &mut world.client(store.addr, AUDITOR);
    world.points.plan(1, Action::Fail);
    assert_eq!(refusal(writer.append(append(2)).await), unavailable());
    assert_eq!(pinned(&world), 1);
    assert_eq!(verified_entries(auditor).await, 2);
    assert_eq!(pinned(&world), 2);
}

#[tokio::test]
async fn a_preflight_writes_only_where_nothing_was_written_a_moment_ago() {
    let (world, store) = filled(1).await;
    let writer = &mut world.client(store.addr, ENGINE);
    writer.append(append(2)).await.unwrap();
    world.points.plan(0, Action::Fail);
    for _ in 0..3 {
        preflight(writer).await.unwrap();
    }
    // The append of a moment ago proves nothing once one has failed.
    assert_eq!(refusal(writer.append(append(3)).await), unavailable());
    world.points.plan(0, Action::Fail);
    assert_eq!(refusal(preflight(writer).await), unavailable());
    preflight(writer).await.unwrap();

    // Nor after a second.
    writer.append(append(3)).await.unwrap();
    world.clock.advance(1000);
    world.points.plan(0, Action::Fail);
    assert_eq!(refusal(preflight(writer).await), unavailable());
    preflight(writer).await.unwrap();
    // Nor when the clock was set back.
    world.clock.advance(-1);
    world.points.plan(0, Action::Fail);
    assert_eq!(refusal(preflight(writer).await), unavailable());
}

#[tokio::test]
async fn a_log_that_cannot_be_pinned_ends_what_another_one_proved() {
    let (world, store) = filled(1).await;
    let writer = &mut world.client(store.addr, ENGINE);
    writer.append(append(2)).await.unwrap();
    world.points.set_pins_down(true);
    preflight(writer).await.unwrap();
    assert_eq!(refusal(writer.append(append(3)).await), unavailable());
    assert_eq!(refusal(preflight(writer).await), unavailable());
}
