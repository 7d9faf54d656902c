//! What the gateway does with a call, whichever door it came through.

mod document;
mod once;

use std::sync::Arc;

use cl_host::clock::Clock;
use cl_host::deadline::Deadline;
use cl_host::identity::PeerId;
use cl_host::ids::Ids;
use cl_model::object::{ContextRequest, MemoryUpdateProposal, Receipt};
use cl_model::urn::{BundleId, ReceiptId, RequestId};
use http::HeaderMap;

pub(crate) use self::document::{Document, Submittable};
pub(crate) use self::once::Done;
use self::once::Operation;
use crate::auth::{Authenticator, Caller, Refused, Watermark};
use crate::bundles::{BundleStanding, Bundles, Redeemed};
use crate::engine::{Engine, Standing};
use crate::error::{Error, Peer};
use crate::idempotency::IdempotencyKey;
use crate::keyfile::KeySetFile;
use crate::proposals::{Proposals, Proposed};
use crate::receipts::{Receipts, Recorded};
use crate::store::Store;

/// The gateway.
pub(crate) struct Gateway {
    pub(crate) authenticator: Authenticator,
    pub(crate) keys: Option<Arc<KeySetFile>>,
    pub(crate) watermark: Watermark,
    pub(crate) engine: Engine,
    pub(crate) bundles: Option<Bundles>,
    pub(crate) receipts: Option<Receipts>,
    pub(crate) proposals: Option<Proposals>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl Gateway {
    /// Who is calling.
    pub(crate) fn caller(
        &self,
        headers: &HeaderMap,
        peer: Option<&PeerId>,
    ) -> Result<Caller, Refused> {
        let (now, stepped_back) = self.watermark.observe(self.clock.now_unix_ms());
        if stepped_back {
            tracing::warn!("the clock stepped back; tokens are judged by the latest time seen");
        }
        let keys = self.keys.as_ref().map(|file| file.current());
        let keys = keys.unwrap_or_default();
        let caller = self.authenticator.caller(headers, peer, &keys, now);
        if let Err(refused) = &caller {
            tracing::debug!(cause = %refused, "caller refused");
        }
        caller
    }

    /// Submits a request, once for each key.
    pub(crate) async fn submit(
        &self,
        caller: &Caller,
        document: Document<ContextRequest>,
        key: Option<IdempotencyKey>,
        deadline: Deadline,
    ) -> Result<Done<Standing>, Error> {
        let bytes = document.bytes;
        let operation = Operation::SubmitRequest;
        let attempt = self.begin(caller, key.as_ref(), operation, &bytes).await?;
        let standing = self
            .engine
            .submit(caller, bytes, &attempt.operation_id, deadline)
            .await;
        self.end(attempt, standing).await
    }

    /// Reads where a request of the caller's own stands.
    pub(crate) async fn standing(
        &self,
        caller: &Caller,
        request: &RequestId,
        deadline: Deadline,
    ) -> Result<Standing, Error> {
        self.engine.standing(caller, request, deadline).await
    }

    /// Has a bundle handed out to the caller. A repeat is the issuer's to allow; the key is
    /// remembered here so that all attempts are one operation, and the key no other's.
    pub(crate) async fn redeem(
        &self,
        caller: &Caller,
        bundle: &BundleId,
        key: Option<IdempotencyKey>,
        deadline: Deadline,
    ) -> Result<Redeemed, Error> {
        let bundles = self.bundles()?;
        let operation = Operation::RedeemBundle(bundle);
        let attempt = self.begin(caller, key.as_ref(), operation, b"").await?;
        let operation_id = attempt.operation_id;
        let redeemed = bundles
            .redeem(caller, bundle, key.as_ref(), &operation_id, deadline)
            .await;
        Ok(self.end(attempt, redeemed).await?.answer)
    }

    /// Reads where a bundle of the caller's stands.
    pub(crate) async fn check(
        &self,
        caller: &Caller,
        bundle: &BundleId,
        deadline: Deadline,
    ) -> Result<BundleStanding, Error> {
        self.bundles()?.check(caller, bundle, deadline).await
    }

    /// Has a receipt of the caller's about a bundle recorded, and tells its place in the log.
    pub(crate) async fn record(
        &self,
        caller: &Caller,
        bundle: &BundleId,
        document: &Document<Receipt>,
        key: Option<IdempotencyKey>,
        deadline: Deadline,
    ) -> Result<Done<u64>, Error> {
        let bundles = self.bundles()?;
        let bytes = document.bytes.clone();
        let operation = Operation::SubmitReceipt(bundle);
        let attempt = self.begin(caller, key.as_ref(), operation, &bytes).await?;
        let sequence = bundles
            .record(caller, bundle, &document.object.id, bytes, deadline)
            .await;
        self.end(attempt, sequence).await
    }

    /// Reads a receipt that the caller is the actor of.
    pub(crate) async fn receipt(
        &self,
        caller: &Caller,
        receipt: &ReceiptId,
        deadline: Deadline,
    ) -> Result<Recorded, Error> {
        let receipts = self.receipts.as_ref();
        let receipts = receipts.ok_or(Error::NotServed(Peer::ReceiptStore))?;
        let actor = caller.principal();
        let recorded = receipts.read(caller.tenant(), receipt, actor, deadline);
        let recorded = recorded.await?;
        // The store answers for its part, and this check does not depend on it.
        if recorded.actor != *actor {
            return Err(Error::ReceiptNotFound);
        }
        Ok(recorded)
    }

    /// Submits a proposal, once for each key.
    pub(crate) async fn propose(
        &self,
        caller: &Caller,
        document: Document<MemoryUpdateProposal>,
        key: Option<IdempotencyKey>,
        deadline: Deadline,
    ) -> Result<Done<Proposed>, Error> {
        let proposals = self.proposals.as_ref();
        let proposals = proposals.ok_or(Error::NotServed(Peer::Vault))?;
        let bytes = document.bytes;
        let operation = Operation::SubmitProposal;
        let attempt = self.begin(caller, key.as_ref(), operation, &bytes).await?;
        let proposed = proposals
            .submit(caller, bytes, &attempt.operation_id, deadline)
            .await;
        self.end(attempt, proposed).await
    }

    fn bundles(&self) -> Result<&Bundles, Error> {
        let bundles = self.bundles.as_ref();
        bundles.ok_or(Error::NotServed(Peer::BundleIssuer))
    }
}
