//! Each operation asks for its own scope, through both doors.

use cl_testbed::{spiffe_id, within};
use cl_wire::exchange::v1 as wire;
use cl_wire::status::reason;
use http::Method;
use serde_json::json;
use tonic::{Code, Request, Status};

use crate::client::{Answer, BUNDLES, Call, PROPOSALS, RECEIPTS};
use crate::documents::{ALIAS, canonical_bytes, proposal, receipt, request};
use crate::support::{NOW_S, World};
use crate::tokens::TokenIssuer;

const SCOPES: [&str; 5] = [
    "context.request",
    "context.redeem",
    "receipt.write",
    "receipt.read",
    "memory.propose",
];

/// Every operation, with its scope.
fn operations() -> Vec<(&'static str, Call)> {
    let versioned = |method, path: String| {
        Call::new(method, &path).header("context-layer-version", "0.2-draft")
    };
    vec![
        ("context.request", Call::submit("{}")),
        ("context.request", Call::read("urn:cl:request:x")),
        ("context.redeem", Call::redeem("urn:cl:bundle:x")),
        ("context.redeem", Call::check("urn:cl:bundle:x")),
        ("receipt.write", Call::record("urn:cl:bundle:x", "{}")),
        ("receipt.read", Call::receipt("urn:cl:receipt:x")),
        ("memory.propose", Call::propose("{}")),
        (
            "context.redeem",
            versioned(Method::HEAD, format!("{BUNDLES}/urn:cl:bundle:x/status")),
        ),
        (
            "receipt.read",
            versioned(Method::HEAD, format!("{RECEIPTS}/urn:cl:receipt:x")),
        ),
        (
            "memory.propose",
            versioned(Method::POST, PROPOSALS.to_owned()),
        ),
    ]
}

fn is_challenged(answer: &Answer) -> bool {
    answer.status == 403
}

#[tokio::test]
async fn a_token_is_good_for_the_operations_of_its_scopes_only() {
    let world = World::new().await;
    let gateway = world.start().await;
    let granted = SCOPES.map(str::to_owned).into_iter();
    let all_but = |left_out: &str| {
        let others = SCOPES.iter().filter(|scope| **scope != left_out);
        others.copied().collect::<Vec<_>>().join(" ")
    };
    let granted = granted.chain(SCOPES.map(all_but)).chain([
        String::new(),
        "openid".to_owned(),
        "context.redeem.all receipt".to_owned(),
        "Context.Redeem,receipt.write".to_owned(),
    ]);
    for granted in granted {
        let mut claims = TokenIssuer::claims(NOW_S);
        claims["scope"] = json!(granted);
        let token = world.issuer.token_with(&claims);
        for (needed, call) in operations() {
            let answer = call.bearer(&token).by(&gateway.client).await;
            let is_granted = granted.split(' ').any(|scope| scope == needed);
            assert_eq!(is_challenged(&answer), !is_granted, "{granted}: {needed}");
            if is_granted {
                continue;
            }
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
            assert_eq!(answer.header("www-authenticate"), Some(&*challenge));
        }
    }
}

#[tokio::test]
async fn a_client_certificate_has_all_scopes() {
    let world = World::new().await;
    let gateway = world.start().await;
    let client = world.client_as(&gateway, &spiffe_id("client/acme/robot"));
    for (needed, call) in operations() {
        let answer = call.by(&client).await;
        assert!(!is_challenged(&answer), "{needed}");
    }
}

#[tokio::test]
async fn both_doors_ask_for_the_same_scopes() {
    let world = World::new().await;
    let gateway = world.start().await;
    let credentials = world.authority.credentials("client/acme/robot");
    let mut exchange = gateway.exchange(credentials);
    let bundle = || "urn:cl:bundle:x".to_owned();
    for granted in SCOPES {
        let mut claims = TokenIssuer::claims(NOW_S);
        claims["scope"] = json!(granted);
        let token = world.issuer.token_with(&claims);
        let check = |needed: &str, refused: Option<Status>| {
            let is_refused = refused.is_some_and(|status| {
                status.code() == Code::PermissionDenied
                    && reason(&status).as_deref() == Some("CALLER_NOT_ALLOWED")
            });
            assert_eq!(is_refused, granted != needed, "{granted}: {needed}");
        };
        let request = wire::SubmitRequestRequest {
            wait_seconds: 0,
            request: canonical_bytes(&request("scope")),
            idempotency_key: None,
        };
        let call = exchange.submit_request(with_token(&token, request));
        check("context.request", within("a call", call).await.err());
        let message = wire::GetRequestRequest {
            wait_seconds: 0,
            request_ref: "urn:cl:request:x".to_owned(),
        };
        let call = exchange.get_request(with_token(&token, message));
        check("context.request", within("a call", call).await.err());
        let message = wire::RedeemBundleRequest {
            bundle_ref: bundle(),
            idempotency_key: None,
        };
        let call = exchange.redeem_bundle(with_token(&token, message));
        check("context.redeem", within("a call", call).await.err());
        let message = wire::CheckBundleRequest {
            bundle_ref: bundle(),
        };
        let call = exchange.check_bundle(with_token(&token, message));
        check("context.redeem", within("a call", call).await.err());
        let message = wire::SubmitReceiptRequest {
            bundle_ref: bundle(),
            receipt: canonical_bytes(&receipt(&bundle(), "bundle.consume", "urn:a", "Opened.")),
        };
        let call = exchange.submit_receipt(with_token(&token, message));
        check("receipt.write", within("a call", call).await.err());
        let message = wire::GetReceiptRequest {
            receipt_ref: "urn:cl:receipt:x".to_owned(),
        };
        let call = exchange.get_receipt(with_token(&token, message));
        check("receipt.read", within("a call", call).await.err());
        let message = wire::SubmitProposalRequest {
            proposal: canonical_bytes(&proposal(ALIAS, "urn:a", "Because.")),
        };
        let call = exchange.submit_proposal(with_token(&token, message));
        check("memory.propose", within("a call", call).await.err());
    }
}

fn with_token<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}
