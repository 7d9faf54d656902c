//! Hostile input at every public entry: nothing panics, and nothing that is printed repeats it.

use std::fmt::{Debug, Write};
use std::sync::LazyLock;

use cl_model::anchor::{AnchorFile, AnchoredLog};
use cl_model::canonical::to_text;
use cl_model::digest::Digest;
use cl_model::document::{Signed, TrustedKeys, Verified};
use cl_model::envelope::VerifiedBundle;
use cl_model::grant::{ResolvePlan, ScopeStatement};
use cl_model::json::{self, Limits};
use cl_model::key::Signature;
use cl_model::log::LogState;
use cl_model::memory::{self, ProposalDraft};
use cl_model::notes::DisclosureNotes;
use cl_model::object::{
    ContextClaim, ContextRequest, ErrorObject, MemoryUpdateProposal, MinimumRevealResponse,
    PolicyDecision, ProtocolObject, Receipt, ScopedContextBundle, SourceEvent,
};
use cl_model::policy::{ApprovalRule, Asked, ListPolicy, PresentedApproval, VerifiedDecision};
use cl_model::receipt;
use cl_model::record;
use cl_model::refusal::Refusal;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::fixture::{CANARY, Case, Exchange, authority, bundle_key, sealed};

const PREFIXES: [&str; 4] = [
    "urn:cl:decision:",
    "urn:cl:bundle:",
    "urn:cl:receipt:",
    "urn:cl:proposal:",
];

/// All that is said about inputs.
#[derive(Default)]
struct Said(String);

impl Said {
    fn hear<T: Debug>(&mut self, result: Result<T, Refusal>) {
        match result {
            Ok(value) => write!(self.0, "{value:?}\n{value:#?}\n"),
            Err(refusal) => write!(self.0, "{refusal}\n{refusal:?}\n"),
        }
        .expect("a text takes all");
    }

    fn check(&self) {
        assert!(!self.0.is_empty());
        let said = self.0.to_lowercase();
        assert!(!said.contains(CANARY), "{said}");
    }
}

fn hear_value(said: &mut Said, value: &Value) {
    said.hear(ContextRequest::read(value));
    said.hear(PolicyDecision::read(value));
    said.hear(ScopedContextBundle::read(value));
    said.hear(Receipt::read(value));
    said.hear(MemoryUpdateProposal::read(value));
    said.hear(SourceEvent::read(value));
    said.hear(ContextClaim::read(value));
    said.hear(MinimumRevealResponse::read(value));
    said.hear(ErrorObject::read(value));
    said.hear(Asked::read(value));
    said.hear(ListPolicy::read(value));
    for rule in [ApprovalRule::AllOrNothing, ApprovalRule::GrantOrDecline] {
        said.hear(Ok(PresentedApproval::read(value, rule)));
    }
    said.hear(ProposalDraft::read(value, &[]));
    said.hear(VerifiedDecision::verify(
        value,
        &Case::new().typed_request(),
    ));
    said.hear(receipt::check(value));
    said.hear(memory::check(value));
    for prefix in PREFIXES {
        said.hear(record::verify(value, prefix));
        said.hear(record::finalize(value.clone(), prefix));
    }
}

fn hear_bytes(said: &mut Said, bytes: &[u8]) {
    let no_key = TrustedKeys::default();
    said.hear(json::parse(bytes, Limits::network(1 << 16)).map(|_| ()));
    said.hear(json::parse(bytes, Limits::profile(1 << 8)).map(|_| ()));
    said.hear(VerifiedBundle::open(bytes, &authority()));
    said.hear(VerifiedBundle::open_profile(bytes, &authority()));
    said.hear(LogState::verify(bytes));
    let key = bundle_key();
    for (log, anchor) in [(bytes, &b"{}\n"[..]), (b"", bytes), (bytes, bytes)] {
        let anchor = AnchorFile::Bytes(anchor);
        said.hear(AnchoredLog::open(log, &anchor, Digest::ZERO, &key));
    }
    let signed = Signed {
        document: bytes.to_vec(),
        signature: Signature::new([7; 64]),
    };
    said.hear(Verified::<ScopeStatement>::open(&signed, &no_key));
    said.hear(Verified::<ResolvePlan>::open(&signed, &no_key));
    said.hear(Verified::<DisclosureNotes>::open(&signed, &no_key));
}

/// Objects that are accepted, to be spoiled.
static SEEDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let published = [
        include_str!("../../../../conformance/objects/context-claim.json"),
        include_str!("../../../../conformance/objects/error.json"),
        include_str!("../../../../conformance/objects/memory-update-proposal.json"),
        include_str!("../../../../conformance/objects/minimum-reveal-response.json"),
        include_str!("../../../../conformance/objects/receipt.json"),
        include_str!("../../../../conformance/objects/source-event.json"),
    ];
    let mut seeds = Vec::new();
    for text in published {
        let mut cases: Value = serde_json::from_str(text).expect("JSON");
        let valid = cases["valid"].as_array_mut().expect("an array");
        seeds.extend(valid.iter_mut().map(|case| case["value"].take()));
    }
    let pending = Exchange::new().issue().expect("issued");
    seeds.push(pending.receipt().expect("a receipt").value().clone());
    seeds.push(Exchange::new().bundle());
    let case = Case::approved();
    seeds.push(case.decision());
    seeds.extend([case.request, case.policy, case.approval]);
    seeds
});

/// The JSON pointers of a value and of everything in it.
fn places(value: &Value, at: String, places: &mut Vec<String>) {
    let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                self::places(element, format!("{at}/{index}"), places);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                self::places(member, format!("{at}/{}", escape(name)), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
    places.push(at);
}

/// Puts the canary at one place of a value: as the value there, inside it, or as a name.
fn spoil(value: &mut Value, place: Index, how: usize, foreign: Value) {
    let mut all = Vec::new();
    places(value, String::new(), &mut all);
    let target = value
        .pointer_mut(&all[place.index(all.len())])
        .expect("a place of the value");
    match (how, target) {
        (0, target) => *target = json!(CANARY),
        (1, target) => *target = foreign,
        (2, Value::String(text)) => text.push_str(CANARY),
        (3, Value::String(text)) => *text = text.replace(|it: char| it.is_ascii_digit(), CANARY),
        (_, Value::Array(elements)) => elements.insert(0, json!(CANARY)),
        (_, Value::Object(members)) => {
            members.insert(CANARY.to_owned(), json!([CANARY, {"kind": CANARY}]));
        }
        (_, target) => *target = json!({CANARY: CANARY}),
    }
}

/// The value with digests that fit it, as far as it has any.
fn rehash(value: &Value) -> Vec<Value> {
    let mut contents = value.clone();
    let Some(members) = contents.as_object_mut() else {
        return Vec::new();
    };
    members.remove("id");
    members.remove("integrity");
    let records = PREFIXES
        .iter()
        .map(|prefix| record::finalize(contents.clone(), prefix));
    records
        .map(|record| record.expect("a record").into_value())
        .collect()
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(CANARY.to_owned()),
        1 => Just(format!("vault://{CANARY}")),
        1 => Just(format!("{CANARY}\u{1F600}\u{85}")),
        1 => "[a-z_]{1,12}",
        1 => any::<String>(),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        word().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(word(), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn says_nothing_private_about_what_it_accepts() {
    for seed in SEEDS.iter() {
        let mut said = Said::default();
        hear_value(&mut said, seed);
        let said = said.0.to_lowercase();
        for private in [
            "trondheim",
            "person",
            "home.address",
            "urn:agent:drafting-helper",
        ] {
            assert!(!said.contains(private), "{private} in {said}");
        }
    }
    let exchange = Exchange::new().with(|it| it.claims[0]["claim"] = json!(CANARY));
    let pending = exchange.issue().expect("issued");
    let opened = VerifiedBundle::open(exchange.text().as_bytes(), &authority());
    let session = crate::fixture::session_of(opened.expect("a bundle"));
    let action = session.begin_action("letter.draft", crate::fixture::circumstances());
    let printed = format!("{pending:?} {session:?} {:?}", action.expect("an action"));
    assert!(!printed.contains(CANARY), "{printed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn arbitrary_bytes_are_refused_in_silence(
        before in proptest::collection::vec(any::<u8>(), 0..80),
        after in "[\\[\\]{}\",:0-9a-zA-Z\\\\\n]{0,40}",
    ) {
        let bytes = [&before[..], CANARY.as_bytes(), after.as_bytes()].concat();
        let mut said = Said::default();
        hear_bytes(&mut said, &bytes);
        hear_bytes(&mut said, after.as_bytes());
        said.check();
    }

    #[test]
    fn arbitrary_trees_are_refused_in_silence(tree in tree()) {
        let mut said = Said::default();
        hear_value(&mut said, &tree);
        hear_bytes(&mut said, to_text(&tree).as_bytes());
        hear_bytes(&mut said, (to_text(&tree) + "\n").as_bytes());
        said.check();
    }

    #[test]
    fn spoiled_objects_are_read_in_silence(
        seed in any::<Index>(),
        place in any::<Index>(),
        how in 0usize..5,
        foreign in tree(),
    ) {
        let mut value = SEEDS[seed.index(SEEDS.len())].clone();
        spoil(&mut value, place, how, foreign);
        let mut said = Said::default();
        hear_value(&mut said, &value);
        for record in rehash(&value) {
            hear_value(&mut said, &record);
        }
        said.check();
    }

    #[test]
    fn spoiled_bundles_are_opened_in_silence(
        place in any::<Index>(),
        how in 0usize..5,
        foreign in tree(),
    ) {
        let genuine = Exchange::new().envelope();
        let mut said = Said::default();
        let mut envelope = genuine.clone();
        spoil(&mut envelope, place, how, foreign.clone());
        hear_bytes(&mut said, to_text(&envelope).as_bytes());
        let signed = sealed(&genuine["bundle"], |it| {
            spoil(it, place, how, foreign);
            if !it.is_object() {
                *it = json!({CANARY: it.take()});
            }
        });
        hear_bytes(&mut said, to_text(&signed).as_bytes());
        said.check();
    }
}
