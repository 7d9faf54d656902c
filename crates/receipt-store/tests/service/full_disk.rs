//! A full disk: nothing acknowledged is lost, and the store goes on by itself once there is room.

use std::fs;
use std::os::unix::fs::symlink;

use cl_testbed::{refusal, refused};
use cl_wire::receipt::v1::{AppendRequest, AppendResponse, PreflightRequest};
use tempfile::TempDir;
use tonic::{Code, Status};

use crate::process::Home;
use crate::requests::{append, begin_later, get};
use crate::small_disk::SmallDisk;
use crate::support::{AUDITOR, Client, ENGINE, open_intents, verified_entries, verify_proof_by};

const ROUNDS: u64 = 3;

#[tokio::test]
async fn goes_on_by_itself_once_there_is_room() {
    // Too small for the room that RocksDB would take in advance, so that the disk is full at once.
    let Some(disk) = SmallDisk::mount("12m") else {
        return;
    };
    let home = Home::on(TempDir::new_in(disk.path()).unwrap());
    let process = home.start().await;
    let writer = &mut home.client(&process, ENGINE);
    let auditor = &mut home.client(&process, AUDITOR);
    let mut acknowledged = Vec::new();
    for round in 1..=ROUNDS {
        let mut number = round * 1000;
        let ballast = disk.fill("ballast");
        let status = loop {
            match writer.append(append(number)).await {
                Ok(answer) => acknowledged.push(answer.into_inner()),
                Err(status) => break status,
            }
            number += 1;
        };
        assert!(cl_wire::status::retry_delay(&status).is_some());
        assert_eq!(refusal(Err::<(), _>(status)), unavailable());
        assert_eq!(refusal(preflight(writer).await), unavailable());
        let intent = begin_later(number + 1);
        assert_eq!(refusal(writer.begin(intent.clone()).await), unavailable());
        // Readers are served all the while.
        has_all(&home, auditor, &acknowledged).await;
        fs::remove_file(ballast).unwrap();

        // What was refused is repeated under the same operation id.
        let answer = writer.append(append(number)).await.unwrap().into_inner();
        acknowledged.push(answer);
        preflight(writer).await.unwrap();
        writer.begin(intent).await.unwrap();
        assert_eq!(open_intents(writer).await.total_size, round);
        assert_eq!(verified_entries(auditor).await, acknowledged.len() as u64);
    }
    process.kill().await;
    let process = home.start().await;
    let auditor = &mut home.client(&process, AUDITOR);
    assert_eq!(verified_entries(auditor).await, acknowledged.len() as u64);
    has_all(&home, auditor, &acknowledged).await;
}

#[tokio::test]
async fn goes_on_by_itself_once_there_is_room_for_pins() {
    let Some(disk) = SmallDisk::mount("1m") else {
        return;
    };
    let home = Home::new();
    symlink(disk.path(), home.path().join("pins")).unwrap();
    let process = home.start().await;
    let writer = &mut home.client(&process, ENGINE);
    let auditor = &mut home.client(&process, AUDITOR);
    let mut acknowledged = vec![writer.append(append(1)).await.unwrap().into_inner()];
    for number in 2..=ROUNDS {
        let ballast = disk.fill("ballast");
        // A pin that is there needs no more room. One of another log does.
        let answer = writer.append(append(number)).await.unwrap().into_inner();
        acknowledged.push(answer);
        let tenant = format!("new-{number}");
        for _ in 0..2 {
            let refused = writer.append(append_to(&tenant, number)).await;
            assert_eq!(refusal(refused), unavailable());
        }
        assert_eq!(refusal(preflight(writer).await), unavailable());
        has_all(&home, auditor, &acknowledged).await;
        fs::remove_file(ballast).unwrap();
        let answer = writer.append(append_to(&tenant, number)).await.unwrap();
        assert_eq!(answer.into_inner().entry.unwrap().sequence, 1);
        preflight(writer).await.unwrap();
    }
    assert_eq!(verified_entries(auditor).await, ROUNDS);
    has_all(&home, auditor, &acknowledged).await;
}

fn append_to(tenant: &str, number: u64) -> AppendRequest {
    let mut request = append(number);
    request.routing.as_mut().unwrap().tenant = tenant.to_owned();
    request
}

fn unavailable() -> (Code, String) {
    refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE")
}

async fn preflight(writer: &mut Client) -> Result<bool, Status> {
    let request = PreflightRequest {
        tenant: "acme".to_owned(),
        operations: vec!["policy.decide".to_owned()],
    };
    let answer = writer.preflight(request).await?;
    Ok(answer.into_inner().ok)
}

/// What was acknowledged is there, and so it was proven, then and now.
async fn has_all(home: &Home, auditor: &mut Client, acknowledged: &[AppendResponse]) {
    for answer in acknowledged {
        let entry = answer.entry.as_ref().unwrap();
        let found = auditor.get_receipt(get("acme", &entry.receipt_ref)).await;
        let found = found.unwrap().into_inner();
        let receipt = found.receipt.unwrap();
        assert_eq!(receipt.entry.as_ref(), Some(entry));
        for proof in [&answer.proof, &found.proof] {
            verify_proof_by(home.log_key, "acme", &receipt.receipt, proof);
        }
    }
}
