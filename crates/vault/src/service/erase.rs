//! Erasing (spec 11.7): a subject by destroying its data key, an event by taking it and what rests
//! on it alone away. What was handed out before is ended by references that leave the vault.

use std::sync::Arc;

use cl_host::clock::Clock;
use cl_host::ids::Ids;
use cl_model::digest::Digest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use cl_model::urn::{Alias, EventId};
use serde_json::json;
use tokio::sync::Mutex;

use super::{ATTEMPTS, Vault};
use crate::Deps;
use crate::core::evidence::{Evidence, Operation};
use crate::core::keys::Keys;
use crate::error::Error;
use crate::store::{
    Draft, Erased, Erasure, ErasureOrder, EventContent, Exchange, Known, Notice, OutboxEntry,
    Party, Reason, Store, StoreError, StoredEvent, StoredOperation, SubjectName, Target, blocking,
};

/// Carries out the erasures that are ordered, one after the other.
pub(crate) struct Eraser {
    store: Arc<Store>,
    keys: Arc<Keys>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    own: String,
    one_at_a_time: Mutex<()>,
}

impl Eraser {
    pub(crate) fn new(deps: &Deps) -> Self {
        Self {
            store: Arc::clone(&deps.store),
            keys: Arc::clone(&deps.keys),
            ids: Arc::clone(&deps.ids),
            clock: Arc::clone(&deps.clock),
            own: deps.own.to_string(),
            one_at_a_time: Mutex::new(()),
        }
    }

    /// Finishes every erasure that was ordered; one that fails does not keep the others back.
    pub(crate) async fn finish_all(&self) -> Result<(), Error> {
        let _one = self.one_at_a_time.lock().await;
        let mut outcome = Ok(());
        let ordered = blocking(&self.store, Store::erasures).await?;
        for erasure in ordered {
            if let Err(error) = self.finish(erasure).await {
                outcome = Err(error);
            }
        }
        outcome
    }

    async fn finish(&self, erasure: Erasure) -> Result<(), Error> {
        let erasure = self.close(erasure).await?;
        let (members, operation) = self.receipt(&erasure)?;
        blocking(&self.store, move |store| {
            store.destroy_key(&erasure)?;
            store.record_erasure(&operation, &members)?;
            store.end_erasure(&erasure)
        })
        .await
    }

    /// Writers that began before the tombstone may still be first, but not for ever.
    async fn close(&self, erasure: Erasure) -> Result<Erasure, Error> {
        for _ in 0..ATTEMPTS {
            let (ids, now) = (Arc::clone(&self.ids), self.now());
            let mut closing = erasure.clone();
            let closed = blocking(&self.store, move |store| {
                let tenant = closing.tenant.clone();
                let notice =
                    |party, target| notice(&*ids, &tenant, party, target, Reason::SubjectErased);
                let tag = closing.order.subject_tag.clone();
                store.close_subject(
                    &mut closing,
                    || {
                        let tag = || Target::SubjectTag(tag.clone());
                        Ok(vec![
                            notice(Party::DiscoveryProxy, tag())?,
                            notice(Party::ReceiptStore, tag())?,
                        ])
                    },
                    |_: &Alias, exchange: &Exchange| {
                        let decision = || Target::Decision(exchange.decision.clone());
                        if exchange.expires_at <= now {
                            return Ok(Vec::new());
                        }
                        Ok(vec![
                            notice(Party::BundleIssuer, decision())?,
                            notice(Party::PolicyEngine, decision())?,
                        ])
                    },
                )?;
                Ok(closing)
            });
            match closed.await {
                Err(Error::Store(StoreError::Conflict)) => {}
                result => return result,
            }
        }
        Err(Error::InProgress)
    }

    fn receipt(&self, erasure: &Erasure) -> Result<(OutboxEntry, StoredOperation), Error> {
        let order = &erasure.order;
        let erased = erasure.erased.unwrap_or_default();
        let result = json!([erased.events, erased.claims]).to_string();
        let evidence = Evidence {
            operation: Operation::EraseSubject,
            operation_id: &order.operation_id,
            own: &self.own,
            subject: &order.alias,
            about: None,
            policy: None,
            input: order.content,
            output: self.keys.content(result.as_bytes()),
            facts: vec![
                ("events", erased.events.to_string()),
                ("claims", erased.claims.to_string()),
            ],
            started_at: order.started_at,
            now: self.now(),
        };
        let entry = OutboxEntry {
            tenant: erasure.tenant.clone(),
            operation_id: order.operation_id.clone(),
            subject_tag: Some(order.subject_tag.clone()),
            members: evidence.members().map_err(|_| Error::Internal)?,
        };
        let operation = StoredOperation {
            content: order.content,
            result: result.into_bytes(),
        };
        Ok((entry, operation))
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_milliseconds(self.clock.now_unix_ms())
    }
}

impl Vault {
    /// Erases a subject.
    pub(crate) async fn erase_subject(
        &self,
        name: SubjectName,
        operation_id: OperationId,
    ) -> Result<Erased, Error> {
        let content = self.erasure_content(&name, None);
        if let Some(begun) = self.begun(&name.tenant, &operation_id, content).await? {
            return read_erased(&begun);
        }
        self.preflight(&name.tenant, Operation::EraseSubject)
            .await?;
        let SubjectName { tenant, subject } = &name;
        let order = ErasureOrder {
            operation_id: operation_id.clone(),
            subject_tag: self.keys.tag(tenant, subject),
            alias: self
                .keys
                .alias(tenant, subject, &operation_id, self.own.as_str()),
            started_at: self.now(),
            content,
        };
        let ordering = name.clone();
        let ordered = self.change(&name, move |store| {
            Ok(store.order_erasure(&ordering, order.clone())?)
        });
        let is_new = ordered.await?.is_some();
        // Also for a repeat: it is told so only once the first one is through.
        self.eraser.finish_all().await?;
        if !is_new {
            return Ok(Erased::default());
        }
        let begun = self.begun(&name.tenant, &operation_id, content).await?;
        read_erased(&begun.ok_or(Error::Internal)?)
    }

    /// Erases an event; returns how many claims lost their last source with it.
    pub(crate) async fn erase_event(
        &self,
        name: SubjectName,
        event: EventId,
        operation_id: OperationId,
    ) -> Result<u64, Error> {
        let content = self.erasure_content(&name, Some(&event));
        let tenant = name.tenant.clone();
        if let Some(begun) = self.begun(&tenant, &operation_id, content).await? {
            return read_retracted(&begun);
        }
        self.preflight(&tenant, Operation::EraseEvent).await?;
        let erasing = EventErasure {
            name: name.clone(),
            event,
            operation_id: operation_id.clone(),
            content,
            keys: Arc::clone(&self.keys),
            ids: Arc::clone(&self.ids),
            own: self.own.to_string(),
            now: self.now(),
        };
        let retracted = self.change(&name, move |store| erasing.run(store)).await?;
        self.outbox.settle(&tenant, &operation_id).await?;
        Ok(retracted)
    }

    fn erasure_content(&self, name: &SubjectName, event: Option<&EventId>) -> Digest {
        let asked = json!([
            "erase",
            name.tenant.as_str(),
            name.subject.as_str(),
            event.map(EventId::as_str),
        ]);
        self.keys.content(asked.to_string().as_bytes())
    }
}

struct EventErasure {
    name: SubjectName,
    event: EventId,
    operation_id: OperationId,
    content: Digest,
    keys: Arc<Keys>,
    ids: Arc<dyn Ids>,
    own: String,
    now: UnixTime,
}

impl EventErasure {
    fn run(&self, store: &Store) -> Result<u64, Error> {
        let subject = match store.find(&self.name)? {
            Known::Subject(subject) => subject,
            Known::Nothing => return Err(Error::EventNotFound),
            Known::Erased => return Err(Error::SubjectErased),
        };
        let mut draft = store.draft(&subject)?;
        let known = draft.event(&self.event)?.ok_or(Error::EventNotFound)?;
        let Some(content) = known.content else {
            return Ok(0);
        };
        let retracted = self.take_away(&mut draft, &content)?;
        self.notify(store, &mut draft)?;
        let result = retracted.to_string();
        let operation = StoredOperation {
            content: self.content,
            result: result.into_bytes(),
        };
        draft.record(&operation, &self.entry(retracted)?)?;
        draft.commit()?;
        Ok(retracted)
    }

    fn take_away(&self, draft: &mut Draft<'_>, content: &EventContent) -> Result<u64, StoreError> {
        let mut retracted = 0;
        for key in &content.claims {
            let is_retracted = draft.change_claim(key, |claim| {
                let was_held = claim.value().is_some();
                claim.remove(&self.event, self.now);
                was_held && claim.value().is_none()
            })?;
            retracted += u64::from(is_retracted.ok_or(StoreError::Corrupt)?);
        }
        draft.unlist_event(content.place);
        draft.unname_payload(content.payload, self.now)?;
        // The name stays, so that a later run of capture does not bring the item back.
        draft.put_event(&StoredEvent {
            id: self.event.clone(),
            content: None,
        });
        Ok(retracted)
    }

    fn notify(&self, store: &Store, draft: &mut Draft<'_>) -> Result<(), Error> {
        let tenant = &self.name.tenant;
        for alias in draft.aliases()? {
            let Some((_, exchange)) = store.exchange(tenant, &alias)? else {
                continue;
            };
            if exchange.expires_at <= self.now || !exchange.events.contains(&self.event) {
                continue;
            }
            let provenance = self.keys.provenance(&self.event, &exchange.request, &alias);
            let reference = provenance.ok_or(Error::Internal)?.reference();
            let targets = [
                (Party::BundleIssuer, Target::Provenance(reference)),
                (Party::PolicyEngine, Target::Decision(exchange.decision)),
            ];
            for (party, target) in targets {
                let notice = notice(&*self.ids, tenant, party, target, Reason::EventErased)?;
                draft.notify(&notice)?;
            }
        }
        Ok(())
    }

    fn entry(&self, retracted: u64) -> Result<OutboxEntry, Error> {
        let SubjectName { tenant, subject } = &self.name;
        let evidence = Evidence {
            operation: Operation::EraseEvent,
            operation_id: &self.operation_id,
            own: &self.own,
            subject: &self
                .keys
                .alias(tenant, subject, &self.operation_id, &self.own),
            about: None,
            policy: None,
            input: self.content,
            output: self.keys.content(retracted.to_string().as_bytes()),
            facts: vec![("retracted_claims", retracted.to_string())],
            started_at: self.now,
            now: self.now,
        };
        Ok(OutboxEntry {
            tenant: tenant.clone(),
            operation_id: self.operation_id.clone(),
            subject_tag: Some(self.keys.tag(tenant, subject)),
            members: evidence.members().map_err(|_| Error::Internal)?,
        })
    }
}

fn notice(
    ids: &dyn Ids,
    tenant: &TenantName,
    party: Party,
    target: Target,
    reason: Reason,
) -> Result<Notice, StoreError> {
    Ok(Notice {
        id: ids.uuid()?.to_string(),
        party,
        tenant: tenant.clone(),
        target,
        reason,
    })
}

fn read_erased(begun: &StoredOperation) -> Result<Erased, Error> {
    let (events, claims) =
        serde_json::from_slice(&begun.result).map_err(|_| Error::Store(StoreError::Corrupt))?;
    Ok(Erased { events, claims })
}

fn read_retracted(begun: &StoredOperation) -> Result<u64, Error> {
    serde_json::from_slice(&begun.result).map_err(|_| Error::Store(StoreError::Corrupt))
}
