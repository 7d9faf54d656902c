//! Which claims a grant gets: at most 64, in one order, contradictions whole or not at all.
//!
//! 1. Only claims of a granted predicate that have a source and hold now; of meetings only those that
//!    were neither moved nor cancelled.
//! 2. Claims that contradict each other form a set: same predicate, different values that exclude
//!    each other, one conversation, not all from the same messages. A claim without a contradiction is a set of one.
//! 3. A set is taken only if the rule of its predicate lets each of its claims out: label, trust,
//!    confidence, status.
//! 4. Sets come in the order of the plan's rules; within one rule by their best claim. A claim is
//!    better if it is more certain, then if it was derived later, then by its id.
//! 5. A set that no longer fits is left out, and smaller ones after it are still tried. What fits
//!    beside the claims themselves, the caller says.
//!
//! So the choice depends on the claims and the plan only, and not on the order of storing.

use std::cmp::Ordering;
use std::collections::HashMap;

use cl_model::digest::Digest;
use cl_model::grant::ResolveRule;
use cl_model::object::ClaimStatus;
use cl_model::time::UnixTime;

use super::claim::{Claim, TRUST, excludes_others};
use super::meeting::Words;

/// The most claims that a grant gets.
pub const MAX_CLAIMS: usize = 64;

/// A claim that may leave.
pub struct Chosen {
    /// The claim.
    pub claim: Claim,
    /// Where it stands.
    pub status: ClaimStatus,
}

/// What was chosen, and how much was not.
pub struct Choice {
    /// The claims, in order.
    pub chosen: Vec<Chosen>,
    /// How many claims of the granted predicates stay behind; retracted ones do not count.
    pub withheld: u32,
}

/// Chooses from all claims of the granted predicates. `words` are those about their meetings; `fits`
/// is asked about each set that would be taken.
///
/// # Errors
///
/// Those of `fits`.
pub fn choose<E>(
    rules: &[&ResolveRule],
    claims: Vec<Claim>,
    words: &Words,
    mut fits: impl FnMut(&[Claim]) -> Result<bool, E>,
    now: UnixTime,
) -> Result<Choice, E> {
    let held: Vec<_> = claims
        .into_iter()
        .filter(|claim| claim.value().is_some())
        .collect();
    let total = held.len();
    let holds = |claim: &Claim| claim.holds(now) && words.gone(claim).is_none();
    let current = held.into_iter().filter(holds);
    let mut by_rule: Vec<Vec<Claim>> = rules.iter().map(|_| Vec::new()).collect();
    for claim in current {
        let position = rules
            .iter()
            .position(|rule| rule.predicate == claim.predicate);
        if let Some(of_rule) = position.and_then(|position| by_rule.get_mut(position)) {
            of_rule.push(claim);
        }
    }
    let mut chosen: Vec<Chosen> = Vec::new();
    for (rule, claims) in rules.iter().zip(by_rule) {
        for set in sets(claims) {
            let has_room = chosen.len() + set.len() <= MAX_CLAIMS;
            if is_allowed(rule, &set) && has_room && fits(&set)? {
                let is_contradicted = set.len() > 1;
                chosen.extend(set.into_iter().map(|claim| Chosen {
                    status: claim.status(is_contradicted),
                    claim,
                }));
            }
        }
    }
    Ok(Choice {
        withheld: u32::try_from(total - chosen.len()).unwrap_or(u32::MAX),
        chosen,
    })
}

fn is_allowed(rule: &ResolveRule, set: &[Claim]) -> bool {
    let is_contradicted = set.len() > 1;
    set.iter().all(|claim| {
        claim.label <= rule.max_label
            && TRUST >= rule.min_trust
            && claim.confidence() >= rule.min_confidence
            && rule.statuses.contains(&claim.status(is_contradicted))
    })
}

/// The sets of claims that contradict each other, best first, each in the order of its claims.
fn sets(mut claims: Vec<Claim>) -> Vec<Vec<Claim>> {
    claims.sort_by(better);
    let mut set_of: Vec<usize> = (0..claims.len()).collect();
    let mut members: HashMap<Digest, Vec<usize>> = HashMap::new();
    for (position, claim) in claims.iter().enumerate() {
        if !excludes_others(claim.datatype) {
            continue;
        }
        for thread in claim.threads() {
            members.entry(thread).or_default().push(position);
        }
    }
    for (thread, members) in &members {
        let mut statements = members
            .iter()
            .filter_map(|at| claims.get(*at))
            .map(|claim| claim.statement(*thread));
        let first = statements.next();
        // What one message says about several deeds contradicts nothing; another statement beside
        // it contradicts all of it.
        if statements.any(|it| Some(&it) != first.as_ref()) {
            for pair in members.windows(2) {
                join(&mut set_of, pair[0], pair[1]);
            }
        }
    }
    let mut sets: Vec<Vec<Claim>> = Vec::new();
    let mut place_of: HashMap<usize, usize> = HashMap::new();
    for (position, claim) in claims.into_iter().enumerate() {
        let root = root(&set_of, position);
        let place = *place_of.entry(root).or_insert(sets.len());
        match sets.get_mut(place) {
            Some(set) => set.push(claim),
            None => sets.push(vec![claim]),
        }
    }
    sets
}

fn better(one: &Claim, other: &Claim) -> Ordering {
    let certainty = |claim: &Claim| claim.confidence().get();
    certainty(other)
        .total_cmp(&certainty(one))
        .then_with(|| other.derived_at.cmp(&one.derived_at))
        .then_with(|| one.id.cmp(&other.id))
}

fn root(set_of: &[usize], position: usize) -> usize {
    let mut root = position;
    while let Some(next) = set_of.get(root).filter(|next| **next != root) {
        root = *next;
    }
    root
}

fn join(set_of: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(set_of, one), root(set_of, other));
    let (low, high) = (one.min(other), one.max(other));
    if let Some(entry) = set_of.get_mut(high) {
        *entry = low;
    }
}

#[cfg(test)]
mod tests;
