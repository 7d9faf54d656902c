//! What subjects delegate, as messages.

use cl_model::policy::Delegated;
use cl_model::purpose::PurposeCode;
use cl_model::scalar::{Predicate, Reference};
use cl_model::time::UnixTime;
use cl_wire::policy::v1 as wire;
use cl_wire::time;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use super::parse::invalid;
use super::settings::reference;
use crate::error::Error;
use crate::service::NewDelegation;
use crate::store::settings::Delegation;

/// The most purposes, and the most predicates, of one delegation.
const MAX_NAMES: usize = 64;

/// The longest name of a predicate, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// The longest that anything is delegated for: a year.
const MAX_SECONDS: u64 = 366 * 24 * 3600;

pub(super) fn new(
    message: wire::SetDelegationRequest,
    now: UnixTime,
) -> Result<NewDelegation, Error> {
    let until = message.expires_at.as_ref().and_then(time::read);
    let until = until.filter(|until| *until > now && *until <= now.plus_seconds(MAX_SECONDS));
    let bounded = |name: &String| name.len() <= MAX_NAME_BYTES;
    let purpose = |name: String| PurposeCode::new(&name).filter(|_| bounded(&name));
    let predicate = |name: String| Some(name).filter(bounded).and_then(Predicate::new);
    Ok(NewDelegation {
        subject: reference("subject", &message.subject)?,
        delegate: reference("delegate", &message.delegate)?,
        purposes: names("purpose_codes", message.purpose_codes, purpose)?,
        delegated: Delegated {
            predicates: names("predicates", message.predicates, predicate)?,
            until: until.ok_or_else(|| invalid("expires_at", "OUT_OF_RANGE"))?,
        },
    })
}

/// Names in order, each once.
fn names<T: Ord>(
    field: &'static str,
    names: Vec<String>,
    read: impl Fn(String) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let count = names.len();
    if !(1..=MAX_NAMES).contains(&count) {
        return Err(invalid(field, "OUT_OF_RANGE"));
    }
    let read: Option<Vec<T>> = names.into_iter().map(read).collect();
    let mut read = read.ok_or_else(|| invalid(field, "NOT_A_NAME"))?;
    read.sort();
    read.dedup();
    if read.len() < count {
        return Err(invalid(field, "NOT_DISTINCT"));
    }
    Ok(read)
}

/// The token of the page after a delegation.
pub(super) fn page_token(last: &Delegation) -> String {
    let place = json!([last.subject.as_str(), last.delegate.as_str()]);
    BASE64URL_NOPAD.encode(place.to_string().as_bytes())
}

pub(super) fn page_start(token: &str) -> Result<Option<(Reference, Reference)>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    let place = read_place(token).ok_or_else(|| invalid("page_token", "NOT_A_PAGE_TOKEN"))?;
    Ok(Some(place))
}

fn read_place(token: &str) -> Option<(Reference, Reference)> {
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    let [subject, delegate] = value.as_array()?.as_slice() else {
        return None;
    };
    let reference = |value: &Value| Reference::new(value.as_str()?);
    Some((reference(subject)?, reference(delegate)?))
}

impl From<Delegation> for wire::Delegation {
    fn from(delegation: Delegation) -> Self {
        let purposes = delegation.purposes.iter();
        let predicates = delegation.delegated.predicates.iter();
        Self {
            subject: delegation.subject.as_str().to_owned(),
            delegate: delegation.delegate.as_str().to_owned(),
            purpose_codes: purposes.map(|it| it.as_str().to_owned()).collect(),
            predicates: predicates.map(|it| it.as_str().to_owned()).collect(),
            expires_at: Some(time::to_message(delegation.delegated.until)),
            set_at: Some(time::to_message(delegation.set_at)),
        }
    }
}
