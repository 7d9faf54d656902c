//! One call of a browser, and who sent it.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use cl_host::deadline::Deadline;
use http::request::Parts;
use http::{HeaderMap, Method};
use tonic::transport::server::TcpConnectInfo;

use super::Console;
use crate::error::Error;
use crate::forms::Form;
use crate::pages::Chrome;
use crate::session::{Cookie, Kind, Person};

/// For a call that the process's frame gave no deadline.
const DEADLINE: Duration = Duration::from_secs(30);

/// The longest name behind a URN's prefix.
const MAX_NAME_BYTES: usize = 128;

pub(super) struct Call {
    parts: Parts,
    /// A body alone is not shared between threads.
    body: Mutex<Body>,
}

/// Somebody who is signed in, and the cookie that says so.
pub(super) struct Signed {
    pub(super) cookie: Cookie,
    pub(super) person: Person,
}

impl Call {
    pub(super) fn of(request: Request) -> Self {
        let (parts, body) = request.into_parts();
        let body = Mutex::new(body);
        Self { parts, body }
    }

    pub(super) const fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    pub(super) fn deadline(&self) -> Deadline {
        let given = self.parts.extensions.get::<Deadline>().copied();
        given.unwrap_or_else(|| Deadline::after(DEADLINE))
    }

    pub(super) fn peer(&self) -> Option<SocketAddr> {
        let info = self.parts.extensions.get::<TcpConnectInfo>()?;
        info.remote_addr()
    }

    pub(super) fn only_looks(&self) -> bool {
        self.parts.method == Method::GET || self.parts.method == Method::HEAD
    }

    /// Whether the script of a page asks, which shows a refusal by itself.
    pub(super) fn wants_json(&self) -> bool {
        self.parts.method == Method::POST && self.parts.uri.path().ends_with("/begin")
    }

    /// Where a refused form leads back to.
    pub(super) fn back(&self) -> Option<&str> {
        let path = self.parts.uri.path();
        let is_item = path.starts_with("/approvals/");
        let above = path.strip_suffix("/answer");
        let above = above.or_else(|| path.strip_suffix("/confirm"));
        above.filter(|_| is_item)
    }

    /// The name in the second segment of the path, as it is behind a URN's prefix.
    pub(super) fn name(&self) -> Result<&str, Error> {
        let name = self.parts.uri.path().split('/').nth(2).unwrap_or_default();
        let is_name = !name.is_empty()
            && name.len() <= MAX_NAME_BYTES
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte));
        is_name.then_some(name).ok_or(Error::NotFound)
    }

    pub(super) fn query(&self) -> Result<Form, Error> {
        Form::parse(self.parts.uri.query().unwrap_or_default().as_bytes())
    }
}

impl Console {
    /// Who sent a call.
    pub(super) fn signed(&self, call: &Call) -> Result<Signed, Error> {
        let cookie = Cookie::of(Kind::Session, call.headers()).ok_or(Error::SignedOut)?;
        let person = self.sessions.person(&cookie).ok_or(Error::SignedOut)?;
        Ok(Signed { cookie, person })
    }

    /// The form of somebody who is signed in, and was given it.
    pub(super) async fn signed_form(&self, call: &mut Call) -> Result<(Signed, Form), Error> {
        let signed = self.signed(call)?;
        let form = self.form(call, &signed.cookie).await?;
        Ok((signed, form))
    }

    /// The form of somebody who is not.
    pub(super) async fn visit_form(&self, call: &mut Call) -> Result<Form, Error> {
        let cookie = Cookie::of(Kind::Visit, call.headers()).ok_or(Error::FormNotOurs)?;
        self.bounds.try_once(call.peer())?;
        self.form(call, &cookie).await
    }

    async fn form(&self, call: &mut Call, cookie: &Cookie) -> Result<Form, Error> {
        let body = call.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        let body = std::mem::take(body);
        let form = Form::read(call.headers(), body, self.bounds.max_body_time()).await?;
        let value = form.optional("csrf")?.unwrap_or_default();
        if !self.form_key.admits(cookie, value) {
            return Err(Error::FormNotOurs);
        }
        Ok(form)
    }

    /// What is around a page.
    pub(super) fn chrome(&self, signed: Option<&Signed>) -> Chrome {
        match signed {
            None => Chrome::bare(),
            Some(signed) => Chrome::of(
                &signed.person.principal,
                self.form_key.value(&signed.cookie),
            ),
        }
    }

    /// The number under which a session remembers where a list goes on.
    pub(super) fn next_place(&self, signed: &Signed, next: Option<&str>) -> Option<u64> {
        self.sessions.remember(&signed.cookie, next?)
    }

    /// The place that an address names; the start if there is none.
    pub(super) fn place(&self, signed: &Signed, query: &Form) -> Result<String, Error> {
        let number = query.optional("page")?.and_then(|text| text.parse().ok());
        let place = number.and_then(|number| self.sessions.place(&signed.cookie, number));
        Ok(place.unwrap_or_default())
    }
}
