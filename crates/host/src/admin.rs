//! The admin port: health for Kubernetes and metrics for Prometheus, in plain text.
//!
//! One port speaks both: gRPC health (`grpc.health.v1.Health`) over HTTP/2 with prior knowledge, as
//! Kubernetes' gRPC probes want it, and `/livez`, `/readyz`, `/metrics` over HTTP/1.1 or HTTP/2.
//! Bind it to loopback or to the pod's address only: it has no authentication and no private data.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::sync::watch;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::telemetry::Telemetry;

const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether the process wants calls. Clones share the answer.
#[derive(Clone, Debug)]
pub struct Health {
    reporter: HealthReporter,
    services: Arc<[String]>,
    serving: Arc<watch::Sender<bool>>,
}

impl Health {
    /// Not serving yet. Answers for the process as a whole (the empty name) and for `services`.
    pub async fn new(services: impl IntoIterator<Item = String>) -> Self {
        let health = Self {
            reporter: HealthReporter::new(),
            services: services.into_iter().collect(),
            serving: Arc::new(watch::Sender::new(false)),
        };
        health.set(false).await;
        health
    }

    /// Tells probes from now on whether the process wants calls.
    pub async fn set(&self, serving: bool) {
        let status = if serving {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        self.reporter.set_service_status("", status).await;
        for service in self.services.iter() {
            self.reporter.set_service_status(service, status).await;
        }
        self.serving.send_replace(serving);
    }

    /// The current answer.
    pub fn is_serving(&self) -> bool {
        *self.serving.borrow()
    }

    /// Waits until the answer is `serving`.
    pub async fn wait_until(&self, serving: bool) {
        let mut changes = self.serving.subscribe();
        // The sender lives as long as `self`.
        let _seen = changes.wait_for(|now| *now == serving).await.is_ok();
    }
}

/// What a process says about itself beside whether it wants calls: one line without private data,
/// made anew for each probe of `/readyz`.
#[derive(Clone)]
pub struct Detail(Arc<dyn Fn() -> String + Send + Sync>);

impl Detail {
    /// A line that `say` makes.
    pub fn new(say: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(say))
    }
}

impl fmt::Debug for Detail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Detail(..)")
    }
}

/// Everything that the admin port serves.
pub fn routes(health: Health, detail: Option<Detail>, telemetry: Telemetry) -> Routes {
    let grpc = HealthServer::new(HealthService::from_health_reporter(health.reporter.clone()));
    Routes::new(grpc)
        .into_axum_router()
        .merge(
            Router::new()
                .route("/livez", get(async || "ok\n"))
                .route("/readyz", get(readyz))
                .with_state((health, detail)),
        )
        .merge(
            Router::new()
                .route("/metrics", get(metrics))
                .with_state(telemetry),
        )
        .into()
}

async fn readyz(State((health, detail)): State<(Health, Option<Detail>)>) -> impl IntoResponse {
    let (status, word) = if health.is_serving() {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not serving")
    };
    let detail = detail.map_or_else(String::new, |Detail(say)| format!("{}\n", say()));
    (status, format!("{word}\n{detail}"))
}

async fn metrics(State(telemetry): State<Telemetry>) -> impl IntoResponse {
    match telemetry.prometheus_text() {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, PROMETHEUS_TEXT)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be encoded");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
