//! People who come in: challenges and sessions.

use cl_model::digest::Digest;
use cl_model::passkey::{Assertion, CoseKey, Expected, next_counter};
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;

use super::{PolicyEngine, retried};
use crate::core::answer::Unfit;
use crate::core::challenge::{CeremonyId, Challenge, Purpose};
use crate::core::evidence::{Evidence, Operation};
use crate::core::operation::{OperationId, TenantName};
use crate::error::Error;
use crate::people::{CEREMONY_SECONDS, SESSION_IDLE_SECONDS, SESSION_SECONDS};
use crate::store::people::{Credential, CredentialState, Session, SignIn, Spent, Stored};
use crate::store::{OutboxEntry, StoreError, Use, blocking};

/// How often a session's last use is written at most.
const TOUCH_SECONDS: u64 = 60;

/// The most credentials that a browser is told of.
pub(super) const MAX_TOLD: usize = 64;

/// What a browser needs of an open challenge.
pub(crate) struct OpenCeremony {
    pub(crate) id: CeremonyId,
    pub(crate) challenge: [u8; 32],
    pub(crate) rp_id: String,
    pub(crate) expires_at: UnixTime,
}

/// A session that was just opened.
pub(crate) struct SignedIn {
    pub(crate) token: [u8; 32],
    pub(crate) session: Session,
}

/// A person who is signed in. Only [`PolicyEngine::person`] makes one.
pub(crate) struct Person {
    pub(super) tenant: TenantName,
    pub(super) principal: Reference,
}

impl PolicyEngine {
    /// The person of a session.
    pub(crate) async fn person(&self, token: &[u8]) -> Result<Person, Error> {
        let (token, now) = (Digest::of_bytes(token), self.now());
        let read = blocking(&self.store, move |store| {
            let Some(stored) = store.session(token)? else {
                return Ok(None);
            };
            let session = &stored.value;
            let idle_end = session.used_at.plus_seconds(SESSION_IDLE_SECONDS.into());
            if session.expires_at <= now || idle_end <= now {
                return Ok(None);
            }
            let credential = store.credential(&session.tenant, &session.credential)?;
            let is_active =
                credential.is_some_and(|stored| stored.value.state == CredentialState::Active);
            if !is_active {
                return Ok(None);
            }
            if session.used_at.plus_seconds(TOUCH_SECONDS) <= now {
                match store.touch(token, &stored, now) {
                    // Another call of the same session has noted its use.
                    Ok(()) | Err(StoreError::Conflict) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(Some(stored.value))
        });
        let session = read.await?.ok_or(Error::SessionNotOpen)?;
        Ok(Person {
            tenant: session.tenant,
            principal: session.principal,
        })
    }

    pub(crate) async fn end_session(&self, token: &[u8]) -> Result<(), Error> {
        let token = Digest::of_bytes(token);
        Ok(blocking(&self.store, move |store| store.end_session(token)).await?)
    }

    pub(crate) fn begin_sign_in(&self) -> Result<OpenCeremony, Error> {
        self.hand_out(Purpose::SignIn)
    }

    /// Hands out a challenge that leaves nothing behind.
    pub(super) fn hand_out(&self, purpose: Purpose) -> Result<OpenCeremony, Error> {
        let challenge = Challenge::new(self.ceremony_end(), self.random()?);
        let bytes = challenge.bytes(&self.keys.challenge, purpose);
        Ok(self.open_ceremony(challenge.id, bytes, challenge.expires_at))
    }

    pub(super) fn ceremony_end(&self) -> UnixTime {
        self.now().plus_seconds(CEREMONY_SECONDS)
    }

    pub(super) fn open_ceremony(
        &self,
        id: CeremonyId,
        challenge: [u8; 32],
        expires_at: UnixTime,
    ) -> OpenCeremony {
        OpenCeremony {
            id,
            challenge,
            rp_id: self.people.relying_party.id().to_owned(),
            expires_at,
        }
    }

    /// Refuses a challenge that has ended, also by a clock that has stepped back since: that it was
    /// used up may be forgotten.
    pub(super) async fn check_open(&self, challenge: &Challenge) -> Result<(), Error> {
        if challenge.expires_at <= self.forgotten_until().await? {
            return Err(Error::CeremonyNotOpen);
        }
        Ok(())
    }

    /// How a challenge was used up, if it was.
    pub(super) async fn spent(&self, id: CeremonyId) -> Result<Option<Spent>, Error> {
        Ok(blocking(&self.store, move |store| store.spent(&id)).await?)
    }

    pub(crate) async fn finish_sign_in(
        &self,
        id: CeremonyId,
        assertion: &Assertion,
    ) -> Result<SignedIn, Error> {
        retried(|| self.try_sign_in(id, assertion)).await
    }

    async fn try_sign_in(&self, id: CeremonyId, assertion: &Assertion) -> Result<SignedIn, Error> {
        let challenge = Challenge::again(id);
        self.check_open(&challenge).await?;
        if self.spent(id).await?.is_some() {
            return Err(Error::CeremonyNotOpen);
        }
        let bytes = challenge.bytes(&self.keys.challenge, Purpose::SignIn);
        let verified = match self.credential_of(assertion).await? {
            Err(unfit) => Err((unfit, None)),
            Ok(credential) => match self.judge(&credential, assertion, &bytes) {
                Err(unfit) => Err((unfit, Some(credential))),
                Ok(counter) => Ok((credential, counter)),
            },
        };
        let (credential, counter) = match verified {
            Ok(verified) => verified,
            Err((unfit, credential)) => {
                return Err(self.refuse_sign_in(challenge, unfit, credential).await?);
            }
        };
        let token: [u8; 32] = self.random()?;
        let now = self.now();
        let session = Session {
            tenant: credential.value.tenant.clone(),
            principal: credential.value.principal.clone(),
            credential: credential.value.reference.clone(),
            used_at: now,
            expires_at: now.plus_seconds(SESSION_SECONDS),
        };
        let sign_in = SignIn {
            challenge,
            credential,
            counter,
            token: Digest::of_bytes(&token),
            session: session.clone(),
        };
        blocking(&self.store, move |store| store.sign_in(&sign_in)).await?;
        Ok(SignedIn { token, session })
    }

    /// Refuses a sign-in. A possible clone is evidence, and uses the challenge up; whatever else
    /// does not verify may come from anybody, and leaves nothing.
    async fn refuse_sign_in(
        &self,
        challenge: Challenge,
        unfit: Unfit,
        credential: Option<Stored<Credential>>,
    ) -> Result<Error, Error> {
        self.count_answer("sign_in_refused");
        let clone = credential.filter(|_| unfit == Unfit::PossibleClone);
        let Some(credential) = clone else {
            return Ok(Error::Unfit(unfit));
        };
        let credential = credential.value;
        let operation = Operation::RefuseSignIn;
        self.preflight(&credential.tenant, operation).await?;
        let facts = [
            ("credential_ref", credential.reference.as_str()),
            ("reason", unfit.as_str()),
        ];
        let (operation_id, content) = (self.new_operation()?, Digest::of_bytes(&challenge.id));
        let entry = self.credential_entry(
            &credential.tenant,
            operation,
            &operation_id,
            &facts,
            content,
        )?;
        let used = self.used_for(&operation_id, content, self.now());
        blocking(&self.store, move |store| {
            store.refuse_sign_in(&challenge, used, &entry)
        })
        .await?;
        self.outbox
            .settle(&credential.tenant, &operation_id)
            .await?;
        Ok(Error::Unfit(unfit))
    }

    /// The credential that an assertion names, if it may sign.
    pub(super) async fn credential_of(
        &self,
        assertion: &Assertion,
    ) -> Result<Result<Stored<Credential>, Unfit>, Error> {
        let id = assertion.credential_id.clone();
        let found = blocking(&self.store, move |store| store.credential_by_id(&id)).await?;
        Ok(match found {
            None => Err(Unfit::CredentialUnknown),
            Some(credential) => match credential.value.state {
                CredentialState::Inactive => Err(Unfit::CredentialInactive),
                CredentialState::Revoked => Err(Unfit::CredentialRevoked),
                CredentialState::Active => Ok(credential),
            },
        })
    }

    /// Verifies an assertion, and returns the counter to store.
    pub(super) fn judge(
        &self,
        credential: &Stored<Credential>,
        assertion: &Assertion,
        challenge: &[u8],
    ) -> Result<u32, Unfit> {
        let credential = &credential.value;
        let key = CoseKey::parse(&credential.key)?;
        let verified = assertion.verify(&Expected {
            challenge,
            relying_party: &self.people.relying_party,
            key: &key,
            is_backup_eligible: credential.is_backup_eligible,
        })?;
        next_counter(credential.counter, verified.counter()).ok_or(Unfit::PossibleClone)
    }

    /// The receipt of something about credentials: no subject, no request, no names of people.
    pub(super) fn credential_entry(
        &self,
        tenant: &TenantName,
        operation: Operation,
        operation_id: &OperationId,
        facts: &[(&'static str, &str)],
        about: Digest,
    ) -> Result<OutboxEntry, Error> {
        let evidence = Evidence {
            operation,
            operation_id,
            engine: self.own.as_str(),
            subject: &self.tenant_alias(tenant),
            about: None,
            policy: None,
            facts,
            input: about,
            output: about,
            decision: None,
            now: self.now(),
        };
        self.entry(tenant, &evidence, None)
    }

    pub(super) fn random<const BYTES: usize>(&self) -> Result<[u8; BYTES], Error> {
        let mut bytes = [0; BYTES];
        self.ids.fill(&mut bytes).map_err(|_| Error::Internal)?;
        Ok(bytes)
    }

    pub(super) fn count_answer(&self, result: &'static str) {
        self.answers
            .add(1, &[opentelemetry::KeyValue::new("result", result)]);
    }

    /// Remembers what an operation id was used for; used by operators' calls about credentials.
    pub(super) fn use_of(&self, operation_id: &OperationId, content: Digest) -> Use {
        self.used_for(operation_id, content, self.now())
    }
}
