//! Recorded decisions, looked into by an operator.

use std::fs;

use serde_json::{Value, json};

use crate::support::TestHome;

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
