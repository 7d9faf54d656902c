//! Grants that were revoked and whose bundles the issuer has not ended yet.

use std::sync::Arc;
use std::time::Duration;

use cl_host::life::Shutdown;
use cl_wire::bundle::v1::RevokeBundlesRequest;
use cl_wire::bundle::v1::revoke_bundles_request::Target;
use tokio::task::JoinSet;

use crate::error::Error;
use crate::issuer::Issuer;
use crate::store::people::Unrevoked;
use crate::store::{Store, blocking};

/// Time between two looks at what is outstanding.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest pause while the issuer is away.
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// How many revocations are read, and told side by side, at a time.
const PAGE: usize = 64;

/// Longest time for one call to the issuer.
const MAX_CALL: Duration = Duration::from_secs(10);

/// Why the bundles end.
const REASON: &str = "grant.revoked";

/// Tells the issuer of revoked grants until it has ended their bundles.
///
/// A revocation is outstanding from the batch that stores it. A crash at any point leaves it so, and
/// the issuer takes a repeat for the same.
pub(crate) struct Revoking {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) issuer: Arc<dyn Issuer>,
}

impl Revoking {
    /// Tells of one now, and leaves it to later if that does not work.
    pub(crate) async fn tell_now(&self, unrevoked: Unrevoked) {
        if let Err(error) = self.tell(unrevoked).await {
            tracing::warn!(%error, "a bundle is not revoked yet");
        }
    }

    /// Tells what is outstanding, now and from time to time, until told to end.
    pub(crate) async fn run(self: Arc<Self>, shutdown: Shutdown) {
        let mut pause = PAUSE;
        while !shutdown.is_requested() {
            pause = match self.tell_all().await {
                Ok(()) => PAUSE,
                Err(error) => {
                    if error.is_fault() {
                        tracing::error!(%error, "what is to be revoked cannot be read or settled");
                    }
                    (pause * 2).min(MAX_PAUSE)
                }
            };
            tokio::select! {
                () = shutdown.requested() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Tries each revocation once; one that fails, or hangs, does not keep the others back.
    async fn tell_all(self: &Arc<Self>) -> Result<(), Error> {
        let mut after = None;
        let mut outcome = Ok(());
        loop {
            let from = after.take();
            let page = blocking(&self.store, move |store| store.unrevoked(from, PAGE)).await?;
            let (all, next) = page;
            let mut calls = JoinSet::new();
            for unrevoked in all {
                let this = Arc::clone(self);
                calls.spawn(async move { this.tell(unrevoked).await });
            }
            while let Some(told) = calls.join_next().await {
                let told = told.unwrap_or(Err(Error::Internal));
                outcome = outcome.and(told);
            }
            after = next;
            if after.is_none() {
                return outcome;
            }
        }
    }

    async fn tell(&self, unrevoked: Unrevoked) -> Result<(), Error> {
        let request = RevokeBundlesRequest {
            tenant: unrevoked.tenant.as_str().to_owned(),
            reason: REASON.to_owned(),
            operation_id: unrevoked.operation_id.as_str().to_owned(),
            target: Some(Target::DecisionRef(unrevoked.decision_id.clone())),
        };
        self.issuer
            .revoke(request, MAX_CALL)
            .await
            .map_err(|code| {
                tracing::warn!(?code, "the issuer does not confirm a revocation");
                Error::Unsettled
            })?;
        blocking(&self.store, move |store| {
            store.forget_revocation(&unrevoked)
        })
        .await?;
        Ok(())
    }
}
