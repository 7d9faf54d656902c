//! From a message to what it says. Nothing behind this module checks text again.

use cl_host::deadline::Deadline;
use cl_model::document::{InvalidBytes, read_canonical};
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::operation::{OperationId, TenantName};
use cl_wire::field_path::FieldPath;
use cl_wire::grant::SignedGrant;
use cl_wire::semantic::v1::ProjectClaimsRequest;

use crate::error::Error;
use crate::service::Call;

pub(super) fn call(
    message: ProjectClaimsRequest,
    deadline: Option<Deadline>,
) -> Result<Call, Error> {
    let tenant = TenantName::parse(&message.tenant);
    let operation_id = OperationId::parse(&message.operation_id);
    Ok(Call {
        tenant: tenant.ok_or_else(|| invalid("tenant", "NOT_A_TENANT"))?,
        operation_id: operation_id.ok_or_else(|| invalid("operation_id", "NOT_AN_OPERATION_ID"))?,
        grant: SignedGrant::read(message.grant)?,
        request: request(&message.request).map_err(Error::Request)?,
        request_bytes: message.request,
        deadline,
    })
}

fn request(bytes: &[u8]) -> Result<ContextRequest, InvalidBytes> {
    Ok(ContextRequest::read(&read_canonical(bytes)?)?)
}

fn invalid(field: &'static str, rule: &'static str) -> Error {
    Error::Field {
        field: FieldPath::new(field),
        rule,
    }
}
