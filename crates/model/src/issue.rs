//! Assembling and signing a scoped context bundle (spec 7.5, 8.2 step 7).

use std::fmt;

use serde_json::{Map, Value, json};

use crate::alias::AliasScheme;
use crate::canonical::sort_unique;
use crate::envelope::MAX_ENVELOPE_BYTES;
use crate::forbidden::contains_forbidden_material;
use crate::json::read::ToJson;
use crate::json::{MAX_DEPTH, is_within_depth};
use crate::key::SigningKey;
use crate::object::{ContextRequest, Outcome, ProtocolObject, ScopedContextBundle};
use crate::part::{Issuer, SPEC_VERSION};
use crate::policy::{Preflight, VerifiedDecision};
use crate::projection::Projection;
use crate::receipt::{BUNDLE_CONSUME, Draft};
use crate::record::{self, Record};
use crate::refusal::{Code, Refusal};
use crate::time::UnixTime;
use crate::urn::BundleId;

/// The issuer that the profile names when none is configured.
pub const DEFAULT_ISSUER: &str = "urn:cl:bundle-issuer:local";

/// What one bundle is issued from.
pub struct Issuance<'a> {
    /// The request.
    pub request: &'a ContextRequest,
    /// The decision that allows a bundle for it.
    pub decision: &'a VerifiedDecision,
    /// The candidate claims (see [`Projection::of`]).
    pub claims: &'a [Value],
    /// The issuer's identity.
    pub issuer: &'a Issuer,
    /// How subject and sources are named outside.
    pub aliases: &'a AliasScheme,
    /// The bundle key.
    pub key: &'a SigningKey,
    /// Whether the receipt store is ready.
    pub preflight: Preflight,
    /// The time of issue.
    pub now: UnixTime,
}

impl fmt::Debug for Issuance<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Issuance").finish_non_exhaustive()
    }
}

/// A signed bundle whose issue receipt, if one is required, is not durable yet.
///
/// The envelope comes out only through [`PendingEnvelope::release`].
pub struct PendingEnvelope {
    envelope: String,
    bundle: ScopedContextBundle,
    receipt: Option<Record>,
}

impl fmt::Debug for PendingEnvelope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PendingEnvelope")
            .finish_non_exhaustive()
    }
}

impl PendingEnvelope {
    /// The receipt that must be durable first, if the decision requires one.
    pub const fn receipt(&self) -> Option<&Record> {
        self.receipt.as_ref()
    }

    /// The envelope's canonical text and the bundle in it.
    ///
    /// # Errors
    ///
    /// [`Code::BundleReceiptPersistFailed`] if a receipt is required and `is_durable` is false.
    pub fn release(self, is_durable: bool) -> Result<(String, ScopedContextBundle), Refusal> {
        if self.receipt.is_some() && !is_durable {
            return Err(Code::BundleReceiptPersistFailed.into());
        }
        Ok((self.envelope, self.bundle))
    }
}

impl Issuance<'_> {
    /// Assembles, checks and signs the bundle.
    ///
    /// # Errors
    ///
    /// [`Code::DecisionDoesNotAuthorizeBundle`], [`Code::InvalidDecisionRetention`],
    /// [`Code::BundleAuthorizationExpired`], [`Code::ReceiptStoreUnavailable`],
    /// [`Code::ReceiptPreflightFailed`], those of [`Projection::of`], [`Code::InvalidPolicy`] if
    /// the policy gives the consumer no instruction (the closed schema needs one),
    /// [`Code::JsonTooDeep`], [`Code::BundleContainsForbiddenMaterial`], [`Code::InvalidBundle`],
    /// [`Code::BundleTooLarge`]: what no consumer could open is never issued.
    pub fn issue(&self) -> Result<PendingEnvelope, Refusal> {
        let expires_at = self.authorized_until()?;
        self.check_preflight()?;
        let projection = Projection::of(self.claims, self.decision, self.aliases)?;
        let has_instructions = self
            .decision
            .decision()
            .bundle_instructions
            .as_ref()
            .is_some_and(|instructions| !instructions.is_empty());
        if !has_instructions {
            return Err(Code::InvalidPolicy.into());
        }
        let record = record::finalize(
            Value::Object(self.unsigned(&projection, expires_at)),
            BundleId::PREFIX,
        )?;
        // The envelope adds one level.
        if !is_within_depth(record.value(), MAX_DEPTH - 1) {
            return Err(Code::JsonTooDeep.into());
        }
        if contains_forbidden_material(record.value()) {
            return Err(Code::BundleContainsForbiddenMaterial.into());
        }
        let bundle = ScopedContextBundle::read(record.value())?;
        let text = record.to_text();
        let signature = self.key.sign(text.as_bytes()).to_base64url();
        let kid = self.key.kid();
        // Key ids and base64url need no escapes, and the members are in canonical order.
        let envelope = format!(
            r#"{{"authentication":{{"algorithm":"Ed25519","kid":"{kid}","sig":"{signature}"}},"bundle":{text},"envelope_version":1}}"#
        );
        if envelope.len() > MAX_ENVELOPE_BYTES {
            return Err(Code::BundleTooLarge.into());
        }
        Ok(PendingEnvelope {
            receipt: self.receipt(&bundle, &record)?,
            envelope,
            bundle,
        })
    }

    /// The earliest end of request, decision and retention.
    fn authorized_until(&self) -> Result<UnixTime, Refusal> {
        let decision = self.decision.decision();
        if !decision.decision.allows() {
            return Err(Code::DecisionDoesNotAuthorizeBundle.into());
        }
        let seconds = u64::try_from(decision.retention.max_seconds.get())
            .ok()
            .filter(|seconds| *seconds > 0)
            .ok_or(Code::InvalidDecisionRetention)?;
        let ends = self
            .request
            .expires_at
            .instant()
            .min(decision.expires_at.instant())
            .min(self.now.plus_seconds(seconds));
        if ends <= self.now {
            return Err(Code::BundleAuthorizationExpired.into());
        }
        Ok(ends)
    }

    fn check_preflight(&self) -> Result<(), Refusal> {
        if !self.decision.decision().receipt_requirement.required {
            return Ok(());
        }
        match self.preflight {
            Preflight::Available => Ok(()),
            Preflight::Absent => Err(Code::ReceiptStoreUnavailable.into()),
            Preflight::Unavailable => Err(Code::ReceiptPreflightFailed.into()),
        }
    }

    fn unsigned(&self, projection: &Projection, expires_at: UnixTime) -> Map<String, Value> {
        let (request, decision) = (self.request, self.decision.decision());
        let recipient = request.recipient.principal.as_str();
        let alias =
            self.aliases
                .subject_alias(request.subject_ref.as_str(), &request.id, recipient);
        let capabilities = sort_unique(decision.granted_actions.iter().map(|it| it.as_str()));
        let operations = capabilities.iter().copied().chain([BUNDLE_CONSUME]);
        let mut bundle = Map::new();
        let mut put = |name: &str, value: Value| bundle.insert(name.to_owned(), value);
        put("spec_version", SPEC_VERSION.into());
        put("type", "scoped_context_bundle".into());
        put("created_at", self.now.to_string().into());
        put("issuer", self.issuer.to_json());
        put("subject_alias", alias.to_json());
        put("request_ref", request.id.to_json());
        put(
            "request_digest",
            decision
                .request_digest
                .map_or(Value::Null, |it| it.to_json()),
        );
        put("decision_ref", decision.id.to_json());
        put("decision_digest", self.decision.digest().to_json());
        put("policy_snapshot", decision.policy_snapshot.to_json());
        put("recipient", recipient.into());
        put("purpose_code", request.purpose_code.to_json());
        if let Some(purpose) = &request.purpose {
            put("purpose", purpose.to_json());
        }
        put("task", request.task.to_json());
        put("issued_at", self.now.to_string().into());
        put("expires_at", expires_at.to_string().into());
        put("single_use", true.into());
        put("context", projection.context.to_json());
        put("provenance", projection.provenance.to_json());
        put(
            "instructions",
            decision
                .bundle_instructions
                .as_ref()
                .map_or(Value::Null, ToJson::to_json),
        );
        put(
            "restrictions",
            json!({
                "onward_disclosure": decision.onward_disclosure.as_str(),
                "memory_write": "proposal_only",
                "raw_vault_resolution": "forbidden",
                "retention_seconds": decision.retention.max_seconds.get(),
            }),
        );
        put("retention", decision.retention.to_json());
        put(
            "receipt_contract",
            json!({
                "required": decision.receipt_requirement.required,
                "required_operations": sort_unique(operations),
            }),
        );
        put("capabilities", capabilities.into());
        bundle
    }

    fn receipt(
        &self,
        bundle: &ScopedContextBundle,
        record: &Record,
    ) -> Result<Option<Record>, Refusal> {
        if !bundle.receipt_contract.required {
            return Ok(None);
        }
        let decision = self.decision.decision();
        Draft::new(
            "bundle.issue",
            self.issuer.id.as_str(),
            bundle.subject_alias.as_str(),
            Outcome::Success,
            "Issued a scoped context bundle for one recipient.",
            self.now,
        )
        .about(
            bundle.request_ref.as_str(),
            bundle.decision_ref.as_str(),
            bundle.id.as_str(),
        )
        .under_policy(Some(decision.policy_snapshot.digest))
        .with_digests(self.decision.digest(), record.digest())
        .finish()
        .map(Some)
    }
}
