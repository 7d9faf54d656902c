//! The policy engine comes and goes.

use crate::client::Call;
use crate::documents::request;
use crate::support::{World, within};

#[tokio::test]
async fn an_engine_that_is_down_is_503_until_it_is_back() {
    let mut world = World::new().await;
    let gateway = world.start().await;
    assert_eq!(gateway.submit(&request("before")).await.status, 201);
    world.stop_engine().await;
    let down = (503, "SERVICE_UNAVAILABLE".to_owned());
    let answer = gateway.submit_once(&request("during"), "key-3").await;
    assert_eq!(answer.refusal(), down);
    let read = gateway.call(Call::read("urn:cl:request:before")).await;
    assert_eq!(read.refusal(), down);

    world.start_engine().await;
    within("recovery", async {
        while gateway
            .submit_once(&request("during"), "key-3")
            .await
            .status
            != 201
        {}
    })
    .await;
    assert_eq!(world.engine.executions(), 2);
}
