//! Callers who hold calls open: nobody takes the place of the others.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cl_testbed::{eventually, within};
use http::{Request, StatusCode};
use http_body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinHandle;
use tonic::{Code, Status};

use crate::client::{Call, Client, MEDIA_TYPE, REQUESTS};
use crate::documents::request;
use crate::support::{NOW_S, Options, Running, World};
use crate::tokens::TokenIssuer;

const SUBMIT: &str = "/contextlayer.exchange.v1.ExchangeService/SubmitRequest";

/// A body that never comes and never ends.
struct Silent;

impl http_body::Body for Silent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// A call of which only the head was sent, and the answer to it.
type Idle = JoinHandle<http::Response<hyper::body::Incoming>>;

/// Opens calls on as many connections as they need.
async fn idle(client: &Client, path: &str, token: Option<&str>, calls: usize) -> Vec<Idle> {
    const PER_CONNECTION: usize = 32;

    let content_type = if path == SUBMIT {
        "application/grpc"
    } else {
        MEDIA_TYPE
    };
    let mut idle = Vec::new();
    while idle.len() < calls {
        let io = TokioIo::new(client.connect().await);
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        for _ in 0..PER_CONNECTION.min(calls - idle.len()) {
            let mut call = Request::post(format!("https://localhost{path}"))
                .header("content-type", content_type)
                .header("context-layer-version", "0.2-draft");
            if let Some(token) = token {
                call = call.header("authorization", format!("Bearer {token}"));
            }
            let call = call.body(Silent).unwrap();
            let mut sender = sender.clone();
            idle.push(tokio::spawn(async move {
                sender.send_request(call).await.unwrap()
            }));
        }
    }
    idle
}

fn code(response: &http::Response<hyper::body::Incoming>) -> Code {
    Status::from_header_map(response.headers()).unwrap().code()
}

/// A token of somebody else in the same tenant.
fn token_of(world: &World, principal: &str) -> String {
    let mut claims = TokenIssuer::claims(NOW_S);
    claims["sub"] = principal.into();
    world.issuer.token_with(&claims)
}

async fn serves_an_honest_caller(gateway: &Running, name: &str) {
    assert_eq!(gateway.submit(&request(name)).await.status, 201);
}

#[tokio::test]
async fn idle_streams_without_a_credential_hold_no_place() {
    let world = World::new().await;
    let options = Options {
        max_in_flight: 4,
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let silent = idle(&gateway.client, SUBMIT, None, 300).await;
    serves_an_honest_caller(&gateway, "honest").await;
    for call in silent {
        let response = within("a refusal", call).await.unwrap();
        assert_eq!(code(&response), Code::Unauthenticated);
    }
    let silent = idle(&gateway.client, REQUESTS, None, 64).await;
    serves_an_honest_caller(&gateway, "honest-2").await;
    for call in silent {
        let response = within("a refusal", call).await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn one_caller_cannot_take_the_place_of_all() {
    let world = World::new().await;
    let options = Options {
        max_in_flight: 16,
        max_in_flight_per_caller: 4,
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let greedy = token_of(&world, "urn:model:greedy");
    for (path, name) in [(SUBMIT, "grpc"), (REQUESTS, "http")] {
        let held = idle(&gateway.client, path, Some(&greedy), 40).await;
        eventually("the refusals", || {
            held.iter().filter(|call| call.is_finished()).count() == 36
        })
        .await;
        serves_an_honest_caller(&gateway, name).await;
        for call in held {
            if !call.is_finished() {
                call.abort();
                continue;
            }
            let response = call.await.unwrap();
            if path == SUBMIT {
                assert_eq!(code(&response), Code::ResourceExhausted);
            } else {
                assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            }
        }
        // What is over gives its place back.
        within("a place", async {
            let submit = || Call::submit(request(name).to_string()).bearer(&greedy);
            while submit().by(&gateway.client).await.status == StatusCode::TOO_MANY_REQUESTS {}
        })
        .await;
    }
}

#[tokio::test]
async fn one_tenant_cannot_take_the_place_of_all() {
    let world = World::new().await;
    let options = Options {
        max_in_flight: 16,
        max_in_flight_per_tenant: 8,
        max_in_flight_per_caller: 4,
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let mut held = Vec::new();
    for principal in 0..4 {
        let mut claims = TokenIssuer::claims(NOW_S);
        claims["sub"] = format!("urn:model:greedy-{principal}").into();
        claims["tenant"] = "greedy".into();
        let token = world.issuer.token_with(&claims);
        held.extend(idle(&gateway.client, SUBMIT, Some(&token), 4).await);
    }
    eventually("the refusals", || {
        held.iter().filter(|call| call.is_finished()).count() == 8
    })
    .await;
    serves_an_honest_caller(&gateway, "honest").await;
    for call in held {
        if !call.is_finished() {
            call.abort();
            continue;
        }
        let response = call.await.unwrap();
        assert_eq!(code(&response), Code::ResourceExhausted);
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_ends_before_the_call() {
    let world = World::new().await;
    let options = Options {
        max_body_time: Duration::from_millis(50),
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let token = gateway.token.clone();
    for call in idle(&gateway.client, SUBMIT, Some(&token), 3).await {
        let response = within("the end", call).await.unwrap();
        assert_eq!(code(&response), Code::DeadlineExceeded);
    }
    let head = format!(
        "POST {REQUESTS} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontext-layer-version: 0.2-draft\r\n\
         content-type: {MEDIA_TYPE}\r\ncontent-length: 100\r\n\r\n{{"
    );
    let answer = gateway.client.raw(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("DEADLINE_EXCEEDED"), "{answer}");
    // A body that came in time has all the time of its call.
    world.engine.hold();
    let client = gateway.client.clone();
    let slow = Call::submit(request("slow").to_string()).bearer(&token);
    let slow = tokio::spawn(async move { slow.by(&client).await });
    let engine = &world.engine;
    eventually("the engine has it", || engine.submissions().len() == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.engine.release();
    assert_eq!(slow.await.unwrap().status, 201);
}
