//! What is said about recorded decisions, as messages.

use cl_model::time::UnixTime;
use cl_policy_cedar::{Effect, Matched};
use cl_wire::policy::v1 as wire;
use cl_wire::time;
use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;

use super::parse::{bounded, invalid};
use super::{parse, shown};
use crate::core::difference::Difference;
use crate::core::explanation::{ExplainedItem, ExplainedReason};
use crate::error::Error;
use crate::service::{DecisionRange, Explained, PlaceOfDecision, Recorded, Simulated};

pub(super) fn range(message: Option<wire::DecisionRange>) -> Result<DecisionRange, Error> {
    let message = message.ok_or_else(|| invalid("range", "REQUIRED"))?;
    Ok(DecisionRange {
        tenant: parse::tenant(&message.tenant)?,
        since: instant("since", message.since.as_ref().map(time::read))?,
        until: instant("until", message.until.as_ref().map(time::read))?,
    })
}

/// A time that may be absent, and may be malformed.
fn instant(field: &'static str, read: Option<Option<UnixTime>>) -> Result<Option<UnixTime>, Error> {
    match read {
        None => Ok(None),
        Some(None) => Err(invalid(field, "NOT_A_TIME")),
        Some(Some(time)) => Ok(Some(time)),
    }
}

/// The token of the page after a place.
pub(super) fn page_token(place: PlaceOfDecision) -> String {
    let place = serde_json::json!([place.number, place.name]);
    BASE64URL_NOPAD.encode(place.to_string().as_bytes())
}

pub(super) fn place(token: &str) -> Result<Option<PlaceOfDecision>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    let place = read_place(token).ok_or_else(|| invalid("page_token", "NOT_A_PAGE_TOKEN"))?;
    Ok(Some(place))
}

fn read_place(token: &str) -> Option<PlaceOfDecision> {
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
    let value: Value = serde_json::from_slice(&bytes).ok()?;
    let [number, name] = value.as_array()?.as_slice() else {
        return None;
    };
    Some(PlaceOfDecision {
        number: number.as_u64()?,
        name: bounded(name.as_str()?)?.to_owned(),
    })
}

impl From<Recorded> for wire::RecordedDecisionSummary {
    fn from(recorded: Recorded) -> Self {
        Self {
            decision_ref: recorded.decision_id,
            decided_at: Some(time::to_message(recorded.decided_at)),
            decision: recorded.state.as_str().to_owned(),
            policy_digest: recorded.policy.to_string(),
        }
    }
}

impl From<Explained> for wire::DecisionExplanation {
    fn from(explained: Explained) -> Self {
        let explanation = explained.explanation;
        Self {
            decision_ref: explained.decision_id,
            decided_at: Some(time::to_message(explained.decided_at)),
            decision: explained.state.as_str().to_owned(),
            policy_version: explained.policy.version.as_str().to_owned(),
            policy_digest: explained.policy.digest.to_string(),
            reasons: explanation.reasons.into_iter().map(reason).collect(),
            selectors: explanation.selectors.into_iter().map(item).collect(),
            actions: explanation.actions.into_iter().map(item).collect(),
        }
    }
}

fn reason(reason: ExplainedReason) -> wire::ExplainedReason {
    wire::ExplainedReason {
        reason_code: reason.code,
        words: reason.words.to_owned(),
        member: reason.member.map(str::to_owned),
    }
}

fn item(item: ExplainedItem) -> wire::ExplainedItem {
    wire::ExplainedItem {
        name: item.name,
        treatment: shown::treatment(item.fate).into(),
        granted: item.is_granted,
        words: item.words.to_owned(),
        rules: item.rules.into_iter().map(rule).collect(),
    }
}

fn rule(rule: Matched) -> wire::MatchedRule {
    let effect = match rule.effect {
        Effect::Permit => wire::RuleEffect::Permit,
        Effect::Forbid => wire::RuleEffect::Forbid,
        Effect::Demand => wire::RuleEffect::Demand,
    };
    wire::MatchedRule {
        name: rule.name,
        effect: effect.into(),
        reason_code: rule.reason.map(|code| code.as_str().to_owned()),
        demands: rule.demands,
    }
}

impl From<Simulated> for wire::SimulateSnapshotResponse {
    fn from(simulated: Simulated) -> Self {
        let differences = simulated.differences.into_iter();
        Self {
            evaluated: u32::try_from(simulated.evaluated).unwrap_or(u32::MAX),
            differences: differences
                .map(|(id, decided_at, it)| difference(id, decided_at, it))
                .collect(),
            next_page_token: simulated.next.map(page_token).unwrap_or_default(),
        }
    }
}

pub(super) fn difference(
    decision_ref: String,
    decided_at: UnixTime,
    difference: Difference,
) -> wire::DecisionDifference {
    let other = difference.other.map(|state| state.as_str().to_owned());
    let members = difference.changed_members.into_iter();
    wire::DecisionDifference {
        decision_ref,
        decided_at: Some(time::to_message(decided_at)),
        recorded_decision: difference.recorded.as_str().to_owned(),
        other_decision: other.unwrap_or_default(),
        gained_selectors: difference.gained_selectors,
        lost_selectors: difference.lost_selectors,
        gained_actions: difference.gained_actions,
        lost_actions: difference.lost_actions,
        changed_members: members.map(str::to_owned).collect(),
    }
}
