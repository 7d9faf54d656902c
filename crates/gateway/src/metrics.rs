//! What operators see: answers by fixed names of routes, never by paths.

use axum::response::Response;
use cl_host::status::is_grpc;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use crate::http::{CAPABILITIES, REQUESTS};

/// A route by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Requests,
    Request,
    Capabilities,
    Exchange,
    Unknown,
}

impl Route {
    pub(crate) fn of(path: &str) -> Self {
        if path == REQUESTS {
            Self::Requests
        } else if path == CAPABILITIES {
            Self::Capabilities
        } else if path
            .strip_prefix(REQUESTS)
            .is_some_and(|rest| rest.starts_with('/'))
        {
            Self::Request
        } else if path.starts_with("/contextlayer.exchange.v1.ExchangeService/") {
            Self::Exchange
        } else {
            Self::Unknown
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Request => "request",
            Self::Capabilities => "capabilities",
            Self::Exchange => "exchange",
            Self::Unknown => "unknown",
        }
    }
}

/// The gateway's own instruments.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    answers: Counter<u64>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            answers: meter
                .u64_counter("gateway_http_answers")
                .with_description("Answers over plain HTTP by route and status.")
                .build(),
        }
    }

    /// gRPC answers are counted by method and code elsewhere.
    pub(crate) fn answered(&self, route: Route, response: &Response) {
        if is_grpc(response.headers()) {
            return;
        }
        let labels = [
            KeyValue::new("route", route.as_str()),
            KeyValue::new("status", i64::from(response.status().as_u16())),
        ];
        self.answers.add(1, &labels);
    }
}
