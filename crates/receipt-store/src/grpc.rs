//! The gRPC service: each rpc reads its request, makes one call, and writes its reply.

mod admin;
mod reply;
mod request;

use std::sync::Arc;

use cl_host::identity::{PeerId, SpiffeId};
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use cl_wire::receipt::v1::{
    AppendRequest, AppendResponse, BeginRequest, BeginResponse, CompleteRequest, CompleteResponse,
    GetReceiptRequest, GetReceiptResponse, ListOpenRequest, ListOpenResponse, ListReceiptsRequest,
    ListReceiptsResponse, PreflightRequest, PreflightResponse, VerifyLogRequest, VerifyLogResponse,
    verify_log_response,
};
use tonic::{Request, Response, Status};

use crate::committer::Commits;
use crate::core::command::Rules;
use crate::core::readers::View;
use crate::core::retention::Retention;
use crate::core::routing::Tenant;
use crate::error::Error;
use crate::page_token::PageTokens;
use crate::reader::Reader;
use crate::readers::ReadersFile;
use crate::search::Searches;

/// The services behind the port.
#[derive(Clone)]
pub struct Service {
    /// Takes what is to be written.
    pub commits: Commits,
    /// Reads what is durable.
    pub reader: Reader,
    /// Who may write what.
    pub rules: Arc<Rules>,
    /// Who may read what.
    pub readers: Arc<ReadersFile>,
    /// How long receipts are kept.
    pub retention: Arc<Retention>,
    /// Bounds how many searches run.
    pub searches: Searches,
    /// Makes and reads page tokens.
    pub tokens: PageTokens,
}

/// Who calls: put there by the acceptor after it verified the peer's certificate.
fn caller<T>(request: &Request<T>) -> Result<SpiffeId, Error> {
    let peer = request.extensions().get::<PeerId>();
    peer.map(|peer| peer.id.clone()).ok_or(Error::NoCaller)
}

impl Service {
    /// Reads off the runtime's threads.
    async fn read<T, F>(&self, read: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Reader) -> Result<T, Error> + Send + 'static,
    {
        let reader = self.reader.clone();
        tokio::task::spawn_blocking(move || read(&reader))
            .await
            .unwrap_or(Err(Error::Internal("a read panicked")))
    }

    /// The caller, if it is a reader; what it may see is known with the tenant.
    fn reader<T>(&self, request: &Request<T>) -> Result<SpiffeId, Error> {
        let reader = caller(request)?;
        let is_reader = self.readers.current().has(&reader);
        is_reader.then_some(reader).ok_or(Error::NotReader)
    }

    /// What a reader sees of a tenant: the one rule for all that is read.
    fn view(&self, reader: &SpiffeId, tenant: &Tenant) -> Result<View, Error> {
        let view = self.readers.current().view(reader, tenant);
        view.ok_or(Error::NotReader)
    }
}

#[tonic::async_trait]
impl ReceiptService for Service {
    async fn preflight(
        &self,
        request: Request<PreflightRequest>,
    ) -> Result<Response<PreflightResponse>, Status> {
        let writer = caller(&request)?;
        let tenant = request::preflight(request.get_ref(), &writer, &self.rules)?;
        self.commits.check(tenant).await?;
        Ok(Response::new(PreflightResponse { ok: true }))
    }

    async fn append(
        &self,
        request: Request<AppendRequest>,
    ) -> Result<Response<AppendResponse>, Status> {
        let writer = caller(&request)?;
        let command = request::append(request.into_inner(), writer, &self.rules)?;
        let (entry, proof) = reply::entry_of(self.commits.submit(command).await?)?;
        Ok(Response::new(AppendResponse {
            entry: Some(entry),
            proof,
        }))
    }

    async fn begin(
        &self,
        request: Request<BeginRequest>,
    ) -> Result<Response<BeginResponse>, Status> {
        let writer = caller(&request)?;
        let command = request::begin(request.into_inner(), writer, &self.rules)?;
        let reply = reply::begun(self.commits.submit(command).await?)?;
        Ok(Response::new(reply))
    }

    async fn complete(
        &self,
        request: Request<CompleteRequest>,
    ) -> Result<Response<CompleteResponse>, Status> {
        let writer = caller(&request)?;
        let command = request::complete(request.into_inner(), writer)?;
        let (entry, proof) = reply::entry_of(self.commits.submit(command).await?)?;
        Ok(Response::new(CompleteResponse {
            entry: Some(entry),
            proof,
        }))
    }

    async fn list_open(
        &self,
        request: Request<ListOpenRequest>,
    ) -> Result<Response<ListOpenResponse>, Status> {
        let writer = caller(&request)?;
        let request = request.into_inner();
        let page_size = request::page_size(request.page_size)?;
        let binding = request::open_binding(&writer);
        let place = self.tokens.open(&binding, &request.page_token)?;
        let after = place.as_deref().map(request::open_place).transpose()?;
        let writer = writer.as_str().to_owned();
        let page = self
            .read(move |reader| reader.open_intents(&writer, after.as_ref(), page_size))
            .await?;
        let token = reply::open_token(&self.tokens, &binding, page.next.as_ref())?;
        Ok(Response::new(reply::open_page(page, token)?))
    }

    async fn get_receipt(
        &self,
        request: Request<GetReceiptRequest>,
    ) -> Result<Response<GetReceiptResponse>, Status> {
        let reader = self.reader(&request)?;
        let asked = request::receipt(request.into_inner())?;
        let view = self.view(&reader, &asked.tenant)?;
        let (found, proof) = self
            .read(move |reader| {
                let (tenant, actor) = (asked.tenant, asked.actor.as_deref());
                let found = reader.receipt(&tenant, &asked.reference, actor, &view)?;
                let proof = reader.proof(&tenant, &found)?;
                Ok((found, proof))
            })
            .await?;
        let (sequence, entry) = found;
        let receipt = Some(reply::recorded(sequence, entry)?);
        Ok(Response::new(GetReceiptResponse { receipt, proof }))
    }

    async fn list_receipts(
        &self,
        request: Request<ListReceiptsRequest>,
    ) -> Result<Response<ListReceiptsResponse>, Status> {
        let reader = self.reader(&request)?;
        let request = request.into_inner();
        let page_size = request::page_size(request.page_size)?;
        let tenant = request::tenant("tenant", &request.tenant)?;
        let query = request::query(&request, self.view(&reader, &tenant)?)?;
        let binding = request::list_binding(&request, &reader);
        let place = self.tokens.open(&binding, &request.page_token)?;
        let start = place.as_deref().map(request::list_place).transpose()?;
        let turn = self.searches.admit().await?;
        let mut search = self
            .read(move |reader| reader.begin_search(query, start, page_size))
            .await?;
        // In pieces, so that the work ends soon after the caller has gone; each piece keeps the turn.
        while !search.is_complete() {
            let turn = Arc::clone(&turn);
            let piece = move |reader: &Reader| {
                let _turn = turn;
                reader.search(search)
            };
            search = self.read(piece).await?;
        }
        let page = search.into_page();
        let token = reply::list_token(&self.tokens, &binding, page.next)?;
        Ok(Response::new(reply::list_page(page, token)?))
    }

    async fn verify_log(
        &self,
        request: Request<VerifyLogRequest>,
    ) -> Result<Response<VerifyLogResponse>, Status> {
        let reader = self.reader(&request)?;
        let tenant = request::log(request.get_ref())?;
        if !self.view(&reader, &tenant)?.shows_log() {
            let nothing = VerifyLogResponse {
                result: Some(verify_log_response::Result::Checkpoint(String::new())),
                ..VerifyLogResponse::default()
            };
            return Ok(Response::new(nothing));
        }
        let begun = self.read(move |reader| reader.begin_check(tenant)).await?;
        let (mut progress, mut fault) = begun;
        // In pieces, so that the work ends soon after the caller has gone.
        while fault.is_none() && !progress.is_complete() {
            let reached = self.read(move |reader| reader.check(progress)).await?;
            (progress, fault) = reached;
        }
        Ok(Response::new(reply::checked(&progress, fault)))
    }
}
