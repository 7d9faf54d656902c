//! Which word about a meeting counts, among the sources of claims.

use std::collections::HashMap;

use cl_model::digest::Digest;
use cl_model::urn::ClaimId;
use serde_json::Value;

use super::{Gone, Rank, Revision};
use crate::core::claim::{Claim, Support};

/// The latest words about each meeting, by authority.
#[derive(Default)]
pub struct Words {
    by_authority: HashMap<(Digest, Digest), Latest>,
}

#[derive(Default)]
struct Latest {
    /// The latest word about the whole series.
    series: Option<Word>,
    /// The latest word about the whole series that names an occurrence.
    within: HashMap<String, Word>,
    /// The latest word about one occurrence.
    single: HashMap<String, Word>,
    /// The latest word about an occurrence and the later ones.
    onward: HashMap<String, Word>,
}

#[derive(Clone)]
struct Word {
    rank: Rank,
    claim: ClaimId,
    /// It leaves the occurrence that it names where the series has it.
    is_in_place: bool,
}

/// Orders words that were said at once: the one about fewer occurrences counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Series,
    Onward,
    Single,
}

impl Word {
    /// Takes the later one; of two at the same time, that with the lower claim id.
    fn or_later(held: Option<Self>, other: Self) -> Self {
        match held {
            Some(held)
                if (held.rank, std::cmp::Reverse(&held.claim))
                    >= (other.rank, std::cmp::Reverse(&other.claim)) =>
            {
                held
            }
            Some(_) | None => other,
        }
    }
}

impl Words {
    /// Those among the sources of claims.
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut words = Self::default();
        for claim in claims {
            for support in claim.supports() {
                words.add(claim, support);
            }
        }
        words
    }

    fn add(&mut self, claim: &Claim, support: &Support) {
        let Some((revision, authority)) = with_authority(support) else {
            return;
        };
        let occurrence = &revision.occurrence;
        let said = claim.value().and_then(Value::as_str).unwrap_or_default();
        let word = Word {
            rank: revision.rank,
            claim: claim.id.clone(),
            is_in_place: said.split('/').next() == Some(occurrence),
        };
        let latest = self
            .by_authority
            .entry((revision.series, authority))
            .or_default();
        let mut insert = |words: fn(&mut Latest) -> &mut HashMap<String, Word>| {
            let words = words(latest);
            let held = words.remove(occurrence);
            words.insert(occurrence.clone(), Word::or_later(held, word.clone()));
        };
        if revision.is_one_of_series {
            insert(|latest| &mut latest.single);
            if revision.is_and_later {
                insert(|latest| &mut latest.onward);
            }
        } else {
            insert(|latest| &mut latest.within);
            latest.series = Some(Word::or_later(latest.series.take(), word));
        }
    }

    /// Why a meeting does not take place when a claim says; none while one of its sources stands.
    pub fn gone(&self, claim: &Claim) -> Option<Gone> {
        let mut latest: Option<(Rank, Gone)> = None;
        for support in claim.supports() {
            let (revision, authority) = with_authority(support)?;
            let gone = self.gone_by(revision, authority)?;
            if latest
                .as_ref()
                .is_none_or(|(rank, _)| *rank <= revision.rank)
            {
                latest = Some((revision.rank, gone));
            }
        }
        latest.map(|(_, gone)| gone)
    }

    fn gone_by(&self, revision: &Revision, authority: Digest) -> Option<Gone> {
        let words = self.by_authority.get(&(revision.series, authority))?;
        let occurrence = &revision.occurrence;
        let single = words.single.get(occurrence);
        // A later word about the series restates all of it, what it leaves out included.
        let series = words.series.as_ref().map(|series| {
            let within = words.within.get(occurrence);
            within
                .filter(|within| within.rank == series.rank)
                .unwrap_or(series)
        });
        let onward = words.onward_to(occurrence);
        let said = [
            (Scope::Series, series),
            (Scope::Onward, onward),
            (Scope::Single, single),
        ];
        let said = said
            .into_iter()
            .filter_map(|(scope, it)| Some((scope, it?)));
        let (scope, latest) = said.max_by_key(|(scope, it)| (it.rank, *scope))?;
        let own = if revision.is_one_of_series {
            Scope::Single
        } else {
            Scope::Series
        };
        if latest.rank.is_cancelled {
            return Some(Gone::Cancelled(latest.rank.stamped_at));
        }
        let is_later = (latest.rank, scope) > (revision.rank, own);
        is_later.then(|| Gone::Moved(latest.claim.clone()))
    }
}

impl Latest {
    /// The latest word about an earlier occurrence and those after it, if it takes them elsewhere.
    fn onward_to(&self, occurrence: &str) -> Option<&Word> {
        // Texts of one form have one length, and the order of their times.
        let is_earlier = |it: &str| it.len() == occurrence.len() && it < occurrence;
        let words = self.onward.iter();
        let words = words.filter(|(from, word)| {
            is_earlier(from) && (word.rank.is_cancelled || !word.is_in_place)
        });
        let latest = words.max_by_key(|(from, word)| (word.rank, from.as_str()));
        latest.map(|(_, word)| word)
    }
}

fn with_authority(support: &Support) -> Option<(&Revision, Digest)> {
    let revision = support.revision.as_ref()?;
    Some((revision, revision.authority?))
}
