//! Where a request stands, and what may come next.

use cl_model::digest::Digest;
use cl_model::object::DecisionState;
use cl_model::time::UnixTime;

/// The states of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A person has to approve first.
    PendingApproval,
    /// The decision is final.
    Decided,
    /// The issuer has a bundle for it.
    Issued,
    /// It allowed a bundle, and there never will be one.
    Failed,
    /// It ran out before it could be carried out.
    Expired,
    /// A person took back what it granted.
    Revoked,
}

impl State {
    const ALL: [Self; 6] = [
        Self::PendingApproval,
        Self::Decided,
        Self::Issued,
        Self::Failed,
        Self::Expired,
        Self::Revoked,
    ];

    /// The state of a request right after its evaluation.
    pub const fn after(decision: DecisionState) -> Self {
        match decision {
            DecisionState::NeedsApproval => Self::PendingApproval,
            DecisionState::Allow | DecisionState::AllowWithReductions | DecisionState::Deny => {
                Self::Decided
            }
        }
    }

    /// The state's name in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PendingApproval => "pending_approval",
            Self::Decided => "decided",
            Self::Issued => "issued",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }

    /// Whether it can still change by itself, or by a person's answer.
    pub const fn is_final(self, decision: DecisionState, awaits_bundle: bool) -> bool {
        match self {
            Self::PendingApproval => false,
            Self::Decided => !(decision.allows() && awaits_bundle),
            Self::Issued | Self::Failed | Self::Expired | Self::Revoked => true,
        }
    }

    /// The state with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// What is kept about a request's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The state.
    pub state: State,
    /// The request that it belongs to.
    pub request_digest: Digest,
    /// What the newest decision says.
    pub decision: DecisionState,
    /// When the decision ends.
    pub expires_at: UnixTime,
}

impl Standing {
    /// Whether the time has come to store that it ran out. A denial has nothing to carry out.
    pub fn has_run_out(&self, now: UnixTime) -> bool {
        let can_run_out = match self.state {
            State::PendingApproval => true,
            State::Decided => self.decision.allows(),
            State::Issued | State::Failed | State::Expired | State::Revoked => false,
        };
        can_run_out && self.expires_at <= now
    }

    /// What to do with a submission under the same id.
    pub fn on_submission(&self, digest: Digest) -> OnSubmission {
        if self.request_digest == digest {
            OnSubmission::Return
        } else if self.state == State::PendingApproval {
            OnSubmission::Replace
        } else {
            OnSubmission::Conflict
        }
    }
}

/// The answer to a submission under an id in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSubmission {
    /// It is the same request: its current state.
    Return,
    /// It takes the place of a request that waits for an approval, which is void with it.
    Replace,
    /// The id belongs to another request.
    Conflict,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(state: State, decision: DecisionState) -> Standing {
        Standing {
            state,
            request_digest: Digest::of_bytes(b"one"),
            decision,
            expires_at: UnixTime::from_milliseconds(1_000),
        }
    }

    #[test]
    fn only_a_pending_request_is_replaced() {
        let other = Digest::of_bytes(b"other");
        for (state, expected) in [
            (State::PendingApproval, OnSubmission::Replace),
            (State::Decided, OnSubmission::Conflict),
            (State::Issued, OnSubmission::Conflict),
            (State::Failed, OnSubmission::Conflict),
            (State::Expired, OnSubmission::Conflict),
            (State::Revoked, OnSubmission::Conflict),
        ] {
            let standing = standing(state, DecisionState::NeedsApproval);
            assert_eq!(standing.on_submission(other), expected);
            let same = standing.on_submission(standing.request_digest);
            assert_eq!(same, OnSubmission::Return);
        }
    }

    #[test]
    fn runs_out_once_and_a_denial_never_does() {
        let at = UnixTime::from_milliseconds;
        for (state, decision, runs_out) in [
            (State::PendingApproval, DecisionState::NeedsApproval, true),
            (State::Decided, DecisionState::Allow, true),
            (State::Decided, DecisionState::Deny, false),
            (State::Issued, DecisionState::Allow, false),
            (State::Failed, DecisionState::Allow, false),
            (State::Expired, DecisionState::Allow, false),
            (State::Revoked, DecisionState::Allow, false),
        ] {
            let standing = standing(state, decision);
            assert!(!standing.has_run_out(at(999)));
            assert_eq!(standing.has_run_out(at(1_000)), runs_out, "{state:?}");
        }
    }

    #[test]
    fn names_of_states_read_back() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        assert_eq!(State::parse("unknown"), None);
    }
}
