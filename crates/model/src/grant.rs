//! The grant: what the policy engine signs, and every later step verifies for itself.
//!
//! Two documents. The [`ScopeStatement`] goes to the consumer beside the bundle: it bounds what an
//! issuer may put into one. The [`ResolvePlan`] never leaves the exchange and vault zones: it says
//! which claims may be resolved, for whom, and how they must be transformed.

use crate::digest::Digest;
use crate::document::{Document, Signed, TrustedKeys, Verified};
use crate::envelope::VerifiedBundle;
use crate::json::read::{Nullable, choice, constant, object};
use crate::list::{List, UniqueList};
use crate::object::{ClaimStatus, ContextRequest, PolicyDecision, ScopedContextBundle};
use crate::part::{Label, OnwardDisclosure, Retention, Task, Trust};
use crate::policy::VerifiedDecision;
use crate::purpose::PurposeCode;
use crate::receipt::BUNDLE_CONSUME;
use crate::refusal::{Code, Refusal};
use crate::scalar::{Action, AnyJson, Confidence, KeyId, Predicate, Reference, Text};
use crate::time::{Timestamp, UnixTime};
use crate::transform::Transform;
use crate::urn::{Alias, DecisionId};

constant! {
    /// The version of the scope statement.
    pub struct ScopeVersion = 1;
    /// The version of the resolve plan.
    pub struct PlanVersion = 1;
}

object! {
    /// What one decision allows one recipient, in the consumer's terms.
    pub struct ScopeStatement {
        /// The version of this document.
        scope_version: ScopeVersion,
        /// The decision.
        decision_id: DecisionId,
        /// The digest of the decision's contents.
        decision_digest: Digest,
        /// The digest of the request.
        request_digest: Digest,
        /// The one recipient.
        recipient: Reference,
        /// The recipient's encryption key; none are registered yet.
        recipient_key_id: Nullable<KeyId>,
        /// The purpose.
        purpose_code: PurposeCode,
        /// The task.
        task: Task,
        /// The predicates that may be disclosed, up to 64.
        granted_predicates: UniqueList<Predicate, 0, 64>,
        /// The actions that may be allowed, up to 64.
        granted_actions: UniqueList<Action, 0, 64>,
        /// The longest retention.
        retention: Retention,
        /// Whether the recipient may pass context on.
        onward_disclosure: OnwardDisclosure,
        /// From when the grant holds.
        not_before: Timestamp,
        /// When it ends.
        expires_at: Timestamp,
        /// The decision key.
        kid: KeyId,
    }
}

impl Document for ScopeStatement {
    const NAME: &'static str = "scope-statement";

    fn kid(&self) -> &KeyId {
        &self.kid
    }
}

choice! {
    /// Ways to make a value less revealing that the decision's own grammar does not have.
    pub enum ProjectionStep {
        /// Replace a person or organisation by a name of this exchange.
        Alias = "alias",
        /// Keep the month of a date, the range of a number.
        Generalise = "generalise",
    }
}

object! {
    /// Which claims of one predicate may be resolved, and how they leave.
    pub struct ResolveRule {
        /// The predicate.
        predicate: Predicate,
        /// The highest sensitivity that may leave.
        max_label: Label,
        /// The lowest trust in the source.
        min_trust: Trust,
        /// The lowest confidence.
        min_confidence: Confidence,
        /// The statuses that may leave.
        statuses: UniqueList<ClaimStatus, 1, 5>,
        /// The decision's transforms for it.
        transforms: UniqueList<Transform, 0, 64>,
        /// Further projections.
        projections: UniqueList<ProjectionStep, 0, 2>,
    }
}

object! {
    /// How a grant is carried out inside. Never leaves the exchange and vault zones.
    pub struct ResolvePlan {
        /// The version of this document.
        plan_version: PlanVersion,
        /// The digest of the scope statement's bytes.
        scope_digest: Digest,
        /// The tenant.
        tenant: Text<1, 63>,
        /// The subject, as the vault knows it.
        subject_ref: Reference,
        /// The subject, as this exchange names it.
        subject_alias: Alias,
        /// The subject's stable tag for receipts: a keyed hash.
        subject_tag: Text<1, 128>,
        /// The authenticated requester.
        requester: Reference,
        /// The authenticated client instance.
        client_instance: Reference,
        /// The decision record.
        decision: AnyJson,
        /// One rule per granted predicate, up to 64.
        rules: List<ResolveRule, 0, 64>,
        /// The SPIFFE ids of the services that may act on this plan, 1 to 8.
        audiences: UniqueList<Reference, 1, 8>,
        /// The decision key.
        kid: KeyId,
    }
}

impl Document for ResolvePlan {
    const NAME: &'static str = "resolve-plan";

    fn kid(&self) -> &KeyId {
        &self.kid
    }
}

/// A grant that holds for one service at one time: both documents signed, current, and bound to
/// each other, to one request and to one decision.
///
/// Only [`VerifiedGrant::verify`] makes one. The caller's own identity is checked by the transport;
/// `audience` is this service's.
#[derive(Clone, Debug)]
pub struct VerifiedGrant {
    scope: Verified<ScopeStatement>,
    plan: Verified<ResolvePlan>,
    decision: VerifiedDecision,
}

impl VerifiedGrant {
    /// Verifies a grant for the service `audience`.
    ///
    /// # Errors
    ///
    /// Those of [`Verified::open`] for either document, [`Code::GrantMismatch`] if plan, statement,
    /// decision and request do not belong together, [`Code::GrantAudienceMismatch`],
    /// [`Code::GrantNotYetValid`], [`Code::GrantExpired`].
    pub fn verify(
        scope: &Signed,
        plan: &Signed,
        request: &ContextRequest,
        keys: &TrustedKeys,
        audience: &str,
        now: UnixTime,
    ) -> Result<Self, Refusal> {
        let scope = Verified::<ScopeStatement>::open(scope, keys)?;
        let plan = Verified::<ResolvePlan>::open(plan, keys)?;
        let decision = VerifiedDecision::verify(&plan.get().decision.0, request)
            .map_err(|_| Code::GrantMismatch)?;
        let grant = Self {
            scope,
            plan,
            decision,
        };
        if !grant.belongs_together(request) {
            return Err(Code::GrantMismatch.into());
        }
        if !grant
            .plan()
            .audiences
            .iter()
            .any(|it| it.as_str() == audience)
        {
            return Err(Code::GrantAudienceMismatch.into());
        }
        check_current(grant.scope(), now)?;
        Ok(grant)
    }

    /// The scope statement.
    pub const fn scope(&self) -> &ScopeStatement {
        self.scope.get()
    }

    /// The resolve plan.
    pub const fn plan(&self) -> &ResolvePlan {
        self.plan.get()
    }

    /// The decision.
    pub const fn decision(&self) -> &VerifiedDecision {
        &self.decision
    }

    /// Checks that a bundle stays inside the scope statement.
    ///
    /// # Errors
    ///
    /// [`Code::BundleOutsideGrant`].
    pub fn check_bundle(&self, bundle: &VerifiedBundle) -> Result<(), Refusal> {
        self.scope.check_bundle(bundle)
    }

    fn belongs_together(&self, request: &ContextRequest) -> bool {
        let (scope, plan) = (self.scope(), self.plan());
        let decision = self.decision.decision();
        let predicates: Vec<_> = decision
            .granted_selectors
            .iter()
            .map(|it| &it.predicate)
            .collect();
        plan.scope_digest == self.scope.digest()
            && plan.subject_ref == request.subject_ref
            && plan.requester == request.requester.principal
            && plan.client_instance == request.requester.client_instance
            && scope.recipient == request.recipient.principal
            && scope.purpose_code == request.purpose_code
            && scope.task == request.task
            && scope.decision_digest == self.decision.digest()
            && is_within_decision(scope, decision)
            && scope
                .granted_predicates
                .iter()
                .all(|it| predicates.contains(&it))
            && plan
                .rules
                .iter()
                .map(|rule| &rule.predicate)
                .eq(scope.granted_predicates.iter())
    }
}

fn is_within_decision(scope: &ScopeStatement, decision: &PolicyDecision) -> bool {
    decision.decision.allows()
        && scope.decision_id == decision.id
        && Some(scope.request_digest) == decision.request_digest
        && scope
            .granted_actions
            .iter()
            .all(|it| decision.granted_actions.contains(it))
        && scope.retention.mode == decision.retention.mode
        && scope.retention.max_seconds.get() <= decision.retention.max_seconds.get()
        && is_onward_within(scope.onward_disclosure, decision.onward_disclosure)
        && scope.expires_at.instant() <= decision.expires_at.instant()
}

fn is_onward_within(inner: OnwardDisclosure, outer: OnwardDisclosure) -> bool {
    inner == OnwardDisclosure::Forbidden || outer == OnwardDisclosure::Allowed
}

fn check_current(scope: &ScopeStatement, now: UnixTime) -> Result<(), Refusal> {
    if now < scope.not_before.instant() {
        return Err(Code::GrantNotYetValid.into());
    }
    if scope.expires_at.instant() <= now {
        return Err(Code::GrantExpired.into());
    }
    Ok(())
}

impl Verified<ScopeStatement> {
    /// Checks that a bundle stays inside this statement, so that an issuer that signs more than
    /// was granted is found out by the consumer.
    ///
    /// # Errors
    ///
    /// [`Code::BundleOutsideGrant`].
    pub fn check_bundle(&self, bundle: &VerifiedBundle) -> Result<(), Refusal> {
        if is_inside(self.get(), bundle.bundle()) {
            return Ok(());
        }
        Err(Code::BundleOutsideGrant.into())
    }
}

fn is_inside(scope: &ScopeStatement, bundle: &ScopedContextBundle) -> bool {
    let is_granted = |action: &Action| scope.granted_actions.contains(action);
    bundle.request_digest == Some(scope.request_digest)
        && bundle.decision_ref == scope.decision_id
        && bundle.decision_digest == Some(scope.decision_digest)
        && bundle.recipient == scope.recipient
        && bundle.purpose_code == scope.purpose_code
        && bundle.task.as_ref() == Some(&scope.task)
        && bundle
            .context
            .iter()
            .all(|item| scope.granted_predicates.contains(&item.predicate))
        && bundle.capabilities.iter().all(is_granted)
        && bundle
            .receipt_contract
            .required_operations
            .iter()
            .all(|operation| operation.as_str() == BUNDLE_CONSUME || is_granted(operation))
        && bundle.retention.as_ref().is_some_and(|retention| {
            retention.mode == scope.retention.mode
                && retention.max_seconds <= scope.retention.max_seconds
        })
        && bundle.restrictions.retention_seconds <= scope.retention.max_seconds
        && is_onward_within(
            bundle.restrictions.onward_disclosure,
            scope.onward_disclosure,
        )
        && bundle.issued_at.instant() >= scope.not_before.instant()
        && bundle.expires_at.instant() <= scope.expires_at.instant()
        && u64::try_from(scope.retention.max_seconds.get()).is_ok_and(|seconds| {
            bundle.expires_at.instant() <= bundle.issued_at.instant().plus_seconds(seconds)
        })
}
