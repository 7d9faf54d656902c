//! What people see, as messages.

use cl_wire::policy::v1 as wire;
use cl_wire::time;

use crate::core::evidence::Operation;
use crate::core::facts::Method;
use crate::core::item::{AskedAction, AskedFact, Fate};
use crate::service::{ItemState, Shown, ShownDecision, Summary};
use crate::store::Conclusion;

pub(super) fn summary(summary: &Summary) -> wire::PendingApproval {
    let (pending, request) = (&summary.pending, &summary.request.request);
    wire::PendingApproval {
        approval_ref: pending.reference.to_string(),
        subject: pending.subject.as_str().to_owned(),
        requester: request.requester.principal.as_str().to_owned(),
        recipient: request.recipient.principal.as_str().to_owned(),
        purpose_code: request.purpose_code.as_str().to_owned(),
        created_at: Some(time::to_message(pending.created_at)),
        expires_at: Some(time::to_message(pending.expires_at)),
    }
}

pub(super) fn item(shown: &Shown) -> wire::ApprovalItem {
    let (pending, request) = (&shown.summary.pending, &shown.summary.request.request);
    let (item, facts, policy) = (&shown.item, &shown.recorded.facts, shown.policy());
    let purpose = request.purpose.as_ref().map(|text| text.as_str());
    let evidence = [
        Operation::Approve,
        Operation::RefuseApproval,
        Operation::Decide,
    ];
    wire::ApprovalItem {
        summary: Some(summary(&shown.summary)),
        state: state(shown.state).into(),
        item_digest: item.digest.to_string(),
        request_digest: pending.request_digest.to_string(),
        request_ref: pending.key.id.to_string(),
        client_instance: facts.client_instance.as_str().to_owned(),
        authenticated_by: method(facts.method).into(),
        purpose: purpose.unwrap_or_default().to_owned(),
        task_kind: request.task.kind.as_str().to_owned(),
        selectors: item.facts.iter().map(selector).collect(),
        actions: item.actions.iter().map(action).collect(),
        retention_mode: request.retention.mode.as_str().to_owned(),
        retention_seconds: request.retention.max_seconds.get().unsigned_abs(),
        onward_disclosure: request.recipient.onward_disclosure.as_str().to_owned(),
        access_ends_at: Some(time::to_message(item.access_ends_at)),
        policy_version: policy.version.as_str().to_owned(),
        policy_digest: policy.digest.to_string(),
        policy_changed: policy.digest != shown.recorded.snapshot,
        reason_codes: item.reasons.clone(),
        receipt_level: request.receipt_requirement.level.as_str().to_owned(),
        evidence_operations: evidence.map(|it| it.as_str().to_owned()).to_vec(),
    }
}

const fn state(state: ItemState) -> wire::ApprovalState {
    match state {
        ItemState::Pending => wire::ApprovalState::Pending,
        ItemState::Answered => wire::ApprovalState::Answered,
        ItemState::Expired => wire::ApprovalState::Expired,
        ItemState::Replaced => wire::ApprovalState::Replaced,
        ItemState::NotNeeded => wire::ApprovalState::NotNeeded,
    }
}

const fn method(method: Method) -> wire::AuthenticationMethod {
    match method {
        Method::Oauth2 => wire::AuthenticationMethod::Oauth2,
        Method::Mtls => wire::AuthenticationMethod::Mtls,
    }
}

pub(super) const fn treatment(fate: Fate) -> wire::ScopeTreatment {
    match fate {
        Fate::Ordinary => wire::ScopeTreatment::Ordinary,
        Fate::Gated => wire::ScopeTreatment::Gated,
        Fate::Denied => wire::ScopeTreatment::Denied,
    }
}

fn selector(fact: &AskedFact) -> wire::ApprovalSelector {
    wire::ApprovalSelector {
        predicate: fact.predicate.clone(),
        label: fact.label.as_str().to_owned(),
        sensitive: fact.is_sensitive(),
        treatment: treatment(fact.fate).into(),
    }
}

fn action(action: &AskedAction) -> wire::ApprovalAction {
    let side_effect = if action.is_external {
        wire::SideEffect::External
    } else {
        wire::SideEffect::None
    };
    wire::ApprovalAction {
        action: action.action.clone(),
        side_effect: side_effect.into(),
        treatment: treatment(action.fate).into(),
    }
}

pub(super) fn decision(shown: &ShownDecision) -> wire::DecisionSummary {
    let (request, decision) = (&shown.request.request, &shown.decision);
    let granted = decision.granted_selectors.iter();
    let actions = decision.granted_actions.iter();
    let denied = decision.denied_selectors.iter();
    let denied_actions = decision.denied_actions.iter();
    let reasons = decision.reason_codes.iter();
    let bundle = match &shown.conclusion {
        Some(Conclusion::Issued(id)) => Some(id.to_string()),
        Some(Conclusion::Failed(_)) | None => None,
    };
    wire::DecisionSummary {
        decision_ref: shown.past.decision_id.clone(),
        subject: shown.subject.as_str().to_owned(),
        requester: request.requester.principal.as_str().to_owned(),
        recipient: request.recipient.principal.as_str().to_owned(),
        purpose_code: request.purpose_code.as_str().to_owned(),
        decided_at: Some(time::to_message(shown.decided_at)),
        expires_at: Some(time::to_message(decision.expires_at.instant())),
        decision: shown.outcome().as_str().to_owned(),
        state: super::request_state(shown.state).into(),
        granted_selectors: granted.map(|it| it.predicate.as_str().to_owned()).collect(),
        granted_actions: actions.map(|it| it.as_str().to_owned()).collect(),
        active_grant: shown.is_active_grant,
        approval_ref: shown.approval.as_ref().map(ToString::to_string),
        bundle_ref: bundle,
        denied_selectors: denied.map(|it| it.predicate.as_str().to_owned()).collect(),
        denied_actions: denied_actions.map(|it| it.as_str().to_owned()).collect(),
        reason_codes: reasons.map(|it| it.as_str().to_owned()).collect(),
    }
}
