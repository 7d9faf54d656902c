//! Recorded decisions, looked into by an operator.

use std::fs;

use serde_json::{Value, json};

use crate::support::{TestHome, until};

/// The first policy under another version, changed.
fn changed(home: &TestHome, version: &str, change: impl Fn(&mut Value)) -> String {
    let text = fs::read(home.path("policy/default.json")).unwrap();
    let mut snapshot: Value = serde_json::from_slice(&text).unwrap();
    snapshot["version"] = json!(version);
    change(&mut snapshot);
    home.write(&format!("{version}.json"), &format!("{snapshot:#}"))
}

#[test]
fn decisions_are_explained_replayed_and_tried_under_another_policy() {
    let home = TestHome::new();
    let _up = home.up();
    let file = home.example("request");
    let asked = home.json(&["request", &file]);
    let id = asked["decision"]["id"].as_str().unwrap();

    let explained = home.json(&["policy", "explain", id]);
    assert_eq!(explained["decision"], "allow_with_reductions");
    let selectors = explained["selectors"].as_array().unwrap();
    let denied = selectors.iter().find(|it| it["name"] == "amount_due");
    assert_eq!(denied.unwrap()["words"], "No rule permits it.");
    let text = home.ok(&["policy", "explain", id]);
    assert!(text.contains("SCOPE_REDUCED: "), "{text}");
    assert!(text.contains("permit allowed_selectors"), "{text}");
    let unknown = format!("{}{}", &id[..id.len() - 4], "0000");
    let refused = home.failure(&["policy", "explain", &unknown]);
    assert_eq!(refused, (4, "DECISION_NOT_FOUND".to_owned()));

    assert_eq!(home.json(&["policy", "replay", id])["replayed"], 1);
    home.ok(&["request", &file]);
    let replayed = home.json(&["policy", "replay", "--all"]);
    assert_eq!(replayed, json!({"replayed": 2, "unequal": []}));
    let last = home.json(&["policy", "replay", "--all", "--last", "1"]);
    assert_eq!(last["replayed"], 1);
    let future = [
        "policy",
        "replay",
        "--all",
        "--since",
        "2999-01-01T00:00:00Z",
    ];
    assert_eq!(home.json(&future)["replayed"], 0);

    let same = changed(&home, "same", |_| {});
    let simulated = home.json(&["policy", "simulate", &same]);
    assert_eq!(simulated["evaluated"], 2);
    assert_eq!(simulated["changed"], 0);
    let stricter = changed(&home, "stricter", |snapshot| {
        snapshot["policy"]["allowed_selectors"] = json!(["requested_delivery_date"]);
    });
    let refused = home.failure(&["policy", "simulate", &stricter]);
    assert_eq!(refused, (1, "POLICY_DECISIONS_CHANGE".to_owned()));
    let answer = home.run(&["policy", "simulate", &stricter]);
    assert!(answer.stdout.contains(id), "{}", answer.stdout);
    assert!(
        answer.stdout.contains("-requesting_stakeholder"),
        "{}",
        answer.stdout
    );

    // Stored snapshots are compared by their digests, and files by their names.
    let listed = home.json(&["policy", "list"]);
    let digest = listed["snapshots"][0]["digest"].as_str().unwrap();
    let diff = home.json(&["policy", "diff", digest, &stricter]);
    assert_eq!(diff["equal"], false);
    let lists = &diff["differences"]["lists"];
    assert_eq!(
        lists["removed"],
        json!(["allowed_selectors: requesting_stakeholder"])
    );
}

#[test]
fn files_are_compared_without_any_process() {
    let home = TestHome::new();
    let one = changed(&home, "one", |_| {});
    let other = changed(&home, "other", |snapshot| {
        snapshot["limits"] = json!({"max_selectors": 2});
    });
    let text = home.ok(&["policy", "diff", &one, &other]);
    assert!(text.starts_with("limits\n"), "{text}");
    assert!(text.contains("added    max_selectors"), "{text}");
    assert_eq!(
        home.ok(&["policy", "diff", &one, &one]),
        "the two are the same\n"
    );
    let broken = home.write("broken.json", "{}");
    let refused = home.failure(&["policy", "diff", &one, &broken]);
    assert_eq!(refused, (1, "INVALID_POLICY".to_owned()));
}

#[test]
fn a_shadow_watches_and_a_requester_is_watched() {
    let home = TestHome::new();
    let _up = home.up();
    let none = json!({"shadow": null});
    assert_eq!(home.json(&["policy", "shadow", "show"]), none);
    let stricter = changed(&home, "stricter", |snapshot| {
        snapshot["policy"]["allowed_selectors"] = json!(["requested_delivery_date"]);
    });
    let digest = home.json(&["policy", "put", &stricter])["digest"].clone();
    let digest = digest.as_str().unwrap();
    let set = home.json(&["policy", "shadow", "set", digest]);
    assert_eq!(set["shadow"]["version"], "stricter");
    let file = home.example("request");
    let asked = home.json(&["request", &file]);
    let seen = until("difference", || {
        let shown = home.json(&["policy", "shadow", "show"]);
        (shown["shadow"]["different"] == 1).then_some(shown)
    });
    let difference = &seen["shadow"]["differences"][0];
    assert_eq!(difference["decision_ref"], asked["decision"]["id"]);
    let text = home.ok(&["policy", "shadow", "show"]);
    assert!(
        text.contains("1 of 1 decisions would be different"),
        "{text}"
    );
    assert!(text.contains("-requesting_stakeholder"), "{text}");
    assert_eq!(home.json(&["policy", "shadow", "clear"]), none);
    let unknown = format!("sha256:{}", "0".repeat(64));
    let refused = home.failure(&["policy", "shadow", "set", &unknown]);
    assert_eq!(refused, (4, "SNAPSHOT_NOT_FOUND".to_owned()));

    let requester = "urn:cl:agent:demo";
    let set = home.json(&["policy", "anomaly", "set", requester, "elevated"]);
    assert_eq!(set["anomaly_states"][0]["state"], "elevated");
    let text = home.ok(&["policy", "anomaly", "list"]);
    assert!(text.contains(requester), "{text}");
    let denied = home.json(&["request", &file]);
    assert_eq!(denied["decision"]["decision"], "deny");
    let reasons = denied["decision"]["reason_codes"].as_array().unwrap();
    assert!(reasons.contains(&json!("ANOMALY_STATE_BLOCKED")));
    home.ok(&["policy", "anomaly", "clear", requester]);
    let listed = home.json(&["policy", "anomaly", "list"]);
    assert_eq!(listed, json!({"anomaly_states": []}));
    let allowed = home.json(&["request", &file]);
    assert_eq!(allowed["decision"]["decision"], "allow_with_reductions");
    let refused = home.failure(&["policy", "anomaly", "set", requester, "normal"]);
    assert_eq!(refused, (1, "INVALID_FIELD".to_owned()));
    let verified = home.json(&["receipts", "list", "--operation=policy.set_anomaly"]);
    assert_eq!(verified["total"], 1);
}

#[test]
fn a_delegation_is_set_listed_and_revoked() {
    let home = TestHome::new();
    let _up = home.up();
    let (subject, agent) = ("vault://subjects/primary", "urn:cl:agent:demo");
    let until = "--until=2999-01-01T00:00:00Z";
    let refused = home.failure(&[
        "policy",
        "delegation",
        "set",
        subject,
        agent,
        "--purpose=draft.response",
        "--predicate=amount_due",
        until,
    ]);
    assert_eq!(refused, (1, "INVALID_FIELD".to_owned()));
    assert_eq!(
        home.json(&["policy", "delegation", "list"]),
        json!({"delegations": []})
    );
    let soon = cl_model::time::UnixTime::from_milliseconds(
        cl_host::clock::Clock::now_unix_ms(&cl_host::clock::SystemClock) + 3_600_000,
    );
    let until = format!("--until={soon}");
    let set = home.json(&[
        "policy",
        "delegation",
        "set",
        subject,
        agent,
        "--purpose=draft.response",
        "--predicate=amount_due",
        &until,
    ]);
    assert_eq!(set["delegations"][0]["predicates"], json!(["amount_due"]));
    assert_eq!(home.json(&["policy", "delegation", "list"]), set);
    let text = home.ok(&["policy", "delegation", "list"]);
    assert!(text.contains("amount_due"), "{text}");
    home.ok(&["policy", "delegation", "revoke", subject, agent]);
    let listed = home.json(&["policy", "delegation", "list"]);
    assert_eq!(listed, json!({"delegations": []}));
}
