//! The receipt of a projection.

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::grant::VerifiedGrant;
use cl_model::object::Outcome;
use cl_model::operation::{OperationId, TenantName};
use cl_model::receipt::Draft;
use cl_model::refusal::Refusal;
use cl_model::time::UnixTime;
use serde_json::{Map, Value, json};

/// The operation.
pub const OPERATION: &str = "semantic_proxy.project";

/// The members that an intent fixes.
const FIXED: [&str; 7] = [
    "operation",
    "actor",
    "issuer",
    "subject_ref",
    "request_ref",
    "decision_ref",
    "started_at",
];

/// Where a receipt belongs.
#[derive(Clone)]
pub struct Routing {
    /// The tenant.
    pub tenant: TenantName,
    /// The projection's own id.
    pub operation_id: OperationId,
    /// The subject's tag.
    pub subject_tag: String,
}

/// One projection, for its receipt.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// Where it belongs.
    pub routing: &'a Routing,
    /// The issue that it serves.
    pub serves: &'a OperationId,
    /// The proxy's SPIFFE id.
    pub own: &'a str,
    /// What it works under.
    pub grant: &'a VerifiedGrant,
    /// When it started.
    pub started_at: UnixTime,
}

/// How a projection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Items may leave.
    Projected {
        /// How many.
        items: usize,
        /// How many claims were held back.
        withheld: u32,
        /// The digest of all items.
        output: Digest,
    },
    /// Nothing leaves, for this reason.
    Refused(&'static str),
}

impl Evidence<'_> {
    /// The members known before it starts.
    pub fn intent(&self) -> Vec<u8> {
        let members = json!({
            "operation": OPERATION,
            "actor": self.own,
            "issuer": {"id": self.own},
            "subject_ref": self.grant.plan().subject_alias.as_str(),
            "request_ref": self.grant.decision().decision().request_ref.as_str(),
            "decision_ref": self.grant.scope().decision_id.as_str(),
            "started_at": self.started_at.to_string(),
        });
        canonical::to_text(&members).into_bytes()
    }

    /// The whole receipt without `id` and `integrity`.
    pub fn members(&self, ended: &Ended, now: UnixTime) -> Result<Vec<u8>, Refusal> {
        let decision = self.grant.decision().decision();
        let nothing = Digest::of_json(&Value::Null);
        let (outcome, summary, output) = match ended {
            Ended::Projected { output, .. } => {
                (Outcome::Success, "Granted claims were projected.", *output)
            }
            Ended::Refused(_) => (Outcome::Failure, "No claim was projected.", nothing),
        };
        let plan = self.grant.plan();
        let draft = Draft::new(
            OPERATION,
            self.own,
            plan.subject_alias.as_str(),
            outcome,
            summary,
            now,
        )
        .issued_by(self.own)
        .started_at(self.started_at)
        .about_decision(decision.request_ref.as_str(), decision.id.as_str())
        .under_policy(Some(decision.policy_snapshot.digest))
        .with_digests(self.grant.scope().decision_digest, output)
        .with_metadata("operation_id", self.routing.operation_id.as_str())
        .with_metadata("serves", self.serves.as_str());
        match ended {
            Ended::Projected {
                items, withheld, ..
            } => draft
                .with_metadata("items", &items.to_string())
                .with_metadata("withheld", &withheld.to_string()),
            Ended::Refused(code) => draft.with_metadata("code", code),
        }
        .members()
    }
}

/// The receipt of a projection that ended with its process: nothing left it, since items leave only
/// after their receipt. `None` if the intent is not one of this service's.
pub fn abandoned(intent: &[u8], operation_id: &str, now: UnixTime) -> Option<Vec<u8>> {
    let intent: Map<String, Value> = serde_json::from_slice(intent).ok()?;
    let text = |name: &str| intent.get(name).and_then(Value::as_str);
    let started_at = UnixTime::parse(text("started_at")?)?;
    let own = text("actor")?;
    let members = Draft::new(
        OPERATION,
        own,
        text("subject_ref")?,
        Outcome::Failure,
        "A projection ended before it was done.",
        now,
    )
    .issued_by(own)
    .started_at(started_at)
    .about_decision(text("request_ref")?, text("decision_ref")?)
    .with_metadata("operation_id", operation_id)
    .with_metadata("code", "ABANDONED")
    .members()
    .ok()?;
    let whole: Map<String, Value> = serde_json::from_slice(&members).ok()?;
    let is_kept = |name: &str| intent.get(name) == whole.get(name);
    FIXED.into_iter().all(is_kept).then_some(members)
}
