//! What a snapshot registers, and the limits that it sets beside its policy.

use crate::grant::ProjectionStep;
use crate::json::read::{choice, object};
use crate::list::{List, UniqueList};
use crate::object::ClaimStatus;
use crate::part::{Label, Trust};
use crate::scalar::{Bounded, Confidence, Name, Reference};

choice! {
    /// How surely a credential stands for its principal, weakest first.
    pub enum Assurance {
        /// The identity was claimed, and little checked.
        Low = "low",
        /// It was checked when the credential was given out.
        Substantial = "substantial",
        /// And the credential is held in hardware or proved by more than one factor.
        High = "high",
    }
}

object! {
    /// A predicate that this tenant knows.
    pub struct RegisteredPredicate {
        /// The datatype of its values.
        datatype: Name,
        /// How private its values are; restricted unless stated.
        label: Option<Label>,
    }
}

object! {
    /// Which claims of a predicate may be resolved. What is missing has its default.
    pub struct ResolveLimits {
        /// The highest sensitivity; by default the predicate's label.
        max_label: Option<Label>,
        /// The lowest trust in a source; by default untrusted.
        min_trust: Option<Trust>,
        /// The lowest confidence; by default 0.
        min_confidence: Option<Confidence>,
        /// The statuses; by default asserted, derived and disputed.
        statuses: Option<UniqueList<ClaimStatus, 1, 5>>,
        /// Further projections; by default none.
        projections: Option<UniqueList<ProjectionStep, 0, 2>>,
    }
}

object! {
    /// A client instance, and who may act through it.
    pub struct RegisteredClient {
        /// The client instance, as its credential names it.
        client_instance: Reference,
        /// The principals that it acts for.
        principals: UniqueList<Reference, 1, 64>,
    }
}

object! {
    /// A person who may approve gated scope.
    pub struct Approver {
        /// The person.
        principal: Reference,
        /// The subjects for whom.
        subjects: UniqueList<Reference, 1, 256>,
    }
}

choice! {
    /// What a rate counts apart, beside the requester.
    pub enum RateBy {
        /// Each subject for itself.
        Subject = "subject",
        /// Each purpose code for itself.
        Purpose = "purpose",
    }
}

object! {
    /// How many requests of one requester are decided in one window of time.
    pub struct RequestRate {
        /// The most requests in a window.
        max_requests: Bounded<1, 1_000_000>,
        /// The length of a window, in seconds.
        window_seconds: Bounded<1, 86_400>,
        /// What is counted apart.
        by: UniqueList<RateBy, 0, 2>,
    }
}

impl RequestRate {
    /// Whether two rates count the same requests.
    pub(super) fn counts_as(&self, other: &Self) -> bool {
        let is_by = |rate: &Self, by: RateBy| rate.by.contains(&by);
        self.window_seconds == other.window_seconds
            && is_by(self, RateBy::Subject) == is_by(other, RateBy::Subject)
            && is_by(self, RateBy::Purpose) == is_by(other, RateBy::Purpose)
    }
}

object! {
    /// Limits of a single request, and of how many. What is missing does not limit.
    pub struct RequestLimits {
        /// The most selectors.
        max_selectors: Option<Bounded<1, 64>>,
        /// The most actions.
        max_actions: Option<Bounded<1, 64>>,
        /// The longest time from the evaluation to the request's end, in seconds.
        max_lifetime_seconds: Option<Bounded<1, 31_536_000>>,
        /// The lowest assurance of the requester's credential.
        min_assurance: Option<Assurance>,
        /// How often a requester may ask; all of them hold.
        rates: Option<List<RequestRate, 0, 8>>,
    }
}
