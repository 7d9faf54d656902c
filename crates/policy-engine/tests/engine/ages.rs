//! How old the policies in force are, for metrics and probes.

use cl_testbed::{eventually, within};
use serde_json::json;

use crate::documents::{request, snapshot};
use crate::support::{World, decision};

#[tokio::test]
async fn ages_of_policies_are_measured_and_shown_to_probes() {
    let world = World::new().await;
    let running = world.start().await;
    let probe = || running.serving.ready_line();
    assert_eq!(probe().await, "ok\npolicy snapshots: 0 active, 0 expired\n");
    let mut ending = snapshot("v1");
    ending["expires_at"] = json!("2030-01-01T12:05:00Z");
    running.activate_new(&ending, None).await;
    let metric = |name: &str| {
        let text = running.telemetry.prometheus_text().unwrap();
        let line = text.lines().find(|line| line.starts_with(name))?;
        let value = line.rsplit_once(' ')?.1;
        value.parse::<u64>().ok()
    };
    eventually("the age", || metric("policy_snapshots_active") == Some(1)).await;
    world.clock.advance(60_000);
    assert_eq!(metric("policy_snapshot_age_seconds"), Some(60));
    assert_eq!(metric("policy_snapshot_expires_in_seconds"), Some(240));
    assert_eq!(metric("policy_snapshots_expired"), Some(0));
    assert_eq!(
        probe().await,
        "ok\npolicy snapshots: 1 active, 0 expired, oldest active for 60 s, next ends in 240 s\n"
    );
    world.clock.advance(240_000);
    assert_eq!(metric("policy_snapshots_expired"), Some(1));
    let denied = running.ask(&request("r1"), 1).await.unwrap();
    let reasons = json!(["POLICY_SNAPSHOT_EXPIRED"]);
    assert_eq!(decision(&denied)["reason_codes"], reasons);
    // One that has ended is no reason to turn everybody away, and a new process knows of it too.
    running.kill().await;
    let running = world.start().await;
    within("the age", async {
        while !running.serving.ready_line().await.contains("1 expired") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(running.serving.ready_line().await.starts_with("ok\n"));
}
