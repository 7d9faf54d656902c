//! A snapshot that is evaluated beside the active one.

use cl_testbed::{refusal, refused, within};
use cl_wire::policy::v1 as wire;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::cedar::in_cedar;
use crate::documents::{NOW_MS, TENANT, gated, operation, request, snapshot};
use crate::people::{OWNER, grant_all};
use crate::support::{Running, World, decision};

async fn set(running: &Running, digest: &str, number: u32) -> Result<wire::Shadow, Status> {
    let message = wire::SetShadowRequest {
        tenant: TENANT.to_owned(),
        digest: digest.to_owned(),
        operation_id: operation(number),
    };
    let answer = running.admin.clone().set_shadow(message).await?;
    Ok(answer.into_inner().shadow.unwrap())
}

async fn clear(running: &Running, number: u32) -> Result<(), Status> {
    let message = wire::ClearShadowRequest {
        tenant: TENANT.to_owned(),
        operation_id: operation(number),
    };
    running.admin.clone().clear_shadow(message).await?;
    Ok(())
}

async fn shadow(running: &Running) -> Option<wire::Shadow> {
    let message = wire::GetShadowRequest {
        tenant: TENANT.to_owned(),
    };
    let answer = running.admin.clone().get_shadow(message).await;
    answer.unwrap().into_inner().shadow
}

/// The shadow once it has looked at so many decisions.
async fn after(running: &Running, decisions: u64) -> wire::Shadow {
    within("the shadow", async {
        loop {
            let shadow = shadow(running).await.unwrap();
            if shadow.equal + shadow.different >= decisions {
                return shadow;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

/// Allows timelines only.
fn stricter(mut document: Value) -> Value {
    match document.get("policy") {
        Some(_) => document["policy"]["allowed_selectors"] = json!(["timeline"]),
        None => {
            document["cedar"]["policies"]["no-dates"] = json!(
                "forbid (principal, action == Action::\"disclose\",
                         resource == Predicate::\"delivery_date\");"
            );
        }
    }
    document
}

#[tokio::test]
async fn what_a_shadow_decides_otherwise_is_kept_and_changes_no_answer() {
    for candidate in [snapshot("v2"), in_cedar("v2")] {
        let world = World::new().await;
        let running = world.ready().await;
        let digest = running
            .put(TENANT, &stricter(candidate), 0x10)
            .await
            .unwrap();
        assert!(shadow(&running).await.is_none());
        let before = decision(&running.ask(&request("r0"), 1).await.unwrap());
        let set = set(&running, &digest, 0x11).await.unwrap();
        assert_eq!(
            (set.digest.as_str(), set.version.as_str()),
            (&*digest, "v2")
        );
        assert_eq!(set.set_at.unwrap().seconds, NOW_MS / 1000);

        let allowed = decision(&running.ask(&request("r1"), 2).await.unwrap());
        assert_eq!(allowed["decision"], "allow");
        assert_eq!(allowed["policy_snapshot"], before["policy_snapshot"]);
        let mut timeline = request("r2");
        timeline["selectors"] = json!([{"predicate": "timeline"}]);
        let same = running.ask(&timeline, 3).await.unwrap();
        let seen = after(&running, 2).await;
        let is_cedar = seen.differences.len() == 2;
        assert_eq!(seen.equal + seen.different, 2);
        let [.., first] = &seen.differences[..] else {
            panic!("a difference");
        };
        assert_eq!(first.decision_ref, allowed["id"].as_str().unwrap());
        assert_eq!(first.recorded_decision, "allow");
        assert_eq!(first.other_decision, "deny");
        assert_eq!(first.lost_selectors, ["delivery_date"]);
        if is_cedar {
            // It cuts timelines too.
            assert_eq!(seen.differences[0].decision_ref, decision(&same)["id"]);
        }
        let metrics = running.telemetry.prometheus_text().unwrap();
        assert!(
            metrics.contains("policy_shadow_evaluations_total"),
            "{metrics}"
        );
        clear(&running, 0x12).await.unwrap();
        assert!(shadow(&running).await.is_none());
        running.ask(&request("r3"), 4).await.unwrap();
        assert_eq!(world.receipts.of("policy.set_shadow").len(), 1);
        let receipt = &world.receipts.of("policy.set_shadow")[0].receipt;
        assert_eq!(receipt["policy_snapshot"], digest);
        assert_eq!(world.receipts.of("policy.clear_shadow").len(), 1);
    }
}

#[tokio::test]
async fn a_persons_answer_is_looked_at_as_if_given_under_the_shadow() {
    let world = World::new().await;
    let running = world.ready().await;
    let mut open = snapshot("open");
    open["policy"]["approval_required_selectors"] = json!([]);
    open["policy"]["allowed_selectors"] = json!(["delivery_date", "timeline", "stakeholder"]);
    let digest = running.put(TENANT, &open, 0x10).await.unwrap();
    set(&running, &digest, 0x11).await.unwrap();
    let owner = running.person(OWNER, 0x100).await;
    running.ask(&gated("r1"), 1).await.unwrap();
    let first = after(&running, 1).await;
    assert_eq!(first.differences[0].recorded_decision, "needs_approval");
    assert_eq!(first.differences[0].other_decision, "allow");
    let item = running.only_item(&owner.session).await;
    let answer = grant_all(&owner.session, &item);
    let status = running.answer(&owner, answer, 2).await.unwrap();
    let id = decision(&status)["id"].clone();
    let second = after(&running, 2).await;
    let is_looked_at = second.equal == 1 || second.differences[0].decision_ref == id;
    assert!(is_looked_at, "{second:?}");
}

#[tokio::test]
async fn a_shadow_outlives_the_process_and_another_one_starts_anew() {
    let world = World::new().await;
    let running = world.ready().await;
    let digest = running
        .put(TENANT, &stricter(snapshot("v2")), 0x10)
        .await
        .unwrap();
    set(&running, &digest, 0x11).await.unwrap();
    running.ask(&request("r1"), 1).await.unwrap();
    assert_eq!(after(&running, 1).await.different, 1);
    running.kill().await;
    let running = world.start().await;
    let kept = shadow(&running).await.unwrap();
    assert_eq!((kept.digest.as_str(), kept.different), (&*digest, 0));
    running.ask(&request("r2"), 2).await.unwrap();
    assert_eq!(after(&running, 1).await.different, 1);
    let same = running.put(TENANT, &snapshot("v3"), 0x12).await.unwrap();
    let other = set(&running, &same, 0x13).await.unwrap();
    assert_eq!((other.equal, other.different), (0, 0));
    running.ask(&request("r3"), 3).await.unwrap();
    let seen = after(&running, 1).await;
    assert_eq!((seen.equal, seen.different), (1, 0));
    // Setting it again is no other shadow.
    set(&running, &same, 0x14).await.unwrap();
    set(&running, &same, 0x13).await.unwrap();
    assert_eq!(shadow(&running).await.unwrap().equal, 1);
    assert_eq!(world.receipts.of("policy.set_shadow").len(), 2);
}

#[tokio::test]
async fn only_the_newest_differences_are_kept() {
    let world = World::new().await;
    let running = world.ready().await;
    let digest = running
        .put(TENANT, &stricter(snapshot("v2")), 0x10)
        .await
        .unwrap();
    set(&running, &digest, 0x11).await.unwrap();
    let mut last = Value::Null;
    for number in 0..130 {
        let asked = request(&format!("r{number}"));
        let status = running.ask(&asked, 0x1000 + number).await.unwrap();
        last = decision(&status)["id"].clone();
        // Nothing is passed over while the shadow keeps up.
        after(&running, u64::from(number) + 1).await;
    }
    let seen = shadow(&running).await.unwrap();
    assert_eq!(seen.different, 130);
    assert_eq!(seen.differences.len(), 128);
    assert_eq!(seen.differences[0].decision_ref, last);
}

#[tokio::test]
async fn a_shadow_that_fails_fails_nothing_else() {
    let world = World::new().await;
    let running = world.start().await;
    let active = running.activate_new(&in_cedar("v1"), None).await;
    let mut failing = in_cedar("v2");
    failing["cedar"]["policies"]["overflow"] = json!(
        "@reason(\"LONG\") forbid (principal, action, resource)
         when { context.retention_seconds * 9223372036854775807 > 0 };"
    );
    let digest = running.put(TENANT, &failing, 0x10).await.unwrap();
    set(&running, &digest, 0x11).await.unwrap();
    let allowed = decision(&running.ask(&request("r1"), 1).await.unwrap());
    assert_eq!(allowed["decision"], "allow");
    assert_eq!(allowed["policy_snapshot"]["digest"], active);
    let seen = after(&running, 1).await;
    assert_eq!(seen.differences[0].other_decision, "deny");
}

#[tokio::test]
async fn refuses_what_is_not_stored_or_has_ended_and_what_leaves_no_receipt() {
    let world = World::new().await;
    let running = world.ready().await;
    let unknown = format!("sha256:{}", "0".repeat(64));
    let missing = refused(Code::NotFound, "SNAPSHOT_NOT_FOUND");
    assert_eq!(refusal(set(&running, &unknown, 0x10).await), missing);
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(refusal(set(&running, "sha256:0", 0x10).await), invalid);
    let mut ending = snapshot("ending");
    ending["expires_at"] = json!("2030-01-01T12:00:01Z");
    let ending = running.put(TENANT, &ending, 0x11).await.unwrap();
    world.clock.advance(1_000);
    let expired = refused(Code::FailedPrecondition, "SNAPSHOT_EXPIRED");
    assert_eq!(refusal(set(&running, &ending, 0x12).await), expired);
    let digest = running.put(TENANT, &snapshot("v2"), 0x13).await.unwrap();
    world.receipts.set_down(true);
    let away = refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE");
    assert_eq!(refusal(set(&running, &digest, 0x14).await), away);
    assert!(shadow(&running).await.is_none());
    world.receipts.set_down(false);
    set(&running, &digest, 0x14).await.unwrap();
    world.receipts.set_down(true);
    assert_eq!(refusal(clear(&running, 0x15).await), away);
    assert!(shadow(&running).await.is_some());
    world.receipts.set_down(false);
    let other = running.put(TENANT, &snapshot("v3"), 0x16).await.unwrap();
    let conflict = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    assert_eq!(refusal(set(&running, &other, 0x14).await), conflict);
    clear(&running, 0x17).await.unwrap();
    clear(&running, 0x17).await.unwrap();
    clear(&running, 0x18).await.unwrap();
    assert_eq!(world.receipts.of("policy.clear_shadow").len(), 1);
}
