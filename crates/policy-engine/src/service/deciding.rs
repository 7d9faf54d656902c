//! One decision: evaluated, granted, and made ready to be stored.

use std::sync::Arc;

use cl_kv::Version;
use cl_model::digest::Digest;
use cl_model::policy::Preflight;
use cl_model::time::UnixTime;
use cl_model::urn::ApprovalId;

use super::PolicyEngine;
use super::signals::Told;
use crate::core::answer::Approved;
use crate::core::evaluation::{Decided, Inputs};
use crate::core::evidence::{Evidence, Operation};
use crate::core::facts::Facts;
use crate::core::grant::{SubjectNames, grant};
use crate::core::operation::OperationId;
use crate::core::request::{InvalidBytes, ReadRequest, ReadSnapshot};
use crate::core::state::{Standing, State};
use crate::error::Error;
use crate::store::people::Pending;
use crate::store::{NewDecision, RecordedDecision, RequestKey, StoredRequest};

/// The active snapshot, as read.
pub(super) struct ActiveSnapshot {
    pub(super) read: Arc<ReadSnapshot>,
    pub(super) version: Version,
}

/// A request to decide, for the first time or with a person's answer.
pub(super) struct Deciding<'a> {
    pub(super) key: RequestKey,
    pub(super) request: &'a ReadRequest,
    pub(super) facts: &'a Facts,
    pub(super) operation_id: &'a OperationId,
    pub(super) content: Digest,
    pub(super) active: &'a ActiveSnapshot,
    pub(super) replaces: Option<StoredRequest>,
    pub(super) approved: Option<&'a Approved>,
    pub(super) told: &'a Told,
    pub(super) now: UnixTime,
}

impl PolicyEngine {
    pub(super) fn decide(&self, deciding: Deciding<'_>) -> Result<(Decided, NewDecision), Error> {
        let refused = |refusal| Error::document("request")(InvalidBytes::Refused(refusal));
        let Deciding { request, facts, .. } = deciding;
        let tenant = &deciding.key.tenant;
        let inputs = Inputs {
            request,
            facts,
            snapshot: &deciding.active.read.snapshot,
            approved: deciding.approved,
            signals: &deciding.told.signals,
            preflight: Preflight::Available,
            now: deciding.now,
        };
        let decided = inputs.decide().map_err(refused)?;
        let names = SubjectNames::of(&inputs, tenant, &self.keys);
        let (keys, audiences) = (&self.keys, &self.audiences);
        let grant = grant(&inputs, &decided, tenant, &names, keys, audiences).map_err(refused)?;
        let decision = &decided.decision;
        let evidence = Evidence {
            operation: Operation::Decide,
            operation_id: deciding.operation_id,
            engine: self.own.as_str(),
            subject: &names.alias,
            about: Some((decision.request_ref.as_str(), decision.id.as_str())),
            policy: Some(decision.policy_snapshot.digest),
            facts: &approval_fact(deciding.approved),
            input: request.digest(),
            output: decided.record.digest(),
            decision: Some(decided.state().as_str()),
            now: deciding.now,
        };
        let mut heard = deciding.told.heard.clone();
        if inputs.is_over_rate() {
            // It is not counted: who asks too often would never be heard again.
            heard.counts.clear();
        }
        let entry = self.entry(tenant, &evidence, Some(names.tag.clone()))?;
        let created_at = request.request.created_at.instant();
        let ends = decision.expires_at.instant();
        let mut new = NewDecision {
            standing: Standing {
                state: State::after(decided.state()),
                request_digest: request.digest(),
                decision: decided.state(),
                expires_at: ends,
            },
            decision_id: decision.id.as_str().to_owned(),
            recorded: RecordedDecision {
                request: request.bytes.clone(),
                facts: facts.clone(),
                snapshot: decision.policy_snapshot.digest,
                preflight: inputs.preflight,
                signals: deciding.told.signals.clone(),
                now: deciding.now,
                decision: decided.record.text().as_bytes().to_vec(),
                grant,
                approval: deciding
                    .approved
                    .map(|approved| approved.artefact().to_vec()),
            },
            subject: request.request.subject_ref.clone(),
            pending: None,
            heard,
            active: deciding.active.version,
            replaces: deciding.replaces,
            kept_until: created_at
                .max(ends)
                .max(deciding.now)
                .plus_seconds(self.retention_seconds),
            issue: self.issue_operation(&decided)?,
            operation: self.used_for(deciding.operation_id, deciding.content, deciding.now),
            entry,
            key: deciding.key,
        };
        if new.standing.state == State::PendingApproval {
            self.wait(&mut new, request)?;
        }
        Ok((decided, new))
    }

    /// Has a decision wait for a person: as long as the request lasts, and not longer than an
    /// approval may take.
    fn wait(&self, new: &mut NewDecision, request: &ReadRequest) -> Result<(), Error> {
        let uuid = self.ids.uuid().map_err(|_| Error::Internal)?;
        let reference = ApprovalId::parse(&format!("urn:cl:approval:{uuid}"));
        let now = new.recorded.now;
        let latest = now.plus_seconds(self.people.approval_seconds);
        let expires_at = request.request.expires_at.instant().min(latest);
        new.standing.expires_at = expires_at;
        new.kept_until = new
            .kept_until
            .max(expires_at.plus_seconds(self.retention_seconds));
        new.pending = Some(Pending {
            reference: reference.ok_or(Error::Internal)?,
            key: new.key.clone(),
            decision_id: new.decision_id.clone(),
            request_digest: request.digest(),
            subject: new.subject.clone(),
            created_at: now,
            expires_at,
        });
        Ok(())
    }

    /// The operation that is to issue a bundle, if the decision allows one and there is an issuer.
    fn issue_operation(&self, decided: &Decided) -> Result<Option<OperationId>, Error> {
        if self.issuing.is_none() || !decided.state().allows() {
            return Ok(None);
        }
        self.new_operation().map(Some)
    }
}

fn approval_fact(approved: Option<&Approved>) -> Vec<(&'static str, &str)> {
    let approved = approved.into_iter();
    approved
        .map(|approved| ("approval_ref", approved.document().id.as_str()))
        .collect()
}
