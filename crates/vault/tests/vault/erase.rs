//! What erasing takes away, what it leaves, and whom it tells.

use std::sync::Arc;

use cl_kv::{Engine, Fault, MemoryEngine, Scan};
use cl_model::operation::TenantName;
use cl_model::scalar::Reference;
use cl_testbed::{eventually, refusal, refused, within};
use cl_vault::store::{Party, StoreError, SubjectName, Target};
use cl_wire::bundle::v1::revoke_bundles_request::Target as Revoked;
use cl_wire::vault::v1::capture_outcome::Result as CaptureResult;
use serde_json::{Value, json};
use tonic::Code;

use crate::crash::Counting;
use crate::documents::{
    DATE, GrantDraft, batch, item, operation, proposal_without_id, provenance, submission,
};
use crate::support::{Running, World};

const DAY: &str = r#"requested_delivery_date 0.6 "2030-02-01""#;
const OTHER_DAY: &str = r#"requested_delivery_date 0.6 "2030-02-09""#;

/// How many entries of the subject's own kinds a store holds. Kinds are in the clear.
fn entries(engine: &MemoryEngine, kind: &str) -> usize {
    let found = engine.scan(&Scan::new([], usize::MAX)).unwrap();
    let text = [kind.as_bytes(), &[0, 1]].concat();
    let of_kind = found
        .iter()
        .filter(|entry| entry.key.windows(text.len()).any(|window| window == text));
    of_kind.count()
}

const KINDS: [&str; 8] = [
    "event",
    "item",
    "claim",
    "thread",
    "list",
    "exchanges",
    "payload",
    "piece",
];

async fn filled(world: &World) -> Running {
    let running = world.start().await;
    running
        .take(
            vec![
                item("m1", "Launch", &[DAY]),
                item("m2", "Launch", &[DAY, OTHER_DAY]),
            ],
            1,
        )
        .await;
    let grant = GrantDraft::new("r1", &[DATE]);
    running.resolve(grant.call(2)).await.unwrap();
    running
}

#[tokio::test]
async fn erasing_a_subject_destroys_its_key_and_leaves_a_tombstone() {
    let world = World::new().await;
    let running = filled(&world).await;
    for kind in KINDS {
        assert!(entries(&world.data, kind) > 0, "{kind}");
    }
    assert_eq!(entries(&world.keys, "key"), 1);
    let erased = running.erase_subject(3).await.unwrap();
    assert_eq!((erased.events, erased.claims), (2, 2));
    assert_eq!(entries(&world.keys, "key"), 0);
    for kind in KINDS {
        assert_eq!(entries(&world.data, kind), 0, "{kind}");
    }
    assert!(running.events().await.is_empty());
    let gone = refused(Code::FailedPrecondition, "SUBJECT_ERASED");
    let again = batch(vec![item("m1", "Launch", &[DAY])], 4);
    assert_eq!(refusal(running.capture(again).await), gone);
    let proposal = submission(proposal_without_id(&[]), 5);
    let none = refused(Code::NotFound, "EXCHANGE_NOT_FOUND");
    assert_eq!(refusal(running.propose(proposal).await), none);
    let grant = GrantDraft::new("r2", &[DATE]).call(6);
    assert!(running.resolve(grant).await.unwrap().claims.is_empty());

    // The same call and another one change nothing.
    assert_eq!(running.erase_subject(3).await.unwrap(), erased);
    let repeat = running.erase_subject(7).await.unwrap();
    assert_eq!((repeat.events, repeat.claims), (0, 0));
    let receipts = world.receipts.of("vault.erase_subject");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].receipt["metadata"]["events"], "2");
    assert_eq!(receipts[0].routing.operation_id, operation(3));
}

#[tokio::test]
async fn a_name_can_be_erased_before_it_is_used() {
    let world = World::new().await;
    let running = world.start().await;
    let erased = running.erase_subject(1).await.unwrap();
    assert_eq!((erased.events, erased.claims), (0, 0));
    let gone = refused(Code::FailedPrecondition, "SUBJECT_ERASED");
    let late = batch(vec![item("m1", "Launch", &[DAY])], 2);
    assert_eq!(refusal(running.capture(late).await), gone);
}

#[tokio::test]
async fn references_reach_the_issuer_and_wait_for_parties_that_do_not_exist() {
    let world = World::new().await;
    let running = filled(&world).await;
    world.issuer.set_down(true);
    running.erase_subject(3).await.unwrap();
    assert!(world.issuer.revoked().is_empty());
    running.kill().await;
    world.issuer.set_down(false);
    let running = world.start().await;
    let issuer = world.issuer.clone();
    eventually("the notice", || !issuer.revoked().is_empty()).await;
    let decision = GrantDraft::new("r1", &[DATE]).scope["decision_id"].clone();
    let decision = decision.as_str().unwrap().to_owned();
    let expected = Revoked::DecisionRef(decision.clone());
    assert_eq!(
        world.issuer.revoked(),
        [(expected, "subject.erased".to_owned())]
    );
    let waiting = |party| running.store.notices(party, None, 10).unwrap().notices;
    eventually("the acknowledgement", || {
        waiting(Party::BundleIssuer).is_empty()
    })
    .await;
    let engine = waiting(Party::PolicyEngine);
    assert_eq!(engine.len(), 1);
    assert!(matches!(&engine[0].target, Target::Decision(id) if id.as_str() == decision));
    for party in [Party::DiscoveryProxy, Party::ReceiptStore] {
        let notices = waiting(party);
        assert!(matches!(&notices[..], [one] if matches!(one.target, Target::SubjectTag(_))));
    }
}

#[tokio::test]
async fn without_an_issuer_its_notices_are_kept() {
    let world = World::new().await;
    let running = filled(&world).await;
    running.kill().await;
    let (keys, data) = (Arc::new(world.keys.clone()), Arc::new(world.data.clone()));
    let running = world.start_on(keys, data, false).await;
    running.erase_subject(3).await.unwrap();
    let notices = running.store.notices(Party::BundleIssuer, None, 10);
    assert_eq!(notices.unwrap().notices.len(), 1);
    running.kill().await;
    let _running = world.start().await;
    let issuer = world.issuer.clone();
    eventually("the notice", || issuer.revoked().len() == 1).await;
}

#[tokio::test]
async fn an_erasure_survives_a_crash_at_every_step() {
    // Each fault hits the next batch of its store: first the tombstone, then the key, in the key
    // store; fence, receipt and the wiping in the data store.
    for (of_keys, skipped) in [
        (true, 0),
        (true, 1),
        (false, 0),
        (false, 1),
        (false, 2),
        (false, 4),
    ] {
        for fault in [Fault::BeforePersist, Fault::AfterPersist] {
            let world = World::new().await;
            let running = filled(&world).await;
            running.kill().await;
            let failing = failing(&world, of_keys, skipped, fault).await;
            let answer = failing.erase_subject(3).await;
            let case = format!("keys {of_keys}, step {skipped}, {fault:?}");
            failing.kill().await;
            world.keys.crash();
            world.data.crash();
            let running = world.start().await;
            let tombstone_failed = of_keys && skipped == 0 && fault == Fault::BeforePersist;
            if tombstone_failed {
                assert_eq!(answer.unwrap_err().code(), Code::Unavailable, "{case}");
                assert_eq!(running.events().await.len(), 2, "{case}");
                continue;
            }
            let (keys, receipts) = (world.keys.clone(), world.receipts.clone());
            eventually(&case, || {
                entries(&keys, "key") == 0
                    && entries(&keys, "erasure") == 0
                    && receipts.of("vault.erase_subject").len() == 1
            })
            .await;
            for kind in KINDS {
                assert_eq!(entries(&world.data, kind), 0, "{case}: {kind}");
            }
            let erased = running.erase_subject(3).await.unwrap();
            assert_eq!((erased.events, erased.claims), (2, 2), "{case}");
        }
    }
}

/// A vault one of whose engines fails once, after some batches that succeed.
async fn failing(world: &World, of_keys: bool, skipped: usize, fault: Fault) -> Running {
    let engine = if of_keys { &world.keys } else { &world.data };
    let failing = Arc::new(Counting::new(engine.clone(), skipped, fault));
    let running = if of_keys {
        let data = Arc::new(world.data.clone());
        world.start_on(failing.clone(), data, true).await
    } else {
        let keys = Arc::new(world.keys.clone());
        world.start_on(keys, failing.clone(), true).await
    };
    failing.arm();
    running
}

#[tokio::test]
async fn a_subject_is_closed_before_its_erasure_is_through() {
    let world = World::new().await;
    let running = filled(&world).await;
    // The receipt is written last: without it the call says that it is not settled, and yet
    // nobody has anything of the subject any more.
    world.receipts.set_append_down(true);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    assert_eq!(refusal(running.erase_subject(3).await), unsettled);
    assert_eq!(entries(&world.keys, "key"), 0);
    let gone = refused(Code::FailedPrecondition, "SUBJECT_ERASED");
    let late = batch(vec![item("m9", "Launch", &[DAY])], 4);
    assert_eq!(refusal(running.capture(late).await), gone);
    world.receipts.set_append_down(false);
    let receipts = world.receipts.clone();
    eventually("the receipt", || {
        receipts.of("vault.erase_subject").len() == 1
    })
    .await;
}

#[tokio::test]
async fn a_writer_that_began_before_an_erasure_comes_too_late() {
    let world = World::new().await;
    let running = filled(&world).await;
    let name = SubjectName {
        tenant: TenantName::parse("acme").unwrap(),
        subject: Reference::new(crate::documents::SUBJECT).unwrap(),
    };
    let subject = running.store.open_subject(&name).unwrap();
    let draft = running.store.draft(&subject).unwrap();
    running.erase_subject(3).await.unwrap();
    assert!(matches!(draft.commit(), Err(StoreError::Conflict)));
    let late = running.store.draft(&subject);
    assert!(matches!(late, Err(StoreError::Erased)));
}

#[tokio::test]
async fn erasing_an_event_takes_what_rests_on_it_alone() {
    let world = World::new().await;
    let running = filled(&world).await;
    let events = running.events().await;
    let id = |at: usize| -> String {
        let event: Value = serde_json::from_slice(&events[at].event).unwrap();
        event["id"].as_str().unwrap().to_owned()
    };
    let (second, first) = (id(0), id(1));
    assert_eq!(running.erase_event(&second, 3).await.unwrap(), 1);
    assert_eq!(running.events().await.len(), 1);
    let claims = running.claim_documents().await;
    assert_eq!(claims.len(), 2);
    for claim in claims {
        if claim["status"] == "retracted" {
            assert_eq!(claim["object"]["value"], Value::Null);
            assert_eq!(claim["provenance_refs"], json!([second]));
            assert_eq!(claim["deletion"]["reason"], "source.erased");
        } else {
            assert_eq!(claim["object"]["value"], "2030-02-01");
            assert_eq!(claim["provenance_refs"], json!([first]));
        }
    }
    // A repeat, by the same call and by another one; and the item does not come back.
    assert_eq!(running.erase_event(&second, 3).await.unwrap(), 1);
    assert_eq!(running.erase_event(&second, 4).await.unwrap(), 0);
    let late = batch(vec![item("m2", "Launch", &[DAY, OTHER_DAY])], 5);
    assert_eq!(
        running.capture(late).await.unwrap(),
        [CaptureResult::RefusedCode("EVENT_ERASED".to_owned())]
    );
    let receipts = world.receipts.of("vault.erase_event");
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].receipt["metadata"]["retracted_claims"], "1");

    let reference = provenance(&second, "r1").reference();
    let issuer = world.issuer.clone();
    eventually("the notice", || !issuer.revoked().is_empty()).await;
    let expected = Revoked::ProvenanceRef(reference.as_str().to_owned());
    assert_eq!(
        world.issuer.revoked(),
        [(expected, "event.erased".to_owned())]
    );
    let unknown = running.erase_event("urn:cl:event:unknown", 6).await;
    assert_eq!(refusal(unknown), refused(Code::NotFound, "EVENT_NOT_FOUND"));
    running.erase_subject(7).await.unwrap();
    let gone = refused(Code::FailedPrecondition, "SUBJECT_ERASED");
    assert_eq!(refusal(running.erase_event(&first, 8).await), gone);
}

#[tokio::test]
async fn nothing_is_erased_while_the_receipt_store_is_away() {
    let world = World::new().await;
    let running = filled(&world).await;
    world.receipts.set_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(refusal(running.erase_subject(3).await), away);
    let events = running.events().await;
    let event: Value = serde_json::from_slice(&events[0].event).unwrap();
    let erase = running.erase_event(event["id"].as_str().unwrap(), 4);
    assert_eq!(refusal(within("an erasure", erase).await), away);
    assert_eq!(running.events().await.len(), 2);
}
