//! Memory proposals: accepted as pending, and nothing more (spec 8.4, 9.4).

use std::sync::Arc;

use cl_model::memory::MEMORY_PROPOSE;
use cl_model::operation::{OperationId, TenantName};
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::{Alias, EventId, ProposalId};

use super::Vault;
use crate::core::evidence::{Evidence, Operation};
use crate::core::keys::Keys;
use crate::core::proposal::ReadProposal;
use crate::error::Error;
use crate::store::{Exchange, OutboxEntry, Store, StoredOperation, StoredProposal, SubjectName};

/// A proposal that comes in.
#[derive(Clone)]
pub(crate) struct Submission {
    pub(crate) tenant: TenantName,
    pub(crate) submitter: Reference,
    pub(crate) proposal: ReadProposal,
    pub(crate) operation_id: OperationId,
}

/// A proposal as it is stored.
pub(crate) struct Pending {
    pub(crate) id: ProposalId,
    pub(crate) document: Vec<u8>,
    pub(crate) expires_at: UnixTime,
}

struct Proposing {
    submission: Submission,
    alias: Alias,
    content: cl_model::digest::Digest,
    keys: Arc<Keys>,
    own: String,
    now: UnixTime,
}

impl Vault {
    /// Checks a proposal and stores it as pending.
    pub(crate) async fn propose(&self, submission: Submission) -> Result<Pending, Error> {
        let proposal = &submission.proposal.proposal;
        if proposal.submitted_by != submission.submitter {
            return Err(Error::SubmitterMismatch);
        }
        // The subject of a proposal from outside is an alias; anything else names no exchange.
        let alias = Alias::parse(proposal.subject_ref.as_str()).ok_or(Error::ExchangeNotFound)?;
        let tenant = submission.tenant.clone();
        let operation_id = submission.operation_id.clone();
        let content = self
            .keys
            .content(submission.proposal.digest().as_bytes().as_slice());
        let begun = self.begun(&tenant, &operation_id, content).await?;
        let proposing = Proposing {
            submission,
            alias,
            content,
            keys: Arc::clone(&self.keys),
            own: self.own.to_string(),
            now: self.now(),
        };
        if begun.is_none() {
            self.preflight(&tenant, Operation::Propose).await?;
        }
        let turn = SubjectName {
            tenant: tenant.clone(),
            subject: proposing.submission.submitter.clone(),
        };
        let (pending, stored_by) = self
            .change(&turn, move |store| proposing.run(store))
            .await?;
        let stored_by = OperationId::parse(&stored_by).ok_or(Error::Internal)?;
        self.outbox.settle(&tenant, &stored_by).await?;
        Ok(pending)
    }
}

impl Proposing {
    /// The proposal, and the operation that stored it.
    fn run(&self, store: &Store) -> Result<(Pending, String), Error> {
        let found = store.exchange(&self.submission.tenant, &self.alias)?;
        // Somebody else's exchange looks like none.
        let (subject, exchange) = found
            .filter(|(_, exchange)| exchange.recipient == self.submission.submitter)
            .ok_or(Error::ExchangeNotFound)?;
        let mut draft = store.draft(&subject)?;
        let read = &self.submission.proposal;
        let id = read.proposal.id.clone();
        if let Some(known) = draft.proposal(&id)?
            && known.submitted == read.digest()
        {
            let pending = Pending {
                id,
                document: known.document,
                expires_at: known.expires_at,
            };
            return Ok((pending, known.operation_id));
        }
        self.check(&exchange)?;
        let stored = StoredProposal {
            document: read.stored(),
            submitted: read.digest(),
            expires_at: read.expires_at(self.now),
            operation_id: self.submission.operation_id.to_string(),
        };
        draft.put_proposal(&id, &stored);
        let operation = StoredOperation {
            content: self.content,
            result: Vec::new(),
        };
        draft.record(&operation, &self.entry(&exchange, &id, &stored)?)?;
        draft.commit()?;
        let pending = Pending {
            id,
            document: stored.document,
            expires_at: stored.expires_at,
        };
        Ok((pending, stored.operation_id))
    }

    fn check(&self, exchange: &Exchange) -> Result<(), Error> {
        let proposal = &self.submission.proposal.proposal;
        if exchange.expires_at <= self.now || proposal.expires_at.instant() <= self.now {
            return Err(Error::ExchangeExpired);
        }
        let may_propose = exchange
            .actions
            .iter()
            .any(|action| action.as_str() == MEMORY_PROPOSE);
        if !may_propose {
            return Err(Error::CapabilityNotGranted);
        }
        let reference = |event: &EventId| {
            let provenance = self
                .keys
                .provenance(event, &exchange.request, &self.alias)?;
            Some(provenance.reference())
        };
        let sources: Vec<_> = exchange.events.iter().filter_map(reference).collect();
        let is_known = |named: &Reference| sources.iter().any(|it| it.as_str() == named.as_str());
        if !proposal.provenance_refs.iter().all(is_known) {
            return Err(Error::UnknownProvenance);
        }
        Ok(())
    }

    fn entry(
        &self,
        exchange: &Exchange,
        id: &ProposalId,
        stored: &StoredProposal,
    ) -> Result<OutboxEntry, Error> {
        let submission = &self.submission;
        let evidence = Evidence {
            operation: Operation::Propose,
            operation_id: &submission.operation_id,
            own: &self.own,
            subject: &self.alias,
            about: Some((exchange.request.as_str(), exchange.decision.as_str())),
            policy: None,
            // A proposal's words may be easy to guess, so both digests are the vault's own.
            input: self.content,
            output: self.keys.content(&stored.document),
            facts: vec![
                (
                    "proposal",
                    self.keys.content(id.as_str().as_bytes()).to_string(),
                ),
                ("status", "pending_validation".to_owned()),
            ],
            started_at: self.now,
            now: self.now,
        };
        Ok(OutboxEntry {
            tenant: submission.tenant.clone(),
            operation_id: submission.operation_id.clone(),
            subject_tag: Some(exchange.subject_tag.clone()),
            members: evidence.members().map_err(|_| Error::Internal)?,
        })
    }
}
