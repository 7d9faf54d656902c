//! The proxy's one call, in order: what is verified, announced, resolved, projected, receipted.

use std::sync::Arc;

use cl_host::clock::Clock;
use cl_host::deadline::Deadline;
use cl_host::identity::SpiffeId;
use cl_host::ids::Ids;
use cl_host::trust::Trust;
use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::grant::VerifiedGrant;
use cl_model::object::ContextRequest;
use cl_model::operation::{OperationId, TenantName};
use cl_model::time::UnixTime;
use cl_model::trust::DECISION;
use cl_model::vocabulary::Vocabulary;
use cl_wire::grant::SignedGrant;
use cl_wire::vault::v1::ResolveClaimsRequest;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
use serde_json::json;

use crate::Deps;
use crate::core::evidence::{Ended, Evidence, Routing};
use crate::core::names::Names;
use crate::core::projection::{Projected, Projector};
use crate::error::Error;
use crate::receipts::Receipts;
use crate::vault::{self, Vault, VaultRefusal};

/// How long an announced projection may take by the receipt store's clock. Longer than any call.
const INTENT_SECONDS: u64 = 120;

/// The semantic proxy.
pub(crate) struct SemanticProxy {
    vault: Arc<dyn Vault>,
    receipts: Arc<dyn Receipts>,
    trust: Arc<Trust>,
    vocabulary: Vocabulary,
    names: Names,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    own: SpiffeId,
    projections: Counter<u64>,
}

/// A call to project.
pub(crate) struct Call {
    pub(crate) tenant: TenantName,
    pub(crate) request: ContextRequest,
    pub(crate) request_bytes: Vec<u8>,
    pub(crate) grant: SignedGrant,
    pub(crate) operation_id: OperationId,
    pub(crate) deadline: Option<Deadline>,
}

impl SemanticProxy {
    pub(crate) fn new(deps: Deps) -> Self {
        Self {
            vault: deps.vault,
            receipts: deps.receipts,
            trust: deps.trust,
            vocabulary: deps.vocabulary,
            names: deps.names,
            clock: deps.clock,
            ids: deps.ids,
            own: deps.own,
            projections: deps
                .meter
                .u64_counter("semantic_projections")
                .with_description("Projections, by how they ended.")
                .build(),
        }
    }

    /// Projects what a grant allows.
    pub(crate) async fn project(&self, call: Call) -> Result<Projected, Error> {
        let started_at = self.now();
        let grant = self.verify(&call, started_at)?;
        let routing = Routing {
            tenant: call.tenant.clone(),
            operation_id: self.operation_id()?,
            subject_tag: grant.plan().subject_tag.as_str().to_owned(),
        };
        let evidence = Evidence {
            routing: &routing,
            serves: &call.operation_id,
            own: self.own.as_str(),
            grant: &grant,
            started_at,
        };
        let until = started_at.plus_seconds(INTENT_SECONDS);
        let begun = self.receipts.begin(&routing, evidence.intent(), until);
        begun.await.map_err(|refused| {
            tracing::warn!(code = ?refused.code, reason = refused.reason, "projection not announced");
            Error::ReceiptStoreUnavailable
        })?;
        let outcome = self.resolve(&call, &grant).await;
        let ended = match &outcome {
            Ok(projected) => Ended::Projected {
                items: projected.items.len(),
                withheld: projected.withheld,
                output: digest(projected),
            },
            Err(error) => Ended::Refused(error.code()),
        };
        let members = evidence
            .members(&ended, self.now())
            .map_err(|_| Error::Internal)?;
        let written = self.receipts.complete((&routing).into(), members).await;
        let result = match &ended {
            Ended::Projected { .. } => "projected",
            Ended::Refused(code) => code,
        };
        self.projections.add(1, &[KeyValue::new("result", result)]);
        // Nothing leaves before its receipt is durable.
        written.map_err(|refused| {
            tracing::warn!(code = ?refused.code, reason = refused.reason, "receipt not confirmed");
            Error::ReceiptStoreUnavailable
        })?;
        outcome
    }

    fn verify(&self, call: &Call, now: UnixTime) -> Result<VerifiedGrant, Error> {
        let grant = VerifiedGrant::verify(
            &call.grant.scope,
            &call.grant.plan,
            &call.request,
            &self.trust.keys(DECISION, now),
            self.own.as_str(),
            now,
        )
        .map_err(Error::Grant)?;
        if grant.plan().tenant.as_str() != call.tenant.as_str() {
            return Err(Error::TenantMismatch);
        }
        Ok(grant)
    }

    async fn resolve(&self, call: &Call, grant: &VerifiedGrant) -> Result<Projected, Error> {
        let request = ResolveClaimsRequest {
            tenant: call.tenant.as_str().to_owned(),
            request: call.request_bytes.clone(),
            grant: Some(call.grant.to_message()),
            operation_id: call.operation_id.as_str().to_owned(),
        };
        let answer = self.vault.resolve(request, call.deadline).await;
        let answer = answer.map_err(|status| Error::Vault(VaultRefusal::of(&status)))?;
        let resolved = vault::read(answer, grant)?;
        let projector = Projector::new(grant, &self.vocabulary, &self.names, self.now());
        Ok(projector.project(resolved)?)
    }

    fn operation_id(&self) -> Result<OperationId, Error> {
        let uuid = self.ids.uuid().map_err(|_| Error::Internal)?;
        OperationId::parse(&format!("urn:cl:operation:{uuid}")).ok_or(Error::Internal)
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_milliseconds(self.clock.now_unix_ms())
    }
}

/// What the receipt says of the items: that these left, and not what they say.
fn digest(projected: &Projected) -> Digest {
    let items = projected.items.iter();
    let items = items.map(|item| {
        let item = json!([item.predicate.as_str(), item.claim, item.value]);
        canonical::to_text(&item)
    });
    Digest::of_json(&items.collect::<Vec<_>>().into())
}
