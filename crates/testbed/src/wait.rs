//! Waiting with a deadline.

use std::time::Duration;

/// Far more than anything takes on a busy machine; only a hang reaches it.
pub const HANG: Duration = Duration::from_secs(120);

/// How long to wait between looks.
const PAUSE: Duration = Duration::from_millis(5);

/// What a future comes to, unless it hangs.
pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(HANG, future).await {
        Ok(output) => output,
        Err(_) => panic!("hangs: {what}"),
    }
}

/// Looks until a condition holds.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, async || condition().then_some(())).await;
}

/// Looks until there is something.
pub async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    within(what, async {
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
    .await
}
