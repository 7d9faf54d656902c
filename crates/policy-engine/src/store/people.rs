//! What the engine remembers of people who approve: their passkeys, their sessions, what waits for
//! them, and what they answered.

use cl_kv::Version;
use cl_model::digest::Digest;
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::{ApprovalId, CredentialId};

use super::{NewDecision, OutboxEntry, Place, RequestKey, StoreError, StoredRequest, Use};
use crate::core::challenge::{CeremonyId, Challenge};
use crate::core::open_answers::OpenAnswers;
use crate::core::operation::{OperationId, TenantName};

/// The part of the port that is about people. The contract is the one of [`Store`](super::Store).
pub trait People: Send + Sync {
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

    /// What waits, or waited, for an answer.
    fn pending(
        &self,
        tenant: &TenantName,
        approval: &ApprovalId,
    ) -> Result<Option<Pending>, StoreError>;

    /// At most `limit` items that wait for an answer about a subject, oldest first, after one.
    fn queue(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<Pending>, StoreError>;

    /// The answers that a person has open.
    fn open_answers(
        &self,
        tenant: &TenantName,
        principal: &Reference,
    ) -> Result<Option<Stored<OpenAnswers>>, StoreError>;

    /// Stores an answer that was just opened. If the person has too many, it takes the place of the
    /// oldest.
    fn open_answer(
        &self,
        id: &CeremonyId,
        opened: &OpenedAnswer,
        read: Option<Stored<OpenAnswers>>,
    ) -> Result<(), StoreError>;

    /// An answer that was opened, until some time after its end.
    fn opened_answer(&self, id: &CeremonyId) -> Result<Option<Stored<OpenedAnswer>>, StoreError>;

    /// Uses an opened answer up for nothing, with the receipt of that, and counts it.
    fn refuse_answer(&self, refusal: &RefusedAnswer) -> Result<(), StoreError>;

    /// Uses an opened answer up, and stores the answer with the decision that follows, and the
    /// credential with its new counter.
    fn answer(&self, answer: &Answer) -> Result<(), StoreError>;

    /// At most `limit` decisions about a subject, newest first, after one.
    fn history(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<Past>, StoreError>;

    /// At most `limit` decisions of a tenant about anybody, newest first, after one at a place.
    fn decided(
        &self,
        tenant: &TenantName,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<Past>, StoreError>;

    /// Stores that a grant was revoked, and that its bundle is still to be.
    fn revoke(&self, revocation: &Revocation) -> Result<(), StoreError>;

    /// At most `limit` revocations of all tenants that the issuer does not know of yet, in no
    /// particular order, after a place.
    fn unrevoked(
        &self,
        after: Option<Place>,
        limit: usize,
    ) -> Result<(Vec<Unrevoked>, Option<Place>), StoreError>;

    /// Forgets that the issuer does not know of a revocation. Forgetting twice is fine.
    fn forget_revocation(&self, unrevoked: &Unrevoked) -> Result<(), StoreError>;
}

/// A record with the writing that was read.
#[derive(Clone)]
pub struct Stored<T> {
    /// The record.
    pub value: T,
    /// Which writing was read.
    pub version: Version,
}

/// How a challenge was used up.
#[derive(Clone, PartialEq, Eq)]
pub enum Spent {
    /// Without effect, or by an operation that cannot be repeated.
    Unnamed,
    /// By this operation, which may be repeated.
    By(OperationId),
}

/// An answer that was opened. The digest of its document is the challenge.
#[derive(Clone)]
pub struct OpenedAnswer {
    /// The tenant.
    pub tenant: TenantName,
    /// The person.
    pub principal: Reference,
    /// What is answered.
    pub approval: ApprovalId,
    /// The digest of the item as it was shown.
    pub item: Digest,
    /// The approval document to sign.
    pub document: Vec<u8>,
    /// When it ends.
    pub expires_at: UnixTime,
    /// How it was used up.
    pub spent_by: Option<Spent>,
}

/// An opened answer to refuse.
pub struct RefusedAnswer {
    /// Which one, as read.
    pub opened: (CeremonyId, Stored<OpenedAnswer>),
    /// The answers of its person, as read.
    pub read: Option<Stored<OpenAnswers>>,
    /// When.
    pub now: UnixTime,
    /// What the operation id is used for.
    pub operation: Use,
    /// The receipt.
    pub entry: OutboxEntry,
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

/// What waits, or waited, for an answer. It never changes: whether it still waits follows from its
/// request.
#[derive(Clone)]
pub struct Pending {
    /// Its id.
    pub reference: ApprovalId,
    /// The request.
    pub key: RequestKey,
    /// The decision that asks for the approval.
    pub decision_id: String,
    /// The exact request.
    pub request_digest: Digest,
    /// Whose context.
    pub subject: Reference,
    /// When the request came in.
    pub created_at: UnixTime,
    /// When it ends unanswered.
    pub expires_at: UnixTime,
}

/// A person's place in a queue, as a request remembers it.
#[derive(Clone, PartialEq, Eq)]
pub struct Queued {
    /// What waits.
    pub approval: ApprovalId,
    /// Whose context.
    pub subject: Reference,
    /// When the request came in.
    pub created_at: UnixTime,
}

/// An answer to store.
pub struct Answer {
    /// What was opened, as read.
    pub opened: (CeremonyId, Stored<OpenedAnswer>),
    /// The credential that signed, as read.
    pub credential: Stored<Credential>,
    /// Its new counter.
    pub counter: u32,
    /// The decision that follows.
    pub decision: NewDecision,
    /// What the operation id is used for.
    pub operation: Use,
    /// The receipt of the answer.
    pub entry: OutboxEntry,
}

/// One decision of the past.
#[derive(Clone)]
pub struct Past {
    /// The request.
    pub key: RequestKey,
    /// The decision.
    pub decision_id: String,
    /// Its place: newest smallest.
    pub place: u64,
}

/// A grant to revoke.
pub struct Revocation {
    /// The request.
    pub key: RequestKey,
    /// The request, as read.
    pub read: StoredRequest,
    /// What the operation id is used for.
    pub operation: Use,
    /// The receipt.
    pub entry: OutboxEntry,
}

impl Revocation {
    /// What the issuer is to be told.
    pub fn unrevoked(&self) -> Unrevoked {
        Unrevoked {
            tenant: self.key.tenant.clone(),
            decision_id: self.read.decision_id.clone(),
            operation_id: self.entry.operation_id.following("bundle.revoke"),
        }
    }
}

/// A revocation that the issuer does not know of yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Unrevoked {
    /// The tenant.
    pub tenant: TenantName,
    /// The decision.
    pub decision_id: String,
    /// The operation that tells the issuer.
    pub operation_id: OperationId,
}
