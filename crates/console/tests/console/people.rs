//! Signing in and out, enrolling, and the ends of sessions.

use data_encoding::BASE64URL_NOPAD;
use tonic::Code;

use crate::client::Call;
use crate::engine::refusal;
use crate::items::{PERSON, item};
use crate::world::{Options, World};

#[tokio::test]
async fn a_person_signs_in_and_out() {
    let world = World::new().await;
    assert_eq!(world.get("/").await.header("location"), Some("/sign-in"));
    assert_eq!(
        world.get("/approvals").await.header("location"),
        Some("/sign-in")
    );
    let person = world.signed_in().await;
    assert_eq!(person.get("/").await.header("location"), Some("/approvals"));
    assert_eq!(
        person.get("/sign-in").await.header("location"),
        Some("/approvals")
    );
    assert!(person.get("/approvals").await.text().contains(PERSON));
    let answer = person.post("/sign-out", &[]).await;
    assert_eq!(answer.header("location"), Some("/sign-in"));
    assert!(
        answer.cookie("__Host-cl-session").ends_with('='),
        "taken away"
    );
    assert_eq!(
        person.get("/approvals").await.header("location"),
        Some("/sign-in")
    );
    let late = person.post("/approvals/one/answer", &[]).await;
    assert_eq!(late.refusal(), (401, "SESSION_NOT_OPEN".to_owned()));
}

#[tokio::test]
async fn signing_in_makes_a_new_cookie_and_needs_the_browsers_own_form() {
    let world = World::new().await;
    let visit = world.visit("/sign-in").await;
    let open = visit.begin("/sign-in/begin", &[]).await;
    // Somebody else's page and assertion in this browser: signing a victim in is refused.
    let other = world.visit("/sign-in").await;
    let fields = world.assertion(&open);
    let call = other
        .form("/sign-in", &fields)
        .instead("cookie", &visit.cookie);
    let answer = call.by(&world.client).await;
    assert_eq!(answer.refusal(), (403, "FORM_NOT_OF_SESSION".to_owned()));
    let none = visit.form("/sign-in", &fields).instead("cookie", "");
    assert_eq!(none.by(&world.client).await.code(), "FORM_NOT_OF_SESSION");
    // A planted cookie does not become the session's.
    let planted = format!("__Host-cl-session={}", BASE64URL_NOPAD.encode(&[1; 32]));
    let both = format!("{}; {planted}", visit.cookie);
    let call = visit.form("/sign-in", &fields).instead("cookie", &both);
    let answer = call.by(&world.client).await;
    assert_eq!(answer.status, 303);
    assert_ne!(answer.cookie("__Host-cl-session"), planted);
    let call = Call::get("/approvals").header("cookie", &planted);
    assert_eq!(call.by(&world.client).await.status, 303);
}

#[tokio::test]
async fn a_passkey_that_does_not_count_lets_nobody_in() {
    let world = World::new().await;
    for reason in [
        "CREDENTIAL_INACTIVE",
        "CREDENTIAL_REVOKED",
        "CREDENTIAL_POSSIBLE_CLONE",
    ] {
        let visit = world.visit("/sign-in").await;
        let open = visit.begin("/sign-in/begin", &[]).await;
        world
            .engine
            .refuse_next(refusal(Code::PermissionDenied, reason));
        let answer = visit.post("/sign-in", &world.assertion(&open)).await;
        assert_eq!(answer.refusal(), (403, reason.to_owned()));
        assert!(answer.headers.get("set-cookie").is_none());
    }
}

#[tokio::test]
async fn a_session_that_the_engine_ended_is_over_here_too() {
    let world = World::new().await;
    world.engine.put(item("one"));
    let person = world.signed_in().await;
    let review = person.review("one", &[("answer", "all")]).await;
    world.engine.end_sessions();
    let answer = person
        .post("/approvals/one/confirm", &person.confirmation(&review))
        .await;
    assert_eq!(answer.refusal(), (401, "SESSION_NOT_OPEN".to_owned()));
    assert_eq!(
        person.get("/approvals").await.header("location"),
        Some("/sign-in")
    );
    assert!(world.engine.answers().is_empty());
}

#[tokio::test]
async fn a_link_enrols_one_passkey() {
    let world = World::new().await;
    let token = BASE64URL_NOPAD.encode(&[8; 32]);
    let link = || ("link_token", token.clone());
    let visit = world.visit("/enrol").await;
    let closed = visit.post("/enrol/begin", &[link()]).await;
    assert_eq!(closed.status, 410);
    assert!(closed.text().contains("ENROLMENT_LINK_NOT_OPEN"));
    world.engine.open_link([8; 32]);
    let open = visit.begin("/enrol/begin", &[link()]).await;
    assert_eq!(open["principal"], PERSON);
    assert_eq!(open["rp_id"], "localhost");
    let finish = || {
        let ceremony = open["ceremony_id"].as_str().unwrap();
        let challenge = open["challenge"].as_str().unwrap();
        let mut fields = world.signed(ceremony, challenge, "webauthn.create");
        fields.retain(|(name, _)| matches!(*name, "ceremony_id" | "client_data"));
        fields.push(link());
        fields.push(("attestation_object", BASE64URL_NOPAD.encode(&[1; 200])));
        fields.push((
            "operation_id",
            "urn:cl:operation:0198f1b2-0000-7000-8000-000000000001".to_owned(),
        ));
        fields
    };
    let done = visit.post("/enrol", &finish()).await;
    assert!(
        done.text().contains("0123 4567 89ab cdef 0123"),
        "{}",
        done.text()
    );
    let again = visit.post("/enrol", &finish()).await;
    assert_eq!(again.refusal(), (409, "CEREMONY_NOT_OPEN".to_owned()));
}

#[tokio::test]
async fn an_engine_for_another_place_is_noticed() {
    let options = Options {
        rp_id: "elsewhere.example",
        ..Options::default()
    };
    let world = World::with(options).await;
    let visit = world.visit("/sign-in").await;
    let answer = visit.post("/sign-in/begin", &[]).await;
    assert_eq!(answer.status, 500);
    assert!(answer.text().contains("INTERNAL"));
    assert!(cl_testbed::logs().contains("relying party id is not the host"));
}
