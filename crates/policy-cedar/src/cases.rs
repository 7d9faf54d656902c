//! Test cases of a policy: requests, and what is expected of them.

mod read;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use cl_model::object::{ContextRequest, PolicyDecision, ProtocolObject};
use cl_model::policy::{
    ApprovalRule, Asked, Assurance, Delegated, Evaluation, Policy, Preflight, PresentedApproval,
    Question, Ruling, Terms, VerifierOutcome,
};
use cl_model::scalar::{Name, PolicyName};
use cl_model::time::UnixTime;
use serde_json::{Map, Value, json};

use crate::snapshot::CompiledSnapshot;

/// How long an approval of a case holds, in seconds.
const APPROVAL_SECONDS: u64 = 300;

/// A file of cases, read from a tree of JSON.
pub struct CaseFile {
    snapshot: String,
    cases: Vec<Case>,
}

/// Why a tree is no file of cases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {expected}")]
pub struct InvalidCases {
    /// Where, as a JSON Pointer.
    pub place: String,
    /// What was expected there.
    pub expected: &'static str,
}

struct Case {
    name: String,
    place: String,
    now: UnixTime,
    request: Value,
    assurance: Assurance,
    has_receipt_store: bool,
    /// What an operator has set for the requester.
    anomaly: Option<Name>,
    delegated: Option<Delegated>,
    approval: Option<Value>,
    expect: Expectation,
}

/// What is not stated may be anything.
struct Expectation {
    decision: String,
    granted_selectors: Option<BTreeSet<String>>,
    granted_actions: Option<BTreeSet<String>>,
    transforms: Option<BTreeSet<String>>,
    max_seconds: Option<u64>,
    onward_disclosure: Option<String>,
    /// Each of these is among the decision's.
    reasons: BTreeSet<String>,
}

/// What came of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// The case's name.
    pub name: String,
    /// What is not as expected, one sentence each.
    pub differences: Vec<String>,
}

/// What came of all cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Case by case.
    pub results: Vec<CaseResult>,
    /// How many policies there are.
    pub policies: usize,
    /// The policies that decided nothing in any case.
    pub unused: Vec<PolicyName>,
}

impl Report {
    /// Whether every case is as expected.
    pub fn has_passed(&self) -> bool {
        self.results.iter().all(|it| it.differences.is_empty())
    }
}

impl CaseFile {
    /// The path of the snapshot, relative to the file.
    pub fn snapshot(&self) -> &str {
        &self.snapshot
    }

    /// Evaluates every case by a snapshot, as the engine does for a caller that is who the request
    /// says.
    ///
    /// # Errors
    ///
    /// [`InvalidCases`] if a case states no request that an engine would evaluate.
    pub fn run(&self, snapshot: &CompiledSnapshot) -> Result<Report, InvalidCases> {
        let traced = Traced {
            snapshot,
            used: Mutex::new(BTreeSet::new()),
        };
        let results = self.cases.iter().map(|case| case.run(&traced));
        let results = results.collect::<Result<_, _>>()?;
        let used = traced.used.into_inner();
        let used = used.unwrap_or_else(PoisonError::into_inner);
        let names = snapshot.cedar().into_iter().flat_map(|it| it.names());
        let names: Vec<&PolicyName> = names.collect();
        Ok(Report {
            results,
            policies: names.len(),
            unused: names
                .into_iter()
                .filter(|name| !used.contains(*name))
                .cloned()
                .collect(),
        })
    }
}

impl Case {
    fn run(&self, traced: &Traced<'_>) -> Result<CaseResult, InvalidCases> {
        let refuse = |expected| InvalidCases {
            place: self.place.clone(),
            expected,
        };
        let snapshot = traced.snapshot;
        let request = ContextRequest::read(&self.request)
            .map_err(|_| refuse("a context request that fits its schema"))?;
        let requester = &request.requester;
        let denials = snapshot.denials(
            &request,
            &requester.client_instance,
            &requester.principal,
            self.assurance,
            self.now,
        );
        let asked = Asked::of(&request).map_err(|_| refuse("a request that can be evaluated"))?;
        let asked = asked
            .denied_for(denials)
            .with_assurance(self.assurance)
            .with_anomaly(self.anomaly.clone())
            .with_delegated(self.delegated.clone());
        let approval = self.approval(&asked, snapshot);
        let record = Evaluation {
            request: &asked,
            policy: traced,
            approval: &approval,
            approval_rule: ApprovalRule::GrantOrDecline,
            verifier: match approval {
                PresentedApproval::None => VerifierOutcome::Absent,
                PresentedApproval::Malformed | PresentedApproval::Approval(_) => {
                    VerifierOutcome::Authenticated
                }
            },
            preflight: if self.has_receipt_store {
                Preflight::Available
            } else {
                Preflight::Unavailable
            },
            now: self.now,
        }
        .evaluate()
        .map_err(|_| refuse("a request that the snapshot can answer"))?;
        let decision = PolicyDecision::read(record.value())
            .map_err(|_| refuse("a request that the snapshot can answer"))?;
        Ok(CaseResult {
            name: self.name.clone(),
            differences: self.expect.differences(&decision),
        })
    }

    /// The approval of a case, bound to its request and the snapshot.
    fn approval(&self, asked: &Asked, snapshot: &CompiledSnapshot) -> PresentedApproval {
        let Some(scope) = &self.approval else {
            return PresentedApproval::None;
        };
        let mut members: Map<String, Value> = scope.as_object().cloned().unwrap_or_default();
        for (name, value) in [
            ("id", json!("urn:cl:approval:case")),
            ("request_digest", json!(asked.digest().to_string())),
            (
                "policy_digest",
                json!(snapshot.identity().digest.to_string()),
            ),
            (
                "expires_at",
                json!(self.now.plus_seconds(APPROVAL_SECONDS).to_string()),
            ),
        ] {
            members.insert(name.to_owned(), value);
        }
        PresentedApproval::read(&Value::Object(members), ApprovalRule::GrantOrDecline)
    }
}

impl Expectation {
    fn differences(&self, decision: &PolicyDecision) -> Vec<String> {
        let set = |names: &mut dyn Iterator<Item = &str>| -> BTreeSet<String> {
            names.map(str::to_owned).collect()
        };
        let selectors = decision.granted_selectors.iter();
        let selectors = set(&mut selectors.map(|it| it.predicate.as_str()));
        let actions = set(&mut decision.granted_actions.iter().map(|it| it.as_str()));
        let transforms = decision.transform_requirements.iter();
        let transforms = set(&mut transforms.map(|it| it.as_str()));
        let reasons = set(&mut decision.reason_codes.iter().map(|it| it.as_str()));
        let seconds = decision.retention.max_seconds.get().unsigned_abs();
        let onward = decision.onward_disclosure.as_str();
        let mut differences = Vec::new();
        let mut expect = |what: &str, is_met: bool, wanted: String, found: String| {
            if !is_met {
                differences.push(format!("{what}: expected {wanted}, found {found}"));
            }
        };
        let state = decision.decision.as_str();
        expect(
            "decision",
            self.decision == state,
            self.decision.clone(),
            state.to_owned(),
        );
        for (what, wanted, found) in [
            ("granted_selectors", &self.granted_selectors, &selectors),
            ("granted_actions", &self.granted_actions, &actions),
            ("transforms", &self.transforms, &transforms),
        ] {
            if let Some(wanted) = wanted {
                expect(what, wanted == found, list(wanted), list(found));
            }
        }
        if let Some(wanted) = self.max_seconds {
            expect(
                "max_seconds",
                wanted == seconds,
                wanted.to_string(),
                seconds.to_string(),
            );
        }
        if let Some(wanted) = &self.onward_disclosure {
            expect(
                "onward_disclosure",
                wanted == onward,
                wanted.clone(),
                onward.to_owned(),
            );
        }
        let are_there = self.reasons.is_subset(&reasons);
        expect("reasons", are_there, list(&self.reasons), list(&reasons));
        differences
    }
}

fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    format!("[{}]", names.join(", "))
}

/// A snapshot's policy that notes which of its policies decided.
#[derive(Debug)]
struct Traced<'a> {
    snapshot: &'a CompiledSnapshot,
    used: Mutex<BTreeSet<PolicyName>>,
}

impl Policy for Traced<'_> {
    fn terms(&self) -> &Terms {
        self.snapshot.policy().terms()
    }

    fn rule(&self, question: &Question<'_>) -> Ruling {
        let Some(policy) = self.snapshot.cedar() else {
            return self.snapshot.policy().rule(question);
        };
        let (ruling, used) = policy.rule_traced(question);
        let mut all = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(used);
        ruling
    }
}
