//! Enrolling a passkey by a one-time link.
//!
//! The link's token stands behind `#`: browsers send it to nobody, so that it is in no log and no
//! `Referer`. The page's script takes it out of the address and sends it in forms.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use cl_wire::policy::v1::FinishEnrolmentRequest;
use serde_json::json;

use super::call::Call;
use super::passkey::{self, encoded};
use super::{Console, json as answer_json, page as html};
use crate::engine::Enrolment;
use crate::error::Error;
use crate::forms::Form;
use crate::pages;

const TOKEN_BYTES: usize = 32;
const MAX_ATTESTATION_BYTES: usize = 16 * 1024;

pub(super) async fn page(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    let answer = console
        .operation_id()
        .and_then(|id| console.for_visit(&call, |csrf| pages::enrol::page(csrf, &id)));
    console.answered(&call, answer)
}

pub(super) async fn begin(State(console): State<Arc<Console>>, request: Request) -> Response {
    let mut call = Call::of(request);
    let answer = async {
        let form = console.visit_form(&mut call).await?;
        let link = form.bytes("link_token", TOKEN_BYTES, TOKEN_BYTES)?;
        let mut enrolment = console
            .engine
            .begin_enrolment(&link, call.deadline())
            .await?;
        enrolment.ceremony = console.checked(enrolment.ceremony)?;
        Ok(answer_json(&to_json(&enrolment)))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

pub(super) async fn finish(State(console): State<Arc<Console>>, request: Request) -> Response {
    let mut call = Call::of(request);
    let answer = async {
        let form = console.visit_form(&mut call).await?;
        let message = message(&form)?;
        let fingerprint = console.engine.finish_enrolment(message, call.deadline());
        Ok(html(&pages::enrol::done(&fingerprint.await?)))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

fn message(form: &Form) -> Result<FinishEnrolmentRequest, Error> {
    let attestation = form.bytes("attestation_object", 1, MAX_ATTESTATION_BYTES)?;
    Ok(FinishEnrolmentRequest {
        ceremony_id: passkey::ceremony_id(form)?,
        link_token: form.bytes("link_token", TOKEN_BYTES, TOKEN_BYTES)?.to_vec(),
        client_data: passkey::client_data(form)?,
        attestation_object: attestation.to_vec(),
        operation_id: passkey::operation_id(form)?,
    })
}

/// What the script needs for `navigator.credentials.create`.
fn to_json(enrolment: &Enrolment) -> serde_json::Value {
    let excluded: Vec<_> = enrolment.excluded.iter().map(|id| encoded(id)).collect();
    let mut document = passkey::to_json(&enrolment.ceremony);
    document["user_id"] = json!(encoded(&enrolment.user_handle));
    document["principal"] = json!(pages::words::visible(&enrolment.principal));
    document["tenant"] = json!(pages::words::visible(&enrolment.tenant));
    document["algorithms"] = json!(enrolment.algorithms);
    document["excluded"] = json!(excluded);
    document
}
