//! An answer that a person begins: written down as a document to sign.

use std::time::Duration;

use cl_model::artefact::{self, ApprovalDocument};
use cl_model::digest::Digest;
use cl_model::list::UniqueList;
use cl_model::scalar::{Action, Predicate, Text};
use cl_model::time::{Timestamp, UnixTime};
use cl_model::urn::ApprovalId;
use data_encoding::BASE64URL_NOPAD;

use super::answers::check_waits_unfit;
use super::reading::{ItemState, Shown};
use super::sign_in::{MAX_TOLD, OpenCeremony, Person};
use super::{PolicyEngine, retried};
use crate::core::answer::Unfit;
use crate::core::challenge::CeremonyId;
use crate::error::Error;
use crate::store::blocking;
use crate::store::people::{CredentialState, OpenedAnswer};

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

impl PolicyEngine {
    /// Writes an answer down as the document to sign.
    pub(crate) async fn begin_answer(
        &self,
        person: &Person,
        approval: &ApprovalId,
        item_digest: Digest,
        scope: &AnsweredScope,
    ) -> Result<OpenAnswer, Error> {
        retried(|| self.try_begin(person, approval, item_digest, scope)).await
    }

    async fn try_begin(
        &self,
        person: &Person,
        approval: &ApprovalId,
        item_digest: Digest,
        scope: &AnsweredScope,
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
        let (tenant, principal) = (person.tenant.clone(), person.principal.clone());
        let read = blocking(&self.store, move |store| {
            store.open_answers(&tenant, &principal)
        });
        let open_answers = read.await?;
        if let Some(read) = &open_answers {
            let again = read.value.check(self.now());
            again.map_err(|end| self.too_many_refused(end))?;
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
            granted_selectors: scope.granted_selectors.clone(),
            granted_actions: scope.granted_actions.clone(),
            declined_selectors: scope.declined_selectors.clone(),
            declined_actions: scope.declined_actions.clone(),
            expires_at: Timestamp::from(shown.item.access_ends_at),
        };
        let document = document.to_bytes();
        // The names of a request are bounded, so that this does not happen.
        if document.len() > artefact::MAX_DOCUMENT_BYTES {
            return Err(Error::Internal);
        }
        let id: CeremonyId = self.random()?;
        let opened = OpenedAnswer {
            tenant: person.tenant.clone(),
            principal: person.principal.clone(),
            approval: approval.clone(),
            item: item_digest,
            document: document.clone(),
            expires_at: self.ceremony_end(),
            spent_by: None,
        };
        let ceremony = self.open_ceremony(id, artefact::challenge(&document), opened.expires_at);
        blocking(&self.store, move |store| {
            store.open_answer(&id, &opened, open_answers)
        })
        .await?;
        Ok(OpenAnswer {
            ceremony,
            credentials: self.active_credentials(person).await?,
            document,
        })
    }

    fn too_many_refused(&self, end: UnixTime) -> Error {
        let left = end.milliseconds() - self.now().milliseconds();
        Error::TooManyRefused(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
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
