//! Days by which the author commits to something.

use super::Cues;
use super::judge::is_midnight_unclear;
use crate::cue::{self, Tie};
use crate::date::Mention;
use crate::mark;
use crate::sentence::Sentence;

/// How far the way of saying it lowers the confidence if the author commits to something by that
/// day; the mark that says why not; none if the day belongs to something else.
pub(super) fn promised(
    sentence: &Sentence,
    cues: Cues<'_>,
    mention: &Mention,
) -> Option<Result<f64, &'static str>> {
    if sentence.is_question {
        return None;
    }
    let commitments = cues.commitments;
    let is_before = |at: usize| at < mention.start;
    let last = commitments.iter().rev().find(|it| is_before(it.at));
    let asked = cues.requests.iter().map(|it| it.at);
    let last_asked = asked.clone().filter(|at| is_before(*at)).max();
    let (promise, from) = match last {
        // "You will need to": what is asked is nearer.
        Some(last) if last_asked.is_some_and(|at| at > last.at) => return None,
        Some(last) => (last, last.at + 1),
        None if last_asked.is_some() => return None,
        None => {
            let first = commitments.iter().find(|it| it.at >= mention.end)?;
            if asked.clone().any(|at| at < first.at) || first.at > mention.end + 3 {
                return None;
            }
            (first, first.at + 1)
        }
    };
    Some(judge(sentence, mention, from).map(|factor| factor * promise.factor))
}

fn judge(sentence: &Sentence, mention: &Mention, from: usize) -> Result<f64, &'static str> {
    let tokens = &sentence.tokens;
    let at = mention.start;
    let tie = cue::tie(
        tokens,
        mention.start,
        mention.end,
        mention.is_end,
        mention.is_bare,
    );
    if cue::is_reported(tokens, from.min(at)) || cue::is_said_to_others(tokens, from) {
        return Err(mark::REPORTED);
    }
    if cue::is_conditional(tokens, at)
        || cue::is_conditional(tokens, from)
        || cue::condition_follows(tokens, mention.end)
    {
        return Err(mark::CONDITIONAL);
    }
    if cue::is_negated(tokens, at) || cue::is_negated(tokens, from.saturating_sub(1)) {
        return Err(mark::NEGATED);
    }
    if cue::is_hedged(tokens, 0, at.max(from)) {
        return Err(mark::HEDGED);
    }
    if from < at && cue::begins_other_clause(tokens, from, at) {
        return Err(mark::NOT_EXTRACTED);
    }
    if from < at && cue::tells_past(tokens, from, at) {
        return Err(mark::DATE_PAST);
    }
    // "I will ask Tom to send it by"
    let asks_others = tokens
        .get(from)
        .is_some_and(|it| it.is_one_of(&["ask", "tell", "remind", "urge", "instruct"]))
        && tokens[from..at.max(from)]
            .iter()
            .any(|it| it.is_one_of(&["to", "that"]));
    if asks_others {
        return Err(mark::NOT_EXTRACTED);
    }
    if is_midnight_unclear(tokens, mention) {
        return Err(mark::TIME_MIDNIGHT);
    }
    match tie {
        Tie::By => Ok(1.0),
        Tie::On => Ok(0.9),
        Tie::Bare if cue::stands_alone(tokens, mention.end) || from > at => Ok(0.85),
        Tie::Before => Err(mark::DATE_EXCLUSIVE),
        Tie::Bare | Tie::Until | Tie::Other => Err(mark::NOT_EXTRACTED),
    }
}
