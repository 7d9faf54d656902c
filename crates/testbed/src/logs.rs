//! What all processes of all tests of one program log.

use std::io;
use std::sync::{Mutex, Once};

use cl_host::telemetry::{Telemetry, TelemetryConfig};

static LOGS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

static SUBSCRIBED: Once = Once::new();

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

/// Collects from here on what passes a filter, such as `trace`; the first filter counts.
pub fn subscribe(filter: &str) {
    SUBSCRIBED.call_once(|| {
        let (_telemetry, subscriber) = Telemetry::build(&config(filter), || Logs).unwrap();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

/// What was collected.
pub fn logs() -> String {
    String::from_utf8(LOGS.lock().unwrap().clone()).unwrap()
}

/// That of one server, with metrics of its own; its logs go with all the others.
pub fn telemetry() -> Telemetry {
    Telemetry::build(&config("off"), io::sink).unwrap().0
}

fn config(log_filter: &str) -> TelemetryConfig {
    TelemetryConfig {
        process: "test".to_owned(),
        log_filter: log_filter.to_owned(),
        otlp_endpoint: None,
    }
}
