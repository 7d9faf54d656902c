//! What the receipts of the vault's operations say (spec 7.8).

use cl_model::digest::Digest;
use cl_model::object::Outcome;
use cl_model::operation::OperationId;
use cl_model::receipt::Draft;
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;
use cl_model::urn::Alias;

/// The operations that the vault writes receipts of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A batch of items was captured.
    Capture,
    /// Claims were resolved under a grant.
    Resolve,
    /// A subject was erased.
    EraseSubject,
    /// An event was erased.
    EraseEvent,
    /// A memory update was proposed.
    Propose,
}

impl Operation {
    /// The operation's name in receipts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Capture => "vault.capture",
            Self::Resolve => "vault.resolve",
            Self::EraseSubject => "vault.erase_subject",
            Self::EraseEvent => "vault.erase_event",
            Self::Propose => "memory.propose",
        }
    }

    const fn summary(self) -> &'static str {
        match self {
            Self::Capture => "Source events were captured.",
            Self::Resolve => "Claims were resolved under a grant.",
            Self::EraseSubject => "All that the vault held of a subject was erased.",
            Self::EraseEvent => "A source event was erased.",
            Self::Propose => "A memory update was proposed for review.",
        }
    }
}

/// What a receipt says.
pub struct Evidence<'a> {
    /// The operation.
    pub operation: Operation,
    /// Its id.
    pub operation_id: &'a OperationId,
    /// The vault's SPIFFE id, as actor and issuer.
    pub own: &'a str,
    /// Whose context, by alias.
    pub subject: &'a Alias,
    /// Request and decision, where there are any.
    pub about: Option<(&'a str, &'a str)>,
    /// The policy that the operation ran under, where there is one.
    pub policy: Option<Digest>,
    /// The digest of what went in.
    pub input: Digest,
    /// The digest of what came out.
    pub output: Digest,
    /// Further short facts: counts and codes.
    pub facts: Vec<(&'static str, String)>,
    /// When it began.
    pub started_at: UnixTime,
    /// The time.
    pub now: UnixTime,
}

impl Evidence<'_> {
    /// The members as canonical JSON; a store that adds `id` and `integrity` has a valid receipt.
    pub fn members(&self) -> Result<Vec<u8>, Refusal> {
        let mut draft = Draft::new(
            self.operation.as_str(),
            self.own,
            self.subject.as_str(),
            Outcome::Success,
            self.operation.summary(),
            self.now,
        )
        .issued_by(self.own)
        .under_policy(self.policy)
        .with_digests(self.input, self.output)
        .started_at(self.started_at)
        .with_metadata("operation_id", self.operation_id.as_str());
        if let Some((request, decision)) = self.about {
            draft = draft.about_decision(request, decision);
        }
        for (name, fact) in &self.facts {
            draft = draft.with_metadata(name, fact);
        }
        draft.members()
    }
}
