//! How decisions would be different under another snapshot, shown.

use cl_wire::policy::v1::DecisionDifference;
use serde_json::{Value, json};

use super::time;
use crate::output;

/// For machines.
pub(super) fn difference_json(difference: &DecisionDifference) -> Value {
    json!({
        "decision_ref": difference.decision_ref,
        "decided_at": time(difference.decided_at.as_ref()),
        "recorded_decision": difference.recorded_decision,
        "other_decision": difference.other_decision,
        "gained_selectors": difference.gained_selectors,
        "lost_selectors": difference.lost_selectors,
        "gained_actions": difference.gained_actions,
        "lost_actions": difference.lost_actions,
        "changed_members": difference.changed_members,
    })
}

/// For people; nothing if there is none.
pub(super) fn table(differences: &[DecisionDifference]) -> String {
    if differences.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = differences.iter().map(row).collect();
    output::table(["DECISION", "RECORDED", "WOULD BE", "CHANGES"], &rows)
}

fn row(difference: &DecisionDifference) -> [String; 4] {
    let signed = |sign: &'static str, names: &[String]| {
        names
            .iter()
            .map(|name| format!("{sign}{name}"))
            .collect::<Vec<_>>()
    };
    let mut changes = signed("+", &difference.gained_selectors);
    changes.extend(signed("+", &difference.gained_actions));
    changes.extend(signed("-", &difference.lost_selectors));
    changes.extend(signed("-", &difference.lost_actions));
    changes.extend(signed("~", &difference.changed_members));
    let other = match difference.other_decision.as_str() {
        "" => "refused",
        other => other,
    };
    [
        difference.decision_ref.clone(),
        difference.recorded_decision.clone(),
        other.to_owned(),
        changes.join(" "),
    ]
}
