//! From an authenticated request to a durable decision.

use cl_model::canonical;
use cl_wire::exchange::v1 as wire;
use cl_wire::exchange::v1::exchange_service_client::ExchangeServiceClient;
use cl_wire::status::reason;
use serde_json::Value;
use tonic::{Code, Status};

use crate::deployment::{Deployment, RECEIPT_STORE};

pub(crate) type Exchange = ExchangeServiceClient<cl_host::client::PeerChannel>;

pub(crate) async fn submit(exchange: &Exchange, request: &Value) -> Result<Vec<u8>, Status> {
    let message = wire::SubmitRequestRequest {
        request: canonical::to_text(request).into_bytes(),
        idempotency_key: None,
        wait_seconds: 0,
    };
    let answer = exchange.clone().submit_request(message).await?;
    Ok(answer.into_inner().status.unwrap().decision)
}

pub(crate) async fn read(exchange: &Exchange, request_ref: &str) -> Result<Vec<u8>, Status> {
    let message = wire::GetRequestRequest {
        request_ref: request_ref.to_owned(),
        wait_seconds: 0,
    };
    let answer = exchange.clone().get_request(message).await?;
    Ok(answer.into_inner().status.unwrap().decision)
}

/// The decisions that receipts are about, in the order of the log.
pub(crate) fn decided(deployment: &Deployment) -> Vec<String> {
    let receipts = deployment.receipts();
    receipts
        .iter()
        .filter(|receipt| receipt["receipt"]["operation"] == "policy.decide")
        .map(|receipt| {
            let decision = &receipt["receipt"]["decision_ref"];
            decision.as_str().unwrap().to_owned()
        })
        .collect()
}

pub(crate) fn id_of(decision: &[u8]) -> String {
    let decision: Value = serde_json::from_slice(decision).unwrap();
    decision["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_at_the_same_moment_is_one_decision() {
    let deployment = Deployment::start().await;
    let exchange = deployment.exchange();
    let request = deployment.request("parallel");
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let (exchange, request) = (exchange.clone(), request.clone());
            tokio::spawn(async move {
                loop {
                    match submit(&exchange, &request).await {
                        Ok(decision) => return decision,
                        // Another call decides: the answer follows.
                        Err(status) if status.code() == Code::Aborted => {
                            assert_eq!(reason(&status).as_deref(), Some("REQUEST_IN_PROGRESS"));
                            tokio::task::yield_now().await;
                        }
                        Err(status) => panic!("{status:?}"),
                    }
                }
            })
        })
        .collect();
    let mut decisions = Vec::new();
    for call in calls {
        decisions.push(call.await.unwrap());
    }
    decisions.dedup();
    assert_eq!(decisions.len(), 1, "all have the same bytes");
    assert_eq!(decided(&deployment), [id_of(&decisions[0])]);
    let verified = deployment.clctl(&["receipts", "verify"]);
    assert_eq!(verified["verified"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_receipt_store_nothing_is_decided_or_stored() {
    let mut deployment = Deployment::start().await;
    let exchange = deployment.exchange();
    deployment.kill(RECEIPT_STORE);

    let request = deployment.request("unavailable");
    let refused = submit(&exchange, &request).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    let told = reason(&refused);
    assert_eq!(told.as_deref(), Some("RECEIPT_STORE_UNAVAILABLE"));
    let reference = request["id"].as_str().unwrap();
    let missing = read(&exchange, reference).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "nothing was stored");
    // The HTTP door says the same; the command line tells it from a refusal.
    let file = deployment.home().join("examples/request.json");
    let (code, error) = deployment.try_clctl(&["request", &file.display().to_string()]);
    assert_eq!(code, Some(3));
    assert_eq!(error["error"]["code"], "RECEIPT_STORE_UNAVAILABLE");

    deployment.run(RECEIPT_STORE).await;
    let decision = crate::deployment::until("a decision", async || {
        submit(&exchange, &request).await.ok()
    });
    let decision = decision.await;
    assert_eq!(read(&exchange, reference).await.unwrap(), decision);
    assert_eq!(decided(&deployment), [id_of(&decision)]);
}
