//! Approvals of gated scope (spec 9.3).

use std::collections::HashSet;
use std::fmt;

use serde_json::{Value, json};

use super::list::strings;
use crate::digest::Digest;
use crate::json::read::{FromJson, ToJson};
use crate::object::ApprovalVerification;
use crate::scalar::Reference;
use crate::time::Timestamp;

/// How an approval answers for the gated scope of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalRule {
    /// The local profile's: the approval grants all of it and declines none, or it does not
    /// count.
    AllOrNothing,
    /// The engine's: what is granted and what is declined together cover it, without overlap.
    /// Declined scope is denied.
    GrantOrDecline,
}

/// What the approval's verifier said (the host's, or a passkey's).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifierOutcome {
    /// There is no verifier.
    Absent,
    /// It did not accept the approval, or failed.
    Rejected,
    /// It accepted the approval.
    Authenticated,
}

/// An approval as it was presented with a request.
#[derive(Clone, Debug)]
pub enum PresentedApproval {
    /// None was.
    None,
    /// Something was that is no approval.
    Malformed,
    /// One was; nothing of it is verified yet.
    Approval(Box<Approval>),
}

/// A person's answer to one request under one policy.
#[derive(Clone)]
pub struct Approval {
    /// The approval's id.
    pub id: Reference,
    /// The request that was shown.
    pub request_digest: Digest,
    /// The policy in force.
    pub policy_digest: Digest,
    /// When the approval ends; `None` if its text is no time.
    pub expires_at: Option<Timestamp>,
    /// Predicates granted.
    pub granted_selectors: HashSet<String>,
    /// Actions granted.
    pub granted_actions: HashSet<String>,
    /// Predicates declined.
    pub declined_selectors: HashSet<String>,
    /// Actions declined.
    pub declined_actions: HashSet<String>,
}

impl fmt::Debug for Approval {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Approval").finish_non_exhaustive()
    }
}

const MEMBERS: [&str; 8] = [
    "id",
    "request_digest",
    "policy_digest",
    "expires_at",
    "granted_selectors",
    "granted_actions",
    "declined_selectors",
    "declined_actions",
];

impl PresentedApproval {
    /// Reads the approval in the form of the local profile.
    ///
    /// Never fails: what is no approval cannot grant anything, and evaluation says so.
    pub fn read(value: &Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Self::None,
            Value::Array(_) => Self::Malformed,
            Value::Object(_) => Approval::read(value).map_or(Self::Malformed, |approval| {
                Self::Approval(Box::new(approval))
            }),
        }
    }
}

impl Approval {
    fn read(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        if object.keys().any(|name| !MEMBERS.contains(&name.as_str())) {
            return None;
        }
        let names = |name: &str| -> Option<HashSet<String>> {
            let elements = strings(object.get(name)?.as_array()?)?;
            Some(elements.map(str::to_owned).collect())
        };
        // A malformed list grants nothing, but it must not decline nothing either.
        let declined = |name: &str| match object.get(name) {
            Some(_) => names(name),
            None => Some(HashSet::new()),
        };
        Some(Self {
            id: Reference::from_json(object.get("id")?).ok()?,
            request_digest: Digest::from_json(object.get("request_digest")?).ok()?,
            policy_digest: Digest::from_json(object.get("policy_digest")?).ok()?,
            expires_at: object
                .get("expires_at")
                .and_then(Value::as_str)
                .and_then(Timestamp::parse),
            granted_selectors: names("granted_selectors").unwrap_or_default(),
            granted_actions: names("granted_actions").unwrap_or_default(),
            declined_selectors: declined("declined_selectors")?,
            declined_actions: declined("declined_actions")?,
        })
    }

    /// The approval as a decision refers to it.
    pub(super) fn binding(&self) -> Value {
        json!({
            "approval_ref": self.id.as_str(),
            "request_digest": self.request_digest.to_string(),
            "policy_digest": self.policy_digest.to_string(),
            "expires_at": self.expires_at.as_ref().map_or(Value::Null, ToJson::to_json),
        })
    }
}

/// The reason code of a request whose gated scope was not approved.
pub(super) const fn reason(verification: ApprovalVerification) -> Option<&'static str> {
    match verification {
        ApprovalVerification::NotRequired | ApprovalVerification::Verified => None,
        ApprovalVerification::NotProvided => Some("APPROVAL_REQUIRED"),
        ApprovalVerification::BindingInvalid => Some("APPROVAL_BINDING_INVALID"),
        ApprovalVerification::Expired => Some("APPROVAL_EXPIRED"),
        ApprovalVerification::ScopeIncomplete => Some("APPROVAL_SCOPE_INCOMPLETE"),
        ApprovalVerification::VerifierMissing | ApprovalVerification::Rejected => {
            Some("APPROVAL_UNVERIFIED")
        }
    }
}
