//! A full disk: nothing acknowledged is lost, and the store goes on by itself once there is room.

use std::fs;

use cl_wire::receipt::v1::{LogEntry, PreflightRequest};
use tempfile::TempDir;
use tonic::{Code, Status};

use crate::process::Home;
use crate::requests::{append, begin_later, get};
use crate::small_disk::SmallDisk;
use crate::support::{AUDITOR, Client, ENGINE, open_intents, refusal, refused, verified_entries};

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
                Ok(answer) => acknowledged.push(answer.into_inner().entry.unwrap()),
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
        has_all(auditor, &acknowledged).await;
        fs::remove_file(ballast).unwrap();

        // What was refused is repeated under the same operation id.
        let answer = writer.append(append(number)).await.unwrap().into_inner();
        acknowledged.push(answer.entry.unwrap());
        preflight(writer).await.unwrap();
        writer.begin(intent).await.unwrap();
        assert_eq!(open_intents(writer).await.total_size, round);
        assert_eq!(verified_entries(auditor).await, acknowledged.len() as u64);
    }
    process.kill().await;
    let process = home.start().await;
    let auditor = &mut home.client(&process, AUDITOR);
    assert_eq!(verified_entries(auditor).await, acknowledged.len() as u64);
    has_all(auditor, &acknowledged).await;
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

async fn has_all(auditor: &mut Client, acknowledged: &[LogEntry]) {
    for entry in acknowledged {
        let found = auditor.get_receipt(get("acme", &entry.receipt_ref)).await;
        let found = found.unwrap().into_inner().receipt.unwrap();
        assert_eq!(found.entry.as_ref(), Some(entry));
    }
}
