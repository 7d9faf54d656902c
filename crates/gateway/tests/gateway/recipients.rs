//! What holds for all that recipients do over HTTP.

use cl_wire::receipt::v1::RecordedReceipt;
use http::Method;
use serde_json::{Value, json};
use tonic::Code;

use crate::client::{Answer, Call, MEDIA_TYPE};
use crate::documents::{
    ALIAS, DRAFT, PRINCIPAL, TENANT, canonical_bytes, consumption, proposal, receipt,
};
use crate::engine::later;
use crate::support::{NOW_S, Options, World};
use crate::tokens::TokenIssuer;

/// All that a caller is told, but for what differs in every answer.
fn told(answer: &Answer) -> (u16, Value, Vec<String>) {
    let mut body = answer.json();
    body["id"] = Value::Null;
    body["created_at"] = Value::Null;
    let names = answer.headers.keys().map(ToString::to_string);
    (answer.status.as_u16(), body, names.collect())
}

#[tokio::test]
async fn what_belongs_to_someone_else_looks_like_what_does_not_exist() {
    let world = World::new().await;
    let gateway = world.start().await;
    let own = world.bundles.issue("own");
    gateway.call(Call::redeem(&own)).await;
    let document = consumption(&own);
    gateway.record(&own, &document).await;
    let id = document["id"].as_str().unwrap();
    // Recorded about the caller, not by it.
    let about = receipt(&own, "bundle.deliver", "urn:service:issuer", "Delivered.");
    world.receipts.append(TENANT, &canonical_bytes(&about));
    let about = about["id"].as_str().unwrap();

    let with = |member: &str, value: &str| {
        let mut claims = TokenIssuer::claims(NOW_S);
        claims[member] = json!(value);
        world.issuer.token_with(&claims)
    };
    let body = document.to_string();
    for token in [
        with("sub", "urn:agent:another"),
        with("tenant", "elsewhere"),
    ] {
        for (theirs, unknown, code) in [
            (
                Call::redeem(&own),
                Call::redeem("urn:cl:bundle:x"),
                "BUNDLE_NOT_FOUND",
            ),
            (
                Call::redeem(&own),
                Call::redeem("nonsense"),
                "BUNDLE_NOT_FOUND",
            ),
            (
                Call::check(&own),
                Call::check("urn:cl:bundle:x"),
                "BUNDLE_NOT_FOUND",
            ),
            (
                Call::check(&own),
                Call::check("urn:cl:request:x"),
                "BUNDLE_NOT_FOUND",
            ),
            (
                Call::record(&own, body.clone()),
                Call::record("urn:cl:bundle:x", body.clone()),
                "BUNDLE_NOT_FOUND",
            ),
            (
                Call::receipt(id),
                Call::receipt("urn:cl:receipt:x"),
                "RECEIPT_NOT_FOUND",
            ),
            (
                Call::receipt(about),
                Call::receipt("urn%3acl"),
                "RECEIPT_NOT_FOUND",
            ),
        ] {
            let theirs = theirs.bearer(&token).by(&gateway.client).await;
            let unknown = unknown.bearer(&token).by(&gateway.client).await;
            assert_eq!(theirs.refusal(), (404, code.to_owned()));
            assert_eq!(told(&theirs), told(&unknown));
        }
    }
    let answer = gateway.call(Call::receipt(about)).await;
    assert_eq!(answer.refusal(), (404, "RECEIPT_NOT_FOUND".to_owned()));
    assert_eq!(gateway.call(Call::receipt(id)).await.status, 200);
}

#[tokio::test]
async fn refusals_of_the_services_pass_under_known_codes_only() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("services");
    let body = consumption(&bundle).to_string();
    let proposal = proposal(ALIAS, PRINCIPAL, "Because.").to_string();
    let calls: [(_, &dyn Fn() -> Call, _); 5] = [
        (&world.bundles.faults, &|| Call::redeem(&bundle), 503),
        (&world.bundles.faults, &|| Call::check(&bundle), 503),
        (
            &world.bundles.faults,
            &|| Call::record(&bundle, body.clone()),
            503,
        ),
        (
            &world.receipts.faults,
            &|| Call::receipt("urn:cl:receipt:r"),
            0,
        ),
        (
            &world.vault.faults,
            &|| Call::propose(proposal.clone()),
            503,
        ),
    ];
    for (faults, call, evidence) in calls {
        let unwritten = if evidence == 503 {
            "RECEIPT_STORE_UNAVAILABLE"
        } else {
            // Nothing was to be written by a read.
            "SERVICE_UNAVAILABLE"
        };
        for (code, reason, status, told) in [
            (Code::ResourceExhausted, "RATE_LIMITED", 429, "RATE_LIMITED"),
            (
                Code::Unavailable,
                "RECEIPT_STORE_UNAVAILABLE",
                503,
                unwritten,
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
            (Code::InvalidArgument, "INVALID_FIELD", 500, "INTERNAL"),
            (
                Code::PermissionDenied,
                "CALLER_NOT_ALLOWED",
                500,
                "INTERNAL",
            ),
            (Code::NotFound, "SECRET_OF_THE_SERVICE", 500, "INTERNAL"),
            (Code::FailedPrecondition, "GRANT_EXPIRED", 500, "INTERNAL"),
            (Code::DataLoss, "STORE_CORRUPT", 500, "INTERNAL"),
            (Code::Unknown, "SECRET_OF_THE_SERVICE", 500, "INTERNAL"),
        ] {
            faults.refuse_next(later(code, reason, 4));
            let answer = gateway.call(call()).await;
            assert_eq!(answer.refusal(), (status, told.to_owned()), "{reason}");
            let text = String::from_utf8_lossy(&answer.body);
            assert!(
                !text.contains("own words") && !text.contains("SECRET"),
                "{text}"
            );
        }
    }
    let busy = later(Code::Aborted, "REDEMPTION_IN_PROGRESS", 4);
    world.bundles.faults.refuse_next(busy);
    let answer = gateway.call(Call::redeem(&bundle).key("key-1")).await;
    assert_eq!(answer.refusal(), (409, "REDEMPTION_IN_PROGRESS".to_owned()));
    assert_eq!(answer.header("retry-after"), Some("4"));
}

#[tokio::test]
async fn a_receipt_store_that_answers_with_another_receipt_is_not_believed() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bytes = canonical_bytes(&receipt(
        "urn:cl:bundle:b",
        DRAFT,
        PRINCIPAL,
        "It was drafted.",
    ));
    world.receipts.append(TENANT, &bytes);
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let id = document["id"].as_str().unwrap();
    let other = canonical_bytes(&receipt("urn:cl:bundle:b", DRAFT, PRINCIPAL, "Another."));
    let breaks: [&dyn Fn(&mut RecordedReceipt); 6] = [
        &|it| it.receipt.clone_from(&other),
        &|it| it.receipt = b"{}".to_vec(),
        &|it| it.entry = None,
        &|it| it.entry.as_mut().unwrap().sequence = 0,
        &|it| it.routing = None,
        &|it| it.routing.as_mut().unwrap().tenant = "elsewhere".to_owned(),
    ];
    for broken in breaks {
        let mut lie = world.receipts.recorded(TENANT, id).unwrap();
        broken(&mut lie);
        world.receipts.lie_next(lie);
        let answer = gateway.call(Call::receipt(id)).await;
        assert_eq!(answer.refusal(), (500, "INTERNAL".to_owned()));
    }
    assert_eq!(gateway.call(Call::receipt(id)).await.status, 200);
}

#[tokio::test]
async fn without_its_services_a_gateway_says_so() {
    let world = World::new().await;
    let options = Options {
        is_for_recipients: false,
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let bundle = world.bundles.issue("absent");
    for call in [
        Call::redeem(&bundle),
        Call::check(&bundle),
        Call::record(&bundle, consumption(&bundle).to_string()),
        Call::receipt("urn:cl:receipt:r"),
        Call::propose(proposal(ALIAS, PRINCIPAL, "Because.").to_string()),
    ] {
        let answer = gateway.call(call).await;
        assert_eq!(answer.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
        assert_eq!(answer.header("retry-after"), Some("30"));
    }
    let call = Call::new(Method::GET, "/.well-known/context-layer");
    let document = call.by(&gateway.client).await.json();
    let endpoints = document["endpoints"].as_object().unwrap();
    let names: Vec<_> = endpoints.keys().map(String::as_str).collect();
    assert_eq!(names, ["grpc_services", "request", "requests"]);
    let scopes = &document["authentication"]["oauth2"]["scopes"];
    assert_eq!(*scopes, json!(["context.request"]));
    let types = json!(["context_request", "policy_decision", "error"]);
    assert_eq!(document["object_types"], types);
    assert_eq!(document["receipts"]["consumer_receipts"], false);
}

#[tokio::test]
async fn recipients_are_held_to_the_binding() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("binding");
    let reads: [&dyn Fn() -> Call; 3] =
        [&|| Call::redeem(&bundle), &|| Call::check(&bundle), &|| {
            Call::receipt("urn:cl:receipt:r")
        }];
    let writes: [&dyn Fn() -> Call; 2] = [&|| Call::record(&bundle, "{}"), &|| Call::propose("{}")];
    let version = "context-layer-version";
    for call in reads.iter().chain(&writes) {
        let answer = gateway.call(call().without(version)).await;
        assert_eq!(answer.refusal(), (400, "VERSION_REQUIRED".to_owned()));
        let answer = gateway.call(call().header(version, "0.2-draft")).await;
        assert_eq!(answer.refusal(), (400, "VERSION_UNSUPPORTED".to_owned()));
        let answer = gateway.call(call().header("accept", "text/html")).await;
        assert_eq!(answer.refusal(), (406, "NOT_ACCEPTABLE".to_owned()));
        let answer = call().by(&gateway.client).await;
        assert_eq!(answer.refusal(), (401, "CALLER_UNAUTHENTICATED".to_owned()));
    }
    for call in writes {
        let bare = || call().without("content-type");
        for call in [bare(), bare().header("content-type", "application/json")] {
            let answer = gateway.call(call).await;
            assert_eq!(answer.refusal(), (415, "MEDIA_TYPE_UNSUPPORTED".to_owned()));
        }
    }
    let keyed = [writes[0](), writes[1](), Call::redeem(&bundle)];
    for call in keyed {
        let answer = gateway.call(call.key("a b")).await;
        let expected = (400, "INVALID_IDEMPOTENCY_KEY".to_owned());
        assert_eq!(answer.refusal(), expected);
    }
    let call = Call::redeem(&bundle).header("accept", MEDIA_TYPE);
    assert_eq!(gateway.call(call).await.status, 200);
    assert_eq!(world.bundles.faults.calls(), 1);
}
