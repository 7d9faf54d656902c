//! What lets people in: challenges that were used up, sessions, one-time links, passkeys.

use cl_model::digest::Digest;
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::CredentialId;

use super::{Spent, Stored};
use crate::core::challenge::{CeremonyId, Challenge};
use crate::core::operation::TenantName;
use crate::store::{OutboxEntry, StoreError, Use};

/// The part of the port that lets people in.
pub trait Credentials: Send + Sync {
    /// How a challenge was used up, until its end at least.
    fn spent(&self, id: &CeremonyId) -> Result<Option<Spent>, StoreError>;

    /// Uses the challenge of a sign-in up for nothing, with the receipt of that.
    fn refuse_sign_in(
        &self,
        challenge: &Challenge,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;

    /// Uses the challenge of a sign-in up, stores the session under the digest of its token, and the
    /// credential with its new counter.
    fn sign_in(&self, sign_in: &SignIn) -> Result<(), StoreError>;

    /// A session, by the digest of its token.
    fn session(&self, token: Digest) -> Result<Option<Stored<Session>>, StoreError>;

    /// Stores that a session was used. This alone need not be durable.
    fn touch(
        &self,
        token: Digest,
        read: &Stored<Session>,
        used_at: UnixTime,
    ) -> Result<(), StoreError>;

    /// Forgets a session. Forgetting twice is fine.
    fn end_session(&self, token: Digest) -> Result<(), StoreError>;

    /// Stores a one-time link under the digest of its token.
    fn open_link(
        &self,
        token: Digest,
        link: &Link,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;

    /// A link, by the digest of its token.
    fn link(&self, token: Digest) -> Result<Option<Stored<Link>>, StoreError>;

    /// Uses challenge and link of an enrolment up, and stores the credential.
    fn enrol(&self, enrolment: &Enrolment) -> Result<(), StoreError>;

    /// A credential, by its name.
    fn credential(
        &self,
        tenant: &TenantName,
        reference: &CredentialId,
    ) -> Result<Option<Stored<Credential>>, StoreError>;

    /// A credential, by the id that authenticators know it by.
    fn credential_by_id(&self, id: &[u8]) -> Result<Option<Stored<Credential>>, StoreError>;

    /// At most `limit` credentials of a tenant, in the order of enrolment, after one.
    fn credentials(
        &self,
        tenant: &TenantName,
        after: Option<&CredentialId>,
        limit: usize,
    ) -> Result<Vec<Credential>, StoreError>;

    /// At most `limit` credentials of one person, in the order of enrolment.
    fn credentials_of(
        &self,
        tenant: &TenantName,
        principal: &Reference,
        limit: usize,
    ) -> Result<Vec<Credential>, StoreError>;

    /// Stores another state of a credential.
    fn turn_credential(
        &self,
        read: &Stored<Credential>,
        state: CredentialState,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError>;
}

/// A person who is signed in.
#[derive(Clone)]
pub struct Session {
    /// The tenant.
    pub tenant: TenantName,
    /// The person.
    pub principal: Reference,
    /// The credential of the sign-in.
    pub credential: CredentialId,
    /// When it was used last.
    pub used_at: UnixTime,
    /// When it ends for good.
    pub expires_at: UnixTime,
}

/// A session to open.
pub struct SignIn {
    /// The challenge.
    pub challenge: Challenge,
    /// The credential that signed, as read.
    pub credential: Stored<Credential>,
    /// Its new counter.
    pub counter: u32,
    /// The digest of the session's token.
    pub token: Digest,
    /// The session.
    pub session: Session,
}

/// A one-time link.
#[derive(Clone)]
pub struct Link {
    /// The tenant.
    pub tenant: TenantName,
    /// The person whom it lets in.
    pub principal: Reference,
    /// When it ends.
    pub expires_at: UnixTime,
}

/// A passkey.
#[derive(Clone)]
pub struct Credential {
    /// Its name.
    pub reference: CredentialId,
    /// The tenant.
    pub tenant: TenantName,
    /// The person.
    pub principal: Reference,
    /// The id that authenticators know it by.
    pub id: Vec<u8>,
    /// Its public key (COSE).
    pub key: Vec<u8>,
    /// The highest signature counter that was seen.
    pub counter: u32,
    /// Whether it was enrolled as one that can be copied.
    pub is_backup_eligible: bool,
    /// Where it stands.
    pub state: CredentialState,
    /// When it was enrolled.
    pub enrolled_at: UnixTime,
}

/// Where a credential stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialState {
    /// Enrolled, and not confirmed yet.
    Inactive,
    /// Usable.
    Active,
    /// Ended.
    Revoked,
}

/// A credential to store.
pub struct Enrolment {
    /// The challenge.
    pub challenge: Challenge,
    /// The digest of the link's token, and the link as read.
    pub link: (Digest, Stored<Link>),
    /// The credential.
    pub credential: Credential,
    /// What the operation id is used for.
    pub operation: Use,
    /// Its receipt.
    pub entry: OutboxEntry,
}
