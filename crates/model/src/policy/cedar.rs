//! The Cedar form of a snapshot's policy: its document, without what the texts mean.

use std::collections::HashSet;

use super::ruling::Terms;
use crate::json::read::object;
use crate::list::{Dictionary, List, MemberName, UniqueList};
use crate::opaque::opaque_debug;
use crate::part::{Issuer, OnwardDisclosure, PolicySnapshot, Retention};
use crate::refusal::{Code, Place, Refusal};
use crate::scalar::{AnyJson, Bounded, Name, PolicyName, Text};

/// The most policies, and the most entities, of one document.
const MAX_ENTRIES: usize = 4096;
/// The most attributes, tags and parents of one entity.
const MAX_MEMBERS: usize = 256;
const MAX_TTL_SECONDS: i64 = 9_007_199_254_740_991;
const DEFAULT_TTL_SECONDS: u64 = 300;
const DEFAULT_ISSUER: &str = "urn:cl:policy-engine:local";

/// The anomaly state of whoever has none.
pub const NORMAL_ANOMALY_STATE: &str = "normal";

object! {
    /// The name of an entity.
    #[derive(Eq, Hash)]
    pub struct EntityName {
        /// Its type.
        kind as "type": Text<1, 64>,
        /// Its id within the type.
        id: Text<1, 512>,
    }
}

object! {
    /// What is known about one entity.
    pub struct EntityData {
        /// Its name.
        uid: EntityName,
        /// Its attributes, as the type declares them.
        attrs: Dictionary<String, AnyJson, 0, MAX_MEMBERS>,
        /// The groups that it is in.
        parents: UniqueList<EntityName, 0, MAX_MEMBERS>,
        /// Its tags, each a set of strings.
        tags: Option<Dictionary<String, AnyJson, 0, MAX_MEMBERS>>,
    }
}

object! {
    /// Policies as Cedar texts, and what they are evaluated with.
    pub struct CedarDocument {
        /// The texts, one policy each, by name.
        policies: Dictionary<PolicyName, Text<1, 65536>, 0, MAX_ENTRIES>,
        /// What is known about requesters, subjects, recipients, clients, predicates and operations.
        entities: List<EntityData, 0, MAX_ENTRIES>,
        /// The longest retention that is granted.
        maximum_retention: Retention,
        /// Who issues decisions; the engine's default unless stated.
        issuer: Option<Issuer>,
        /// What a request may say about passing context on; `forbidden` alone unless stated.
        allowed_onward_disclosure: Option<UniqueList<OnwardDisclosure, 0, 2>>,
        /// How long a decision holds, in seconds; 300 unless stated.
        decision_ttl_seconds: Option<Bounded<1, MAX_TTL_SECONDS>>,
        /// Whether receipts are required whatever a request says; false unless stated.
        require_receipts: Option<bool>,
        /// Instructions that every bundle carries.
        bundle_instructions: Option<UniqueList<Text<1, 500>, 0, 32>>,
        /// Whether requesters are within their rate; true unless stated.
        rate_limit_ok: Option<bool>,
        /// The anomaly state; `normal` unless stated.
        anomaly_state: Option<Name>,
    }
}

/// The Cedar form of a policy, whose texts nobody has read yet.
#[derive(Clone)]
pub struct CedarForm {
    document: CedarDocument,
    terms: Terms,
}

opaque_debug!(CedarForm);

impl CedarForm {
    /// The form of a document; `snapshot` is the version and digest of the whole snapshot.
    ///
    /// # Errors
    ///
    /// None in practice: the default issuer is one.
    pub(super) fn new(document: CedarDocument, snapshot: PolicySnapshot) -> Result<Self, Refusal> {
        let issuer = document
            .issuer
            .clone()
            .or_else(|| Issuer::new(DEFAULT_ISSUER));
        let instructions = document.bundle_instructions.as_ref();
        let terms = Terms {
            snapshot,
            issuer: issuer.ok_or(Code::InvalidPolicy)?,
            retention_mode: document.maximum_retention.mode,
            max_retention_seconds: document.maximum_retention.max_seconds.get().unsigned_abs(),
            decision_ttl_seconds: document
                .decision_ttl_seconds
                .map_or(DEFAULT_TTL_SECONDS, |seconds| seconds.get().unsigned_abs()),
            requires_receipts: document.require_receipts.unwrap_or(false),
            instructions: instructions.map_or_else(Vec::new, |texts| texts.to_vec()),
        };
        Ok(Self { document, terms })
    }

    /// Refuses an entity that is described twice, whatever is said about it.
    pub(super) fn check_entities(&self) -> Result<(), Refusal> {
        let mut seen = HashSet::new();
        for (index, entity) in self.document.entities.iter().enumerate() {
            if !seen.insert(&entity.uid) {
                let place = Place::root().under_index(index).under_member("entities");
                return Err(Refusal::at(
                    Code::InvalidPolicy,
                    place.under_member("cedar"),
                ));
            }
        }
        Ok(())
    }

    /// The document.
    pub const fn document(&self) -> &CedarDocument {
        &self.document
    }

    /// What holds for every decision.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether a request may say this about passing context on.
    pub fn allows_onward_disclosure(&self, asked: &str) -> bool {
        match &self.document.allowed_onward_disclosure {
            Some(allowed) => allowed.iter().any(|it| it.as_str() == asked),
            None => asked == OnwardDisclosure::Forbidden.as_str(),
        }
    }

    /// Whether requesters are over their rate.
    pub fn is_rate_limited(&self) -> bool {
        self.document.rate_limit_ok == Some(false)
    }

    /// The anomaly state.
    pub fn anomaly_state(&self) -> &str {
        self.document
            .anomaly_state
            .as_ref()
            .map_or(NORMAL_ANOMALY_STATE, Name::as_str)
    }
}

impl MemberName for PolicyName {
    fn from_name(name: &str) -> Option<Self> {
        Self::new(name)
    }
}
