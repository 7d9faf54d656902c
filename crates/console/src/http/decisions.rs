//! Decisions about a person's subjects.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;

use super::call::Call;
use super::{Console, page as html};
use crate::pages;

pub(super) async fn list(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    let answer = async {
        let signed = console.signed(&call)?;
        let place = console.place(&signed, &call.query()?)?;
        let past = console
            .engine
            .decisions(signed.token(), false, &place, call.deadline());
        let past = past.await?;
        let next = console.next_place(&signed, past.next.as_deref());
        let chrome = console.chrome(Some(&signed));
        Ok(html(&pages::decisions::page(&chrome, &past.entries, next)))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}
