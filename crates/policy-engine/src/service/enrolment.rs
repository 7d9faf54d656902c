//! Passkeys that are enrolled by a one-time link.

use cl_model::artefact::Fingerprint;
use cl_model::digest::Digest;
use cl_model::passkey::{InvalidPasskey, enrol};
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::CredentialId;
use serde_json::json;

use super::PolicyEngine;
use super::sign_in::{MAX_TOLD, OpenCeremony};
use crate::core::challenge::{CeremonyId, Challenge, Purpose};
use crate::core::evidence::Operation;
use crate::core::operation::{OperationId, TenantName};
use crate::error::Error;
use crate::people::LINK_SECONDS;
use crate::store::people::{Credential, CredentialState, Enrolment, Link, Spent, Stored};
use crate::store::{StoreError, blocking};

/// What a browser needs to make a credential.
pub(crate) struct OpenEnrolment {
    pub(crate) ceremony: OpenCeremony,
    pub(crate) user_handle: Digest,
    pub(crate) link: Link,
    pub(crate) known: Vec<Vec<u8>>,
}

/// A one-time link that was just made.
pub(crate) struct NewLink {
    pub(crate) url: String,
    pub(crate) expires_at: UnixTime,
}

impl PolicyEngine {
    /// Makes a one-time link.
    pub(crate) async fn open_enrolment(
        &self,
        tenant: &TenantName,
        principal: &Reference,
        operation_id: &OperationId,
    ) -> Result<NewLink, Error> {
        let operation = Operation::OpenEnrolment;
        let content = Digest::of_json(&json!([operation.as_str(), principal.as_str()]));
        if self.has_begun(tenant, operation_id, content).await? {
            // The token was shown once, and nobody knows it any more.
            return Err(Error::OperationConflict);
        }
        self.preflight(tenant, operation).await?;
        let token: [u8; 32] = self.random()?;
        let now = self.now();
        let link = Link {
            tenant: tenant.clone(),
            principal: principal.clone(),
            expires_at: now.plus_seconds(LINK_SECONDS),
        };
        let expires_at = link.expires_at;
        let digest = Digest::of_bytes(&token);
        let entry = self.credential_entry(tenant, operation, operation_id, &[], digest)?;
        let used = self.used_for(operation_id, content, now);
        let opened = blocking(&self.store, move |store| {
            store.open_link(digest, &link, used, &entry)
        });
        match opened.await {
            Err(StoreError::Conflict) => return Err(Error::OperationConflict),
            result => result?,
        }
        self.outbox.settle(tenant, operation_id).await?;
        let token = data_encoding::BASE64URL_NOPAD.encode(&token);
        Ok(NewLink {
            url: format!("{}#{token}", self.people.enrolment_page()),
            expires_at,
        })
    }

    async fn link(&self, token: Digest) -> Result<Stored<Link>, Error> {
        let now = self.now();
        let read = blocking(&self.store, move |store| store.link(token)).await?;
        read.filter(|link| link.value.expires_at > now)
            .ok_or(Error::LinkNotOpen)
    }

    pub(crate) async fn begin_enrolment(&self, token: &[u8]) -> Result<OpenEnrolment, Error> {
        let token = Digest::of_bytes(token);
        let link = self.link(token).await?.value;
        let (tenant, principal) = (link.tenant.clone(), link.principal.clone());
        let known = blocking(&self.store, move |store| {
            store.credentials_of(&tenant, &principal, MAX_TOLD)
        });
        let known = known.await?;
        let handle = json!(["user", link.tenant.as_str(), link.principal.as_str()]);
        Ok(OpenEnrolment {
            ceremony: self.hand_out(Purpose::Enrol(token))?,
            user_handle: Digest::of_json(&handle),
            known: known.into_iter().map(|credential| credential.id).collect(),
            link,
        })
    }

    /// Stores a new credential, inactive, and returns its fingerprint.
    pub(crate) async fn finish_enrolment(
        &self,
        id: CeremonyId,
        token: &[u8],
        client_data: &[u8],
        attestation: &[u8],
        operation_id: &OperationId,
    ) -> Result<String, Error> {
        let challenge = Challenge::again(id);
        let token = Digest::of_bytes(token);
        self.check_open(&challenge).await?;
        let created = enrol(
            client_data,
            attestation,
            &challenge.bytes(&self.keys.challenge, Purpose::Enrol(token)),
            &self.people.relying_party,
        );
        let created = created.map_err(|invalid: InvalidPasskey| Error::Unfit(invalid.into()))?;
        let shown = Fingerprint::of(&created.id, &created.key).to_string();
        match self.spent(id).await? {
            None => {}
            Some(spent) if spent == Spent::By(operation_id.clone()) => {
                let found = {
                    let id = created.id.clone();
                    blocking(&self.store, move |store| store.credential_by_id(&id)).await?
                };
                let credential = found.ok_or(Error::CeremonyNotOpen)?.value;
                self.outbox.settle(&credential.tenant, operation_id).await?;
                return Ok(shown);
            }
            Some(_) => return Err(Error::CeremonyNotOpen),
        }
        let link = self.link(token).await?;
        let tenant = link.value.tenant.clone();
        let operation = Operation::EnrolCredential;
        let content = Digest::of_json(&json!([operation.as_str(), Digest::of_bytes(&id).to_hex()]));
        if self.has_begun(&tenant, operation_id, content).await? {
            return Err(Error::InProgress);
        }
        self.preflight(&tenant, operation).await?;
        let uuid = self.ids.uuid().map_err(|_| Error::Internal)?;
        let reference = CredentialId::parse(&format!("urn:cl:credential:{uuid}"));
        let reference = reference.ok_or(Error::Internal)?;
        let now = self.now();
        let facts = [
            ("credential_ref", reference.as_str()),
            ("fingerprint", shown.as_str()),
        ];
        let output = Digest::of_bytes(created.key.as_bytes());
        let enrolment = Enrolment {
            entry: self.credential_entry(&tenant, operation, operation_id, &facts, output)?,
            credential: Credential {
                reference: reference.clone(),
                tenant: tenant.clone(),
                principal: link.value.principal.clone(),
                id: created.id,
                key: created.key.as_bytes().to_vec(),
                counter: created.counter,
                is_backup_eligible: created.is_backup_eligible,
                state: CredentialState::Inactive,
                enrolled_at: now,
            },
            challenge,
            link: (token, link),
            operation: self.used_for(operation_id, content, now),
        };
        self.store_enrolment(enrolment).await?;
        self.outbox.settle(&tenant, operation_id).await?;
        Ok(shown)
    }

    async fn store_enrolment(&self, enrolment: Enrolment) -> Result<(), Error> {
        let id = enrolment.credential.id.clone();
        match blocking(&self.store, move |store| store.enrol(&enrolment)).await {
            Err(StoreError::Conflict) => {
                let known = blocking(&self.store, move |store| store.credential_by_id(&id));
                Err(if known.await?.is_some() {
                    Error::CredentialExists
                } else {
                    Error::LinkNotOpen
                })
            }
            result => Ok(result?),
        }
    }
}
