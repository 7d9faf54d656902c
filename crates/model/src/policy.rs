//! Policy evaluation: a pure function of its recorded inputs (spec 9).

mod approval;
mod asked;
mod cedar;
mod delegated;
mod evaluate;
mod limits;
mod list;
mod listed;
mod question;
mod reasons;
mod registry;
mod requested;
mod ruling;
mod scope;
mod signed;
mod snapshot;
mod verified;

pub use self::approval::{
    Approval, ApprovalRule, ApprovedScope, PresentedApproval, VerifierOutcome,
};
pub use self::asked::Asked;
pub use self::cedar::{CedarDocument, CedarForm, EntityData, EntityName, NORMAL_ANOMALY_STATE};
pub use self::delegated::Delegated;
pub use self::evaluate::{Evaluation, Outcome};
pub use self::list::ListPolicy;
pub use self::listed::ListedPolicy;
pub use self::question::{Answer, Question, Scope};
pub use self::registry::{
    Approver, Assurance, RateBy, RegisteredClient, RegisteredPredicate, RequestLimits, RequestRate,
    ResolveLimits,
};
pub use self::requested::Treatment;
pub use self::ruling::{Access, ItemRuling, Limits, Part, Policy, Ruling, Terms};
pub use self::signed::SnapshotSignature;
pub use self::snapshot::{PolicyForm, Snapshot, SnapshotDocument, SnapshotVersion};
pub use self::verified::VerifiedDecision;

/// Whether a required receipt store is ready for an operation (spec 8, 11.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preflight {
    /// No store is configured.
    Absent,
    /// A store is configured and is not ready, or its answer was malformed.
    Unavailable,
    /// The store is ready.
    Available,
}
