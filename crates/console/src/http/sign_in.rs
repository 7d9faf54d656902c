//! Signing in and out.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;

use super::call::Call;
use super::passkey;
use super::{Console, QUEUE, SIGN_IN, json, page as html, redirect, set_cookie};
use crate::error::Error;
use crate::pages;
use crate::session::{Cookie, Kind, Person};

pub(super) async fn page(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    if console.signed(&call).is_ok() {
        return redirect(QUEUE);
    }
    let answer = console.for_visit(&call, pages::sign_in::page);
    console.answered(&call, answer)
}

pub(super) async fn begin(State(console): State<Arc<Console>>, request: Request) -> Response {
    let mut call = Call::of(request);
    let answer = async {
        console.visit_form(&mut call).await?;
        let ceremony = console.engine.begin_sign_in(call.deadline()).await?;
        Ok(json(&passkey::to_json(&console.checked(ceremony)?)))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

pub(super) async fn finish(State(console): State<Arc<Console>>, request: Request) -> Response {
    let mut call = Call::of(request);
    let answer = console.sign_in(&mut call).await;
    console.answered(&call, answer)
}

pub(super) async fn end(State(console): State<Arc<Console>>, request: Request) -> Response {
    let mut call = Call::of(request);
    let answer = async {
        let (signed, _) = console.signed_form(&mut call).await?;
        console.sessions.end(&signed.cookie);
        // The browser's session is over in any case; the engine's idles out if it is away.
        let ended = console.engine.end_session(signed.token(), call.deadline());
        if let Err(error) = ended.await {
            tracing::warn!(%error, "session not ended at the policy engine");
        }
        let mut response = redirect(SIGN_IN);
        set_cookie(&mut response, Cookie::clear(Kind::Session));
        Ok(response)
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

impl Console {
    async fn sign_in(&self, call: &mut Call) -> Result<Response, Error> {
        let form = self.visit_form(call).await?;
        let ceremony = passkey::ceremony_id(&form)?;
        let assertion = passkey::assertion(&form)?;
        let finish = self
            .engine
            .finish_sign_in(ceremony, assertion, call.deadline());
        let signed = finish.await?;
        let lasts = signed.expires_at.milliseconds() - self.now().milliseconds();
        let person = Person {
            token: signed.token,
            tenant: signed.tenant,
            principal: signed.principal,
            lasts: Duration::from_millis(u64::try_from(lasts).unwrap_or(0)),
            idles: signed.idles,
        };
        // Never a cookie that the browser had before: nobody can have planted this one.
        let cookie = Cookie::new(Kind::Session, &*self.ids).map_err(|_| Error::Internal)?;
        if let Some(old) = Cookie::of(Kind::Session, call.headers()) {
            self.sessions.end(&old);
        }
        self.sessions.begin(&cookie, person);
        let mut response = redirect(QUEUE);
        set_cookie(&mut response, cookie.set());
        set_cookie(&mut response, Cookie::clear(Kind::Visit));
        Ok(response)
    }

    /// A page with a form for somebody who is not signed in, tied to the browser.
    pub(super) fn for_visit(
        &self,
        call: &Call,
        page: impl FnOnce(&str) -> maud::Markup,
    ) -> Result<Response, Error> {
        let known = Cookie::of(Kind::Visit, call.headers());
        let is_new = known.is_none();
        let cookie = match known {
            Some(cookie) => cookie,
            None => Cookie::new(Kind::Visit, &*self.ids).map_err(|_| Error::Internal)?,
        };
        let mut response = html(&page(&self.form_key.value(&cookie)));
        if is_new {
            set_cookie(&mut response, cookie.set());
        }
        Ok(response)
    }
}
