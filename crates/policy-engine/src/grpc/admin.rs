//! Snapshots, recorded decisions, and what is set beside them, for operators.

use std::sync::Arc;

use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::policy_admin_service_server::PolicyAdminService;
use cl_wire::policy::v1::{
    ActivateSnapshotRequest, ActivateSnapshotResponse, GetSnapshotRequest, GetSnapshotResponse,
    ListSnapshotsRequest, ListSnapshotsResponse, PutSnapshotRequest, PutSnapshotResponse,
    ReplayDecisionRequest, ReplayDecisionResponse, SnapshotInfo,
};
use cl_wire::time;
use tonic::{Request, Response, Status};

use super::{Call, delegations, examined, parse, people, settings};
use crate::service::{PolicyEngine, SnapshotStatus};

/// Snapshots and replays, for operators.
pub(crate) struct AdminRpc {
    engine: Arc<PolicyEngine>,
}

impl AdminRpc {
    pub(crate) fn new(engine: Arc<PolicyEngine>) -> Self {
        Self { engine }
    }
}

#[tonic::async_trait]
impl PolicyAdminService for AdminRpc {
    async fn put_snapshot(
        &self,
        request: Request<PutSnapshotRequest>,
    ) -> Result<Response<PutSnapshotResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let new = parse::snapshot(request.into_inner())?;
            let signature = new.signature.as_ref();
            let put =
                self.engine
                    .put_snapshot(&new.tenant, &new.read, signature, &new.operation_id);
            Ok(PutSnapshotResponse {
                digest: put.await?.to_string(),
            })
        })
        .await
    }

    async fn get_snapshot(
        &self,
        request: Request<GetSnapshotRequest>,
    ) -> Result<Response<GetSnapshotResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let request = request.into_inner();
            let tenant = parse::tenant(&request.tenant)?;
            let digest = parse::optional_digest("digest", request.digest.as_deref())?;
            let (status, snapshot) = self.engine.snapshot(&tenant, digest).await?;
            Ok(GetSnapshotResponse {
                info: Some(status.into()),
                snapshot,
            })
        })
        .await
    }

    async fn list_snapshots(
        &self,
        request: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let (tenant, after, limit) = parse::page(&request.into_inner())?;
            let page = self.engine.snapshots(&tenant, after, limit).await?;
            Ok(ListSnapshotsResponse {
                snapshots: page.entries.into_iter().map(Into::into).collect(),
                next_page_token: page.next.map(parse::page_token).unwrap_or_default(),
                total_size: page.total,
            })
        })
        .await
    }

    async fn activate_snapshot(
        &self,
        request: Request<ActivateSnapshotRequest>,
    ) -> Result<Response<ActivateSnapshotResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let activation = parse::activation(&request.into_inner())?;
            let (tenant, digest, expected, operation_id) = activation;
            let activate = self
                .engine
                .activate(&tenant, digest, expected, &operation_id);
            Ok(ActivateSnapshotResponse {
                info: Some(activate.await?.into()),
            })
        })
        .await
    }

    async fn replay_decision(
        &self,
        request: Request<ReplayDecisionRequest>,
    ) -> Result<Response<ReplayDecisionResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let (tenant, decision, operation_id) = parse::replay(&request.into_inner())?;
            let replay = self
                .engine
                .replay(&tenant, decision.as_str(), &operation_id);
            let replayed = replay.await?;
            Ok(ReplayDecisionResponse {
                equal: replayed.repeated == replayed.recorded,
                decision: replayed.repeated,
                recorded_decision: replayed.recorded,
            })
        })
        .await
    }

    async fn list_recorded_decisions(
        &self,
        request: Request<wire::ListRecordedDecisionsRequest>,
    ) -> Result<Response<wire::ListRecordedDecisionsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.into_inner();
            let range = examined::range(message.range)?;
            let limit = parse::admin_page_size(message.page_size)?;
            let after = examined::place(&message.page_token)?;
            let list = self.engine.recorded_decisions(&range, after, limit);
            let (decisions, next) = list.await?;
            Ok(wire::ListRecordedDecisionsResponse {
                decisions: decisions.into_iter().map(Into::into).collect(),
                next_page_token: next.map(examined::page_token).unwrap_or_default(),
            })
        })
        .await
    }

    async fn explain_decision(
        &self,
        request: Request<wire::ExplainDecisionRequest>,
    ) -> Result<Response<wire::ExplainDecisionResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = parse::tenant(&message.tenant)?;
            let decision = people::decision_id(&message.decision_ref)?;
            let explained = self.engine.explain(&tenant, &decision).await?;
            Ok(wire::ExplainDecisionResponse {
                explanation: Some(explained.into()),
            })
        })
        .await
    }

    async fn simulate_snapshot(
        &self,
        request: Request<wire::SimulateSnapshotRequest>,
    ) -> Result<Response<wire::SimulateSnapshotResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.into_inner();
            let range = examined::range(message.range)?;
            let limit = parse::admin_page_size(message.page_size)?;
            let after = examined::place(&message.page_token)?;
            let simulate = self.engine.simulate(&range, message.snapshot, after, limit);
            Ok(simulate.await?.into())
        })
        .await
    }

    async fn set_shadow(
        &self,
        request: Request<wire::SetShadowRequest>,
    ) -> Result<Response<wire::SetShadowResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = parse::tenant(&message.tenant)?;
            let digest = parse::digest("digest", &message.digest)?;
            let operation_id = parse::operation_id(&message.operation_id)?;
            let shadow = self.engine.set_shadow(&tenant, digest, &operation_id);
            Ok(wire::SetShadowResponse {
                shadow: shadow.await?.map(Into::into),
            })
        })
        .await
    }

    async fn clear_shadow(
        &self,
        request: Request<wire::ClearShadowRequest>,
    ) -> Result<Response<wire::ClearShadowResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = parse::tenant(&message.tenant)?;
            let operation_id = parse::operation_id(&message.operation_id)?;
            self.engine.clear_shadow(&tenant, &operation_id).await?;
            Ok(wire::ClearShadowResponse {})
        })
        .await
    }

    async fn get_shadow(
        &self,
        request: Request<wire::GetShadowRequest>,
    ) -> Result<Response<wire::GetShadowResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let tenant = parse::tenant(&request.get_ref().tenant)?;
            let shadow = self.engine.shadow_status(&tenant).await?;
            Ok(wire::GetShadowResponse {
                shadow: shadow.map(Into::into),
            })
        })
        .await
    }

    async fn set_anomaly_state(
        &self,
        request: Request<wire::SetAnomalyStateRequest>,
    ) -> Result<Response<wire::SetAnomalyStateResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = parse::tenant(&message.tenant)?;
            let requester = settings::requester(&message.requester)?;
            let state = settings::state(&message.state)?;
            let operation_id = parse::operation_id(&message.operation_id)?;
            let set = self
                .engine
                .set_anomaly(&tenant, &requester, &state, &operation_id);
            Ok(wire::SetAnomalyStateResponse {
                anomaly_state: set.await?.map(Into::into),
            })
        })
        .await
    }

    async fn clear_anomaly_state(
        &self,
        request: Request<wire::ClearAnomalyStateRequest>,
    ) -> Result<Response<wire::ClearAnomalyStateResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = parse::tenant(&message.tenant)?;
            let requester = settings::requester(&message.requester)?;
            let operation_id = parse::operation_id(&message.operation_id)?;
            let clear = self
                .engine
                .clear_anomaly(&tenant, &requester, &operation_id);
            clear.await?;
            Ok(wire::ClearAnomalyStateResponse {})
        })
        .await
    }

    async fn list_anomaly_states(
        &self,
        request: Request<wire::ListAnomalyStatesRequest>,
    ) -> Result<Response<wire::ListAnomalyStatesResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = parse::tenant(&message.tenant)?;
            let limit = parse::admin_page_size(message.page_size)?;
            let after = settings::page_start(&message.page_token)?;
            let states = self.engine.anomalies(&tenant, after, limit).await?;
            let last = states.last().filter(|_| states.len() == limit);
            let next = last.map(|it| settings::page_token(&it.requester));
            Ok(wire::ListAnomalyStatesResponse {
                anomaly_states: states.into_iter().map(Into::into).collect(),
                next_page_token: next.unwrap_or_default(),
            })
        })
        .await
    }

    async fn set_delegation(
        &self,
        request: Request<wire::SetDelegationRequest>,
    ) -> Result<Response<wire::SetDelegationResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.into_inner();
            let tenant = parse::tenant(&message.tenant)?;
            let operation_id = parse::operation_id(&message.operation_id)?;
            let new = delegations::new(message, self.engine.now())?;
            let set = self.engine.delegate(&tenant, &new, &operation_id);
            Ok(wire::SetDelegationResponse {
                delegation: set.await?.map(Into::into),
            })
        })
        .await
    }

    async fn revoke_delegation(
        &self,
        request: Request<wire::RevokeDelegationRequest>,
    ) -> Result<Response<wire::RevokeDelegationResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = parse::tenant(&message.tenant)?;
            let subject = settings::reference("subject", &message.subject)?;
            let delegate = settings::reference("delegate", &message.delegate)?;
            let operation_id = parse::operation_id(&message.operation_id)?;
            let revoke = self
                .engine
                .revoke_delegation(&tenant, &subject, &delegate, &operation_id);
            revoke.await?;
            Ok(wire::RevokeDelegationResponse {})
        })
        .await
    }

    async fn list_delegations(
        &self,
        request: Request<wire::ListDelegationsRequest>,
    ) -> Result<Response<wire::ListDelegationsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let message = request.get_ref();
            let tenant = parse::tenant(&message.tenant)?;
            let limit = parse::admin_page_size(message.page_size)?;
            let after = delegations::page_start(&message.page_token)?;
            let found = self.engine.delegations(&tenant, after, limit).await?;
            let last = found.last().filter(|_| found.len() == limit);
            let next = last.map(delegations::page_token);
            Ok(wire::ListDelegationsResponse {
                delegations: found.into_iter().map(Into::into).collect(),
                next_page_token: next.unwrap_or_default(),
            })
        })
        .await
    }
}

impl From<SnapshotStatus> for SnapshotInfo {
    fn from(status: SnapshotStatus) -> Self {
        let about = status.about;
        Self {
            digest: about.digest.to_string(),
            version: about.name,
            active: status.is_active,
            stored_at: Some(time::to_message(about.stored_at)),
            activated_at: about.activated.map(|(at, _)| time::to_message(at)),
            expires_at: about.expires_at.map(time::to_message),
            signed_by: about.signature.map(|it| it.kid.as_str().to_owned()),
        }
    }
}
