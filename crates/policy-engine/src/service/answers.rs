//! A person's answer: opened as a document to sign, and taken with the signature.

use cl_model::artefact::{self, ApprovalDocument, Artefact};
use cl_model::digest::Digest;
use cl_model::list::UniqueList;
use cl_model::object::{ApprovalVerification, DecisionState};
use cl_model::passkey::{Assertion, CoseKey};
use cl_model::scalar::{Action, Predicate, Text};
use cl_model::time::Timestamp;
use cl_model::urn::ApprovalId;
use data_encoding::BASE64URL_NOPAD;
use serde_json::json;

use super::deciding::{ActiveSnapshot, Deciding};
use super::reading::{ItemState, Shown};
use super::sign_in::{MAX_TOLD, OpenCeremony, Person};
use super::{ATTEMPTS, PolicyEngine, RequestStatus};
use crate::core::answer::{Approved, Unfit};
use crate::core::evidence::{Evidence, Operation};
use crate::core::grant::SubjectNames;
use crate::core::item::subjects_of;
use crate::core::operation::OperationId;
use crate::core::state::State;
use crate::error::Error;
use crate::store::people::{
    Answer, Ceremony, CeremonyId, Credential, CredentialState, Opened, Purpose, Spent, Stored,
};
use crate::store::{OutboxEntry, StoreError, blocking};
use cl_host::deadline::Deadline;

/// The gated scope, as a person answers it.
pub(crate) struct AnsweredScope {
    pub(crate) granted_selectors: UniqueList<Predicate, 0, 64>,
    pub(crate) granted_actions: UniqueList<Action, 0, 64>,
    pub(crate) declined_selectors: UniqueList<Predicate, 0, 64>,
    pub(crate) declined_actions: UniqueList<Action, 0, 64>,
}

/// What a browser needs to sign an answer.
pub(crate) struct OpenAnswer {
    pub(crate) ceremony: OpenCeremony,
    pub(crate) document: Vec<u8>,
    pub(crate) credentials: Vec<Vec<u8>>,
}

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
    /// Writes an answer down as the document to sign.
    pub(crate) async fn begin_answer(
        &self,
        person: &Person,
        approval: &ApprovalId,
        item_digest: Digest,
        scope: AnsweredScope,
    ) -> Result<OpenAnswer, Error> {
        let shown = self.item(person, approval).await?;
        check_waits(shown.state)?;
        check_requester(&shown)?;
        if shown.item.digest != item_digest {
            return Err(Error::Unfit(Unfit::Changed));
        }
        if shown.state == ItemState::NotNeeded {
            return Err(Error::Unfit(Unfit::NotNeeded));
        }
        let (selectors, actions) = scope.names();
        if !shown.item.is_answered_by(&selectors, &actions) {
            return Err(Error::Unfit(Unfit::ScopeIncomplete));
        }
        let nonce = BASE64URL_NOPAD.encode(&self.random::<32>()?);
        let document = ApprovalDocument {
            approval_version: artefact::ApprovalVersion,
            id: approval.clone(),
            tenant: Text::new(person.tenant.as_str()).ok_or(Error::Internal)?,
            nonce: Text::new(nonce).ok_or(Error::Internal)?,
            approver: person.principal.clone(),
            request_digest: shown.summary.pending.request_digest,
            policy_digest: shown.policy().digest,
            granted_selectors: scope.granted_selectors,
            granted_actions: scope.granted_actions,
            declined_selectors: scope.declined_selectors,
            declined_actions: scope.declined_actions,
            expires_at: Timestamp::from(shown.item.access_ends_at),
        };
        let document = document.to_bytes();
        let opened = Opened {
            tenant: person.tenant.clone(),
            principal: person.principal.clone(),
            approval: approval.clone(),
            document: document.clone(),
        };
        let challenge = artefact::challenge(&document);
        Ok(OpenAnswer {
            ceremony: self.open(Purpose::Answer(opened), challenge).await?,
            credentials: self.active_credentials(person).await?,
            document,
        })
    }

    async fn active_credentials(&self, person: &Person) -> Result<Vec<Vec<u8>>, Error> {
        let (tenant, principal) = (person.tenant.clone(), person.principal.clone());
        let read = blocking(&self.store, move |store| {
            store.credentials_of(&tenant, &principal, MAX_TOLD)
        });
        let credentials = read.await?.into_iter();
        Ok(credentials
            .filter(|credential| credential.state == CredentialState::Active)
            .map(|credential| credential.id)
            .collect())
    }

    /// Takes an answer, and returns where its request stands then.
    pub(crate) async fn finish_answer(
        &self,
        person: &Person,
        given: &GivenAnswer,
    ) -> Result<RequestStatus, Error> {
        for _ in 0..ATTEMPTS {
            match self.try_answer(person, given).await {
                Err(Error::Store(StoreError::Conflict)) => {}
                Ok(status) if status.awaits_bundle => {
                    let key = self.answered_key(person, given).await?;
                    return self.with_bundle(&key, given.deadline).await;
                }
                result => return result,
            }
        }
        Err(Error::InProgress)
    }

    async fn try_answer(
        &self,
        person: &Person,
        given: &GivenAnswer,
    ) -> Result<RequestStatus, Error> {
        let ceremony = self.ceremony(given.ceremony).await?;
        let opened = match &ceremony.value.purpose {
            Purpose::Answer(opened)
                if opened.tenant == person.tenant && opened.principal == person.principal =>
            {
                opened.clone()
            }
            Purpose::Answer(_) | Purpose::SignIn | Purpose::Enrol(_) => {
                return Err(Error::CeremonyNotOpen);
            }
        };
        match &ceremony.value.spent_by {
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
        let pending = self.pending(person, &opened.approval).await?;
        let shown = self.shown(pending, active).await?;
        match self
            .fit(person, &opened, &ceremony.value, shown, &given.assertion)
            .await?
        {
            Ok(fitting) => self.take(given, ceremony, fitting).await,
            Err((unfit, shown)) => {
                let refused = self.refuse_answer(given, ceremony, unfit, *shown);
                Err(refused.await?)
            }
        }
    }

    /// Checks an answer against its item as it stands now. The engine's clock decides what is late,
    /// whether or not anything was swept.
    async fn fit(
        &self,
        person: &Person,
        opened: &Opened,
        ceremony: &Ceremony,
        shown: Shown,
        assertion: &Assertion,
    ) -> Result<Result<Fitting, (Unfit, Box<Shown>)>, Error> {
        let document = ApprovalDocument::parse(&opened.document);
        let document = document.map_err(|_| StoreError::Corrupt)?;
        let is_fit = match check_waits_unfit(shown.state) {
            Err(unfit) => Err(unfit),
            Ok(()) => is_answerable(person, &shown.active, &shown, &document),
        };
        if let Err(unfit) = is_fit {
            return Ok(Err((unfit, Box::new(shown))));
        }
        if ceremony.expires_at <= self.now() {
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
        let counter = match self.judge(&credential, assertion, &ceremony.challenge) {
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
        ceremony: Stored<Ceremony>,
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
            let refused = self.refuse_answer(given, ceremony, Unfit::Expired, fitting.shown);
            return Err(refused.await?);
        }
        if decided.decision.approval_verification == Some(ApprovalVerification::NotRequired) {
            let refused = self.refuse_answer(given, ceremony, Unfit::Changed, fitting.shown);
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
            ceremony: (given.ceremony, ceremony),
            credential: fitting.credential,
            counter: fitting.counter,
            decision,
            entry,
        };
        // The commit point: challenge, item and counter are used up, and the decision is final,
        // together or not at all. After a crash the outbox writes both receipts.
        blocking(&self.store, move |store| store.answer(&answer)).await?;
        self.changes.announce();
        self.count(&tenant, &decided, shadow.as_ref());
        self.count_answer("taken");
        for entry in entries {
            self.outbox.deliver(entry).await?;
        }
        Ok(status)
    }

    /// Spends the ceremony of an answer that does not fit, with a receipt.
    async fn refuse_answer(
        &self,
        given: &GivenAnswer,
        ceremony: Stored<Ceremony>,
        unfit: Unfit,
        shown: Shown,
    ) -> Result<Error, Error> {
        self.count_answer("refused");
        let facts = [
            ("approval_ref", shown.summary.pending.reference.as_str()),
            ("reason", unfit.as_str()),
        ];
        let operation_id = self.new_operation()?;
        let about = Digest::of_bytes(&ceremony.value.challenge);
        let operation = Operation::RefuseApproval;
        let entry = self.answer_entry(operation, &operation_id, &shown, None, &facts, about)?;
        let used = self.used_for(&operation_id, self.answer_content(given), self.now());
        let (id, tenant) = (given.ceremony, entry.tenant.clone());
        blocking(&self.store, move |store| {
            store.spend(&id, &ceremony, Some((used, &entry)))
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

    async fn answered_key(
        &self,
        person: &Person,
        given: &GivenAnswer,
    ) -> Result<crate::store::RequestKey, Error> {
        let ceremony = self.ceremony(given.ceremony).await?;
        match ceremony.value.purpose {
            Purpose::Answer(opened) => Ok(self.pending(person, &opened.approval).await?.key),
            Purpose::SignIn | Purpose::Enrol(_) => Err(Error::CeremonyNotOpen),
        }
    }

    fn answer_content(&self, given: &GivenAnswer) -> Digest {
        let ceremony = Digest::of_bytes(&given.ceremony).to_string();
        Digest::of_json(&json!([Operation::Approve.as_str(), ceremony]))
    }
}

impl AnsweredScope {
    /// All names of both answers.
    fn names(&self) -> (Vec<&str>, Vec<&str>) {
        let selectors = self
            .granted_selectors
            .iter()
            .chain(self.declined_selectors.iter());
        let actions = self
            .granted_actions
            .iter()
            .chain(self.declined_actions.iter());
        (
            selectors.map(Predicate::as_str).collect(),
            actions.map(Action::as_str).collect(),
        )
    }
}

const fn check_waits_unfit(state: ItemState) -> Result<(), Unfit> {
    match state {
        ItemState::Pending | ItemState::NotNeeded => Ok(()),
        ItemState::Replaced => Err(Unfit::Changed),
        ItemState::Answered => Err(Unfit::Answered),
        ItemState::Expired => Err(Unfit::Expired),
    }
}

fn check_waits(state: ItemState) -> Result<(), Error> {
    check_waits_unfit(state).map_err(Error::Unfit)
}

fn check_requester(shown: &Shown) -> Result<(), Error> {
    let facts = &shown.recorded.facts;
    let snapshot = &shown.active.read.snapshot;
    if snapshot.is_registered(&facts.client_instance, &facts.principal) {
        return Ok(());
    }
    Err(Error::Unfit(Unfit::RequesterGone))
}

/// Whether a person may still answer an item with a document, under the active policy.
fn is_answerable(
    person: &Person,
    active: &ActiveSnapshot,
    shown: &Shown,
    document: &ApprovalDocument,
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
    // The same policy may gate other scope by now: what was signed has to be what is asked.
    let (selectors, actions) = answered_names(document);
    if shown.state == ItemState::Pending && shown.item.is_answered_by(&selectors, &actions) {
        return Ok(());
    }
    Err(Unfit::Changed)
}

/// All names that a document answers.
fn answered_names(document: &ApprovalDocument) -> (Vec<&str>, Vec<&str>) {
    let selectors = document
        .granted_selectors
        .iter()
        .chain(document.declined_selectors.iter());
    let actions = document
        .granted_actions
        .iter()
        .chain(document.declined_actions.iter());
    (
        selectors.map(Predicate::as_str).collect(),
        actions.map(Action::as_str).collect(),
    )
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
