//! The service for operators: holds and erasures.

use cl_host::identity::SpiffeId;
use cl_model::scalar::is_name;
use cl_model::urn::{BundleId, ReceiptId};
use cl_wire::field_path::FieldPath;
use cl_wire::receipt::v1::receipt_admin_service_server::ReceiptAdminService;
use cl_wire::receipt::v1::{
    EraseReceiptsRequest, EraseReceiptsResponse, HoldTarget as WireTarget, ListHoldsRequest,
    ListHoldsResponse, PlaceHoldRequest, PlaceHoldResponse, ReleaseHoldRequest,
    ReleaseHoldResponse, hold_target,
};
use tonic::{Request, Response, Status};

use super::{Service, caller, reply, request};
use crate::core::command::{Call, Command, ErasureOrder};
use crate::core::holds::{HoldTarget, hold_id, is_hold_id};
use crate::core::routing::{OperationId, Routing};
use crate::error::Error;

const MAX_REASON_BYTES: usize = 64;

#[tonic::async_trait]
impl ReceiptAdminService for Service {
    async fn place_hold(
        &self,
        request: Request<PlaceHoldRequest>,
    ) -> Result<Response<PlaceHoldResponse>, Status> {
        let operator = caller(&request)?;
        let request = request.into_inner();
        let content = request::content("hold", None, &request);
        let routing = routing(&request.tenant, &request.operation_id)?;
        let hold_id = hold_id(&routing.operation_id);
        let command = Command::Hold {
            target: target(request.target)?,
            reason: reason(request.reason)?,
            call: Call {
                writer: operator,
                routing,
                content,
            },
        };
        let (entry, _) = reply::entry_of(self.commits.submit(command).await?)?;
        Ok(Response::new(PlaceHoldResponse {
            hold_id,
            entry: Some(entry),
        }))
    }

    async fn release_hold(
        &self,
        request: Request<ReleaseHoldRequest>,
    ) -> Result<Response<ReleaseHoldResponse>, Status> {
        let operator = caller(&request)?;
        let request = request.into_inner();
        let content = request::content("release", None, &request);
        let command = Command::Release {
            call: Call {
                writer: operator,
                routing: routing(&request.tenant, &request.operation_id)?,
                content,
            },
            hold_id: checked_hold_id(request.hold_id)?,
            reason: reason(request.reason)?,
        };
        let (entry, _) = reply::entry_of(self.commits.submit(command).await?)?;
        Ok(Response::new(ReleaseHoldResponse { entry: Some(entry) }))
    }

    async fn list_holds(
        &self,
        request: Request<ListHoldsRequest>,
    ) -> Result<Response<ListHoldsResponse>, Status> {
        caller(&request)?;
        let tenant = request::tenant("tenant", &request.get_ref().tenant)?;
        let holds = self.read(move |reader| reader.holds(&tenant)).await?;
        let holds = holds.into_iter().map(reply::hold);
        Ok(Response::new(ListHoldsResponse {
            holds: holds.collect::<Result<_, _>>()?,
        }))
    }

    async fn erase_receipts(
        &self,
        request: Request<EraseReceiptsRequest>,
    ) -> Result<Response<EraseReceiptsResponse>, Status> {
        let operator = caller(&request)?;
        let mut order = self.erasure(request.into_inner(), operator)?;
        let mut told = EraseReceiptsResponse::default();
        loop {
            let command = Command::EraseSubject(order.clone());
            let done = reply::erased(self.commits.submit(command).await?)?;
            told.erased += done.erased;
            told.held += done.held;
            match done.next {
                Some(next) => order.after = next,
                None => return Ok(Response::new(told)),
            }
        }
    }
}

impl Service {
    fn erasure(
        &self,
        request: EraseReceiptsRequest,
        operator: SpiffeId,
    ) -> Result<ErasureOrder, Error> {
        let tag = request::subject_tag("subject_tag", Some(&request.subject_tag))?;
        Ok(ErasureOrder {
            operator,
            tenant: request::tenant("tenant", &request.tenant)?,
            subject_tag: tag.ok_or(Error::field("subject_tag", "required"))?,
            reason: reason(request.reason)?,
            after: 0,
            retention: self.retention.clone(),
        })
    }
}

fn routing(tenant: &str, operation_id: &str) -> Result<Routing, Error> {
    let operation_id = OperationId::parse(operation_id).filter(OperationId::is_uuid);
    let required = Error::field("operation_id", "urn:cl:operation: and a UUIDv7");
    Ok(Routing {
        tenant: request::tenant("tenant", tenant)?,
        operation_id: operation_id.ok_or(required)?,
        subject_tag: None,
    })
}

fn target(target: Option<WireTarget>) -> Result<HoldTarget, Error> {
    let field = |name| FieldPath::new("target").field(name);
    match target.and_then(|target| target.target) {
        Some(hold_target::Target::WholeTenant(true)) => Ok(HoldTarget::Tenant),
        Some(hold_target::Target::WholeTenant(false)) => {
            Err(Error::field(field("whole_tenant"), "always true"))
        }
        Some(hold_target::Target::SubjectTag(tag)) => {
            let tag = request::subject_tag(field("subject_tag"), Some(&tag))?;
            let required = Error::field(field("subject_tag"), "required");
            tag.map(HoldTarget::Subject).ok_or(required)
        }
        Some(hold_target::Target::BundleRef(bundle)) => {
            let is_urn = BundleId::parse(&bundle).is_some();
            let invalid = Error::field(field("bundle_ref"), "a bundle's URN");
            is_urn.then_some(HoldTarget::Bundle(bundle)).ok_or(invalid)
        }
        Some(hold_target::Target::ReceiptRef(receipt)) => {
            let is_urn = ReceiptId::parse(&receipt).is_some();
            let invalid = Error::field(field("receipt_ref"), "a receipt's URN");
            is_urn
                .then_some(HoldTarget::Receipt(receipt))
                .ok_or(invalid)
        }
        None => Err(Error::field("target", "required")),
    }
}

fn reason(text: String) -> Result<String, Error> {
    let is_reason = is_name(&text) && text.len() <= MAX_REASON_BYTES;
    let invalid = Error::field("reason", "a lowercase dotted name of at most 64 characters");
    is_reason.then_some(text).ok_or(invalid)
}

fn checked_hold_id(text: String) -> Result<String, Error> {
    let is_id = is_hold_id(&text);
    let invalid = Error::field("hold_id", "urn:cl:hold: and a UUIDv7");
    is_id.then_some(text).ok_or(invalid)
}
