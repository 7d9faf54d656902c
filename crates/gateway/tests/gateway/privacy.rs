//! Private words stay out of logs, errors, metrics and the data folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cl_kv::RocksEngine;
use cl_testbed::logs;
use http::Method;
use serde_json::json;
use tonic::Code;

use crate::client::Call;
use crate::documents::{DRAFT, proposal, receipt, request};
use crate::engine::later;
use crate::support::{NOW_S, Options, Running, World};
use crate::tokens::TokenIssuer;

/// One word for each private place, so that a leak names its source.
const WORDS: [&str; 17] = [
    "canaryprincipal",
    "canaryclient",
    "canarysubject",
    "canarypurpose",
    "canaryrequestid",
    "canarykey",
    "canaryquery",
    "canarymember",
    "canarytenant",
    "canarybundleid",
    "canaryvalue",
    "canaryscope",
    "canarynotes",
    "canarysummary",
    "canaryrationale",
    "canaryalias",
    "canaryredemption",
];

fn files_below(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files_below(&path));
        } else {
            all.extend(fs::read(path).unwrap());
        }
    }
    all
}

/// Redeems, reports and proposes, and is refused in all ways; what the refusals say.
async fn recipients(world: &World, gateway: &Running, token: &str) -> Vec<String> {
    let principal = "urn:agent:canaryprincipal";
    let bundle = world
        .bundles
        .issue_for("canarybundleid", "default", principal);
    let redeem = || Call::redeem(&bundle).key("canaryredemption");
    let answer = redeem().bearer(token).by(&gateway.client).await;
    assert_eq!(answer.status, 200);
    assert!(String::from_utf8_lossy(&answer.body).contains("canaryvalue"));
    let report = receipt(&bundle, DRAFT, principal, "canarysummary");
    let call = Call::record(&bundle, report.to_string()).key("canaryreport");
    let answer = call.bearer(token).by(&gateway.client).await;
    assert_eq!(answer.status, 201);

    let outside = receipt(&bundle, "calendar.delete", principal, "canarysummary");
    let idea = || {
        let document = proposal("urn:cl:alias:canaryalias", principal, "canaryrationale");
        Call::propose(document.to_string()).key("canaryproposal")
    };
    let mut broken = report.clone();
    broken["user_summary"] = json!("canarysummary canaryrationale");
    let mut told = Vec::new();
    for call in [
        Call::redeem(&bundle),
        Call::redeem("urn:cl:bundle:canarybundleid2"),
        Call::check("urn:cl:bundle:canarybundleid2"),
        Call::record(&bundle, outside.to_string()),
        Call::record(&bundle, broken.to_string()),
        Call::receipt("urn:cl:receipt:canarysummary"),
        Call::propose(broken.to_string()),
        idea(),
    ] {
        let answer = call.bearer(token).by(&gateway.client).await;
        assert!(answer.status.is_client_error());
        told.push(format!("{:?} {:?}", answer.headers, answer.body));
    }
    let fault = || later(Code::Internal, "CANARYMEMBER", 1);
    world.bundles.faults.refuse_next(fault());
    world.vault.faults.refuse_next(fault());
    for call in [redeem(), idea()] {
        let answer = call.bearer(token).by(&gateway.client).await;
        assert_eq!(answer.status, 500);
        told.push(format!("{:?} {:?}", answer.headers, answer.body));
    }
    told
}

#[tokio::test]
async fn private_words_stay_inside() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        kv: Some(Arc::new(RocksEngine::open(folder.path()).unwrap())),
        ..Options::default()
    };
    let gateway = world.start_with(options).await;
    let mut claims = TokenIssuer::claims(NOW_S);
    claims["sub"] = json!("urn:agent:canaryprincipal");
    claims["client_id"] = json!("urn:device:canaryclient");
    claims["tenant"] = json!("default");
    let token = world.issuer.token_with(&claims);
    claims["tenant"] = json!("Canarytenant canarytenant");
    let bad_token = world.issuer.token_with(&claims);
    let mut document = request("canaryrequestid");
    document["subject_ref"] = json!("vault://subjects/canarysubject");
    document["purpose"] = json!("canarypurpose");
    let submit = || Call::submit(document.to_string()).key("canarykey");

    let mut told = Vec::new();
    let answer = submit().bearer(&token).by(&gateway.client).await;
    assert_eq!(answer.status, 201);
    let mut broken = document.clone();
    broken["canarymember"] = json!("canarymember");
    let path = "/context/v1/requests?access_token=canaryquery";
    for call in [
        Call::submit(broken.to_string()).bearer(&token),
        Call::submit("{\"canarymember\":1,\"canarymember\":1}").bearer(&token),
        submit().key("canarykey").bearer(&token),
        submit().bearer(&bad_token),
        Call::read("urn:cl:request:canaryrequestid2").bearer(&token),
        Call::new(Method::GET, path),
        Call::new(Method::GET, "/canaryquery?a=canaryquery"),
        submit()
            .bearer(&token)
            .body(request("canaryrequestid").to_string()),
    ] {
        let answer = call.by(&gateway.client).await;
        assert!(answer.status.is_client_error());
        told.push(format!("{:?} {:?}", answer.headers, answer.body));
    }
    world
        .engine
        .refuse_next(later(Code::Internal, "CANARYMEMBER", 1));
    let answer = submit().bearer(&token).by(&gateway.client).await;
    assert_eq!(answer.status, 500);
    told.push(format!("{:?} {:?}", answer.headers, answer.body));

    told.extend(recipients(&world, &gateway, &token).await);

    let metrics = gateway.telemetry.prometheus_text().unwrap();
    assert!(metrics.contains("gateway_http_answers"), "{metrics}");
    gateway.end().await;
    let stored = String::from_utf8_lossy(&files_below(folder.path())).into_owned();
    let told = told.join("\n");
    let signatures = [token, bad_token].map(|token| token.rsplit('.').next().unwrap().to_owned());
    let words = WORDS
        .iter()
        .map(|word| (*word).to_owned())
        .chain(signatures);
    for word in words {
        for (place, text) in [("logs", &logs()), ("answers", &told), ("metrics", &metrics)] {
            assert!(!text.contains(&word), "{word} in {place}");
        }
        // The tenant alone is in the clear: `default` here.
        assert!(!stored.contains(&word), "{word} in the data folder");
    }
}
