//! Plain words for what the protocol has codes for. A code without words is shown as it is.

use std::sync::LazyLock;

use cl_model::scalar::Predicate;
use cl_model::time::UnixTime;
use cl_model::vocabulary::Vocabulary;
use time::OffsetDateTime;

static VOCABULARY: LazyLock<Option<Vocabulary>> = LazyLock::new(|| Vocabulary::published().ok());

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Text with nothing in it that is not seen: controls, and marks that change direction or width.
pub(crate) fn visible(text: &str) -> String {
    let is_hidden = |character: char| {
        character.is_control()
            || matches!(character,
                '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}')
    };
    text.chars()
        .map(|it| if is_hidden(it) { '\u{fffd}' } else { it })
        .collect()
}

/// A moment, such as `30 November 2026, 21:25 UTC`.
pub(crate) fn moment(time: UnixTime) -> String {
    match OffsetDateTime::from_unix_timestamp(time.milliseconds().div_euclid(1000)) {
        Ok(at) => format!(
            "{} {} {}, {:02}:{:02} UTC",
            at.day(),
            at.month(),
            at.year(),
            at.hour(),
            at.minute()
        ),
        Err(_) => time.to_string(),
    }
}

/// How long something lasts, rounded down to two units.
pub(crate) fn duration(seconds: u64) -> String {
    let unit = |count: u64, name: &str| match count {
        0 => None,
        1 => Some(format!("1 {name}")),
        count => Some(format!("{count} {name}s")),
    };
    let parts = [
        unit(seconds / DAY, "day"),
        unit(seconds % DAY / HOUR, "hour"),
        unit(seconds % HOUR / MINUTE, "minute"),
        unit(seconds % MINUTE, "second"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().take(2).collect();
    match parts.is_empty() {
        true => "no time".to_owned(),
        false => parts.join(" "),
    }
}

/// How long it is until a moment, or that it is past.
pub(crate) fn left(until: UnixTime, now: UnixTime) -> String {
    let milliseconds = until.milliseconds().saturating_sub(now.milliseconds());
    match u64::try_from(milliseconds) {
        Ok(left) if left >= 1000 => format!("{} left", duration(left / 1000)),
        Ok(_) | Err(_) => "time is over".to_owned(),
    }
}

/// A predicate or action as words: `amount_due` is `Amount due`.
pub(crate) fn name(code: &str) -> String {
    let words = visible(code).replace(['_', '.'], " ");
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase());
    first.into_iter().flatten().chain(letters).collect()
}

/// What a predicate means, where it is published.
pub(crate) fn predicate(code: &str) -> Option<String> {
    let vocabulary = VOCABULARY.as_ref()?;
    let known = vocabulary.find(&Predicate::new(code)?)?;
    Some(known.summary.as_str().to_owned())
}

/// What an action means, where it is known.
pub(crate) fn action(code: &str) -> Option<&'static str> {
    Some(match code {
        "email.create_draft" => "Write a draft of an e-mail. It is not sent.",
        "email.send" => "Send an e-mail in your name.",
        "model.generate_text" => "Have a model write text from what is disclosed.",
        "model.summarize" => "Have a model summarise what is disclosed.",
        "model.classify" => "Have a model sort what is disclosed into kinds.",
        _ => return None,
    })
}

/// What a label means.
pub(crate) fn label(label: &str) -> &'static str {
    match label {
        "public" => "Public: for anybody",
        "internal" => "Internal: within your circle",
        "private" => "Private: for you and those you choose",
        "sensitive" => "Sensitive: harmful if disclosed",
        _ => "Restricted: not to be disclosed without an explicit rule",
    }
}

/// A registered purpose code (spec 7.3.1).
pub(crate) fn purpose(code: &str) -> &'static str {
    match code {
        "draft.response" => "To draft a response",
        "summarize.material" => "To summarise material",
        "retrieve.context" => "To look up context",
        "plan.task" => "To plan a task",
        "execute.approved_action" => "To carry out an action that was approved",
        "discover.minimum_reveal" => {
            "To find out whether something fits, revealing as little as possible"
        }
        "propose.memory_update" => "To propose a change of what is remembered",
        _ => "A purpose of the requester's own kind",
    }
}

/// How what is disclosed may be kept.
pub(crate) fn retention(mode: &str) -> &'static str {
    match mode {
        "ephemeral" => "Only in memory, for at most",
        "single_use" => "For one use, within",
        _ => "For at most",
    }
}

/// Whether what is disclosed may be passed on.
pub(crate) fn onward(word: &str) -> &'static str {
    match word {
        "forbidden" => "No. The recipient may not pass it on.",
        "allowed" => "Yes. The recipient may pass it on to others.",
        _ => "Not stated; treat it as yes.",
    }
}

/// What evidence an operation's receipt is.
pub(crate) fn evidence(operation: &str) -> Option<&'static str> {
    Some(match operation {
        "policy.decide" => "that the request was decided, and how",
        "policy.approve" => "that you answered, and when",
        "bundle.issue" => "that a bundle was made for the recipient",
        "bundle.deliver" => "that the recipient fetched it",
        _ => return None,
    })
}

/// What an outcome means.
pub(crate) fn outcome(decision: &str) -> &'static str {
    match decision {
        "allow" => "Everything was granted",
        "allow_with_reductions" => "A part was granted",
        "needs_approval" => "Waited for a person",
        _ => "Nothing was granted",
    }
}

/// Why something was decided, for each reason code.
pub(crate) fn reason(code: &str) -> &'static str {
    match code {
        "REQUEST_ALLOWED" => "The policy allows everything that was asked for.",
        "SCOPE_REDUCED" => "Less was granted than was asked for.",
        "SELECTORS_WITHHELD" => "Some kinds of facts are withheld.",
        "ACTIONS_WITHHELD" => "Some actions are withheld.",
        "RETENTION_REDUCED" => "It may be kept for a shorter time than was asked for.",
        "NO_SELECTOR_GRANTED" => "None of the kinds of facts is granted.",
        "NO_ACTION_GRANTED" => "None of the actions is granted.",
        "UNSUPPORTED_REQUEST" => "The request has a form that is not supported.",
        "REQUEST_ID_MISSING" => "The request does not say what it is called.",
        "SUBJECT_MISSING" => "The request does not say whose context it is about.",
        "TASK_NOT_ALLOWED" => "The policy does not allow this kind of task.",
        "REQUEST_EXPIRED" => "The request's own time was over.",
        "REQUEST_EXPIRY_INVALID" => "The request does not say until when it counts.",
        "RETENTION_MODE_NOT_ALLOWED" => "The policy does not allow this way of keeping it.",
        "RATE_LIMIT_EXCEEDED" => "The requester asked too often.",
        "ANOMALY_STATE_BLOCKED" => "Something about the requester was out of the ordinary.",
        "SELECTORS_EMPTY" => "The request asks for no facts.",
        "ACTIONS_EMPTY" => "The request asks for no actions.",
        "SELECTOR_WILDCARD_NOT_ALLOWED" => "The request asks for everything of a kind at once.",
        "ACTION_WILDCARD_NOT_ALLOWED" => "The request asks for every action at once.",
        "RECEIPT_PREFLIGHT_FAILED" => {
            "No evidence could have been written, so nothing was granted."
        }
        "REQUESTER_UNAUTHENTICATED" => "The requester did not prove who it is.",
        "SUBJECT_NOT_AUTHORIZED" => "The policy does not cover this subject.",
        "REQUESTER_FACTS_MISMATCH" => {
            "The requester says it is somebody else than it proved to be."
        }
        "CLIENT_NOT_REGISTERED" => "The requester's program is not registered.",
        "ASSURANCE_TOO_LOW" => "It is not sure enough who the requester is.",
        "POLICY_SNAPSHOT_EXPIRED" => "The policy's own time was over.",
        "SELECTOR_LIMIT_EXCEEDED" => "The request asks for too many kinds of facts at once.",
        "ACTION_LIMIT_EXCEEDED" => "The request asks for too many actions at once.",
        "REQUEST_LIFETIME_EXCEEDED" => "The request would count for too long.",
        "REQUESTER_NOT_AUTHORIZED" => "The policy does not name this requester.",
        "CLIENT_NOT_AUTHORIZED" => "The policy does not name the program that the requester used.",
        "AUTHENTICATION_METHOD_NOT_ALLOWED" => {
            "The requester proved who it is in a way that does not count."
        }
        "RECIPIENT_AMBIGUOUS" => "The request names more than one recipient.",
        "RECIPIENT_NOT_AUTHORIZED" => "The policy does not name this recipient.",
        "ONWARD_DISCLOSURE_NOT_ALLOWED" => "The policy does not allow passing it on.",
        "PURPOSE_CODE_MISSING" => "The request gives no purpose.",
        "PURPOSE_CODE_INVALID" => "The request's purpose is not a known one.",
        "PURPOSE_CODE_NOT_ALLOWED" => "The policy does not allow this purpose.",
        "PURPOSE_INVALID" => "The request's own words on its purpose are missing or too long.",
        "APPROVAL_REQUIRED" => "A person has to approve a part of it.",
        "APPROVAL_DECLINED" => "A person declined it.",
        "APPROVAL_EXPIRED" => "A person's approval had ended.",
        "APPROVAL_BINDING_INVALID" => "A person's approval was of another request or policy.",
        "APPROVAL_SCOPE_INCOMPLETE" => "A person's approval did not cover what was asked for.",
        "APPROVAL_UNVERIFIED" => "A person's approval could not be verified.",
        _ => "The policy says so.",
    }
}

/// Where a request stands, for the list of decisions.
pub(crate) const fn standing(state: crate::engine::RequestState) -> &'static str {
    use crate::engine::RequestState;

    match state {
        RequestState::PendingApproval => "It waits for a person",
        RequestState::Decided => "Decided",
        RequestState::Issued => "A bundle was issued",
        RequestState::Failed => "No bundle could be issued",
        RequestState::Expired => "Its time is over",
        RequestState::Revoked => "What it granted was taken back",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations_read_well() {
        let at = UnixTime::parse("2026-11-30T21:05:09.123Z").unwrap();
        assert_eq!(moment(at), "30 November 2026, 21:05 UTC");
        for (seconds, text) in [
            (0, "no time"),
            (1, "1 second"),
            (90, "1 minute 30 seconds"),
            (3600, "1 hour"),
            (90_061, "1 day 1 hour"),
        ] {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!(left(at.plus_seconds(61), at), "1 minute 1 second left");
        assert_eq!(left(at, at.plus_seconds(1)), "time is over");
    }

    #[test]
    fn nothing_hides_in_foreign_text() {
        for hidden in [
            "\u{202e}",
            "\u{200b}",
            "\n",
            "\u{0}",
            "\u{feff}",
            "\u{e0041}",
        ] {
            assert_eq!(visible(&format!("a{hidden}b")), "a\u{fffd}b", "{hidden:?}");
        }
        assert_eq!(visible("Grüße, 世界"), "Grüße, 世界");
        assert_eq!(name("amount_due"), "Amount due");
        assert_eq!(name(""), "");
    }

    #[test]
    fn what_is_published_has_words() {
        for known in VOCABULARY.as_ref().unwrap().iter() {
            assert!(predicate(known.predicate.as_str()).is_some());
        }
        for code in cl_model::purpose::REGISTERED {
            assert_ne!(purpose(code), purpose("x.a.b"), "{code}");
        }
    }
}
