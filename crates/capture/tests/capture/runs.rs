//! Whole runs against a vault over mutual TLS.

use std::fs;
use std::time::Duration;

use cl_capture::error::Error;
use cl_model::digest::Digest;
use serde_json::Value;
use tonic::Code;

use crate::support::{OWNER, SUBJECT, World, fixtures};
use crate::vault::Fault;

const MESSAGES: u64 = 44;

#[tokio::test]
async fn captures_a_folder_of_messages_and_a_repeat_captures_nothing() {
    let world = World::new().await;
    let first = world.run(&fixtures().join("eml")).await.unwrap();
    assert_eq!((first.captured, first.duplicates), (MESSAGES, 0));
    assert_eq!(first.refused_total(), 0, "{:?}", first.refused_items);
    assert_eq!(first.claims, MESSAGES);
    let printed = format!("{first} {}", first.to_json());
    assert!(
        !printed.contains("jonas") && !printed.contains("Lantern"),
        "a report has no content"
    );
    assert!(first.marks["mail.bulk"] >= 1 && first.marks["attachment.tnef_not_read"] == 1);
    let again = world.run(&fixtures().join("eml")).await.unwrap();
    assert_eq!((again.captured, again.duplicates), (0, MESSAGES));
    assert_eq!(world.vault.kept.lock().unwrap().broken.len(), 0);
}

#[tokio::test]
async fn the_vault_gets_the_bytes_as_they_are() {
    let world = World::new().await;
    world.run(&fixtures().join("eml")).await.unwrap();
    let kept = world.vault.kept.lock().unwrap();
    for entry in fs::read_dir(fixtures().join("eml")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let digest = Digest::of_bytes(&bytes).to_string();
        assert_eq!(kept.payloads[&digest], bytes);
    }
}

#[tokio::test]
async fn reads_mbox_and_maildir() {
    let world = World::new().await;
    let mbox = world.run(&fixtures().join("lantern.mbox")).await.unwrap();
    assert_eq!((mbox.captured, mbox.refused_total()), (MESSAGES, 0));
    // The same messages with the same line ends.
    let maildir = world.run(&fixtures().join("maildir")).await.unwrap();
    assert_eq!(
        (
            maildir.captured,
            maildir.duplicates,
            maildir.refused_total()
        ),
        (0, 5, 0)
    );

    let world = World::new().await;
    let maildir = world.run(&fixtures().join("maildir")).await.unwrap();
    assert_eq!((maildir.captured, maildir.refused_total()), (5, 0));
    let kept = world.vault.kept.lock().unwrap();
    let deleted = kept
        .events
        .values()
        .filter(|it| it["deletion"]["reason"] == "maildir.trashed");
    assert_eq!(deleted.count(), 1);
}

#[tokio::test]
async fn an_event_keeps_what_the_source_says_and_no_path() {
    let world = World::new().await;
    world
        .run(&fixtures().join("eml/28-dkim.eml"))
        .await
        .unwrap();
    let kept = world.vault.kept.lock().unwrap();
    let event = kept.events.values().next().unwrap();
    assert_eq!(event["source"]["adapter"], "email");
    assert_eq!(
        event["source"]["native_id_digest"],
        Digest::of_bytes(b"<m28.dkim@lantern.example>").to_string()
    );
    assert_eq!(event["occurred_at"], "2026-10-22T12:00:00.000Z");
    assert_eq!(
        event["original_time"]["text"],
        "Thu, 22 Oct 2026 12:00:00 +0000"
    );
    assert_eq!(event["original_time"]["zone"], "+00:00");
    assert_eq!(event["subject_ref"], SUBJECT);
    assert_eq!(event["trust"], "untrusted");
    let signature = &event["signatures"][0];
    assert_eq!(signature["scheme"], "dkim");
    assert_eq!(signature["signer"], "bank.example");
    assert_eq!(signature["verification"], "unverified");
    let claimed = &event["adapter_data"]["context-layer.email"]["authentication_results"][0];
    assert!(claimed["text"].as_str().unwrap().contains("dkim=pass"));
    assert_eq!(claimed["server"], "mx.solberg.example");
    assert_eq!(claimed["verification"], "unverified");
    let text = event.to_string();
    assert!(!text.contains("fixtures") && !text.contains(OWNER) && !text.contains("Statement"));
}

#[tokio::test]
async fn equal_message_ids_with_other_contents_are_two_events() {
    let world = World::new().await;
    let report = world.run(&fixtures().join("eml")).await.unwrap();
    assert_eq!(report.captured, MESSAGES);
    let kept = world.vault.kept.lock().unwrap();
    let id = Digest::of_bytes(b"<m39.from-line-in-body@lantern.example>").to_string();
    let same = kept
        .events
        .values()
        .filter(|it| it["source"]["native_id_digest"] == Value::String(id.clone()));
    assert_eq!(same.count(), 2);
}

#[tokio::test]
async fn retries_under_the_same_operation_id_and_captures_once() {
    let world = World::new().await;
    world.vault.kept.lock().unwrap().faults = vec![Fault::After, Fault::Before];
    let report = world.run(&fixtures().join("eml")).await.unwrap();
    assert_eq!(report.total(), MESSAGES);
    assert_eq!(report.duplicates, MESSAGES, "the first answer was lost");
    let kept = world.vault.kept.lock().unwrap();
    assert_eq!(kept.operations.len(), 2);
    assert_eq!(kept.operations[0], kept.operations[1]);
    assert_eq!(kept.events.len() as u64, MESSAGES);
}

#[tokio::test]
async fn ends_with_a_clear_error_where_the_vault_stays_away_or_refuses() {
    let world = World::new().await;
    let path = fixtures().join("eml");
    world.vault.kept.lock().unwrap().faults = vec![Fault::Before; 1000];
    let away = world
        .run_as(&path, "vault/cl-capture", Duration::from_millis(300))
        .await;
    assert!(matches!(away, Err(Error::VaultAway(_))), "{away:?}");

    world.vault.kept.lock().unwrap().faults = vec![Fault::Erased];
    let erased = world.run(&path).await;
    let Err(Error::Refused { code, reason }) = erased else {
        panic!("{erased:?}");
    };
    assert_eq!(
        (code, reason.as_str()),
        (Code::FailedPrecondition, "SUBJECT_ERASED")
    );

    let stranger = world
        .run_as(&path, "edge/cl-gateway", Duration::from_secs(5))
        .await;
    assert!(
        matches!(
            stranger,
            Err(Error::Refused {
                code: Code::PermissionDenied,
                ..
            })
        ),
        "{stranger:?}"
    );
    assert_eq!(world.vault.kept.lock().unwrap().events.len(), 0);
}

#[tokio::test]
async fn large_payloads_are_stored_apart() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let middle = format!(
        "From: a@b.example\r\nMessage-ID: <big@b.example>\r\n\r\n{}",
        "line of text\r\n".repeat(200_000)
    );
    fs::write(folder.path().join("a.eml"), &middle).unwrap();
    fs::write(folder.path().join("note.txt"), "no mail").unwrap();
    let report = world.run(folder.path()).await.unwrap();
    assert_eq!(
        (report.captured, report.refused_total()),
        (1, 0),
        "{report:?}"
    );
    let kept = world.vault.kept.lock().unwrap();
    assert_eq!(
        kept.payloads[&Digest::of_bytes(middle.as_bytes()).to_string()],
        middle.as_bytes()
    );
    assert!(
        kept.contents
            .values()
            .next()
            .unwrap()
            .marks
            .contains(&"text.cut".to_owned())
    );
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_a_code_and_the_rest_goes_on() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.eml"), "").unwrap();
    fs::write(
        folder.path().join("b.eml"),
        "From: a@b.example\r\n\r\nhello\r\n",
    )
    .unwrap();
    fs::write(folder.path().join("c.eml"), [0xff_u8, 0xfe, 0, 0, 1, 2, 3]).unwrap();
    let report = world.run(folder.path()).await.unwrap();
    assert_eq!(report.captured, 1);
    assert_eq!(report.refused["NOT_A_MESSAGE"], 2);
    assert!(report.to_string().contains("NOT_A_MESSAGE"));
    assert_eq!(
        report.to_json()["refused_items"].as_array().unwrap().len(),
        2
    );

    let missing = world.run(&folder.path().join("missing")).await;
    assert!(matches!(missing, Err(Error::Path(_))), "{missing:?}");
}

#[tokio::test]
async fn a_message_beyond_the_bound_is_stored_and_not_read() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let large = format!(
        "From: a@b.example\nMessage-ID: <huge@b.example>\nContent-Type: multipart/mixed; boundary=q\n\n\
         --q\n\nPlease pay EUR 5.00 by 3 November 2026.\n\n--q\nContent-Type: application/pdf\n\n{}",
        "line of text\n".repeat(400_000)
    );
    let mbox = format!(
        "From - Thu Oct 29 08:02:11 2026\nSubject: small\n\nx\n\nFrom - Thu Oct 29 08:02:11 2026\n{large}\n"
    );
    fs::write(folder.path().join("all.mbox"), mbox).unwrap();
    fs::write(folder.path().join("one.eml"), &large).unwrap();
    let report = world.run(folder.path()).await.unwrap();
    assert_eq!((report.captured, report.duplicates), (2, 1), "{report:?}");
    assert_eq!(report.marks["message.too_large"], 2);
    let kept = world.vault.kept.lock().unwrap();
    let digest = Digest::of_bytes(large.as_bytes()).to_string();
    assert_eq!(kept.payloads[&digest].len(), large.len());
    let key = kept
        .events
        .keys()
        .find(|key| key.ends_with(&digest))
        .unwrap();
    assert!(!kept.contents.contains_key(key));
    let described = &kept.events[key]["adapter_data"]["context-layer.email"]["attachments"];
    assert_eq!(
        described.as_array().map(Vec::len),
        Some(0),
        "a part that was cut"
    );
    let native = Digest::of_bytes(b"<huge@b.example>").to_string();
    assert_eq!(kept.events[key]["source"]["native_id_digest"], native);
}

#[tokio::test]
async fn an_event_follows_its_upload_at_once() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    for (name, lines) in [("a", 100_000), ("b", 100_000), ("c", 1), ("d", 1)] {
        let text = "line of text\r\n".repeat(lines);
        let message = format!("From: a@b.example\r\nMessage-ID: <{name}@b>\r\n\r\n{text}");
        fs::write(folder.path().join(name).with_extension("eml"), message).unwrap();
    }
    let report = world.run(folder.path()).await.unwrap();
    assert_eq!(report.captured, 4);
    let batches = world.vault.kept.lock().unwrap().operations.len();
    assert_eq!(batches, 3, "one for each upload, and one for the rest");
}
