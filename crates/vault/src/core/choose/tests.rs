use std::convert::Infallible;

use cl_model::json::read::FromJson as _;
use cl_model::part::Label;
use cl_model::scalar::{Confidence, Name, Predicate};
use cl_model::urn::{ClaimId, EventId};
use cl_model::vocabulary::Datatype;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use serde_json::json;

use super::*;
use crate::core::claim::{Standing, Support};

const NOW: i64 = 1_000_000;

fn rule(predicate: &str, statuses: &[&str], min_confidence: f64) -> ResolveRule {
    ResolveRule::from_json(&json!({
        "predicate": predicate, "max_label": "private", "min_trust": "untrusted",
        "min_confidence": min_confidence, "statuses": statuses, "transforms": [], "projections": [],
    }))
    .unwrap()
}

fn claim(predicate: &str, number: u8, thread: u8, confidence: f64) -> Claim {
    Claim {
        id: ClaimId::from_digest(Digest::of_bytes(&[number])),
        predicate: Predicate::new(predicate).unwrap(),
        datatype: Datatype::Date,
        label: Label::Private,
        derived_at: UnixTime::from_milliseconds(i64::from(number)),
        place: u64::from(number),
        standing: Standing::Held {
            value: json!(number),
            supports: vec![Support {
                event: EventId::from_digest(Digest::of_bytes(&[number, thread])),
                confidence: Confidence::new(confidence).unwrap(),
                valid_from: None,
                valid_until: None,
                rule: Name::new("test").unwrap(),
                marks: Vec::new(),
                thread: Digest::of_bytes(&[thread]),
                revision: None,
            }],
        },
    }
}

fn run(rules: &[ResolveRule], claims: Vec<Claim>) -> Choice {
    run_with(rules, claims, |_| true)
}

fn run_with(rules: &[ResolveRule], claims: Vec<Claim>, fits: impl Fn(&[Claim]) -> bool) -> Choice {
    let rules: Vec<_> = rules.iter().collect();
    let now = UnixTime::from_milliseconds(NOW);
    let fits = |set: &[Claim]| Ok::<_, Infallible>(fits(set));
    let words = Words::of(&claims);
    let Ok(choice) = choose(&rules, claims, &words, fits, now);
    choice
}

fn ids(choice: &Choice) -> Vec<ClaimId> {
    choice
        .chosen
        .iter()
        .map(|chosen| chosen.claim.id.clone())
        .collect()
}

const ALL: [&str; 3] = ["asserted", "derived", "disputed"];

#[test]
fn contradictions_leave_whole_or_not_at_all() {
    let both = || vec![claim("a", 1, 7, 0.9), claim("a", 2, 7, 0.4)];
    let choice = run(&[rule("a", &ALL, 0.0)], both());
    assert_eq!(choice.chosen.len(), 2);
    let statuses = choice.chosen.iter().map(|chosen| chosen.status);
    assert!(statuses.into_iter().all(|it| it == ClaimStatus::Disputed));
    // One side alone would be a lie.
    for rule in [rule("a", &ALL, 0.5), rule("a", &["derived"], 0.0)] {
        let choice = run(&[rule], both());
        assert_eq!((choice.chosen.len(), choice.withheld), (0, 2));
    }
    let apart = vec![claim("a", 1, 7, 0.9), claim("a", 2, 8, 0.4)];
    let choice = run(&[rule("a", &["derived"], 0.5)], apart);
    assert_eq!((choice.chosen.len(), choice.withheld), (1, 1));
}

#[test]
fn several_deeds_of_one_message_contradict_only_what_another_message_says() {
    let of_event = |number: u8, event: u8| {
        let mut claim = claim("a", number, 7, 0.9);
        if let Standing::Held { supports, .. } = &mut claim.standing {
            supports[0].event = EventId::from_digest(Digest::of_bytes(&[event]));
        }
        claim
    };
    let statuses = |claims: Vec<Claim>| -> Vec<ClaimStatus> {
        let choice = run(&[rule("a", &ALL, 0.0)], claims);
        choice.chosen.iter().map(|it| it.status).collect()
    };
    let both = || vec![of_event(1, 50), of_event(2, 50)];
    assert_eq!(statuses(both()), [ClaimStatus::Derived; 2]);
    let mut with_other = both();
    with_other.push(of_event(3, 51));
    assert_eq!(statuses(with_other), [ClaimStatus::Disputed; 3]);
    // Readings of the same words, and what was corrected, stay alternatives.
    for mark in ["date.next_weekday_ambiguous", "statement.corrected"] {
        let mut readings = both();
        for claim in &mut readings {
            if let Standing::Held { supports, .. } = &mut claim.standing {
                supports[0].marks = vec![Name::new(mark).unwrap()];
            }
        }
        assert_eq!(statuses(readings), [ClaimStatus::Disputed; 2]);
    }
}

#[test]
fn people_do_not_contradict_each_other() {
    let mut claims = vec![claim("a", 1, 7, 0.9), claim("a", 2, 7, 0.4)];
    for claim in &mut claims {
        claim.datatype = Datatype::Person;
    }
    let choice = run(&[rule("a", &["derived"], 0.5)], claims);
    assert_eq!(choice.chosen.len(), 1);
}

#[test]
fn claims_out_of_their_time_neither_leave_nor_contradict() {
    let mut over = claim("a", 1, 7, 0.9);
    if let Standing::Held { supports, .. } = &mut over.standing {
        supports[0].valid_until = Some(UnixTime::from_milliseconds(NOW));
    }
    let choice = run(
        &[rule("a", &["derived"], 0.0)],
        vec![over, claim("a", 2, 7, 0.4)],
    );
    assert_eq!((choice.chosen.len(), choice.withheld), (1, 1));
}

#[test]
fn what_is_too_private_or_not_asked_for_stays() {
    let mut secret = claim("a", 1, 7, 0.9);
    secret.label = Label::Sensitive;
    let choice = run(&[rule("a", &ALL, 0.0)], vec![secret, claim("b", 2, 7, 0.9)]);
    assert_eq!((choice.chosen.len(), choice.withheld), (0, 2));
}

#[test]
fn what_does_not_fit_stays_with_all_that_contradicts_it() {
    let claims = vec![
        claim("a", 1, 7, 0.9),
        claim("a", 2, 7, 0.8),
        claim("a", 3, 8, 0.1),
    ];
    let is_small = |set: &[Claim]| set.iter().all(|claim| claim.place != 2);
    let choice = run_with(&[rule("a", &ALL, 0.0)], claims, is_small);
    assert_eq!((choice.chosen.len(), choice.withheld), (1, 2));
    assert_eq!(choice.chosen[0].claim.place, 3);
}

#[test]
fn a_set_that_does_not_fit_makes_room_for_smaller_ones() {
    let mut claims: Vec<_> = (0..63)
        .map(|number| claim("a", number, number, 0.9))
        .collect();
    claims.push(claim("a", 100, 200, 0.8));
    claims.push(claim("a", 101, 200, 0.7));
    claims.push(claim("a", 102, 201, 0.1));
    let choice = run(&[rule("a", &ALL, 0.0)], claims);
    assert_eq!((choice.chosen.len(), choice.withheld), (64, 2));
    let last = choice.chosen.last().unwrap();
    assert_eq!(last.claim.place, 102);
}

/// Predicate, number, conversation and certainty of a claim.
type Drawn = (&'static str, u8, u8, u8);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let predicate = prop_oneof![Just("a"), Just("b")];
    proptest::collection::vec((predicate, any::<u8>(), 0_u8..12, 0_u8..4), 0..150)
}

fn claims_of(drawn: Vec<Drawn>) -> Vec<Claim> {
    let mut claims: Vec<_> = drawn
        .into_iter()
        .map(|(predicate, number, thread, quarter)| {
            claim(predicate, number, thread, f64::from(quarter) / 4.0)
        })
        .collect();
    claims.sort_by(|one, other| one.id.cmp(&other.id));
    claims.dedup_by(|one, other| one.id == other.id);
    claims
}

proptest! {
    #[test]
    fn the_choice_is_bounded_and_does_not_depend_on_the_order(
        drawn in drawn(),
        swaps in proptest::collection::vec(any::<(Index, Index)>(), 0..40),
    ) {
        let claims = claims_of(drawn);
        let rules = [rule("b", &ALL, 0.25), rule("a", &ALL, 0.0)];
        let before = run(&rules, claims.clone());
        prop_assert!(before.chosen.len() <= MAX_CLAIMS);
        prop_assert_eq!(
            before.chosen.len() + usize::try_from(before.withheld).unwrap(),
            claims.len()
        );
        let mut shuffled = claims;
        for (one, other) in swaps {
            if !shuffled.is_empty() {
                let (one, other) = (one.index(shuffled.len()), other.index(shuffled.len()));
                shuffled.swap(one, other);
            }
        }
        let after = run(&rules, shuffled);
        prop_assert_eq!(ids(&before), ids(&after));
    }

    #[test]
    fn no_claim_leaves_without_those_that_contradict_it(
        drawn in drawn(),
        kept in subsequence(ALL.to_vec(), 1..=3),
    ) {
        let claims = claims_of(drawn);
        let rules = [rule("a", &kept, 0.25), rule("b", &kept, 0.5)];
        let chosen = ids(&run(&rules, claims.clone()));
        for one in &claims {
            for other in &claims {
                let contradict = one.predicate == other.predicate
                    && one.threads() == other.threads();
                if contradict {
                    prop_assert_eq!(chosen.contains(&one.id), chosen.contains(&other.id));
                }
            }
        }
    }
}
