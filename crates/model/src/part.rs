//! Parts that several objects share.

use crate::digest::Digest;
use crate::json::read::{Expected, Mismatch, choice, constant, object};
use crate::scalar::{Bounded, MAX_RETENTION_SECONDS, Predicate, Reference, Text};

/// The protocol version of every object here.
pub const SPEC_VERSION: &str = "context-layer/0.2-draft";

constant! {
    /// `spec_version`: the one supported version (spec 15).
    pub struct SpecVersion = SPEC_VERSION;
    /// A member that must be `true`.
    pub struct AlwaysTrue = true;
    /// A member that must be `false`.
    pub struct AlwaysFalse = false;
    /// The digest algorithm of record integrity.
    pub struct Sha256Name = "sha-256";
}

object! {
    /// The component or authority that made an object (spec 6.1).
    #[derive(Eq, Hash)]
    pub struct Issuer {
        /// A stable identifier of 3 to 512 characters.
        id: Reference,
    }
}

impl Issuer {
    /// The issuer with this identifier, if it has 3 to 512 characters.
    pub fn new(id: &str) -> Option<Self> {
        Reference::new(id).map(|id| Self { id })
    }
}

object! {
    /// What a record's contents hash to (spec 6.4).
    #[derive(Eq)]
    pub struct Integrity {
        /// Always `sha-256`.
        algorithm: Sha256Name,
        /// The digest of the record without `id` and `integrity`.
        digest: Digest,
    }
}

object! {
    /// A request for, or a grant of, one kind of fact. Wildcards do not exist (spec 7.3).
    #[derive(Eq, Hash)]
    pub struct Selector {
        /// The fact's predicate.
        predicate: Predicate,
    }
}

choice! {
    /// How long a consumer may keep what it received.
    pub enum RetentionMode {
        /// In memory, for at most `max_seconds`.
        Ephemeral = "ephemeral",
        /// For one use, within `max_seconds`.
        SingleUse = "single_use",
    }
}

/// Seconds of retention that must be positive, up to one day.
pub type RetentionSeconds = Bounded<1, MAX_RETENTION_SECONDS>;

object! {
    /// Retention that is asked for, or that a bundle allows (spec 7.3, 7.5).
    #[derive(Eq)]
    pub struct Retention {
        /// The mode.
        mode: RetentionMode,
        /// The longest time, in seconds.
        max_seconds: RetentionSeconds,
    }
}

object! {
    /// Retention as a decision states it: zero seconds unless something is allowed (spec 7.4).
    #[derive(Eq)]
    pub struct DecidedRetention {
        /// The mode of the policy.
        mode: RetentionMode,
        /// The longest time, in seconds.
        max_seconds: Bounded<0, MAX_RETENTION_SECONDS>,
    }
}

choice! {
    /// Whether a recipient may pass context on.
    pub enum OnwardDisclosure {
        /// It may.
        Allowed = "allowed",
        /// It may not.
        Forbidden = "forbidden",
    }
}

choice! {
    /// How much of an exchange leaves receipts.
    pub enum ReceiptLevel {
        /// None.
        None = "none",
        /// The decision.
        Decision = "decision",
        /// Every operation.
        Operation = "operation",
    }
}

object! {
    /// The receipts that a request asks for and a decision demands (spec 7.3).
    #[derive(Eq)]
    pub struct ReceiptRequirement {
        /// The level.
        level: ReceiptLevel,
        /// Whether receipts are required; false exactly for the level `none`.
        required: bool,
    }
    check = ReceiptRequirement::level_agrees;
}

impl ReceiptRequirement {
    /// The requirement of a level.
    pub fn new(level: ReceiptLevel) -> Self {
        Self {
            level,
            required: level != ReceiptLevel::None,
        }
    }

    fn level_agrees(&self) -> Result<(), Mismatch> {
        if *self == Self::new(self.level) {
            return Ok(());
        }
        Err(Expected::Rule("expected level and required to agree").into())
    }
}

object! {
    /// The task that context is for (spec 7.3).
    #[derive(Eq)]
    pub struct Task {
        /// The class of task.
        kind: crate::scalar::Name,
        /// Whether the person sees the result.
        user_visible: bool,
    }
}

object! {
    /// The exact policy that was evaluated (spec 7.4).
    #[derive(Eq)]
    pub struct PolicySnapshot {
        /// The policy's own version, 1 to 240 characters.
        version: Text<1, 240>,
        /// The digest of the whole policy document.
        digest: Digest,
    }
}

choice! {
    /// How private a fact is, lowest first. What has no label counts as `restricted`.
    pub enum Label {
        /// For anybody.
        Public = "public",
        /// Within the organisation or circle.
        Internal = "internal",
        /// For the subject and those it chooses.
        Private = "private",
        /// Harmful if disclosed.
        Sensitive = "sensitive",
        /// Not to be disclosed without an explicit rule.
        Restricted = "restricted",
    }
}

choice! {
    /// How far a source's statements are believed, lowest first.
    pub enum Trust {
        /// Captured content of unknown intent.
        Untrusted = "untrusted",
        /// Its origin was verified.
        Verified = "verified",
        /// The subject stated it.
        UserAsserted = "user_asserted",
    }
}
