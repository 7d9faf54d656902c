//! Where a bundle stands, and what may come next.

use cl_model::digest::Digest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::scalar::{Action, Reference};
use cl_model::time::UnixTime;
use cl_model::urn::{Alias, BundleId, DecisionId, ProvenanceRef, RequestId};

/// The states of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Made, and its issue receipt is not durable yet: nobody knows of it.
    Pending,
    /// Issued, and not handed out.
    Live,
    /// Somebody is about to get it; the receipt of that is not durable yet.
    Redeeming,
    /// Handed out.
    Redeemed,
    /// Opened, as the recipient says.
    Consumed,
    /// Ended before its time.
    Revoked,
    /// Ended by its time.
    Expired,
}

impl State {
    const ALL: [Self; 7] = [
        Self::Pending,
        Self::Live,
        Self::Redeeming,
        Self::Redeemed,
        Self::Consumed,
        Self::Revoked,
        Self::Expired,
    ];

    /// The state's name in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Live => "live",
            Self::Redeeming => "redeeming",
            Self::Redeemed => "redeemed",
            Self::Consumed => "consumed",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
        }
    }

    /// The state with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether nothing comes after it.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Revoked | Self::Expired)
    }
}

/// How long things last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long a lost answer can be asked for again with the same key, in seconds.
    pub retry_window_seconds: u64,
    /// How long what has ended is kept, in seconds: bundles without their content, operation ids,
    /// names that were revoked.
    pub retention_seconds: u64,
    /// How long one attempt to issue has a decision to itself, in seconds.
    pub issue_lease_seconds: u64,
    /// How far the clock may step ahead and be believed at once, in seconds; a longer step has to
    /// last as long.
    pub max_clock_step_seconds: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            retry_window_seconds: 120,
            retention_seconds: 7 * 24 * 3600,
            issue_lease_seconds: 30,
            max_clock_step_seconds: 60,
        }
    }
}

/// Who took a bundle, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redemption {
    /// The operation of its receipt.
    pub operation_id: OperationId,
    /// The digest of the key that makes a repeat safe, if there is one.
    pub key: Option<Digest>,
    /// When it was taken.
    pub at: UnixTime,
    /// Whether the bundle ended before it could be handed out, after all.
    pub is_withheld: bool,
}

/// A bundle without its content.
#[derive(Clone, PartialEq)]
pub struct Bundle {
    /// Whose it is.
    pub tenant: TenantName,
    /// Its id.
    pub id: BundleId,
    /// Who may have it.
    pub recipient: Reference,
    /// The request that it answers.
    pub request: RequestId,
    /// The decision that allows it.
    pub decision: DecisionId,
    /// The digest of the policy behind the decision.
    pub policy: Digest,
    /// The subject in this exchange.
    pub alias: Alias,
    /// The subject in receipts.
    pub subject_tag: String,
    /// Its sources.
    pub sources: Vec<ProvenanceRef>,
    /// The digest of its contents.
    pub digest: Digest,
    /// The operations whose receipts its recipient may send.
    pub operations: Vec<Action>,
    /// The operation that issued it.
    pub issued_by: OperationId,
    /// When it ends.
    pub expires_at: UnixTime,
    /// When its grant ends: before that, the decision must be known to have a bundle.
    pub grant_ends: UnixTime,
    /// Where it stands.
    pub state: State,
    /// Who took it.
    pub redemption: Option<Redemption>,
    /// When it has to be looked at again.
    pub due: UnixTime,
}

/// What to do with an attempt to redeem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRedemption {
    /// It is the first: record it, then hand the bundle out.
    Take,
    /// It repeats one that is not receipted yet: finish that, then hand the bundle out.
    Finish,
    /// It repeats one whose answer was lost: hand the same bytes out again.
    Repeat,
    /// The bundle was handed out.
    Replay,
    /// The bundle has ended.
    Expired,
    /// The bundle was revoked.
    Revoked,
    /// Nobody knows of the bundle yet.
    Unknown,
}

impl Bundle {
    /// Whether its time is over and not stored yet.
    pub fn has_run_out(&self, now: UnixTime) -> bool {
        !self.state.is_final() && self.expires_at <= now
    }

    /// What an attempt to redeem means.
    pub fn on_redemption(&self, key: Option<Digest>, times: &Times, now: UnixTime) -> OnRedemption {
        let repeats = key.is_some() && self.redemption.as_ref().is_some_and(|it| it.key == key);
        match self.state {
            State::Pending => OnRedemption::Unknown,
            State::Live => OnRedemption::Take,
            State::Redeeming if repeats => OnRedemption::Finish,
            State::Redeemed if repeats && self.retry_ends(times).is_some_and(|end| now < end) => {
                OnRedemption::Repeat
            }
            State::Redeeming | State::Redeemed | State::Consumed => OnRedemption::Replay,
            State::Revoked => OnRedemption::Revoked,
            State::Expired => OnRedemption::Expired,
        }
    }

    /// Until when a repeat is possible; `None` if it is not.
    fn retry_ends(&self, times: &Times) -> Option<UnixTime> {
        let redemption = self.redemption.as_ref()?;
        redemption.key?;
        Some(redemption.at.plus_seconds(times.retry_window_seconds))
    }

    /// Whether the bytes are still needed.
    pub fn needs_content(&self, times: &Times, now: UnixTime) -> bool {
        match self.state {
            State::Pending | State::Live | State::Redeeming => true,
            State::Redeemed => self.retry_ends(times).is_some_and(|end| now < end),
            State::Consumed | State::Revoked | State::Expired => false,
        }
    }

    /// Whether its bytes could leave: its delivery receipt was durable before it ended.
    pub fn was_handed_out(&self) -> bool {
        let redemption = self.redemption.as_ref();
        redemption.is_some_and(|it| !it.is_withheld) && self.state != State::Redeeming
    }

    /// When the record itself may go.
    pub fn removable_at(&self, times: &Times) -> UnixTime {
        let kept = self.expires_at.plus_seconds(times.retention_seconds);
        kept.max(self.grant_ends)
    }

    /// The bundle in another state, due when that state next needs a look.
    #[must_use]
    pub fn turned(&self, state: State, times: &Times, now: UnixTime) -> Self {
        let mut turned = self.clone();
        turned.state = state;
        if let (State::Redeeming, true, Some(redemption)) =
            (self.state, state.is_final(), &mut turned.redemption)
        {
            redemption.is_withheld = true;
        }
        turned.due = if state.is_final() {
            turned.removable_at(times)
        } else if state == State::Redeemed && turned.needs_content(times, now) {
            let end = turned.retry_ends(times).unwrap_or(turned.expires_at);
            end.min(turned.expires_at)
        } else {
            turned.expires_at
        };
        turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> UnixTime {
        UnixTime::from_milliseconds(seconds * 1000)
    }

    fn times() -> Times {
        Times {
            retry_window_seconds: 10,
            retention_seconds: 100,
            issue_lease_seconds: 5,
            max_clock_step_seconds: 60,
        }
    }

    fn key(text: &str) -> Option<Digest> {
        Some(Digest::of_bytes(text.as_bytes()))
    }

    fn bundle(state: State, used: Option<Digest>) -> Bundle {
        let operation = "urn:cl:operation:01890000-0000-7000-8000-000000000001";
        let operation = OperationId::parse(operation).unwrap();
        Bundle {
            tenant: TenantName::parse("acme").unwrap(),
            id: BundleId::parse("urn:cl:bundle:b").unwrap(),
            recipient: Reference::new("urn:model:m").unwrap(),
            request: RequestId::parse("urn:cl:request:r").unwrap(),
            decision: DecisionId::parse("urn:cl:decision:d").unwrap(),
            policy: Digest::ZERO,
            alias: Alias::parse("urn:cl:alias:a").unwrap(),
            subject_tag: "tag".to_owned(),
            sources: Vec::new(),
            digest: Digest::ZERO,
            operations: Vec::new(),
            issued_by: operation.clone(),
            expires_at: at(50),
            grant_ends: at(60),
            state,
            redemption: Some(Redemption {
                operation_id: operation,
                key: used,
                at: at(20),
                is_withheld: false,
            }),
            due: at(50),
        }
    }

    #[test]
    fn one_redemption_and_its_repeats() {
        let on = |state, used: Option<Digest>, key, now| {
            bundle(state, used).on_redemption(key, &times(), at(now))
        };
        assert_eq!(on(State::Pending, None, None, 21), OnRedemption::Unknown);
        assert_eq!(on(State::Live, None, None, 21), OnRedemption::Take);
        for (state, repeated) in [
            (State::Redeeming, OnRedemption::Finish),
            (State::Redeemed, OnRedemption::Repeat),
        ] {
            assert_eq!(on(state, key("k"), key("k"), 29), repeated);
            assert_eq!(on(state, key("k"), key("other"), 29), OnRedemption::Replay);
            assert_eq!(on(state, key("k"), None, 29), OnRedemption::Replay);
            assert_eq!(on(state, None, key("k"), 29), OnRedemption::Replay);
            assert_eq!(on(state, None, None, 29), OnRedemption::Replay);
        }
        assert_eq!(
            on(State::Redeemed, key("k"), key("k"), 30),
            OnRedemption::Replay
        );
        assert_eq!(
            on(State::Consumed, key("k"), key("k"), 21),
            OnRedemption::Replay
        );
        assert_eq!(
            on(State::Revoked, key("k"), key("k"), 21),
            OnRedemption::Revoked
        );
        assert_eq!(
            on(State::Expired, key("k"), key("k"), 21),
            OnRedemption::Expired
        );
    }

    #[test]
    fn what_ends_before_its_delivery_is_receipted_is_withheld() {
        for end in [State::Revoked, State::Expired] {
            let ended = |state| bundle(state, None).turned(end, &times(), at(21));
            assert!(!ended(State::Redeeming).was_handed_out());
            assert!(ended(State::Redeemed).was_handed_out());
            let again = ended(State::Redeeming).turned(State::Expired, &times(), at(22));
            assert!(!again.was_handed_out());
        }
        assert!(!bundle(State::Redeeming, None).was_handed_out());
    }

    #[test]
    fn content_goes_as_soon_as_nobody_can_have_it() {
        let needs = |state, used, now| bundle(state, used).needs_content(&times(), at(now));
        assert!(needs(State::Live, None, 21));
        assert!(needs(State::Redeeming, None, 21));
        assert!(needs(State::Redeemed, key("k"), 29));
        assert!(!needs(State::Redeemed, key("k"), 30));
        assert!(!needs(State::Redeemed, None, 21));
        for state in [State::Consumed, State::Revoked, State::Expired] {
            assert!(!needs(state, key("k"), 21), "{state:?}");
        }
    }

    #[test]
    fn is_due_when_its_state_next_changes() {
        let due = |state, used| bundle(state, used).turned(state, &times(), at(21)).due;
        assert_eq!(due(State::Live, None), at(50));
        assert_eq!(due(State::Redeemed, key("k")), at(30));
        assert_eq!(due(State::Redeemed, None), at(50));
        assert_eq!(due(State::Consumed, key("k")), at(50));
        assert_eq!(due(State::Revoked, None), at(150));
        assert!(bundle(State::Live, None).has_run_out(at(50)));
        assert!(!bundle(State::Live, None).has_run_out(at(49)));
        assert!(!bundle(State::Revoked, None).has_run_out(at(50)));
    }

    #[test]
    fn names_of_states_read_back() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        assert_eq!(State::parse("gone"), None);
    }
}
