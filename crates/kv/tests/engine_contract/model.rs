//! Any sequence of calls does to an engine what it does to a map.

use std::collections::BTreeMap;

use cl_kv::{Batch, Durability, Engine, Entry, Error, Precondition, Scan, Stored, Version};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{Subject, version};

type Key = Vec<u8>;
type Model = BTreeMap<Key, Stored>;

#[derive(Clone, Debug)]
enum Call {
    Apply(Vec<Step>),
    ApplyMany(Vec<Vec<Step>>),
    Get(Vec<Key>),
    Scan {
        prefix: Key,
        start: Option<Key>,
        inclusive: bool,
        limit: usize,
    },
    Reopen,
}

/// One line of a batch.
#[derive(Clone, Debug)]
enum Step {
    RequireAbsent(Key),
    /// The version the key has when the call begins, or one that no key has.
    RequireCurrent(Key),
    RequireOther(Key),
    Put(Key, Vec<u8>),
    Delete(Key),
}

fn keys() -> impl Strategy<Value = Key> {
    vec(
        prop_oneof![Just(0), Just(b'a'), Just(b'b'), Just(0xff)],
        1..4,
    )
}

fn prefixes() -> impl Strategy<Value = Key> {
    prop_oneof![Just(Vec::new()), keys()]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => keys().prop_map(Step::RequireAbsent),
        2 => keys().prop_map(Step::RequireCurrent),
        1 => keys().prop_map(Step::RequireOther),
        6 => (keys(), vec(any::<u8>(), 0..40)).prop_map(|(key, value)| Step::Put(key, value)),
        2 => keys().prop_map(Step::Delete),
    ];
    vec(step, 0..5)
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let scan = (
        prefixes(),
        proptest::option::of(keys()),
        any::<bool>(),
        0..12_usize,
    )
        .prop_map(|(prefix, start, inclusive, limit)| Call::Scan {
            prefix,
            start,
            inclusive,
            limit,
        });
    let call = prop_oneof![
        6 => steps().prop_map(Call::Apply),
        2 => vec(steps(), 0..4).prop_map(Call::ApplyMany),
        2 => vec(keys(), 0..5).prop_map(Call::Get),
        3 => scan,
        1 => Just(Call::Reopen),
    ];
    vec(call, 0..40)
}

fn batch(steps: &[Step], model: &Model, next: &mut u64) -> Batch {
    let absent = version(u64::MAX);
    steps.iter().fold(Batch::new(), |batch, step| match step {
        Step::RequireAbsent(key) => batch.require(key.as_slice(), Precondition::Absent),
        Step::RequireCurrent(key) => {
            let current = model.get(key).map_or(absent, |stored| stored.version);
            batch.require(key.as_slice(), Precondition::Unchanged(current))
        }
        Step::RequireOther(key) => batch.require(key.as_slice(), Precondition::Unchanged(absent)),
        Step::Put(key, value) => {
            *next += 1;
            batch.put(
                key.as_slice(),
                Stored {
                    version: version(*next),
                    value: value.clone(),
                },
            )
        }
        Step::Delete(key) => batch.delete(key.as_slice()),
    })
}

/// What the contract says a batch does: nothing, with the position of the first failure, or all.
fn expected(batch: &Batch, model: &mut Model) -> Option<usize> {
    let current = |key: &Key| -> Option<Version> { model.get(key).map(|stored| stored.version) };
    let failed =
        batch
            .requirements()
            .iter()
            .position(|requirement| match requirement.precondition {
                Precondition::Absent => current(&requirement.key).is_some(),
                Precondition::Unchanged(version) => current(&requirement.key) != Some(version),
            });
    if failed.is_none() {
        for write in batch.writes() {
            match write {
                cl_kv::Write::Put { key, stored } => model.insert(key.clone(), stored.clone()),
                cl_kv::Write::Delete { key } => model.remove(key),
            };
        }
    }
    failed
}

fn observed(result: &Result<(), Error>) -> Option<usize> {
    match result {
        Ok(()) => None,
        Err(Error::Conflict { index }) => Some(*index),
        Err(error) => panic!("{error:?}"),
    }
}

pub(crate) fn behaves_like_a_map<S: Subject>() {
    proptest!(ProptestConfig::with_cases(S::CASES), |(calls in calls())| {
        let mut subject = S::fresh();
        let mut model = Model::new();
        let mut next = 0;
        for call in calls {
            let engine = subject.engine();
            match call {
                Call::Apply(steps) => {
                    let batch = batch(&steps, &model, &mut next);
                    let expected = expected(&batch, &mut model);
                    prop_assert_eq!(observed(&engine.apply(batch)), expected);
                }
                Call::ApplyMany(groups) => {
                    let batches: Vec<_> =
                        groups.iter().map(|steps| batch(steps, &model, &mut next)).collect();
                    let expected: Vec<_> =
                        batches.iter().map(|batch| expected(batch, &mut model)).collect();
                    let results = engine.apply_many(batches);
                    prop_assert_eq!(results.iter().map(observed).collect::<Vec<_>>(), expected);
                }
                Call::Get(keys) => {
                    let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
                    let asked: Vec<_> = keys.iter().map(Vec::as_slice).collect();
                    prop_assert_eq!(&engine.get_many(&asked).unwrap(), &expected);
                    for (key, expected) in asked.into_iter().zip(expected) {
                        prop_assert_eq!(engine.get(key).unwrap(), expected);
                    }
                }
                Call::Scan { prefix, start, inclusive, limit } => {
                    let in_range = |key: &&Key| {
                        let started = start.as_ref().is_none_or(|start| {
                            *key > start || (inclusive && *key == start)
                        });
                        started && key.starts_with(&prefix)
                    };
                    let expected: Vec<_> = model
                        .iter()
                        .filter(|(key, _)| in_range(key))
                        .take(limit)
                        .map(|(key, stored)| Entry { key: key.clone(), stored: stored.clone() })
                        .collect();
                    let scan = Scan::new(prefix.as_slice(), limit);
                    let scan = match start.clone() {
                        None => scan,
                        Some(start) if inclusive => scan.from(start),
                        Some(start) => scan.after(start),
                    };
                    prop_assert_eq!(engine.scan(&scan).unwrap(), expected);
                }
                Call::Reopen => {
                    engine.apply(Batch::new().durability(Durability::Synced)).unwrap();
                    subject = subject.reopen();
                }
            }
        }
    });
}
