//! The gRPC door, and that both doors lead to the same room.

use cl_testbed::within;
use cl_wire::exchange::v1::{GetRequestRequest, RequestState, RequestStatus, SubmitRequestRequest};
use cl_wire::status::{reason, retry_delay, violations};
use tonic::{Code, Request, Status};

use crate::client::Call;
use crate::documents::{canonical_bytes, request};
use crate::engine::later;
use crate::support::{Running, World};

struct Caller<'a> {
    world: &'a World,
    gateway: &'a Running,
    path: &'static str,
    token: Option<String>,
}

impl<'a> Caller<'a> {
    fn new(world: &'a World, gateway: &'a Running, token: Option<String>) -> Self {
        Self {
            world,
            gateway,
            path: "client/acme/robot",
            token,
        }
    }

    async fn submit(
        &self,
        document: Vec<u8>,
        key: Option<&str>,
    ) -> Result<(RequestStatus, bool), Status> {
        let credentials = self.world.authority.credentials(self.path);
        let mut exchange = self.gateway.exchange(credentials);
        let message = self.with_token(SubmitRequestRequest {
            request: document,
            idempotency_key: key.map(str::to_owned),
            wait_seconds: 0,
        });
        let answer = within("a submission", exchange.submit_request(message)).await?;
        let is_replay = answer.metadata().get("idempotency-replayed").is_some();
        Ok((answer.into_inner().status.unwrap(), is_replay))
    }

    async fn read(&self, request_ref: &str) -> Result<RequestStatus, Status> {
        let credentials = self.world.authority.credentials(self.path);
        let mut exchange = self.gateway.exchange(credentials);
        let message = self.with_token(GetRequestRequest {
            request_ref: request_ref.to_owned(),
            wait_seconds: 0,
        });
        let answer = within("a read", exchange.get_request(message)).await?;
        Ok(answer.into_inner().status.unwrap())
    }

    fn with_token<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().insert("authorization", value);
        }
        request
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Status>) -> (Code, String) {
    let status = result.unwrap_err();
    (status.code(), reason(&status).unwrap())
}

#[tokio::test]
async fn both_doors_agree() {
    let world = World::new().await;
    let gateway = world.start().await;
    let caller = Caller::new(&world, &gateway, Some(gateway.token.clone()));
    let document = request("both");
    let over_http = gateway.submit_once(&document, "key-1").await;
    let (over_grpc, is_replay) = caller
        .submit(canonical_bytes(&document), Some("key-1"))
        .await
        .unwrap();
    assert!(is_replay);
    assert_eq!(over_grpc.decision, over_http.body);
    assert_eq!(over_grpc.state(), RequestState::Decided);
    assert_eq!(world.engine.executions(), 1);
    let read = caller.read("urn:cl:request:both").await.unwrap();
    assert_eq!(read, over_grpc);

    for (code, told) in [
        (Code::FailedPrecondition, "POLICY_NOT_ACTIVE"),
        (Code::ResourceExhausted, "RATE_LIMITED"),
        (Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE"),
        (Code::Aborted, "REQUEST_IN_PROGRESS"),
    ] {
        world.engine.refuse_next(later(code, told, 6));
        let over_http = gateway.submit(&request("refused")).await;
        world.engine.refuse_next(later(code, told, 6));
        let over_grpc = caller
            .submit(canonical_bytes(&request("refused")), None)
            .await;
        let status = over_grpc.unwrap_err();
        assert_eq!(status.code(), code);
        assert_eq!(reason(&status).unwrap(), over_http.refusal().1);
        let seconds = retry_delay(&status).unwrap().as_secs().to_string();
        assert_eq!(over_http.header("retry-after"), Some(seconds.as_str()));
    }
}

#[tokio::test]
async fn refusals_have_their_codes() {
    let world = World::new().await;
    let gateway = world.start().await;
    let caller = Caller::new(&world, &gateway, None);
    let invalid = |reason: &str| (Code::InvalidArgument, reason.to_owned());
    let good = canonical_bytes(&request("grpc"));
    let spaced = serde_json::to_vec_pretty(&request("grpc")).unwrap();
    let mut closed = request("grpc");
    closed["surprise"] = true.into();
    for (document, key, expected) in [
        (spaced, None, "INVALID_FIELD"),
        (b"{".to_vec(), None, "INVALID_JSON"),
        (canonical_bytes(&closed), None, "INVALID_REQUEST"),
        (vec![b' '; 1_048_577], None, "DOCUMENT_TOO_LARGE"),
        (good.clone(), Some(""), "INVALID_IDEMPOTENCY_KEY"),
        (good.clone(), Some("a b"), "INVALID_IDEMPOTENCY_KEY"),
    ] {
        assert_eq!(
            refused(caller.submit(document, key).await),
            invalid(expected)
        );
    }
    let mut task = request("grpc");
    task["task"] = serde_json::json!({});
    let status = caller
        .submit(canonical_bytes(&task), None)
        .await
        .unwrap_err();
    assert_eq!(violations(&status)[0].field, "request.task");
    assert_eq!(
        refused(caller.read("nonsense").await),
        invalid("INVALID_FIELD")
    );
    let unknown = caller.read("urn:cl:request:unknown").await;
    assert_eq!(
        refused(unknown),
        (Code::NotFound, "REQUEST_NOT_FOUND".to_owned())
    );
    assert_eq!(world.engine.submissions().len(), 0);

    caller.submit(good, Some("key-1")).await.unwrap();
    let other = canonical_bytes(&request("another"));
    let conflict = (Code::AlreadyExists, "IDEMPOTENCY_CONFLICT".to_owned());
    assert_eq!(refused(caller.submit(other, Some("key-1")).await), conflict);

    let stranger = Caller {
        token: Some("a.b.c".to_owned()),
        ..caller
    };
    let unauthenticated = (Code::Unauthenticated, "CALLER_UNAUTHENTICATED".to_owned());
    assert_eq!(
        refused(stranger.read("urn:cl:request:x").await),
        unauthenticated
    );
    let engine = Caller {
        path: "exchange/cl-receipt-store",
        token: None,
        ..stranger
    };
    let not_allowed = (Code::PermissionDenied, "CALLER_NOT_ALLOWED".to_owned());
    assert_eq!(refused(engine.read("urn:cl:request:x").await), not_allowed);
    // What the other door stored is not found by another principal.
    gateway.submit(&request("http")).await;
    let answer = gateway.call(Call::read("urn:cl:request:grpc")).await;
    assert_eq!(answer.refusal(), (404, "REQUEST_NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn faults_are_internal_with_a_correlation_id_only() {
    let world = World::new().await;
    let gateway = world.start().await;
    let caller = Caller::new(&world, &gateway, None);
    world
        .engine
        .refuse_next(later(Code::DataLoss, "STORE_CORRUPT", 1));
    let status = caller.read("urn:cl:request:x").await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(status.message(), "internal error");
    assert_eq!(reason(&status).as_deref(), Some("INTERNAL"));
}
