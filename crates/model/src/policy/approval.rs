//! Approvals of gated scope (spec 9.3).

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::list::strings;
use crate::digest::Digest;
use crate::json::read::{FromJson, ToJson};
use crate::object::ApprovalVerification;
use crate::opaque::opaque_debug;
use crate::scalar::Reference;
use crate::time::Timestamp;

/// How an approval answers for the gated scope of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalRule {
    /// The local profile's: the approval grants all of it, or it does not count.
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
    /// What it answers; `None` if one of its lists is missing or is no list of strings, which
    /// covers nothing.
    pub scope: Option<ApprovedScope>,
}

/// A person's answer to the gated scope.
#[derive(Clone, Default)]
pub struct ApprovedScope {
    /// Predicates granted.
    pub granted_selectors: HashSet<String>,
    /// Actions granted.
    pub granted_actions: HashSet<String>,
    /// Predicates declined.
    pub declined_selectors: HashSet<String>,
    /// Actions declined.
    pub declined_actions: HashSet<String>,
}

impl ApprovedScope {
    fn read(members: &Map<String, Value>, rule: ApprovalRule) -> Option<Self> {
        let names = |name: &str| -> Option<HashSet<String>> {
            let names = strings(members.get(name)?.as_array()?)?;
            Some(names.map(str::to_owned).collect())
        };
        let declined = |name: &str| match rule {
            ApprovalRule::AllOrNothing => Some(HashSet::new()),
            ApprovalRule::GrantOrDecline => names(name),
        };
        Some(Self {
            granted_selectors: names("granted_selectors")?,
            granted_actions: names("granted_actions")?,
            declined_selectors: declined("declined_selectors")?,
            declined_actions: declined("declined_actions")?,
        })
    }
}

/// The members of an approval: all of them, or all but the declined scope.
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
const MEMBERS_WITHOUT_DECLINED: usize = 6;

opaque_debug!(Approval, ApprovedScope);

impl PresentedApproval {
    /// Reads an approval as `rule` has it: only [`ApprovalRule::GrantOrDecline`] knows declined
    /// scope.
    ///
    /// Never fails: what is no approval cannot grant anything, and evaluation says so.
    pub fn read(value: &Value, rule: ApprovalRule) -> Self {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Self::None,
            Value::Array(_) => Self::Malformed,
            Value::Object(members) => Approval::read(members, rule)
                .map_or(Self::Malformed, |approval| {
                    Self::Approval(Box::new(approval))
                }),
        }
    }
}

impl Approval {
    fn read(members: &Map<String, Value>, rule: ApprovalRule) -> Option<Self> {
        let known = match rule {
            ApprovalRule::AllOrNothing => &MEMBERS[..MEMBERS_WITHOUT_DECLINED],
            ApprovalRule::GrantOrDecline => &MEMBERS[..],
        };
        if members.keys().any(|name| !known.contains(&name.as_str())) {
            return None;
        }
        let expires_at = members.get("expires_at").and_then(Value::as_str);
        Some(Self {
            id: Reference::from_json(members.get("id")?).ok()?,
            request_digest: Digest::from_json(members.get("request_digest")?).ok()?,
            policy_digest: Digest::from_json(members.get("policy_digest")?).ok()?,
            expires_at: expires_at.and_then(Timestamp::parse),
            scope: ApprovedScope::read(members, rule),
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
