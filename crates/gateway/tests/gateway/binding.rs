//! The HTTP binding (spec 10): statuses, headers, negotiation, and the codes behind them.

use cl_wire::policy::v1::RequestState;
use http::Method;
use serde_json::json;
use tonic::Code;

use crate::client::{Call, REQUESTS};
use crate::documents::{CLIENT, PRINCIPAL, TENANT, canonical_bytes, request};
use crate::engine::{later, stands};
use crate::support::{Options, World};

#[tokio::test]
async fn a_submission_is_created_and_read_back() {
    let world = World::new().await;
    let gateway = world.start().await;
    let document = request("created");
    let answer = gateway.submit(&document).await;
    assert_eq!(answer.status, 201);
    answer.check_common_headers();
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("context-layer-state"), Some("decided"));
    let location = answer.header("location").unwrap().to_owned();
    assert_eq!(location, format!("{REQUESTS}/urn:cl:request:created"));
    assert_eq!(answer.json()["type"], "policy_decision");
    assert_eq!(answer.body, canonical_bytes(&answer.json()));

    let read = gateway
        .call(Call::read("urn%3Acl%3Arequest%3Acreated"))
        .await;
    assert_eq!(read.status, 200);
    assert_eq!(read.body, answer.body);
    assert_eq!(read.header("location"), None);
    assert_eq!(read.header("retry-after"), None);

    let arrived = world.engine.submissions();
    let [submission] = arrived.as_slice() else {
        panic!("one submission");
    };
    assert_eq!(submission.request, canonical_bytes(&document));
    assert_eq!(submission.tenant, TENANT);
    let facts = submission.facts.as_ref().unwrap();
    assert_eq!(facts.principal, PRINCIPAL);
    assert_eq!(facts.client_instance, CLIENT);
    assert_eq!(facts.bound_key, None);
}

#[tokio::test]
async fn each_state_has_its_status_and_headers() {
    let world = World::new().await;
    let gateway = world.start().await;
    let mut pending = stands(RequestState::PendingApproval);
    pending.retry_after_seconds = Some(9);
    let mut issued = stands(RequestState::Issued);
    issued.bundle_ref = Some("urn:cl:bundle:b7".to_owned());
    let mut failed = stands(RequestState::Failed);
    failed.failure_code = Some("NO_CONTEXT_GRANTED".to_owned());
    for (tail, status, state, submitted, header, value) in [
        (
            "pending",
            pending,
            "pending_approval",
            202,
            "retry-after",
            "9",
        ),
        (
            "issued",
            issued,
            "issued",
            201,
            "context-layer-bundle",
            "urn:cl:bundle:b7",
        ),
        (
            "failed",
            failed,
            "failed",
            201,
            "context-layer-failure",
            "NO_CONTEXT_GRANTED",
        ),
        (
            "expired",
            stands(RequestState::Expired),
            "expired",
            201,
            "context-layer-state",
            "expired",
        ),
    ] {
        world.engine.decide_next(status);
        let answer = gateway.submit(&request(tail)).await;
        assert_eq!(answer.status, submitted, "{tail}");
        let read = gateway
            .call(Call::read(&format!("urn:cl:request:{tail}")))
            .await;
        assert_eq!(read.status, 200, "{tail}");
        for answer in [answer, read] {
            assert_eq!(answer.header("context-layer-state"), Some(state));
            assert_eq!(answer.header(header), Some(value), "{tail}");
        }
    }
}

#[tokio::test]
async fn what_does_not_fit_the_binding_is_refused_by_its_own_code() {
    let world = World::new().await;
    let gateway = world.start().await;
    let submit = || Call::submit(request("refused").to_string());
    let read = || Call::read("urn:cl:request:refused");
    let version = "context-layer-version";
    for (call, status, code) in [
        (submit().without(version), 400, "VERSION_REQUIRED"),
        (read().without(version), 400, "VERSION_REQUIRED"),
        (
            submit().without(version).header(version, "0.3"),
            400,
            "VERSION_UNSUPPORTED",
        ),
        (
            read().header(version, "0.2-draft"),
            400,
            "VERSION_UNSUPPORTED",
        ),
        (
            submit().without("content-type"),
            415,
            "MEDIA_TYPE_UNSUPPORTED",
        ),
        (
            submit()
                .without("content-type")
                .header("content-type", "application/json"),
            415,
            "MEDIA_TYPE_UNSUPPORTED",
        ),
        (
            submit().header("accept", "text/html"),
            406,
            "NOT_ACCEPTABLE",
        ),
        (
            read().header("accept", "application/json"),
            406,
            "NOT_ACCEPTABLE",
        ),
        (submit().body("{"), 400, "INVALID_JSON"),
        (submit().body(""), 400, "INVALID_JSON"),
        (submit().body(r#"{"a":1,"a":1}"#), 400, "DUPLICATE_MEMBER"),
        (submit().body(r#""\ud800""#), 400, "LONE_SURROGATE"),
        (
            submit().body("9007199254740993"),
            400,
            "INTEGER_OUT_OF_RANGE",
        ),
        (
            submit().body("[".repeat(100) + &"]".repeat(100)),
            400,
            "JSON_TOO_DEEP",
        ),
        (submit().body("[]"), 400, "INVALID_OBJECT"),
        (
            read().header("x-padding", &"x".repeat(17_000)),
            431,
            "HEADERS_TOO_LARGE",
        ),
        (Call::new(Method::GET, "/nothing"), 404, "NOT_FOUND"),
        (Call::new(Method::GET, "/"), 404, "NOT_FOUND"),
        (
            Call::new(Method::POST, "/context/v1/discovery"),
            404,
            "NOT_FOUND",
        ),
        (
            Call::new(Method::GET, &format!("{REQUESTS}/")),
            404,
            "NOT_FOUND",
        ),
        (
            Call::read("urn:cl:request:unknown"),
            404,
            "REQUEST_NOT_FOUND",
        ),
        (Call::read("urn:cl:bundle:b"), 404, "REQUEST_NOT_FOUND"),
        (Call::read("not-an-id"), 404, "REQUEST_NOT_FOUND"),
        (Call::read("urn:cl:request:%ff"), 404, "REQUEST_NOT_FOUND"),
        (
            Call::new(Method::GET, &format!("/{}", "x".repeat(5_000))),
            414,
            "URI_TOO_LONG",
        ),
        (
            Call::new(
                Method::GET,
                "/contextlayer.exchange.v1.ExchangeService/GetRequest",
            ),
            415,
            "MEDIA_TYPE_UNSUPPORTED",
        ),
        (read().header("grpc-timeout", "soon"), 400, "INVALID_FIELD"),
    ] {
        let answer = gateway.call(call).await;
        assert_eq!(answer.refusal(), (status, code.to_owned()));
    }
    assert_eq!(world.engine.submissions().len(), 0);
}

#[tokio::test]
async fn rules_of_the_protocol_are_told_from_its_schema() {
    let world = World::new().await;
    let gateway = world.start().await;
    let with = |member: &str, value| {
        let mut document = request("schema");
        document[member] = value;
        document
    };
    let receipts = json!({"level": "none", "required": true});
    for (document, status, code) in [
        (with("surprise", json!(1)), 400, "INVALID_REQUEST"),
        (
            with("spec_version", json!("context-layer/9")),
            400,
            "INVALID_REQUEST",
        ),
        (with("id", json!("urn:cl:bundle:x")), 400, "INVALID_REQUEST"),
        (with("task", json!({})), 400, "INVALID_REQUEST_TASK"),
        (with("selectors", json!(1)), 400, "INVALID_SELECTORS"),
        (
            with("selectors", json!([{"predicate": "a", "path": "b"}])),
            422,
            "UNSUPPORTED_SELECTOR_FIELD",
        ),
        (
            with("receipt_requirement", receipts),
            422,
            "INVALID_RECEIPT_REQUIREMENT",
        ),
    ] {
        let answer = gateway.submit(&document).await;
        assert_eq!(answer.refusal(), (status, code.to_owned()));
    }
}

#[tokio::test]
async fn the_engines_refusals_become_statuses() {
    let world = World::new().await;
    let gateway = world.start().await;
    for (code, reason, status, told) in [
        (
            Code::AlreadyExists,
            "REQUEST_ID_CONFLICT",
            409,
            "REQUEST_ID_CONFLICT",
        ),
        (
            Code::Aborted,
            "REQUEST_IN_PROGRESS",
            409,
            "REQUEST_IN_PROGRESS",
        ),
        (Code::ResourceExhausted, "RATE_LIMITED", 429, "RATE_LIMITED"),
        (
            Code::FailedPrecondition,
            "POLICY_NOT_ACTIVE",
            503,
            "POLICY_NOT_ACTIVE",
        ),
        (
            Code::Unavailable,
            "RECEIPT_STORE_UNAVAILABLE",
            503,
            "RECEIPT_STORE_UNAVAILABLE",
        ),
        (
            Code::Unavailable,
            "SERVICE_UNAVAILABLE",
            503,
            "SERVICE_UNAVAILABLE",
        ),
        (
            Code::DeadlineExceeded,
            "DEADLINE_EXCEEDED",
            503,
            "DEADLINE_EXCEEDED",
        ),
        (
            Code::InvalidArgument,
            "INVALID_REQUEST",
            400,
            "INVALID_REQUEST",
        ),
        (
            Code::InvalidArgument,
            "DOCUMENT_TOO_LARGE",
            413,
            "DOCUMENT_TOO_LARGE",
        ),
        (
            Code::NotFound,
            "REQUEST_NOT_FOUND",
            404,
            "REQUEST_NOT_FOUND",
        ),
        (Code::InvalidArgument, "INVALID_FIELD", 500, "INTERNAL"),
        (
            Code::PermissionDenied,
            "CALLER_NOT_ALLOWED",
            500,
            "INTERNAL",
        ),
        (Code::DataLoss, "STORE_CORRUPT", 500, "INTERNAL"),
        (Code::Internal, "INTERNAL", 500, "INTERNAL"),
        (Code::Unknown, "SECRET_OF_THE_ENGINE", 500, "INTERNAL"),
    ] {
        world.engine.refuse_next(later(code, reason, 4));
        let answer = gateway.submit(&request("engine")).await;
        assert_eq!(
            answer.refusal(),
            (status, told.to_owned()),
            "{code:?} {reason}"
        );
        let text = String::from_utf8_lossy(&answer.body);
        assert!(
            !text.contains("own words") && !text.contains("SECRET"),
            "{text}"
        );
        if matches!(told, "RATE_LIMITED" | "REQUEST_IN_PROGRESS") {
            assert_eq!(answer.header("retry-after"), Some("4"));
        }
    }
}

#[tokio::test]
async fn other_methods_are_told_which_are_allowed() {
    let world = World::new().await;
    let gateway = world.start().await;
    for (method, path, allowed) in [
        (Method::GET, REQUESTS, "POST"),
        (Method::PUT, REQUESTS, "POST"),
        (
            Method::DELETE,
            "/context/v1/requests/urn:cl:request:x",
            "GET, HEAD",
        ),
        (
            Method::POST,
            "/context/v1/requests/urn:cl:request:x",
            "GET, HEAD",
        ),
        (Method::POST, "/.well-known/context-layer", "GET, HEAD"),
        (Method::OPTIONS, REQUESTS, "POST"),
    ] {
        let answer = gateway.call(Call::new(method.clone(), path)).await;
        let expected = (405, "METHOD_NOT_ALLOWED".to_owned());
        assert_eq!(answer.refusal(), expected, "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
}

#[tokio::test]
async fn a_credential_in_the_address_is_refused_before_anything_else() {
    let world = World::new().await;
    let gateway = world.start().await;
    for path in [
        "/context/v1/requests?access_token=abc",
        "/.well-known/context-layer?a=b&Access%5FToken=abc",
        "/nothing?token=abc",
    ] {
        let answer = Call::new(Method::GET, path).by(&gateway.client).await;
        assert_eq!(
            answer.refusal(),
            (400, "CREDENTIAL_IN_URL".to_owned()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_capability_document_is_public_and_says_how_to_get_in() {
    let world = World::new().await;
    let options = Options {
        public_url: Some("https://gateway.example.org".to_owned()),
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let call = || Call::new(Method::GET, "/.well-known/context-layer");
    let answer = call().by(&gateway.client).await;
    assert_eq!(answer.status, 200);
    answer.check_common_headers();
    assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
    let document = answer.json();
    assert_eq!(document["protocol_versions"], json!(["0.2-draft"]));
    assert_eq!(
        document["authentication"]["methods"],
        json!(["mtls", "oauth2"])
    );
    let issuer = &document["authentication"]["oauth2"]["issuer"];
    assert_eq!(issuer, "https://tokens.example.org");
    let scopes = &document["authentication"]["oauth2"]["scopes"];
    let all = [
        "context.request",
        "context.redeem",
        "receipt.write",
        "receipt.read",
        "memory.propose",
    ];
    assert_eq!(*scopes, json!(all));
    let bundle = &document["endpoints"]["bundle"];
    assert_eq!(
        bundle,
        "https://gateway.example.org/context/v1/bundles/{id}"
    );
    assert_eq!(document["receipts"]["consumer_receipts"], true);
    let requests = &document["endpoints"]["requests"];
    assert_eq!(requests, "https://gateway.example.org/context/v1/requests");

    let without = world.start_with(Options {
        tokens: false,
        ..Options::default()
    });
    let without = without.await;
    let document = call().by(&without.client).await.json();
    assert_eq!(document["authentication"]["methods"], json!(["mtls"]));
    assert_eq!(document["authentication"]["oauth2"], json!(null));
    assert_eq!(document["endpoints"]["requests"], "/context/v1/requests");
}

#[tokio::test]
async fn both_versions_of_http_agree() {
    let world = World::new().await;
    let gateway = world.start().await;
    let document = request("versions").to_string();
    let submit = || Call::submit(document.clone()).bearer(&gateway.token);
    let first = submit().by(&gateway.client).await;
    let second = submit().by_http2(&gateway.client).await;
    assert_eq!((first.status, &first.body), (second.status, &second.body));
    second.check_common_headers();
    assert_eq!(first.header("location"), second.header("location"));
    let large = Call::submit(vec![b' '; 1_048_577]).bearer(&gateway.token);
    let refused = large.by_http2(&gateway.client).await;
    assert_eq!(refused.refusal(), (413, "DOCUMENT_TOO_LARGE".to_owned()));
    let credential = Call::new(Method::GET, "/nothing?access_token=abc");
    let refused = credential.by_http2(&gateway.client).await;
    assert_eq!(refused.refusal(), (400, "CREDENTIAL_IN_URL".to_owned()));
    let grpc = Call::new(Method::POST, "/contextlayer.other.v1.Service/Method")
        .header("content-type", "application/grpc");
    let unknown = grpc.by_http2(&gateway.client).await;
    assert_eq!(unknown.status, 200);
    assert_eq!(unknown.header("grpc-status"), Some("12"));
}
