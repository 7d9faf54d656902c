//! The queue, one item of it, and its answer (spec 9.3).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use cl_host::deadline::Deadline;
use http::StatusCode;

use super::call::{Call, Signed};
use super::{Console, page as html, passkey};
use crate::engine::{Action, Answer, Item, Selector, State as ItemState, Treatment};
use crate::error::Error;
use crate::forms::Form;
use crate::pages;
use crate::pages::item::Notice;

/// How many items are looked through for the one that took another's place.
const MAX_LOOKED_AT: usize = 20;

pub(super) async fn queue(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    let answer = async {
        let signed = console.signed(&call)?;
        let place = console.place(&signed, &call.query()?)?;
        let queue = console
            .engine
            .queue(signed.token(), &place, call.deadline());
        let queue = queue.await?;
        let next = console.next_place(&signed, queue.next.as_deref());
        let chrome = console.chrome(Some(&signed));
        Ok(html(&pages::queue::page(
            &chrome,
            &queue.entries,
            next,
            console.now(),
        )))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

pub(super) async fn item(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    let answer = async {
        let signed = console.signed(&call)?;
        let item = console
            .engine
            .item(signed.token(), call.name()?, call.deadline());
        let item = item.await?;
        let before = console.sessions.show(&signed.cookie, &item);
        let chrome = console.chrome(Some(&signed));
        let changed = before
            .as_ref()
            .filter(|before| before.digest != item.digest);
        Ok(html(&pages::item::page(
            &chrome,
            &item,
            changed,
            Notice::None,
        )))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

pub(super) async fn answer(State(console): State<Arc<Console>>, request: Request) -> Response {
    let mut call = Call::of(request);
    let answer = console.review(&mut call).await;
    console.answered(&call, answer)
}

pub(super) async fn confirm(State(console): State<Arc<Console>>, request: Request) -> Response {
    let mut call = Call::of(request);
    let answer = console.finish(&mut call).await;
    console.answered(&call, answer)
}

impl Console {
    /// Shows what exactly is about to be signed.
    async fn review(&self, call: &mut Call) -> Result<Response, Error> {
        let (signed, form) = self.signed_form(call).await?;
        let (name, deadline) = (call.name()?, call.deadline());
        let digest = form.one("item_digest")?;
        let shown = self.sessions.shown(&signed.cookie, name);
        let Some(shown) = shown.filter(|shown| shown.digest == digest) else {
            let changed = Error::of_reason("APPROVAL_CHANGED").unwrap_or(Error::Internal);
            return self.stale(&signed, name, &changed, deadline).await;
        };
        let answer = match read_answer(&form, &shown)? {
            Some(answer) => answer,
            None => {
                let chrome = self.chrome(Some(&signed));
                let page = pages::item::page(&chrome, &shown, None, Notice::NothingTicked);
                let mut response = html(&page);
                *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
                return Ok(response);
            }
        };
        let token = signed.token();
        let opened = self.engine.begin_answer(token, &shown, &answer, deadline);
        let mut open = match opened.await {
            Ok(open) => open,
            Err(error) if is_about_item(&error) => {
                return self.stale(&signed, name, &error, deadline).await;
            }
            Err(error) => return Err(error),
        };
        open.ceremony = self.checked(open.ceremony)?;
        let chrome = self.chrome(Some(&signed));
        let operation = self.operation_id()?;
        let page = pages::review::page(&chrome, &shown, &answer, &open, &operation);
        Ok(html(&page))
    }

    /// Relays what the passkey signed, and shows what came of it.
    async fn finish(&self, call: &mut Call) -> Result<Response, Error> {
        let (signed, form) = self.signed_form(call).await?;
        let (name, deadline) = (call.name()?, call.deadline());
        let ceremony = passkey::ceremony_id(&form)?;
        let assertion = passkey::assertion(&form)?;
        let operation = passkey::operation_id(&form)?;
        let finish =
            self.engine
                .finish_answer(signed.token(), ceremony, assertion, operation, deadline);
        match finish.await {
            Ok(outcome) => {
                let shown = self.sessions.shown(&signed.cookie, name);
                let chrome = self.chrome(Some(&signed));
                Ok(html(&pages::result::page(
                    &chrome,
                    shown.as_ref(),
                    &outcome,
                )))
            }
            Err(error) if is_about_item(&error) => {
                self.stale(&signed, name, &error, deadline).await
            }
            Err(error) => Err(error),
        }
    }

    /// The page of an answer that was refused because of its item: the item as it is now, or the one
    /// that took its place, with what is different from what was shown.
    async fn stale(
        &self,
        signed: &Signed,
        name: &str,
        error: &Error,
        deadline: Deadline,
    ) -> Result<Response, Error> {
        let told = error.told();
        self.metrics.refused(told.code);
        let before = self.sessions.shown(&signed.cookie, name);
        let now = self.engine.item(signed.token(), name, deadline).await;
        let now = now.map_err(|_| error.clone())?;
        let successor = match now.state {
            ItemState::Replaced => self.successor(signed, &now, deadline).await?,
            ItemState::Pending
            | ItemState::Answered
            | ItemState::Expired
            | ItemState::NotNeeded => None,
        };
        let now = successor.unwrap_or(now);
        self.sessions.show(&signed.cookie, &now);
        let chrome = self.chrome(Some(signed));
        let changed = before.as_ref().filter(|before| before.digest != now.digest);
        let page = pages::item::page(&chrome, &now, changed, Notice::Refused(told));
        let mut response = html(&page);
        *response.status_mut() = told.status;
        Ok(response)
    }

    /// The item whose request took the place of another one's: of the same requester, under the
    /// same name.
    async fn successor(
        &self,
        signed: &Signed,
        old: &Item,
        deadline: Deadline,
    ) -> Result<Option<Item>, Error> {
        let queue = self.engine.queue(signed.token(), "", deadline).await?;
        let same = queue.entries.into_iter().filter(|it| {
            it.requester == old.summary.requester && it.subject == old.summary.subject
        });
        for summary in same.take(MAX_LOOKED_AT) {
            let item = self
                .engine
                .item(signed.token(), &summary.approval, deadline);
            let item = item.await?;
            if item.request == old.request {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

/// Whether a refusal is best shown on the page of the item.
fn is_about_item(error: &Error) -> bool {
    [
        "APPROVAL_CHANGED",
        "APPROVAL_POLICY_CHANGED",
        "APPROVAL_EXPIRED",
        "APPROVAL_ANSWERED",
        "APPROVAL_SCOPE_INCOMPLETE",
        "APPROVAL_NOT_NEEDED",
        "TOO_MANY_REFUSED_ANSWERS",
        "APPROVAL_REQUESTER_GONE",
        "APPROVER_NOT_ALLOWED",
    ]
    .iter()
    .any(|reason| error.is(reason))
}

/// What a form grants of the item that was shown; the rest is declined. None if a part was to be
/// granted and nothing is ticked.
fn read_answer(form: &Form, item: &Item) -> Result<Option<Answer>, Error> {
    let selectors: Vec<&str> = item
        .gated_selectors()
        .map(|it| it.predicate.as_str())
        .collect();
    let actions: Vec<&str> = item.gated_actions().map(|it| it.action.as_str()).collect();
    let ticked_selectors: Vec<&str> = form.all("selector").collect();
    let ticked_actions: Vec<&str> = form.all("action").collect();
    let are_known = ticked_selectors.iter().all(|it| selectors.contains(it))
        && ticked_actions.iter().all(|it| actions.contains(it));
    if !are_known {
        return Err(Error::Form("selector"));
    }
    let (ticked_selectors, ticked_actions) = match form.one("answer")? {
        "all" => (selectors.clone(), actions.clone()),
        "deny" => (Vec::new(), Vec::new()),
        "part" if ticked_selectors.is_empty() && ticked_actions.is_empty() => return Ok(None),
        "part" => (ticked_selectors, ticked_actions),
        _ => return Err(Error::Form("answer")),
    };
    let split = |names: &[&str], granted: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned());
        names.partition::<Vec<String>, _>(|name| granted.contains(&name.as_str()))
    };
    let (granted_selectors, declined_selectors) = split(&selectors, &ticked_selectors);
    let (granted_actions, declined_actions) = split(&actions, &ticked_actions);
    Ok(Some(Answer {
        granted_selectors,
        granted_actions,
        declined_selectors,
        declined_actions,
    }))
}

impl Item {
    /// What the person decides of what may be disclosed.
    pub(crate) fn gated_selectors(&self) -> impl Iterator<Item = &Selector> {
        let gated = |it: &&Selector| it.treatment == Treatment::Gated;
        self.selectors.iter().filter(gated)
    }

    /// What the person decides of what may be done.
    pub(crate) fn gated_actions(&self) -> impl Iterator<Item = &Action> {
        let gated = |it: &&Action| it.treatment == Treatment::Gated;
        self.actions.iter().filter(gated)
    }
}
