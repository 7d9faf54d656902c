//! The receipts of the engine's own operations: all members but `id` and `integrity`.

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::part::SPEC_VERSION;
use cl_model::receipt;
use cl_model::record;
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;
use cl_model::urn::{Alias, ReceiptId};
use serde_json::{Value, json};

use super::operation::OperationId;

/// The operations that the engine writes receipts of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A request was decided.
    Decide,
    /// A snapshot was stored.
    PutSnapshot,
    /// A snapshot was made active.
    ActivateSnapshot,
    /// A decision was evaluated again.
    Replay,
    /// A person's answer was taken.
    Approve,
    /// A person's answer did not fit.
    RefuseApproval,
    /// A sign-in was refused because its credential may have been copied.
    RefuseSignIn,
    /// A link for a person's passkey was made.
    OpenEnrolment,
    /// A passkey was enrolled.
    EnrolCredential,
    /// A passkey was confirmed.
    ConfirmCredential,
    /// A passkey was revoked.
    RevokeCredential,
    /// A person took back what a decision granted.
    RevokeGrant,
    /// An operator set the anomaly state of a requester.
    SetAnomaly,
    /// An operator cleared it.
    ClearAnomaly,
    /// An operator had a snapshot evaluated beside the active one.
    SetShadow,
    /// An operator ended that.
    ClearShadow,
    /// An operator wrote down what a subject delegates.
    Delegate,
    /// An operator revoked that.
    RevokeDelegation,
}

impl Operation {
    /// The operation's name in receipts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decide => "policy.decide",
            Self::PutSnapshot => "policy.put_snapshot",
            Self::ActivateSnapshot => "policy.activate_snapshot",
            Self::Replay => "policy.replay",
            Self::Approve => "policy.approve",
            Self::RefuseApproval => "policy.refuse_approval",
            Self::RefuseSignIn => "policy.refuse_sign_in",
            Self::OpenEnrolment => "policy.open_enrolment",
            Self::EnrolCredential => "policy.enrol_credential",
            Self::ConfirmCredential => "policy.confirm_credential",
            Self::RevokeCredential => "policy.revoke_credential",
            Self::RevokeGrant => "policy.revoke_grant",
            Self::SetAnomaly => "policy.set_anomaly",
            Self::ClearAnomaly => "policy.clear_anomaly",
            Self::SetShadow => "policy.set_shadow",
            Self::ClearShadow => "policy.clear_shadow",
            Self::Delegate => "policy.delegate",
            Self::RevokeDelegation => "policy.revoke_delegation",
        }
    }

    /// A refusal is an attempt that failed.
    const fn outcome(self) -> &'static str {
        match self {
            Self::RefuseApproval | Self::RefuseSignIn => "failure",
            Self::Decide
            | Self::PutSnapshot
            | Self::ActivateSnapshot
            | Self::Replay
            | Self::Approve
            | Self::OpenEnrolment
            | Self::EnrolCredential
            | Self::ConfirmCredential
            | Self::RevokeCredential
            | Self::RevokeGrant
            | Self::SetAnomaly
            | Self::ClearAnomaly
            | Self::SetShadow
            | Self::ClearShadow
            | Self::Delegate
            | Self::RevokeDelegation => "success",
        }
    }

    const fn summary(self) -> &'static str {
        match self {
            Self::Decide => "A context request was decided.",
            Self::PutSnapshot => "A policy snapshot was stored.",
            Self::ActivateSnapshot => "A policy snapshot was made active.",
            Self::Replay => "A recorded decision was evaluated again.",
            Self::Approve => "A person answered a context request.",
            Self::RefuseApproval => "A person's answer to a context request did not fit.",
            Self::RefuseSignIn => "A sign-in was refused: its passkey may have been copied.",
            Self::OpenEnrolment => "A link to enrol a passkey was made.",
            Self::EnrolCredential => "A passkey was enrolled, and waits to be confirmed.",
            Self::ConfirmCredential => "A passkey was confirmed.",
            Self::RevokeCredential => "A passkey was revoked.",
            Self::RevokeGrant => "A person took back what a decision granted.",
            Self::SetAnomaly => "An anomaly state was set for a requester.",
            Self::ClearAnomaly => "The anomaly state of a requester was cleared.",
            Self::SetShadow => "A policy snapshot is evaluated beside the active one.",
            Self::ClearShadow => "No policy snapshot is evaluated beside the active one any more.",
            Self::Delegate => "What a subject delegates was written down.",
            Self::RevokeDelegation => "What a subject had delegated was revoked.",
        }
    }
}

/// What a receipt says.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The operation.
    pub operation: Operation,
    /// Its id.
    pub operation_id: &'a OperationId,
    /// The engine's SPIFFE id, as actor and issuer.
    pub engine: &'a str,
    /// Whose context, by alias.
    pub subject: &'a Alias,
    /// Request and decision, where there are any.
    pub about: Option<(&'a str, &'a str)>,
    /// The policy that the operation was about, or ran under.
    pub policy: Option<Digest>,
    /// Approval, credential and reason, where there are any, by their names in the metadata.
    pub facts: &'a [(&'static str, &'a str)],
    /// The digest of what went in.
    pub input: Digest,
    /// The digest of what came out.
    pub output: Digest,
    /// How a decision ended, where there is one.
    pub decision: Option<&'static str>,
    /// The time.
    pub now: UnixTime,
}

impl Evidence<'_> {
    /// The members as canonical JSON; a store that adds `id` and `integrity` has a valid receipt.
    pub fn members(&self) -> Result<Vec<u8>, Refusal> {
        let mut metadata = json!({"operation_id": self.operation_id.as_str()});
        if let Some(decision) = self.decision {
            metadata["decision"] = Value::from(decision);
        }
        for (name, fact) in self.facts {
            metadata[*name] = Value::from(*fact);
        }
        let now = self.now.to_string();
        let members = json!({
            "spec_version": SPEC_VERSION,
            "type": "receipt",
            "created_at": now,
            "issuer": {"id": self.engine},
            "operation": self.operation.as_str(),
            "actor": self.engine,
            "subject_ref": self.subject.as_str(),
            "request_ref": self.about.map(|(request, _)| request),
            "decision_ref": self.about.map(|(_, decision)| decision),
            "bundle_ref": null,
            "started_at": now,
            "completed_at": now,
            "outcome": self.operation.outcome(),
            "policy_snapshot": self.policy.map(|digest| digest.to_string()),
            "input_digest": self.input.to_string(),
            "output_digest": self.output.to_string(),
            "payload_included": false,
            "user_summary": self.operation.summary(),
            "metadata": metadata,
        });
        let bytes = canonical::to_text(&members).into_bytes();
        receipt::check(record::finalize(members, ReceiptId::PREFIX)?.value())?;
        Ok(bytes)
    }
}
