//! What waits for people, and what they answer.

use cl_model::digest::Digest;
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::ApprovalId;

use super::{Credential, Spent, Stored};
use crate::core::challenge::CeremonyId;
use crate::core::open_answers::OpenAnswers;
use crate::core::operation::TenantName;
use crate::store::{NewDecision, OutboxEntry, RequestKey, StoreError, Use};

/// The part of the port that is about answers.
pub trait Approvals: Send + Sync {
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
