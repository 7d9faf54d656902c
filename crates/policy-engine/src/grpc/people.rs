//! From messages about people to what they say. Nothing behind this module checks text again.

use cl_model::artefact::Fingerprint;
use cl_model::json::read::FromJson;
use cl_model::passkey::Assertion;
use cl_model::scalar::Reference;
use cl_model::urn::{ApprovalId, CredentialId, DecisionId};
use cl_wire::policy::v1 as wire;
use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;

use super::parse::{bounded, invalid};
use crate::core::challenge::CeremonyId;
use crate::error::Error;
use crate::service::{AnsweredScope, PlaceOfSubject};

pub(super) use super::parse::{digest, operation_id, tenant};

const DEFAULT_PAGE_SIZE: usize = 50;
const MAX_PAGE_SIZE: usize = 100;
const TOKEN_BYTES: usize = 32;

pub(super) fn token<'a>(field: &'static str, bytes: &'a [u8]) -> Result<&'a [u8], Error> {
    if bytes.len() != TOKEN_BYTES {
        return Err(invalid(field, "NOT_A_TOKEN"));
    }
    Ok(bytes)
}

pub(super) fn ceremony_id(bytes: &[u8]) -> Result<CeremonyId, Error> {
    let id = bytes.try_into();
    id.map_err(|_| invalid("ceremony_id", "NOT_A_CEREMONY_ID"))
}

pub(super) fn approval_id(text: &str) -> Result<ApprovalId, Error> {
    let id = bounded(text).and_then(ApprovalId::parse);
    id.ok_or_else(|| invalid("approval_ref", "NOT_AN_APPROVAL_ID"))
}

pub(super) fn decision_id(text: &str) -> Result<DecisionId, Error> {
    let id = bounded(text).and_then(DecisionId::parse);
    id.ok_or_else(|| invalid("decision_ref", "NOT_A_DECISION_ID"))
}

pub(super) fn credential_id(text: &str) -> Result<CredentialId, Error> {
    let id = bounded(text).and_then(CredentialId::parse);
    id.ok_or_else(|| invalid("credential_ref", "NOT_A_CREDENTIAL_ID"))
}

pub(super) fn fingerprint(text: &str) -> Result<Fingerprint, Error> {
    let fingerprint = bounded(text).and_then(Fingerprint::parse);
    fingerprint.ok_or_else(|| invalid("fingerprint", "NOT_A_FINGERPRINT"))
}

pub(super) fn principal(text: &str) -> Result<Reference, Error> {
    Reference::new(text).ok_or_else(|| invalid("principal", "LENGTH_OUT_OF_RANGE"))
}

/// The verifier judges what the parts say; here they only have to be there.
pub(super) fn assertion(message: Option<wire::Assertion>) -> Result<Assertion, Error> {
    let message = message.ok_or_else(|| invalid("assertion", "REQUIRED"))?;
    Ok(Assertion {
        credential_id: message.credential_id,
        client_data: message.client_data,
        authenticator_data: message.authenticator_data,
        signature: message.signature,
    })
}

pub(super) fn scope(message: &wire::BeginAnswerRequest) -> Result<AnsweredScope, Error> {
    Ok(AnsweredScope {
        granted_selectors: names("granted_selectors", &message.granted_selectors)?,
        granted_actions: names("granted_actions", &message.granted_actions)?,
        declined_selectors: names("declined_selectors", &message.declined_selectors)?,
        declined_actions: names("declined_actions", &message.declined_actions)?,
    })
}

fn names<T: FromJson>(field: &'static str, names: &[String]) -> Result<T, Error> {
    T::from_json(&Value::from(names)).map_err(|_| invalid(field, "NOT_A_LIST_OF_NAMES"))
}

pub(super) fn page_size(size: u32) -> Result<usize, Error> {
    match usize::try_from(size) {
        Ok(0) => Ok(DEFAULT_PAGE_SIZE),
        Ok(size) if size <= MAX_PAGE_SIZE => Ok(size),
        Ok(_) | Err(_) => Err(invalid("page_size", "OUT_OF_RANGE")),
    }
}

/// The token of the page after a place.
pub(super) fn page_token(place: PlaceOfSubject) -> String {
    let place = serde_json::json!([place.subject.as_str(), place.number, place.name]);
    BASE64URL_NOPAD.encode(place.to_string().as_bytes())
}

pub(super) fn place(token: &str) -> Result<Option<PlaceOfSubject>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    let place = read_place(token).ok_or_else(|| invalid("page_token", "NOT_A_PAGE_TOKEN"))?;
    Ok(Some(place))
}

fn read_place(token: &str) -> Option<PlaceOfSubject> {
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    let [subject, number, name] = value.as_array()?.as_slice() else {
        return None;
    };
    Some(PlaceOfSubject {
        subject: Reference::new(subject.as_str()?)?,
        number: number.as_u64()?,
        name: bounded(name.as_str()?)?.to_owned(),
    })
}
