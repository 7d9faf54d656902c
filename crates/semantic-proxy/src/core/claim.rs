//! Claims as the vault sends them, and what a plan says about them.

use cl_model::grant::{ResolveRule, VerifiedGrant};
use cl_model::leak::LeakGuard;
use cl_model::object::ClaimStatus;
use cl_model::part::{Label, Trust};
use cl_model::scalar::{Confidence, Handle, Name, Predicate};
use cl_model::time::UnixTime;
use serde_json::Value;

/// The most claims of one answer.
pub const MAX_CLAIMS: usize = 64;

/// The most sources of one claim.
pub const MAX_HANDLES: usize = 32;

/// A claim, well formed, and not compared with any plan.
#[derive(Clone, PartialEq)]
pub struct RawClaim {
    /// What it is about.
    pub predicate: Predicate,
    /// Its value.
    pub value: Value,
    /// The vault's name for the value's type.
    pub datatype: Name,
    /// How much it is believed.
    pub confidence: Confidence,
    /// Where it stands.
    pub status: ClaimStatus,
    /// How far its source is believed.
    pub trust: Trust,
    /// How private it is.
    pub label: Label,
    /// When it holds.
    pub validity: Validity,
    /// The minted names of its sources.
    pub handles: Vec<Handle>,
}

/// When a claim holds, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// From when.
    pub from: Option<UnixTime>,
    /// Until when.
    pub until: Option<UnixTime>,
}

impl Validity {
    fn holds(self, now: UnixTime) -> bool {
        self.from.is_none_or(|from| from <= now) && self.until.is_none_or(|until| now < until)
    }
}

/// The vault's answer, well formed.
pub struct Resolved {
    /// The claims.
    pub claims: Vec<RawClaim>,
    /// How many it held back.
    pub withheld: u32,
    /// How to notice those.
    pub guard: LeakGuard,
}

/// A claim that the plan allows.
#[derive(Clone)]
pub struct GrantedClaim<'a> {
    /// The rule that allows it.
    pub rule: &'a ResolveRule,
    /// The claim.
    pub claim: RawClaim,
}

/// Why nothing of an answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The vault sent what it was not asked for, or what is malformed.
    #[error("the vault's answer is not what the plan allows")]
    OutsidePlan,
    /// More claims than one bundle can carry.
    #[error("too many claims")]
    TooManyClaims,
    /// No template is known for a granted predicate.
    #[error("a predicate is not registered")]
    PredicateNotRegistered,
    /// A value is not what its predicate says.
    #[error("a value is not of its datatype")]
    ValueNotOfDatatype,
    /// A denied value would leave.
    #[error("a denied value would leave")]
    Leak,
}

impl Violation {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::OutsidePlan => "VAULT_ANSWER_INVALID",
            Self::TooManyClaims => "TOO_MANY_CLAIMS",
            Self::PredicateNotRegistered => "PREDICATE_NOT_REGISTERED",
            Self::ValueNotOfDatatype => "VALUE_NOT_OF_DATATYPE",
            Self::Leak => "DISCLOSURE_LEAK",
        }
    }
}

/// The claims that the plan allows, in the vault's order.
///
/// One that departs from the plan refuses the whole answer: a vault that sends it is not believed
/// about the others either. One whose time has just run out is only left out, since two clocks
/// differ.
pub fn check<'a>(
    grant: &'a VerifiedGrant,
    claims: Vec<RawClaim>,
    now: UnixTime,
) -> Result<Vec<GrantedClaim<'a>>, Violation> {
    if claims.len() > MAX_CLAIMS {
        return Err(Violation::TooManyClaims);
    }
    let mut granted = Vec::with_capacity(claims.len());
    for claim in claims {
        let mut rules = grant.plan().rules.iter();
        let rule = rules
            .find(|rule| rule.predicate == claim.predicate)
            .filter(|rule| allows(rule, &claim))
            .ok_or(Violation::OutsidePlan)?;
        if claim.validity.holds(now) {
            granted.push(GrantedClaim { rule, claim });
        }
    }
    Ok(granted)
}

fn allows(rule: &ResolveRule, claim: &RawClaim) -> bool {
    claim.label <= rule.max_label
        && claim.trust >= rule.min_trust
        && claim.confidence >= rule.min_confidence
        && rule.statuses.contains(&claim.status)
}
