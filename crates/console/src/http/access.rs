//! Access that is active, and its end.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use cl_host::deadline::Deadline;

use super::call::{Call, Signed};
use super::{Console, page as html, passkey};
use crate::engine::Decision;
use crate::error::Error;
use crate::pages;

pub(super) async fn list(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    let answer = async {
        let signed = console.signed(&call)?;
        let place = console.place(&signed, &call.query()?)?;
        let active = console
            .engine
            .decisions(signed.token(), true, &place, call.deadline());
        let active = active.await?;
        let next = console.next_place(&signed, active.next.as_deref());
        let chrome = console.chrome(Some(&signed));
        Ok(html(&pages::access::page(&chrome, &active.entries, next)))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

pub(super) async fn ask(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    let answer = async {
        let signed = console.signed(&call)?;
        let decision = console
            .active(&signed, call.name()?, call.deadline())
            .await?;
        let chrome = console.chrome(Some(&signed));
        let operation = console.operation_id()?;
        Ok(html(&pages::access::ask(&chrome, &decision, &operation)))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

pub(super) async fn revoke(State(console): State<Arc<Console>>, request: Request) -> Response {
    let mut call = Call::of(request);
    let answer = async {
        let (signed, form) = console.signed_form(&mut call).await?;
        let operation = passkey::operation_id(&form)?;
        let token = signed.token();
        let revoke = console
            .engine
            .revoke(token, call.name()?, operation, call.deadline());
        revoke.await?;
        Ok(html(&pages::access::done(&console.chrome(Some(&signed)))))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

impl Console {
    /// The active grant with this name.
    async fn active(
        &self,
        signed: &Signed,
        name: &str,
        deadline: Deadline,
    ) -> Result<Decision, Error> {
        let decision = self.engine.decision(signed.token(), name, deadline).await?;
        if decision.is_active {
            return Ok(decision);
        }
        Err(Error::of_reason("GRANT_NOT_ACTIVE").unwrap_or(Error::NotFound))
    }
}
