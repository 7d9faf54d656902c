//! The rows of `conformance/tokens`, each signed here and judged twice: by the verifier, and by the
//! running gateway over HTTP.

use std::fs;
use std::path::Path;

use cl_gateway::auth::{self, InvalidToken, KeySet, Moment, Scope};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::client::{Answer, Call};
use crate::support::{NOW_S, World};
use crate::tokens::TokenIssuer;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/tokens");

/// All files with all rows.
fn rows() -> Vec<(String, Value)> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(Path::new(FOLDER)).unwrap() {
        let path = entry.unwrap().path();
        let file: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        for row in file["cases"].as_array().unwrap() {
            rows.push((format!("{stem}: {}", row["name"]), row.clone()));
        }
    }
    assert!(rows.len() > 150, "{}", rows.len());
    rows
}

fn token(issuer: &TokenIssuer, row: &Value) -> String {
    let header = text(
        row,
        "header_text",
        "header",
        "without_header",
        TokenIssuer::header(),
    );
    let claims = text(
        row,
        "claims_text",
        "claims",
        "without",
        TokenIssuer::claims(NOW_S),
    );
    let signer = row["signer"].as_str().unwrap_or("ed25519");
    let token = issuer.sign(&header, &claims, signer);
    match row["spelling"].as_str() {
        None => token,
        Some(spelling) => spelled(&token, spelling, &issuer.token(NOW_S + 1)),
    }
}

fn text(row: &Value, whole: &str, changes: &str, without: &str, ordinary: Value) -> String {
    if let Some(text) = row[whole].as_str() {
        return text.to_owned();
    }
    let Value::Object(mut members) = ordinary else {
        panic!("an object");
    };
    let none = Map::new();
    let changes = row[changes].as_object().unwrap_or(&none);
    members.extend(changes.clone());
    for name in row[without].as_array().into_iter().flatten() {
        members.remove(name.as_str().unwrap()).unwrap();
    }
    object_text(&members)
}

fn object_text(members: &Map<String, Value>) -> String {
    let members = members
        .iter()
        .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value_text(value)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Writes a value; an object with one of four names stands for what a row cannot hold.
fn value_text(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let first = members
                .iter()
                .next()
                .map(|(name, value)| (name.as_str(), value));
            match first {
                Some(("from_now", Value::Number(seconds))) => match seconds.as_i64() {
                    Some(whole) => (NOW_S + whole).to_string(),
                    None => (NOW_S as f64 + seconds.as_f64().unwrap()).to_string(),
                },
                Some(("text_from_now", seconds)) => {
                    format!("\"{}\"", NOW_S + seconds.as_i64().unwrap())
                }
                Some(("milliseconds_from_now", seconds)) => {
                    ((NOW_S + seconds.as_i64().unwrap()) * 1000).to_string()
                }
                Some(("literal", text)) => text.as_str().unwrap().to_owned(),
                Some(("repeat", pair)) => {
                    let times = usize::try_from(pair[1].as_u64().unwrap()).unwrap();
                    format!("\"{}\"", pair[0].as_str().unwrap().repeat(times))
                }
                _ => object_text(members),
            }
        }
        Value::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(value_text).collect();
            format!("[{}]", elements.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn spelled(token: &str, spelling: &str, other: &str) -> String {
    let parts: Vec<_> = token.split('.').collect();
    let others: Vec<_> = other.split('.').collect();
    let [header, payload, signature] = parts[..] else {
        panic!("three parts");
    };
    let (half, rest) = payload.split_at(payload.len() / 2);
    match spelling {
        "padding" => format!("{token}=="),
        "stray_bit" => {
            // 64 bytes leave four unused bits in the last letter, which are zero.
            let last = signature.chars().last().unwrap();
            let next = char::from(u8::try_from(last).unwrap() + 1);
            format!("{}{next}", &token[..token.len() - 1])
        }
        "point_at_end" => format!("{token}."),
        "point_at_beginning" => format!(".{token}"),
        "fourth_part" => format!("{token}.{signature}"),
        "five_parts" => format!("{header}.{payload}.{payload}.{payload}.{signature}"),
        "two_parts" => format!("{header}.{payload}"),
        "empty_header" => format!(".{payload}.{signature}"),
        "empty_payload" => format!("{header}..{signature}"),
        "ordinary_alphabet" => format!("{header}.{half}+/{rest}.{signature}"),
        "line_feed" => format!("{header}.{half}\n{rest}.{signature}"),
        "white_space" => format!("{header}.{half} {rest}.{signature}"),
        "other_payload" => format!("{header}.{}.{signature}", others[1]),
        "other_header" => format!("e30.{payload}.{signature}"),
        "twice" => format!("{token}.{token}"),
        unknown => panic!("no spelling {unknown}"),
    }
}

fn key_set(issuer: &TokenIssuer) -> KeySet {
    KeySet::parse(issuer.jwks().to_string().as_bytes()).unwrap()
}

fn verdict(keys: &KeySet, token: &str, now_s: i64) -> &'static str {
    let now = Moment::from_unix_ms(now_s * 1000);
    match auth::verify(token, &TokenIssuer::policy(), keys, None, now) {
        Ok(caller) if caller.check(Scope::Request).is_ok() => "accept",
        Ok(_) => "forbid",
        Err(_) => "refuse",
    }
}

#[test]
fn the_verifier_judges_every_row() {
    let issuer = TokenIssuer::new();
    let keys = key_set(&issuer);
    for (name, row) in rows() {
        let found = verdict(&keys, &token(&issuer, &row), NOW_S);
        assert_eq!(found, row["verdict"], "{name}");
    }
}

#[tokio::test]
async fn the_gateway_judges_every_row_and_tells_no_more() {
    let world = World::new().await;
    let gateway = world.start().await;
    let mut refusals: Vec<Value> = Vec::new();
    for (name, row) in rows() {
        let token = token(&world.issuer, &row);
        // A header cannot hold a line feed, and what large ones hold is not looked at.
        if token.contains('\n') || token.len() > 12_000 {
            continue;
        }
        let call = Call::read("urn:cl:request:none").bearer(&token);
        let answer: Answer = call.by(&gateway.client).await;
        let expected = match row["verdict"].as_str().unwrap() {
            "accept" => (404, "REQUEST_NOT_FOUND"),
            "forbid" => (403, "CALLER_NOT_ALLOWED"),
            _ => (401, "CALLER_UNAUTHENTICATED"),
        };
        let (status, code) = answer.refusal();
        assert_eq!((status, code.as_str()), expected, "{name}");
        if status == 401 {
            let mut body = answer.json();
            body["id"] = Value::Null;
            refusals.push(body);
        }
    }
    refusals.dedup();
    assert_eq!(refusals.len(), 1, "all bad tokens are told the same");
}

#[test]
fn a_token_is_judged_by_its_own_key_only() {
    let issuer = TokenIssuer::new();
    let token = issuer.token(NOW_S);
    let strangers = KeySet::parse(issuer.strangers_jwks().to_string().as_bytes()).unwrap();
    assert_eq!(verdict(&key_set(&issuer), &token, NOW_S), "accept");
    assert_eq!(verdict(&strangers, &token, NOW_S), "refuse");
    let now = Moment::from_unix_ms(NOW_S * 1000);
    let none = KeySet::default();
    let refused = auth::verify(&token, &TokenIssuer::policy(), &none, None, now).err();
    assert_eq!(refused, Some(InvalidToken::Key));
}

proptest! {
    #[test]
    fn foreign_text_is_refused_without_a_panic(
        text in "(?s).{0,300}", header in "[ -~]{0,80}", payload in "[ -~]{0,120}",
    ) {
        let issuer = TokenIssuer::new();
        let keys = key_set(&issuer);
        prop_assert_eq!(verdict(&keys, &text, NOW_S), "refuse");
        let signed = issuer.sign(&header, &payload, "ed25519");
        prop_assert_eq!(verdict(&keys, &signed, NOW_S), "refuse");
    }

    #[test]
    fn no_changed_letter_passes(position in 0_usize..1000, letter in "[A-Za-z0-9_.-]") {
        let issuer = TokenIssuer::new();
        let keys = key_set(&issuer);
        let mut token = issuer.token(NOW_S);
        let position = position % token.len();
        let is_change = &token[position..=position] != letter.as_str();
        token.replace_range(position..=position, &letter);
        let expected = if is_change { "refuse" } else { "accept" };
        prop_assert_eq!(verdict(&keys, &token, NOW_S), expected);
    }
}
