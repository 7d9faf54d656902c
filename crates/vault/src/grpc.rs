//! The vault's four services.

mod parse;
mod reply;

use std::sync::Arc;

use cl_host::telemetry::CorrelationId;
use cl_wire::vault::v1::capture_service_server::CaptureService;
use cl_wire::vault::v1::memory_service_server::MemoryService;
use cl_wire::vault::v1::owner_service_server::OwnerService;
use cl_wire::vault::v1::vault_service_server::VaultService;
use cl_wire::vault::v1::{
    CaptureEventsRequest, CaptureEventsResponse, EraseEventRequest, EraseEventResponse,
    EraseSubjectRequest, EraseSubjectResponse, ExplainClaimRequest, ExplainClaimResponse,
    ListClaimsRequest, ListClaimsResponse, ListEventsRequest, ListEventsResponse,
    ResolveClaimsRequest, ResolveClaimsResponse, StorePayloadRequest, StorePayloadResponse,
    SubmitProposalRequest, SubmitProposalResponse,
};
use tonic::{Request, Response, Status, Streaming};

use crate::error::Error;
use crate::service::Vault;

/// Granted claims, for the semantic proxy.
pub(crate) struct VaultRpc {
    vault: Arc<Vault>,
}

impl VaultRpc {
    pub(crate) fn new(vault: Arc<Vault>) -> Self {
        Self { vault }
    }
}

#[tonic::async_trait]
impl VaultService for VaultRpc {
    async fn resolve_claims(
        &self,
        request: Request<ResolveClaimsRequest>,
    ) -> Result<Response<ResolveClaimsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let resolve = parse::resolve(request.into_inner())?;
            Ok(self.vault.resolve(resolve).await?.into())
        })
        .await
    }
}

/// Items, for capture.
pub(crate) struct CaptureRpc {
    vault: Arc<Vault>,
}

impl CaptureRpc {
    pub(crate) fn new(vault: Arc<Vault>) -> Self {
        Self { vault }
    }
}

#[tonic::async_trait]
impl CaptureService for CaptureRpc {
    async fn capture_events(
        &self,
        request: Request<CaptureEventsRequest>,
    ) -> Result<Response<CaptureEventsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let batch = parse::batch(request.into_inner())?;
            let outcomes = self.vault.capture(batch).await?;
            Ok(CaptureEventsResponse {
                outcomes: outcomes.into_iter().map(Into::into).collect(),
            })
        })
        .await
    }

    async fn store_payload(
        &self,
        request: Request<Streaming<StorePayloadRequest>>,
    ) -> Result<Response<StorePayloadResponse>, Status> {
        let call = Call::of(&request);
        let mut stream = request.into_inner();
        // A stream that breaks off is its sender's failure, as tonic reports it.
        let first = stream.message().await?;
        let begun = call.check(async {
            let (name, announced) = parse::announcement(first)?;
            self.vault.begin_payload(name, announced).await
        });
        let mut incoming = begun.await?;
        while let Some(message) = stream.message().await? {
            let taken = call.check(async {
                let piece = parse::piece(message)?;
                self.vault.take_piece(&mut incoming, &piece).await
            });
            taken.await?;
        }
        call.answer(async {
            Ok(StorePayloadResponse {
                digest: self.vault.end_payload(incoming).await?.to_string(),
            })
        })
        .await
    }
}

/// Lists and erasures, for the owner of a tenant.
pub(crate) struct OwnerRpc {
    vault: Arc<Vault>,
}

impl OwnerRpc {
    pub(crate) fn new(vault: Arc<Vault>) -> Self {
        Self { vault }
    }
}

#[tonic::async_trait]
impl OwnerService for OwnerRpc {
    async fn list_events(
        &self,
        request: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let owner = parse::owner(&request)?;
            let page = parse::events_page(request.into_inner(), &owner)?;
            Ok(self.vault.events(page).await?.into())
        })
        .await
    }

    async fn list_claims(
        &self,
        request: Request<ListClaimsRequest>,
    ) -> Result<Response<ListClaimsResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let owner = parse::owner(&request)?;
            let (page, predicate) = parse::claims_page(request.into_inner(), &owner)?;
            Ok(self.vault.claims(page, predicate).await?.into())
        })
        .await
    }

    async fn explain_claim(
        &self,
        request: Request<ExplainClaimRequest>,
    ) -> Result<Response<ExplainClaimResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let owner = parse::owner(&request)?;
            let (name, claim) = parse::explanation(request.into_inner(), &owner)?;
            Ok(self.vault.explain(name, claim).await?.into())
        })
        .await
    }

    async fn erase_subject(
        &self,
        request: Request<EraseSubjectRequest>,
    ) -> Result<Response<EraseSubjectResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let owner = parse::owner(&request)?;
            let (name, operation_id) = parse::subject_erasure(request.into_inner(), &owner)?;
            let erased = self.vault.erase_subject(name, operation_id).await?;
            Ok(EraseSubjectResponse {
                events: erased.events,
                claims: erased.claims,
            })
        })
        .await
    }

    async fn erase_event(
        &self,
        request: Request<EraseEventRequest>,
    ) -> Result<Response<EraseEventResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let owner = parse::owner(&request)?;
            let (name, event, operation_id) = parse::event_erasure(request.into_inner(), &owner)?;
            let erase = self.vault.erase_event(name, event, operation_id);
            Ok(EraseEventResponse {
                retracted_claims: erase.await?,
            })
        })
        .await
    }
}

/// Proposals, for the gateway.
pub(crate) struct MemoryRpc {
    vault: Arc<Vault>,
}

impl MemoryRpc {
    pub(crate) fn new(vault: Arc<Vault>) -> Self {
        Self { vault }
    }
}

#[tonic::async_trait]
impl MemoryService for MemoryRpc {
    async fn submit_proposal(
        &self,
        request: Request<SubmitProposalRequest>,
    ) -> Result<Response<SubmitProposalResponse>, Status> {
        let call = Call::of(&request);
        call.answer(async {
            let submission = parse::submission(request.into_inner())?;
            Ok(self.vault.propose(submission).await?.into())
        })
        .await
    }
}

/// One call: where its fault is logged, once.
#[derive(Clone, Copy)]
struct Call {
    correlation_id: Option<CorrelationId>,
}

impl Call {
    fn of<T>(request: &Request<T>) -> Self {
        Self {
            correlation_id: request.extensions().get::<CorrelationId>().copied(),
        }
    }

    async fn answer<T>(
        self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<Response<T>, Status> {
        self.check(work).await.map(Response::new)
    }

    async fn check<T>(self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Status> {
        let correlation_id = self.correlation_id;
        work.await.map_err(|error| {
            if error.is_fault() {
                let correlation_id = correlation_id.map(tracing::field::display);
                tracing::error!(%error, correlation_id, "call failed");
            }
            error.to_status(correlation_id)
        })
    }
}
