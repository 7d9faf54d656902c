//! What the reasons of decisions mean, in words, and where in a snapshot they come from.

/// The words of a reason, and the member of the snapshot that it comes from, if it is one.
pub(super) struct Meaning {
    pub(super) words: &'static str,
    pub(super) member: Option<&'static str>,
}

/// The meaning of a reason; a code that is not the evaluation's is the policy's own.
pub(super) fn meaning(code: &str) -> Meaning {
    let found = MEANINGS.iter().find(|(known, _, _)| *known == code);
    match found {
        Some((_, member, words)) => Meaning {
            words,
            member: Some(*member).filter(|member| !member.is_empty()),
        },
        None => Meaning {
            words: "A rule of the policy gives this reason.",
            member: None,
        },
    }
}

const MEANINGS: &[(&str, &str, &str)] = &[
    (
        "REQUEST_ALLOWED",
        "",
        "Everything that was asked for is granted.",
    ),
    (
        "SCOPE_REDUCED",
        "",
        "Less is granted than was asked for, or in a reduced form.",
    ),
    (
        "SELECTORS_WITHHELD",
        "",
        "Some of the requested predicates are not granted.",
    ),
    (
        "ACTIONS_WITHHELD",
        "",
        "Some of the requested actions are not granted.",
    ),
    (
        "RETENTION_REDUCED",
        "maximum_retention",
        "Context may be held for less time than was asked for.",
    ),
    ("APPROVAL_REQUIRED", "", "A person has to approve first."),
    (
        "APPROVAL_BINDING_INVALID",
        "",
        "The approval is for another request or another policy.",
    ),
    ("APPROVAL_EXPIRED", "", "The approval has ended."),
    (
        "APPROVAL_SCOPE_INCOMPLETE",
        "",
        "The approval does not cover all that needs one.",
    ),
    ("APPROVAL_UNVERIFIED", "", "The approval was not verified."),
    ("APPROVAL_DECLINED", "", "The person declined everything."),
    (
        "NO_SELECTOR_GRANTED",
        "",
        "None of the requested predicates is granted.",
    ),
    (
        "NO_ACTION_GRANTED",
        "",
        "None of the requested actions is granted.",
    ),
    (
        "UNSUPPORTED_REQUEST",
        "",
        "The request is of a kind or version that is not supported.",
    ),
    ("REQUEST_ID_MISSING", "", "The request has no id."),
    ("SUBJECT_MISSING", "", "The request names no subject."),
    (
        "SUBJECT_NOT_AUTHORIZED",
        "allowed_subjects",
        "The policy does not list the subject.",
    ),
    (
        "REQUESTER_UNAUTHENTICATED",
        "",
        "The requester is not authenticated.",
    ),
    (
        "REQUESTER_FACTS_MISMATCH",
        "",
        "The request names another requester than was authenticated.",
    ),
    (
        "REQUESTER_NOT_AUTHORIZED",
        "allowed_requesters",
        "The policy does not list the requester.",
    ),
    (
        "CLIENT_NOT_AUTHORIZED",
        "allowed_clients",
        "The policy does not list the requester's client.",
    ),
    (
        "CLIENT_NOT_REGISTERED",
        "clients",
        "The client is not registered for the requester.",
    ),
    (
        "AUTHENTICATION_METHOD_NOT_ALLOWED",
        "allowed_authentication_methods",
        "The policy does not list how the requester authenticated.",
    ),
    (
        "ASSURANCE_TOO_LOW",
        "limits.min_assurance",
        "The requester's credential is not good enough.",
    ),
    (
        "RECIPIENT_AMBIGUOUS",
        "",
        "The request names no single recipient.",
    ),
    (
        "RECIPIENT_NOT_AUTHORIZED",
        "allowed_recipients",
        "The policy does not list the recipient.",
    ),
    (
        "ONWARD_DISCLOSURE_NOT_ALLOWED",
        "allowed_onward_disclosure",
        "The request may not say this about passing context on.",
    ),
    (
        "PURPOSE_CODE_MISSING",
        "",
        "The request has no purpose code.",
    ),
    (
        "PURPOSE_CODE_INVALID",
        "",
        "The purpose code is not a registered one.",
    ),
    (
        "PURPOSE_CODE_NOT_ALLOWED",
        "allowed_purpose_codes",
        "The policy does not list the purpose.",
    ),
    (
        "PURPOSE_INVALID",
        "",
        "The purpose in words is too short or too long.",
    ),
    (
        "TASK_NOT_ALLOWED",
        "allowed_tasks",
        "The policy does not list the kind of task.",
    ),
    ("REQUEST_EXPIRED", "", "The request has ended."),
    (
        "REQUEST_EXPIRY_INVALID",
        "",
        "The request does not say when it ends.",
    ),
    (
        "REQUEST_LIFETIME_EXCEEDED",
        "limits.max_lifetime_seconds",
        "The request lasts too long.",
    ),
    (
        "RETENTION_MODE_NOT_ALLOWED",
        "maximum_retention",
        "Context may not be held in this way.",
    ),
    (
        "RATE_LIMIT_EXCEEDED",
        "rate_limit_ok",
        "The requester has asked too often.",
    ),
    (
        "ANOMALY_STATE_BLOCKED",
        "anomaly_state",
        "The anomaly state blocks requests.",
    ),
    ("SELECTORS_EMPTY", "", "The request asks for no predicate."),
    ("ACTIONS_EMPTY", "", "The request asks for no action."),
    (
        "SELECTOR_LIMIT_EXCEEDED",
        "limits.max_selectors",
        "The request asks for too many predicates.",
    ),
    (
        "ACTION_LIMIT_EXCEEDED",
        "limits.max_actions",
        "The request asks for too many actions.",
    ),
    (
        "SELECTOR_WILDCARD_NOT_ALLOWED",
        "",
        "A request has to name each predicate.",
    ),
    (
        "ACTION_WILDCARD_NOT_ALLOWED",
        "",
        "A request has to name each action.",
    ),
    (
        "RECEIPT_PREFLIGHT_FAILED",
        "",
        "Required receipts could not be written.",
    ),
    (
        "POLICY_SNAPSHOT_EXPIRED",
        "expires_at",
        "The policy snapshot has ended.",
    ),
    (
        "POLICY_EVALUATION_FAILED",
        "",
        "A policy failed while it was evaluated, which denies.",
    ),
];
