//! The grant of an allowed request: what the issuer, the proxy and the vault will act on.

use cl_model::alias::subject_tag;
use cl_model::digest::Digest;
use cl_model::document::{self, Signed};
use cl_model::grant::{PlanVersion, ResolvePlan, ScopeStatement, ScopeVersion};
use cl_model::json::read::Nullable;
use cl_model::list::{List, UniqueList};
use cl_model::part::Retention;
use cl_model::refusal::{Code, Refusal};
use cl_model::scalar::{AnyJson, Bounded, Predicate, Reference, Text};
use cl_model::time::Timestamp;
use cl_model::urn::Alias;
use serde_json::json;

use super::evaluation::{Decided, Inputs};
use super::keys::Keys;
use super::operation::TenantName;
use super::request::ReadRequest;

/// What a subject is called outside the vault.
#[derive(Clone)]
pub struct SubjectNames {
    /// In this exchange.
    pub alias: Alias,
    /// In receipts, for ever.
    pub tag: String,
}

impl SubjectNames {
    /// The names of a request's subject.
    pub fn of(inputs: &Inputs<'_>, tenant: &TenantName, keys: &Keys) -> Self {
        Self::of_request(inputs.request, tenant, keys)
    }

    /// The names of the subject of `request`.
    pub fn of_request(request: &ReadRequest, tenant: &TenantName, keys: &Keys) -> Self {
        let request = &request.request;
        let subject = request.subject_ref.as_str();
        // A request id is unique for its requester only, and a requester for its tenant.
        let exchange = json!([
            tenant.as_str(),
            request.requester.principal.as_str(),
            request.recipient.principal.as_str(),
        ]);
        let exchange = exchange.to_string();
        Self {
            alias: keys.aliases.subject_alias(subject, &request.id, &exchange),
            tag: subject_tag(&keys.subject_tag, tenant.as_str(), subject),
        }
    }
}

/// The services that may act on a grant: issuer, proxy and vault of a trust domain.
#[derive(Clone, Debug)]
pub struct Audiences(UniqueList<Reference, 1, 8>);

impl Audiences {
    /// The services of `trust_domain`; `None` if their ids would be too long.
    pub fn of(trust_domain: &str) -> Option<Self> {
        let services = [
            "exchange/cl-bundle-issuer",
            "exchange/cl-semantic-proxy",
            "vault/cl-vault",
        ];
        let ids = services
            .iter()
            .map(|service| Reference::new(format!("spiffe://{trust_domain}/{service}")))
            .collect::<Option<Vec<_>>>()?;
        UniqueList::new(ids).map(Self)
    }
}

/// Both documents, signed.
#[derive(Clone)]
pub struct SignedGrant {
    /// What goes to the consumer.
    pub scope: Signed,
    /// What never leaves the exchange and vault zones.
    pub plan: Signed,
}

/// Grants what a decision allows; `None` unless it allows something.
pub fn grant(
    inputs: &Inputs<'_>,
    decided: &Decided,
    tenant: &TenantName,
    names: &SubjectNames,
    keys: &Keys,
    audiences: &Audiences,
) -> Result<Option<SignedGrant>, Refusal> {
    if !decided.state().allows() {
        return Ok(None);
    }
    let statement = scope_statement(inputs, decided, keys)?;
    let scope = document::sign(&statement, &keys.decision)?;
    let request = &inputs.request.request;
    let rules = statement
        .granted_predicates
        .iter()
        .map(|predicate| {
            let limits = decided.limits.get(predicate.as_str())?;
            inputs.snapshot.resolve_rule(predicate, limits)
        })
        .collect::<Option<Vec<_>>>()
        .and_then(List::new);
    let plan = ResolvePlan {
        plan_version: PlanVersion,
        scope_digest: Digest::of_bytes(&scope.document),
        tenant: Text::new(tenant.as_str()).ok_or(Code::InvalidDocument)?,
        subject_ref: request.subject_ref.clone(),
        subject_alias: names.alias.clone(),
        subject_tag: Text::new(names.tag.as_str()).ok_or(Code::InvalidDocument)?,
        requester: inputs.facts.principal.clone(),
        client_instance: inputs.facts.client_instance.clone(),
        decision: AnyJson(decided.record.value().clone()),
        rules: rules.ok_or(Code::InvalidPolicy)?,
        audiences: audiences.0.clone(),
        kid: keys.decision.kid().clone(),
    };
    let plan = document::sign(&plan, &keys.decision)?;
    Ok(Some(SignedGrant { scope, plan }))
}

fn scope_statement(
    inputs: &Inputs<'_>,
    decided: &Decided,
    keys: &Keys,
) -> Result<ScopeStatement, Refusal> {
    let (request, decision) = (&inputs.request.request, &decided.decision);
    let granted: Vec<Predicate> = decision
        .granted_selectors
        .iter()
        .map(|selector| selector.predicate.clone())
        .collect();
    let decision_ends = decision.expires_at.instant();
    let policy_ends = inputs.snapshot.expires_at().unwrap_or(decision_ends);
    let seconds = Bounded::new(decision.retention.max_seconds.get());
    Ok(ScopeStatement {
        scope_version: ScopeVersion,
        decision_id: decision.id.clone(),
        decision_digest: decided.record.digest(),
        request_digest: inputs.request.digest(),
        recipient: request.recipient.principal.clone(),
        recipient_key_id: Nullable(None),
        purpose_code: request.purpose_code.clone(),
        task: request.task.clone(),
        granted_predicates: UniqueList::new(granted).ok_or(Code::InvalidDocument)?,
        granted_actions: decision.granted_actions.clone(),
        retention: Retention {
            mode: decision.retention.mode,
            max_seconds: seconds.ok_or(Code::InvalidDecisionRetention)?,
        },
        onward_disclosure: decision.onward_disclosure,
        not_before: Timestamp::from(inputs.now),
        expires_at: Timestamp::from(decision_ends.min(policy_ends)),
        kid: keys.decision.kid().clone(),
    })
}
