//! What recipients do over HTTP: redeem, check, report, read their reports, propose.

use cl_model::delivery::{self, Delivery};
use cl_model::receipt::BUNDLE_CONSUME;
use cl_wire::bundle::v1::BundleState;
use cl_wire::receipt::v1::RecordedReceipt;
use http::Method;
use serde_json::{Value, json};
use tonic::Code;

use crate::bundle_issuer::FakeIssuer;
use crate::client::{Answer, BUNDLES, Call, MEDIA_TYPE, PROPOSALS, RECEIPTS};
use crate::documents::{ALIAS, DRAFT, PRINCIPAL, TENANT, canonical_bytes, proposal, receipt};
use crate::engine::later;
use crate::support::{NOW_S, Options, Running, World};
use crate::tokens::TokenIssuer;

fn is_replay(answer: &Answer) -> bool {
    answer.header("idempotency-replayed") == Some("true")
}

fn consumption(bundle: &str) -> Value {
    receipt(bundle, BUNDLE_CONSUME, PRINCIPAL, "The bundle was opened.")
}

fn drafted(bundle: &str, summary: &str) -> Value {
    receipt(bundle, DRAFT, PRINCIPAL, summary)
}

impl Running {
    async fn record(&self, bundle: &str, receipt: &Value) -> Answer {
        let text = serde_json::to_string_pretty(receipt).unwrap();
        self.call(Call::record(bundle, text)).await
    }

    async fn propose(&self, proposal: &Value) -> Answer {
        let text = serde_json::to_string_pretty(proposal).unwrap();
        self.call(Call::propose(text)).await
    }
}

#[tokio::test]
async fn a_bundle_is_handed_out_once_as_it_was_signed() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("once");
    let answer = gateway.call(Call::redeem(&bundle)).await;
    assert_eq!(answer.status, 200);
    answer.check_common_headers();
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.body, FakeIssuer::delivery(&bundle).envelope);
    assert!(!is_replay(&answer));
    let again = gateway.call(Call::redeem(&bundle)).await;
    assert_eq!(again.refusal(), (409, "BUNDLE_REPLAY".to_owned()));
    let keyed = gateway.call(Call::redeem(&bundle).key("key-1")).await;
    assert_eq!(keyed.refusal(), (409, "BUNDLE_REPLAY".to_owned()));

    let arrived = &world.bundles.redemptions()[0];
    assert_eq!(arrived.tenant, TENANT);
    assert_eq!(arrived.recipient, PRINCIPAL);
    assert_eq!(arrived.bundle_ref, bundle);
    assert_eq!(arrived.idempotency_key, None);
}

#[tokio::test]
async fn who_names_the_delivery_gets_all_of_it() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("whole");
    let call = Call::redeem(&bundle).header("accept", delivery::MEDIA_TYPE);
    let answer = gateway.call(call).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some(delivery::MEDIA_TYPE));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let found = Delivery::parse(&answer.body).unwrap();
    assert_eq!(found.to_text().as_bytes(), answer.body);
    let signed = FakeIssuer::delivery(&bundle);
    assert_eq!(found.envelope, signed.envelope);
    assert_eq!(found.scope.document, signed.scope_statement);
    assert_eq!(found.scope.signature.as_bytes()[..], signed.scope_signature);
    assert_eq!(found.notes.document, signed.notes);
    assert_eq!(found.notes.signature.as_bytes()[..], signed.notes_signature);

    // A refusal is the protocol's error object all the same.
    let call = Call::redeem(&bundle).header("accept", delivery::MEDIA_TYPE);
    let refused = gateway.call(call).await;
    assert_eq!(refused.refusal(), (409, "BUNDLE_REPLAY".to_owned()));
    let other = world.bundles.issue("other");
    let call = Call::redeem(&other).header("accept", "text/html");
    let refused = gateway.call(call).await;
    assert_eq!(refused.refusal(), (406, "NOT_ACCEPTABLE".to_owned()));
    assert_eq!(world.bundles.state(&other), BundleState::Live);
}

#[tokio::test]
async fn the_same_key_gets_the_same_bytes_until_the_bundle_is_consumed() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("keyed");
    let redeem = || Call::redeem(&bundle).key("key-1");
    let first = gateway.call(redeem()).await;
    let second = gateway.call(redeem()).await;
    assert_eq!(
        (first.status, second.status),
        (http::StatusCode::OK, http::StatusCode::OK)
    );
    assert_eq!(first.body, second.body);
    assert!(!is_replay(&first) && is_replay(&second));
    let arrived = world.bundles.redemptions();
    assert_eq!(arrived[0].idempotency_key.as_deref(), Some("key-1"));
    assert_eq!(arrived[0].operation_id, arrived[1].operation_id);
    let replay = (409, "BUNDLE_REPLAY".to_owned());
    let other = gateway.call(Call::redeem(&bundle).key("key-2")).await;
    assert_eq!(other.refusal(), replay);

    assert_eq!(
        gateway.record(&bundle, &consumption(&bundle)).await.status,
        201
    );
    assert_eq!(gateway.call(redeem()).await.refusal(), replay);
}

#[tokio::test]
async fn a_redemption_whose_answer_was_lost_is_repeated_under_its_key() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("lost");
    world.bundles.faults.lose_next_answer();
    let lost = gateway.call(Call::redeem(&bundle).key("key-1")).await;
    assert_eq!(lost.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    let found = gateway.call(Call::redeem(&bundle).key("key-1")).await;
    assert_eq!(found.status, 200);
    assert!(is_replay(&found));
    let arrived = world.bundles.redemptions();
    assert_eq!(arrived[0].operation_id, arrived[1].operation_id);

    // The issuer may have begun when evidence could not be written, so the operation stays.
    let other = world.bundles.issue("evidence");
    let unavailable = later(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE", 3);
    world.bundles.faults.refuse_next(unavailable);
    let refused = gateway.call(Call::redeem(&other).key("key-2")).await;
    let expected = (503, "RECEIPT_STORE_UNAVAILABLE".to_owned());
    assert_eq!(refused.refusal(), expected);
    assert_eq!(refused.header("retry-after"), Some("3"));
    assert_eq!(
        gateway.call(Call::redeem(&other).key("key-2")).await.status,
        200
    );
    let arrived = world.bundles.redemptions();
    assert_eq!(arrived[2].operation_id, arrived[3].operation_id);
}

#[tokio::test]
async fn each_state_of_a_bundle_has_its_answers() {
    let world = World::new().await;
    let gateway = world.start().await;
    let replay = Some((409, "BUNDLE_REPLAY"));
    for (state, name, refusal) in [
        (BundleState::Live, "live", None),
        (BundleState::Redeemed, "redeemed", replay),
        (BundleState::Consumed, "consumed", replay),
        (
            BundleState::Revoked,
            "revoked",
            Some((410, "BUNDLE_REVOKED")),
        ),
        (
            BundleState::Expired,
            "expired",
            Some((410, "BUNDLE_EXPIRED")),
        ),
    ] {
        let bundle = world.bundles.issue(name);
        world.bundles.set(&bundle, state);
        let answer = gateway.call(Call::check(&bundle)).await;
        assert_eq!(answer.status, 200);
        answer.check_common_headers();
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let expected = json!({
            "bundle_ref": bundle, "state": name, "expires_at": "2030-06-01T08:10:00.500Z",
        });
        assert_eq!(answer.body, canonical_bytes(&expected));
        let answer = gateway.call(Call::redeem(&bundle)).await;
        match refusal {
            None => assert_eq!(answer.status, 200),
            Some((status, code)) => assert_eq!(answer.refusal(), (status, code.to_owned())),
        }
    }
    // A check spends nothing.
    let bundle = world.bundles.issue("checked");
    gateway.call(Call::check(&bundle)).await;
    assert_eq!(world.bundles.state(&bundle), BundleState::Live);
}

#[tokio::test]
async fn only_get_redeems() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("head");
    let head = gateway
        .call(Call::new(Method::HEAD, &format!("{BUNDLES}/{bundle}")).key("key-1"))
        .await;
    assert_eq!(head.status, 405);
    assert_eq!(head.header("allow"), Some("GET"));
    assert!(head.body.is_empty());
    assert_eq!(world.bundles.state(&bundle), BundleState::Live);
    for (method, path, allowed) in [
        (Method::POST, format!("{BUNDLES}/{bundle}"), "GET"),
        (Method::DELETE, format!("{BUNDLES}/{bundle}"), "GET"),
        (
            Method::POST,
            format!("{BUNDLES}/{bundle}/status"),
            "GET, HEAD",
        ),
        (Method::GET, format!("{BUNDLES}/{bundle}/receipts"), "POST"),
        (
            Method::PUT,
            format!("{RECEIPTS}/urn:cl:receipt:r"),
            "GET, HEAD",
        ),
        (Method::GET, PROPOSALS.to_owned(), "POST"),
    ] {
        let answer = gateway.call(Call::new(method.clone(), &path)).await;
        let expected = (405, "METHOD_NOT_ALLOWED".to_owned());
        assert_eq!(answer.refusal(), expected, "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
    assert_eq!(world.bundles.faults.calls(), 0);
}

#[tokio::test]
async fn a_receipt_is_recorded_and_read_back() {
    let world = World::new().await;
    let gateway = world.start().await;
    let bundle = world.bundles.issue("reported");
    gateway.call(Call::redeem(&bundle)).await;
    let document = consumption(&bundle);
    let id = document["id"].as_str().unwrap();
    let answer = gateway.record(&bundle, &document).await;
    assert_eq!(answer.status, 201);
    answer.check_common_headers();
    assert_eq!(answer.body, canonical_bytes(&document));
    assert_eq!(
        answer.header("location"),
        Some(&*format!("{RECEIPTS}/{id}"))
    );
    assert_eq!(answer.header("context-layer-sequence"), Some("1"));
    assert!(!is_replay(&answer));

    let second = gateway.record(&bundle, &drafted(&bundle, "Again.")).await;
    assert_eq!(second.header("context-layer-sequence"), Some("2"));
    let repeated = gateway.record(&bundle, &document).await;
    assert_eq!(repeated.status, 201);
    assert_eq!(repeated.header("context-layer-sequence"), Some("1"));
    assert_eq!(world.receipts.len(), 2);

    for spelling in [id.to_owned(), id.replace(':', "%3A")] {
        let read = gateway.call(Call::receipt(&spelling)).await;
        assert_eq!(read.status, 200);
        read.check_common_headers();
        assert_eq!(read.body, answer.body);
        assert_eq!(read.header("context-layer-sequence"), Some("1"));
        assert_eq!(read.header("location"), None);
    }
}

#[tokio::test]
async fn receipts_that_a_bundle_does_not_allow_are_refused() {
    let world = World::new().await;
    let gateway = world.start().await;
    let (bundle, other) = (world.bundles.issue("refused"), world.bundles.issue("other"));
    let refused = async |bundle: &str, document: &Value| {
        let (status, code) = gateway.record(bundle, document).await.refusal();
        format!("{status} {code}")
    };
    let first = consumption(&bundle);
    assert_eq!(refused(&bundle, &first).await, "409 BUNDLE_NOT_REDEEMED");
    gateway.call(Call::redeem(&bundle)).await;
    let outside = "403 RECEIPT_OUTSIDE_CONTRACT";
    assert_eq!(refused(&bundle, &consumption(&other)).await, outside);
    let foreign = receipt(&bundle, BUNDLE_CONSUME, "urn:agent:another", "Opened.");
    assert_eq!(refused(&bundle, &foreign).await, outside);
    let ungranted = receipt(&bundle, "calendar.delete", PRINCIPAL, "Deleted.");
    assert_eq!(refused(&bundle, &ungranted).await, outside);
    assert_eq!(gateway.record(&bundle, &first).await.status, 201);
    let second = receipt(&bundle, BUNDLE_CONSUME, PRINCIPAL, "It was opened again.");
    assert_eq!(
        refused(&bundle, &second).await,
        "409 RECEIPT_REPLAY_CONFLICT"
    );
    let unknown = "urn:cl:bundle:unknown";
    assert_eq!(refused(unknown, &first).await, "404 BUNDLE_NOT_FOUND");

    let arrived = world.bundles.faults.calls();
    let with = |member: &str, value: Value| {
        let mut document = first.clone();
        document[member] = value;
        document
    };
    for (document, code) in [
        (
            with("outcome", json!("failure")),
            "400 RECORD_INTEGRITY_MISMATCH",
        ),
        (with("surprise", json!(1)), "400 RECORD_INTEGRITY_MISMATCH"),
        (with("integrity", json!(1)), "400 INVALID_RECORD_INTEGRITY"),
        (json!([]), "400 INVALID_OBJECT"),
    ] {
        assert_eq!(refused(&bundle, &document).await, code);
    }
    for (body, expected) in [
        ("{".to_owned(), (400, "INVALID_JSON")),
        (r#"{"a":1,"a":1}"#.to_owned(), (400, "DUPLICATE_MEMBER")),
        (" ".repeat(65_536), (400, "INVALID_JSON")),
        (" ".repeat(65_537), (413, "DOCUMENT_TOO_LARGE")),
    ] {
        let answer = gateway.call(Call::record(&bundle, body)).await;
        assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()));
    }
    assert_eq!(
        world.bundles.faults.calls(),
        arrived,
        "none of them arrived"
    );
}

#[tokio::test]
async fn a_proposal_waits_until_it_is_decided() {
    let world = World::new().await;
    let gateway = world.start().await;
    let document = proposal(ALIAS, PRINCIPAL, "The traveller said so.");
    let answer = gateway.propose(&document).await;
    assert_eq!(answer.status, 202);
    answer.check_common_headers();
    assert_eq!(answer.header("location"), None);
    assert_eq!(answer.header("retry-after"), None);
    let mut stored = document.clone();
    stored["status"] = json!("pending_approval");
    assert_eq!(answer.body, canonical_bytes(&stored));
    let arrived = &world.vault.submissions()[0];
    assert_eq!(arrived.proposal, canonical_bytes(&document));
    assert_eq!(arrived.tenant, TENANT);
    assert_eq!(arrived.submitter, PRINCIPAL);

    for (status, expected) in [
        ("pending_validation", 202),
        ("approved", 201),
        ("committed", 201),
        ("rejected", 201),
        ("expired", 201),
    ] {
        world
            .vault
            .set_status(document["id"].as_str().unwrap(), status);
        let repeated = gateway.propose(&document).await;
        assert_eq!(repeated.status, expected, "{status}");
        assert_eq!(repeated.json()["status"], status);
    }
    assert_eq!(world.vault.len(), 1);
}

#[tokio::test]
async fn proposals_that_the_vault_does_not_take_are_refused() {
    let world = World::new().await;
    let gateway = world.start().await;
    let refused = async |document: &Value| {
        let (status, code) = gateway.propose(document).await.refusal();
        format!("{status} {code}")
    };
    let foreign = proposal(ALIAS, "urn:agent:another", "Because.");
    assert_eq!(refused(&foreign).await, "403 SUBMITTER_MISMATCH");
    let unknown = proposal("urn:cl:alias:a-2", PRINCIPAL, "Because.");
    assert_eq!(refused(&unknown).await, "404 EXCHANGE_NOT_FOUND");
    let good = proposal(ALIAS, PRINCIPAL, "Because.");
    world.vault.expire_exchange(true);
    assert_eq!(refused(&good).await, "410 EXCHANGE_EXPIRED");
    world.vault.expire_exchange(false);
    world.vault.erase_subject();
    assert_eq!(refused(&good).await, "410 SUBJECT_ERASED");

    let arrived = world.vault.faults.calls();
    let mut changed = good.clone();
    changed["rationale"] = json!("Another.");
    assert_eq!(refused(&changed).await, "400 RECORD_INTEGRITY_MISMATCH");
    assert_eq!(refused(&json!({})).await, "400 INVALID_RECORD_INTEGRITY");
    let long = proposal(ALIAS, PRINCIPAL, &"x".repeat(1_001));
    assert_eq!(refused(&long).await, "400 INVALID_MEMORY_PROPOSAL");
    for (length, expected) in [
        (262_144, (400, "INVALID_JSON")),
        (262_145, (413, "DOCUMENT_TOO_LARGE")),
    ] {
        let answer = gateway.call(Call::propose(" ".repeat(length))).await;
        assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()));
    }
    assert_eq!(world.vault.faults.calls(), arrived, "none of them arrived");
}

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
    let bytes = canonical_bytes(&drafted("urn:cl:bundle:b", "It was drafted."));
    world.receipts.append(TENANT, &bytes);
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let id = document["id"].as_str().unwrap();
    let other = canonical_bytes(&drafted("urn:cl:bundle:b", "Another."));
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
