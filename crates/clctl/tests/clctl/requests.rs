//! Context requests through the whole exchange.

use std::fs;

use serde_json::{Value, json};

use crate::support::TestHome;

fn example(home: &TestHome) -> Value {
    serde_json::from_slice(&fs::read(home.example("request")).unwrap()).unwrap()
}

fn names(selectors: &Value) -> Vec<&str> {
    let selectors = selectors.as_array().unwrap();
    selectors
        .iter()
        .map(|selector| selector["predicate"].as_str().unwrap())
        .collect()
}

#[test]
fn the_examples_are_granted_in_part() {
    let home = TestHome::new();
    let _up = home.up();
    for (args, mode) in [
        (&["request"][..], &[][..]),
        (&["request-mtls"], &["--mtls"]),
    ] {
        let file = home.example(args[0]);
        let args: Vec<&str> = ["request", &file]
            .into_iter()
            .chain(mode.iter().copied())
            .collect();
        let answer = home.json(&args);
        // Nothing was captured that a bundle could hold.
        assert_eq!(answer["state"], "failed", "{answer}");
        let decision = &answer["decision"];
        assert_eq!(decision["decision"], "allow_with_reductions", "{decision}");
        assert_eq!(
            names(&decision["granted_selectors"]),
            ["requesting_stakeholder", "requested_delivery_date"]
        );
        assert_eq!(names(&decision["denied_selectors"]), ["amount_due"]);
        assert_eq!(decision["denied_actions"], json!(["payment.send"]));

        let id = answer["request"].as_str().unwrap();
        let show: Vec<&str> = ["requests", "show", id]
            .into_iter()
            .chain(mode.iter().copied())
            .collect();
        let shown = home.json(&show);
        assert_eq!(shown["decision"], answer["decision"]);
        let table = home.ok(&show);
        assert!(table.contains("allow_with_reductions"), "{table}");
        assert!(table.contains("amount_due"), "{table}");
    }
    let receipts = home.json(&["receipts", "list", "--operation=policy.decide"]);
    assert_eq!(receipts["total"], 2);
    assert_eq!(home.json(&["receipts", "verify"])["verified"], true);
}

#[test]
fn each_call_is_a_new_request_unless_it_is_sent_as_it_is() {
    let home = TestHome::new();
    let _up = home.up();
    let file = home.example("request");
    let send = |more: &[&str]| {
        let args: Vec<&str> = ["request", &file]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        home.json(&args)
    };
    assert_ne!(send(&[])["request"], send(&[])["request"]);
    let first = send(&["--as-is"]);
    assert_eq!(first["request"], "urn:cl:request:example");
    assert_eq!(send(&["--as-is"])["decision"], first["decision"]);
}

#[test]
fn a_denial_is_an_answer() {
    let home = TestHome::new();
    let _up = home.up();
    let file = home.example("request");
    let answer = home.json(&["request", &file, "--sub=urn:agent:stranger"]);
    assert_eq!(answer["decision"]["decision"], "deny");
}

#[test]
fn gated_scope_waits_for_an_approval() {
    let home = TestHome::new();
    let _up = home.up();
    let mut request = example(&home);
    request["requested_actions"] = json!(["email.send"]);
    let file = home.write("gated.json", &request.to_string());
    let answer = home.json(&["request", &file]);
    assert_eq!(answer["state"], "pending_approval");
    assert_eq!(answer["decision"]["decision"], "needs_approval");
}

#[test]
fn refusals_of_the_gateway_keep_their_code() {
    let home = TestHome::new();
    let _up = home.up();
    let unknown = home.failure(&["requests", "show", "urn:cl:request:unknown"]);
    assert_eq!(unknown.0, 4, "{unknown:?}");
    let mut request = example(&home);
    request["selectors"] = json!([]);
    let file = home.write("empty.json", &request.to_string());
    let refused = home.failure(&["request", &file]);
    assert_eq!(refused.0, 1, "{refused:?}");
    assert_ne!(refused.1, "ANSWER_MALFORMED");
    let answer = home.run(&["requests", "show", "urn:cl:bundle:x"]);
    assert_eq!(answer.code, Some(2));
}

#[test]
fn a_token_of_another_home_is_refused() {
    let (home, other) = (TestHome::new(), TestHome::new());
    let _up = home.up();
    fs::copy(other.path("keys/token.pem"), home.path("keys/token.pem")).unwrap();
    let refused = home.failure(&["request", &home.example("request")]);
    assert_eq!(refused.0, 1, "{refused:?}");
    assert_ne!(refused.1, "ANSWER_MALFORMED");
}

#[test]
fn files_that_are_no_request_are_not_sent() {
    let home = TestHome::new();
    let list = home.write("list.json", "[]");
    assert_eq!(
        home.failure(&["request", &list]),
        (1, "FILE_MALFORMED".to_owned())
    );
    let file = home.example("request");
    assert_eq!(
        home.failure(&["request", &file]),
        (3, "NOT_RUNNING".to_owned())
    );
}

#[test]
fn a_certificate_of_another_home_is_refused() {
    let (home, other) = (TestHome::new(), TestHome::new());
    let _up = home.up();
    for name in ["pki/client.pem", "pki/client.key"] {
        fs::copy(other.path(name), home.path(name)).unwrap();
    }
    let file = home.example("request-mtls");
    home.certificate_is_refused(&["request", &file, "--mtls"]);
}

#[test]
fn no_token_goes_to_another_process() {
    let home = TestHome::new();
    let _up = home.up();
    let mut endpoints = home.endpoints().unwrap();
    let file = home.example("request");
    // One that speaks TLS otherwise, and one that does not speak it.
    let engine = endpoints["processes"]["cl-policy-engine"]["addr"].clone();
    let admin = endpoints["processes"]["cl-gateway"]["admin_addr"].clone();
    for addr in [engine, admin] {
        endpoints["processes"]["cl-gateway"]["addr"] = addr;
        fs::write(home.path("run/endpoints.json"), endpoints.to_string()).unwrap();
        let refused = home.failure(&["request", &file]);
        assert_eq!(refused, (1, "PEER_NOT_VERIFIED".to_owned()));
    }
}
