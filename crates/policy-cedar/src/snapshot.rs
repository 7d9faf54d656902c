//! A snapshot that can decide.

use std::ops::Deref;
use std::sync::Arc;

use cl_model::policy::{ListPolicy, Policy, PolicyForm, Question, Snapshot};
use cl_model::refusal::Refusal;
use serde_json::Value;

use crate::explain::{self, MatchedItems};
use crate::fault::InvalidPolicies;
use crate::policy::CedarPolicy;

/// A snapshot whose policy, in whichever form, was read and validated.
#[derive(Clone, Debug)]
pub struct CompiledSnapshot {
    snapshot: Snapshot,
    policy: Compiled,
}

#[derive(Clone, Debug)]
enum Compiled {
    List(Arc<ListPolicy>),
    Cedar(Arc<CedarPolicy>),
}

/// Why a document is no snapshot that can decide.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSnapshot {
    /// The document departs from its form, or its parts disagree.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its policies in Cedar are not accepted.
    #[error(transparent)]
    Policies(#[from] InvalidPolicies),
}

impl CompiledSnapshot {
    /// Reads a snapshot document, and compiles its policy.
    ///
    /// # Errors
    ///
    /// [`InvalidSnapshot::Refused`] as [`Snapshot::read`], and [`InvalidSnapshot::Policies`] as
    /// [`CedarPolicy::compile`].
    pub fn read(value: &Value) -> Result<Self, InvalidSnapshot> {
        let snapshot = Snapshot::read(value)?;
        let policy = match snapshot.policy() {
            PolicyForm::List(policy) => Compiled::List(Arc::new(ListPolicy::clone(policy))),
            PolicyForm::Cedar(form) => {
                Compiled::Cedar(Arc::new(CedarPolicy::compile(&snapshot, form)?))
            }
        };
        Ok(Self { snapshot, policy })
    }

    /// The policy, as the evaluation asks it.
    pub fn policy(&self) -> &dyn Policy {
        match &self.policy {
            Compiled::List(policy) => policy.as_ref(),
            Compiled::Cedar(policy) => policy.as_ref(),
        }
    }

    /// The rules that match each requested item: policies in Cedar, or members of the lists.
    pub fn matched(&self, question: &Question<'_>) -> MatchedItems {
        match &self.policy {
            Compiled::List(policy) => explain::listed(policy, question),
            Compiled::Cedar(policy) => policy.matched(question),
        }
    }

    /// The policy, if it is in Cedar.
    pub fn cedar(&self) -> Option<&CedarPolicy> {
        match &self.policy {
            Compiled::List(_) => None,
            Compiled::Cedar(policy) => Some(policy),
        }
    }
}

impl Deref for CompiledSnapshot {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}
