//! What operators see: answers by fixed names of routes, never by paths.

use axum::response::Response;
use cl_host::status::is_grpc;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use crate::http::{
    BUNDLES, CAPABILITIES, PROPOSALS, RECEIPTS, RECEIPTS_OF_BUNDLE, REQUESTS, STATUS_OF_BUNDLE,
};

/// A route by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Requests,
    Request,
    Bundle,
    BundleStatus,
    BundleReceipts,
    Receipt,
    Proposals,
    Capabilities,
    Exchange,
    Unknown,
}

impl Route {
    pub(crate) fn of(path: &str) -> Self {
        match path {
            REQUESTS => return Self::Requests,
            PROPOSALS => return Self::Proposals,
            CAPABILITIES => return Self::Capabilities,
            _ => {}
        }
        let is_below = |above: &str| {
            let rest = path.strip_prefix(above);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        if is_below(REQUESTS) {
            Self::Request
        } else if is_below(BUNDLES) && path.ends_with(STATUS_OF_BUNDLE) {
            Self::BundleStatus
        } else if is_below(BUNDLES) && path.ends_with(RECEIPTS_OF_BUNDLE) {
            Self::BundleReceipts
        } else if is_below(BUNDLES) {
            Self::Bundle
        } else if is_below(RECEIPTS) {
            Self::Receipt
        } else if is_below("/contextlayer.exchange.v1.ExchangeService") {
            Self::Exchange
        } else {
            Self::Unknown
        }
    }

    /// Whether anybody may call: nothing is here, or nothing but the gateway's own description.
    pub(crate) const fn is_public(self) -> bool {
        matches!(self, Self::Capabilities | Self::Unknown)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Request => "request",
            Self::Bundle => "bundle",
            Self::BundleStatus => "bundle_status",
            Self::BundleReceipts => "bundle_receipts",
            Self::Receipt => "receipt",
            Self::Proposals => "memory_proposals",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_counts_as_its_route_and_an_id_never_shows() {
        for (path, route) in [
            ("/context/v1/requests", "requests"),
            ("/context/v1/requests/urn:cl:request:r", "request"),
            ("/context/v1/bundles/urn:cl:bundle:b", "bundle"),
            (
                "/context/v1/bundles/urn:cl:bundle:b/status",
                "bundle_status",
            ),
            (
                "/context/v1/bundles/urn:cl:bundle:b/receipts",
                "bundle_receipts",
            ),
            ("/context/v1/receipts/urn:cl:receipt:r", "receipt"),
            ("/context/v1/memory-proposals", "memory_proposals"),
            ("/.well-known/context-layer", "capabilities"),
            (
                "/contextlayer.exchange.v1.ExchangeService/RedeemBundle",
                "exchange",
            ),
            ("/context/v1/bundles", "unknown"),
            ("/context/v1/receiptsurn:cl:receipt:r", "unknown"),
            ("/status", "unknown"),
        ] {
            assert_eq!(Route::of(path).as_str(), route, "{path}");
        }
    }
}
