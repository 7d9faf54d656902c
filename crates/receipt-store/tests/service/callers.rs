//! Who may call which rpc.

use cl_testbed::{refusal, refused};
use cl_wire::receipt::v1::{
    AppendRequest, BeginRequest, CompleteRequest, GetReceiptRequest, ListOpenRequest,
    ListReceiptsRequest, PreflightRequest, VerifyLogRequest,
};
use tonic::{Code, Status};

use crate::support::{AUDITOR, Client, ENGINE, GATEWAY, ISSUER, OPERATOR, STORE, World};

const RPCS: [&str; 8] = [
    "Preflight",
    "Append",
    "Begin",
    "Complete",
    "ListOpen",
    "GetReceipt",
    "ListReceipts",
    "VerifyLog",
];

async fn call(client: &mut Client, rpc: &str) -> Result<(), Status> {
    match rpc {
        "Preflight" => client
            .preflight(PreflightRequest::default())
            .await
            .map(drop),
        "Append" => client.append(AppendRequest::default()).await.map(drop),
        "Begin" => client.begin(BeginRequest::default()).await.map(drop),
        "Complete" => client.complete(CompleteRequest::default()).await.map(drop),
        "ListOpen" => client.list_open(ListOpenRequest::default()).await.map(drop),
        "GetReceipt" => client
            .get_receipt(GetReceiptRequest::default())
            .await
            .map(drop),
        "ListReceipts" => client
            .list_receipts(ListReceiptsRequest::default())
            .await
            .map(drop),
        "VerifyLog" => client
            .verify_log(VerifyLogRequest::default())
            .await
            .map(drop),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn every_rpc_is_open_to_its_callers_only() {
    let world = World::new();
    let store = world.start().await;
    let write = ["Preflight", "Append", "Begin", "Complete", "ListOpen"].as_slice();
    let read = ["GetReceipt", "ListReceipts", "VerifyLog"].as_slice();
    let both = &RPCS;
    for (path, allowed) in [
        (ENGINE, write),
        // A writer that is a reader too.
        (ISSUER, both),
        (GATEWAY, read),
        ("edge/cl-console", &[]),
        (AUDITOR, read),
        ("owner/one", read),
        (OPERATOR, &[]),
        (STORE, &[]),
        ("vault/cl-vault", &[]),
        ("edge/cl-policy-engine", &[]),
        ("client/acme/app", &[]),
        ("owner/acme", &[]),
    ] {
        let mut client = world.client(store.addr, path);
        for rpc in RPCS {
            let answer = call(&mut client, rpc).await;
            let denied = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
            if allowed.contains(&rpc) {
                assert!(answer.is_ok() || refusal(answer) != denied, "{path} {rpc}");
            } else {
                assert_eq!(refusal(answer), denied, "{path} {rpc}");
            }
        }
    }
}
