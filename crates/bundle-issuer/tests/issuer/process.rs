//! The binary: it starts from its files, ends when told, refuses a shared key, and is killed at every
//! step without losing or doubling anything.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::{Clock, SystemClock};
use cl_testbed::{Authority, Home, Program, TURNS, channel, eventually, refusal, refused};
use cl_wire::bundle::v1::bundle_service_client::BundleServiceClient;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use serde_json::json;
use tonic::Code;

use crate::exchange::{Exchange, decision_key, grant_of, trust_json};
use crate::support::{Calls, ISSUER, Peers, issue_message, items};

/// A home folder with everything that the issuer needs.
fn home(authority: &Authority) -> Home {
    let home = Home::new(authority, ISSUER);
    for name in ["bundle.pem", "notes.pem"] {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        home.write_key(name, document.as_ref());
    }
    home.write_key("cl-bundle-issuer.kek", &[3; 32]);
    home.write("trust.json", trust_json());
    home
}

fn start(home: &Home, proxy: u16, receipts: u16) -> Program {
    let settings = [
        &format!("--semantic-proxy-addr=localhost:{proxy}"),
        &format!("--receipt-store-addr=localhost:{receipts}"),
        "--issue-lease-seconds=1",
    ];
    Program::start(
        env!("CARGO_BIN_EXE_cl-bundle-issuer"),
        home.path(),
        &settings,
    )
}

#[tokio::test]
async fn starts_from_its_files_and_ends_when_told() {
    let home = home(&Authority::new());
    let mut process = start(&home, 1, 1);
    process.ready().await;
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("ready"), "{log}");
    assert!(home.join("data/cl-bundle-issuer").is_dir());
}

#[tokio::test]
async fn refuses_to_start_with_a_shared_key() {
    let home = home(&Authority::new());
    let keys = home.join("keys");
    fs::copy(keys.join("bundle.pem"), keys.join("notes.pem")).unwrap();
    let (code, log) = start(&home, 1, 1).ended().await;
    assert_eq!(code, Some(1));
    assert!(log.contains("hold the same key"), "{log}");
    assert!(!home.join("data").exists());
}

/// An exchange of the system's time, since a real process has no other.
fn exchange() -> (Exchange, cl_wire::policy::v1::Grant) {
    let mut exchange = Exchange::new("r1");
    let time = |seconds: u64| {
        let now = cl_model::time::UnixTime::from_milliseconds(SystemClock.now_unix_ms());
        now.plus_seconds(seconds).to_string()
    };
    exchange.decided_at_ms = SystemClock.now_unix_ms();
    exchange.request["created_at"] = json!(time(0));
    exchange.request["expires_at"] = json!(time(280));
    let mut statement = exchange.statement();
    statement["not_before"] = json!(time(0));
    statement["expires_at"] = json!(time(270));
    let plan = exchange.plan(&statement);
    let grant = grant_of(&statement, &plan, &decision_key());
    (exchange, grant)
}

#[tokio::test]
async fn killed_at_every_step_it_finishes_with_one_bundle_and_one_delivery() {
    let peers = Peers::new(Arc::new(SystemClock)).await;
    let home = home(&peers.authority);
    let (proxy, receipts) = (
        peers.proxy_server.addr.port(),
        peers.receipt_server.addr.port(),
    );
    let run = async || {
        let mut process = start(&home, proxy, receipts);
        process.ready().await;
        process
    };
    let calls = |process: &Program| {
        let channel = |path| {
            let credentials = peers.authority.credentials(path);
            channel(process.addr(), credentials, ISSUER)
        };
        Calls {
            engine: BundleServiceClient::new(channel("exchange/cl-policy-engine")),
            gateway: BundleServiceClient::new(channel("edge/cl-gateway")),
        }
    };
    let (exchange, grant) = exchange();
    peers.proxy.set_items(items(&exchange));
    let message = issue_message(&exchange, grant);

    // While claims are projected: the attempt's time runs out.
    let process = run().await;
    let held = peers.proxy.gate.acquire_many(TURNS).await.unwrap();
    let client = calls(&process);
    let call = tokio::spawn({
        let message = message.clone();
        async move { client.issue_with(message).await }
    });
    eventually("the projection", || peers.proxy.calls() == 1).await;
    process.kill().await;
    assert!(call.await.unwrap().is_err());
    drop(held);

    // While the issue receipt is written.
    let process = run().await;
    let held = peers.receipts.gate.acquire_many(TURNS).await.unwrap();
    let client = calls(&process);
    let call = tokio::spawn({
        let message = message.clone();
        async move {
            loop {
                match client.issue_with(message.clone()).await {
                    Err(status) if status.code() == Code::Aborted => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    result => return result,
                }
            }
        }
    });
    eventually("the issue receipt", || peers.receipts.appends() >= 1).await;
    assert_eq!(peers.proxy.calls(), 2);
    process.kill().await;
    assert!(call.await.unwrap().is_err());
    drop(held);

    // While the delivery receipt is written.
    let process = run().await;
    let client = calls(&process);
    let bundle_ref = client.issue_with(message.clone()).await.unwrap().bundle_ref;
    assert_eq!(peers.proxy.calls(), 2);
    let before = peers.receipts.appends();
    let held = peers.receipts.gate.acquire_many(TURNS).await.unwrap();
    let redemption = tokio::spawn({
        let (client, bundle_ref) = (client.clone(), bundle_ref.clone());
        async move { client.redeem(&bundle_ref, Some("k"), 2).await }
    });
    eventually("the delivery receipt", || peers.receipts.appends() > before).await;
    process.kill().await;
    assert!(redemption.await.unwrap().is_err());
    drop(held);

    // After the answer was lost.
    let process = run().await;
    let client = calls(&process);
    let delivery = client.redeem(&bundle_ref, Some("k"), 3).await.unwrap();
    assert!(delivery.repeated);
    let again = client.redeem(&bundle_ref, Some("k"), 4).await.unwrap();
    assert_eq!(again.envelope, delivery.envelope);
    let replay = refused(Code::FailedPrecondition, "BUNDLE_REPLAY");
    assert_eq!(refusal(client.redeem(&bundle_ref, None, 5).await), replay);
    process.kill().await;
    let process = run().await;
    let client = calls(&process);
    assert_eq!(
        refusal(client.redeem(&bundle_ref, Some("x"), 6).await),
        replay
    );
    assert_eq!(
        client.issue_with(message).await.unwrap().bundle_ref,
        bundle_ref
    );
    process.kill().await;
    assert_eq!(peers.receipts.of("bundle.issue").len(), 1);
    assert_eq!(peers.receipts.of("bundle.deliver").len(), 1);
}
