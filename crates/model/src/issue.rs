//! Assembling and signing a scoped context bundle (spec 7.5, 8.2 step 7).

use serde_json::{Map, Value};

use crate::alias::AliasScheme;
use crate::canonical::{MemberTexts, sort_unique};
use crate::digest::Digest;
use crate::envelope::MAX_ENVELOPE_BYTES;
use crate::forbidden::has_vault_reference;
use crate::json::read::Group;
use crate::key::SigningKey;
use crate::list::{List, UniqueList};
use crate::object::{
    ContextItem, ContextRequest, MemoryWrite, Outcome, ProvenanceMap, RawVaultResolution,
    ReceiptContract, Restrictions, ScopedContextBundle, ScopedContextBundleType,
};
use crate::opaque::opaque_debug;
use crate::part::{
    AlwaysTrue, Integrity, Issuer, Retention, RetentionSeconds, Sha256Name, SpecVersion,
};
use crate::policy::{Preflight, VerifiedDecision};
use crate::projection::Projection;
use crate::receipt::{BUNDLE_CONSUME, Draft};
use crate::record::{Computed, Record};
use crate::refusal::{Code, Refusal};
use crate::scalar::Action;
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
    /// When the bundle ends at the latest, where something beside request and decision says so.
    pub latest_end: Option<UnixTime>,
    /// The time of issue.
    pub now: UnixTime,
}

/// A signed bundle whose issue receipt, if one is required, is not durable yet.
///
/// The envelope comes out only through [`PendingEnvelope::release`], or into a store that keeps the
/// same promise through [`PendingEnvelope::set_aside`].
pub struct PendingEnvelope {
    envelope: String,
    bundle: ScopedContextBundle,
    receipt: Option<Record>,
}

opaque_debug!(Issuance<'_>, PendingEnvelope);

impl PendingEnvelope {
    /// The receipt that must be durable first, if the decision requires one.
    pub const fn receipt(&self) -> Option<&Record> {
        self.receipt.as_ref()
    }

    /// The envelope's canonical text and the bundle in it, for a store that shows them to nobody
    /// until the issue receipt is durable.
    pub fn set_aside(self) -> (String, ScopedContextBundle) {
        (self.envelope, self.bundle)
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
    /// [`Code::BundleTooLarge`].
    pub fn issue(&self) -> Result<PendingEnvelope, Refusal> {
        let expires_at = self.authorized_until()?;
        self.check_preflight()?;
        let projection = Projection::of(self.claims, self.decision, self.aliases)?;
        let (bundle, text) = self.assemble(projection, expires_at)?;
        if has_vault_reference(&text) {
            return Err(Code::BundleContainsForbiddenMaterial.into());
        }
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
            receipt: self.receipt(&bundle)?,
            envelope,
            bundle,
        })
    }

    /// The earliest end of request, decision, retention and the given bound.
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
        let ends = self.latest_end.map_or(ends, |latest| ends.min(latest));
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

    /// The bundle and its canonical text.
    ///
    /// The text is put together from parts that are canonical already, the context above all; the
    /// id and digest of the typed bundle come from it.
    fn assemble(
        &self,
        projection: Projection,
        expires_at: UnixTime,
    ) -> Result<(ScopedContextBundle, String), Refusal> {
        let Projection {
            context,
            context_text,
            provenance,
        } = projection;
        let mut bundle = self.unsigned(context, provenance, expires_at)?;
        let mut unsigned = Map::new();
        // The context is in canonical text already, and by far the largest member.
        let context = bundle.context.take();
        bundle.put_into(&mut unsigned);
        bundle.context = context;
        unsigned.remove("id");
        unsigned.remove("context");
        let mut members = MemberTexts::of(&unsigned);
        members.put("context", context_text);
        let computed = Computed::of(&members, BundleId::PREFIX);
        computed.put_into(&mut members);
        bundle.id = BundleId::from_digest(computed.digest);
        bundle.integrity = Some(Integrity {
            algorithm: Sha256Name,
            digest: computed.digest,
        });
        Ok((bundle, members.to_text()))
    }

    /// The bundle before its id and digest are known.
    fn unsigned(
        &self,
        context: List<ContextItem, 1, 64>,
        provenance: ProvenanceMap,
        expires_at: UnixTime,
    ) -> Result<ScopedContextBundle, Refusal> {
        let (request, decision) = (self.request, self.decision.decision());
        let instructions = decision.bundle_instructions.as_deref().unwrap_or_default();
        let seconds = RetentionSeconds::new(decision.retention.max_seconds.get())
            .ok_or(Code::InvalidDecisionRetention)?;
        let capabilities = sort_unique(decision.granted_actions.iter().cloned());
        let consume = Action::new(BUNDLE_CONSUME).ok_or(Code::InvalidBundle)?;
        let operations = sort_unique(capabilities.iter().cloned().chain([consume]));
        Ok(ScopedContextBundle {
            spec_version: SpecVersion,
            kind: ScopedContextBundleType,
            id: BundleId::from_digest(Digest::ZERO),
            created_at: self.now.into(),
            issuer: self.issuer.clone(),
            subject_alias: self.aliases.subject_alias(
                request.subject_ref.as_str(),
                &request.id,
                request.recipient.principal.as_str(),
            ),
            request_ref: request.id.clone(),
            request_digest: decision.request_digest,
            decision_ref: decision.id.clone(),
            decision_digest: Some(self.decision.digest()),
            policy_snapshot: Some(decision.policy_snapshot.clone()),
            recipient: request.recipient.principal.clone(),
            purpose_code: request.purpose_code.clone(),
            purpose: request.purpose.clone(),
            task: Some(request.task.clone()),
            issued_at: self.now.into(),
            expires_at: expires_at.into(),
            single_use: AlwaysTrue,
            context,
            provenance,
            instructions: UniqueList::new(instructions.to_vec()).ok_or(Code::InvalidPolicy)?,
            capabilities: UniqueList::new(capabilities).ok_or(Code::InvalidBundle)?,
            restrictions: Restrictions {
                onward_disclosure: decision.onward_disclosure,
                memory_write: MemoryWrite,
                raw_vault_resolution: RawVaultResolution,
                retention_seconds: seconds,
            },
            retention: Some(Retention {
                mode: decision.retention.mode,
                max_seconds: seconds,
            }),
            receipt_contract: ReceiptContract {
                required: decision.receipt_requirement.required,
                required_operations: UniqueList::new(operations).ok_or(Code::InvalidBundle)?,
            },
            integrity: None,
        })
    }

    fn receipt(&self, bundle: &ScopedContextBundle) -> Result<Option<Record>, Refusal> {
        if !bundle.receipt_contract.required {
            return Ok(None);
        }
        let output = bundle
            .integrity
            .as_ref()
            .map_or(Digest::ZERO, |integrity| integrity.digest);
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
        .under_policy(Some(self.decision.decision().policy_snapshot.digest))
        .with_digests(self.decision.digest(), output)
        .finish()
        .map(Some)
    }
}
