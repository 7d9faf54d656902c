//! Contradicting claims stay side by side, and say so.

use cl_model::digest::Digest;
use cl_wire::vault::v1::CapturedItem;
use cl_wire::vault::v1::captured_item::Content;
use serde_json::{Value, json};

use crate::documents::{DATE, GrantDraft, PERSON, item};
use crate::support::{World, values};

const FIRST: &str = r#"requested_delivery_date 0.6 "2030-02-01""#;
const SECOND: &str = r#"requested_delivery_date 0.8 "2030-02-09""#;

fn find<'a>(claims: &'a [Value], value: &str) -> &'a Value {
    let mut found = claims
        .iter()
        .filter(|claim| claim["object"]["value"] == value);
    found.next().unwrap()
}

#[tokio::test]
async fn contradicting_claims_name_each_other_and_both_stay() {
    let world = World::new().await;
    let running = world.start().await;
    let events = running
        .take(
            vec![
                item("m1", "Launch", &[FIRST]),
                item("m2", "Re: launch", &[SECOND]),
                item(
                    "m3",
                    "Something else",
                    &[r#"requested_delivery_date 0.7 "2030-05-05""#],
                ),
            ],
            1,
        )
        .await;
    let claims = running.claim_documents().await;
    let (first, second) = (find(&claims, "2030-02-01"), find(&claims, "2030-02-09"));
    for (one, other) in [(first, second), (second, first)] {
        assert_eq!(one["status"], "disputed");
        assert_eq!(one["contradicts"], json!([other["id"]]));
    }
    let apart = find(&claims, "2030-05-05");
    assert_eq!(apart["status"], "derived");
    assert!(apart.get("contradicts").is_none());

    let answer = running
        .resolve(GrantDraft::new("r1", &[DATE]).call(2))
        .await
        .unwrap();
    let statuses: Vec<_> = answer.claims.iter().map(|it| it.status.as_str()).collect();
    assert_eq!(values(&answer), ["2030-02-09", "2030-02-01", "2030-05-05"]);
    assert_eq!(statuses, ["disputed", "disputed", "derived"]);

    // Where disputed claims may not leave, neither side does.
    let strict = GrantDraft::new("r2", &[DATE]).with(|grant| {
        grant.plan["rules"][0]["statuses"] = json!(["derived"]);
        grant.plan["subject_alias"] = json!("urn:cl:alias:exchange-2");
    });
    let answer = running.resolve(strict.call(3)).await.unwrap();
    assert_eq!(
        (values(&answer), answer.withheld),
        (vec![json!("2030-05-05")], 2)
    );

    // With its source gone, the other side is not disputed any more.
    running.erase_event(&events[1], 4).await.unwrap();
    let claims = running.claim_documents().await;
    assert_eq!(find(&claims, "2030-02-01")["status"], "derived");
    let retracted = claims.iter().find(|claim| claim["status"] == "retracted");
    assert_eq!(retracted.unwrap()["object"]["value"], Value::Null);
}

#[tokio::test]
async fn two_deeds_of_one_message_contradict_only_another_message() {
    let world = World::new().await;
    let running = world.start().await;
    running
        .take(vec![item("m1", "Launch", &[FIRST, SECOND])], 1)
        .await;
    let claims = running.claim_documents().await;
    for value in ["2030-02-01", "2030-02-09"] {
        let claim = find(&claims, value);
        assert_eq!(claim["status"], "derived");
        assert!(claim.get("contradicts").is_none());
    }
    let answer = running
        .resolve(GrantDraft::new("r1", &[DATE]).call(2))
        .await
        .unwrap();
    let statuses: Vec<_> = answer.claims.iter().map(|it| it.status.as_str()).collect();
    assert_eq!(statuses, ["derived", "derived"]);

    let later = r#"requested_delivery_date 0.7 "2030-03-03""#;
    let events = running
        .take(vec![item("m2", "Re: launch", &[later])], 3)
        .await;
    let claims = running.claim_documents().await;
    let third = find(&claims, "2030-03-03");
    for value in ["2030-02-01", "2030-02-09"] {
        let claim = find(&claims, value);
        assert_eq!(claim["status"], "disputed");
        assert_eq!(claim["contradicts"], json!([third["id"]]));
    }
    assert_eq!(third["contradicts"].as_array().unwrap().len(), 2);

    running.erase_event(&events[0], 4).await.unwrap();
    let claims = running.claim_documents().await;
    assert_eq!(find(&claims, "2030-02-01")["status"], "derived");
}

#[tokio::test]
async fn people_and_other_conversations_do_not_contradict() {
    let world = World::new().await;
    let running = world.start().await;
    let in_thread = |item: CapturedItem, thread: &str| {
        let mut item = item;
        let Some(Content::Mail(mail)) = &mut item.content else {
            panic!("mail");
        };
        mail.thread_digest = Some(Digest::of_bytes(thread.as_bytes()).to_string());
        item
    };
    let ann = r#"requesting_stakeholder 0.6 "Ann""#;
    let ben = r#"requesting_stakeholder 0.6 "Ben""#;
    running
        .take(
            vec![
                item("m1", "Launch", &[ann]),
                item("m2", "Launch", &[ben]),
                // One subject line, and by its reader's word two conversations.
                in_thread(item("m3", "Invoice", &[FIRST]), "january"),
                in_thread(item("m4", "Invoice", &[SECOND]), "february"),
            ],
            1,
        )
        .await;
    for claim in running.claim_documents().await {
        assert_eq!(claim["status"], "derived", "{}", claim["predicate"]);
    }
    let answer = running
        .resolve(GrantDraft::new("r1", &[PERSON]).call(2))
        .await
        .unwrap();
    assert_eq!(answer.claims.len(), 2);
}
