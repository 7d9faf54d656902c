//! Grants between messages and signed documents.

use cl_model::document::Signed;
use cl_model::key::Signature;

use crate::field_path::FieldPath;
use crate::policy::v1::Grant;

/// The codes with which a service refuses a grant (`PERMISSION_DENIED`).
pub const REFUSALS: [&str; 8] = [
    "INVALID_DOCUMENT",
    "UNTRUSTED_DOCUMENT_KEY",
    "DOCUMENT_SIGNATURE_INVALID",
    "GRANT_MISMATCH",
    "GRANT_AUDIENCE_MISMATCH",
    "GRANT_NOT_YET_VALID",
    "GRANT_EXPIRED",
    "TENANT_MISMATCH",
];

/// The two documents of a grant, not verified yet.
#[derive(Clone, Debug)]
pub struct SignedGrant {
    /// The scope statement.
    pub scope: Signed,
    /// The resolve plan.
    pub plan: Signed,
}

impl SignedGrant {
    /// Reads the grant in the field `grant`.
    pub fn read(grant: Option<Grant>) -> Result<Self, InvalidGrant> {
        let field = || FieldPath::new("grant");
        let grant = grant.ok_or_else(|| InvalidGrant {
            field: field(),
            rule: "REQUIRED",
        })?;
        let signed = |document, signature: Vec<u8>, name| {
            let signature = signature.try_into().map_err(|_| InvalidGrant {
                field: field().field(name),
                rule: "NOT_A_SIGNATURE",
            })?;
            Ok(Signed {
                document,
                signature: Signature::new(signature),
            })
        };
        Ok(Self {
            scope: signed(
                grant.scope_statement,
                grant.scope_signature,
                "scope_signature",
            )?,
            plan: signed(grant.plan, grant.plan_signature, "plan_signature")?,
        })
    }

    /// The message, with the same bytes.
    pub fn to_message(&self) -> Grant {
        Grant {
            scope_statement: self.scope.document.clone(),
            scope_signature: self.scope.signature.as_bytes().to_vec(),
            plan: self.plan.document.clone(),
            plan_signature: self.plan.signature.as_bytes().to_vec(),
        }
    }
}

/// The field of a grant that is malformed, and the rule that it violates, as a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidGrant {
    /// The field.
    pub field: FieldPath,
    /// The rule.
    pub rule: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_bytes_and_refuses_other_lengths() {
        let grant = Grant {
            scope_statement: b"{}".to_vec(),
            scope_signature: vec![1; 64],
            plan: b"[]".to_vec(),
            plan_signature: vec![2; 64],
        };
        let read = SignedGrant::read(Some(grant.clone())).unwrap();
        assert_eq!(read.to_message(), grant);
        let mut short = grant.clone();
        short.plan_signature.pop();
        let refused = SignedGrant::read(Some(short)).unwrap_err();
        assert_eq!(refused.field.to_string(), "grant.plan_signature");
        let mut long = grant;
        long.scope_signature.push(0);
        let refused = SignedGrant::read(Some(long)).unwrap_err();
        assert_eq!(refused.field.to_string(), "grant.scope_signature");
        assert_eq!(SignedGrant::read(None).unwrap_err().rule, "REQUIRED");
    }
}
