//! Who is let in, and how the others are told.

use cl_testbed::{logs, spiffe_id};
use cl_wire::policy::v1::authenticated_facts::BoundKey;
use cl_wire::policy::v1::{AuthenticatedFacts, AuthenticationMethod};
use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::client::{Answer, Call, Client};
use crate::documents::request;
use crate::support::{NOW_S, Options, Running, World};
use crate::tokens::TokenIssuer;

fn unauthenticated() -> (u16, String) {
    (401, "CALLER_UNAUTHENTICATED".to_owned())
}

fn not_allowed() -> (u16, String) {
    (403, "CALLER_NOT_ALLOWED".to_owned())
}

fn read() -> Call {
    Call::read("urn:cl:request:whatever")
}

/// A read that is let in finds nothing.
fn is_let_in(answer: &Answer) -> bool {
    answer.refusal() == (404, "REQUEST_NOT_FOUND".to_owned())
}

#[tokio::test]
async fn nobody_without_a_credential_is_let_in() {
    let world = World::new().await;
    let gateway = world.start().await;
    let answer = read().by(&gateway.client).await;
    assert_eq!(answer.refusal(), unauthenticated());
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    let submit = Call::submit(request("anonymous").to_string());
    let answer = submit.by(&gateway.client).await;
    assert_eq!(answer.refusal(), unauthenticated());
}

#[tokio::test]
async fn the_header_holds_one_bearer_token() {
    let world = World::new().await;
    let gateway = world.start().await;
    let token = &gateway.token;
    let with = |values: &[String]| {
        values
            .iter()
            .fold(read(), |call, value| call.header("authorization", value))
    };
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let answer = with(&[format!("{scheme} {token}")])
            .by(&gateway.client)
            .await;
        assert!(is_let_in(&answer), "{scheme}");
    }
    for values in [
        vec![token.clone()],
        vec!["Bearer".to_owned()],
        vec![format!("Bearer  {token}")],
        vec![format!("Basic {token}")],
        vec![format!("DPoP {token}")],
        vec![format!("Bearer {token}, Bearer {token}")],
        vec![format!("Bearer {token}"), format!("Bearer {token}")],
        vec!["Bearer \u{e9}".to_owned()],
    ] {
        let answer = with(&values).by(&gateway.client).await;
        assert_eq!(answer.refusal(), unauthenticated());
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge, Some("Bearer error=\"invalid_token\""));
    }
}

async fn facts_of(world: &World, client: &Client, call: Call) -> (String, AuthenticatedFacts) {
    let answer = call.by(client).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let submission = world.engine.submissions().pop().unwrap();
    (submission.tenant, submission.facts.unwrap())
}

fn submit(tail: &str) -> Call {
    Call::submit(request(tail).to_string())
}

#[tokio::test]
async fn a_client_certificate_is_principal_and_client_instance() {
    let world = World::new().await;
    let gateway = world.start().await;
    let id = spiffe_id("client/umbrella/robot");
    let client = world.client_as(&gateway, &id);
    let (tenant, facts) = facts_of(&world, &client, submit("certificate")).await;
    assert_eq!(tenant, "umbrella");
    assert_eq!((&facts.principal, &facts.client_instance), (&id, &id));
    assert_eq!(facts.method(), AuthenticationMethod::Mtls);
    assert!(matches!(
        facts.bound_key,
        Some(BoundKey::CertificateThumbprint(_))
    ));
}

#[tokio::test]
async fn certificates_of_other_zones_are_not_allowed() {
    let world = World::new().await;
    let gateway = world.start().await;
    for id in [
        spiffe_id("exchange/cl-policy-engine"),
        spiffe_id("edge/cl-gateway"),
        spiffe_id("operator/ann"),
        spiffe_id("client/Upper/robot"),
        "spiffe://example.com/client/acme/robot".to_owned(),
    ] {
        let client = world.client_as(&gateway, &id);
        let answer = read().by(&client).await;
        assert_eq!(answer.refusal(), not_allowed(), "{id}");
    }
}

#[tokio::test]
async fn a_token_wins_over_the_certificate_of_the_connection() {
    let world = World::new().await;
    let gateway = world.start().await;
    let client = world.client_as(&gateway, &spiffe_id("client/umbrella/robot"));
    let call = submit("both").bearer(&gateway.token);
    let (tenant, facts) = facts_of(&world, &client, call).await;
    assert_eq!(tenant, "acme");
    assert_eq!(facts.method(), AuthenticationMethod::Oauth2);
    assert_eq!(facts.bound_key, None);
    let answer = read().bearer("no.good.token").by(&client).await;
    assert_eq!(answer.refusal(), unauthenticated());
}

#[tokio::test]
async fn a_bound_token_needs_its_certificate() {
    let world = World::new().await;
    let gateway = world.start().await;
    let (certificate, key) = world.authority.client(&spiffe_id("client/umbrella/robot"));
    let thumbprint = BASE64URL_NOPAD.encode(digest(&SHA256, &certificate).as_ref());
    let bound_to = |confirmation| {
        let mut claims = TokenIssuer::claims(NOW_S);
        claims["cnf"] = confirmation;
        world.issuer.token_with(&claims)
    };
    let token = bound_to(json!({"x5t#S256": thumbprint}));
    let holder = gateway.client_with(&world, (certificate, key));
    let (_, facts) = facts_of(&world, &holder, submit("bound").bearer(&token)).await;
    assert_eq!(facts.method(), AuthenticationMethod::Oauth2);
    let bound = BoundKey::CertificateThumbprint(thumbprint.clone());
    assert_eq!(facts.bound_key, Some(bound));

    let other = world.client_as(&gateway, &spiffe_id("client/umbrella/robot"));
    for client in [&gateway.client, &other] {
        let answer = read().bearer(&token).by(client).await;
        assert_eq!(answer.refusal(), unauthenticated());
    }
    for confirmation in [
        json!({"jkt": thumbprint}),
        json!({"x5t#S256": thumbprint, "jkt": thumbprint}),
        json!({"x5t#S256": format!("{thumbprint}=")}),
        json!({}),
        json!(thumbprint),
        json!(null),
    ] {
        let answer = read().bearer(&bound_to(confirmation)).by(&holder).await;
        assert_eq!(answer.refusal(), unauthenticated());
    }
}

#[tokio::test]
async fn without_an_issuer_no_token_counts() {
    let world = World::new().await;
    let options = Options {
        tokens: false,
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let answer = gateway.call(read()).await;
    assert_eq!(answer.refusal(), unauthenticated());
    let client = world.client_as(&gateway, &spiffe_id("client/acme/robot"));
    assert!(is_let_in(&read().by(&client).await));
    let answer = read().bearer(&gateway.token).by(&client).await;
    assert_eq!(answer.refusal(), unauthenticated());
}

async fn is_refused(gateway: &Running) -> bool {
    gateway.call(read()).await.refusal() == unauthenticated()
}

#[tokio::test]
async fn a_clock_that_steps_back_revives_no_token() {
    let world = World::new().await;
    let gateway = world.start().await;
    assert!(!is_refused(&gateway).await);
    world.clock.advance(3_600_000 + 30_000);
    assert!(is_refused(&gateway).await);
    world.clock.advance(-600_000);
    assert!(is_refused(&gateway).await);
    assert!(is_refused(&gateway).await);
    assert!(logs().contains("the clock stepped back"));
}

impl Running {
    fn client_with(
        &self,
        world: &World,
        own: (
            rustls::pki_types::CertificateDer<'static>,
            rustls::pki_types::PrivateKeyDer<'static>,
        ),
    ) -> Client {
        Client::new(self.addr(), world.authority.root(), Some(own))
    }
}
