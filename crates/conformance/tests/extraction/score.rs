//! Precision and recall of what is found against what is labelled.

use std::collections::{BTreeMap, BTreeSet};

use super::corpus::{Facts, LABELS, Labelled};

/// How the values of one predicate were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Score {
    /// Labelled and found.
    pub(crate) right: usize,
    /// Found, and neither labelled nor allowed.
    pub(crate) wrong: usize,
    /// Labelled, and not found.
    pub(crate) missed: usize,
}

impl Score {
    /// Of what was found, how much is right; 1 if nothing was.
    pub(crate) fn precision(self) -> f64 {
        share(self.right, self.right + self.wrong)
    }

    /// Of what is there, how much was found; 1 if nothing is.
    pub(crate) fn recall(self) -> f64 {
        share(self.right, self.right + self.missed)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 1.0;
    }
    part as f64 / whole as f64
}

/// A value that should not be there, or should.
pub(crate) struct Slip {
    pub(crate) id: String,
    pub(crate) predicate: &'static str,
    pub(crate) value: String,
    pub(crate) is_missed: bool,
}

/// The scores of a part by predicate, and its slips.
pub(crate) fn score(
    messages: &[Labelled],
    find: impl Fn(&Labelled) -> Facts,
) -> (BTreeMap<&'static str, Score>, Vec<Slip>) {
    let mut scores: BTreeMap<&'static str, Score> = BTreeMap::new();
    let mut slips = Vec::new();
    for message in messages {
        let (facts, allowed, found) = (message.facts(), message.allowed(), find(message));
        for (predicate, _) in LABELS {
            let (facts, allowed, found) =
                (&facts[predicate], &allowed[predicate], &found[predicate]);
            let is_summary = predicate == "request_summary";
            let any = is_summary && message.allows_any_summary();
            let fits = |label: &String, value: &String| match is_summary {
                true => sums_up(value, label),
                false => label == value,
            };
            let is_in = |labels: &BTreeSet<String>, value| labels.iter().any(|it| fits(it, value));
            let right = facts
                .iter()
                .filter(|label| found.iter().any(|value| fits(label, value)));
            let score = scores.entry(predicate).or_default();
            score.right += right.count();
            let wrong = found
                .iter()
                .filter(|value| !is_in(facts, value) && !is_in(allowed, value) && !any);
            let missed = facts
                .iter()
                .filter(|label| !found.iter().any(|value| fits(label, value)));
            let slip = |value: &String, is_missed| Slip {
                id: message.id.clone(),
                predicate,
                value: value.clone(),
                is_missed,
            };
            let wrong: Vec<Slip> = wrong.map(|value| slip(value, false)).collect();
            let missed: Vec<Slip> = missed.map(|value| slip(value, true)).collect();
            score.wrong += wrong.len();
            score.missed += missed.len();
            slips.extend(wrong);
            slips.extend(missed);
        }
    }
    (scores, slips)
}

/// Whether a summary has the words of a label in their order, and hardly more.
fn sums_up(summary: &str, label: &str) -> bool {
    let words: Vec<&str> = summary.split_whitespace().collect();
    let mut rest = words.iter();
    let wanted: Vec<&str> = label.split_whitespace().collect();
    let has_all = wanted.iter().all(|word| rest.any(|it| it == word));
    has_all && words.len() <= wanted.len() + 8
}

#[test]
fn a_summary_has_the_words_of_its_label_in_order() {
    assert!(sums_up("send me the signed copy", "send signed copy"));
    assert!(!sums_up("send me the copy", "send signed copy"));
    assert!(!sums_up("copy signed send", "send signed copy"));
    assert!(!sums_up(&format!("send {}", "very ".repeat(20)), "send"));
}

#[test]
fn scores_count_what_is_right_wrong_and_missed() {
    let score = Score {
        right: 3,
        wrong: 1,
        missed: 2,
    };
    assert!((score.precision() - 0.75).abs() < 1e-9);
    assert!((score.recall() - 0.6).abs() < 1e-9);
    assert!((Score::default().precision() - 1.0).abs() < 1e-9);
}
