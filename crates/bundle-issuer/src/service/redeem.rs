//! Handing a bundle out: once, and again only for a lost answer.

use cl_host::clock::Reading;
use cl_model::digest::Digest;
use cl_model::operation::OperationId;
use cl_model::time::UnixTime;
use serde_json::json;

use super::{ATTEMPTS, BundleIssuer, BundleKey, Used};
use crate::core::assembly::Content;
use crate::core::bundle::{OnRedemption, Redemption, State};
use crate::core::evidence::Operation;
use crate::error::Error;
use crate::store::{Change, Follow, OutboxEntry, StoreError, StoredBundle, blocking};

/// A call to hand a bundle out.
pub(crate) struct RedeemCall {
    pub(crate) key: BundleKey,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) operation_id: OperationId,
}

/// A bundle on its way to its recipient.
pub(crate) struct Delivery {
    pub(crate) content: Content,
    pub(crate) is_repeated: bool,
}

impl BundleIssuer {
    /// Hands a bundle out to its recipient.
    pub(crate) async fn redeem(&self, call: &RedeemCall) -> Result<Delivery, Error> {
        let result = self.redeem_with_retries(call).await;
        let outcome = match &result {
            Ok(delivery) if delivery.is_repeated => "repeated",
            Ok(_) => "delivered",
            Err(error) => error.code(),
        };
        self.count("redeem", outcome);
        result
    }

    async fn redeem_with_retries(&self, call: &RedeemCall) -> Result<Delivery, Error> {
        for _ in 0..ATTEMPTS {
            match self.try_redeem(call).await {
                Err(Error::Store(StoreError::Conflict)) => {}
                result => return result,
            }
        }
        Err(Error::RedemptionInProgress)
    }

    async fn try_redeem(&self, call: &RedeemCall) -> Result<Delivery, Error> {
        let stored = self.current(&call.key).await?;
        let key = call.idempotency_key.as_ref();
        let key = key.map(|key| Digest::of_bytes(key.as_bytes()));
        let Reading { now, settled, .. } = self.time.read();
        match stored.bundle.on_redemption(key, &self.times, settled) {
            OnRedemption::Take => self.take(call, stored, key, now).await,
            OnRedemption::Finish => self.finish(call, &stored).await,
            OnRedemption::Repeat => Ok(Delivery {
                content: self.content(call).await?.ok_or(StoreError::Conflict)?,
                is_repeated: true,
            }),
            OnRedemption::Replay => Err(Error::BundleReplay),
            OnRedemption::Expired => Err(Error::BundleExpired),
            OnRedemption::Revoked => Err(Error::BundleRevoked),
            OnRedemption::Unknown => Err(Error::BundleNotFound),
        }
    }

    /// The first redemption: intent, receipt, bytes, in this order.
    async fn take(
        &self,
        call: &RedeemCall,
        read: StoredBundle,
        key: Option<Digest>,
        now: UnixTime,
    ) -> Result<Delivery, Error> {
        let operation = content(&call.key);
        let tenant = &call.key.tenant;
        match self
            .check_operation(tenant, &call.operation_id, operation)
            .await?
        {
            Used::New => {}
            // The same call twice at once, and the other one was faster.
            Used::Same => return Err(StoreError::Conflict.into()),
            Used::Forgotten => return Err(Error::OperationTooOld),
        }
        self.preflight(tenant, Operation::Deliver).await?;
        // Read before the intent: without a key the content goes as soon as the receipt is durable.
        let content = self.content(call).await?.ok_or(StoreError::Conflict)?;
        let mut next = read.bundle.turned(State::Redeeming, &self.times, now);
        next.redemption = Some(Redemption {
            operation_id: call.operation_id.clone(),
            key,
            at: now,
            is_withheld: false,
        });
        let members = self
            .writer(&call.operation_id, now)
            .delivered(&next, &content.envelope);
        let entry = OutboxEntry {
            tenant: tenant.clone(),
            operation_id: call.operation_id.clone(),
            subject_tag: Some(next.subject_tag.clone()),
            members: members.map_err(|_| Error::Internal)?,
            follow: Follow::Redeemed(next.id.clone()),
        };
        let used = self.used_for(&call.operation_id, operation, now);
        // The commit point: of all redemptions of a bundle only one gets past it.
        let announced = blocking(&self.store, move |store| {
            store.change(&Change {
                read: &read,
                next: &next,
                wipes: false,
                announces: Some((&entry, used)),
                settles: None,
            })
        });
        announced.await?;
        self.settle_delivery(call, &call.operation_id).await?;
        Ok(Delivery {
            content,
            is_repeated: false,
        })
    }

    /// A repeat of a redemption whose receipt is not durable yet.
    async fn finish(&self, call: &RedeemCall, read: &StoredBundle) -> Result<Delivery, Error> {
        let redemption = read.bundle.redemption.as_ref().ok_or(StoreError::Corrupt)?;
        let content = self.content(call).await?.ok_or(StoreError::Conflict)?;
        self.settle_delivery(call, &redemption.operation_id).await?;
        Ok(Delivery {
            content,
            is_repeated: true,
        })
    }

    /// Makes the receipt durable, and says whether the bundle may leave after that: whether it was
    /// stored as handed out before it ended. What ends it later is found by its recipient's next
    /// check.
    async fn settle_delivery(
        &self,
        call: &RedeemCall,
        operation_id: &OperationId,
    ) -> Result<(), Error> {
        self.outbox.settle(&call.key.tenant, operation_id).await?;
        let key = call.key.clone();
        let read = blocking(&self.store, move |store| store.bundle(&key.tenant, &key.id));
        let bundle = read.await?.ok_or(Error::BundleNotFound)?.bundle;
        if bundle.was_handed_out() {
            return Ok(());
        }
        match bundle.state {
            State::Revoked => Err(Error::BundleRevoked),
            State::Expired => Err(Error::BundleExpired),
            State::Pending | State::Live | State::Redeeming | State::Redeemed | State::Consumed => {
                Err(Error::RedemptionInProgress)
            }
        }
    }

    async fn content(&self, call: &RedeemCall) -> Result<Option<Content>, StoreError> {
        let key = call.key.clone();
        blocking(&self.store, move |store| {
            store.content(&key.tenant, &key.id)
        })
        .await
    }
}

/// What the operation id of a delivery is used for.
fn content(key: &BundleKey) -> Digest {
    Digest::of_json(&json!([
        Operation::Deliver.as_str(),
        key.id.as_str(),
        key.recipient.as_str(),
    ]))
}
