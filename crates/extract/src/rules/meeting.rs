//! Days and times at which the author and the owner are to meet.

use crate::cue::{self, Meeting};
use crate::date::{Mention, Phrase};
use crate::mark;
use crate::sentence::Sentence;

/// How sure the meeting on that day is; the mark that says why there is none; none if the day
/// belongs to something else.
pub(super) fn met(sentence: &Sentence, mention: &Mention) -> Option<Result<Meeting, &'static str>> {
    let tokens = &sentence.tokens;
    let at = mention.start;
    let is_deadline = at
        .checked_sub(1)
        .is_some_and(|it| tokens[it].is_one_of(&["by", "before", "until", "till", "since", "due"]));
    if is_deadline || mention.is_end {
        return None;
    }
    let meeting = cue::meeting(tokens, mention.start, mention.end, sentence.is_question)?;
    let is_after = at
        .checked_sub(1)
        .is_some_and(|it| tokens[it].is_one_of(&["after", "following", "around", "about"]));
    if is_after {
        return Some(Err(mark::DATE_VAGUE));
    }
    Some(judge(sentence, mention, meeting))
}

fn judge(
    sentence: &Sentence,
    mention: &Mention,
    meeting: Meeting,
) -> Result<Meeting, &'static str> {
    let tokens = &sentence.tokens;
    let at = mention.start;
    if cue::is_reported(tokens, meeting.at.min(at)) {
        return Err(mark::REPORTED);
    }
    if cue::is_negated(tokens, at) || cue::is_negated(tokens, meeting.at) || cue::is_off(tokens) {
        return Err(mark::NEGATED);
    }
    if cue::is_conditional(tokens, at.max(meeting.at)) {
        return Err(mark::CONDITIONAL);
    }
    if cue::is_asked_about(tokens, at) {
        return Err(mark::QUESTIONED);
    }
    if tokens
        .iter()
        .any(|it| it.is_one_of(&["was", "were", "had", "went", "took", "did"]))
        || matches!(mention.phrase, Phrase::Past)
    {
        return Err(mark::DATE_PAST);
    }
    Ok(meeting)
}
