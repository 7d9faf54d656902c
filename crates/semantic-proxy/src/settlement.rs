//! Projections that ended with their process.

use std::sync::Arc;
use std::time::Duration;

use cl_host::clock::Clock;
use cl_host::life::Shutdown;
use cl_model::time::UnixTime;
use cl_wire::receipt::v1::Intent;
use cl_wire::time;
use cl_wire::unconfirmed::Unconfirmed;

use crate::core::evidence::abandoned;
use crate::receipts::Receipts;

/// Time between two looks.
const PAUSE: Duration = Duration::from_secs(10);

/// After this time no call works on its intent any more, in whichever replica it was made.
const ABANDONED_SECONDS: u64 = 60;

/// Settles own intents that nobody works on any more, now and from time to time. All of them are
/// failures: items leave only after their receipt.
pub(crate) async fn run(receipts: Arc<dyn Receipts>, clock: Arc<dyn Clock>, shutdown: Shutdown) {
    while !shutdown.is_requested() {
        let now = UnixTime::from_milliseconds(clock.now_unix_ms());
        if let Err(refused) = settle(&*receipts, now).await {
            tracing::warn!(code = ?refused.code, reason = refused.reason, "intents not settled");
        }
        tokio::select! {
            () = shutdown.requested() => {}
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn settle(receipts: &dyn Receipts, now: UnixTime) -> Result<(), Unconfirmed> {
    for intent in receipts.open().await? {
        if !is_abandoned(&intent, now) {
            continue;
        }
        let Some(routing) = intent.routing else {
            continue;
        };
        let Some(members) = abandoned(&intent.members, &routing.operation_id, now) else {
            tracing::error!("an open intent is not of this service");
            continue;
        };
        receipts.complete(routing, members).await?;
    }
    Ok(())
}

fn is_abandoned(intent: &Intent, now: UnixTime) -> bool {
    let begun_at = intent.begun_at.as_ref().and_then(time::read);
    begun_at.is_some_and(|begun| begun.plus_seconds(ABANDONED_SECONDS) <= now)
}
