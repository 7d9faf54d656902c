//! Issuing: at most one bundle for one decision.

use cl_host::deadline::Deadline;
use cl_kv::Version;
use cl_model::digest::Digest;
use cl_model::grant::VerifiedGrant;
use cl_model::object::ContextRequest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use cl_model::trust::DECISION;
use cl_model::urn::{BundleId, DecisionId};
use cl_wire::grant::SignedGrant;
use cl_wire::semantic::v1::ProjectClaimsRequest;
use serde_json::json;

use super::{ATTEMPTS, BundleIssuer, Used};
use crate::core::assembly::{Assembled, Assembly};
use crate::core::bundle::{Bundle, State};
use crate::core::disclosure;
use crate::core::evidence::Operation;
use crate::error::{Error, Final, REVOKED};
use crate::proxy::ProxyRefusal;
use crate::store::{
    Claim, Failed, Follow, Issue, NewBundle, OutboxEntry, StoreError, StoredBundle, StoredIssue,
    Target, Use, blocking,
};

/// A call to issue.
pub(crate) struct IssueCall {
    pub(crate) tenant: TenantName,
    pub(crate) request: ContextRequest,
    pub(crate) request_bytes: Vec<u8>,
    pub(crate) grant: SignedGrant,
    pub(crate) operation_id: OperationId,
    pub(crate) deadline: Option<Deadline>,
}

/// An issued bundle.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(crate) id: BundleId,
    pub(crate) expires_at: UnixTime,
}

/// A decision that one attempt has to itself.
struct Attempt<'a> {
    call: &'a IssueCall,
    grant: &'a VerifiedGrant,
    claim: Version,
    operation: Use,
}

impl BundleIssuer {
    /// Issues the bundle of a decision, or returns the one that it has.
    pub(crate) async fn issue(&self, call: &IssueCall) -> Result<Issued, Error> {
        let grant = self.verify(call, self.settled_now()?)?;
        let result = self.issue_under(call, &grant).await;
        let outcome = match &result {
            Ok(_) => "issued",
            Err(error) => error.code(),
        };
        self.count("issue", outcome);
        result
    }

    fn verify(&self, call: &IssueCall, now: UnixTime) -> Result<VerifiedGrant, Error> {
        let grant = VerifiedGrant::verify(
            &call.grant.scope,
            &call.grant.plan,
            &call.request,
            &self.trust.keys(DECISION, now),
            self.own.as_str(),
            now,
        )
        .map_err(Error::Grant)?;
        if grant.plan().tenant.as_str() != call.tenant.as_str() {
            return Err(Error::TenantMismatch);
        }
        // What was revoked under it must be remembered for as long as it can be used.
        let remembered = grant.scope().not_before.instant();
        let remembered = remembered.plus_seconds(self.times.retention_seconds);
        if remembered < grant.scope().expires_at.instant() {
            return Err(Error::NoBundle(Final::of("GRANT_OUTLASTS_RETENTION")));
        }
        Ok(grant)
    }

    async fn issue_under(&self, call: &IssueCall, grant: &VerifiedGrant) -> Result<Issued, Error> {
        for _ in 0..ATTEMPTS {
            match self.try_issue(call, grant).await {
                Err(Error::Store(StoreError::Conflict)) => {}
                result => return result,
            }
        }
        Err(Error::IssueInProgress)
    }

    async fn try_issue(&self, call: &IssueCall, grant: &VerifiedGrant) -> Result<Issued, Error> {
        let decision = &grant.scope().decision_id;
        let read = self.standing(&call.tenant, decision).await?;
        let now = self.settled_now()?;
        let replaces = match read {
            None => None,
            Some(StoredIssue { issue, version }) => match issue {
                Issue::Issued(id) => return self.issued(&call.tenant, &id).await,
                Issue::Failed(code) => {
                    self.outbox.settle(&call.tenant, &call.operation_id).await?;
                    return Err(Error::NoBundle(Final::of(&code)));
                }
                Issue::Taken(until) if now < until => return Err(Error::IssueInProgress),
                // The attempt before this one ended with its process.
                Issue::Taken(_) => Some(version),
            },
        };
        let names = vec![
            Target::Decision(decision.clone()),
            Target::Alias(grant.plan().subject_alias.clone()),
        ];
        self.check_not_barred(&call.tenant, names).await?;
        let operation = content(decision);
        let used = self.check_operation(&call.tenant, &call.operation_id, operation);
        if used.await? == Used::Forgotten {
            return Err(Error::OperationTooOld);
        }
        self.preflight(&call.tenant, Operation::Issue).await?;
        let until = now.plus_seconds(self.times.issue_lease_seconds);
        let kept_until = grant.scope().expires_at.instant().max(until);
        let kept_until = kept_until.plus_seconds(self.times.retention_seconds);
        let (tenant, named) = (call.tenant.clone(), decision.clone());
        let claim = blocking(&self.store, move |store| {
            store.claim(&Claim {
                tenant: &tenant,
                decision: &named,
                read: replaces,
                until,
                kept_until,
            })
        });
        let attempt = Attempt {
            call,
            grant,
            claim: claim.await?,
            operation: self.used_for(&call.operation_id, operation, now),
        };
        match self.attempt(&attempt).await {
            Ok(id) => self.issued(&call.tenant, &id).await,
            Err(Error::NoBundle(code)) => {
                self.fail(&attempt, &code).await?;
                Err(Error::NoBundle(code))
            }
            Err(error) => {
                self.release(&attempt).await;
                Err(error)
            }
        }
    }

    /// Projects, assembles and stores; the bundle is not live yet.
    async fn attempt(&self, attempt: &Attempt<'_>) -> Result<BundleId, Error> {
        let Attempt { call, grant, .. } = attempt;
        let request = ProjectClaimsRequest {
            tenant: call.tenant.as_str().to_owned(),
            request: call.request_bytes.clone(),
            grant: Some(call.grant.to_message()),
            operation_id: call.operation_id.as_str().to_owned(),
        };
        let answer = self.proxy.project(request, call.deadline).await;
        let answer = answer.map_err(|status| match ProxyRefusal::of(&status) {
            ProxyRefusal::Grant(code) => Error::GrantRefused(code),
            ProxyRefusal::Final(code) => Error::NoBundle(Final::of(code)),
            ProxyRefusal::Unavailable(code) => Error::ProxyUnavailable(code),
        })?;
        let items = disclosure::read(answer.items, grant)
            .map_err(|_| Error::NoBundle(Final::of("PROXY_ANSWER_INVALID")))?;
        // Time has passed: a bundle must not begin after its grant has ended.
        let now = self.settled_now()?;
        let assembled = Assembly {
            request: &call.request,
            grant,
            scope: &call.grant.scope,
            items: &items,
            issuer: &self.issuer,
            keys: &self.keys,
            now,
        }
        .assemble()
        .map_err(|refusal| Error::NoBundle(Final::of(refusal.code().as_str())))?;
        let new = self.new_bundle(attempt, assembled, items.len(), now)?;
        let id = new.bundle.id.clone();
        // The commit point. A crash before it leaves an attempt whose time runs out, a crash after
        // it leaves an outbox entry that makes the same bundle live.
        let names = Target::naming(&new.bundle);
        match blocking(&self.store, move |store| store.set_aside(&new)).await {
            Err(StoreError::Conflict) => {
                self.check_not_barred(&call.tenant, names).await?;
                Err(StoreError::Conflict.into())
            }
            result => Ok(result.map(|()| id)?),
        }
    }

    fn new_bundle(
        &self,
        attempt: &Attempt<'_>,
        assembled: Assembled,
        items: usize,
        now: UnixTime,
    ) -> Result<NewBundle, Error> {
        let Attempt { call, grant, .. } = attempt;
        let issued = assembled.bundle;
        let sources = issued.provenance.values();
        let expires_at = issued.expires_at.instant();
        let bundle = Bundle {
            tenant: call.tenant.clone(),
            id: issued.id.clone(),
            recipient: issued.recipient.clone(),
            request: issued.request_ref.clone(),
            decision: issued.decision_ref.clone(),
            policy: grant.decision().decision().policy_snapshot.digest,
            alias: issued.subject_alias.clone(),
            subject_tag: grant.plan().subject_tag.as_str().to_owned(),
            sources: sources.map(|source| source.reference.clone()).collect(),
            digest: assembled.digest,
            operations: issued.receipt_contract.required_operations.to_vec(),
            expires_at,
            issued_by: call.operation_id.clone(),
            grant_ends: grant.scope().expires_at.instant(),
            state: State::Pending,
            redemption: None,
            due: expires_at,
        };
        let writer = self.writer(&call.operation_id, now);
        let members = writer.issued(&bundle, grant.scope().decision_digest, items);
        let entry = OutboxEntry {
            members: members.map_err(|_| Error::Internal)?,
            follow: Follow::Live(bundle.id.clone()),
            ..entry(attempt)
        };
        Ok(NewBundle {
            bundle,
            content: assembled.content,
            claim: attempt.claim,
            operation: attempt.operation,
            entry,
        })
    }

    /// The bundle of a decision, once it is live.
    async fn issued(&self, tenant: &TenantName, id: &BundleId) -> Result<Issued, Error> {
        let stored = self.stored(tenant, id).await?;
        let stored = if stored.bundle.state == State::Pending {
            let bundle = &stored.bundle;
            self.outbox.settle(tenant, &bundle.issued_by).await?;
            self.stored(tenant, id).await?
        } else {
            stored
        };
        if stored.bundle.state == State::Revoked {
            return Err(Error::NoBundle(Final::of(REVOKED)));
        }
        Ok(Issued {
            id: stored.bundle.id,
            expires_at: stored.bundle.expires_at,
        })
    }

    async fn stored(&self, tenant: &TenantName, id: &BundleId) -> Result<StoredBundle, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let stored = blocking(&self.store, move |store| store.bundle(&tenant, &id)).await?;
        stored.ok_or(Error::Store(StoreError::Corrupt))
    }

    async fn standing(
        &self,
        tenant: &TenantName,
        decision: &DecisionId,
    ) -> Result<Option<StoredIssue>, Error> {
        let (tenant, decision) = (tenant.clone(), decision.clone());
        let issue = blocking(&self.store, move |store| store.issue(&tenant, &decision));
        Ok(issue.await?)
    }

    /// A decision, an exchange or a source that was revoked gets no bundle.
    async fn check_not_barred(&self, tenant: &TenantName, names: Vec<Target>) -> Result<(), Error> {
        let tenant = tenant.clone();
        if blocking(&self.store, move |store| store.is_barred(&tenant, &names)).await? {
            return Err(Error::NoBundle(Final::of(REVOKED)));
        }
        Ok(())
    }

    async fn fail(&self, attempt: &Attempt<'_>, code: &Final) -> Result<(), Error> {
        let writer = self.writer(&attempt.call.operation_id, self.settled_now()?);
        let members = writer.not_issued(attempt.grant, code.as_str());
        let failed = Failed {
            decision: attempt.grant.scope().decision_id.clone(),
            claim: attempt.claim,
            code: code.as_str().to_owned(),
            operation: attempt.operation,
            entry: OutboxEntry {
                members: members.map_err(|_| Error::Internal)?,
                ..entry(attempt)
            },
        };
        blocking(&self.store, move |store| store.fail(&failed)).await?;
        let call = attempt.call;
        self.outbox.settle(&call.tenant, &call.operation_id).await
    }

    /// Gives the decision back, so that a repeat need not wait. If that fails, its time runs out.
    async fn release(&self, attempt: &Attempt<'_>) {
        let tenant = attempt.call.tenant.clone();
        let decision = attempt.grant.scope().decision_id.clone();
        let claim = attempt.claim;
        let released = blocking(&self.store, move |store| {
            store.release(&tenant, &decision, claim)
        });
        if let Err(error) = released.await {
            tracing::warn!(%error, "an attempt to issue keeps its decision until its time runs out");
        }
    }
}

/// What the operation id of an issue is used for.
fn content(decision: &DecisionId) -> Digest {
    Digest::of_json(&json!([Operation::Issue.as_str(), decision.as_str()]))
}

fn entry(attempt: &Attempt<'_>) -> OutboxEntry {
    OutboxEntry {
        tenant: attempt.call.tenant.clone(),
        operation_id: attempt.call.operation_id.clone(),
        subject_tag: Some(attempt.grant.plan().subject_tag.as_str().to_owned()),
        members: Vec::new(),
        follow: Follow::Nothing,
    }
}
