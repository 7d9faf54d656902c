//! A list-style policy and its translation decide alike.

use cl_model::policy::Preflight;
use cl_model::time::UnixTime;
use cl_policy_cedar::{Untranslatable, translate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use crate::support::{ACTIONS, NOW, PREDICATES, Scope, Setting, document, outcome, read};

const POLICIES: u32 = 200;
const REQUESTS: usize = 50;

const PEOPLE: [&str; 3] = ["urn:agent:a", "urn:agent:b\"]", "urn:agent:ü\n"];
const CLIENTS: [&str; 2] = ["urn:device:d", "urn:device:e"];
const SUBJECTS: [&str; 2] = ["vault://subjects/s", "vault://subjects/t"];
const RECIPIENTS: [&str; 2] = ["urn:model:m", "urn:model:n"];
const METHODS: [&str; 2] = ["oauth2", "mtls"];
const ONWARD: [&str; 2] = ["forbidden", "allowed"];
const PURPOSES: [&str; 3] = ["draft.response", "plan.task", "x.example.re_view"];
const TASKS: [&str; 2] = ["draft_only", "plan"];
const TRANSFORMS: [&str; 4] = [
    "redact:city",
    "truncate:contact:9",
    "compress:task-facts",
    "redact:other",
];

/// Some of the names: mostly all of them, so that much is granted.
fn some<const N: usize>(names: [&'static str; N]) -> BoxedStrategy<Vec<&'static str>> {
    prop_oneof![
        3 => Just(names.to_vec()),
        1 => subsequence(names.to_vec(), 0..=N),
    ]
    .boxed()
}

/// Each name once: at once, after an approval, or not at all.
fn divided(
    names: Vec<&'static str>,
) -> impl Strategy<Value = (Vec<&'static str>, Vec<&'static str>)> {
    vec(0..4_u8, names.len()).prop_map(move |groups| {
        let of = |wanted: &[u8]| {
            let pairs = names.iter().zip(&groups);
            let found = pairs.filter(|(_, group)| wanted.contains(group));
            found.map(|(name, _)| *name).collect()
        };
        (of(&[0, 1]), of(&[2]))
    })
}

fn predicates() -> Vec<&'static str> {
    PREDICATES.iter().map(|(name, _)| *name).collect()
}

fn policy() -> impl Strategy<Value = Value> {
    let parties = (
        some(PEOPLE),
        some(CLIENTS),
        some(SUBJECTS),
        some(RECIPIENTS),
    );
    let circumstances = (
        proptest::option::of(some(METHODS)),
        proptest::option::of(some(ONWARD)),
        some(PURPOSES),
        some(TASKS),
    );
    let scope = (divided(predicates()), divided(ACTIONS.to_vec()));
    let transforms = vec(subsequence(TRANSFORMS.to_vec(), 0..3), PREDICATES.len());
    let terms = (
        select(vec!["ephemeral", "ephemeral", "ephemeral", "single_use"]),
        select(vec![60_u64, 600, 1_000_000]),
        select(vec![120_u64, 300, 9_007_199_254_740_991]),
        any::<bool>(),
        select(vec![
            json!(null),
            json!(true),
            json!("x"),
            json!(true),
            json!(false),
        ]),
        select(vec![
            json!("normal"),
            json!("normal"),
            json!(""),
            json!(null),
            json!("odd"),
            json!(0),
        ]),
    );
    (parties, circumstances, scope, transforms, terms).prop_map(
        |(parties, circumstances, scope, transforms, terms)| {
            let transforms: Map<String, Value> = predicates()
                .into_iter()
                .zip(transforms)
                .map(|(name, transforms)| (name.to_owned(), json!(transforms)))
                .collect();
            let ((selectors, gated_selectors), (actions, gated_actions)) = scope;
            let mut policy = json!({
                "allowed_requesters": parties.0,
                "allowed_clients": parties.1,
                "allowed_subjects": parties.2,
                "allowed_recipients": parties.3,
                "allowed_purpose_codes": circumstances.2,
                "allowed_tasks": circumstances.3,
                "allowed_selectors": selectors,
                "approval_required_selectors": gated_selectors,
                "allowed_actions": actions,
                "approval_required_actions": gated_actions,
                "transforms": transforms,
                "bundle_instructions": ["Read \"it\".", "Once."],
                "maximum_retention": {"mode": terms.0, "max_seconds": terms.1},
                "decision_ttl_seconds": terms.2,
                "require_receipts": terms.3,
                "rate_limit_ok": terms.4,
                "anomaly_state": terms.5,
            });
            if let Some(methods) = circumstances.0 {
                policy["allowed_authentication_methods"] = json!(methods);
            }
            if let Some(onward) = circumstances.1 {
                policy["allowed_onward_disclosure"] = json!(onward);
            }
            policy
        },
    )
}

/// The same snapshot in list style.
fn listed(policy: Value) -> Value {
    let mut snapshot = document(&[]);
    let members = snapshot.as_object_mut().unwrap();
    members.remove("cedar");
    members.insert("policy".to_owned(), policy);
    let clients = CLIENTS.map(|it| json!({"client_instance": it, "principals": PEOPLE}));
    snapshot["clients"] = json!(clients);
    snapshot
}

fn request() -> impl Strategy<Value = Value> {
    let parties = (
        select(PEOPLE.to_vec()),
        select(CLIENTS.to_vec()),
        select(SUBJECTS.to_vec()),
        select(RECIPIENTS.to_vec()),
    );
    let circumstances = (
        select(METHODS.to_vec()),
        select(ONWARD.to_vec()),
        select(PURPOSES.to_vec()),
        select(TASKS.to_vec()),
    );
    let names: Vec<&str> = predicates().into_iter().chain(["unknown"]).collect();
    let scope = (
        subsequence(names, 1..4).prop_shuffle(),
        subsequence(ACTIONS.to_vec(), 1..=3).prop_shuffle(),
    );
    let retention = (
        select(vec!["ephemeral", "ephemeral", "single_use"]),
        select(vec![30_u64, 300, 86_400]),
    );
    let receipts = select(vec!["none", "decision", "operation"]);
    (parties, circumstances, scope, retention, receipts).prop_map(
        |(parties, circumstances, (selectors, actions), retention, receipts)| {
            let mut request = crate::support::request(&selectors, &actions);
            request["issuer"]["id"] = json!(parties.0);
            request["requester"] = json!({
                "principal": parties.0,
                "authenticated_by": circumstances.0,
                "client_instance": parties.1,
            });
            request["subject_ref"] = json!(parties.2);
            request["recipient"] = json!({
                "principal": parties.3, "onward_disclosure": circumstances.1,
            });
            request["purpose_code"] = json!(circumstances.2);
            request["task"]["kind"] = json!(circumstances.3);
            request["retention"] = json!({"mode": retention.0, "max_seconds": retention.1});
            request["receipt_requirement"] = json!({
                "level": receipts, "required": receipts != "none",
            });
            request
        },
    )
}

fn setting() -> impl Strategy<Value = Setting> {
    let names = |names: Vec<&'static str>| {
        divided(names).prop_map(|(granted, declined)| {
            let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
            (owned(granted), owned(declined))
        })
    };
    let approval = (names(predicates()), names(ACTIONS.to_vec()));
    let approval = approval.prop_map(|(selectors, actions)| Scope {
        granted_selectors: selectors.0,
        declined_selectors: selectors.1,
        granted_actions: actions.0,
        declined_actions: actions.1,
    });
    let approval = prop_oneof![
        Just(None),
        approval.prop_map(Some),
        Just(Setting::default().approving().approval),
    ];
    let preflight = select(vec![
        Preflight::Available,
        Preflight::Available,
        Preflight::Absent,
    ]);
    let later = select(vec![0_u64, 200, 301, 601]);
    let anomaly = prop_oneof![5 => Just(None), 1 => Just(Some("elevated"))];
    let parts = (approval, preflight, later, anomaly);
    parts.prop_map(|(approval, preflight, later, anomaly)| Setting {
        anomaly,
        approval,
        preflight,
        now: UnixTime::parse(NOW).unwrap().plus_seconds(later),
        ..Setting::default()
    })
}

/// What both have to say alike.
const ALIKE: [&str; 10] = [
    "decision",
    "granted_selectors",
    "denied_selectors",
    "granted_actions",
    "denied_actions",
    "transform_requirements",
    "retention",
    "onward_disclosure",
    "receipt_requirement",
    "bundle_instructions",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(POLICIES))]
    #[test]
    fn ten_thousand_requests_are_decided_alike(
        policy in policy(),
        requests in vec((request(), setting()), REQUESTS),
    ) {
        let document = listed(policy);
        let list = read(&document).expect("a list-style snapshot");
        let cedar = read(&translate(&document).expect("a translation")).expect("a snapshot");
        prop_assert!(list.cedar().is_none() && cedar.cedar().is_some());
        for (request, setting) in requests {
            let by_list = outcome(&list, &request, &setting);
            let by_cedar = outcome(&cedar, &request, &setting);
            let (one, other) = (by_list.record.value(), by_cedar.record.value());
            for member in ALIKE {
                prop_assert_eq!(&one[member], &other[member], "{}: {} / {}", member, one, other);
            }
            if one["decision"] != "deny" {
                for member in ["expires_at", "approval_verification"] {
                    prop_assert_eq!(&one[member], &other[member]);
                }
            }
            prop_assert_eq!(by_list.limits, by_cedar.limits);
        }
    }
}

#[test]
fn only_a_list_style_snapshot_is_translated() {
    let document = document(&[]);
    assert_eq!(translate(&document), Err(Untranslatable::AlreadyCedar));
    assert!(matches!(
        translate(&json!({})),
        Err(Untranslatable::Refused(_))
    ));
}
