//! A person's answer: what it may be, and why it does not count.

use cl_model::artefact::{ApprovalDocument, Artefact, InvalidArtefact};
use cl_model::passkey::InvalidPasskey;
use cl_model::policy::Approval;

/// A signed approval whose assertion was verified when it was taken.
#[derive(Clone, Debug)]
pub struct Approved {
    document: ApprovalDocument,
    approval: Approval,
    artefact: Vec<u8>,
}

impl Approved {
    /// The approval in an artefact that the caller has verified, or has read back from its store.
    pub fn of(artefact: &Artefact) -> Result<Self, InvalidArtefact> {
        let document = ApprovalDocument::parse(&artefact.approval)?;
        Ok(Self {
            approval: document.to_approval()?,
            artefact: artefact.to_bytes(),
            document,
        })
    }

    /// The approval in a stored artefact.
    pub fn parse(artefact: &[u8]) -> Result<Self, InvalidArtefact> {
        Self::of(&Artefact::parse(artefact)?)
    }

    /// What the person signed.
    pub const fn document(&self) -> &ApprovalDocument {
        &self.document
    }

    /// The same, as evaluation reads it.
    pub const fn approval(&self) -> &Approval {
        &self.approval
    }

    /// The artefact's bytes.
    pub fn artefact(&self) -> &[u8] {
        &self.artefact
    }
}

/// Why an answer, or a sign-in, does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Another request has taken the place of the one that was shown, or the policy asks for another
    /// answer by now.
    #[error("the item has changed")]
    Changed,
    /// Another snapshot is active than the one that it was shown under.
    #[error("the policy has changed")]
    PolicyChanged,
    /// It came too late.
    #[error("the item has ended")]
    Expired,
    /// Somebody has answered before.
    #[error("the item was answered")]
    Answered,
    /// Granted and declined scope are not the gated scope.
    #[error("the answer does not cover the gated scope")]
    ScopeIncomplete,
    /// The active policy decides without a person.
    #[error("no answer is needed")]
    NotNeeded,
    /// The requester's client is not registered any more.
    #[error("the requester is gone")]
    RequesterGone,
    /// The person may not approve for the subject any more.
    #[error("the person may not approve")]
    ApproverNotAllowed,
    /// The engine does not know the credential.
    #[error("the credential is unknown")]
    CredentialUnknown,
    /// It belongs to somebody else.
    #[error("the credential is another person's")]
    CredentialOfAnother,
    /// It is not confirmed yet.
    #[error("the credential is not confirmed")]
    CredentialInactive,
    /// It was revoked.
    #[error("the credential is revoked")]
    CredentialRevoked,
    /// Its signature counter did not grow.
    #[error("the credential may have been copied")]
    PossibleClone,
    /// The assertion does not hold.
    #[error("the assertion does not hold: {0}")]
    Passkey(InvalidPasskey),
}

impl Unfit {
    /// The stable code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "APPROVAL_CHANGED",
            Self::PolicyChanged => "APPROVAL_POLICY_CHANGED",
            Self::Expired => "APPROVAL_EXPIRED",
            Self::Answered => "APPROVAL_ANSWERED",
            Self::ScopeIncomplete => "APPROVAL_SCOPE_INCOMPLETE",
            Self::NotNeeded => "APPROVAL_NOT_NEEDED",
            Self::RequesterGone => "APPROVAL_REQUESTER_GONE",
            Self::ApproverNotAllowed => "APPROVER_NOT_ALLOWED",
            Self::CredentialUnknown => "CREDENTIAL_UNKNOWN",
            Self::CredentialOfAnother => "CREDENTIAL_OF_ANOTHER",
            Self::CredentialInactive => "CREDENTIAL_INACTIVE",
            Self::CredentialRevoked => "CREDENTIAL_REVOKED",
            Self::PossibleClone => "CREDENTIAL_POSSIBLE_CLONE",
            Self::Passkey(invalid) => invalid.as_str(),
        }
    }
}

impl From<InvalidPasskey> for Unfit {
    fn from(invalid: InvalidPasskey) -> Self {
        Self::Passkey(invalid)
    }
}
