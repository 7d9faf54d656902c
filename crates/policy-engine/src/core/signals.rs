//! What a decision depends on that neither the request nor the snapshot says (spec 9.2).
//!
//! It changes with time, so each decision records what it was told, and is repeated with that.

use cl_model::policy::Delegated;
use cl_model::scalar::Name;

/// What was so when a request was evaluated.
#[derive(Clone, Default, PartialEq)]
pub struct Signals {
    /// How many requests each rate of the snapshot had counted before, in their order; nothing where
    /// a person's answer is decided by, or where nobody counted.
    pub counted: Vec<u64>,
    /// The anomaly state that an operator has set for the requester, if any.
    pub anomaly: Option<Name>,
    /// What the subject has delegated to the requester for the purpose, whether or not it has ended.
    pub delegated: Option<Delegated>,
}
