//! Submitting, reading and replaying.

use cl_model::document::TrustedKeys;
use cl_model::grant::{ProjectionStep, VerifiedGrant};
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::part::Label;
use cl_model::time::UnixTime;
use cl_policy_engine::core::operation::TenantName;
use cl_testbed::{refusal, refused, spiffe_id, within};
use cl_wire::policy::v1::authenticated_facts::BoundKey;
use cl_wire::policy::v1::{
    Assurance, AuthenticationMethod, GetRequestRequest, ReplayDecisionRequest,
    ReplayDecisionResponse, RequestState,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::documents::{
    self, AGENT, NOW_MS, TENANT, facts, gated, operation, request, snapshot, submission,
};
use crate::support::{Running, World, decision, decision_public_key};

/// The grant of a decision, verified as the vault would.
fn grant(running: &Running, request: &Value, decision: &Value, now_ms: i64) -> VerifiedGrant {
    let tenant = TenantName::parse(TENANT).unwrap();
    let id = decision["id"].as_str().unwrap();
    let recorded = running.store.decision(&tenant, id).unwrap().unwrap();
    let grant = recorded.grant.unwrap();
    let keys: TrustedKeys = [decision_public_key()].into_iter().collect();
    let request = ContextRequest::read(request).unwrap();
    let now = UnixTime::from_milliseconds(now_ms);
    let vault = spiffe_id("vault/cl-vault");
    VerifiedGrant::verify(&grant.scope, &grant.plan, &request, &keys, &vault, now).unwrap()
}

fn reasons(decision: &Value) -> Vec<&str> {
    let codes = decision["reason_codes"].as_array().unwrap();
    codes.iter().map(|code| code.as_str().unwrap()).collect()
}

pub(crate) async fn replay(
    running: &Running,
    decision_ref: &str,
    operation_id: String,
) -> Result<ReplayDecisionResponse, Status> {
    let message = ReplayDecisionRequest {
        tenant: TENANT.to_owned(),
        decision_ref: decision_ref.to_owned(),
        operation_id,
    };
    let mut admin = running.admin.clone();
    let answer = within("a replay", admin.replay_decision(message)).await?;
    Ok(answer.into_inner())
}

#[tokio::test]
async fn decides_grants_and_receipts_an_allowed_request() {
    let world = World::new().await;
    let running = world.ready().await;
    let request = request("r1");
    let status = running.ask(&request, 1).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
    assert_eq!(status.request_ref, "urn:cl:request:r1");
    assert_eq!(status.bundle_ref, None);
    assert_eq!(status.retry_after_seconds, None);
    let decided = decision(&status);
    assert_eq!(decided["decision"], "allow");
    assert_eq!(decided["receipt_preflight"]["status"], "available");

    let grant = grant(&running, &request, &decided, NOW_MS);
    assert_eq!(grant.plan().tenant.as_str(), TENANT);
    assert_eq!(grant.plan().subject_tag.as_str().len(), 43);
    assert_eq!(grant.plan().rules.len(), 1);
    assert_eq!(grant.plan().rules[0].max_label, Label::Private);
    assert_eq!(
        grant.scope().expires_at.as_str(),
        "2030-01-01T12:05:00.000Z"
    );

    let receipts = world.receipts.of("policy.decide");
    assert_eq!(receipts.len(), 1);
    let receipt = &receipts[0].receipt;
    assert_eq!(receipts[0].routing.operation_id, operation(1));
    let tag = receipts[0].routing.subject_tag.as_deref();
    assert_eq!(tag, Some(grant.plan().subject_tag.as_str()));
    assert_eq!(receipt["subject_ref"], grant.plan().subject_alias.as_str());
    assert_eq!(receipt["request_ref"], request["id"]);
    assert_eq!(receipt["decision_ref"], decided["id"]);
    assert_eq!(receipt["input_digest"], decided["request_digest"]);
    assert_eq!(receipt["output_digest"], decided["integrity"]["digest"]);
    assert_eq!(
        receipt["policy_snapshot"],
        decided["policy_snapshot"]["digest"]
    );
    assert_eq!(receipt["metadata"]["decision"], "allow");

    assert_eq!(running.look(&request).await.unwrap(), status);
    assert_eq!(running.ask(&request, 2).await.unwrap(), status);
    assert_eq!(running.ask(&request, 1).await.unwrap(), status);
    assert_eq!(world.receipts.of("policy.decide").len(), 1);
}

#[tokio::test]
async fn gated_scope_waits_for_an_approval_and_runs_out() {
    let world = World::new().await;
    let running = world.ready().await;
    let request = gated("r1");
    let status = running.ask(&request, 1).await.unwrap();
    assert_eq!(status.state(), RequestState::PendingApproval);
    assert!(status.retry_after_seconds.unwrap() >= 1);
    assert_eq!(decision(&status)["decision"], "needs_approval");

    world.clock.set(NOW_MS + 479_999);
    let waiting = running.look(&request).await.unwrap();
    assert_eq!(waiting.state(), RequestState::PendingApproval);
    world.clock.set(NOW_MS + 480_000);
    let expired = running.look(&request).await.unwrap();
    assert_eq!(expired.state(), RequestState::Expired);
    assert_eq!(expired.decision, status.decision);
    world.clock.set(NOW_MS);
    let still = running.look(&request).await.unwrap();
    assert_eq!(still.state(), RequestState::Expired);

    let mut other = request.clone();
    other["purpose"] = json!("another text");
    let conflict = refused(Code::AlreadyExists, "REQUEST_ID_CONFLICT");
    assert_eq!(refusal(running.ask(&other, 2).await), conflict);
}

#[tokio::test]
async fn an_allowed_decision_expires_and_a_denial_stays() {
    let world = World::new().await;
    let running = world.ready().await;
    let allowed = request("allowed");
    let mut denied = request("denied");
    denied["recipient"]["principal"] = json!("urn:model:stranger");
    running.ask(&allowed, 1).await.unwrap();
    let status = running.ask(&denied, 2).await.unwrap();
    assert_eq!(decision(&status)["decision"], "deny");
    assert_eq!(reasons(&decision(&status)), ["RECIPIENT_NOT_AUTHORIZED"]);
    world.clock.advance(600_000);
    let status = running.ask(&allowed, 3).await.unwrap();
    assert_eq!(status.state(), RequestState::Expired);
    let status = running.ask(&denied, 4).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
}

#[tokio::test]
async fn facts_that_disagree_are_a_receipted_denial() {
    let world = World::new().await;
    let running = world.ready().await;
    let mut cases = Vec::new();
    let mut other = facts();
    other.principal = "urn:agent:other".to_owned();
    cases.push((request("principal"), other));
    let mut other = facts();
    other.client_instance = "urn:device:other".to_owned();
    cases.push((request("client"), other));
    let mut stated = request("method");
    stated["requester"]["authenticated_by"] = json!("mtls");
    cases.push((stated, facts()));
    let mut stated = request("issuer");
    stated["issuer"]["id"] = json!("urn:agent:other");
    cases.push((stated, facts()));

    for (number, (request, facts)) in (1..).zip(cases) {
        let mut message = submission(&request, number);
        message.facts = Some(facts);
        let status = running.submit(message).await.unwrap();
        assert_eq!(status.state(), RequestState::Decided);
        let decided = decision(&status);
        assert_eq!(decided["decision"], "deny");
        assert_eq!(reasons(&decided)[0], "REQUESTER_FACTS_MISMATCH");
        assert_eq!(decided["granted_selectors"], json!([]));
        let receipts = world.receipts.of("policy.decide");
        assert_eq!(receipts.len(), usize::try_from(number).unwrap());
        assert_eq!(
            receipts.last().unwrap().receipt["decision_ref"],
            decided["id"]
        );
    }
}

#[tokio::test]
async fn a_client_certificate_speaks_for_its_own_tenant() {
    let world = World::new().await;
    let running = world.start().await;
    let agent = spiffe_id("client/acme/agent");
    let mut policy = snapshot("v1");
    policy["policy"]["allowed_requesters"] = json!([agent]);
    policy["policy"]["allowed_clients"] = json!([agent]);
    policy["clients"] = json!([{"client_instance": agent, "principals": [agent]}]);
    running.activate_new(&policy, None).await;
    let mut request = request("r1");
    request["issuer"]["id"] = json!(agent);
    request["requester"] = json!({
        "principal": agent, "authenticated_by": "mtls", "client_instance": agent,
    });
    let mut message = submission(&request, 1);
    let mut facts = facts();
    facts.principal.clone_from(&agent);
    facts.client_instance.clone_from(&agent);
    facts.method = AuthenticationMethod::Mtls.into();
    facts.bound_key = Some(BoundKey::CertificateThumbprint("A".repeat(43)));
    message.facts = Some(facts.clone());
    let status = running.submit(message.clone()).await.unwrap();
    assert_eq!(decision(&status)["decision"], "allow");

    facts.principal = spiffe_id("client/other/agent");
    facts.client_instance.clone_from(&facts.principal);
    message.facts = Some(facts);
    let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(refusal(running.submit(message).await), invalid);
}

#[tokio::test]
async fn limits_of_the_snapshot_deny() {
    let world = World::new().await;
    let running = world.start().await;
    let mut strict = snapshot("strict");
    strict["limits"] = json!({
        "max_selectors": 1, "max_actions": 1, "max_lifetime_seconds": 60, "min_assurance": "high",
    });
    strict["clients"][0]["principals"] = json!(["urn:agent:other"]);
    strict["expires_at"] = json!("2030-01-01T12:00:01Z");
    running.activate_new(&strict, None).await;
    world.clock.advance(1_000);
    let mut request = request("r1");
    request["selectors"] = json!([{"predicate": "delivery_date"}, {"predicate": "timeline"}]);
    request["requested_actions"] = json!(["email.create_draft", "email.read"]);
    let mut message = submission(&request, 1);
    let facts = message.facts.as_mut().unwrap();
    facts.assurance = Assurance::Substantial.into();
    let decided = decision(&running.submit(message).await.unwrap());
    assert_eq!(decided["decision"], "deny");
    let expected = [
        "CLIENT_NOT_REGISTERED",
        "ASSURANCE_TOO_LOW",
        "POLICY_SNAPSHOT_EXPIRED",
        "SELECTOR_LIMIT_EXCEEDED",
        "ACTION_LIMIT_EXCEEDED",
        "REQUEST_LIFETIME_EXCEEDED",
    ];
    let found = reasons(&decided);
    assert!(
        expected.iter().all(|code| found.contains(code)),
        "{found:?}"
    );
}

#[tokio::test]
async fn projections_reduce_and_a_grant_ends_with_its_snapshot() {
    let world = World::new().await;
    let running = world.start().await;
    let mut short = snapshot("short");
    short["expires_at"] = json!("2030-01-01T12:01:00Z");
    running.activate_new(&short, None).await;
    let mut request = request("r1");
    request["selectors"] = json!([{"predicate": "timeline"}]);
    let decided = decision(&running.ask(&request, 1).await.unwrap());
    assert_eq!(decided["decision"], "allow_with_reductions");
    let grant = grant(&running, &request, &decided, NOW_MS);
    let rule = &grant.plan().rules[0];
    assert_eq!(*rule.projections, [ProjectionStep::Generalise]);
    assert_eq!(rule.max_label, Label::Internal);
    assert_eq!(
        grant.scope().expires_at.as_str(),
        "2030-01-01T12:01:00.000Z"
    );
}

#[tokio::test]
async fn another_request_under_the_same_id_conflicts_unless_the_first_is_pending() {
    let world = World::new().await;
    let running = world.ready().await;
    let conflict = refused(Code::AlreadyExists, "REQUEST_ID_CONFLICT");
    let decided = request("decided");
    running.ask(&decided, 1).await.unwrap();
    let mut other = decided.clone();
    other["purpose"] = json!("another text");
    assert_eq!(refusal(running.ask(&other, 2).await), conflict);

    let pending = gated("pending");
    let first = running.ask(&pending, 3).await.unwrap();
    let replacement = request("pending");
    let second = running.ask(&replacement, 4).await.unwrap();
    assert_eq!(second.state(), RequestState::Decided);
    assert_ne!(first.decision, second.decision);
    assert_eq!(running.look(&pending).await.unwrap(), second);
    // The replaced request does not come back, neither as a retry nor anew.
    assert_eq!(refusal(running.ask(&pending, 3).await), conflict);
    assert_eq!(refusal(running.ask(&pending, 5).await), conflict);
    assert_eq!(world.receipts.of("policy.decide").len(), 3);
}

#[tokio::test]
async fn a_retry_of_a_replaced_pending_request_does_not_replace_in_turn() {
    let world = World::new().await;
    let running = world.ready().await;
    let first = gated("pending");
    running.ask(&first, 1).await.unwrap();
    let mut second = first.clone();
    second["purpose"] = json!("another text");
    let status = running.ask(&second, 2).await.unwrap();
    assert_eq!(status.state(), RequestState::PendingApproval);
    let conflict = refused(Code::AlreadyExists, "REQUEST_ID_CONFLICT");
    assert_eq!(refusal(running.ask(&first, 1).await), conflict);
    assert_eq!(running.look(&second).await.unwrap(), status);
}

#[tokio::test]
async fn an_operation_id_is_for_one_content() {
    let world = World::new().await;
    let running = world.ready().await;
    running.ask(&request("r1"), 1).await.unwrap();
    let conflict = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    assert_eq!(refusal(running.ask(&request("r2"), 1).await), conflict);
    let put = running.put(TENANT, &snapshot("v2"), 1).await;
    assert_eq!(refusal(put), conflict);
    assert_eq!(world.receipts.log().len(), 3);
}

#[tokio::test]
async fn requests_belong_to_their_principal_and_tenant() {
    let world = World::new().await;
    let running = world.ready().await;
    let request = request("r1");
    running.ask(&request, 1).await.unwrap();
    let missing = refused(Code::NotFound, "REQUEST_NOT_FOUND");
    for (tenant, principal) in [(TENANT, "urn:agent:other"), ("other", AGENT)] {
        let mut other = facts();
        other.principal = principal.to_owned();
        let message = GetRequestRequest {
            tenant: tenant.to_owned(),
            request_ref: "urn:cl:request:r1".to_owned(),
            facts: Some(other),
        };
        let read = running.policy.clone().get_request(message).await;
        assert_eq!(refusal(read), missing);
    }
    let mut elsewhere = submission(&request, 2);
    elsewhere.tenant = "other".to_owned();
    let inactive = refused(Code::FailedPrecondition, "POLICY_NOT_ACTIVE");
    assert_eq!(refusal(running.submit(elsewhere.clone()).await), inactive);

    let digest = running.put("other", &snapshot("v1"), 3).await.unwrap();
    running.activate("other", &digest, None, 4).await.unwrap();
    let status = running.submit(elsewhere).await.unwrap();
    assert_eq!(decision(&status)["decision"], "allow");
    let tags: Vec<_> = world.receipts.of("policy.decide").into_iter().collect();
    assert_eq!(tags[1].routing.tenant, "other");
    assert_ne!(tags[0].routing.subject_tag, tags[1].routing.subject_tag);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_request_many_times_at_once_is_one_decision() {
    let world = World::new().await;
    let running = world.ready().await;
    let request = request("r1");
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..64 {
        let mut policy = running.policy.clone();
        // Some are the same call, tried again before the first has answered.
        let message = submission(&request, number % 16 + 1);
        tasks.spawn(async move { policy.submit_request(message).await });
    }
    let answers = within("all submissions", tasks.join_all()).await;
    let statuses: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.unwrap().into_inner().status.unwrap())
        .collect();
    assert_eq!(statuses.len(), 64);
    assert!(statuses.iter().all(|status| *status == statuses[0]));
    assert_eq!(world.receipts.of("policy.decide").len(), 1);
    let tenant = TenantName::parse(TENANT).unwrap();
    let used = (1..=16).filter(|number| {
        let id = operation(*number);
        let id = cl_policy_engine::core::operation::OperationId::parse(&id).unwrap();
        running.store.operation(&tenant, &id).unwrap().is_some()
    });
    assert_eq!(used.count(), 1);
}

#[tokio::test]
async fn replays_to_equal_bytes_whatever_happened_since() {
    let world = World::new().await;
    let running = world.ready().await;
    let first = decision(&running.ask(&request("r1"), 1).await.unwrap());
    let mut mismatch = submission(&request("r2"), 2);
    mismatch.facts.as_mut().unwrap().client_instance = "urn:device:other".to_owned();
    let denied = decision(&running.submit(mismatch).await.unwrap());
    let active = first["policy_snapshot"]["digest"].as_str().unwrap();
    let mut stricter = snapshot("v2");
    stricter["policy"]["allowed_selectors"] = json!([]);
    running.activate_new(&stricter, Some(active)).await;
    world.clock.advance(86_400_000);

    for (number, recorded) in [(10, &first), (11, &denied)] {
        let id = recorded["id"].as_str().unwrap();
        let replayed = replay(&running, id, operation(number)).await.unwrap();
        assert!(replayed.equal);
        assert_eq!(replayed.decision, documents::bytes(recorded));
        assert_eq!(replayed.recorded_decision, replayed.decision);
        // A retry is the same operation.
        assert_eq!(
            replay(&running, id, operation(number)).await.unwrap(),
            replayed
        );
    }
    let receipts = world.receipts.of("policy.replay");
    assert_eq!(receipts.len(), 2);
    assert_eq!(receipts[0].receipt["decision_ref"], first["id"]);
    let conflict = refused(Code::AlreadyExists, "OPERATION_CONFLICT");
    let id = denied["id"].as_str().unwrap();
    assert_eq!(refusal(replay(&running, id, operation(10)).await), conflict);
    let missing = refused(Code::NotFound, "DECISION_NOT_FOUND");
    let unknown = format!("urn:cl:decision:{}", "0".repeat(64));
    assert_eq!(
        refusal(replay(&running, &unknown, operation(12)).await),
        missing
    );
}
