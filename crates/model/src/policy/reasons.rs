//! The reasons that deny a request whatever it asks for.

use super::asked::Asked;
use super::evaluate::Evaluation;
use super::ruling::{Part, Ruling};
use crate::object::PreflightStatus;
use crate::purpose::PurposeCode;

/// The reason of a requester that asks too often. The host may have said so before the policy does.
const RATE_LIMIT_EXCEEDED: &str = "RATE_LIMIT_EXCEEDED";

/// The reasons that deny whatever is asked for, in the order in which they are recorded.
pub(super) fn hard_reasons(evaluation: &Evaluation<'_>, ruling: &Ruling) -> Vec<&'static str> {
    let request = evaluation.request;
    let of_the_host = request.denials.iter().map(|reason| (true, *reason));
    let reasons = of_the_host
        .chain([
            (!request.is_supported, "UNSUPPORTED_REQUEST"),
            (request.id.is_none(), "REQUEST_ID_MISSING"),
            (request.subject.is_none(), "SUBJECT_MISSING"),
        ])
        .chain(requester_reasons(request, ruling))
        .chain(recipient_reasons(request, ruling))
        .chain(purpose_reasons(request, ruling))
        .chain([
            (ruling.refuses(Part::Task), "TASK_NOT_ALLOWED"),
            (
                request
                    .expires_at
                    .is_some_and(|ends| ends <= evaluation.now),
                "REQUEST_EXPIRED",
            ),
            (request.expires_at.is_none(), "REQUEST_EXPIRY_INVALID"),
            (
                request.retention_mode != evaluation.terms().retention_mode.as_str(),
                "RETENTION_MODE_NOT_ALLOWED",
            ),
            (
                ruling.refuses(Part::Rate) && !request.denials.contains(&RATE_LIMIT_EXCEEDED),
                RATE_LIMIT_EXCEEDED,
            ),
            (ruling.refuses(Part::Anomaly), "ANOMALY_STATE_BLOCKED"),
            (request.selectors.is_empty(), "SELECTORS_EMPTY"),
            (request.actions.is_empty(), "ACTIONS_EMPTY"),
            (
                has_wildcard(&request.selectors),
                "SELECTOR_WILDCARD_NOT_ALLOWED",
            ),
            (
                has_wildcard(&request.actions),
                "ACTION_WILDCARD_NOT_ALLOWED",
            ),
            (
                evaluation.preflight_status() == PreflightStatus::Unavailable,
                "RECEIPT_PREFLIGHT_FAILED",
            ),
            (ruling.has_failed, "POLICY_EVALUATION_FAILED"),
        ]);
    reasons
        .filter(|(applies, _)| *applies)
        .map(|(_, reason)| reason)
        .collect()
}

fn requester_reasons(request: &Asked, ruling: &Ruling) -> Vec<(bool, &'static str)> {
    let Some(requester) = &request.requester else {
        return vec![(true, "REQUESTER_UNAUTHENTICATED")];
    };
    let is_authenticated = requester.authenticated_by.as_ref().is_some_and(|method| {
        !method.eq_ignore_ascii_case("none") && !method.eq_ignore_ascii_case("anonymous")
    });
    vec![
        (!is_authenticated, "REQUESTER_UNAUTHENTICATED"),
        (ruling.refuses(Part::Subject), "SUBJECT_NOT_AUTHORIZED"),
        (ruling.refuses(Part::Requester), "REQUESTER_NOT_AUTHORIZED"),
        (ruling.refuses(Part::Client), "CLIENT_NOT_AUTHORIZED"),
        (
            ruling.refuses(Part::AuthenticationMethod),
            "AUTHENTICATION_METHOD_NOT_ALLOWED",
        ),
    ]
}

fn recipient_reasons(request: &Asked, ruling: &Ruling) -> Vec<(bool, &'static str)> {
    if request.recipient.is_none() {
        return vec![(true, "RECIPIENT_AMBIGUOUS")];
    }
    vec![
        (ruling.refuses(Part::Recipient), "RECIPIENT_NOT_AUTHORIZED"),
        (
            ruling.refuses(Part::OnwardDisclosure),
            "ONWARD_DISCLOSURE_NOT_ALLOWED",
        ),
    ]
}

fn purpose_reasons(request: &Asked, ruling: &Ruling) -> [(bool, &'static str); 4] {
    let code = request.purpose_code.as_deref();
    let is_valid = code.is_some_and(|code| PurposeCode::new(code).is_some());
    [
        (code.is_none(), "PURPOSE_CODE_MISSING"),
        (code.is_some() && !is_valid, "PURPOSE_CODE_INVALID"),
        (
            is_valid && ruling.refuses(Part::Purpose),
            "PURPOSE_CODE_NOT_ALLOWED",
        ),
        (!request.has_valid_purpose, "PURPOSE_INVALID"),
    ]
}

fn has_wildcard(scope: &[String]) -> bool {
    scope.iter().any(|name| name == "*")
}
