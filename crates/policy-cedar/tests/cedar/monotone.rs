//! Less never grants more, and more demands never do either.
//!
//! A policy can be written so that a weaker credential, or a later time, opens something. These
//! policies ask for at least an assurance and for at most a time, as permits should, and the other
//! way round in what denies; so the properties are those of everything but the author.

use cl_model::policy::{Assurance, Limits};
use cl_model::time::UnixTime;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use crate::support::{
    ACTIONS, NOW, PREDICATES, Setting, compile, decide, granted, outcome, request,
};

fn head() -> impl Strategy<Value = String> {
    let named = |names: Vec<String>| select(names);
    let predicates = PREDICATES.map(|(name, _)| {
        format!("principal, action == Action::\"disclose\", resource == Predicate::\"{name}\"")
    });
    let operations =
        ACTIONS.map(|name| format!("principal, action, resource == Operation::\"{name}\""));
    prop_oneof![
        3 => Just("principal, action, resource".to_owned()),
        2 => Just("principal, action == Action::\"act\", resource".to_owned()),
        1 => Just("principal in Group::\"agents\", action, resource".to_owned()),
        4 => named(predicates.to_vec()),
        2 => named(operations.to_vec()),
    ]
}

fn permit() -> impl Strategy<Value = String> {
    let condition = select(vec![
        "",
        "",
        "when { context.assurance_level >= 2 }",
        "when { context.assurance_level >= 3 }",
        "when { context.now < datetime(\"2027-03-01T09:02:00Z\") }",
        "when { context.purpose == \"draft.response\" }",
    ]);
    (head(), condition).prop_map(|(head, condition)| format!("permit ({head}) {condition};"))
}

fn denying_condition() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "when { context.assurance_level < 2 }",
        "unless { context.assurance == Assurance::\"high\" }",
        "when { context.now > datetime(\"2027-03-01T09:01:00Z\") }",
        "when { context.retention_seconds > 300 }",
        "when { context.purpose == \"plan.task\" }",
    ])
}

fn forbid() -> impl Strategy<Value = String> {
    (head(), denying_condition())
        .prop_map(|(head, condition)| format!("@reason(\"NO\") forbid ({head}) {condition};"))
}

fn demand() -> impl Strategy<Value = String> {
    let annotations = vec(
        select(vec![
            "@approval",
            "@onward(\"forbidden\")",
            "@max_retention(\"60\")",
            "@max_retention(\"300\")",
            "@transform(\"redact:a,compress:task-facts\")",
            "@transform(\"truncate:contact:9\")",
            "@max_label(\"public\")",
            "@max_label(\"private\")",
            "@min_trust(\"verified\")",
            "@min_confidence(\"0.5\")",
        ]),
        1..3,
    );
    let key = |text: &str| text.split('(').next().unwrap_or_default().to_owned();
    (head(), denying_condition(), annotations).prop_map(
        move |(head, condition, mut annotations)| {
            annotations.sort_unstable();
            annotations.dedup_by_key(|text| key(text));
            let annotations = annotations.join(" ");
            format!("{annotations} @reason(\"WHY\") forbid ({head}) {condition};")
        },
    )
}

/// Something after which less may be granted, and never more.
#[derive(Clone, Debug)]
enum Step {
    WithoutPermit(usize),
    MoreForbid(String),
    MoreDemand(String),
    LowerAssurance,
    Later(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<usize>().prop_map(Step::WithoutPermit),
        forbid().prop_map(Step::MoreForbid),
        demand().prop_map(Step::MoreDemand),
        Just(Step::LowerAssurance),
        (1..400_u64).prop_map(Step::Later),
    ]
}

#[derive(Clone, Debug)]
struct Situation {
    permits: Vec<String>,
    others: Vec<String>,
    setting: Setting,
}

impl Situation {
    fn after(&self, step: &Step) -> Self {
        let mut next = self.clone();
        match step {
            Step::WithoutPermit(index) => {
                next.permits.remove(index % self.permits.len());
            }
            Step::MoreForbid(text) | Step::MoreDemand(text) => next.others.push(text.clone()),
            Step::LowerAssurance => next.setting.assurance = Assurance::Low,
            Step::Later(seconds) => next.setting.now = self.setting.now.plus_seconds(*seconds),
        }
        next
    }

    fn compile(&self) -> cl_policy_cedar::CompiledSnapshot {
        let texts = self.permits.iter().chain(&self.others);
        let named: Vec<(String, &str)> = texts
            .enumerate()
            .map(|(index, text)| (format!("p{index}"), text.as_str()))
            .collect();
        let named: Vec<(&str, &str)> = named
            .iter()
            .map(|(name, text)| (name.as_str(), *text))
            .collect();
        compile(&named)
    }
}

fn situation() -> impl Strategy<Value = Situation> {
    (
        vec(permit(), 1..4),
        vec(prop_oneof![forbid(), demand(), demand()], 0..4),
        select(Assurance::ALL.to_vec()),
    )
        .prop_map(|(permits, others, assurance)| Situation {
            permits,
            others,
            setting: Setting {
                assurance,
                now: UnixTime::parse(NOW).unwrap(),
                ..Setting::default()
            },
        })
}

fn asked() -> impl Strategy<Value = Value> {
    let names: Vec<&str> = PREDICATES.iter().map(|(name, _)| *name).collect();
    let scope = (
        proptest::sample::subsequence(names, 1..=4),
        proptest::sample::subsequence(ACTIONS.to_vec(), 1..=3),
    );
    let onward = select(vec!["forbidden", "allowed"]);
    (scope, onward).prop_map(|((selectors, actions), onward)| {
        let mut request = request(&selectors, &actions);
        request["recipient"]["onward_disclosure"] = onward.into();
        request
    })
}

/// Whether limits let out nothing that others would hold back.
fn are_within(limits: &Limits, others: &Limits) -> bool {
    let mut both = limits.clone();
    both.restrict(others);
    both == *limits
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn nothing_grants_more(
        before in situation(),
        step in step(),
        requests in vec(asked(), 6),
    ) {
        let after = before.after(&step);
        let (one, other) = (before.compile(), after.compile());
        for request in requests {
            let most = outcome(&one, &request, &before.setting.clone().approving());
            let rest = outcome(&other, &request, &after.setting.clone().approving());
            let at_most = decide(&one, &request, &before.setting.clone().approving());
            let granted_now = decide(&other, &request, &after.setting.clone().approving());
            prop_assert!(granted(&granted_now).is_subset(&granted(&at_most)), "{:?}", step);
            // Without an approval nothing is granted that an approval would not grant too.
            let unapproved = decide(&other, &request, &after.setting);
            prop_assert!(granted(&unapproved).is_subset(&granted(&at_most)), "{:?}", step);
            for (name, limits) in &rest.limits {
                prop_assert!(are_within(limits, &most.limits[name]), "{:?}: {}", step, name);
            }
            if granted_now.decision.allows() {
                prop_assert!(granted_now.retention.max_seconds <= at_most.retention.max_seconds);
                prop_assert!(granted_now.onward_disclosure >= at_most.onward_disclosure);
                let request_ends = request["expires_at"].as_str().and_then(UnixTime::parse);
                prop_assert!(Some(granted_now.expires_at.instant()) <= request_ends);
            }
        }
    }

    #[test]
    fn a_reduced_decision_is_strictly_less(
        situation in situation(),
        requests in vec(asked(), 6),
    ) {
        let snapshot = situation.compile();
        for request in requests {
            let found = outcome(&snapshot, &request, &situation.setting);
            let decision = decide(&snapshot, &request, &situation.setting);
            let asked = request["selectors"].as_array().unwrap().len()
                + request["requested_actions"].as_array().unwrap().len();
            let is_less = granted(&decision).len() < asked
                || decision.retention.max_seconds.get() < 600
                || !decision.transform_requirements.is_empty()
                || decision.onward_disclosure.as_str() != request["recipient"]["onward_disclosure"]
                || found.limits.contains_key("date")
                || found.limits.values().any(|limits| *limits != Limits::default());
            match decision.decision.as_str() {
                "allow" => prop_assert!(granted(&decision).len() == asked
                    && decision.retention.max_seconds.get() == 600
                    && decision.transform_requirements.is_empty()),
                "allow_with_reductions" => prop_assert!(is_less, "{}", found.record.text()),
                _ => prop_assert!(granted(&decision).is_empty() && found.limits.is_empty()),
            }
        }
    }
}
