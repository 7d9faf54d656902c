//! Forgets idempotency records that ended.

use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::Clock;
use tokio_util::sync::CancellationToken;

use crate::store::{Store, blocking};

/// Records of one step, so that a long sweep never holds a thread for long.
const STEP: usize = 256;

/// Sweeps every `interval` until `stop`.
pub(crate) async fn run(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    interval: Duration,
    stop: CancellationToken,
) {
    let pause = || stop.run_until_cancelled(tokio::time::sleep(interval));
    while pause().await.is_some() {
        let mut is_more = true;
        while is_more && !stop.is_cancelled() {
            let now_unix_ms = clock.now_unix_ms();
            let swept = blocking(&store, move |store| store.sweep(now_unix_ms, STEP)).await;
            is_more = match swept {
                Ok(swept) => swept == STEP,
                Err(error) => {
                    tracing::error!(%error, "idempotency records not swept");
                    false
                }
            };
        }
    }
}
