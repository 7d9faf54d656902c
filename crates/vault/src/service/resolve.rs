//! Resolving claims under a grant (spec 8.2 step 5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cl_model::digest::Digest;
use cl_model::grant::{ResolvePlan, VerifiedGrant};
use cl_model::leak::{Fingerprint, LeakKey, MAX_FINGERPRINTS, fingerprint_count};
use cl_model::object::{ClaimStatus, ContextRequest};
use cl_model::operation::{OperationId, TenantName};
use cl_model::refusal::{Code, Refusal};
use cl_model::scalar::{Handle, Predicate};
use cl_model::time::UnixTime;
use cl_model::trust::DECISION;
use cl_model::urn::EventId;
use cl_wire::grant::SignedGrant;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::Vault;
use crate::core::choose::{Choice, Chosen, choose};
use crate::core::claim::Claim;
use crate::core::evidence::{Evidence, Operation};
use crate::core::keys::Keys;
use crate::core::meeting::{self, Words};
use crate::error::Error;
use crate::store::{
    ClaimKey, Draft, Exchange, Known, OutboxEntry, Store, StoreError, StoredOperation, Subject,
    SubjectName,
};

/// The most sources that one claim names outside.
const MAX_HANDLES: usize = 32;

/// How long an exchange is remembered after its grant has ended.
const REMEMBERED_SECONDS: u64 = 7 * 24 * 60 * 60;

/// A grant to resolve under.
pub(crate) struct ResolveCall {
    pub(crate) tenant: TenantName,
    pub(crate) request: ContextRequest,
    pub(crate) grant: SignedGrant,
    pub(crate) operation_id: OperationId,
}

/// A claim on its way out.
#[derive(Clone)]
pub(crate) struct ResolvedClaim {
    pub(crate) claim: Claim,
    pub(crate) status: ClaimStatus,
    pub(crate) handles: Vec<Handle>,
}

/// What leaves under a grant.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) claims: Vec<ResolvedClaim>,
    pub(crate) withheld: u32,
    pub(crate) leak_key: Zeroizing<[u8; 32]>,
    pub(crate) fingerprints: Vec<Fingerprint>,
}

/// What was found for a grant, before it is answered.
#[derive(Default)]
struct Findings {
    claims: Vec<ResolvedClaim>,
    withheld: u32,
    denied: Vec<Value>,
    events: BTreeSet<EventId>,
}

struct Resolution {
    grant: VerifiedGrant,
    request: ContextRequest,
    name: SubjectName,
    content: Digest,
    /// What the operation ended with before, if this is a repeat.
    before: Option<Vec<u8>>,
    /// The operation of this answer's receipt.
    operation_id: OperationId,
    /// The operation that the caller named.
    called_as: OperationId,
    keys: Arc<Keys>,
    own: String,
    leak_key: Zeroizing<[u8; 32]>,
    now: UnixTime,
}

impl Vault {
    /// Verifies a grant and returns the claims that its plan allows.
    pub(crate) async fn resolve(&self, call: ResolveCall) -> Result<Answer, Error> {
        let now = self.now();
        let grant = self.verify(&call, now)?;
        let name = SubjectName {
            tenant: call.tenant.clone(),
            subject: grant.plan().subject_ref.clone(),
        };
        let called_as = call.operation_id.clone();
        let content = self
            .keys
            .content(&[&call.grant.scope.document[..], &call.grant.plan.document].concat());
        let begun = self.begun(&call.tenant, &called_as, content).await?;
        self.preflight(&call.tenant, Operation::Resolve).await?;
        let mut leak_key = Zeroizing::new([0; 32]);
        self.ids.fill(&mut *leak_key).map_err(StoreError::from)?;
        // A repeat whose answer differs, because something was captured or erased meanwhile, is a
        // disclosure of its own and has a receipt of its own.
        let operation_id = match begun {
            None => called_as.clone(),
            Some(_) => self.fresh_operation()?,
        };
        let resolution = Resolution {
            grant,
            request: call.request,
            name: name.clone(),
            content,
            before: begun.map(|begun| begun.result),
            operation_id: operation_id.clone(),
            called_as,
            keys: Arc::clone(&self.keys),
            own: self.own.to_string(),
            leak_key,
            now,
        };
        // The commit point, as for a capture. Nothing leaves before the receipt is durable.
        let answer = self
            .change(&name, move |store| resolution.run(store))
            .await?;
        self.outbox.settle(&name.tenant, &operation_id).await?;
        let count = u64::try_from(answer.claims.len()).unwrap_or(u64::MAX);
        self.claims.add(count, &[]);
        Ok(answer)
    }

    fn verify(&self, call: &ResolveCall, now: UnixTime) -> Result<VerifiedGrant, Error> {
        let keys = self.trust.keys(DECISION, now);
        let grant = VerifiedGrant::verify(
            &call.grant.scope,
            &call.grant.plan,
            &call.request,
            &keys,
            self.own.as_str(),
            now,
        )
        .map_err(Error::Grant)?;
        let plan = grant.plan();
        if plan.tenant.as_str() != call.tenant.as_str() {
            return Err(Error::TenantMismatch);
        }
        if plan.subject_tag.as_str() != self.keys.tag(&call.tenant, &plan.subject_ref) {
            return Err(Error::Grant(Refusal::from(Code::GrantMismatch)));
        }
        Ok(grant)
    }

    fn fresh_operation(&self) -> Result<OperationId, Error> {
        let uuid = self.ids.uuid().map_err(StoreError::from)?;
        OperationId::parse(&format!("urn:cl:operation:{uuid}")).ok_or(Error::Internal)
    }
}

impl Resolution {
    fn run(&self, store: &Store) -> Result<Answer, Error> {
        match store.find(&self.name)? {
            Known::Subject(subject) => match store.draft(&subject) {
                Ok(draft) => self.resolve(store, &subject, draft),
                Err(StoreError::Erased) => self.resolve_nothing(store),
                Err(error) => Err(error.into()),
            },
            Known::Nothing | Known::Erased => self.resolve_nothing(store),
        }
    }

    fn resolve(
        &self,
        store: &Store,
        subject: &Subject,
        mut draft: Draft<'_>,
    ) -> Result<Answer, Error> {
        let findings = self.findings(&mut draft)?;
        let output = self.output(&findings);
        let before = match &self.before {
            None => None,
            // Sealed under the subject's key, unless the subject was not known then.
            Some(sealed) => subject.open_result(&self.called_as, sealed).ok(),
        };
        if before.as_deref() != Some(output.as_bytes().as_slice()) {
            let operation = StoredOperation {
                content: self.content,
                result: subject.seal_result(store, &self.operation_id, output.as_bytes())?,
            };
            self.remember(store, &mut draft, &findings)?;
            draft.record(&operation, &self.entry(&findings, output)?)?;
            draft.commit()?;
        }
        self.answer(findings)
    }

    /// A subject that is not known has no claims, and the refusal to say so would say more.
    fn resolve_nothing(&self, store: &Store) -> Result<Answer, Error> {
        let findings = Findings::default();
        let output = self.output(&findings);
        if self.before.as_deref() != Some(output.as_bytes().as_slice()) {
            let operation = StoredOperation {
                content: self.content,
                result: output.as_bytes().to_vec(),
            };
            store.record(&operation, &self.entry(&findings, output)?)?;
        }
        self.answer(findings)
    }

    fn findings(&self, draft: &mut Draft<'_>) -> Result<Findings, StoreError> {
        let plan = self.grant.plan();
        let rules: Vec<_> = plan.rules.iter().collect();
        let mut claims = Vec::new();
        for rule in &rules {
            claims.extend(draft.claims_of(&rule.predicate)?);
        }
        let words = self.words(draft, &claims)?;
        let mut beside = Beside::default();
        let fits = |set: &[Claim]| beside.add(draft, set);
        let Choice { chosen, withheld } = choose(&rules, claims, &words, fits, self.now)?;
        let mut findings = Findings {
            withheld,
            denied: beside.without(&chosen),
            ..Findings::default()
        };
        let alias = &self.grant.plan().subject_alias;
        for Chosen { claim, status } in chosen {
            let mut handles = Vec::new();
            for support in claim.supports().iter().take(MAX_HANDLES) {
                let provenance = self
                    .keys
                    .provenance(&support.event, &self.request.id, alias);
                handles.push(provenance.ok_or(StoreError::Corrupt)?.handle());
                findings.events.insert(support.event.clone());
            }
            findings.claims.push(ResolvedClaim {
                claim,
                status,
                handles,
            });
        }
        Ok(findings)
    }

    /// The words about the meetings of claims, which may be among the sources of claims that are not
    /// granted.
    fn words(&self, draft: &mut Draft<'_>, claims: &[Claim]) -> Result<Words, StoreError> {
        let is_granted = |name: &Predicate| {
            let mut rules = self.grant.plan().rules.iter();
            rules.any(|rule| rule.predicate == *name)
        };
        let (granted, others): (Vec<_>, Vec<_>) = meeting::predicates().partition(is_granted);
        let mut more = Vec::new();
        for predicate in others.iter().filter(|_| !granted.is_empty()) {
            more.extend(draft.claims_of(predicate)?);
        }
        Ok(Words::of(claims.iter().chain(&more)))
    }

    /// What the receipt says came out: which claims, and where they stand. Claim ids are keyed, so
    /// that nobody can test a guess at a value.
    fn output(&self, findings: &Findings) -> Digest {
        let claims: Vec<_> = findings
            .claims
            .iter()
            .map(|resolved| {
                let handles = resolved.handles.iter().map(Handle::as_str);
                let handles: Vec<_> = handles.collect();
                json!([
                    resolved.claim.id.as_str(),
                    resolved.status.as_str(),
                    handles
                ])
            })
            .collect();
        Digest::of_json(&json!({"claims": claims, "withheld": findings.withheld}))
    }

    fn remember(
        &self,
        store: &Store,
        draft: &mut Draft<'_>,
        findings: &Findings,
    ) -> Result<(), StoreError> {
        let (plan, scope) = (self.grant.plan(), self.grant.scope());
        let known = store.exchange(&self.name.tenant, &plan.subject_alias)?;
        let mut events = findings.events.clone();
        events.extend(known.into_iter().flat_map(|(_, exchange)| exchange.events));
        let exchange = Exchange {
            recipient: scope.recipient.clone(),
            request: self.request.id.clone(),
            decision: scope.decision_id.clone(),
            actions: scope.granted_actions.iter().cloned().collect(),
            expires_at: scope.expires_at.instant(),
            subject_tag: plan.subject_tag.as_str().to_owned(),
            events: events.into_iter().collect(),
        };
        let drop_at = exchange.expires_at.plus_seconds(REMEMBERED_SECONDS);
        draft.put_exchange(&plan.subject_alias, &exchange, drop_at)
    }

    fn entry(&self, findings: &Findings, output: Digest) -> Result<OutboxEntry, Error> {
        let ResolvePlan {
            subject_alias,
            subject_tag,
            ..
        } = self.grant.plan();
        let decision = self.grant.decision().decision();
        let mut facts = vec![
            ("claims", findings.claims.len().to_string()),
            ("withheld", findings.withheld.to_string()),
        ];
        if self.called_as != self.operation_id {
            facts.push(("repeat_of", self.called_as.to_string()));
        }
        let evidence = Evidence {
            operation: Operation::Resolve,
            operation_id: &self.operation_id,
            own: &self.own,
            subject: subject_alias,
            about: Some((self.request.id.as_str(), decision.id.as_str())),
            policy: Some(decision.policy_snapshot.digest),
            input: self.grant.scope().request_digest,
            output,
            facts,
            started_at: self.now,
            now: self.now,
        };
        Ok(OutboxEntry {
            tenant: self.name.tenant.clone(),
            operation_id: self.operation_id.clone(),
            subject_tag: Some(subject_tag.as_str().to_owned()),
            members: evidence.members().map_err(|_| Error::Internal)?,
        })
    }

    fn answer(&self, findings: Findings) -> Result<Answer, Error> {
        let key = LeakKey::new(&*self.leak_key).map_err(|_| Error::Internal)?;
        let granted = findings.claims.iter().filter_map(|it| it.claim.value());
        Ok(Answer {
            fingerprints: key.fingerprints(&findings.denied, granted),
            claims: findings.claims,
            withheld: findings.withheld,
            leak_key: self.leak_key.clone(),
        })
    }
}

/// The claims that share a source with those that leave, which are among them.
#[derive(Default)]
struct Beside {
    events: BTreeSet<EventId>,
    values: BTreeMap<ClaimKey, Option<Value>>,
    fingerprints: usize,
}

impl Beside {
    /// Adds what shares a source with a set of claims, unless one leak guard could not hold all.
    fn add(&mut self, draft: &mut Draft<'_>, set: &[Claim]) -> Result<bool, StoreError> {
        let mut values = BTreeMap::new();
        let mut fingerprints = self.fingerprints;
        let supports = set.iter().flat_map(Claim::supports);
        let mut events: BTreeSet<_> = supports.map(|support| support.event.clone()).collect();
        events.retain(|event| !self.events.contains(event));
        for id in &events {
            let event = draft.event(id)?.ok_or(StoreError::Corrupt)?;
            for key in event.content.into_iter().flat_map(|content| content.claims) {
                if self.values.contains_key(&key) || values.contains_key(&key) {
                    continue;
                }
                let claim = draft.claim(&key)?.ok_or(StoreError::Corrupt)?;
                let value = claim.value().cloned();
                fingerprints += value.as_ref().map_or(0, fingerprint_count);
                if fingerprints > MAX_FINGERPRINTS {
                    return Ok(false);
                }
                values.insert(key, value);
            }
        }
        self.events.append(&mut events);
        self.values.append(&mut values);
        self.fingerprints = fingerprints;
        Ok(true)
    }

    /// The values of those that stay.
    fn without(mut self, chosen: &[Chosen]) -> Vec<Value> {
        for Chosen { claim, .. } in chosen {
            self.values.remove(&ClaimKey {
                predicate: claim.predicate.clone(),
                id: claim.id.clone(),
            });
        }
        self.values.into_values().flatten().collect()
    }
}
