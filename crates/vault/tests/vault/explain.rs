//! Where a claim comes from, and who may not know.

use cl_testbed::{refusal, refused};
use cl_wire::vault::v1::ExplainClaimRequest;
use cl_wire::vault::v1::owner_service_client::OwnerServiceClient;
use serde_json::Value;
use tonic::Code;

use crate::documents::{GrantDraft, SUBJECT, TENANT, item};
use crate::support::{Running, World, document};

const DAY: &str = r#"requested_delivery_date 0.6 "2030-02-01""#;
const SURE_DAY: &str = r#"requested_delivery_date 0.8 "2030-02-01" doubtful"#;
const OTHER_DAY: &str = r#"requested_delivery_date 0.6 "2030-02-09""#;

async fn claim_of(running: &Running, value: &str) -> String {
    let claims = running.claim_documents().await;
    let mut found = claims
        .iter()
        .filter(|claim| claim["object"]["value"] == value);
    found.next().unwrap()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_source_shows_its_words_and_its_rule() {
    let world = World::new().await;
    let running = world.start().await;
    let events = running
        .take(
            vec![
                item("m1", "Launch", &[DAY, OTHER_DAY]),
                item("m2", "Paint", &[SURE_DAY]),
            ],
            1,
        )
        .await;
    let claim = claim_of(&running, "2030-02-01").await;
    let explained = running.explain(&claim).await.unwrap();
    let stated = document(&explained.claim);
    assert_eq!(stated["id"], claim.as_str());
    assert_eq!(stated["status"], "derived");
    let told: Vec<_> = explained
        .evidence
        .iter()
        .map(|it| (it.event_ref.as_str(), it.words.as_str(), it.confidence))
        .collect();
    let expected = [
        (events[0].as_str(), DAY, 0.6),
        (events[1].as_str(), SURE_DAY, 0.8),
    ];
    assert_eq!(told, expected);
    for evidence in &explained.evidence {
        assert_eq!(evidence.rule, "test.line");
        assert_eq!(evidence.reason, "A line that states a claim.");
    }
    assert!(explained.evidence[0].marks.is_empty());
    let mark = &explained.evidence[1].marks[0];
    assert_eq!(mark.mark, "test.doubt");
    assert_eq!(mark.meaning, "The line says that it doubts itself.");
}

#[tokio::test]
async fn words_go_with_their_event() {
    let world = World::new().await;
    let running = world.start().await;
    let events = running
        .take(
            vec![
                item("m1", "Launch", &[DAY]),
                item("m2", "Paint", &[SURE_DAY]),
            ],
            1,
        )
        .await;
    let claim = claim_of(&running, "2030-02-01").await;
    running.erase_event(&events[0], 2).await.unwrap();
    let left = running.explain(&claim).await.unwrap().evidence;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].words, SURE_DAY);
    running.erase_event(&events[1], 3).await.unwrap();
    let explained = running.explain(&claim).await.unwrap();
    assert!(explained.evidence.is_empty());
    let stated = document(&explained.claim);
    assert_eq!(
        (&stated["status"], &stated["object"]["value"]),
        (&Value::from("retracted"), &Value::Null)
    );
    running.erase_subject(4).await.unwrap();
    let gone = refused(Code::FailedPrecondition, "SUBJECT_ERASED");
    assert_eq!(refusal(running.explain(&claim).await), gone);
}

#[tokio::test]
async fn an_item_that_comes_again_adds_no_words() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    let again = crate::documents::batch(vec![item("m1", "Launch", &[DAY])], 2);
    running.capture(again).await.unwrap();
    let claim = claim_of(&running, "2030-02-01").await;
    let evidence = running.explain(&claim).await.unwrap().evidence;
    assert_eq!(evidence.len(), 1);
}

#[tokio::test]
async fn nobody_else_learns_where_a_claim_comes_from() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    let claim = claim_of(&running, "2030-02-01").await;
    let request = |tenant: &str, subject: &str, claim: &str| ExplainClaimRequest {
        tenant: tenant.to_owned(),
        subject_ref: subject.to_owned(),
        claim_ref: claim.to_owned(),
    };
    let own = request(TENANT, SUBJECT, &claim);
    let not_allowed = refused(Code::PermissionDenied, "CALLER_NOT_ALLOWED");
    for path in [
        "owner/globex",
        "owner/acme/ann",
        "operator/ann",
        "client/acme/agent",
        "exchange/cl-semantic-proxy",
        "exchange/cl-bundle-issuer",
        "edge/cl-gateway",
        "edge/cl-console",
        "vault/cl-capture",
    ] {
        let channel = running.serving.channel(world.authority.credentials(path));
        let mut caller = OwnerServiceClient::new(channel);
        let answer = caller.explain_claim(own.clone()).await;
        assert_eq!(refusal(answer), not_allowed, "{path}");
    }

    // Ids name claims of one subject only, and say nothing of those of others.
    let mut owner = running.owner.clone();
    let missing = refused(Code::NotFound, "CLAIM_NOT_FOUND");
    let unknown = format!("urn:cl:claim:{}", "0".repeat(64));
    for (subject, claim) in [
        ("vault://subjects/other", claim.as_str()),
        (SUBJECT, unknown.as_str()),
        ("vault://subjects/nobody", unknown.as_str()),
    ] {
        let answer = owner.explain_claim(request(TENANT, subject, claim)).await;
        assert_eq!(refusal(answer), missing, "{subject}");
    }
    let long = format!("urn:cl:claim:{}", "a".repeat(2000));
    for claim in ["", "urn:cl:event:a", long.as_str()] {
        let answer = owner.explain_claim(request(TENANT, SUBJECT, claim)).await;
        let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
        assert_eq!(refusal(answer), invalid);
    }
    let foreign = owner
        .explain_claim(request("globex", SUBJECT, &claim))
        .await;
    assert_eq!(refusal(foreign), not_allowed);
}

#[tokio::test]
async fn words_do_not_leave_under_a_grant() {
    let world = World::new().await;
    let running = world.start().await;
    running.take(vec![item("m1", "Launch", &[DAY])], 1).await;
    let grant = GrantDraft::new("r1", &[crate::documents::DATE]);
    let answer = running.resolve(grant.call(2)).await.unwrap();
    assert_eq!(answer.claims.len(), 1);
    let printed = format!("{answer:?}");
    assert!(
        !printed.contains("requested_delivery_date 0.6"),
        "{printed}"
    );
}
