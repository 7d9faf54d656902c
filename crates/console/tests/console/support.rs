//! Logs of all processes of all tests, and waiting with a deadline.

use std::io;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use cl_host::telemetry::{Telemetry, TelemetryConfig};

/// 2030-06-01T08:00:05Z.
pub(crate) const NOW_S: i64 = 1_906_531_205;

/// Far more than anything here takes; only a hang reaches it.
pub(crate) const HANG: Duration = Duration::from_secs(120);

static LOGS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Logs;

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGS.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) static SUBSCRIBED: LazyLock<()> = LazyLock::new(|| {
    let (_telemetry, subscriber) = Telemetry::build(&telemetry_config("trace"), || Logs).unwrap();
    tracing::subscriber::set_global_default(subscriber).unwrap();
});

/// What every process of every test logged, at all levels.
pub(crate) fn logs() -> String {
    String::from_utf8(LOGS.lock().unwrap().clone()).unwrap()
}

pub(crate) fn telemetry_config(log_filter: &str) -> TelemetryConfig {
    TelemetryConfig {
        process: "test".to_owned(),
        log_filter: log_filter.to_owned(),
        otlp_endpoint: None,
    }
}

pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(HANG, future).await {
        Ok(output) => output,
        Err(_) => panic!("hangs: {what}"),
    }
}

/// Polls until there is something.
pub(crate) async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    within(what, async {
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}
