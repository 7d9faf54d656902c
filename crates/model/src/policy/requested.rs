//! Requested scope, as an approval surface shows it (spec 9.3).

use super::Evaluation;
use super::scope::Division;

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

impl Evaluation<'_> {
    /// What the policy does with the requested selectors, and with the requested actions.
    pub fn treatments(&self) -> (Treatment, Treatment) {
        let ruling = self.ruling();
        let selectors = Division::of(&self.request.selectors, &ruling.selectors);
        let actions = Division::of(&self.request.actions, &ruling.actions);
        (Treatment::of(&selectors), Treatment::of(&actions))
    }
}
