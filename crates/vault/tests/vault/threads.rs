//! Conversations by the published rules: a change of mind is a branch, a repetition a further source.

use cl_model::digest::Digest;
use cl_wire::vault::v1::captured_item::Content;
use cl_wire::vault::v1::{CapturedItem, TextOrigin, TextPart};
use prost_types::Timestamp;
use serde_json::{Value, json};

use crate::documents::item;
use crate::support::{Running, World};

/// A message of a conversation: what its author writes, and what it quotes below.
fn message(native: &str, thread: &str, text: &str, quoted: &str) -> CapturedItem {
    let mut item = item(native, "Launch", &[text, quoted]);
    let Some(Content::Mail(mail)) = &mut item.content else {
        panic!("mail");
    };
    mail.thread_digest = Some(Digest::of_bytes(thread.as_bytes()).to_string());
    mail.sent_at = Some(Timestamp {
        seconds: 1_893_490_000,
        nanos: 0,
    });
    mail.utc_offset_minutes = Some(0);
    mail.text = [(TextOrigin::Author, text), (TextOrigin::Quoted, quoted)]
        .into_iter()
        .map(|(origin, text)| TextPart {
            origin: origin.into(),
            text: text.to_owned(),
        })
        .collect();
    item
}

async fn claims(running: &Running, predicate: &str) -> Vec<Value> {
    let mut claims = running.claim_documents().await;
    claims.retain(|claim| claim["predicate"] == predicate);
    claims.sort_by_key(|claim| claim["object"]["value"].to_string());
    claims
}

const FIRST: &str = "Please send the deck by 14 March 2030.";
const CHANGED: &str = "Sorry, please send the deck by 21 March 2030 after all.";

#[tokio::test]
async fn a_change_of_mind_is_a_branch_and_nothing_is_lost() {
    for is_turned in [false, true] {
        let world = World::new().await;
        let running = world.start_with_rules().await;
        let mut items = vec![
            message("m1", "t", FIRST, ""),
            message("m2", "t", CHANGED, FIRST),
        ];
        if is_turned {
            items.reverse();
        }
        running.take(items, 1).await;
        let days = claims(&running, "requested_delivery_date").await;
        let values: Vec<_> = days.iter().map(|it| &it["object"]["value"]).collect();
        assert_eq!(values, ["2030-03-14", "2030-03-21"]);
        for (one, other) in [(&days[0], &days[1]), (&days[1], &days[0])] {
            assert_eq!(one["status"], "disputed");
            assert_eq!(one["contradicts"], json!([other["id"]]));
            // The quotation is no second source.
            assert_eq!(one["provenance_refs"].as_array().unwrap().len(), 1);
        }
        // Who asks is one person, with both messages.
        let who = claims(&running, "requesting_stakeholder").await;
        assert_eq!(who.len(), 1);
        assert_eq!(who[0]["status"], "derived");
        assert_eq!(who[0]["provenance_refs"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_repetition_is_a_further_source_and_no_more_certain() {
    let world = World::new().await;
    let running = world.start_with_rules().await;
    let reminder = "A reminder: the deck is due on 14 March 2030.";
    let alone = message("m1", "t", FIRST, "");
    running.take(vec![alone], 1).await;
    let before = claims(&running, "requested_delivery_date").await;
    let events = vec![
        message("m2", "t", reminder, FIRST),
        message("m3", "t", FIRST, ""),
    ];
    running.take(events, 2).await;
    let days = claims(&running, "requested_delivery_date").await;
    assert_eq!(days.len(), 1);
    assert_eq!(days[0]["provenance_refs"].as_array().unwrap().len(), 3);
    assert_eq!(days[0]["confidence"], before[0]["confidence"]);
    assert_eq!(days[0]["status"], "derived");
    let explained = running
        .explain(days[0]["id"].as_str().unwrap())
        .await
        .unwrap();
    let words: Vec<_> = explained
        .evidence
        .iter()
        .map(|it| it.words.as_str())
        .collect();
    assert_eq!(words, [FIRST, reminder, FIRST]);
    for evidence in explained.evidence {
        assert!(evidence.reason.starts_with("A day with its month"));
    }
}

#[tokio::test]
async fn other_conversations_and_other_kinds_of_days_do_not_contradict() {
    let world = World::new().await;
    let running = world.start_with_rules().await;
    running
        .take(
            vec![
                message("m1", "t", FIRST, ""),
                message("m2", "u", CHANGED, ""),
                message("m3", "t", "I will send the logo by 18 March 2030.", FIRST),
                message("m4", "t", "Let's meet on 19 March 2030 at 15:00.", FIRST),
            ],
            1,
        )
        .await;
    for claim in running.claim_documents().await {
        assert_eq!(claim["status"], "derived", "{}", claim["predicate"]);
    }
    for (predicate, value) in [
        ("promised_delivery_date", "2030-03-18"),
        ("meeting_date", "2030-03-19"),
        ("meeting_starts_at", "2030-03-19T15:00:00Z"),
    ] {
        let found = claims(&running, predicate).await;
        assert_eq!(found.len(), 1, "{predicate}");
        assert_eq!(found[0]["object"]["value"], value);
    }
}

#[tokio::test]
async fn a_meeting_that_moves_is_a_branch() {
    let world = World::new().await;
    let running = world.start_with_rules().await;
    running
        .take(
            vec![
                message("m1", "t", "Let's meet on 19 March 2030 at 15:00.", ""),
                message(
                    "m2",
                    "t",
                    "Could we move the meeting to 20 March 2030 at 10:30?",
                    "",
                ),
            ],
            1,
        )
        .await;
    for predicate in ["meeting_date", "meeting_starts_at"] {
        let found = claims(&running, predicate).await;
        assert_eq!(found.len(), 2, "{predicate}");
        assert!(found.iter().all(|it| it["status"] == "disputed"));
    }
}
