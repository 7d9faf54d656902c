//! Bounds: what is too large, too slow or too much is refused, and never waited for.

use std::time::Duration;

use bytes::Bytes;
use cl_testbed::eventually;

use crate::client::{Call, MEDIA_TYPE};
use crate::documents::request;
use crate::support::{Options, Running, World};

fn head(gateway: &Running, framing: &str) -> String {
    head_of(gateway, "/context/v1/requests", framing)
}

fn head_of(gateway: &Running, path: &str, framing: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         authorization: Bearer {}\r\ncontext-layer-version: 0.2-draft\r\n\
         content-type: {MEDIA_TYPE}\r\n{framing}\r\n\r\n",
        gateway.token
    )
}

#[tokio::test]
async fn bodies_are_bounded_whether_they_say_so_or_not() {
    let world = World::new().await;
    let gateway = world.start().await;
    let limit = 1_048_576;
    let exactly = gateway.call(Call::submit(vec![b' '; limit])).await;
    assert_eq!(exactly.refusal(), (400, "INVALID_JSON".to_owned()));
    let announced = gateway.call(Call::submit(vec![b' '; limit + 1])).await;
    assert_eq!(announced.refusal(), (413, "DOCUMENT_TOO_LARGE".to_owned()));

    let mut chunked = head(&gateway, "transfer-encoding: chunked").into_bytes();
    for _ in 0..17 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend_from_slice(&vec![b' '; 0x10000]);
        chunked.extend_from_slice(b"\r\n");
    }
    let answer = gateway.client.raw(&chunked).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("DOCUMENT_TOO_LARGE"), "{answer}");

    // An announced size is refused on its own, without a byte of the body.
    let only_head = head(&gateway, "content-length: 99999999");
    let answer = gateway.client.raw(only_head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn reports_and_proposals_have_smaller_bounds() {
    let world = World::new().await;
    let gateway = world.start().await;
    for (path, limit) in [
        ("/context/v1/bundles/urn:cl:bundle:b/receipts", 65_536),
        ("/context/v1/memory-proposals", 262_144),
    ] {
        let announced = format!("content-length: {}", limit + 1);
        let only_head = head_of(&gateway, path, &announced);
        let answer = gateway.client.raw(only_head.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");

        let chunked = head_of(&gateway, path, "transfer-encoding: chunked");
        let mut chunked = chunked.into_bytes();
        for _ in 0..=limit / 0x10000 {
            chunked.extend_from_slice(b"10000\r\n");
            chunked.extend_from_slice(&vec![b' '; 0x10000]);
            chunked.extend_from_slice(b"\r\n");
        }
        let answer = gateway.client.raw(&chunked).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(answer.contains("DOCUMENT_TOO_LARGE"), "{answer}");
    }
    let calls = world.bundles.faults.calls() + world.vault.faults.calls();
    assert_eq!(calls, 0);
}

#[tokio::test]
async fn floods_of_headers_are_refused() {
    let world = World::new().await;
    let gateway = world.start().await;
    let flood: String = (0..500)
        .map(|number| format!("x-{number}: y\r\n"))
        .collect();
    let raw = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{flood}\r\n");
    let answer = gateway.client.raw(raw.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn a_slow_body_ends_at_the_deadline() {
    let world = World::new().await;
    let options = Options {
        max_call: Duration::from_millis(50),
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let unfinished = head(&gateway, "content-length: 100") + "{";
    let answer = gateway.client.raw(unfinished.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("DEADLINE_EXCEEDED"), "{answer}");
    assert!(answer.contains("urn:cl:error:"), "{answer}");
}

#[tokio::test]
async fn a_slow_engine_ends_at_the_deadline() {
    let world = World::new().await;
    world.engine.hold();
    let options = Options {
        max_call: Duration::from_millis(50),
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let answer = gateway.submit(&request("slow")).await;
    assert_eq!(answer.refusal(), (503, "DEADLINE_EXCEEDED".to_owned()));
}

#[tokio::test]
async fn one_call_too_many_is_shed_before_its_body_is_read() {
    let world = World::new().await;
    let options = Options {
        max_in_flight: 1,
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    world.engine.hold();
    let held = Call::submit(request("held").to_string()).bearer(&gateway.token);
    let client = gateway.client.clone();
    let held = tokio::spawn(async move { held.by(&client).await });
    let engine = &world.engine;
    eventually("the engine has it", || engine.submissions().len() == 1).await;

    let endless = head(&gateway, "content-length: 1000");
    let answer = gateway.client.raw(endless.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("GATEWAY_BUSY"), "{answer}");
    assert!(answer.contains("retry-after: 1"), "{answer}");

    world.engine.release();
    assert_eq!(held.await.unwrap().status, 201);
    assert_eq!(gateway.submit(&request("next")).await.status, 201);
}

#[tokio::test]
async fn any_bytes_get_an_answer_or_an_end() {
    let world = World::new().await;
    let gateway = world.start().await;
    for bytes in [
        &b"\x00\x01\x02\x03\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nhost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    ] {
        let _answer = gateway.client.raw(bytes).await;
    }
    let answer = gateway
        .call(Call::submit(Bytes::from_static(b"\xff\xfe")))
        .await;
    assert_eq!(answer.refusal(), (400, "INVALID_JSON".to_owned()));
}
