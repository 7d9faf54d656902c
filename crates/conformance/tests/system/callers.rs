//! Who may call what: every rpc of every process, with every identity of a home.

use std::sync::Arc;

use cl_host::tls::Credentials;
use cl_wire::FILE_DESCRIPTOR_SET;
use cl_wire::status::reason;
use http::uri::PathAndQuery;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::client::Grpc;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::deployment::{CONSOLE, Deployment, GATEWAY, POLICY_ENGINE, RECEIPT_STORE};

/// The owners of certificates in a home.
const IDENTITIES: [&str; 7] = [
    RECEIPT_STORE,
    POLICY_ENGINE,
    GATEWAY,
    CONSOLE,
    "operator",
    "auditor",
    "client",
];

/// Where each package is served, and who may call its rpcs.
const SERVED: [(&str, &str, &[&str]); 51] = [
    (
        "policy.v1.PolicyService/SubmitRequest",
        POLICY_ENGINE,
        &[GATEWAY],
    ),
    (
        "policy.v1.PolicyService/GetRequest",
        POLICY_ENGINE,
        &[GATEWAY],
    ),
    (
        "policy.v1.PolicyService/WatchRequest",
        POLICY_ENGINE,
        &[GATEWAY],
    ),
    (
        "policy.v1.ApproverAdminService/OpenEnrolment",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.ApproverAdminService/ListCredentials",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.ApproverAdminService/ConfirmCredential",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.ApproverAdminService/RevokeCredential",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.ApproverAdminService/GetApproval",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.ApprovalService/BeginSignIn",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/FinishSignIn",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/EndSession",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/BeginEnrolment",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/FinishEnrolment",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/ListPendingApprovals",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/GetPendingApproval",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/BeginAnswer",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/FinishAnswer",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/ListDecisions",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/GetDecision",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/ExplainDecision",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/RevokeGrant",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.ApprovalService/ListSubjects",
        POLICY_ENGINE,
        &[CONSOLE],
    ),
    (
        "policy.v1.PolicyAdminService/PutSnapshot",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/GetSnapshot",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/ListSnapshots",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/ActivateSnapshot",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/ReplayDecision",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/ListRecordedDecisions",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/ExplainDecision",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/SimulateSnapshot",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/SetShadow",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/ClearShadow",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/GetShadow",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/SetAnomalyState",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/ClearAnomalyState",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/ListAnomalyStates",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/SetDelegation",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/RevokeDelegation",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "policy.v1.PolicyAdminService/ListDelegations",
        POLICY_ENGINE,
        &["operator"],
    ),
    (
        "receipt.v1.ReceiptService/Preflight",
        RECEIPT_STORE,
        &[POLICY_ENGINE],
    ),
    (
        "receipt.v1.ReceiptService/Append",
        RECEIPT_STORE,
        &[POLICY_ENGINE],
    ),
    (
        "receipt.v1.ReceiptService/Begin",
        RECEIPT_STORE,
        &[POLICY_ENGINE],
    ),
    (
        "receipt.v1.ReceiptService/Complete",
        RECEIPT_STORE,
        &[POLICY_ENGINE],
    ),
    (
        "receipt.v1.ReceiptService/ListOpen",
        RECEIPT_STORE,
        &[POLICY_ENGINE],
    ),
    (
        "receipt.v1.ReceiptService/GetReceipt",
        RECEIPT_STORE,
        &[GATEWAY, CONSOLE, "auditor"],
    ),
    (
        "receipt.v1.ReceiptService/ListReceipts",
        RECEIPT_STORE,
        &[GATEWAY, CONSOLE, "auditor"],
    ),
    (
        "receipt.v1.ReceiptService/VerifyLog",
        RECEIPT_STORE,
        // For a reader that is no auditor there is no log.
        &[GATEWAY, CONSOLE, "auditor"],
    ),
    (
        "receipt.v1.ReceiptAdminService/PlaceHold",
        RECEIPT_STORE,
        &["operator"],
    ),
    (
        "receipt.v1.ReceiptAdminService/ReleaseHold",
        RECEIPT_STORE,
        &["operator"],
    ),
    (
        "receipt.v1.ReceiptAdminService/ListHolds",
        RECEIPT_STORE,
        &["operator"],
    ),
    (
        "receipt.v1.ReceiptAdminService/EraseReceipts",
        RECEIPT_STORE,
        &["operator"],
    ),
];

/// Calls an rpc with an empty message.
async fn call(
    deployment: &Deployment,
    process: &str,
    method: &str,
    credentials: Arc<Credentials>,
) -> Result<(), Status> {
    let mut client = Grpc::new(deployment.channel(process, credentials));
    client.ready().await.unwrap();
    let path: PathAndQuery = format!("/contextlayer.{method}").parse().unwrap();
    let codec = ProstCodec::<(), ()>::default();
    client
        .unary(Request::new(()), path, codec)
        .await
        .map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_callers_are_refused_on_every_rpc() {
    let deployment = Deployment::start().await;
    for (method, process, allowed) in SERVED {
        for identity in IDENTITIES {
            let credentials = deployment.credentials(identity);
            let answer = call(&deployment, process, method, credentials).await;
            let refused = answer.err().is_some_and(|status| {
                status.code() == Code::PermissionDenied
                    && reason(&status).as_deref() == Some("CALLER_NOT_ALLOWED")
            });
            assert_eq!(refused, !allowed.contains(&identity), "{method} {identity}");
        }
    }
    // Who asks for context has a client's certificate, whatever else it could be.
    for method in ["SubmitRequest", "GetRequest", "WatchRequest"] {
        let method = format!("exchange.v1.ExchangeService/{method}");
        for identity in IDENTITIES {
            let credentials = deployment.credentials(identity);
            let answer = call(&deployment, GATEWAY, &method, credentials).await;
            let refused = answer.unwrap_err().code() == Code::PermissionDenied;
            assert_eq!(refused, identity != "client", "{method} {identity}");
        }
    }
}

#[test]
fn the_table_has_every_rpc_of_the_processes() {
    let files = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let mut rpcs: Vec<String> = Vec::new();
    for file in &files.file {
        let package = file.package().trim_start_matches("contextlayer.");
        if !["policy.v1", "receipt.v1"].contains(&package) {
            continue;
        }
        for service in &file.service {
            let methods = service.method.iter();
            rpcs.extend(methods.map(|rpc| format!("{package}.{}/{}", service.name(), rpc.name())));
        }
    }
    let mut table: Vec<_> = SERVED
        .iter()
        .map(|(method, ..)| (*method).to_owned())
        .collect();
    rpcs.sort();
    table.sort();
    assert_eq!(rpcs, table);
}
