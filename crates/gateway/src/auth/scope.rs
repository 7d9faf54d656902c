//! What a credential may be used for.

/// A group of operations that a credential can be good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// To submit and read requests.
    Request,
    /// To redeem and check bundles.
    Redeem,
    /// To report what was done with a bundle.
    WriteReceipts,
    /// To read receipts.
    ReadReceipts,
    /// To propose memory updates.
    ProposeMemory,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 5] = [
        Self::Request,
        Self::Redeem,
        Self::WriteReceipts,
        Self::ReadReceipts,
        Self::ProposeMemory,
    ];

    /// The scope as tokens name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "context.request",
            Self::Redeem => "context.redeem",
            Self::WriteReceipts => "receipt.write",
            Self::ReadReceipts => "receipt.read",
            Self::ProposeMemory => "memory.propose",
        }
    }
}

/// The scopes of one credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scopes(Vec<Scope>);

impl Scopes {
    pub(super) fn all() -> Self {
        Self(Scope::ALL.to_vec())
    }

    /// Reads names with one space between each two (RFC 6749 section 3.3). Names of others' scopes
    /// mean nothing here.
    pub(super) fn parse(text: &str) -> Self {
        let is_named = |scope: &Scope| text.split(' ').any(|name| name == scope.as_str());
        Self(Scope::ALL.into_iter().filter(is_named).collect())
    }

    pub(super) fn contains(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_is_granted_by_its_own_name_only() {
        for scope in Scope::ALL {
            let granted = Scopes::parse(&format!("openid {} other", scope.as_str()));
            for other in Scope::ALL {
                assert_eq!(granted.contains(other), other == scope, "{other:?}");
            }
            assert!(Scopes::all().contains(scope));
        }
    }
}
