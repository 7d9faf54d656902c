//! A person's answer, taken with its signature.

use cl_model::artefact::{self, ApprovalDocument, Artefact};
use cl_model::digest::Digest;
use cl_model::object::{ApprovalVerification, DecisionState};
use cl_model::passkey::{Assertion, CoseKey};
use serde_json::json;

use super::deciding::{ActiveSnapshot, Deciding};
use super::reading::{ItemState, Shown};
use super::sign_in::Person;
use super::{PolicyEngine, RequestStatus, retried};
use crate::core::answer::{Approved, Unfit};
use crate::core::challenge::CeremonyId;
use crate::core::evidence::{Evidence, Operation};
use crate::core::grant::SubjectNames;
use crate::core::item::subjects_of;
use crate::core::operation::OperationId;
use crate::core::state::State;
use crate::error::Error;
use crate::store::people::{Answer, Credential, OpenedAnswer, RefusedAnswer, Spent, Stored};
use crate::store::{OutboxEntry, RequestKey, StoreError, blocking};
use cl_host::deadline::Deadline;

/// An answer to take.
pub(crate) struct GivenAnswer {
    pub(crate) ceremony: CeremonyId,
    pub(crate) assertion: Assertion,
    pub(crate) operation_id: OperationId,
    pub(crate) deadline: Option<Deadline>,
}

/// An answer whose item, person and assertion were checked.
struct Fitting {
    shown: Shown,
    approved: Approved,
    credential: Stored<Credential>,
    counter: u32,
}

impl PolicyEngine {
    /// Takes an answer, and returns where its request stands then.
    pub(crate) async fn finish_answer(
        &self,
        person: &Person,
        given: &GivenAnswer,
    ) -> Result<RequestStatus, Error> {
        let status = retried(|| self.try_answer(person, given)).await?;
        if status.awaits_bundle {
            let key = self.answered_key(person, given).await?;
            return self.with_bundle(&key, given.deadline).await;
        }
        Ok(status)
    }

    async fn try_answer(
        &self,
        person: &Person,
        given: &GivenAnswer,
    ) -> Result<RequestStatus, Error> {
        let opened = self.opened(person, given).await?;
        match &opened.value.spent_by {
            Some(Spent::By(id)) if *id == given.operation_id => {
                self.outbox.settle(&person.tenant, id).await?;
                let key = self.answered_key(person, given).await?;
                return self.request(&key).await;
            }
            Some(Spent::By(_) | Spent::Unnamed) => return Err(Error::CeremonyNotOpen),
            None => {}
        }
        for operation in [
            Operation::Decide,
            Operation::Approve,
            Operation::RefuseApproval,
        ] {
            self.preflight(&person.tenant, operation).await?;
        }
        let active = self.active_snapshot(&person.tenant).await?;
        let pending = self.pending(person, &opened.value.approval).await?;
        let shown = self.shown(pending, active).await?;
        match self
            .fit(person, &opened.value, shown, &given.assertion)
            .await?
        {
            Ok(fitting) => self.take(given, opened, fitting).await,
            Err((unfit, shown)) => {
                let refused = self.refuse_answer(given, opened, unfit, *shown);
                Err(refused.await?)
            }
        }
    }

    /// Checks an answer against its item as it stands now. The engine's clock decides what is late,
    /// whether or not anything was swept.
    async fn fit(
        &self,
        person: &Person,
        opened: &OpenedAnswer,
        shown: Shown,
        assertion: &Assertion,
    ) -> Result<Result<Fitting, (Unfit, Box<Shown>)>, Error> {
        let document = ApprovalDocument::parse(&opened.document);
        let document = document.map_err(|_| StoreError::Corrupt)?;
        let is_fit = match check_waits_unfit(shown.state) {
            Err(unfit) => Err(unfit),
            Ok(()) => is_answerable(person, &shown.active, &shown, &document, opened.item),
        };
        if let Err(unfit) = is_fit {
            return Ok(Err((unfit, Box::new(shown))));
        }
        if opened.expires_at <= self.now() {
            return Err(Error::CeremonyNotOpen);
        }
        let credential = match self.credential_of(assertion).await? {
            Ok(credential) => credential,
            Err(unfit) => return Ok(Err((unfit, Box::new(shown)))),
        };
        let holder = &credential.value;
        if holder.tenant != person.tenant || holder.principal != person.principal {
            return Ok(Err((Unfit::CredentialOfAnother, Box::new(shown))));
        }
        let challenge = artefact::challenge(&opened.document);
        let counter = match self.judge(&credential, assertion, &challenge) {
            Ok(counter) => counter,
            Err(unfit) => return Ok(Err((unfit, Box::new(shown)))),
        };
        let artefact = Artefact {
            approval: opened.document.clone(),
            rp_id: self.people.relying_party.id().to_owned(),
            key: CoseKey::parse(&holder.key).map_err(|_| StoreError::Corrupt)?,
            is_backup_eligible: holder.is_backup_eligible,
            assertion: assertion.clone(),
        };
        Ok(Ok(Fitting {
            approved: Approved::of(&artefact).map_err(|_| StoreError::Corrupt)?,
            shown,
            credential,
            counter,
        }))
    }

    /// Stores the answer with the decision that follows from it.
    async fn take(
        &self,
        given: &GivenAnswer,
        opened: Stored<OpenedAnswer>,
        fitting: Fitting,
    ) -> Result<RequestStatus, Error> {
        let Fitting {
            shown, approved, ..
        } = &fitting;
        let pending = &shown.summary.pending;
        let tenant = &pending.key.tenant;
        let content = self.answer_content(given);
        if self.has_begun(tenant, &given.operation_id, content).await? {
            return Err(StoreError::Conflict.into());
        }
        let decide_id = given.operation_id.following("policy.decide");
        let now = self.now();
        let (decided, decision) = self.decide(Deciding {
            told: &shown.told,
            key: pending.key.clone(),
            request: &shown.summary.request,
            facts: &shown.recorded.facts,
            operation_id: &decide_id,
            content,
            active: &shown.active,
            replaces: shown.stored.clone(),
            approved: Some(approved),
            now,
        })?;
        if decided.state() == DecisionState::NeedsApproval {
            // It covers the gated scope and was opened under this policy: only its end has come.
            let refused = self.refuse_answer(given, opened, Unfit::Expired, fitting.shown);
            return Err(refused.await?);
        }
        if decided.decision.approval_verification == Some(ApprovalVerification::NotRequired) {
            let refused = self.refuse_answer(given, opened, Unfit::Changed, fitting.shown);
            return Err(refused.await?);
        }
        let facts = [
            ("approval_ref", pending.reference.as_str()),
            (
                "credential_ref",
                fitting.credential.value.reference.as_str(),
            ),
            ("answer", answer_word(approved.document())),
        ];
        let entry = self.answer_entry(
            Operation::Approve,
            &given.operation_id,
            shown,
            Some((decided.decision.id.as_str(), decided.state())),
            &facts,
            Digest::of_bytes(approved.artefact()),
        )?;
        let entries = [entry.clone(), decision.entry.clone()];
        let key = pending.key.clone();
        let state = decision.standing.state;
        let status = RequestStatus {
            request_ref: pending.key.id.as_str().to_owned(),
            state,
            decision: decision.recorded.decision.clone(),
            conclusion: None,
            awaits_bundle: state == State::Decided && decision.issue.is_some(),
            outcome: decided.state(),
        };
        let (tenant, shadow) = (pending.key.tenant.clone(), shown.told.shadow.clone());
        let answer = Answer {
            operation: self.used_for(&given.operation_id, content, now),
            opened: (given.ceremony, opened),
            credential: fitting.credential,
            counter: fitting.counter,
            decision,
            entry,
        };
        // The commit point: challenge, item and counter are used up, and the decision is final,
        // together or not at all. After a crash the outbox writes both receipts.
        blocking(&self.store, move |store| store.answer(&answer)).await?;
        self.changes.announce(&key);
        self.count(&tenant, &decided, shadow.as_ref());
        self.count_answer("taken");
        for entry in entries {
            self.outbox.deliver(entry).await?;
        }
        Ok(status)
    }

    /// Uses an answer up that does not fit, with a receipt.
    async fn refuse_answer(
        &self,
        given: &GivenAnswer,
        opened: Stored<OpenedAnswer>,
        unfit: Unfit,
        shown: Shown,
    ) -> Result<Error, Error> {
        self.count_answer("refused");
        let facts = [
            ("approval_ref", shown.summary.pending.reference.as_str()),
            ("reason", unfit.as_str()),
        ];
        let operation_id = self.new_operation()?;
        let about = Digest::of_bytes(&artefact::challenge(&opened.value.document));
        let operation = Operation::RefuseApproval;
        let entry = self.answer_entry(operation, &operation_id, &shown, None, &facts, about)?;
        let tenant = entry.tenant.clone();
        let now = self.now();
        let operation = self.used_for(&operation_id, self.answer_content(given), now);
        let id = given.ceremony;
        blocking(&self.store, move |store| {
            let of = &opened.value;
            store.refuse_answer(&RefusedAnswer {
                read: store.open_answers(&of.tenant, &of.principal)?,
                opened: (id, opened),
                now,
                operation,
                entry,
            })
        })
        .await?;
        self.outbox.settle(&tenant, &operation_id).await?;
        Ok(Error::Unfit(unfit))
    }

    /// The receipt of an answer: what was asked, which approval, never who answered.
    fn answer_entry(
        &self,
        operation: Operation,
        operation_id: &OperationId,
        shown: &Shown,
        decided: Option<(&str, DecisionState)>,
        facts: &[(&'static str, &str)],
        output: Digest,
    ) -> Result<OutboxEntry, Error> {
        let pending = &shown.summary.pending;
        let tenant = &pending.key.tenant;
        let names = SubjectNames::of_request(&shown.summary.request, tenant, &self.keys);
        let decision_ref = decided.map_or(pending.decision_id.as_str(), |(id, _)| id);
        let evidence = Evidence {
            operation,
            operation_id,
            engine: self.own.as_str(),
            subject: &names.alias,
            about: Some((pending.key.id.as_str(), decision_ref)),
            policy: Some(shown.policy().digest),
            facts,
            input: pending.request_digest,
            output,
            decision: decided.map(|(_, state)| state.as_str()),
            now: self.now(),
        };
        self.entry(tenant, &evidence, Some(names.tag))
    }

    /// What a person has opened.
    async fn opened(
        &self,
        person: &Person,
        given: &GivenAnswer,
    ) -> Result<Stored<OpenedAnswer>, Error> {
        let id = given.ceremony;
        let opened = blocking(&self.store, move |store| store.opened_answer(&id)).await?;
        let own = opened.filter(|opened| {
            opened.value.tenant == person.tenant && opened.value.principal == person.principal
        });
        own.ok_or(Error::CeremonyNotOpen)
    }

    async fn answered_key(
        &self,
        person: &Person,
        given: &GivenAnswer,
    ) -> Result<RequestKey, Error> {
        let opened = self.opened(person, given).await?.value;
        Ok(self.pending(person, &opened.approval).await?.key)
    }

    fn answer_content(&self, given: &GivenAnswer) -> Digest {
        let ceremony = Digest::of_bytes(&given.ceremony).to_string();
        Digest::of_json(&json!([Operation::Approve.as_str(), ceremony]))
    }
}

pub(super) const fn check_waits_unfit(state: ItemState) -> Result<(), Unfit> {
    match state {
        ItemState::Pending | ItemState::NotNeeded => Ok(()),
        ItemState::Replaced => Err(Unfit::Changed),
        ItemState::Answered => Err(Unfit::Answered),
        ItemState::Expired => Err(Unfit::Expired),
    }
}

/// Whether a person may still answer an item with a document, under the active policy.
fn is_answerable(
    person: &Person,
    active: &ActiveSnapshot,
    shown: &Shown,
    document: &ApprovalDocument,
    item: Digest,
) -> Result<(), Unfit> {
    let snapshot = &active.read.snapshot;
    let facts = &shown.recorded.facts;
    if !snapshot.is_registered(&facts.client_instance, &facts.principal) {
        return Err(Unfit::RequesterGone);
    }
    let subjects = subjects_of(snapshot, &person.principal);
    if !subjects.contains(&shown.summary.pending.subject) {
        return Err(Unfit::ApproverNotAllowed);
    }
    if snapshot.identity().digest != document.policy_digest {
        return Err(Unfit::PolicyChanged);
    }
    // The same policy may treat the request otherwise by now, in what it gates or in the rest: the
    // answer counts for what was shown.
    if shown.state == ItemState::Pending && shown.item.digest == item {
        return Ok(());
    }
    Err(Unfit::Changed)
}

fn answer_word(document: &ApprovalDocument) -> &'static str {
    let is_whole = document.declined_selectors.is_empty() && document.declined_actions.is_empty();
    if document.declines_everything() {
        "declined"
    } else if is_whole {
        "granted"
    } else {
        "granted_in_part"
    }
}
