//! The headers of every answer.

use http::Method;

use crate::client::{Answer, Call};
use crate::items::{decision, item};
use crate::world::World;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

fn check(what: &str, answer: &Answer) {
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("strict-transport-security", "max-age=63072000"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{what}: {name}");
    }
    let permissions = answer.header("permissions-policy").unwrap();
    assert!(
        permissions.contains("publickey-credentials-get=(self)"),
        "{what}"
    );
    let keeps = answer.header("cache-control").unwrap();
    let is_asset = what.contains("/assets/") && answer.status == 200;
    let expected = if is_asset {
        "public, max-age=31536000, immutable"
    } else {
        "no-store"
    };
    assert_eq!(keeps, expected, "{what}");
    for cookie in answer.headers.get_all("set-cookie") {
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.starts_with("__Host-cl-"), "{what}: {cookie}");
        for attribute in ["; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict"] {
            assert!(cookie.contains(attribute), "{what}: {cookie}");
        }
        assert!(!cookie.contains("Domain"), "{what}: {cookie}");
    }
    let is_page = answer
        .header("content-type")
        .is_some_and(|it| it.starts_with("text/html"));
    if is_page && !what.starts_with("HEAD") {
        let text = answer.text();
        for inline in [
            "<style",
            " style=",
            " onclick=",
            "javascript:",
            "<base",
            "<iframe",
        ] {
            assert!(!text.contains(inline), "{what}: {inline}");
        }
        assert_eq!(text.matches("<script").count(), 1, "{what}");
        assert!(
            text.contains("<html lang=\"en\">") && text.contains("<main"),
            "{what}"
        );
        assert_eq!(text.matches("<h1").count(), 1, "{what}");
    }
}

const GETS: [&str; 18] = [
    "/",
    "/sign-in",
    "/sign-in/begin",
    "/sign-out",
    "/enrol",
    "/enrol/begin",
    "/approvals",
    "/approvals/one",
    "/approvals/unknown",
    "/approvals/one/answer",
    "/access",
    "/access/d1/revoke",
    "/access/unknown/revoke",
    "/decisions",
    "/receipts",
    "/receipts/unknown",
    "/assets/console-0000000000000000.js",
    "/nowhere",
];

#[tokio::test]
async fn every_answer_of_every_route_is_protected() {
    let world = World::new().await;
    world.engine.put(item("one"));
    world.engine.decide(decision("d1"));
    let person = world.signed_in().await;
    let page = world.get("/sign-in").await.text();
    let assets = page.split('"').filter(|it| it.starts_with("/assets/"));
    let assets: Vec<String> = assets.map(str::to_owned).collect();
    assert_eq!(assets.len(), 3);
    for path in GETS.into_iter().chain(assets.iter().map(String::as_str)) {
        check(&format!("anonymous {path}"), &world.get(path).await);
        check(&format!("person {path}"), &person.get(path).await);
        for method in [
            Method::PUT,
            Method::DELETE,
            Method::PATCH,
            Method::OPTIONS,
            Method::HEAD,
        ] {
            let what = format!("{method} {path}");
            let answer = Call::new(method, path).header("cookie", &person.cookie);
            check(&what, &answer.by(&world.client).await);
        }
        // One of them signs out.
        let sender = world.signed_in().await;
        check(&format!("post {path}"), &sender.post(path, &[]).await);
        let bare = Call::post(path, &[]).by(&world.client).await;
        check(&format!("bare post {path}"), &bare);
        let text = sender.form(path, &[]).instead("content-type", "text/plain");
        check(&format!("text {path}"), &text.by(&world.client).await);
    }
    let long = format!("/{}", "a".repeat(4000));
    let answer = world.get(&long).await;
    assert_eq!(answer.refusal(), (414, "ADDRESS_TOO_LONG".to_owned()));
    check("long", &answer);
    let review = person.review("one", &[("answer", "all")]).await;
    check("review", &review);
    let fields = person.confirmation(&review);
    check(
        "result",
        &person.post("/approvals/one/confirm", &fields).await,
    );
}

#[tokio::test]
async fn assets_are_named_by_their_content() {
    let world = World::new().await;
    let page = world.get("/sign-in").await.text();
    for path in page.split('"').filter(|it| it.starts_with("/assets/")) {
        let answer = world.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let other = path.replace("-", "-0");
        assert_eq!(
            world.get(&other).await.refusal(),
            (404, "NOT_FOUND".to_owned())
        );
    }
}
