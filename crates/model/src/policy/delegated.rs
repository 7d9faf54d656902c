//! Authority that a subject has given to a requester for one purpose (spec 9.1).

use crate::opaque::opaque_debug;
use crate::scalar::Predicate;
use crate::time::UnixTime;

/// What a subject has delegated to the requester, for the purpose that it asks for. A policy can ask
/// about it; by itself it allows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Delegated {
    /// The predicates.
    pub predicates: Vec<Predicate>,
    /// When it ends.
    pub until: UnixTime,
}

opaque_debug!(Delegated);
