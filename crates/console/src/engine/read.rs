//! The engine's answers, checked, so that nothing behind this depends on it keeping its contract.

use std::time::Duration;

use cl_model::digest::Digest;
use cl_model::document;
use cl_model::object::{DecisionState, PolicyDecision, ProtocolObject};
use cl_model::time::UnixTime;
use cl_model::urn::{ApprovalId, BundleId, DecisionId};
use cl_wire::policy::v1 as wire;
use cl_wire::status::is_reason;
use cl_wire::time;
use prost_types::Timestamp;
use zeroize::Zeroizing;

use super::{
    Action, Ceremony, Decision, Enrolment, Item, OpenAnswer, Outcome, Page, RequestState, Selector,
    SignedIn, State, Subject, Summary, Treatment,
};
use crate::error::{Error, Peer};

const CEREMONY_ID_BYTES: usize = 16;
const TOKEN_BYTES: usize = 32;
const TAG_CHARS: usize = 43;

pub(super) const fn broken(what: &'static str) -> Error {
    Error::BrokenContract(Peer::PolicyEngine, what)
}

pub(super) fn approval_ref(approval: &str) -> String {
    format!("{}{approval}", ApprovalId::PREFIX)
}

pub(super) fn decision_ref(decision: &str) -> String {
    format!("{}{decision}", DecisionId::PREFIX)
}

fn approval_of(urn: &str) -> Result<String, Error> {
    let id = ApprovalId::parse(urn).ok_or(broken("approval_ref"))?;
    let name = id.as_str().strip_prefix(ApprovalId::PREFIX);
    name.map(str::to_owned).ok_or(broken("approval_ref"))
}

fn moment(message: Option<Timestamp>) -> Result<UnixTime, Error> {
    message
        .as_ref()
        .and_then(time::read)
        .ok_or(broken("a time"))
}

fn digest(text: String) -> Result<String, Error> {
    Digest::parse(&text).ok_or(broken("a digest"))?;
    Ok(text)
}

fn codes(codes: Vec<String>) -> Result<Vec<String>, Error> {
    if codes.iter().all(|code| is_reason(code)) {
        return Ok(codes);
    }
    Err(broken("reason_codes"))
}

pub(super) fn page<T>(
    entries: impl Iterator<Item = Result<T, Error>>,
    next: String,
) -> Result<Page<T>, Error> {
    Ok(Page {
        entries: entries.collect::<Result<_, _>>()?,
        next: Some(next).filter(|next| !next.is_empty()),
    })
}

pub(super) fn ceremony(message: Option<wire::Ceremony>) -> Result<Ceremony, Error> {
    let message = message.ok_or(broken("no ceremony"))?;
    if message.id.len() != CEREMONY_ID_BYTES || message.challenge.len() != TOKEN_BYTES {
        return Err(broken("ceremony"));
    }
    Ok(Ceremony {
        id: message.id,
        challenge: message.challenge,
        rp_id: message.rp_id,
        expires_at: moment(message.expires_at)?,
    })
}

pub(super) fn signed_in(message: wire::FinishSignInResponse) -> Result<SignedIn, Error> {
    let token = Zeroizing::new(message.session);
    if token.len() != TOKEN_BYTES || message.tenant.is_empty() || message.principal.is_empty() {
        return Err(broken("session"));
    }
    Ok(SignedIn {
        token,
        tenant: message.tenant,
        principal: message.principal,
        expires_at: moment(message.expires_at)?,
        idles: Duration::from_secs(message.idle_seconds.into()),
    })
}

pub(super) fn enrolment(message: wire::BeginEnrolmentResponse) -> Result<Enrolment, Error> {
    if message.user_handle.len() != TOKEN_BYTES || message.algorithms.is_empty() {
        return Err(broken("enrolment"));
    }
    Ok(Enrolment {
        ceremony: ceremony(message.ceremony)?,
        user_handle: message.user_handle,
        principal: message.principal,
        tenant: message.tenant,
        algorithms: message.algorithms,
        excluded: message.exclude_credential_ids,
    })
}

pub(super) fn fingerprint(message: wire::FinishEnrolmentResponse) -> Result<String, Error> {
    let text = message.fingerprint;
    let is_one = (8..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b' ' | b'-'));
    is_one.then_some(text).ok_or(broken("fingerprint"))
}

pub(super) fn summary(message: wire::PendingApproval) -> Result<Summary, Error> {
    Ok(Summary {
        approval: approval_of(&message.approval_ref)?,
        subject: message.subject,
        requester: message.requester,
        recipient: message.recipient,
        purpose_code: message.purpose_code,
        created_at: moment(message.created_at)?,
        expires_at: moment(message.expires_at)?,
    })
}

pub(super) fn item(message: Option<wire::ApprovalItem>) -> Result<Item, Error> {
    let message = message.ok_or(broken("no item"))?;
    let state = match message.state() {
        wire::ApprovalState::Unspecified => return Err(broken("state")),
        wire::ApprovalState::Pending => State::Pending,
        wire::ApprovalState::Answered => State::Answered,
        wire::ApprovalState::Expired => State::Expired,
        wire::ApprovalState::Replaced => State::Replaced,
        wire::ApprovalState::NotNeeded => State::NotNeeded,
    };
    let authenticated_by = match message.authenticated_by() {
        wire::AuthenticationMethod::Unspecified => return Err(broken("authenticated_by")),
        wire::AuthenticationMethod::Oauth2 => "an access token",
        wire::AuthenticationMethod::Mtls => "a client certificate",
    };
    let summary = summary(message.summary.ok_or(broken("no summary"))?)?;
    let selectors = message.selectors.into_iter().map(selector);
    let actions = message.actions.into_iter().map(action);
    Ok(Item {
        approval: summary.approval.clone(),
        summary,
        state,
        digest: digest(message.item_digest)?,
        request: message.request_ref,
        client: message.client_instance,
        authenticated_by,
        purpose: message.purpose,
        task: message.task_kind,
        selectors: selectors.collect::<Result<_, _>>()?,
        actions: actions.collect::<Result<_, _>>()?,
        retention_mode: message.retention_mode,
        retention_seconds: message.retention_seconds,
        onward: message.onward_disclosure,
        access_ends_at: moment(message.access_ends_at)?,
        policy_version: message.policy_version,
        policy_digest: digest(message.policy_digest)?,
        policy_changed: message.policy_changed,
        reasons: codes(message.reason_codes)?,
        receipt_level: message.receipt_level,
        evidence: message.evidence_operations,
    })
}

fn treatment(message: wire::ScopeTreatment) -> Result<Treatment, Error> {
    match message {
        wire::ScopeTreatment::Unspecified => Err(broken("treatment")),
        wire::ScopeTreatment::Ordinary => Ok(Treatment::Ordinary),
        wire::ScopeTreatment::Gated => Ok(Treatment::Gated),
        wire::ScopeTreatment::Denied => Ok(Treatment::Denied),
    }
}

fn selector(message: wire::ApprovalSelector) -> Result<Selector, Error> {
    Ok(Selector {
        treatment: treatment(message.treatment())?,
        predicate: message.predicate,
        label: message.label,
        is_sensitive: message.sensitive,
    })
}

fn action(message: wire::ApprovalAction) -> Result<Action, Error> {
    Ok(Action {
        treatment: treatment(message.treatment())?,
        is_external: match message.side_effect() {
            wire::SideEffect::Unspecified => return Err(broken("side_effect")),
            wire::SideEffect::None => false,
            wire::SideEffect::External => true,
        },
        action: message.action,
    })
}

pub(super) fn open_answer(message: wire::BeginAnswerResponse) -> Result<OpenAnswer, Error> {
    let document = String::from_utf8(message.approval);
    if message.credential_ids.is_empty() {
        return Err(broken("credential_ids"));
    }
    Ok(OpenAnswer {
        ceremony: ceremony(message.ceremony)?,
        document: document.map_err(|_| broken("approval"))?,
        credentials: message.credential_ids,
    })
}

fn request_state(state: wire::RequestState) -> Result<RequestState, Error> {
    match state {
        wire::RequestState::Unspecified => Err(broken("state")),
        wire::RequestState::PendingApproval => Ok(RequestState::PendingApproval),
        wire::RequestState::Decided => Ok(RequestState::Decided),
        wire::RequestState::Issued => Ok(RequestState::Issued),
        wire::RequestState::Failed => Ok(RequestState::Failed),
        wire::RequestState::Expired => Ok(RequestState::Expired),
        wire::RequestState::Revoked => Ok(RequestState::Revoked),
    }
}

/// What is reported to a person has to be what the engine recorded.
pub(super) fn outcome(message: wire::FinishAnswerResponse) -> Result<Outcome, Error> {
    let status = message.status.ok_or(broken("no status"))?;
    let state = request_state(status.state())?;
    let value = document::read_canonical(&status.decision).map_err(|_| broken("decision"))?;
    let decision = PolicyDecision::read(&value).map_err(|_| broken("decision"))?;
    if decision.decision == DecisionState::NeedsApproval || state == RequestState::PendingApproval {
        return Err(broken("an answer that left the request waiting"));
    }
    if status
        .failure_code
        .as_deref()
        .is_some_and(|code| !is_reason(code))
    {
        return Err(broken("failure_code"));
    }
    Ok(Outcome {
        state,
        decision: Box::new(decision),
        failure: status.failure_code,
    })
}

pub(super) fn decision(message: wire::DecisionSummary) -> Result<Decision, Error> {
    let state = request_state(message.state())?;
    let id = DecisionId::parse(&message.decision_ref).ok_or(broken("decision_ref"))?;
    let name = id.as_str().strip_prefix(DecisionId::PREFIX);
    if DecisionState::parse(&message.decision).is_none() {
        return Err(broken("decision"));
    }
    let bundle = message.bundle_ref;
    if bundle
        .as_deref()
        .is_some_and(|id| BundleId::parse(id).is_none())
    {
        return Err(broken("bundle_ref"));
    }
    Ok(Decision {
        decision: name.ok_or(broken("decision_ref"))?.to_owned(),
        subject: message.subject,
        requester: message.requester,
        recipient: message.recipient,
        purpose_code: message.purpose_code,
        decided_at: moment(message.decided_at)?,
        expires_at: moment(message.expires_at)?,
        outcome: message.decision,
        state,
        granted: message.granted_selectors,
        granted_actions: message.granted_actions,
        denied: message.denied_selectors,
        denied_actions: message.denied_actions,
        reasons: codes(message.reason_codes)?,
        is_active: message.active_grant,
        approval: message
            .approval_ref
            .as_deref()
            .map(approval_of)
            .transpose()?,
        bundle,
    })
}

pub(super) fn subjects(message: wire::ListSubjectsResponse) -> Result<Vec<Subject>, Error> {
    let subjects = message.subjects.into_iter().map(|subject| {
        if subject.subject.is_empty() || subject.subject_tag.len() != TAG_CHARS {
            return Err(broken("subjects"));
        }
        Ok(Subject {
            name: subject.subject,
            tag: subject.subject_tag,
        })
    });
    subjects.collect()
}
