//! Forms that count, and all the others: nothing changes by them (spec 11.1).

use http::Method;

use crate::client::Call;
use crate::items::{decision, item};
use crate::world::{Options, World};

/// Every path that takes forms, with fields that would do.
fn paths() -> [(&'static str, Vec<(&'static str, String)>); 4] {
    let text = |name, value: &str| (name, value.to_owned());
    [
        ("/approvals/one/answer", vec![text("answer", "all")]),
        ("/approvals/one/confirm", vec![]),
        (
            "/access/d1/revoke",
            vec![text("operation_id", "urn:cl:operation:x")],
        ),
        ("/sign-out", vec![]),
    ]
}

#[tokio::test]
async fn forms_of_other_pages_are_refused_and_change_nothing() {
    let world = World::new().await;
    world.engine.put(item("one"));
    world.engine.decide(decision("d1"));
    let person = world.signed_in().await;
    let other = world.signed_in().await;
    let changes = world.engine.changes();
    for (path, fields) in paths() {
        let form = || person.form(path, &fields);
        for (what, call, expected) in [
            (
                "evil origin",
                form().instead("origin", "https://evil.example"),
                "ORIGIN_NOT_ALLOWED",
            ),
            (
                "null",
                form().instead("origin", "null"),
                "ORIGIN_NOT_ALLOWED",
            ),
            (
                "no origin",
                form().instead("origin", ""),
                "ORIGIN_NOT_ALLOWED",
            ),
            (
                "no origin, cross-site",
                form()
                    .instead("origin", "")
                    .instead("sec-fetch-site", "cross-site"),
                "ORIGIN_NOT_ALLOWED",
            ),
            (
                "same-site",
                form().instead("sec-fetch-site", "same-site"),
                "ORIGIN_NOT_ALLOWED",
            ),
            (
                "other session's form",
                other.form(path, &fields).instead("cookie", &person.cookie),
                "FORM_NOT_OF_SESSION",
            ),
            (
                "no csrf",
                Call::post(path, &fields)
                    .header("cookie", &person.cookie)
                    .header("origin", &world.origin),
                "FORM_NOT_OF_SESSION",
            ),
        ] {
            let answer = call.by(&world.client).await;
            assert_eq!(
                answer.refusal(),
                (403, expected.to_owned()),
                "{path}: {what}"
            );
        }
        for media in [
            "text/plain",
            "application/json",
            "multipart/form-data; boundary=a",
            "",
        ] {
            let call = form().instead("content-type", media).body("{}");
            let answer = call.by(&world.client).await;
            assert_eq!(
                answer.refusal(),
                (415, "MEDIA_TYPE_UNSUPPORTED".to_owned()),
                "{path}"
            );
        }
        let large = form().body("a=".to_owned() + &"b".repeat(70_000));
        let answer = large.by(&world.client).await;
        assert_eq!(
            answer.refusal(),
            (413, "FORM_TOO_LARGE".to_owned()),
            "{path}"
        );
    }
    assert_eq!(world.engine.changes(), changes);
    assert!(
        person
            .get("/approvals")
            .await
            .text()
            .contains("/approvals/one")
    );
}

#[tokio::test]
async fn what_changes_something_is_a_form_and_nothing_else() {
    let world = World::new().await;
    world.engine.put(item("one"));
    world.engine.decide(decision("d1"));
    let person = world.signed_in().await;
    let changes = world.engine.changes();
    for path in [
        "/approvals/one/answer?answer=all",
        "/approvals/one/confirm?answer=all",
        "/sign-out?a=b",
        "/sign-in/begin",
        "/enrol/begin",
    ] {
        for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE] {
            let call = Call::new(method, path)
                .header("cookie", &person.cookie)
                .header("origin", &world.origin)
                .header("x-http-method-override", "POST")
                .header("x-http-method", "POST")
                .header("x-method-override", "POST");
            let answer = call.by(&world.client).await;
            assert_eq!(answer.status, 405, "{path}");
            assert_eq!(answer.header("allow"), Some("POST"), "{path}");
        }
    }
    // A look with a method override is a look.
    let call = Call::get("/access/d1/revoke").header("cookie", &person.cookie);
    let answer = call
        .header("x-http-method-override", "POST")
        .by(&world.client)
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(world.engine.changes(), changes);
}

#[tokio::test]
async fn tries_to_get_in_are_bounded() {
    let mut options = Options::default();
    options.limits.tries_per_minute = 1;
    let world = World::with(options).await;
    let visit = world.visit("/sign-in").await;
    let mut answers = Vec::new();
    for _ in 0..30 {
        answers.push(visit.post("/sign-in", &[]).await);
    }
    let last = answers.last().unwrap();
    assert_eq!(last.refusal(), (429, "RATE_LIMITED".to_owned()));
    assert!(last.header("retry-after").is_some());
    let begun = visit.post("/sign-in/begin", &[]).await;
    assert_eq!(begun.status, 429);
    assert_eq!(begun.header("content-type"), Some("application/json"));
    assert_eq!(world.get("/sign-in").await.status, 200, "looking is free");
}

#[tokio::test]
async fn malformed_fields_are_refused_by_code() {
    let world = World::new().await;
    world.engine.put(item("one"));
    let person = world.signed_in().await;
    let field = |name: &'static str, value: &str| (name, value.to_owned());
    person.get("/approvals/one").await;
    let digest = person.get("/approvals/one").await.field("item_digest");
    for fields in [
        vec![],
        vec![field("answer", "all")],
        vec![field("item_digest", &digest)],
        vec![field("item_digest", &digest), field("answer", "maybe")],
        vec![
            field("item_digest", &digest),
            field("answer", "all"),
            field("answer", "deny"),
        ],
        vec![
            field("item_digest", &digest),
            field("answer", "part"),
            field("selector", "requested_delivery_date"),
        ],
        vec![
            field("item_digest", &digest),
            field("answer", "part"),
            field("action", "rm -rf"),
        ],
    ] {
        let answer = person.post("/approvals/one/answer", &fields).await;
        assert_eq!(
            answer.refusal(),
            (400, "FORM_INVALID".to_owned()),
            "{fields:?}"
        );
    }
    let good = person.review("one", &[("answer", "all")]).await;
    for spoilt in [
        "ceremony_id",
        "credential_id",
        "client_data",
        "authenticator_data",
        "signature",
    ] {
        for value in ["", "====", "AAA=", &"A".repeat(8000)] {
            let mut fields = person.confirmation(&good);
            fields.retain(|(name, _)| *name != spoilt);
            fields.push((spoilt, value.to_owned()));
            let answer = person.post("/approvals/one/confirm", &fields).await;
            assert_eq!(
                answer.refusal(),
                (400, "FORM_INVALID".to_owned()),
                "{spoilt}: {value}"
            );
        }
    }
}
