//! What a request asks for, as evaluation sees it.

use serde_json::{Map, Value};

use super::list::{positive_integer, strings};
use super::{Assurance, Delegated};
use crate::digest::Digest;
use crate::json::read::{FromJson, ToJson};
use crate::object::{ContextRequest, ProtocolObject};
use crate::opaque::opaque_debug;
use crate::part::{ReceiptRequirement, SPEC_VERSION, Task};
use crate::refusal::{Code, Place, Refusal};
use crate::scalar::{MAX_RETENTION_SECONDS, Name, Text};
use crate::time::UnixTime;
use crate::urn::RequestId;

/// The most selectors, and the most actions, of one request.
const MAX_SCOPE: usize = 64;

/// The scope and circumstances that a request states.
///
/// A request that departs from its closed schema can still be evaluated, since the profile answers
/// some departures with a denial that names the reason. It is never granted anything: where no
/// such reason applies, evaluation refuses it.
#[derive(Clone)]
pub struct Asked {
    pub(super) digest: Digest,
    pub(super) fits_schema: Result<(), Refusal>,
    pub(super) is_supported: bool,
    pub(super) id: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) requester: Option<AskedRequester>,
    pub(super) recipient: Option<AskedRecipient>,
    pub(super) purpose_code: Option<String>,
    pub(super) has_valid_purpose: bool,
    pub(super) task_kind: String,
    pub(super) selectors: Vec<String>,
    pub(super) actions: Vec<String>,
    pub(super) retention_mode: String,
    pub(super) retention_seconds: u64,
    pub(super) receipts: ReceiptRequirement,
    pub(super) expires_at: Option<UnixTime>,
    pub(super) denials: Vec<&'static str>,
    pub(super) assurance: Option<Assurance>,
    pub(super) anomaly: Option<Name>,
    pub(super) delegated: Option<Delegated>,
}

/// A requester with a principal.
#[derive(Clone, Debug)]
pub(super) struct AskedRequester {
    pub(super) principal: String,
    pub(super) authenticated_by: Option<String>,
    pub(super) client_instance: Option<String>,
}

/// A recipient with a principal.
#[derive(Clone, Debug)]
pub(super) struct AskedRecipient {
    pub(super) principal: String,
    pub(super) onward_disclosure: Option<String>,
}

opaque_debug!(Asked);

impl Asked {
    /// Reads what a request asks for.
    ///
    /// # Errors
    ///
    /// Departures for which there is no denial: [`Code::InvalidObject`],
    /// [`Code::InvalidSelectors`], [`Code::InvalidString`], [`Code::UnsupportedSelectorField`],
    /// [`Code::InvalidStringList`], [`Code::InvalidRequestTask`],
    /// [`Code::InvalidPositiveInteger`] and [`Code::InvalidReceiptRequirement`].
    pub fn read(request: &Value) -> Result<Self, Refusal> {
        let object = request.as_object().ok_or(Code::InvalidObject)?;
        let selectors = selectors(object)?;
        let actions = actions(object)?;
        let (retention_mode, retention_seconds) = retention(object)?;
        let text = |name: &str| non_empty(object.get(name));
        Ok(Self {
            digest: Digest::of_json(request),
            fits_schema: ContextRequest::read(request).map(|_| ()),
            is_supported: object
                .get("spec_version")
                .is_some_and(|it| it == SPEC_VERSION)
                && object.get("type").is_some_and(|it| it == "context_request"),
            id: text("id"),
            subject: text("subject_ref"),
            requester: object.get("requester").and_then(requester),
            recipient: object.get("recipient").and_then(recipient),
            purpose_code: text("purpose_code"),
            has_valid_purpose: object
                .get("purpose")
                .is_none_or(|purpose| Text::<3, 240>::from_json(purpose).is_ok()),
            task_kind: task_kind(object)?,
            selectors,
            actions,
            retention_mode,
            retention_seconds,
            receipts: receipts(object)?,
            expires_at: object
                .get("expires_at")
                .and_then(Value::as_str)
                .and_then(UnixTime::parse),
            denials: Vec::new(),
            assurance: None,
            anomaly: None,
            delegated: None,
        })
    }

    /// What a request that fits its closed schema asks for.
    ///
    /// # Errors
    ///
    /// None in practice: whatever fits the schema can be read.
    pub fn of(request: &ContextRequest) -> Result<Self, Refusal> {
        Self::read(&request.to_json())
    }

    /// Denies the request for a reason that only the host can see, such as a requester who is not
    /// the one that the request names. The reasons are recorded first, in the order given.
    #[must_use]
    pub fn denied_for(mut self, reasons: impl IntoIterator<Item = &'static str>) -> Self {
        self.denials.extend(reasons);
        self
    }

    /// Says how surely the requester's credential stands for it, which only the host can know.
    #[must_use]
    pub const fn with_assurance(mut self, assurance: Assurance) -> Self {
        self.assurance = Some(assurance);
        self
    }

    /// Says which anomaly state the host has of the requester, if it has one. It takes the place of
    /// the policy's own.
    #[must_use]
    pub fn with_anomaly(mut self, state: Option<Name>) -> Self {
        self.anomaly = state;
        self
    }

    /// Says what the subject has delegated to the requester for the purpose, if anything.
    #[must_use]
    pub fn with_delegated(mut self, delegated: Option<Delegated>) -> Self {
        self.delegated = delegated;
        self
    }

    /// The digest of the whole request.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The request's id, or a fixed one if it has none that could be referred to.
    pub(super) fn request_ref(&self) -> &str {
        match &self.id {
            Some(id) if RequestId::parse(id).is_some() => id,
            Some(_) | None => "urn:cl:request:invalid",
        }
    }
}

fn non_empty(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn selectors(object: &Map<String, Value>) -> Result<Vec<String>, Refusal> {
    const NAME: &str = "selectors";
    let elements = object
        .get(NAME)
        .and_then(Value::as_array)
        .ok_or_else(|| Refusal::at_member(Code::InvalidSelectors, NAME))?;
    let mut predicates = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let at = |code| Refusal::at(code, Place::root().under_index(index).under_member(NAME));
        let selector = element.as_object().ok_or_else(|| at(Code::InvalidObject))?;
        let predicate =
            non_empty(selector.get("predicate")).ok_or_else(|| at(Code::InvalidString))?;
        if selector.len() > 1 {
            return Err(at(Code::UnsupportedSelectorField));
        }
        predicates.push(predicate);
    }
    bounded_scope(predicates).ok_or_else(|| Refusal::at_member(Code::InvalidSelectors, NAME))
}

fn actions(object: &Map<String, Value>) -> Result<Vec<String>, Refusal> {
    const NAME: &str = "requested_actions";
    let Some(value) = object.get(NAME).filter(|value| !value.is_null()) else {
        return Ok(Vec::new());
    };
    value
        .as_array()
        .and_then(|elements| strings(elements))
        .and_then(|actions| bounded_scope(actions.map(str::to_owned).collect()))
        .ok_or_else(|| Refusal::at_member(Code::InvalidStringList, NAME))
}

/// The scope, unless it repeats itself or is larger than a decision could state.
fn bounded_scope(scope: Vec<String>) -> Option<Vec<String>> {
    if scope.len() > MAX_SCOPE {
        return None;
    }
    let is_new = |(index, name): (usize, &String)| !scope[..index].contains(name);
    scope.iter().enumerate().all(is_new).then_some(scope)
}

fn requester(value: &Value) -> Option<AskedRequester> {
    Some(AskedRequester {
        principal: non_empty(value.get("principal"))?,
        authenticated_by: non_empty(value.get("authenticated_by")),
        client_instance: non_empty(value.get("client_instance")),
    })
}

fn recipient(value: &Value) -> Option<AskedRecipient> {
    Some(AskedRecipient {
        principal: non_empty(value.get("principal"))?,
        onward_disclosure: non_empty(value.get("onward_disclosure")),
    })
}

fn task_kind(object: &Map<String, Value>) -> Result<String, Refusal> {
    let task = Task::from_json(object.get("task").unwrap_or(&Value::Null))
        .map_err(|_| Refusal::at_member(Code::InvalidRequestTask, "task"))?;
    Ok(task.kind.as_str().to_owned())
}

fn retention(object: &Map<String, Value>) -> Result<(String, u64), Refusal> {
    const NAME: &str = "retention";
    let retention = object
        .get(NAME)
        .and_then(Value::as_object)
        .ok_or_else(|| Refusal::at_member(Code::InvalidObject, NAME))?;
    let mode = non_empty(retention.get("mode"))
        .ok_or_else(|| Refusal::at_member(Code::InvalidString, NAME))?;
    let seconds = positive_integer(retention.get("max_seconds").unwrap_or(&Value::Null), NAME)?;
    if seconds > MAX_RETENTION_SECONDS.unsigned_abs() {
        return Err(Refusal::at_member(Code::InvalidPositiveInteger, NAME));
    }
    Ok((mode, seconds))
}

fn receipts(object: &Map<String, Value>) -> Result<ReceiptRequirement, Refusal> {
    const NAME: &str = "receipt_requirement";
    let value = object
        .get(NAME)
        .filter(|value| value.is_object())
        .ok_or_else(|| Refusal::at_member(Code::InvalidObject, NAME))?;
    ReceiptRequirement::from_json(value)
        .map_err(|_| Refusal::at_member(Code::InvalidReceiptRequirement, NAME))
}
