//! The whole outbound exchange on captured mail: from a mailbox to facts in a consumer's hands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cl_sdk::{Client, ClientConfig, Credential, Error, Handled, OpenBundle, VerifiedDelivery};
use serde_json::{Value, json};

use crate::deployment::{BUNDLE_ISSUER, Deployment, HANG, PROCESSES, until};

const SUBJECT: &str = "vault://subjects/primary";
const OWNER: &str = "mira@solberg.example";
const RECIPIENT: &str = "urn:cl:model:demo";
const SCOPES: &str = "context.request context.redeem receipt.write receipt.read memory.propose";

/// Amounts, of which the policy lets nothing out.
const DENIED: [&str; 2] = ["1284.50", "300.00"];

/// An instruction that somebody planted in a message.
const PLANTED: &str = "previous instructions";

fn mailbox() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/fixtures/mail/lantern.mbox")
}

pub(crate) fn capture(deployment: &Deployment) -> Value {
    let mailbox = mailbox().display().to_string();
    let subject = ["--subject", SUBJECT, "--owner-address", OWNER];
    let args = ["capture", "mail", &mailbox];
    deployment.clctl(&[&args[..], &subject[..]].concat())
}

/// A consumer with a token of its own.
fn client(deployment: &Deployment, principal: &str) -> Client {
    let minted = deployment.clctl(&["token", "mint", "--sub", principal, "--scope", SCOPES]);
    let file = |name: &str| std::fs::read(deployment.home().join(name)).unwrap();
    Client::connect(ClientConfig {
        gateway: deployment.gateway_url(),
        authorities_pem: file("pki/ca.pem"),
        credential: Credential::bearer(minted["access_token"].as_str().unwrap()),
        recipient: principal.to_owned(),
        trust: file("trust.json"),
    })
    .unwrap()
}

/// Submits the example request; the bundle that is issued for it, at once or a little later.
async fn issued(deployment: &Deployment) -> String {
    let example = deployment.home().join("examples/request.json");
    let answer = deployment.clctl(&["request", &example.display().to_string()]);
    let request = answer["request"].as_str().unwrap();
    until("the bundle", async || {
        let answer = deployment.clctl(&["requests", "show", request]);
        assert!(answer["failure"].is_null(), "{answer}");
        answer["bundle"].as_str().map(str::to_owned)
    })
    .await
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.unwrap_err();
    error.code().unwrap_or("unreachable").to_owned()
}

async fn open(client: &Client, bundle: &str) -> (VerifiedDelivery, OpenBundle) {
    let delivery = client.redeem(bundle, "first").await.unwrap();
    let opened = client.open(&delivery).await.unwrap();
    (delivery, opened)
}

#[tokio::test(flavor = "multi_thread")]
async fn granted_facts_of_a_mailbox_reach_their_recipient_and_nothing_else_does() {
    let deployment = Deployment::start().await;
    let report = capture(&deployment);
    assert!(report["captured"].as_u64().unwrap() > 10, "{report}");
    let again = capture(&deployment);
    assert_eq!(again["captured"], 0, "nothing is stored twice: {again}");

    let bundle = issued(&deployment).await;
    let consumer = client(&deployment, RECIPIENT);
    let (delivery, opened) = open(&consumer, &bundle).await;
    let facts = opened.facts().await.unwrap();
    assert!(!facts.is_empty());
    for fact in &facts {
        let granted = ["requested_delivery_date", "requesting_stakeholder"];
        assert!(granted.contains(&fact.predicate.as_str()), "{fact:?}");
    }
    let said = String::from_utf8_lossy(&delivery.delivery().envelope).into_owned();
    for denied in DENIED {
        assert!(!said.contains(denied), "{denied}");
    }
    for instruction in opened.instructions().await.unwrap() {
        assert!(!instruction.contains(PLANTED), "{instruction}");
    }

    let sent = opened
        .perform("email.send", |_| async { Handled::Nothing })
        .await;
    assert_eq!(code(sent), "CAPABILITY_NOT_GRANTED");
    opened
        .perform("email.create_draft", |_| async { Handled::Nothing })
        .await
        .unwrap();
    assert_eq!(code(consumer.open(&delivery).await), "BUNDLE_REPLAY");
    assert_eq!(
        code(consumer.redeem(&bundle, "second").await),
        "BUNDLE_REPLAY"
    );

    let operations: Vec<_> = deployment
        .receipts()
        .iter()
        .map(|it| it["receipt"]["operation"].as_str().unwrap().to_owned())
        .collect();
    for operation in [
        "vault.capture",
        "policy.decide",
        "vault.resolve",
        "semantic_proxy.project",
        "bundle.issue",
        "bundle.deliver",
        "bundle.consume",
        "email.create_draft",
    ] {
        assert!(operations.iter().any(|it| it == operation), "{operation}");
    }
    assert_eq!(deployment.clctl(&["receipts", "verify"])["verified"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_see_nothing_that_an_unknown_id_would_not_show() {
    let deployment = Deployment::start().await;
    capture(&deployment);
    let bundle = issued(&deployment).await;
    let stranger = client(&deployment, "urn:cl:agent:stranger");
    let unknown = format!("urn:cl:bundle:{}", "0".repeat(64));
    for reference in [&bundle, &unknown] {
        let refused = stranger.redeem(reference, "one").await;
        assert_eq!(code(refused), "BUNDLE_NOT_FOUND", "{reference}");
    }
    // The recipient's own is still there for it.
    client(&deployment, RECIPIENT)
        .redeem(&bundle, "one")
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_redemptions_at_once_one_wins_though_the_issuer_is_killed() {
    let mut deployment = Deployment::start().await;
    capture(&deployment);
    let bundle = issued(&deployment).await;
    let consumer = client(&deployment, RECIPIENT);
    let calls: Vec<_> = (0..64)
        .map(|number| {
            let (consumer, bundle) = (consumer.clone(), bundle.clone());
            tokio::spawn(async move {
                let key = format!("caller-{number}");
                loop {
                    match consumer.redeem(&bundle, &key).await {
                        Ok(_) => return true,
                        Err(error) if error.code() == Some("BUNDLE_REPLAY") => return false,
                        Err(error) => assert!(error.is_retryable(), "{error}"),
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            })
        })
        .collect();
    deployment.kill(BUNDLE_ISSUER);
    deployment.run(BUNDLE_ISSUER).await;
    let mut winners = 0;
    for call in calls {
        let won = tokio::time::timeout(HANG, call).await.expect("an answer");
        winners += usize::from(won.unwrap());
    }
    assert_eq!(winners, 1);
    let delivered = deployment.receipts();
    let delivered = delivered.iter().filter(|it| {
        it["receipt"]["operation"] == "bundle.deliver" && it["receipt"]["outcome"] == "success"
    });
    assert_eq!(delivered.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_repeated_until_the_bundle_is_consumed() {
    let deployment = Deployment::start().await;
    capture(&deployment);
    let bundle = issued(&deployment).await;
    let consumer = client(&deployment, RECIPIENT);
    let first = consumer.redeem(&bundle, "attempt").await.unwrap();
    let again = consumer.redeem(&bundle, "attempt").await.unwrap();
    assert!(again.delivery() == first.delivery());
    consumer.open(&first).await.unwrap();
    assert_eq!(
        code(consumer.redeem(&bundle, "attempt").await),
        "BUNDLE_REPLAY"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_subject_leaves_nothing_readable_and_ends_its_bundles() {
    let deployment = Deployment::start().await;
    capture(&deployment);
    let bundle = issued(&deployment).await;
    let consumer = client(&deployment, RECIPIENT);
    let (_, opened) = open(&consumer, &bundle).await;
    let claims = deployment.clctl(&["claims", "list", "--subject", SUBJECT]);
    assert!(claims["total"].as_u64().unwrap() > 0, "{claims}");

    deployment.clctl(&["subject", "erase", SUBJECT, "--yes"]);
    let claims = deployment.clctl(&["claims", "list", "--subject", SUBJECT]);
    assert_eq!(claims["total"], 0);
    until("the revocation", async || {
        let refused = opened.facts().await;
        (refused.err()?.code() == Some("BUNDLE_REVOKED")).then_some(())
    })
    .await;
    let words = ["mira@solberg", "brandt-druck", "1284.50", "jonas@"];
    assert_absent(&deployment, &words);
}

/// None of the words is in a log, a metric, a receipt or a data folder.
fn assert_absent(deployment: &Deployment, words: &[&str]) {
    let absent = |place: &str, bytes: &[u8]| {
        for word in words {
            let mut windows = bytes.windows(word.len());
            let found = windows.any(|window| window == word.as_bytes());
            assert!(!found, "{word} in {place}");
        }
    };
    for (process, _) in PROCESSES {
        absent(process, deployment.metrics(process).as_bytes());
    }
    absent(
        "receipts",
        json!(deployment.receipts()).to_string().as_bytes(),
    );
    let mut files = Vec::new();
    for folder in ["data", "logs"] {
        crate::privacy::files(&deployment.home().join(folder), &mut files);
    }
    for file in files {
        absent(&file.display().to_string(), &std::fs::read(&file).unwrap());
    }
}
