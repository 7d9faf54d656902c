//! The receipts of the issuer's own operations.

use cl_model::digest::Digest;
use cl_model::grant::VerifiedGrant;
use cl_model::object::Outcome;
use cl_model::operation::OperationId;
use cl_model::receipt::Draft;
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;
use cl_model::urn::{Alias, ReceiptId};
use serde_json::Value;

use super::bundle::{Bundle, State};

/// The operations that the issuer writes receipts of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A bundle was issued, or finally was not.
    Issue,
    /// A bundle was handed out.
    Deliver,
    /// Bundles were ended.
    Revoke,
}

impl Operation {
    /// The operation's name in receipts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Issue => "bundle.issue",
            Self::Deliver => "bundle.deliver",
            Self::Revoke => "bundle.revoke",
        }
    }
}

/// Writes receipts in the name of the issuer.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    /// The issuer's SPIFFE id, as actor and issuer.
    pub own: &'a str,
    /// The operation's id.
    pub operation_id: &'a OperationId,
    /// The time.
    pub now: UnixTime,
}

impl Writer<'_> {
    /// A bundle was issued from a decision.
    pub fn issued(
        &self,
        bundle: &Bundle,
        decision: Digest,
        items: usize,
    ) -> Result<Vec<u8>, Refusal> {
        self.about(
            bundle,
            Operation::Issue,
            Outcome::Success,
            "A bundle was issued for one recipient.",
        )
        .with_digests(decision, bundle.digest)
        .with_metadata("items", &items.to_string())
        .members()
    }

    /// No bundle can be issued under a decision.
    pub fn not_issued(&self, grant: &VerifiedGrant, code: &str) -> Result<Vec<u8>, Refusal> {
        let decision = grant.decision().decision();
        self.draft(
            Operation::Issue,
            &grant.plan().subject_alias,
            Outcome::Failure,
            "No bundle was issued.",
        )
        .about_decision(decision.request_ref.as_str(), decision.id.as_str())
        .under_policy(Some(decision.policy_snapshot.digest))
        .with_digests(grant.scope().decision_digest, Digest::of_json(&Value::Null))
        .with_metadata("code", code)
        .members()
    }

    /// A bundle is handed out to its recipient.
    pub fn delivered(&self, bundle: &Bundle, envelope: &[u8]) -> Result<Vec<u8>, Refusal> {
        self.about(
            bundle,
            Operation::Deliver,
            Outcome::Success,
            "A bundle was handed out to its recipient.",
        )
        .with_digests(bundle.digest, Digest::of_bytes(envelope))
        .members()
    }

    /// A bundle was not handed out after all, whatever the receipt `delivery` says.
    pub fn withheld(&self, bundle: &Bundle, delivery: &ReceiptId) -> Result<Vec<u8>, Refusal> {
        let code = if bundle.state == State::Revoked {
            "BUNDLE_REVOKED"
        } else {
            "BUNDLE_EXPIRED"
        };
        self.about(
            bundle,
            Operation::Deliver,
            Outcome::Failure,
            "A bundle ended before it was handed out, and was not.",
        )
        .superseding(delivery.as_str())
        .with_digests(bundle.digest, Digest::of_json(&Value::Null))
        .with_metadata("code", code)
        .members()
    }

    /// Bundles were ended. The receipt refers to the bundle if there is exactly one; otherwise its
    /// subject is a name of this operation only.
    pub fn revoked(
        &self,
        bundles: &[&Bundle],
        target: Digest,
        reason: &str,
    ) -> Result<Vec<u8>, Refusal> {
        const SUMMARY: &str = "Bundles were ended before their time.";

        let nobody = Alias::from_digest(Digest::of_bytes(self.operation_id.as_str().as_bytes()));
        let draft = match bundles {
            [bundle] => self.about(bundle, Operation::Revoke, Outcome::Success, SUMMARY),
            [first, others @ ..] if others.iter().all(|it| it.alias == first.alias) => {
                self.draft(Operation::Revoke, &first.alias, Outcome::Success, SUMMARY)
            }
            _ => self.draft(Operation::Revoke, &nobody, Outcome::Success, SUMMARY),
        };
        draft
            .with_digests(target, Digest::of_json(&Value::Null))
            .with_metadata("reason", reason)
            .with_metadata("bundles", &bundles.len().to_string())
            .members()
    }

    fn about<'d>(
        &'d self,
        bundle: &'d Bundle,
        operation: Operation,
        outcome: Outcome,
        summary: &'d str,
    ) -> Draft<'d> {
        self.draft(operation, &bundle.alias, outcome, summary)
            .about(
                bundle.request.as_str(),
                bundle.decision.as_str(),
                bundle.id.as_str(),
            )
            .under_policy(Some(bundle.policy))
    }

    fn draft<'d>(
        &'d self,
        operation: Operation,
        subject: &'d Alias,
        outcome: Outcome,
        summary: &'d str,
    ) -> Draft<'d> {
        Draft::new(
            operation.as_str(),
            self.own,
            subject.as_str(),
            outcome,
            summary,
            self.now,
        )
        .issued_by(self.own)
        .with_metadata("operation_id", self.operation_id.as_str())
    }
}
