//! Legal holds: what they cover stays, whatever asks for its end.

use cl_host::client::PeerChannel;
use cl_testbed::{Serving, refusal, refused, spiffe_id};
use cl_wire::receipt::v1::hold_target::Target;
use cl_wire::receipt::v1::receipt_admin_service_client::ReceiptAdminServiceClient;
use cl_wire::receipt::v1::{
    EraseReceiptsRequest, Hold, HoldTarget, ListHoldsRequest, PlaceHoldRequest, ReleaseHoldRequest,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::requests::{append, append_of, get, members, operation_id, tag, with};
use crate::retention::{DAY_MS, all, erased, sweeping, until_erased, until_settled};
use crate::support::{AUDITOR, ENGINE, OPERATOR, START_MS, World, verified_entries};

type Operator = ReceiptAdminServiceClient<PeerChannel>;

fn operator(world: &World, store: &Serving, path: &str) -> Operator {
    ReceiptAdminServiceClient::new(store.channel(world.authority.credentials(path)))
}

fn place(number: u64, target: Target) -> PlaceHoldRequest {
    PlaceHoldRequest {
        tenant: "acme".to_owned(),
        target: Some(HoldTarget {
            target: Some(target),
        }),
        reason: "litigation.1".to_owned(),
        operation_id: operation_id(number),
    }
}

fn release(number: u64, hold_id: &str) -> ReleaseHoldRequest {
    ReleaseHoldRequest {
        tenant: "acme".to_owned(),
        hold_id: hold_id.to_owned(),
        reason: "litigation.over".to_owned(),
        operation_id: operation_id(number),
    }
}

fn erase(byte: u8) -> EraseReceiptsRequest {
    EraseReceiptsRequest {
        tenant: "acme".to_owned(),
        subject_tag: tag(byte),
        reason: "subject.request".to_owned(),
    }
}

async fn holds(operator: &mut Operator, tenant: &str) -> Vec<Hold> {
    let request = ListHoldsRequest {
        tenant: tenant.to_owned(),
    };
    operator
        .list_holds(request)
        .await
        .unwrap()
        .into_inner()
        .holds
}

/// Four receipts: two of subject 1, two of subject 2, the second of each about a bundle.
async fn filled(world: &World) -> (Serving, Vec<String>) {
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let mut references = Vec::new();
    for number in 1..=4_u64 {
        let bundle = (number % 2 == 0).then(|| format!("urn:cl:bundle:b{number}"));
        let members = with(members(number), json!({"bundle_ref": bundle}));
        let mut request = append_of(number, &members);
        request.routing.as_mut().unwrap().subject_tag = Some(tag(number.div_ceil(2) as u8));
        let answer = writer.append(request).await.unwrap().into_inner();
        references.push(answer.entry.unwrap().receipt_ref);
    }
    (store, references)
}

#[tokio::test]
async fn nothing_held_is_erased_until_it_is_released() {
    type Case = (fn(&[String]) -> Target, &'static [u64]);
    let cases: [Case; 4] = [
        (|_| Target::WholeTenant(true), &[]),
        (|_| Target::SubjectTag(tag(1)), &[3, 4]),
        (
            |_| Target::BundleRef("urn:cl:bundle:b4".to_owned()),
            &[1, 2, 3],
        ),
        (|all| Target::ReceiptRef(all[0].clone()), &[2, 3, 4]),
    ];
    for (target, goes) in cases {
        let world = sweeping();
        let (store, references) = filled(&world).await;
        let auditor = &mut world.client(store.addr, AUDITOR);
        let operator = &mut operator(&world, &store, OPERATOR);
        let hold = place(50, target(&references));
        let hold = operator.place_hold(hold).await.unwrap().into_inner();
        assert_eq!(hold.entry.unwrap().sequence, 5);
        // Neither an order nor time takes what is held.
        let mut told = (0, 0);
        for byte in [1, 2] {
            let answer = operator.erase_receipts(erase(byte)).await.unwrap();
            let answer = answer.into_inner();
            told = (told.0 + answer.erased, told.1 + answer.held);
        }
        let count = goes.len() as u64;
        assert_eq!(told, (count, 4 - count));
        world.clock.advance(4 * DAY_MS);
        until_settled(&world, START_MS + 4 * DAY_MS).await;
        assert_eq!(erased(&all(auditor).await.receipts), goes);
        let released = operator.release_hold(release(51, &hold.hold_id)).await;
        released.unwrap();
        let receipts = until_erased(auditor, 4).await;
        assert_eq!(erased(&receipts), [1, 2, 3, 4]);
        let entries = all(auditor).await.total_size;
        assert_eq!(verified_entries(auditor).await, entries);
    }
}

#[tokio::test]
async fn a_hold_is_placed_once_and_leaves_receipts() {
    let world = World::new();
    let (store, references) = filled(&world).await;
    let auditor = &mut world.client(store.addr, AUDITOR);
    let operator = &mut operator(&world, &store, OPERATOR);
    let request = place(50, Target::SubjectTag(tag(1)));
    let placed = operator.place_hold(request.clone()).await.unwrap();
    let placed = placed.into_inner();
    let again = operator.place_hold(request.clone()).await.unwrap();
    assert_eq!(again.into_inner(), placed);
    let other = PlaceHoldRequest {
        reason: "litigation.2".to_owned(),
        ..request
    };
    let conflict = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    assert_eq!(refusal(operator.place_hold(other).await), conflict);

    let found = holds(operator, "acme").await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].hold_id, placed.hold_id);
    assert_eq!(found[0].placed_by, spiffe_id(OPERATOR));
    assert_eq!(found[0].reason, "litigation.1");
    let target = found[0].target.clone().unwrap().target;
    assert_eq!(target, Some(Target::SubjectTag(tag(1))));
    assert!(holds(operator, "beta").await.is_empty());

    let request = release(51, &placed.hold_id);
    let released = operator.release_hold(request.clone()).await.unwrap();
    let again = operator.release_hold(request).await.unwrap();
    assert_eq!(again.into_inner(), released.into_inner());
    assert!(holds(operator, "acme").await.is_empty());
    let not_found = refused(Code::NotFound, "HOLD_NOT_FOUND");
    let answer = operator.release_hold(release(52, &placed.hold_id)).await;
    assert_eq!(refusal(answer), not_found);

    let receipts = all(auditor).await.receipts;
    assert_eq!(receipts.len(), references.len() + 2);
    for (recorded, operation, reason) in [
        (&receipts[4], "receipts.hold", "litigation.1"),
        (&receipts[5], "receipts.release", "litigation.over"),
    ] {
        let receipt: Value = serde_json::from_slice(&recorded.receipt).unwrap();
        assert_eq!(receipt["operation"], operation);
        assert_eq!(receipt["actor"], spiffe_id(OPERATOR));
        assert_eq!(receipt["metadata"]["hold_id"], placed.hold_id);
        assert_eq!(receipt["metadata"]["reason"], reason);
        let text = String::from_utf8(recorded.receipt.clone()).unwrap();
        assert!(!text.contains(&tag(1)), "the tag is private");
        assert_eq!(recorded.routing.as_ref().unwrap().subject_tag, None);
    }
    assert_eq!(verified_entries(auditor).await, 6);
}

#[tokio::test]
async fn holds_are_refused_as_they_should_be() {
    let world = World::new();
    let (store, references) = filled(&world).await;
    let placing = &mut operator(&world, &store, OPERATOR);
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    let receipt = |reference: &str| Target::ReceiptRef(reference.to_owned());
    for target in [
        Target::WholeTenant(false),
        Target::SubjectTag("x".to_owned()),
        Target::SubjectTag(String::new()),
        Target::BundleRef("urn:cl:receipt:x".to_owned()),
        receipt("urn:cl:bundle:x"),
    ] {
        let answer = placing.place_hold(place(50, target)).await;
        assert_eq!(refusal(answer), invalid);
    }
    let good = place(50, receipt(&references[0]));
    let changed = |change: fn(&mut PlaceHoldRequest)| {
        let mut request = good.clone();
        change(&mut request);
        request
    };
    for request in [
        changed(|it| it.tenant.clear()),
        changed(|it| it.target = None),
        changed(|it| it.target = Some(HoldTarget::default())),
        changed(|it| it.reason = "Miller".to_owned()),
        changed(|it| it.operation_id.clear()),
        changed(|it| it.operation_id = format!("urn:cl:operation:{}", "0".repeat(64))),
    ] {
        assert_eq!(refusal(placing.place_hold(request).await), invalid);
    }
    let unknown = placing.release_hold(release(50, "urn:cl:hold:x")).await;
    assert_eq!(refusal(unknown), invalid);
    let missing = place(50, receipt("urn:cl:receipt:missing"));
    let missing = placing.place_hold(missing).await;
    let not_found = refused(Code::NotFound, "RECEIPT_NOT_FOUND");
    assert_eq!(refusal(missing), not_found);
    let foreign = PlaceHoldRequest {
        tenant: "beta".to_owned(),
        ..good.clone()
    };
    assert_eq!(refusal(placing.place_hold(foreign).await), not_found);
    placing.erase_receipts(erase(1)).await.unwrap();
    let gone = refused(Code::NotFound, "RECEIPT_ERASED");
    assert_eq!(refusal(placing.place_hold(good.clone()).await), gone);
    for path in [ENGINE, AUDITOR, "vault/cl-vault", "owner/one"] {
        let stranger = &mut operator(&world, &store, path);
        let denied = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
        assert_eq!(refusal(stranger.place_hold(good.clone()).await), denied);
        let answer = stranger.release_hold(release(50, "urn:cl:hold:x")).await;
        assert_eq!(refusal(answer), denied);
        let answer = stranger.list_holds(ListHoldsRequest::default()).await;
        assert_eq!(refusal(answer), denied);
    }
    let auditor = &mut world.client(store.addr, AUDITOR);
    let kept = auditor.get_receipt(get("acme", &references[2])).await;
    assert!(kept.is_ok());
}

#[tokio::test]
async fn a_tenant_has_a_bounded_number_of_holds() {
    let world = World::new();
    let store = world.start().await;
    let operator = &mut operator(&world, &store, OPERATOR);
    world
        .client(store.addr, ENGINE)
        .append(append(1))
        .await
        .unwrap();
    for number in 0..256 {
        let request = place(1000 + number, Target::WholeTenant(true));
        operator.place_hold(request).await.unwrap();
    }
    let one_more = operator
        .place_hold(place(2000, Target::WholeTenant(true)))
        .await;
    let refused = refused(Code::FailedPrecondition, "TOO_MANY_HOLDS");
    assert_eq!(refusal(one_more), refused);
    assert_eq!(holds(operator, "acme").await.len(), 256);
}
