//! Deadlines of calls on the serving side.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};

use crate::status::{self, PlainHttp};

/// The gRPC header that carries a call's remaining time.
pub const GRPC_TIMEOUT: &str = "grpc-timeout";

/// When a call must have been answered; in the extensions of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline `time` from now.
    pub fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// The time left; zero when it passed.
    pub fn remaining(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// The moment itself.
    pub fn instant(&self) -> Instant {
        self.0
    }

    /// Gives an outgoing request no more time than is left here.
    pub fn limit<T>(&self, request: &mut tonic::Request<T>) {
        request.set_timeout(self.remaining());
    }
}

/// Ends each call with `DEADLINE_EXCEEDED` after the time in its `grpc-timeout` header, and never
/// later than a maximum.
///
/// The time is counted until the handler has its answer, or the first part of it for a stream; a
/// stream that has begun is bounded by its client, by drain, and by the age of the connection.
#[derive(Clone, Debug)]
pub struct DeadlineLayer {
    max: Duration,
    plain_http: Option<PlainHttp>,
}

impl DeadlineLayer {
    /// No call takes longer than `max`.
    pub fn new(max: Duration) -> Self {
        Self {
            max,
            plain_http: None,
        }
    }

    /// Answers callers of plain HTTP in their own form.
    #[must_use]
    pub fn plain_http(self, plain_http: Option<PlainHttp>) -> Self {
        Self { plain_http, ..self }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = DeadlineService<S>;

    fn layer(&self, inner: S) -> DeadlineService<S> {
        DeadlineService {
            inner,
            layer: self.clone(),
        }
    }
}

/// The service that [`DeadlineLayer`] makes.
#[derive(Clone, Debug)]
pub struct DeadlineService<S> {
    inner: S,
    layer: DeadlineLayer,
}

impl<S> Service<Request<Body>> for DeadlineService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let DeadlineLayer { max, plain_http } = self.layer.clone();
        let to_grpc = status::is_grpc(request.headers());
        let time = match requested(request.headers()) {
            Ok(asked) => asked.map_or(max, |asked| asked.min(max)),
            Err(InvalidTimeout) => {
                let refusal = Status::from(InvalidTimeout);
                let response = status::answer(&refusal, to_grpc, plain_http.as_ref());
                return Box::pin(async move { Ok(response) });
            }
        };
        let deadline = Deadline::after(time);
        request.extensions_mut().insert(deadline);
        let answer = self.inner.call(request);
        Box::pin(async move {
            match timeout_at(deadline.instant(), answer).await {
                Ok(answer) => answer,
                Err(_) => Ok(status::answer(&exceeded(), to_grpc, plain_http.as_ref())),
            }
        })
    }
}

pub(crate) fn exceeded() -> Status {
    status::refusal(
        Code::DeadlineExceeded,
        status::DEADLINE_EXCEEDED,
        "the call took longer than its deadline",
    )
}

/// The time that `headers` ask for, if they do.
pub(crate) fn requested(headers: &HeaderMap) -> Result<Option<Duration>, InvalidTimeout> {
    headers
        .get(GRPC_TIMEOUT)
        .map(|value| value.to_str().map_err(|_| InvalidTimeout).and_then(parse))
        .transpose()
}

fn parse(text: &str) -> Result<Duration, InvalidTimeout> {
    const MAX_DIGITS: usize = 8;

    let (digits, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or(InvalidTimeout)?;
    let plain =
        (1..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    if !plain {
        return Err(InvalidTimeout);
    }
    let count: u64 = digits.parse().map_err(|_| InvalidTimeout)?;
    match unit {
        "H" => Ok(Duration::from_secs(count * 3600)),
        "M" => Ok(Duration::from_secs(count * 60)),
        "S" => Ok(Duration::from_secs(count)),
        "m" => Ok(Duration::from_millis(count)),
        "u" => Ok(Duration::from_micros(count)),
        "n" => Ok(Duration::from_nanos(count)),
        _ => Err(InvalidTimeout),
    }
}

/// A `grpc-timeout` header that is not one to eight digits and a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the grpc-timeout header is malformed")]
pub(crate) struct InvalidTimeout;

impl From<InvalidTimeout> for Status {
    fn from(InvalidTimeout: InvalidTimeout) -> Self {
        status::refusal(
            Code::InvalidArgument,
            "INVALID_TIMEOUT",
            "the grpc-timeout header is malformed",
        )
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;
    use http::{HeaderValue, StatusCode};
    use proptest::prelude::*;
    use tower::{ServiceExt, service_fn};

    use super::*;

    fn request(timeout: &str) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        request
            .headers_mut()
            .insert(GRPC_TIMEOUT, timeout.parse().unwrap());
        request
    }

    async fn code_when_handler_takes(handler: Duration, timeout: &str, max: Duration) -> Code {
        let service =
            DeadlineLayer::new(max).layer(service_fn(move |_: Request<Body>| async move {
                tokio::time::sleep(handler).await;
                Ok::<_, std::convert::Infallible>(Status::ok("").into_http())
            }));
        let response = service.oneshot(request(timeout)).await.unwrap();
        Status::from_header_map(response.headers()).unwrap().code()
    }

    #[tokio::test(start_paused = true)]
    async fn ends_calls_at_the_callers_deadline_or_the_maximum() {
        let seconds = Duration::from_secs;
        for (handler, timeout, max, code) in [
            (1, "2S", 10, Code::Ok),
            (3, "2S", 10, Code::DeadlineExceeded),
            (3, "1H", 2, Code::DeadlineExceeded),
            (1, "1H", 2, Code::Ok),
            (0, "x", 2, Code::InvalidArgument),
        ] {
            let found = code_when_handler_takes(seconds(handler), timeout, seconds(max)).await;
            assert_eq!(found, code, "{handler} {timeout} {max}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn handlers_see_what_is_left() {
        let service = DeadlineLayer::new(Duration::from_secs(9)).layer(service_fn(
            async |request: Request<Body>| {
                let deadline = *request.extensions().get::<Deadline>().unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
                let mut outgoing = tonic::Request::new(());
                deadline.limit(&mut outgoing);
                let header = outgoing.metadata().get(GRPC_TIMEOUT).unwrap();
                assert_eq!(parse(header.to_str().unwrap()), Ok(Duration::from_secs(4)));
                Ok::<_, std::convert::Infallible>(Status::ok("").into_http())
            },
        ));
        service.oneshot(request("5S")).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn callers_of_plain_http_are_told_in_their_own_form() {
        let plain_http = PlainHttp::new(|status| {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = if status.code() == Code::DeadlineExceeded {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::BAD_REQUEST
            };
            response
        });
        let layer = DeadlineLayer::new(Duration::from_secs(9)).plain_http(Some(plain_http));
        for (timeout, grpc, expected) in [
            ("1S", false, StatusCode::SERVICE_UNAVAILABLE),
            ("x", false, StatusCode::BAD_REQUEST),
            ("1S", true, StatusCode::OK),
            ("x", true, StatusCode::OK),
        ] {
            let hangs = service_fn(|_: Request<Body>| {
                std::future::pending::<Result<Response<Body>, std::convert::Infallible>>()
            });
            let mut request = request(timeout);
            if grpc {
                let value = HeaderValue::from_static("application/grpc");
                request.headers_mut().insert(CONTENT_TYPE, value);
            }
            let response = layer.clone().layer(hangs).oneshot(request).await.unwrap();
            assert_eq!(response.status(), expected, "{timeout} {grpc}");
        }
    }

    #[test]
    fn refuses_malformed_timeouts() {
        for text in [
            "",
            "S",
            "5",
            "5s",
            "-5S",
            "+5S",
            "5 S",
            "123456789S",
            "5é",
            "é",
            "1.5S",
        ] {
            assert_eq!(parse(text), Err(InvalidTimeout), "{text}");
        }
        assert_eq!(
            parse("99999999H"),
            Ok(Duration::from_secs(99_999_999 * 3600))
        );
    }

    proptest! {
        #[test]
        fn foreign_text_never_panics(text in ".{0,12}") {
            let _ = parse(&text);
        }
    }
}
