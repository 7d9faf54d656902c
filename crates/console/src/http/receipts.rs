//! Receipts about a person's subjects.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use cl_model::digest::Digest;
use cl_model::scalar::Action;
use cl_model::time::UnixTime;
use cl_model::urn::{BundleId, DecisionId, MAX_ID_BYTES};

use super::call::Call;
use super::{Console, page as html};
use crate::engine::Subject;
use crate::error::{Error, Peer};
use crate::forms::Form;
use crate::pages;
use crate::pages::receipts::Listed;
use crate::receipts::Search;

/// What stands for a subject in addresses, so that neither its name nor its tag does.
const SUBJECT_CHARS: usize = 16;

const OUTCOMES: [&str; 3] = ["success", "failure", "indeterminate"];

pub(super) async fn list(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    let answer = async {
        let signed = console.signed(&call)?;
        let receipts = console.receipts.as_ref();
        let receipts = receipts.ok_or(Error::NotServed(Peer::ReceiptStore))?;
        let query = call.query()?;
        let search = search(&query)?;
        let subjects = console
            .engine
            .subjects(signed.token(), call.deadline())
            .await?;
        let chosen = chosen(&subjects, query.optional("subject")?);
        let mut listed = Listed {
            subjects: subjects
                .iter()
                .map(|it| (short(it), it.name.clone()))
                .collect(),
            chosen: chosen.map(short),
            query: &query,
            entries: Vec::new(),
            total: 0,
            next: None,
        };
        if let Some(subject) = chosen {
            let (tenant, tag) = (&signed.person.tenant, &subject.tag);
            let place = console.place(&signed, &query)?;
            let list = receipts.list(tenant, tag, &search, &place, call.deadline());
            let (page, total) = list.await?;
            listed.next = console.next_place(&signed, page.next.as_deref());
            listed.entries = page.entries;
            listed.total = total;
        }
        Ok(html(&pages::receipts::page(
            &console.chrome(Some(&signed)),
            &listed,
        )))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

pub(super) async fn show(State(console): State<Arc<Console>>, request: Request) -> Response {
    let call = Call::of(request);
    let answer = async {
        let signed = console.signed(&call)?;
        let receipts = console.receipts.as_ref();
        let receipts = receipts.ok_or(Error::NotServed(Peer::ReceiptStore))?;
        let subjects = console
            .engine
            .subjects(signed.token(), call.deadline())
            .await?;
        let tags: Vec<&str> = subjects.iter().map(|it| it.tag.as_str()).collect();
        let (tenant, now) = (&signed.person.tenant, console.now());
        let shown = receipts.show(tenant, &tags, call.name()?, now, call.deadline());
        let chrome = console.chrome(Some(&signed));
        Ok(html(&pages::receipts::one(&chrome, &shown.await?)))
    };
    let answer = answer.await;
    console.answered(&call, answer)
}

/// The subject that an address means; the first if it names none.
fn chosen<'a>(subjects: &'a [Subject], wanted: Option<&str>) -> Option<&'a Subject> {
    match wanted {
        None => subjects.first(),
        Some(wanted) => subjects.iter().find(|it| short(it) == wanted),
    }
}

fn short(subject: &Subject) -> String {
    let digest = Digest::of_bytes(subject.tag.as_bytes()).to_hex();
    digest.get(..SUBJECT_CHARS).unwrap_or_default().to_owned()
}

fn search(query: &Form) -> Result<Search, Error> {
    let field = |name: &'static str, is_one: &dyn Fn(&str) -> bool| match query.optional(name)? {
        None | Some("") => Ok(None),
        Some(text) if text.len() <= MAX_ID_BYTES && is_one(text) => Ok(Some(text.to_owned())),
        Some(_) => Err(Error::Form(name)),
    };
    let day = |name: &'static str, time: &str| match query.optional(name)? {
        None | Some("") => Ok(None),
        Some(day) => UnixTime::parse(&format!("{day}T{time}Z"))
            .map(Some)
            .ok_or(Error::Form(name)),
    };
    Ok(Search {
        operation: field("operation", &|text| Action::new(text).is_some())?,
        outcome: field("outcome", &|text| OUTCOMES.contains(&text))?,
        from: day("from", "00:00:00")?,
        before: day("to", "23:59:59.999")?,
        bundle: field("bundle", &|text| BundleId::parse(text).is_some())?,
        decision: field("decision", &|text| DecisionId::parse(text).is_some())?,
    })
}
