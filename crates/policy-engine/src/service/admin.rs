//! Snapshots, and the replay of decisions.

use cl_model::digest::Digest;
use cl_model::policy::SnapshotSignature;
use cl_model::time::UnixTime;
use serde_json::json;

use super::{PolicyEngine, retried};
use crate::core::answer::Approved;
use crate::core::evaluation::Inputs;
use crate::core::evidence::{Evidence, Operation};
use crate::core::operation::{OperationId, TenantName};
use crate::core::request::{ReadRequest, ReadSnapshot};
use crate::error::Error;
use crate::store::{
    AboutSnapshot, Activation, Active, OutboxEntry, PutSnapshot, RecordedDecision, StoreError,
    StoredSnapshot, blocking,
};

/// What is known about a snapshot, and whether it is the active one.
pub(crate) struct SnapshotStatus {
    pub(crate) about: AboutSnapshot,
    pub(crate) is_active: bool,
}

/// One page of snapshots.
pub(crate) struct Page {
    pub(crate) entries: Vec<SnapshotStatus>,
    pub(crate) next: Option<u64>,
    pub(crate) total: u64,
}

/// A decision, evaluated again.
pub(crate) struct Replayed {
    pub(crate) repeated: Vec<u8>,
    pub(crate) recorded: Vec<u8>,
}

impl PolicyEngine {
    /// Stores a snapshot.
    pub(crate) async fn put_snapshot(
        &self,
        tenant: &TenantName,
        read: &ReadSnapshot,
        signature: Option<&SnapshotSignature>,
        operation_id: &OperationId,
    ) -> Result<Digest, Error> {
        if let Some(signers) = &self.signers {
            signers.check_new(&read.bytes, signature, self.now())?;
        }
        retried(|| self.try_put(tenant, read, signature, operation_id)).await
    }

    async fn try_put(
        &self,
        tenant: &TenantName,
        read: &ReadSnapshot,
        signature: Option<&SnapshotSignature>,
        operation_id: &OperationId,
    ) -> Result<Digest, Error> {
        let digest = read.digest();
        if let Some(stored) = self.stored_snapshot(tenant, digest).await? {
            if let Some(signature) = self.new_signature(&stored, signature) {
                return self.sign(tenant, stored, signature, operation_id).await;
            }
            self.outbox.settle(tenant, &stored.about.stored_by).await?;
            return Ok(digest);
        }
        let name = read.snapshot.identity().version.as_str().to_owned();
        let (of, version) = (tenant.clone(), name.clone());
        let other = blocking(&self.store, move |store| {
            store.snapshot_of_version(&of, &version)
        });
        if other.await?.is_some_and(|other| other != digest) {
            return Err(Error::SnapshotVersionConflict);
        }
        let content = content_of(Operation::PutSnapshot, digest, None);
        self.has_begun(tenant, operation_id, content).await?;
        self.preflight(tenant, Operation::PutSnapshot).await?;
        let now = self.now();
        let put = PutSnapshot {
            bytes: read.bytes.clone(),
            digest,
            name,
            expires_at: read.snapshot.expires_at(),
            signature: signature.cloned(),
            now,
            operation: self.used_for(operation_id, content, now),
            entry: self.snapshot_entry(
                tenant,
                Operation::PutSnapshot,
                operation_id,
                digest,
                now,
            )?,
        };
        blocking(&self.store, move |store| store.put_snapshot(&put)).await?;
        self.outbox.settle(tenant, operation_id).await?;
        Ok(digest)
    }

    /// The signature that a stored snapshot lacks. What was verified takes the place of what may not
    /// have been.
    fn new_signature<'s>(
        &self,
        stored: &StoredSnapshot,
        given: Option<&'s SnapshotSignature>,
    ) -> Option<&'s SnapshotSignature> {
        let known = stored.about.signature.as_ref();
        let is_verified = self.signers.is_some();
        given.filter(|given| known.is_none_or(|known| is_verified && known != *given))
    }

    /// Stores the signature of a snapshot that is stored already.
    async fn sign(
        &self,
        tenant: &TenantName,
        stored: StoredSnapshot,
        signature: &SnapshotSignature,
        operation_id: &OperationId,
    ) -> Result<Digest, Error> {
        let operation = Operation::PutSnapshot;
        let digest = stored.about.digest;
        let content = content_of(operation, digest, None);
        if self.has_begun(tenant, operation_id, content).await? {
            // It is what the snapshot was stored by, without a signature.
            return Err(Error::OperationConflict);
        }
        self.preflight(tenant, operation).await?;
        let now = self.now();
        let entry = self.snapshot_entry(tenant, operation, operation_id, digest, now)?;
        let used = self.used_for(operation_id, content, now);
        let signature = signature.clone();
        let signed = blocking(&self.store, move |store| {
            store.sign_snapshot(&stored, &signature, used, &entry)
        });
        signed.await?;
        self.outbox.settle(tenant, operation_id).await?;
        Ok(digest)
    }

    /// Reads a snapshot: the active one unless a digest is given.
    pub(crate) async fn snapshot(
        &self,
        tenant: &TenantName,
        digest: Option<Digest>,
    ) -> Result<(SnapshotStatus, Vec<u8>), Error> {
        let active = self.active(tenant).await?.map(|active| active.digest);
        let wanted = digest.or(active).ok_or(Error::SnapshotNotFound)?;
        let stored = self.stored_snapshot(tenant, wanted).await?;
        let stored = stored.ok_or(Error::SnapshotNotFound)?;
        let status = SnapshotStatus {
            is_active: active == Some(wanted),
            about: stored.about,
        };
        Ok((status, stored.bytes))
    }

    /// Lists snapshots, newest first.
    pub(crate) async fn snapshots(
        &self,
        tenant: &TenantName,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Page, Error> {
        let active = self.active(tenant).await?.map(|active| active.digest);
        let of = tenant.clone();
        let page = blocking(&self.store, move |store| store.snapshots(&of, after, limit)).await?;
        let last = page.entries.last().map(|about| about.place);
        let entries = page.entries.into_iter().map(|about| SnapshotStatus {
            is_active: active == Some(about.digest),
            about,
        });
        Ok(Page {
            entries: entries.collect(),
            next: last.filter(|_| page.has_more),
            total: page.total,
        })
    }

    /// Makes a snapshot the active one, if the active one is the expected one.
    pub(crate) async fn activate(
        &self,
        tenant: &TenantName,
        digest: Digest,
        expected: Option<Digest>,
        operation_id: &OperationId,
    ) -> Result<SnapshotStatus, Error> {
        retried(|| self.try_activate(tenant, digest, expected, operation_id)).await
    }

    async fn try_activate(
        &self,
        tenant: &TenantName,
        digest: Digest,
        expected: Option<Digest>,
        operation_id: &OperationId,
    ) -> Result<SnapshotStatus, Error> {
        let current = self.active(tenant).await?;
        let stored = self.stored_snapshot(tenant, digest).await?;
        let snapshot = stored.ok_or(Error::SnapshotNotFound)?;
        let active = current.map(|active| active.digest);
        if active == Some(digest) {
            return self.active_status(tenant, snapshot).await;
        }
        if active != expected {
            return Err(Error::SnapshotNotCurrent);
        }
        let now = self.now();
        if snapshot.about.expires_at.is_some_and(|ends| ends <= now) {
            return Err(Error::SnapshotExpired);
        }
        if let Some(signers) = &self.signers {
            let signature = snapshot.about.signature.as_ref();
            signers.check_stored(&snapshot.bytes, signature, now)?;
        }
        let content = content_of(Operation::ActivateSnapshot, digest, expected);
        if self.has_begun(tenant, operation_id, content).await? {
            let again = self.active(tenant).await?.map(|active| active.digest);
            return Err(if again == active {
                // It was active, and another one has taken its place since.
                Error::SnapshotNotCurrent
            } else {
                // The same call twice at once, and the other one was faster.
                StoreError::Conflict.into()
            });
        }
        let operation = Operation::ActivateSnapshot;
        self.preflight(tenant, operation).await?;
        let activation = Activation {
            entry: self.snapshot_entry(tenant, operation, operation_id, digest, now)?,
            snapshot,
            current,
            now,
            operation: self.used_for(operation_id, content, now),
        };
        blocking(&self.store, move |store| store.activate(&activation)).await?;
        self.ages.changed();
        let stored = self.stored_snapshot(tenant, digest).await?;
        let snapshot = stored.ok_or(StoreError::Corrupt)?;
        self.active_status(tenant, snapshot).await
    }

    /// The answer about a snapshot that is active, once the receipt of that is durable.
    async fn active_status(
        &self,
        tenant: &TenantName,
        snapshot: StoredSnapshot,
    ) -> Result<SnapshotStatus, Error> {
        if let Some((_, activated_by)) = &snapshot.about.activated {
            self.outbox.settle(tenant, activated_by).await?;
        }
        Ok(SnapshotStatus {
            about: snapshot.about,
            is_active: true,
        })
    }

    /// Evaluates a recorded decision again.
    pub(crate) async fn replay(
        &self,
        tenant: &TenantName,
        decision_id: &str,
        operation_id: &OperationId,
    ) -> Result<Replayed, Error> {
        let (of, id) = (tenant.clone(), decision_id.to_owned());
        let read = blocking(&self.store, move |store| {
            let Some(recorded) = store.decision(&of, &id)? else {
                return Ok(None);
            };
            let snapshot = store.snapshot(&of, recorded.snapshot)?;
            Ok(Some((recorded, snapshot)))
        });
        let (recorded, snapshot) = read.await?.ok_or(Error::DecisionNotFound)?;
        let snapshot = snapshot.ok_or(Error::DecisionInputsGone)?;
        let snapshot = self.compiled.read(snapshot.bytes)?;
        let replayed = repeat(recorded, &snapshot)?;
        self.receipt_replay(tenant, decision_id, operation_id, &replayed)
            .await?;
        Ok(replayed.answer)
    }

    async fn receipt_replay(
        &self,
        tenant: &TenantName,
        decision_id: &str,
        operation_id: &OperationId,
        repeated: &Repeated,
    ) -> Result<(), Error> {
        let content = Digest::of_json(&json!([Operation::Replay.as_str(), decision_id]));
        if !self.has_begun(tenant, operation_id, content).await? {
            self.preflight(tenant, Operation::Replay).await?;
            let evidence = Evidence {
                operation: Operation::Replay,
                operation_id,
                engine: self.own.as_str(),
                subject: &self.tenant_alias(tenant),
                about: Some((&repeated.request_ref, decision_id)),
                policy: Some(repeated.policy),
                facts: &[],
                input: Digest::of_bytes(&repeated.answer.recorded),
                output: Digest::of_bytes(&repeated.answer.repeated),
                decision: None,
                now: self.now(),
            };
            let entry = self.entry(tenant, &evidence, None)?;
            let used = self.used_for(operation_id, content, self.now());
            let begin = blocking(&self.store, move |store| store.begin(used, &entry));
            match begin.await {
                // The same call, twice at once: one of them has stored the entry.
                Err(StoreError::Conflict) => {
                    self.has_begun(tenant, operation_id, content).await?;
                }
                result => result?,
            }
        }
        self.outbox.settle(tenant, operation_id).await
    }

    fn snapshot_entry(
        &self,
        tenant: &TenantName,
        operation: Operation,
        operation_id: &OperationId,
        digest: Digest,
        now: UnixTime,
    ) -> Result<OutboxEntry, Error> {
        let evidence = Evidence {
            operation,
            operation_id,
            engine: self.own.as_str(),
            subject: &self.tenant_alias(tenant),
            about: None,
            policy: Some(digest),
            facts: &[],
            input: digest,
            output: digest,
            decision: None,
            now,
        };
        self.entry(tenant, &evidence, None)
    }

    async fn active(&self, tenant: &TenantName) -> Result<Option<Active>, StoreError> {
        let tenant = tenant.clone();
        blocking(&self.store, move |store| store.active(&tenant)).await
    }

    pub(super) async fn stored_snapshot(
        &self,
        tenant: &TenantName,
        digest: Digest,
    ) -> Result<Option<StoredSnapshot>, StoreError> {
        let tenant = tenant.clone();
        blocking(&self.store, move |store| store.snapshot(&tenant, digest)).await
    }
}

struct Repeated {
    request_ref: String,
    policy: Digest,
    answer: Replayed,
}

fn repeat(recorded: RecordedDecision, snapshot: &ReadSnapshot) -> Result<Repeated, Error> {
    let request = ReadRequest::parse(recorded.request).map_err(|_| StoreError::Corrupt)?;
    let approved = recorded.approval.as_deref().map(Approved::parse);
    let approved = approved.transpose().map_err(|_| StoreError::Corrupt)?;
    let inputs = Inputs {
        request: &request,
        facts: &recorded.facts,
        snapshot: &snapshot.snapshot,
        approved: approved.as_ref(),
        signals: &recorded.signals,
        preflight: recorded.preflight,
        now: recorded.now,
    };
    let decided = inputs.decide().map_err(|_| StoreError::Corrupt)?;
    Ok(Repeated {
        request_ref: request.request.id.as_str().to_owned(),
        policy: recorded.snapshot,
        answer: Replayed {
            repeated: decided.record.text().as_bytes().to_vec(),
            recorded: recorded.decision,
        },
    })
}

/// What an operation id is used for.
fn content_of(operation: Operation, digest: Digest, expected: Option<Digest>) -> Digest {
    let expected = expected.map(|digest| digest.to_string());
    Digest::of_json(&json!([operation.as_str(), digest.to_string(), expected]))
}
