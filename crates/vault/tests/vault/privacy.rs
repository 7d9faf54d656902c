//! Private words stay out of logs, errors, metrics, receipts and the data folders, also after an
//! erasure.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cl_kv::RocksEngine;
use cl_model::digest::Digest;
use cl_testbed::logs;
use cl_wire::vault::v1::captured_item::{Content, Payload};
use cl_wire::vault::v1::{
    CaptureEventsRequest, CapturedItem, EraseEventRequest, ExplainClaimRequest, ListClaimsRequest,
    Mailbox, Meeting, MeetingTime,
};
use serde_json::json;

use crate::documents::{
    DATE, GrantDraft, batch, bytes, event_without_id, finalized, mail, operation,
    proposal_without_id, submission,
};
use crate::support::{Running, World, document};

/// One word for each private field, so that a leak names its source.
const WORDS: [&str; 10] = [
    "canarysubject",
    "canarynative",
    "canarypayload",
    "canarytopic",
    "canaryvalue",
    "canaryaddress",
    "canaryowner",
    "canarycategory",
    "canaryrationale",
    "canaryorganizer",
];

const SUBJECT: &str = "vault://subjects/canarysubject";

fn private_batch(number: u32) -> CaptureEventsRequest {
    let payload = b"canarypayload".to_vec();
    let mut event = event_without_id("canarynative", &payload);
    event["subject_ref"] = json!(SUBJECT);
    event["source"]["native_id_ref"] = json!("urn:message:canarynative");
    event["classification"] = json!(["canarycategory"]);
    let lines = [
        r#"requesting_stakeholder 0.7 "canaryvalue""#,
        r#"requested_delivery_date 0.7 "2030-02-01""#,
    ];
    let mut content = mail("canarytopic", &lines);
    content.from.as_mut().unwrap().address = "canaryaddress@example.org".to_owned();
    content.meetings.push(Meeting {
        series_digest: Digest::of_bytes(b"series").to_string(),
        organizer: Some(Mailbox {
            address: "canaryorganizer@example.org".to_owned(),
            name: "canaryorganizer".to_owned(),
        }),
        times: vec![MeetingTime {
            time: "2030-02-07".to_owned(),
            occurrence: "2030-02-07".to_owned(),
        }],
        ..Meeting::default()
    });
    let mut message = batch(
        vec![CapturedItem {
            event: bytes(&finalized(event)),
            payload: Some(Payload::Inline(payload)),
            content: Some(Content::Mail(content)),
        }],
        number,
    );
    message.subject_ref = SUBJECT.to_owned();
    message.owner_addresses = vec!["canaryowner@example.org".to_owned()];
    message
}

fn private_grant() -> GrantDraft {
    let mut request = crate::documents::request("r1", &[DATE]);
    request["subject_ref"] = json!(SUBJECT);
    GrantDraft::of(request, &["memory.propose", "email.create_draft"])
}

/// How many of the private claims show the words that they came from.
async fn explained(running: &Running) -> usize {
    let of_subject = ListClaimsRequest {
        tenant: "acme".to_owned(),
        subject_ref: SUBJECT.to_owned(),
        ..ListClaimsRequest::default()
    };
    let mut owner = running.owner.clone();
    let listed = owner.list_claims(of_subject).await.unwrap().into_inner();
    let mut shown = 0;
    for entry in listed.claims {
        let request = ExplainClaimRequest {
            tenant: "acme".to_owned(),
            subject_ref: SUBJECT.to_owned(),
            claim_ref: document(&entry.claim)["id"].as_str().unwrap().to_owned(),
        };
        let answer = owner.explain_claim(request).await.unwrap().into_inner();
        shown += answer
            .evidence
            .iter()
            .filter(|it| !it.words.is_empty())
            .count();
    }
    shown
}

fn assert_clean(place: &str, bytes: &[u8]) {
    for word in WORDS {
        let found = bytes.windows(word.len()).any(|it| it == word.as_bytes());
        assert!(!found, "{word} in {place}");
    }
}

fn assert_clean_folder(folder: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += assert_clean_folder(&path);
        } else {
            count += 1;
            assert_clean(&path.display().to_string(), &fs::read(&path).unwrap());
        }
    }
    count
}

#[tokio::test]
async fn private_words_appear_nowhere_but_in_answers() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let folder = folder.path().join(name);
        Arc::new(RocksEngine::open(&folder).unwrap())
    };
    let running = world.start_on(open("keys"), open("data"), true).await;
    running.capture(private_batch(1)).await.unwrap();
    let answer = running.resolve(private_grant().call(2)).await.unwrap();
    assert_eq!(answer.claims.len(), 1);
    assert!(!answer.leak_guard.unwrap().fingerprints.is_empty());
    assert!(!format!("{:?}", answer.claims).contains("canary"));
    // Two of the message, two of its invitation.
    assert_eq!(explained(&running).await, 4);
    let mut proposal = proposal_without_id(&[]);
    proposal["rationale"] = json!("canaryrationale");
    running.propose(submission(proposal, 3)).await.unwrap();

    // Errors of several kinds, with the same words in them.
    let mut again = private_batch(1);
    again.owner_addresses.clear();
    let mut refusals = vec![running.capture(again).await.unwrap_err()];
    let mut large = private_batch(4);
    large.items = vec![large.items[0].clone(); 65];
    refusals.push(running.capture(large).await.unwrap_err());
    let mut broken = private_grant().call(5);
    broken.request.pop();
    refusals.push(running.resolve(broken).await.unwrap_err());
    let other_audience = private_grant().with(|grant| grant.plan["audiences"] = json!(["urn:x"]));
    refusals.push(running.resolve(other_audience.call(5)).await.unwrap_err());
    let mut stranger = proposal_without_id(&[]);
    stranger["subject_ref"] = json!("urn:cl:alias:canarysubject");
    refusals.push(running.propose(submission(stranger, 6)).await.unwrap_err());
    world.receipts.set_append_down(true);
    let mut unsettled = private_batch(7);
    unsettled.owner_addresses.clear();
    refusals.push(running.capture(unsettled).await.unwrap_err());
    world.receipts.set_append_down(false);
    let unknown = running.explain("urn:cl:claim:canaryvalue").await;
    refusals.push(unknown.unwrap_err());
    let missing = EraseEventRequest {
        tenant: "acme".to_owned(),
        subject_ref: SUBJECT.to_owned(),
        event_ref: "urn:cl:event:canarynative".to_owned(),
        operation_id: operation(8),
    };
    let mut owner = running.owner.clone();
    refusals.push(owner.erase_event(missing).await.unwrap_err());
    for refusal in &refusals {
        assert_clean("an error", format!("{refusal:?}").as_bytes());
        assert_clean("its details", refusal.details());
    }

    let metrics = running.telemetry.prometheus_text().unwrap();
    assert!(metrics.contains("vault_items_total"), "{metrics}");
    assert_clean("metrics", metrics.as_bytes());
    let logged = logs().into_bytes();
    assert!(!logged.is_empty());
    assert_clean("logs", &logged);
    for recorded in world.receipts.log() {
        assert_clean("a receipt", recorded.receipt.to_string().as_bytes());
        assert_clean("its routing", format!("{:?}", recorded.routing).as_bytes());
    }
    assert!(assert_clean_folder(folder.path()) > 2);
    let erase = cl_wire::vault::v1::EraseSubjectRequest {
        tenant: "acme".to_owned(),
        subject_ref: SUBJECT.to_owned(),
        operation_id: operation(9),
    };
    owner.erase_subject(erase).await.unwrap();
    running.kill().await;
    assert!(assert_clean_folder(folder.path()) > 2);
}

/// The wrapped data key is in the key store's files, and after the erasure in none of them, so
/// that what is left of the data, and every copy of it, cannot be opened.
#[tokio::test]
async fn an_erased_subjects_wrapped_key_is_in_no_file() {
    use cl_kv::{Engine, Scan};

    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let keys = Arc::new(RocksEngine::open(&folder.path().join("keys")).unwrap());
    let data = Arc::new(RocksEngine::open(&folder.path().join("data")).unwrap());
    let running = world.start_on(keys.clone(), data, true).await;
    running.capture(private_batch(1)).await.unwrap();
    let stored = keys.scan(&Scan::new([], usize::MAX)).unwrap();
    let wrapped = stored
        .into_iter()
        .find(|entry| entry.key.windows(5).any(|window| window == b"key\0\x01"))
        .unwrap();
    let holds = |path: &Path| {
        let wrapped = &wrapped.stored.value;
        walk(path).iter().any(|bytes| {
            bytes
                .windows(wrapped.len())
                .any(|window| window == wrapped.as_slice())
        })
    };
    assert!(holds(folder.path()));
    let erase = cl_wire::vault::v1::EraseSubjectRequest {
        tenant: "acme".to_owned(),
        subject_ref: SUBJECT.to_owned(),
        operation_id: operation(9),
    };
    running.owner.clone().erase_subject(erase).await.unwrap();
    assert!(!holds(folder.path()));
}

fn walk(folder: &Path) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents.extend(walk(&path));
        } else {
            contents.push(fs::read(&path).unwrap());
        }
    }
    contents
}
