//! Looking into recorded decisions, and at what another snapshot would make of them.

use std::fmt::Write as _;
use std::path::Path;

use cl_model::digest::Digest;
use cl_model::json::{self, Limits};
use cl_model::time::UnixTime;
use cl_wire::policy::v1 as wire;
use cl_wire::policy::v1::{
    DecisionDifference, DecisionExplanation, DecisionRange, ExplainDecisionRequest, ExplainedItem,
    GetSnapshotRequest, ListRecordedDecisionsRequest, MatchedRule, ReplayDecisionRequest,
    RuleEffect, ScopeTreatment, SimulateSnapshotRequest,
};
use serde_json::{Value, json};
use tonic::Status;

use super::diff::SnapshotDiff;
use super::difference::{self, difference_json};
use super::{MALFORMED, offline, time};
use crate::cli::tenant;
use crate::error::Error;
use crate::output::printable;
use crate::peers::{self, PolicyAdmin};
use crate::processes::POLICY_ENGINE;
use crate::receipts::moment;
use crate::session::Session;

const PAGE_SIZE: u32 = 200;

/// Which recorded decisions are meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Only decisions made at this time or later, such as 2030-01-01T00:00:00Z.
    #[arg(long, value_parser = moment)]
    since: Option<UnixTime>,
    /// Only decisions made before this time.
    #[arg(long, value_parser = moment)]
    until: Option<UnixTime>,
    /// At most so many, the newest of those.
    #[arg(long)]
    last: Option<usize>,
    /// The tenant of the decisions.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,
}

impl Which {
    fn range(&self) -> DecisionRange {
        DecisionRange {
            tenant: self.tenant.clone(),
            since: self.since.map(cl_wire::time::to_message),
            until: self.until.map(cl_wire::time::to_message),
        }
    }

    /// The size of the next page when so many are done; none when no more are wanted.
    fn page_size(&self, done: usize) -> Option<u32> {
        let left = self
            .last
            .map_or(usize::MAX, |last| last.saturating_sub(done));
        let size = u32::try_from(left).unwrap_or(u32::MAX).min(PAGE_SIZE);
        Some(size).filter(|size| *size > 0)
    }
}

pub(super) fn refused(status: &Status) -> Error {
    Error::of_status(POLICY_ENGINE.name, status)
}

pub(super) async fn explain(
    session: &Session,
    tenant: String,
    decision_ref: String,
) -> Result<(), Error> {
    let mut admin = peers::policy_admin(session)?;
    let request = ExplainDecisionRequest {
        tenant,
        decision_ref,
    };
    let answer = admin.explain_decision(request).await;
    let answer = answer.map_err(|status| refused(&status))?.into_inner();
    let explanation = answer.explanation.ok_or(MALFORMED)?;
    session.output.answer(&explanation_json(&explanation), || {
        explanation_text(&explanation)
    })
}

fn explanation_json(explanation: &DecisionExplanation) -> Value {
    let reasons = explanation.reasons.iter().map(|reason| {
        json!({
            "reason_code": reason.reason_code,
            "words": reason.words,
            "member": reason.member,
        })
    });
    let items = |items: &[ExplainedItem]| items.iter().map(item_json).collect::<Vec<_>>();
    json!({
        "decision_ref": explanation.decision_ref,
        "decided_at": time(explanation.decided_at.as_ref()),
        "decision": explanation.decision,
        "policy_version": explanation.policy_version,
        "policy_digest": explanation.policy_digest,
        "reasons": reasons.collect::<Vec<_>>(),
        "selectors": items(&explanation.selectors),
        "actions": items(&explanation.actions),
    })
}

fn item_json(item: &ExplainedItem) -> Value {
    let rules = item.rules.iter().map(|rule| {
        json!({
            "name": rule.name,
            "effect": effect(rule),
            "reason_code": rule.reason_code,
            "demands": rule.demands,
        })
    });
    json!({
        "name": item.name,
        "treatment": match item.treatment() {
            ScopeTreatment::Unspecified => "unknown",
            ScopeTreatment::Ordinary => "ordinary",
            ScopeTreatment::Gated => "gated",
            ScopeTreatment::Denied => "denied",
        },
        "granted": item.granted,
        "words": item.words,
        "rules": rules.collect::<Vec<_>>(),
    })
}

fn effect(rule: &MatchedRule) -> &'static str {
    match rule.effect() {
        RuleEffect::Unspecified => "unknown",
        RuleEffect::Permit => "permit",
        RuleEffect::Forbid => "forbid",
        RuleEffect::Demand => "demand",
    }
}

fn explanation_text(explanation: &DecisionExplanation) -> String {
    let mut text = format!(
        "{} under policy {} ({})\n",
        printable(&explanation.decision),
        printable(&explanation.policy_version),
        printable(&explanation.policy_digest),
    );
    for reason in &explanation.reasons {
        let member = reason.member.as_deref();
        let member = member.map_or_else(String::new, |member| format!(" [{member}]"));
        let line = format!("{}: {}{member}", reason.reason_code, reason.words);
        // Writing into a string does not fail.
        let _written = writeln!(text, "  {}", printable(&line));
    }
    for (title, items) in [
        ("selectors", &explanation.selectors),
        ("actions", &explanation.actions),
    ] {
        let _written = writeln!(text, "{title}");
        for item in items {
            let line = format!("{}: {}", item.name, item.words);
            let _written = writeln!(text, "  {}", printable(&line));
            for rule in &item.rules {
                let _written = writeln!(text, "    {}", printable(&rule_text(rule)));
            }
        }
    }
    text
}

fn rule_text(rule: &MatchedRule) -> String {
    let mut text = format!("{} {}", effect(rule), rule.name);
    if let Some(reason) = &rule.reason_code {
        let _written = write!(text, " ({reason})");
    }
    if !rule.demands.is_empty() {
        let _written = write!(text, ": {}", rule.demands.join(", "));
    }
    text
}

pub(super) async fn simulate(
    session: &Session,
    snapshot: Vec<u8>,
    which: &Which,
) -> Result<(), Error> {
    let mut admin = peers::policy_admin(session)?;
    let (mut evaluated, mut differences) = (0, Vec::new());
    let mut page_token = String::new();
    while let Some(page_size) = which.page_size(evaluated) {
        let request = SimulateSnapshotRequest {
            range: Some(which.range()),
            snapshot: snapshot.clone(),
            page_size,
            page_token,
        };
        let page = admin.simulate_snapshot(request).await;
        let page = page.map_err(|status| refused(&status))?.into_inner();
        evaluated += usize::try_from(page.evaluated).unwrap_or(usize::MAX);
        differences.extend(page.differences);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let document = json!({
        "evaluated": evaluated,
        "changed": differences.len(),
        "differences": differences.iter().map(difference_json).collect::<Vec<_>>(),
    });
    session
        .output
        .answer(&document, || differences_text(evaluated, &differences))?;
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::DecisionsChange {
        changed: differences.len(),
        evaluated,
    })
}

fn differences_text(evaluated: usize, differences: &[DecisionDifference]) -> String {
    let mut text = difference::table(differences);
    let _written = writeln!(
        text,
        "{} of {evaluated} recorded decisions would be different",
        differences.len()
    );
    text
}

pub(super) async fn diff(
    session: &Session,
    tenant: &str,
    one: &str,
    other: &str,
) -> Result<(), Error> {
    let one = snapshot(session, tenant, one).await?;
    let other = snapshot(session, tenant, other).await?;
    let diff = SnapshotDiff::between(&one, &other);
    let side = |snapshot: &Value| {
        json!({
            "version": snapshot["version"],
            "digest": Digest::of_json(snapshot).to_string(),
        })
    };
    let document = json!({
        "one": side(&one),
        "other": side(&other),
        "equal": one == other,
        "differences": diff.to_json(),
    });
    session.output.answer(&document, || {
        if one == other {
            "the two are the same\n".to_owned()
        } else {
            diff.to_text()
        }
    })
}

/// A snapshot by its digest, or of a file; either is one that an engine would accept.
async fn snapshot(session: &Session, tenant: &str, named: &str) -> Result<Value, Error> {
    if Digest::parse(named).is_none() {
        let path = Path::new(named);
        offline::check(path)?;
        return offline::read(path);
    }
    let mut admin = peers::policy_admin(session)?;
    let request = GetSnapshotRequest {
        tenant: tenant.to_owned(),
        digest: Some(named.to_owned()),
    };
    let answer = admin.get_snapshot(request).await;
    let bytes = answer
        .map_err(|status| refused(&status))?
        .into_inner()
        .snapshot;
    json::parse(&bytes, Limits::network(bytes.len())).map_err(|_| MALFORMED)
}

pub(super) async fn replay(
    session: &Session,
    decision: Option<String>,
    which: &Which,
) -> Result<(), Error> {
    let mut admin = peers::policy_admin(session)?;
    let decisions = match decision {
        Some(decision) => vec![decision],
        None => recorded(&mut admin, which).await?,
    };
    let mut unequal = Vec::new();
    for decision in &decisions {
        let request = ReplayDecisionRequest {
            tenant: which.tenant.clone(),
            decision_ref: decision.clone(),
            operation_id: session.operation_id()?,
        };
        let answer = admin.replay_decision(request).await;
        if !answer
            .map_err(|status| refused(&status))?
            .into_inner()
            .equal
        {
            unequal.push(decision.clone());
        }
    }
    let document = json!({"replayed": decisions.len(), "unequal": unequal});
    session.output.answer(&document, || {
        let mut text = String::new();
        for decision in &unequal {
            let _written = writeln!(text, "not as recorded: {}", printable(decision));
        }
        let equal = decisions.len() - unequal.len();
        let _written = writeln!(text, "{equal} of {} came out as recorded", decisions.len());
        text
    })?;
    if unequal.is_empty() {
        return Ok(());
    }
    Err(Error::ReplayUnequal {
        unequal: unequal.len(),
        replayed: decisions.len(),
    })
}

/// The ids of recorded decisions, newest first.
async fn recorded(admin: &mut PolicyAdmin, which: &Which) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    let mut page_token = String::new();
    while let Some(page_size) = which.page_size(found.len()) {
        let request = ListRecordedDecisionsRequest {
            range: Some(which.range()),
            page_size,
            page_token,
        };
        let page = admin.list_recorded_decisions(request).await;
        let page: wire::ListRecordedDecisionsResponse =
            page.map_err(|status| refused(&status))?.into_inner();
        found.extend(page.decisions.into_iter().map(|it| it.decision_ref));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    Ok(found)
}
