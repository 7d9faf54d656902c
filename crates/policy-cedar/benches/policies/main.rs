//! What a decision under policies in Cedar costs, as ratios to the bare Cedar calls that it cannot do
//! without. See `docs/benchmarks.md` for the method.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark stops at the first surprise and talks to a terminal"
)]

mod bare;
mod rego;
#[path = "../../../model/benches/core/report.rs"]
mod report;
mod rules;

use std::hint::black_box;
use std::time::Duration;

use cl_model::policy::{
    ApprovalRule, Asked, Assurance, Evaluation, Outcome, Preflight, PresentedApproval,
    VerifierOutcome,
};
use cl_model::time::UnixTime;
use cl_policy_cedar::CompiledSnapshot;

use crate::bare::Bare;
use crate::rego::Rego;
use crate::report::{Goal, Row, publish, quantile, start};
use crate::rules::{NOW, UNRELATED};

/// Rounds of one row, each of which times one call of every side: a reading must be short beside a
/// scheduler's time slice, or a busy machine would slow the longer one more.
const ROUNDS: usize = 4000;
const WARM_UP: usize = 200;

/// Everything that a decision depends on.
struct Inputs {
    snapshot: CompiledSnapshot,
    asked: Asked,
    approval: PresentedApproval,
    now: UnixTime,
}

impl Inputs {
    fn new(unrelated: usize) -> Self {
        let snapshot = rules::snapshot(&rules::policies(unrelated));
        let snapshot = CompiledSnapshot::read(&snapshot).expect("accepted policies");
        let asked = Asked::read(&rules::request()).expect("a request");
        let approval = rules::approval(&asked, &snapshot.identity().digest.to_string());
        Self {
            approval: PresentedApproval::read(&approval, ApprovalRule::GrantOrDecline),
            now: UnixTime::parse(NOW).expect("a time"),
            snapshot,
            asked,
        }
    }

    /// A whole decision: what the policy says, what the approval opens, and the finished record.
    fn decide(&self) -> Outcome {
        let asked = self.asked.clone().with_assurance(Assurance::Substantial);
        let evaluation = Evaluation {
            request: &asked,
            policy: self.snapshot.policy(),
            approval: &self.approval,
            approval_rule: ApprovalRule::GrantOrDecline,
            verifier: VerifierOutcome::Authenticated,
            preflight: Preflight::Available,
            now: self.now,
        };
        evaluation.decide().expect("a decision")
    }
}

/// The times of several operations, one call of each in turns.
fn in_turns<const N: usize>(mut operations: [&mut dyn FnMut(); N]) -> [Vec<Duration>; N] {
    let mut times = [(); N].map(|()| Vec::with_capacity(ROUNDS));
    for round in 0..WARM_UP + ROUNDS {
        for (operation, taken) in operations.iter_mut().zip(&mut times) {
            let start = start();
            operation();
            let elapsed = start.elapsed();
            if round >= WARM_UP {
                taken.push(elapsed);
            }
        }
    }
    times
}

struct Figure<'a> {
    name: &'a str,
    goal: Option<f64>,
    ours: Duration,
    floor: Duration,
    floor_is: &'a str,
}

impl From<Figure<'_>> for Row {
    fn from(figure: Figure<'_>) -> Self {
        Self {
            name: figure.name.to_owned(),
            goal: figure.goal.map(Goal::AtMost),
            ours: figure.ours.into(),
            floor: figure.floor.into(),
            floor_is: figure.floor_is.to_owned(),
            note: None,
        }
    }
}

fn main() {
    let (few, many) = (Inputs::new(0), Inputs::new(UNRELATED));
    let (bare_few, bare_many) = (
        Bare::new(&rules::policies(0)),
        Bare::new(&rules::policies(UNRELATED)),
    );
    let mut rego = Rego::new();
    // All of them have to say the same, or their times mean nothing.
    let granted = rules::granted(&few.decide());
    assert!(granted.len() > 5, "{granted:?}");
    assert_eq!(granted, rules::granted(&many.decide()));
    assert_eq!(granted, bare_few.granted());
    assert_eq!(granted, bare_many.granted());
    assert_eq!(granted, rego.granted());
    println!(
        "{} policies that can match, {UNRELATED} that cannot; {} items, {} granted, {} calls of bare Cedar",
        rules::policies(0).len(),
        rules::SELECTORS.len() + rules::ACTIONS.len(),
        granted.len(),
        bare_few.calls(),
    );
    let [mut few, mut many, mut bare_few, mut bare_many, mut rego] = in_turns([
        &mut || drop(black_box(few.decide())),
        &mut || drop(black_box(many.decide())),
        &mut || drop(black_box(bare_few.ask())),
        &mut || drop(black_box(bare_many.ask())),
        &mut || drop(black_box(rego.evaluate())),
    ]);
    let [few_p50, many_p50, bare_p50, bare_many_p50, rego_p50] = [
        &mut few,
        &mut many,
        &mut bare_few,
        &mut bare_many,
        &mut rego,
    ]
    .map(|times| quantile(times, 0.5));
    let rows = [
        Figure {
            name: "decision in Cedar, p50",
            goal: Some(2.0),
            ours: few_p50,
            floor: bare_p50,
            floor_is: "the bare `is_authorized` calls",
        },
        Figure {
            name: "decision in Cedar, p99",
            goal: Some(10.0),
            ours: quantile(&mut few, 0.99),
            floor: few_p50,
            floor_is: "its own p50",
        },
        Figure {
            name: "decision, 1,000 unrelated policies more",
            goal: Some(1.2),
            ours: many_p50,
            floor: few_p50,
            floor_is: "a decision without them",
        },
        Figure {
            name: "bare Cedar, 1,000 unrelated policies more",
            goal: None,
            ours: bare_many_p50,
            floor: bare_p50,
            floor_is: "bare Cedar without them",
        },
        Figure {
            name: "decision in Cedar, p50",
            goal: None,
            ours: few_p50,
            floor: rego_p50,
            floor_is: "the same rules in Rego, without approval binding and record",
        },
        Figure {
            name: "bare Cedar, p50",
            goal: None,
            ours: bare_p50,
            floor: rego_p50,
            floor_is: "the same rules in Rego",
        },
    ];
    publish(&rows.map(Row::from));
}
