//! Corrections: a receipt supersedes one that is there, and its writer's.

use cl_testbed::{refusal, refused, within};
use serde_json::{Value, json};
use tonic::Code;

use crate::requests::{
    append, append_of, begin, complete, consumer_append, consumption, members, with,
};
use crate::support::{AUDITOR, ENGINE, ISSUER, World, open_intents, verified_entries};

fn superseding(members: Value, reference: &str) -> Value {
    with(members, json!({"supersedes_ref": reference}))
}

#[tokio::test]
async fn a_writer_corrects_what_it_wrote_and_nothing_else() {
    let world = World::new();
    let store = world.start().await;
    let engine = &mut world.client(store.addr, ENGINE);
    let issuer = &mut world.client(store.addr, ISSUER);
    let first = engine.append(append(1)).await.unwrap().into_inner();
    let first = first.entry.unwrap().receipt_ref;
    let of_issuer = issuer.append(consumer_append(consumption(2))).await;
    let of_issuer = of_issuer.unwrap().into_inner().entry.unwrap().receipt_ref;

    let invalid = refused(Code::InvalidArgument, "INVALID_RECEIPT");
    let unknown = format!("urn:cl:receipt:{}", "0".repeat(64));
    for reference in [&unknown, &of_issuer] {
        let members = superseding(members(3), reference);
        let answer = engine.append(append_of(3, &members)).await;
        assert_eq!(refusal(answer), invalid, "{reference}");
    }
    let mut elsewhere = append_of(4, &superseding(members(4), &first));
    elsewhere.routing.as_mut().unwrap().tenant = "beta".to_owned();
    assert_eq!(refusal(engine.append(elsewhere).await), invalid);

    let members = superseding(members(5), &first);
    let corrected = engine.append(append_of(5, &members)).await.unwrap();
    let corrected = corrected.into_inner().entry.unwrap();
    assert_eq!(corrected.supersedes_ref, Some(first));
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, 3);
}

#[tokio::test]
async fn a_consumer_corrects_only_itself() {
    let world = World::new();
    let store = world.start().await;
    let engine = &mut world.client(store.addr, ENGINE);
    let issuer = &mut world.client(store.addr, ISSUER);
    let of_engine = engine.append(append(1)).await.unwrap().into_inner();
    let of_engine = of_engine.entry.unwrap().receipt_ref;
    let failed = |number, actor: &str| {
        let changes = json!({"outcome": "failure", "actor": actor});
        with(consumption(number), changes)
    };
    let own = issuer
        .append(consumer_append(failed(2, "urn:agent:one")))
        .await;
    let own = own.unwrap().into_inner().entry.unwrap().receipt_ref;

    let invalid = refused(Code::InvalidArgument, "INVALID_RECEIPT");
    for (actor, reference) in [("urn:agent:one", &of_engine), ("urn:agent:two", &own)] {
        let members = superseding(failed(3, actor), reference);
        let answer = issuer.append(consumer_append(members)).await;
        assert_eq!(refusal(answer), invalid, "{actor}");
    }
    let members = superseding(failed(4, "urn:agent:one"), &own);
    issuer.append(consumer_append(members)).await.unwrap();
    let auditor = &mut world.client(store.addr, AUDITOR);
    assert_eq!(verified_entries(auditor).await, 3);
}

#[tokio::test]
async fn what_the_store_says_of_an_operation_is_corrected_by_its_completion_alone() {
    let world = World::new();
    let store = world.start().await;
    let engine = &mut world.client(store.addr, ENGINE);
    let issuer = &mut world.client(store.addr, ISSUER);
    engine.begin(begin(1)).await.unwrap();
    world.clock.advance(60_000);
    let overdue = within("the store's own receipt", async {
        loop {
            let open = open_intents(engine).await;
            if let Some(entry) = open.intents.into_iter().next().and_then(|it| it.entry) {
                return entry.receipt_ref;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let invalid = refused(Code::InvalidArgument, "INVALID_RECEIPT");
    let members = superseding(members(2), &overdue);
    assert_eq!(
        refusal(engine.append(append_of(2, &members)).await),
        invalid
    );
    let failed = with(consumption(3), json!({"outcome": "failure"}));
    let by_consumer = consumer_append(superseding(failed, &overdue));
    assert_eq!(refusal(issuer.append(by_consumer).await), invalid);
    let completed = engine.complete(complete(1)).await.unwrap().into_inner();
    assert_eq!(completed.entry.unwrap().supersedes_ref, Some(overdue));
}
