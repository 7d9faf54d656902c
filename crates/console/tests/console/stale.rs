//! Pages that no longer fit what they show: nothing is granted by them, and they say why.

use cl_wire::policy::v1::{ApprovalState, ScopeTreatment};
use tonic::Code;

use crate::engine::refusal;
use crate::items::item;
use crate::world::World;

#[tokio::test]
async fn a_request_that_was_replaced_shows_the_new_one_with_what_changed() {
    let world = World::new().await;
    let mut old = item("one");
    old.selectors.retain(|it| it.predicate != "amount_due");
    world.engine.put(old);
    let person = world.signed_in().await;
    let digest = person.get("/approvals/one").await.field("item_digest");
    // The requester asks for more, under the same name.
    let mut new = item("two");
    new.request_ref = "urn:cl:request:one".to_owned();
    world.engine.put(new);
    world
        .engine
        .change("one", |it| it.state = ApprovalState::Replaced.into());
    let fields = [("answer", "all".to_owned()), ("item_digest", digest)];
    let page = person.post("/approvals/one/answer", &fields).await;
    assert_eq!(page.refusal(), (409, "APPROVAL_CHANGED".to_owned()));
    let text = page.text();
    assert!(
        text.contains("Amount due is asked for in addition."),
        "{text}"
    );
    assert!(text.contains("Changed since you looked"), "{text}");
    assert!(text.contains("action=\"/approvals/two/answer\""), "{text}");
    assert!(world.engine.answers().is_empty());
}

#[tokio::test]
async fn another_policy_shows_the_item_anew() {
    let world = World::new().await;
    world.engine.put(item("one"));
    let person = world.signed_in().await;
    let review = person.review("one", &[("answer", "all")]).await;
    world.engine.change("one", |it| {
        it.item_digest = it.request_digest.clone();
        it.policy_digest = it.request_digest.clone();
        it.policy_changed = true;
        it.selectors[1].treatment = ScopeTreatment::Denied.into();
    });
    world
        .engine
        .refuse_next(refusal(Code::Aborted, "APPROVAL_POLICY_CHANGED"));
    let page = person
        .post("/approvals/one/confirm", &person.confirmation(&review))
        .await;
    assert_eq!(page.refusal(), (409, "APPROVAL_POLICY_CHANGED".to_owned()));
    let text = page.text();
    assert!(
        text.contains("Amount due: it is denied whatever you answer now."),
        "{text}"
    );
    assert!(text.contains("Another policy is active."), "{text}");
    // A page with the old digest is refused by the console itself.
    let old = [
        ("answer", "all".to_owned()),
        ("item_digest", "sha256:0".to_owned()),
    ];
    let page = person.post("/approvals/one/answer", &old).await;
    assert_eq!(page.refusal(), (409, "APPROVAL_CHANGED".to_owned()));
    assert!(world.engine.answers().is_empty());
}

#[tokio::test]
async fn what_takes_no_answer_any_more_says_so() {
    let world = World::new().await;
    for (name, state, status, code, text) in [
        (
            "a",
            ApprovalState::Expired,
            410,
            "APPROVAL_EXPIRED",
            "This request has expired",
        ),
        (
            "b",
            ApprovalState::Answered,
            409,
            "APPROVAL_ANSWERED",
            "This request was answered",
        ),
        (
            "c",
            ApprovalState::NotNeeded,
            409,
            "APPROVAL_NOT_NEEDED",
            "No answer is needed",
        ),
        (
            "d",
            ApprovalState::Replaced,
            409,
            "APPROVAL_CHANGED",
            "This request was replaced",
        ),
    ] {
        world.engine.put(item(name));
        let person = world.signed_in().await;
        let digest = person
            .get(&format!("/approvals/{name}"))
            .await
            .field("item_digest");
        world.engine.change(name, |it| it.state = state.into());
        let fields = [("answer", "all".to_owned()), ("item_digest", digest)];
        let page = person
            .post(&format!("/approvals/{name}/answer"), &fields)
            .await;
        assert_eq!(page.refusal(), (status, code.to_owned()));
        assert!(page.text().contains(text), "{code}");
        assert!(!page.text().contains("name=\"answer\""), "{code}");
        let look = person.get(&format!("/approvals/{name}")).await;
        assert!(look.status == 200 && look.text().contains(text), "{code}");
    }
    assert!(world.engine.answers().is_empty());
}

#[tokio::test]
async fn a_requester_that_is_gone_gets_nothing() {
    let world = World::new().await;
    world.engine.put(item("one"));
    let person = world.signed_in().await;
    for reason in ["APPROVAL_REQUESTER_GONE", "APPROVER_NOT_ALLOWED"] {
        let review = person.review("one", &[("answer", "all")]).await;
        world
            .engine
            .refuse_next(refusal(Code::PermissionDenied, reason));
        let page = person
            .post("/approvals/one/confirm", &person.confirmation(&review))
            .await;
        assert_eq!(page.refusal(), (403, reason.to_owned()));
    }
    assert!(world.engine.answers().is_empty());
}
