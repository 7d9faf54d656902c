//! What recipients do: redeem, check, report, read their reports, propose.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use cl_model::urn::{BundleId, ReceiptId};

use super::{
    BUNDLES, Door, RECEIPTS, RECEIPTS_OF_BUNDLE, STATUS_OF_BUNDLE, body, check_submission, id_in,
    key, negotiation, only,
};
use crate::auth::{Caller, Scope};
use crate::error::{Binding, Error};
use crate::grpc;

/// The resource of a bundle. Reading it hands the bundle out, for good: HEAD, which would spend it
/// and deliver nothing, is refused.
pub(super) fn redeeming() -> MethodRouter<Arc<Door>> {
    const ALLOWED: &str = "GET";

    let refuse = async |State(door): State<Arc<Door>>| {
        door.answers.refusal(&Binding::Method(ALLOWED).into())
    };
    only(get(redeem).head(refuse), ALLOWED)
}

async fn redeem(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, _body) = request.into_parts();
    let answer = async {
        let caller = Caller::of(&parts.extensions, Scope::Redeem)?;
        negotiation::check_version(&parts.headers)?;
        let form = negotiation::bundle_form(&parts.headers)?;
        let key = key(&parts.headers)?;
        let bundle = bundle_in(parts.uri.path(), "")?;
        let deadline = grpc::deadline(&parts.extensions);
        let redeemed = door.gateway.redeem(&caller, &bundle, key, deadline);
        Ok((redeemed.await?, form))
    };
    match answer.await {
        Ok((redeemed, form)) => door.answers.redeemed(redeemed, form),
        Err(error) => door.answers.refusal(&error),
    }
}

pub(super) async fn check(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, _body) = request.into_parts();
    let answer = async {
        let caller = Caller::of(&parts.extensions, Scope::Redeem)?;
        negotiation::check_version(&parts.headers)?;
        negotiation::check_accept(&parts.headers)?;
        let bundle = bundle_in(parts.uri.path(), STATUS_OF_BUNDLE)?;
        let deadline = grpc::deadline(&parts.extensions);
        let standing = door.gateway.check(&caller, &bundle, deadline);
        Ok((standing.await?, bundle))
    };
    match answer.await {
        Ok((standing, bundle)) => door.answers.bundle_standing(&bundle, standing),
        Err(error) => door.answers.refusal(&error),
    }
}

pub(super) async fn record(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answer = async {
        let caller = Caller::of(&parts.extensions, Scope::WriteReceipts)?;
        let key = check_submission(&parts.headers)?;
        let bundle = bundle_in(parts.uri.path(), RECEIPTS_OF_BUNDLE)?;
        let document = body::document(&parts.headers, body).await?;
        let deadline = grpc::deadline(&parts.extensions);
        let gateway = &door.gateway;
        let recorded = gateway.record(&caller, &bundle, &document, key, deadline);
        Ok((recorded.await?, document))
    };
    match answer.await {
        Ok((recorded, document)) => door.answers.recorded(recorded, document),
        Err(error) => door.answers.refusal(&error),
    }
}

pub(super) async fn receipt(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, _body) = request.into_parts();
    let answer = async {
        let caller = Caller::of(&parts.extensions, Scope::ReadReceipts)?;
        negotiation::check_version(&parts.headers)?;
        negotiation::check_accept(&parts.headers)?;
        let id = id_in(parts.uri.path(), RECEIPTS, "", ReceiptId::parse);
        let id = id.ok_or(Error::ReceiptNotFound)?;
        let deadline = grpc::deadline(&parts.extensions);
        door.gateway.receipt(&caller, &id, deadline).await
    };
    match answer.await {
        Ok(recorded) => door.answers.receipt(recorded),
        Err(error) => door.answers.refusal(&error),
    }
}

pub(super) async fn propose(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answer = async {
        let caller = Caller::of(&parts.extensions, Scope::ProposeMemory)?;
        let key = check_submission(&parts.headers)?;
        let document = body::document(&parts.headers, body).await?;
        let deadline = grpc::deadline(&parts.extensions);
        door.gateway.propose(&caller, document, key, deadline).await
    };
    match answer.await {
        Ok(proposed) => door.answers.proposed(proposed),
        Err(error) => door.answers.refusal(&error),
    }
}

/// What is no id of a bundle names none of the caller's.
fn bundle_in(path: &str, below: &str) -> Result<BundleId, Error> {
    id_in(path, BUNDLES, below, BundleId::parse).ok_or(Error::BundleNotFound)
}
