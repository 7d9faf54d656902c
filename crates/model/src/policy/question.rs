//! What a policy is asked: one request, in the circumstances of its evaluation (spec 9.1).

use super::approval::ApprovedScope;
use super::asked::Asked;
use super::{Assurance, Delegated, Preflight};
use crate::part::{ReceiptLevel, ReceiptRequirement};
use crate::scalar::Name;
use crate::time::UnixTime;

/// A kind of requested scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Selectors: predicates whose claims are to be disclosed.
    Selectors,
    /// Actions that the consumer may carry out.
    Actions,
}

/// What an approval that holds says about one requested item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No approval holds, or it does not name the item.
    None,
    /// It grants the item.
    Granted,
    /// It declines the item.
    Declined,
}

/// One request, in the circumstances of its evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub(super) asked: &'a Asked,
    /// The scope of an approval that is bound to the request and the policy, has not ended, and was
    /// authenticated.
    pub(super) approved: Option<&'a ApprovedScope>,
    pub(super) preflight: Preflight,
    pub(super) now: UnixTime,
}

impl<'a> Question<'a> {
    /// The principal that asks, if the request names one.
    pub fn requester(&self) -> Option<&'a str> {
        let requester = self.asked.requester.as_ref()?;
        Some(&requester.principal)
    }

    /// The client instance that it uses.
    pub fn client(&self) -> Option<&'a str> {
        self.asked.requester.as_ref()?.client_instance.as_deref()
    }

    /// How it authenticated.
    pub fn authenticated_by(&self) -> Option<&'a str> {
        self.asked.requester.as_ref()?.authenticated_by.as_deref()
    }

    /// How surely its credential stands for it; the lowest if nobody said.
    pub fn assurance(&self) -> Assurance {
        self.asked.assurance.unwrap_or(Assurance::Low)
    }

    /// The anomaly state that the host has of the requester, if it has one.
    pub fn anomaly_state(&self) -> Option<&'a str> {
        self.asked.anomaly.as_ref().map(Name::as_str)
    }

    /// What the subject has delegated to the requester for the purpose, while that lasts.
    pub fn delegated(&self) -> Option<&'a Delegated> {
        let delegated = self.asked.delegated.as_ref();
        delegated.filter(|delegated| delegated.until > self.now)
    }

    /// Whose context is asked for.
    pub fn subject(&self) -> Option<&'a str> {
        self.asked.subject.as_deref()
    }

    /// Who is to receive it.
    pub fn recipient(&self) -> Option<&'a str> {
        let recipient = self.asked.recipient.as_ref()?;
        Some(&recipient.principal)
    }

    /// What the request says about passing it on.
    pub fn onward_disclosure(&self) -> Option<&'a str> {
        self.asked.recipient.as_ref()?.onward_disclosure.as_deref()
    }

    /// The purpose code.
    pub fn purpose_code(&self) -> Option<&'a str> {
        self.asked.purpose_code.as_deref()
    }

    /// The kind of task.
    pub fn task_kind(&self) -> &'a str {
        &self.asked.task_kind
    }

    /// The requested predicates, in their order.
    pub fn selectors(&self) -> &'a [String] {
        &self.asked.selectors
    }

    /// The requested actions, in their order.
    pub fn actions(&self) -> &'a [String] {
        &self.asked.actions
    }

    /// How the context would be held.
    pub fn retention_mode(&self) -> &'a str {
        &self.asked.retention_mode
    }

    /// For how long, in seconds.
    pub fn retention_seconds(&self) -> u64 {
        self.asked.retention_seconds
    }

    /// When the request, and with it any bundle, ends.
    pub fn expires_at(&self) -> Option<UnixTime> {
        self.asked.expires_at
    }

    /// The receipts that apply, given whether the policy requires them in any case.
    pub fn receipts(&self, are_required: bool) -> ReceiptRequirement {
        let asked = self.asked.receipts.level;
        if asked == ReceiptLevel::None && are_required {
            return ReceiptRequirement::new(ReceiptLevel::Operation);
        }
        ReceiptRequirement::new(asked)
    }

    /// Whether the receipt store is ready.
    pub fn has_receipt_store(&self) -> bool {
        self.preflight == Preflight::Available
    }

    /// What an approval that holds says about one requested item.
    pub fn answer(&self, scope: Scope, name: &str) -> Answer {
        let Some(approved) = self.approved else {
            return Answer::None;
        };
        let (granted, declined) = match scope {
            Scope::Selectors => (&approved.granted_selectors, &approved.declined_selectors),
            Scope::Actions => (&approved.granted_actions, &approved.declined_actions),
        };
        // Both at once is no answer that could cover anything.
        match (granted.contains(name), declined.contains(name)) {
            (true, false) => Answer::Granted,
            (_, true) => Answer::Declined,
            (false, false) => Answer::None,
        }
    }

    /// The time of evaluation.
    pub const fn now(&self) -> UnixTime {
        self.now
    }
}
