//! Private words stay out of logs, errors, metrics, receipts and the data folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cl_kv::RocksEngine;
use cl_model::time::UnixTime;
use cl_testbed::{eventually, logs};
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::RequestState;
use serde_json::{Value, json};

use crate::documents::{NOW_MS, TENANT, operation, snapshot, submission};
use crate::people::grant_all;
use crate::support::{Running, World, decision};

/// One word for each private field, so that a leak names its source.
const WORDS: [&str; 8] = [
    "canarysubject",
    "canaryagent",
    "canarydevice",
    "canaryrecipient",
    "canarypurpose",
    "canarypredicate",
    "canaryaction",
    "canaryrequestid",
];

fn private_snapshot() -> Value {
    let mut document = snapshot("canaryversion");
    let policy = &mut document["policy"];
    policy["allowed_subjects"] = json!(["vault://subjects/canarysubject"]);
    policy["allowed_requesters"] = json!(["urn:agent:canaryagent"]);
    policy["allowed_clients"] = json!(["urn:device:canarydevice"]);
    policy["allowed_recipients"] = json!(["urn:model:canaryrecipient"]);
    policy["allowed_selectors"] = json!(["canarypredicate"]);
    policy["allowed_actions"] = json!(["canaryaction"]);
    document["predicates"]["canarypredicate"] = json!({"datatype": "text"});
    document["clients"] = json!([{
        "client_instance": "urn:device:canarydevice", "principals": ["urn:agent:canaryagent"],
    }]);
    document
}

fn private_request() -> Value {
    let mut request = crate::documents::request("canaryrequestid");
    request["issuer"]["id"] = json!("urn:agent:canaryagent");
    request["subject_ref"] = json!("vault://subjects/canarysubject");
    request["requester"] = json!({
        "principal": "urn:agent:canaryagent",
        "authenticated_by": "oauth2",
        "client_instance": "urn:device:canarydevice",
    });
    request["recipient"]["principal"] = json!("urn:model:canaryrecipient");
    request["purpose"] = json!("canarypurpose");
    request["selectors"] = json!([{"predicate": "canarypredicate"}]);
    request["requested_actions"] = json!(["canaryaction"]);
    request
}

fn assert_clean(place: &str, bytes: &[u8], words: &[&str]) {
    for word in words {
        let found = bytes.windows(word.len()).any(|it| it == word.as_bytes());
        assert!(!found, "{word} in {place}");
    }
}

fn files(folder: &Path, visit: &mut impl FnMut(&Path, &[u8])) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, visit);
        } else {
            visit(&path, &fs::read(&path).unwrap());
        }
    }
}

#[tokio::test]
async fn private_words_appear_nowhere_but_in_answers() {
    let in_lists = private_snapshot();
    let in_cedar = cl_policy_cedar::translate(&in_lists).unwrap();
    for snapshot in [in_lists, in_cedar] {
        assert_private_words_stay(&snapshot).await;
    }
}

/// Sets what operators can set, with private words in it, and returns refusals of the same.
async fn operate(running: &Running, snapshot: &Value) -> Vec<tonic::Status> {
    let mut candidate = snapshot.clone();
    candidate["version"] = json!("canaryversion-2");
    candidate["limits"] = json!({"max_lifetime_seconds": 1});
    let digest = running.put(TENANT, &candidate, 0x20).await.unwrap();
    let mut admin = running.admin.clone();
    let shadow = wire::SetShadowRequest {
        tenant: TENANT.to_owned(),
        digest,
        operation_id: operation(0x21),
    };
    admin.set_shadow(shadow).await.unwrap();
    let mut set = wire::SetAnomalyStateRequest {
        tenant: TENANT.to_owned(),
        requester: "urn:agent:canaryagent".to_owned(),
        state: "elevated".to_owned(),
        operation_id: operation(0x22),
    };
    admin.set_anomaly_state(set.clone()).await.unwrap();
    set.state = "Canarypredicate".to_owned();
    let refused = admin.set_anomaly_state(set.clone()).await.unwrap_err();
    set.state = "severe".to_owned();
    let conflict = admin.set_anomaly_state(set.clone()).await.unwrap_err();
    let clear = wire::ClearAnomalyStateRequest {
        tenant: set.tenant,
        requester: set.requester,
        operation_id: operation(0x23),
    };
    admin.clear_anomaly_state(clear).await.unwrap();
    let mut delegation = wire::SetDelegationRequest {
        tenant: TENANT.to_owned(),
        subject: "vault://subjects/canarysubject".to_owned(),
        delegate: "urn:agent:canaryagent".to_owned(),
        purpose_codes: vec!["draft.response".to_owned()],
        predicates: vec!["canarypredicate".to_owned()],
        expires_at: Some(cl_wire::time::to_message(
            UnixTime::from_milliseconds(NOW_MS).plus_seconds(600),
        )),
        operation_id: operation(0x24),
    };
    admin.set_delegation(delegation.clone()).await.unwrap();
    delegation.predicates.push("Canarypredicate".to_owned());
    let unnamed = admin.set_delegation(delegation).await.unwrap_err();
    vec![refused, conflict, unnamed]
}

async fn assert_private_words_stay(snapshot: &Value) {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(folder.path()).unwrap();
    let running = world.start_on(Arc::new(engine)).await;
    let mut limited = snapshot.clone();
    limited["limits"]["rates"] =
        json!([{"max_requests": 9, "window_seconds": 60, "by": ["subject", "purpose"]}]);
    running.activate_new(&limited, None).await;
    let mut refusals = operate(&running, snapshot).await;
    let mut message = submission(&private_request(), 1);
    let facts = message.facts.as_mut().unwrap();
    facts.principal = "urn:agent:canaryagent".to_owned();
    facts.client_instance = "urn:device:canarydevice".to_owned();
    let status = running.submit(message.clone()).await.unwrap();
    assert_eq!(status.state(), RequestState::Decided);
    assert_eq!(decision(&status)["decision"], "allow");

    // Errors of every kind, with the same words in them.
    let mut conflicting = private_request();
    conflicting["purpose"] = json!("canarypurpose, another");
    let mut again = message.clone();
    again.request = crate::documents::bytes(&conflicting);
    refusals.push(running.submit(again).await.unwrap_err());
    let mut broken = message.clone();
    broken.request.pop();
    refusals.push(running.submit(broken).await.unwrap_err());
    world.receipts.set_append_down(true);
    let mut other = private_request();
    other["id"] = json!("urn:cl:request:canaryrequestid2");
    let mut unsettled = submission(&other, 2);
    unsettled.facts = message.facts.clone();
    refusals.push(running.submit(unsettled).await.unwrap_err());
    world.receipts.set_append_down(false);
    for refusal in &refusals {
        assert_clean("an error", format!("{refusal:?}").as_bytes(), &WORDS);
        assert_clean("its details", refusal.details(), &WORDS);
    }

    // The shadow decides otherwise, which is logged and counted.
    let otherwise = || running.telemetry.prometheus_text().unwrap();
    let is_counted = || otherwise().contains("outcome=\"different\"");
    eventually("the shadow", is_counted).await;
    let metrics = running.telemetry.prometheus_text().unwrap();
    assert!(metrics.contains("policy_decisions_total"), "{metrics}");
    assert_clean("metrics", metrics.as_bytes(), &WORDS);
    let logged = logs().into_bytes();
    assert!(!logged.is_empty());
    assert_clean("logs", &logged, &WORDS);
    // A receipt may refer to the request by its opaque id, and to nothing else of it.
    for recorded in world.receipts.log() {
        assert_clean(
            "a receipt",
            recorded.receipt.to_string().as_bytes(),
            &WORDS[..7],
        );
    }
    running.kill().await;
    let mut count = 0;
    files(folder.path(), &mut |path, bytes| {
        count += 1;
        assert_clean(&path.display().to_string(), bytes, &WORDS);
        assert_clean(&path.display().to_string(), bytes, &["canaryversion"]);
    });
    assert!(count > 1);
}

#[tokio::test]
async fn people_their_tokens_and_their_answers_appear_nowhere_but_in_answers() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(folder.path()).unwrap();
    let running = world.start_on(Arc::new(engine)).await;
    let mut document = private_snapshot();
    document["policy"]["approval_required_selectors"] = json!(["canarypredicate"]);
    document["policy"]["allowed_selectors"] = json!([]);
    document["approvers"] = json!([{
        "principal": "urn:person:canaryperson",
        "subjects": ["vault://subjects/canarysubject"],
    }]);
    running.activate_new(&document, None).await;
    let person = running.person("urn:person:canaryperson", 0x100).await;
    let link = running
        .link("urn:person:canaryperson", 0x110)
        .await
        .unwrap();
    let mut message = submission(&private_request(), 1);
    let facts = message.facts.as_mut().unwrap();
    facts.principal = "urn:agent:canaryagent".to_owned();
    facts.client_instance = "urn:device:canarydevice".to_owned();
    running.submit(message).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = grant_all(&person.session, &item);
    let shown = format!("{item:?} {answer:?}");

    // Refusals first, then the answer that fits.
    let first = running.begin_answer(answer.clone()).await.unwrap();
    let ceremony = first.ceremony.unwrap();
    let wrong = person.authenticator.sign(&[0; 32]).unwrap();
    let mut refusals = vec![
        running
            .finish_answer(&person.session, &ceremony, wrong, 2)
            .await
            .unwrap_err(),
        running.queue(&[1; 32]).await.unwrap_err(),
    ];
    let mut narrower = answer.clone();
    narrower.granted_selectors.clear();
    refusals.push(running.begin_answer(narrower).await.unwrap_err());
    let second = running.begin_answer(answer.clone()).await.unwrap();
    let shown = format!("{shown} {second:?}");
    let ceremony = second.ceremony.unwrap();
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let signature = signed.signature.clone();
    let taken = running
        .finish_answer(&person.session, &ceremony, signed, 3)
        .await;
    assert_eq!(taken.unwrap().state(), RequestState::Decided);

    let words: Vec<&str> = WORDS.iter().copied().chain(["canaryperson"]).collect();
    for refusal in &refusals {
        assert_clean("an error", format!("{refusal:?}").as_bytes(), &words);
    }
    assert_clean("messages as they are printed", shown.as_bytes(), &words);
    let metrics = running.telemetry.prometheus_text().unwrap();
    assert!(metrics.contains("policy_answers_total"), "{metrics}");
    assert_clean("metrics", metrics.as_bytes(), &words);
    let logged = logs().into_bytes();
    assert_clean("logs", &logged, &words);
    for recorded in world.receipts.log() {
        let text = recorded.receipt.to_string();
        let without_id: Vec<&str> = words.iter().copied().filter(|it| *it != WORDS[7]).collect();
        assert_clean("a receipt", text.as_bytes(), &without_id);
    }
    running.kill().await;
    let encode = |bytes: &[u8]| data_encoding::BASE64URL_NOPAD.encode(bytes);
    let secrets = [&person.session, &link, &signature];
    for secret in secrets {
        let (text, hex) = (encode(secret), data_encoding::HEXLOWER.encode(secret));
        assert_clean("logs", &logged, &[&text, &hex]);
    }
    files(folder.path(), &mut |path, bytes| {
        let place = path.display().to_string();
        assert_clean(&place, bytes, &words);
        for secret in secrets {
            let found = bytes
                .windows(secret.len())
                .any(|it| it == secret.as_slice());
            assert!(!found, "a secret in {place}");
        }
    });
}
