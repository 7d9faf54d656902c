//! The services behind the gateway come and go.

use crate::client::Call;
use crate::documents::{
    ALIAS, DRAFT, PRINCIPAL, TENANT, canonical_bytes, proposal, receipt, request,
};
use crate::support::{ENGINE, ISSUER, Running, STORE, VAULT, World};
use cl_testbed::within;

fn down() -> (u16, String) {
    (503, "SERVICE_UNAVAILABLE".to_owned())
}

/// Repeats a call until it is answered with this status.
async fn recovers(gateway: &Running, status: u16, call: impl Fn() -> Call) {
    within("recovery", async {
        while gateway.call(call()).await.status.as_u16() != status {}
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_is_down_is_503_until_it_is_back() {
    let mut world = World::new().await;
    let gateway = world.start().await;
    assert_eq!(gateway.submit(&request("before")).await.status, 201);
    world.stop_service(ENGINE).await;
    let answer = gateway.submit_once(&request("during"), "key-3").await;
    assert_eq!(answer.refusal(), down());
    let read = gateway.call(Call::read("urn:cl:request:before")).await;
    assert_eq!(read.refusal(), down());

    world.restart_service(ENGINE).await;
    let text = request("during").to_string();
    recovers(&gateway, 201, || Call::submit(text.clone()).key("key-3")).await;
    assert_eq!(world.engine.executions(), 2);
}

#[tokio::test]
async fn services_for_recipients_are_503_until_they_are_back_and_each_alone() {
    let mut world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("outage");
    let kept = receipt(&bundle, DRAFT, PRINCIPAL, "It was drafted.");
    world.receipts.append(TENANT, &canonical_bytes(&kept));
    let id = kept["id"].as_str().unwrap();
    let idea = proposal(ALIAS, PRINCIPAL, "Because.").to_string();
    let report = kept.to_string();
    let redeem = || Call::redeem(&bundle).key("key-1");
    let read = || Call::receipt(id);
    let propose = || Call::propose(idea.clone()).key("key-2");

    world.stop_service(ISSUER).await;
    let record = || Call::record(&bundle, report.clone());
    for call in [redeem(), Call::check(&bundle), record()] {
        assert_eq!(gateway.call(call).await.refusal(), down());
    }
    assert_eq!(gateway.call(read()).await.status, 200);
    world.restart_service(ISSUER).await;
    recovers(&gateway, 200, redeem).await;
    assert_eq!(gateway.call(record()).await.status, 201);

    world.stop_service(STORE).await;
    assert_eq!(gateway.call(read()).await.refusal(), down());
    world.stop_service(VAULT).await;
    assert_eq!(gateway.call(propose()).await.refusal(), down());
    assert_eq!(gateway.call(Call::check(&bundle)).await.status, 200);
    world.restart_service(STORE).await;
    recovers(&gateway, 200, read).await;
    world.restart_service(VAULT).await;
    recovers(&gateway, 202, propose).await;
    assert_eq!(world.vault.len(), 1);
}
