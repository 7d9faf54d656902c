//! What operators set beside snapshots, as messages.

use cl_model::policy::NORMAL_ANOMALY_STATE;
use cl_model::scalar::{Name, Reference};
use cl_wire::policy::v1 as wire;
use cl_wire::time;
use data_encoding::BASE64URL_NOPAD;

use super::examined::difference;
use super::parse::invalid;
use crate::error::Error;
use crate::service::ShadowStatus;
use crate::store::settings::Anomaly;

/// The longest anomaly state, in bytes.
const MAX_STATE_BYTES: usize = 64;

pub(super) fn requester(text: &str) -> Result<Reference, Error> {
    reference("requester", text)
}

pub(super) fn reference(field: &'static str, text: &str) -> Result<Reference, Error> {
    Reference::new(text).ok_or_else(|| invalid(field, "LENGTH_OUT_OF_RANGE"))
}

/// A state that says something: the ordinary one is that of whoever has none.
pub(super) fn state(text: &str) -> Result<Name, Error> {
    let state = Some(text).filter(|text| text.len() <= MAX_STATE_BYTES);
    let state = state.and_then(Name::new);
    let state = state.filter(|state| state.as_str() != NORMAL_ANOMALY_STATE);
    state.ok_or_else(|| invalid("state", "NOT_AN_ANOMALY_STATE"))
}

/// The token of the page after a requester.
pub(super) fn page_token(last: &Reference) -> String {
    BASE64URL_NOPAD.encode(last.as_str().as_bytes())
}

pub(super) fn page_start(token: &str) -> Result<Option<Reference>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let last = text.and_then(Reference::new);
    let last = last.ok_or_else(|| invalid("page_token", "NOT_A_PAGE_TOKEN"))?;
    Ok(Some(last))
}

impl From<Anomaly> for wire::AnomalyState {
    fn from(anomaly: Anomaly) -> Self {
        Self {
            requester: anomaly.requester.as_str().to_owned(),
            state: anomaly.state.as_str().to_owned(),
            set_at: Some(time::to_message(anomaly.set_at)),
        }
    }
}

impl From<ShadowStatus> for wire::Shadow {
    fn from(status: ShadowStatus) -> Self {
        let seen = status.seen;
        let differences = seen.differences.into_iter();
        Self {
            digest: status.shadow.digest.to_string(),
            version: status.about.name,
            set_at: Some(time::to_message(status.shadow.set_at)),
            equal: seen.equal,
            different: seen.different,
            differences: differences
                .map(|(id, decided_at, it)| difference(id.as_str().to_owned(), decided_at, it))
                .collect(),
        }
    }
}
