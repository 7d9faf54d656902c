//! Snapshots and requests that belong together, and their decisions.

use std::collections::BTreeSet;

use cl_model::object::{ContextRequest, PolicyDecision, ProtocolObject};
use cl_model::policy::{
    ApprovalRule, Asked, Assurance, Delegated, Evaluation, Outcome, Preflight, PresentedApproval,
    VerifierOutcome,
};
use cl_model::scalar::{Name, Predicate};
use cl_model::time::UnixTime;
use cl_policy_cedar::{CompiledSnapshot, InvalidSnapshot};
use serde_json::{Map, Value, json};

pub(crate) const NOW: &str = "2027-03-01T09:00:00Z";
pub(crate) const PREDICATES: [(&str, &str); 5] = [
    ("city", "public"),
    ("date", "internal"),
    ("contact", "private"),
    ("budget", "sensitive"),
    ("secret", "restricted"),
];
pub(crate) const ACTIONS: [&str; 3] = ["draft", "send", "pay"];

pub(crate) const PERMIT_ALL: (&str, &str) = ("all", "permit (principal, action, resource);");

/// A snapshot with these policies, and a little about entities.
pub(crate) fn document(policies: &[(&str, &str)]) -> Value {
    let policies: Map<String, Value> = policies
        .iter()
        .map(|(name, text)| ((*name).to_owned(), json!(text)))
        .collect();
    let predicates: Map<String, Value> = PREDICATES
        .iter()
        .map(|(name, label)| {
            (
                (*name).to_owned(),
                json!({"datatype": "text", "label": label}),
            )
        })
        .collect();
    json!({
        "snapshot_version": 1,
        "version": "v1",
        "cedar": {
            "policies": policies,
            "entities": [
                {
                    "uid": {"type": "Agent", "id": "urn:agent:a"},
                    "attrs": {"acts_for": [{"type": "Subject", "id": "vault://subjects/s"}]},
                    "parents": [{"type": "Group", "id": "agents"}],
                    "tags": {"team": ["red"]},
                },
                {
                    "uid": {"type": "Operation", "id": "draft"},
                    "attrs": {"side_effect": {"type": "SideEffect", "id": "none"}},
                    "parents": [],
                },
            ],
            "maximum_retention": {"mode": "ephemeral", "max_seconds": 3600},
            "allowed_onward_disclosure": ["allowed", "forbidden"],
        },
        "predicates": predicates,
        "resolve": {"date": {"projections": ["generalise"]}},
        "clients": [{"client_instance": "urn:device:d", "principals": ["urn:agent:a"]}],
        "approvers": [],
        "limits": {},
        "expires_at": null,
    })
}

pub(crate) fn compile(policies: &[(&str, &str)]) -> CompiledSnapshot {
    read(&document(policies)).expect("accepted policies")
}

pub(crate) fn read(document: &Value) -> Result<CompiledSnapshot, InvalidSnapshot> {
    CompiledSnapshot::read(document)
}

/// A request for these predicates and actions.
pub(crate) fn request(selectors: &[&str], actions: &[&str]) -> Value {
    let selectors = selectors.iter().map(|name| json!({"predicate": name}));
    json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "context_request",
        "id": "urn:cl:request:r",
        "created_at": NOW,
        "issuer": {"id": "urn:agent:a"},
        "subject_ref": "vault://subjects/s",
        "requester": {
            "principal": "urn:agent:a",
            "authenticated_by": "oauth2",
            "client_instance": "urn:device:d",
        },
        "recipient": {"principal": "urn:model:m", "onward_disclosure": "forbidden"},
        "purpose_code": "draft.response",
        "purpose": "draft a response",
        "task": {"kind": "draft_only", "user_visible": true},
        "selectors": selectors.collect::<Vec<_>>(),
        "requested_actions": actions,
        "retention": {"mode": "ephemeral", "max_seconds": 600},
        "receipt_requirement": {"level": "operation", "required": true},
        "expires_at": "2027-03-01T09:10:00Z",
    })
}

/// What a decision depends on beside the request and the snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) assurance: Assurance,
    pub(crate) preflight: Preflight,
    pub(crate) now: UnixTime,
    /// The anomaly state that the host has of the requester.
    pub(crate) anomaly: Option<&'static str>,
    /// What the subject has delegated for the purpose, until a time.
    pub(crate) delegated: Option<(Vec<&'static str>, &'static str)>,
    /// Granted and declined scope of an approval that was authenticated.
    pub(crate) approval: Option<Scope>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) granted_selectors: Vec<String>,
    pub(crate) granted_actions: Vec<String>,
    pub(crate) declined_selectors: Vec<String>,
    pub(crate) declined_actions: Vec<String>,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            assurance: Assurance::Substantial,
            preflight: Preflight::Available,
            now: UnixTime::parse(NOW).unwrap(),
            anomaly: None,
            delegated: None,
            approval: None,
        }
    }
}

impl Setting {
    /// An approval that grants all that there is.
    pub(crate) fn approving(mut self) -> Self {
        self.approval = Some(Scope {
            granted_selectors: PREDICATES.map(|(name, _)| name.to_owned()).to_vec(),
            granted_actions: ACTIONS.map(str::to_owned).to_vec(),
            ..Scope::default()
        });
        self
    }
}

pub(crate) fn outcome(snapshot: &CompiledSnapshot, request: &Value, setting: &Setting) -> Outcome {
    let request = ContextRequest::read(request).expect("a request");
    let asked = Asked::of(&request)
        .unwrap()
        .with_assurance(setting.assurance)
        .with_anomaly(setting.anomaly.and_then(Name::new))
        .with_delegated(setting.delegated.as_ref().map(|(names, until)| Delegated {
            predicates: names.iter().filter_map(|it| Predicate::new(*it)).collect(),
            until: UnixTime::parse(until).unwrap(),
        }));
    let approval = setting.approval.as_ref().map(|scope| {
        json!({
            "id": "urn:cl:approval:a",
            "request_digest": asked.digest().to_string(),
            "policy_digest": snapshot.identity().digest.to_string(),
            "expires_at": "2027-03-01T09:05:00Z",
            "granted_selectors": scope.granted_selectors,
            "granted_actions": scope.granted_actions,
            "declined_selectors": scope.declined_selectors,
            "declined_actions": scope.declined_actions,
        })
    });
    let approval = approval.unwrap_or(Value::Null);
    Evaluation {
        request: &asked,
        policy: snapshot.policy(),
        approval: &PresentedApproval::read(&approval, ApprovalRule::GrantOrDecline),
        approval_rule: ApprovalRule::GrantOrDecline,
        verifier: if approval.is_null() {
            VerifierOutcome::Absent
        } else {
            VerifierOutcome::Authenticated
        },
        preflight: setting.preflight,
        now: setting.now,
    }
    .decide()
    .expect("a decision")
}

pub(crate) fn decide(
    snapshot: &CompiledSnapshot,
    request: &Value,
    setting: &Setting,
) -> PolicyDecision {
    let outcome = outcome(snapshot, request, setting);
    PolicyDecision::read(outcome.record.value()).expect("a decision that fits its schema")
}

/// State, granted predicates, granted actions, and reasons, for a glance.
pub(crate) fn brief(decision: &PolicyDecision) -> String {
    let selectors = decision.granted_selectors.iter();
    let selectors: Vec<_> = selectors.map(|it| it.predicate.as_str()).collect();
    let actions: Vec<_> = decision
        .granted_actions
        .iter()
        .map(|it| it.as_str())
        .collect();
    let reasons: Vec<_> = decision.reason_codes.iter().map(|it| it.as_str()).collect();
    format!(
        "{} [{}] [{}] {}",
        decision.decision.as_str(),
        selectors.join(" "),
        actions.join(" "),
        reasons.join(" ")
    )
}

/// What is granted, predicates and actions together.
pub(crate) fn granted(decision: &PolicyDecision) -> BTreeSet<String> {
    let selectors = decision.granted_selectors.iter();
    let selectors = selectors.map(|it| format!("disclose {}", it.predicate));
    let actions = decision.granted_actions.iter();
    selectors
        .chain(actions.map(|it| format!("act {it}")))
        .collect()
}

/// Whether the decision refers to an approval.
pub(crate) fn is_bound(decision: &PolicyDecision) -> bool {
    let binding = decision.approval_binding.as_ref();
    binding.is_some_and(|binding| binding.get().is_some())
}
