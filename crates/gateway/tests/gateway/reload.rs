//! The key set changes under a running gateway.

use crate::client::Call;
use crate::support::{Running, World};
use cl_testbed::{logs, within};

async fn is_let_in(gateway: &Running) -> bool {
    let answer = gateway.call(Call::read("urn:cl:request:x")).await;
    answer.status == 404
}

async fn until(gateway: &Running, expected: bool) {
    within("the reload", async {
        while is_let_in(gateway).await != expected {}
    })
    .await;
}

#[tokio::test]
async fn a_new_key_set_counts_and_a_bad_one_does_not() {
    let world = World::new().await;
    let gateway = world.start().await;
    assert!(is_let_in(&gateway).await);
    world.write_keys(&world.issuer.strangers_jwks());
    until(&gateway, false).await;
    world.write_keys(&world.issuer.jwks());
    until(&gateway, true).await;

    std::fs::write(world.keys_path(), "{\"keys\":[]}").unwrap();
    within("the complaint", async {
        while !logs().contains("key set not reloaded") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(is_let_in(&gateway).await);
    gateway.end().await;
}
