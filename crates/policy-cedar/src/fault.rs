//! What is wrong with a snapshot's policies.

use std::fmt;

use cl_model::scalar::PolicyName;

/// Why policies are not accepted: everything that was found, in the order of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPolicies {
    /// What was found, at least one.
    pub findings: Vec<Finding>,
}

impl fmt::Display for InvalidPolicies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                formatter.write_str("; ")?;
            }
            write!(formatter, "{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidPolicies {}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// What kind of thing.
    pub fault: Fault,
    /// What exactly, for the author of the text. It may repeat parts of the text, so it is for a
    /// person who has the file, and never for a log or for another process.
    pub detail: String,
}

impl fmt::Debug for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Finding")
            .field("place", &self.place)
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.fault.meaning())
    }
}

/// A place in the Cedar part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The policy with this name.
    Policy(PolicyName),
    /// The entity at this position, from 0.
    Entity(usize),
    /// The entities together.
    Entities,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(name) => write!(formatter, "policy {name}"),
            Self::Entity(index) => write!(formatter, "entity {index}"),
            Self::Entities => formatter.write_str("entities"),
        }
    }
}

/// A kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The text nests too deeply, or has too many operators.
    Extent,
    /// The text is not one static Cedar policy.
    Syntax,
    /// The text does not fit the schema, or can never match.
    Schema,
    /// An annotation is unknown, misplaced, or has a value out of its grammar.
    Annotation,
    /// It names a predicate, client or group that the snapshot does not have.
    Unregistered,
    /// What is said about an entity does not fit the schema.
    Entity,
}

impl Fault {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Extent => "POLICY_TOO_LARGE",
            Self::Syntax => "POLICY_SYNTAX",
            Self::Schema => "POLICY_SCHEMA_MISMATCH",
            Self::Annotation => "POLICY_ANNOTATION_INVALID",
            Self::Unregistered => "POLICY_NAME_UNREGISTERED",
            Self::Entity => "POLICY_ENTITY_INVALID",
        }
    }

    /// One fixed sentence for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Extent => "nests too deeply, or has too many operators",
            Self::Syntax => "not one static Cedar policy",
            Self::Schema => "does not fit the schema, or can never match",
            Self::Annotation => "an annotation is unknown, misplaced or malformed",
            Self::Unregistered => "names a predicate, client or group that the snapshot lacks",
            Self::Entity => "does not fit the schema",
        }
    }
}
