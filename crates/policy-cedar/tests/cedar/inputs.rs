//! Every mandatory input of an evaluation can decide (spec 9.1).

use cl_model::object::DecisionState;
use cl_model::policy::{Assurance, Preflight};
use cl_model::time::UnixTime;
use serde_json::{Value, json};

use crate::support::{PERMIT_ALL, Setting, compile, decide, document, granted, read, request};

type Change = fn(&mut Value, &mut Value, &mut Setting);

/// A condition that holds, and a change of request, snapshot or setting after which it does not.
const INPUTS: &[(&str, Change)] = &[
    ("principal == Agent::\"urn:agent:a\"", |it, _, _| {
        it["requester"]["principal"] = json!("urn:agent:b");
    }),
    ("principal in Group::\"agents\"", |it, _, _| {
        it["requester"]["principal"] = json!("urn:agent:b");
    }),
    (
        "principal.hasTag(\"team\") && principal.getTag(\"team\").contains(\"red\")",
        |_, it, _| {
            it["cedar"]["entities"][0]["tags"] = json!({"team": ["blue"]});
        },
    ),
    ("context.client == Client::\"urn:device:d\"", |it, _, _| {
        it["requester"]["client_instance"] = json!("urn:device:e");
    }),
    ("context.authenticated_by == \"oauth2\"", |it, _, _| {
        it["requester"]["authenticated_by"] = json!("mtls");
    }),
    ("context.assurance != Assurance::\"low\"", |_, _, it| {
        it.assurance = Assurance::Low;
    }),
    ("context.assurance_level >= 2", |_, _, it| {
        it.assurance = Assurance::Low
    }),
    (
        "context.subject == Subject::\"vault://subjects/s\"",
        |it, _, _| {
            it["subject_ref"] = json!("vault://subjects/t");
        },
    ),
    (
        "principal has acts_for && principal.acts_for.contains(context.subject)",
        |it, _, _| {
            it["subject_ref"] = json!("vault://subjects/t");
        },
    ),
    (
        "context.recipient == Recipient::\"urn:model:m\"",
        |it, _, _| {
            it["recipient"]["principal"] = json!("urn:model:n");
        },
    ),
    (
        "context.onward_disclosure == OnwardDisclosure::\"forbidden\"",
        |it, _, _| {
            it["recipient"]["onward_disclosure"] = json!("allowed");
        },
    ),
    ("context.purpose == \"draft.response\"", |it, _, _| {
        it["purpose_code"] = json!("plan.task");
    }),
    ("context.task == \"draft_only\"", |it, _, _| {
        it["task"]["kind"] = json!("send");
    }),
    ("context.retention_seconds <= 600", |it, _, _| {
        it["retention"]["max_seconds"] = json!(601);
    }),
    (
        "context.expires_at <= context.now.offset(duration(\"10m\"))",
        |it, _, _| {
            it["expires_at"] = json!("2027-03-01T09:10:00.001Z");
        },
    ),
    (
        "context.now < datetime(\"2027-03-01T09:00:00.001Z\")",
        |_, _, it| {
            it.now = UnixTime::parse("2027-03-01T09:00:01Z").unwrap();
        },
    ),
    (
        "context.receipt_level == ReceiptLevel::\"operation\"",
        |it, _, _| {
            it["receipt_requirement"]["level"] = json!("decision");
        },
    ),
    ("!context.rate_limited", |_, it, _| {
        it["cedar"]["rate_limit_ok"] = json!(false);
    }),
    ("context.anomaly_state == \"normal\"", |_, it, _| {
        it["cedar"]["anomaly_state"] = json!("elevated");
    }),
    ("context.anomaly_state != \"elevated\"", |_, it, setting| {
        // What the host has of the requester takes the place of what holds for everybody.
        it["cedar"]["anomaly_state"] = json!("other");
        setting.anomaly = Some("elevated");
    }),
];

fn is_granted(condition: &str, change: Option<Change>) -> bool {
    let text = format!("permit (principal, action, resource) when {{ {condition} }};");
    let mut snapshot = document(&[("only", &text)]);
    let mut asked = request(&["city"], &["draft"]);
    let mut setting = Setting::default();
    if let Some(change) = change {
        change(&mut asked, &mut snapshot, &mut setting);
    }
    let snapshot = read(&snapshot).expect("a snapshot");
    let granted = granted(&decide(&snapshot, &asked, &setting));
    assert!(granted.is_empty() || granted.len() == 2, "{condition}");
    !granted.is_empty()
}

#[test]
fn each_input_decides() {
    for (condition, change) in INPUTS {
        assert!(is_granted(condition, None), "{condition}");
        assert!(!is_granted(condition, Some(*change)), "{condition}");
    }
}

#[test]
fn labels_and_side_effects_decide() {
    let labels = compile(&[
        (
            "act",
            "permit (principal, action == Action::\"act\", resource);",
        ),
        (
            "label",
            "permit (principal, action == Action::\"disclose\", resource) \
             when { resource.label == Label::\"internal\" || resource.sensitivity > 3 };",
        ),
    ]);
    let asked = request(&["city", "date", "budget", "secret"], &["draft"]);
    let decision = decide(&labels, &asked, &Setting::default());
    let expected = ["act draft", "disclose date", "disclose secret"];
    assert!(granted(&decision).iter().eq(&expected));
    let effects = compile(&[
        (
            "see",
            "permit (principal, action == Action::\"disclose\", resource);",
        ),
        (
            "harmless",
            "permit (principal, action == Action::\"act\", resource) \
             when { resource.side_effect == SideEffect::\"none\" };",
        ),
    ]);
    let asked = request(&["city"], &["draft", "send"]);
    let decision = decide(&effects, &asked, &Setting::default());
    let expected = ["act draft", "disclose city"];
    assert!(
        granted(&decision).iter().eq(&expected),
        "unknown is irreversible"
    );
}

#[test]
fn a_missing_receipt_store_is_seen_and_denies_anyway() {
    let text = "permit (principal, action, resource) when { !context.receipts_available };";
    let snapshot = compile(&[("only", text)]);
    let asked = request(&["city"], &["draft"]);
    let available = decide(&snapshot, &asked, &Setting::default());
    assert!(granted(&available).is_empty());
    let setting = Setting {
        preflight: Preflight::Unavailable,
        ..Setting::default()
    };
    let unavailable = decide(&snapshot, &asked, &setting);
    assert!(granted(&unavailable).is_empty());
    let mut asked = asked;
    asked["receipt_requirement"] = json!({"level": "none", "required": false});
    assert_eq!(granted(&decide(&snapshot, &asked, &setting)).len(), 2);
}

#[test]
fn entities_that_only_a_policy_names_are_what_the_snapshot_says() {
    let policies = [
        PERMIT_ALL,
        (
            "lockdown",
            "forbid (principal, action, resource) \
             when { Subject::\"vault://subjects/house\".hasTag(\"lockdown\") };",
        ),
    ];
    let asked = request(&["city"], &["draft"]);
    let house = |tags: Value| {
        json!({
            "uid": {"type": "Subject", "id": "vault://subjects/house"},
            "attrs": {}, "parents": [], "tags": tags,
        })
    };
    for (tags, state) in [
        (json!({}), DecisionState::Allow),
        (json!({"lockdown": ["on"]}), DecisionState::Deny),
    ] {
        let mut document = document(&policies);
        let entities = document["cedar"]["entities"].as_array_mut().unwrap();
        entities.push(house(tags));
        let snapshot = read(&document).unwrap();
        let decision = decide(&snapshot, &asked, &Setting::default());
        assert_eq!(decision.decision, state);
    }
    // A name that is asked for and named at once is one entity.
    let twice = (
        "twice",
        "forbid (principal, action, resource) \
         when { Agent::\"urn:agent:a\".hasTag(\"none\") || \
                !(Agent::\"urn:agent:a\" in Group::\"agents\") };",
    );
    let snapshot = compile(&[PERMIT_ALL, twice]);
    let decision = decide(&snapshot, &asked, &Setting::default());
    assert_eq!(decision.decision, DecisionState::Allow);
}

#[test]
fn what_is_said_about_an_entity_that_only_a_policy_names_decides() {
    let mut snapshot = document(&[
        ("all", "permit (principal, action, resource);"),
        (
            "no-deputy",
            "@reason(\"DEPUTY_SUSPENDED\") forbid (principal, action, resource) \
             when { Agent::\"urn:agent:b\" has suspended && Agent::\"urn:agent:b\".suspended };",
        ),
    ]);
    for is_suspended in [false, true] {
        let deputy = json!({
            "uid": {"type": "Agent", "id": "urn:agent:b"},
            "attrs": {"suspended": is_suspended},
            "parents": [],
        });
        let described = snapshot["cedar"]["entities"].as_array_mut().unwrap();
        described.truncate(2);
        described.push(deputy);
        let snapshot = read(&snapshot).expect("a snapshot");
        // Of `draft` something is known, of `send` nothing.
        for action in ["draft", "send"] {
            let decision = decide(
                &snapshot,
                &request(&["city"], &[action]),
                &Setting::default(),
            );
            assert_eq!(granted(&decision).is_empty(), is_suspended, "{action}");
        }
    }
}
