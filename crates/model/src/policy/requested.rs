//! Requested scope, as an approval surface shows it (spec 9.3).

use super::scope::Division;
use super::{Asked, Snapshot};

/// What a policy does with the parts of one kind of requested scope, in request order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// Granted with the rest, without asking.
    pub ordinary: Vec<String>,
    /// Granted or declined by a person.
    pub gated: Vec<String>,
    /// Denied, whatever a person answers.
    pub denied: Vec<String>,
}

impl Treatment {
    fn of(division: &Division<'_>) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            ordinary: owned(&division.ordinary),
            gated: owned(&division.gated),
            denied: owned(&division.outside),
        }
    }
}

impl Snapshot {
    /// What this policy does with the requested selectors.
    pub fn treat_selectors(&self, asked: &Asked) -> Treatment {
        Treatment::of(&Division::of(&asked.selectors, &self.policy().selectors))
    }

    /// What this policy does with the requested actions.
    pub fn treat_actions(&self, asked: &Asked) -> Treatment {
        Treatment::of(&Division::of(&asked.actions, &self.policy().actions))
    }

    /// How long a decision holds, in seconds.
    pub const fn decision_ttl_seconds(&self) -> u64 {
        self.policy().decision_ttl_seconds
    }
}
