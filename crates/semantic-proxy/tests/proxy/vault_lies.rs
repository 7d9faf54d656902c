//! A vault that sends something else than the plan allows is refused whole; so is a denied value.

use cl_testbed::{refusal, refused};
use cl_wire::vault::v1::{LeakGuard, ResolvedClaim};
use serde_json::json;
use tonic::Code;

use crate::exchange::{AMOUNT, DATE, Exchange, PERSON};
use crate::fakes::{claim, euros, guard};
use crate::projections::Projecting as _;
use crate::support::World;

fn good(exchange: &Exchange) -> ResolvedClaim {
    claim(DATE, "date", &json!("2026-08-14"), &exchange.handle("e:1"))
}

async fn refuses(name: &str, code: &str, exchange: &Exchange, claims: Vec<ResolvedClaim>) {
    let world = World::new().await;
    let running = world.start().await;
    world.vault.set_claims(claims);
    let answer = refusal(running.project(exchange).await);
    assert_eq!(answer, refused(Code::FailedPrecondition, code), "{name}");
    let receipt = world.receipts.last();
    assert_eq!(receipt["outcome"], "failure", "{name}");
    assert_eq!(receipt["metadata"]["code"], code, "{name}");
}

type Change = fn(&mut ResolvedClaim);

#[tokio::test]
async fn refuses_claims_outside_the_plan() {
    let exchange = Exchange::new("r1");
    let other_exchange = Exchange::new("r2");
    let changes: [(&str, Change); 16] = [
        ("another predicate", |it| it.predicate = "salary".to_owned()),
        ("no predicate", |it| it.predicate = "A B".to_owned()),
        ("too private", |it| it.label = "restricted".to_owned()),
        ("no label", |it| it.label = String::new()),
        ("too unsure", |it| it.confidence = 0.49),
        ("no confidence", |it| it.confidence = f64::NAN),
        ("another status", |it| it.status = "retracted".to_owned()),
        ("no status", |it| it.status = "believed".to_owned()),
        ("no trust", |it| it.trust = "high".to_owned()),
        ("no source", |it| it.provenance_handles.clear()),
        ("a raw source", |it| {
            it.provenance_handles = vec!["vault://events/1".to_owned()];
        }),
        ("a short handle", |it| {
            it.provenance_handles = vec!["prov_00".to_owned()]
        }),
        ("a handle twice", |it| {
            let first = it.provenance_handles[0].clone();
            it.provenance_handles.push(first);
        }),
        ("no JSON", |it| {
            it.value = b"2026".to_vec()[..2].iter().map(|_| b'{').collect()
        }),
        ("another form of JSON", |it| {
            it.value = b" \"2026-08-14\"".to_vec()
        }),
        ("no time", |it| {
            it.valid_from = Some(prost_types::Timestamp {
                seconds: 0,
                nanos: -1,
            });
        }),
    ];
    for (name, change) in changes {
        let mut lie = good(&exchange);
        change(&mut lie);
        // An honest claim beside it does not leave either.
        let claims = vec![good(&exchange), lie];
        refuses(name, "VAULT_ANSWER_INVALID", &exchange, claims).await;
    }
    let mut many = good(&exchange);
    many.provenance_handles = (0..33)
        .map(|it| other_exchange.handle(&format!("e:{it}")))
        .collect();
    refuses("33 sources", "VAULT_ANSWER_INVALID", &exchange, vec![many]).await;
}

#[tokio::test]
async fn refuses_too_many_claims() {
    let exchange = Exchange::new("r1");
    let claims = vec![good(&exchange); 65];
    refuses("65 claims", "TOO_MANY_CLAIMS", &exchange, claims).await;
}

#[tokio::test]
async fn refuses_values_that_break_their_datatype() {
    let exchange = Exchange::new("r1");
    let handle = exchange.handle("e:1");
    for (name, claim) in [
        ("no day", claim(DATE, "date", &json!("2026-02-30"), &handle)),
        (
            "another type",
            claim(DATE, "text", &json!("2026-08-14"), &handle),
        ),
        (
            "a sentence",
            claim(DATE, "date", &json!("next week"), &handle),
        ),
        ("no amount", claim(AMOUNT, "money", &euros("1e9"), &handle)),
        ("a list", claim(PERSON, "person", &json!(["Ann"]), &handle)),
        (
            "nothing to see",
            claim(PERSON, "person", &json!("\u{200b}\n"), &handle),
        ),
    ] {
        refuses(name, "VALUE_NOT_OF_DATATYPE", &exchange, vec![claim]).await;
    }
}

#[tokio::test]
async fn refuses_what_has_no_template() {
    let mut exchange = Exchange::new("r1");
    let private = "private_predicate";
    exchange.request["selectors"] = json!([{"predicate": private}]);
    exchange.policy["allowed_selectors"] = json!([private]);
    let mut rule = exchange.rules[0].clone();
    rule["predicate"] = json!(private);
    exchange.rules = vec![rule];
    let world = World::new().await;
    let running = world.start().await;
    let handle = exchange.handle("e:1");
    world
        .vault
        .set_claims(vec![claim(private, "text", &json!("x"), &handle)]);
    let mut statement = exchange.statement();
    statement["granted_predicates"] = json!([private]);
    let plan = exchange.plan(&statement);
    let grant = crate::exchange::grant_of(&statement, &plan, &crate::exchange::decision_key());
    let answer = running
        .send(crate::support::message(&exchange, grant))
        .await;
    let expected = refused(Code::FailedPrecondition, "PREDICATE_NOT_REGISTERED");
    assert_eq!(refusal(answer), expected);
}

#[tokio::test]
async fn a_denied_value_leaves_with_nothing() {
    let exchange = Exchange::new("r1");
    let handle = exchange.handle("e:1");
    let named = claim(PERSON, "person", &json!("Ann of Project Halcyon"), &handle);
    for (denied, leaks) in [
        (json!("Project Halcyon"), true),
        (json!("project HALCYON"), true),
        (json!("Project Kestrel"), false),
    ] {
        let world = World::new().await;
        let running = world.start().await;
        world.vault.set_claims(vec![good(&exchange), named.clone()]);
        world.vault.set_denied(vec![denied.clone()]);
        let answer = running.project(&exchange).await;
        if leaks {
            let expected = refused(Code::FailedPrecondition, "DISCLOSURE_LEAK");
            assert_eq!(refusal(answer), expected, "{denied}");
            assert_eq!(world.receipts.last()["metadata"]["code"], "DISCLOSURE_LEAK");
        } else {
            assert_eq!(answer.unwrap().items.len(), 2);
        }
    }
    // Under an alias the name does not leave, and so nothing of it leaks.
    let exchange = exchange.projecting(PERSON, &["alias"]);
    let world = World::new().await;
    let running = world.start().await;
    world.vault.set_claims(vec![named]);
    world.vault.set_denied(vec![json!("Project Halcyon")]);
    running.project(&exchange).await.unwrap();
}

#[tokio::test]
async fn refuses_an_answer_without_a_leak_guard() {
    let exchange = Exchange::new("r1");
    let honest = guard(&[json!("Project Halcyon")], &[]);
    let short_key = LeakGuard {
        key: vec![0; 31],
        ..honest.clone()
    };
    let mut short_tag = honest.clone();
    short_tag.fingerprints[0].tag.pop();
    let mut short_print = honest.clone();
    short_print.fingerprints[0].length = 3;
    let mut long_print = honest.clone();
    long_print.fingerprints[0].length = 49;
    let mut many = honest.clone();
    many.fingerprints = vec![honest.fingerprints[0].clone(); 65_537];
    for guard in [
        None,
        Some(short_key),
        Some(short_tag),
        Some(short_print),
        Some(long_print),
        Some(many),
    ] {
        let world = World::new().await;
        let running = world.start().await;
        world.vault.set_claims(vec![good(&exchange)]);
        world.vault.set_guard(guard);
        let expected = refused(Code::FailedPrecondition, "VAULT_ANSWER_INVALID");
        assert_eq!(refusal(running.project(&exchange).await), expected);
    }
}
