//! Private words stay out of logs, errors, metrics and the data folder.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use cl_testbed::{channel, within};
use cl_wire::receipt::v1::hold_target::Target;
use cl_wire::receipt::v1::receipt_admin_service_client::ReceiptAdminServiceClient;
use cl_wire::receipt::v1::{
    BeginRequest, EraseReceiptsRequest, HoldTarget, ListReceiptsRequest, PlaceHoldRequest,
    ReleaseHoldRequest,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::process::Home;
use crate::requests::{
    append_of, begin, begun_members, bytes, consumer_append, consumption, members, operation_id,
    tag, with,
};
use crate::support::{AUDITOR, ENGINE, GATEWAY, ISSUER, OPERATOR, STORE, verified_entries};

const CANARY: &str = "canaryword";

/// Whether any form of the canary, or of the subject's tag, is in there.
fn shows_canary(bytes: &[u8]) -> bool {
    [CANARY.as_bytes(), tag(0x5a).as_bytes(), &[0x5a; 32]]
        .iter()
        .any(|word| bytes.windows(word.len()).any(|window| window == *word))
}

fn check_folder(folder: &Path) -> u64 {
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += check_folder(&path);
        } else {
            files += 1;
            assert!(!shows_canary(&fs::read(&path).unwrap()), "{path:?}");
        }
    }
    files
}

async fn metrics(addr: SocketAddr) -> String {
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    let read = within("the metrics", stream.read_to_string(&mut answer)).await;
    read.unwrap();
    answer
}

#[tokio::test]
async fn private_words_are_nowhere_in_the_clear() {
    let home = Home::new();
    let process = home.start().await;
    let mut writer = home.client(&process, ENGINE);
    let mut issuer = home.client(&process, ISSUER);
    let private = json!({
        "actor": format!("urn:cl:policy-engine:{CANARY}"),
        "subject_ref": format!("urn:cl:alias:{CANARY}"),
        "request_ref": format!("urn:cl:request:{CANARY}"),
        "bundle_ref": format!("urn:cl:bundle:{CANARY}"),
        "operation": format!("policy.{CANARY}"),
    });
    let mut request = append_of(1, &with(members(1), private.clone()));
    request.routing.as_mut().unwrap().subject_tag = Some(tag(0x5a));
    writer.append(request.clone()).await.unwrap();
    let consumed = json!({
        "actor": format!("urn:agent:{CANARY}"),
        "bundle_ref": format!("urn:cl:bundle:{CANARY}"),
        "user_summary": CANARY,
        "metadata": {CANARY: CANARY},
    });
    let consumed = consumer_append(with(consumption(2), consumed));
    issuer.append(consumed).await.unwrap();
    let mut intent = BeginRequest {
        members: bytes(&with(begun_members(3), private)),
        ..begin(3)
    };
    intent.routing.as_mut().unwrap().subject_tag = Some(tag(0x5a));
    let now = cl_host::clock::Clock::now_unix_ms(&cl_host::clock::SystemClock);
    intent.deadline = Some(crate::requests::time(now + 600_000));
    writer.begin(intent.clone()).await.unwrap();

    // Errors of every kind, each with the canary in what was sent.
    let mut statuses = Vec::new();
    request.routing.as_mut().unwrap().subject_tag = None;
    statuses.push(writer.append(request).await.unwrap_err());
    intent.members = bytes(&json!({CANARY: CANARY}));
    statuses.push(writer.begin(intent).await.unwrap_err());
    for changes in [
        json!({"actor": format!("urn:{CANARY}")}),
        json!({"outcome": CANARY}),
        json!({"started_at": CANARY}),
        json!({"metadata": {"api_key": CANARY}}),
        json!({CANARY: CANARY}),
    ] {
        let request = append_of(9, &with(members(9), changes));
        statuses.push(writer.append(request).await.unwrap_err());
    }
    let mut reader = home.client(&process, GATEWAY);
    let list = ListReceiptsRequest {
        tenant: CANARY.to_uppercase(),
        page_token: CANARY.to_owned(),
        ..Default::default()
    };
    statuses.push(reader.list_receipts(list.clone()).await.unwrap_err());
    let list = ListReceiptsRequest {
        tenant: "acme".to_owned(),
        ..list
    };
    statuses.push(reader.list_receipts(list).await.unwrap_err());
    for status in statuses {
        assert!(
            !shows_canary(format!("{status:?}").as_bytes()),
            "{status:?}"
        );
        assert!(!shows_canary(status.details()), "{status:?}");
    }

    // Holds and erasures, with the subject's tag and the canary as a reason.
    let operator = channel(process.addr(), home.authority.credentials(OPERATOR), STORE);
    let mut operator = ReceiptAdminServiceClient::new(operator);
    let hold = PlaceHoldRequest {
        tenant: "acme".to_owned(),
        target: Some(HoldTarget {
            target: Some(Target::SubjectTag(tag(0x5a))),
        }),
        reason: CANARY.to_owned(),
        operation_id: operation_id(20),
    };
    let placed = operator.place_hold(hold.clone()).await.unwrap();
    let erasure = EraseReceiptsRequest {
        tenant: "acme".to_owned(),
        subject_tag: tag(0x5a),
        reason: CANARY.to_owned(),
    };
    let kept = operator.erase_receipts(erasure.clone()).await.unwrap();
    assert_eq!(kept.into_inner().held, 1);
    let end = ReleaseHoldRequest {
        tenant: "acme".to_owned(),
        hold_id: placed.into_inner().hold_id,
        reason: CANARY.to_owned(),
        operation_id: operation_id(21),
    };
    operator.release_hold(end.clone()).await.unwrap();
    let gone = operator.erase_receipts(erasure.clone()).await.unwrap();
    assert_eq!(gone.into_inner().erased, 1);
    let other = PlaceHoldRequest {
        reason: format!("{CANARY}.other"),
        ..hold.clone()
    };
    let statuses = [
        operator.place_hold(other).await.unwrap_err(),
        operator
            .place_hold(PlaceHoldRequest {
                reason: CANARY.to_uppercase(),
                ..hold
            })
            .await
            .unwrap_err(),
        operator
            .release_hold(ReleaseHoldRequest {
                operation_id: operation_id(22),
                ..end
            })
            .await
            .unwrap_err(),
        operator
            .erase_receipts(EraseReceiptsRequest {
                subject_tag: CANARY.to_owned(),
                ..erasure
            })
            .await
            .unwrap_err(),
    ];
    for status in statuses {
        assert!(
            !shows_canary(format!("{status:?}").as_bytes()),
            "{status:?}"
        );
        assert!(!shows_canary(status.details()), "{status:?}");
    }

    let mut auditor = home.client(&process, AUDITOR);
    assert_eq!(verified_entries(&mut auditor).await, 5);
    let metrics = metrics(process.admin_addr()).await;
    assert!(metrics.contains("receipt_entries_total 5"), "{metrics}");
    assert!(!shows_canary(metrics.as_bytes()), "{metrics}");
    let (code, log) = process.end().await;
    assert_eq!(code, Some(0));
    assert!(log.contains("\"ready\""));
    assert!(!shows_canary(log.as_bytes()), "{log}");
    assert!(check_folder(&home.path().join("data")) > 0);
}
