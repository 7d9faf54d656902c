//! The names of entities.

use std::sync::LazyLock;

use cedar_policy::{EntityId, EntityTypeName, EntityUid};
use cl_model::policy::Scope;

/// The entity types of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Action,
    Agent,
    ApprovalAnswer,
    Assurance,
    Client,
    Group,
    Label,
    OnwardDisclosure,
    Operation,
    Predicate,
    ReceiptLevel,
    Recipient,
    RetentionMode,
    SideEffect,
    Subject,
}

/// The types that a snapshot may say something about.
pub(crate) const DESCRIBED: [Kind; 7] = [
    Kind::Agent,
    Kind::Client,
    Kind::Group,
    Kind::Operation,
    Kind::Predicate,
    Kind::Recipient,
    Kind::Subject,
];

const NAMES: [&str; 15] = [
    "Action",
    "Agent",
    "ApprovalAnswer",
    "Assurance",
    "Client",
    "Group",
    "Label",
    "OnwardDisclosure",
    "Operation",
    "Predicate",
    "ReceiptLevel",
    "Recipient",
    "RetentionMode",
    "SideEffect",
    "Subject",
];

#[expect(clippy::expect_used, reason = "the names are written above")]
static TYPES: LazyLock<[EntityTypeName; 15]> =
    LazyLock::new(|| NAMES.map(|name| name.parse().expect("the name of a type")));

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The type of what a kind of scope asks for.
    pub(crate) const fn of(scope: Scope) -> Self {
        match scope {
            Scope::Selectors => Self::Predicate,
            Scope::Actions => Self::Operation,
        }
    }

    /// The entity of this type with this id.
    pub(crate) fn named(self, id: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(TYPES[self as usize].clone(), EntityId::new(id))
    }

    pub(crate) fn is_of(self, uid: &EntityUid) -> bool {
        *uid.type_name() == TYPES[self as usize]
    }
}

/// The Cedar action that asks for a kind of scope.
pub(crate) const fn action(scope: Scope) -> &'static str {
    match scope {
        Scope::Selectors => "disclose",
        Scope::Actions => "act",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_own_name() {
        for kind in DESCRIBED {
            assert!(kind.is_of(&kind.named("x")));
            assert_eq!(format!("{kind:?}"), kind.as_str());
        }
        assert_eq!(format!("{:?}", Kind::Subject), Kind::Subject.as_str());
        assert_eq!(format!("{:?}", Kind::SideEffect), Kind::SideEffect.as_str());
    }
}
