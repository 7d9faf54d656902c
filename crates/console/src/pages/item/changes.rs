//! What is different from what a person was shown.

use maud::{Markup, html};

use crate::engine::{Item, Treatment};
use crate::pages::words;

/// The differences, in sentences, and the parts of the scope that they are about.
pub(super) struct Changes {
    sentences: Vec<String>,
    parts: Vec<String>,
}

impl Changes {
    pub(super) fn between(before: &Item, now: &Item) -> Self {
        let mut changes = Self {
            sentences: Vec::new(),
            parts: Vec::new(),
        };
        let parts = |item: &Item| -> Vec<(String, Treatment, String)> {
            let selectors = item.selectors.iter();
            let selectors =
                selectors.map(|it| (it.predicate.clone(), it.treatment, it.label.clone()));
            let actions = item.actions.iter();
            let actions = actions.map(|it| (it.action.clone(), it.treatment, String::new()));
            selectors.chain(actions).collect()
        };
        let (old, new) = (parts(before), parts(now));
        for (name, treatment, label) in &new {
            let shown = words::name(name);
            match old.iter().find(|(known, ..)| known == name) {
                None => changes.part(name, format!("{shown} is asked for in addition.")),
                Some((_, known, _)) if known != treatment => {
                    changes.part(name, format!("{shown}: {}.", treated(*treatment)));
                }
                Some((_, _, known)) if known != label => {
                    changes.part(name, format!("{shown} has another label."));
                }
                Some(_) => {}
            }
        }
        for (name, ..) in &old {
            if !new.iter().any(|(kept, ..)| kept == name) {
                let sentence = format!("{} is not asked for any more.", words::name(name));
                changes.sentences.push(sentence);
            }
        }
        let others = [
            (
                before.summary.requester != now.summary.requester,
                "Somebody else asks.",
            ),
            (before.client != now.client, "Another program asks."),
            (
                before.summary.recipient != now.summary.recipient,
                "It goes to somebody else.",
            ),
            (
                before.summary.purpose_code != now.summary.purpose_code,
                "The purpose is another one.",
            ),
            (
                before.purpose != now.purpose,
                "The requester gives other words for its purpose.",
            ),
            (
                before.retention_mode != now.retention_mode,
                "It may be kept in another way.",
            ),
            (
                before.retention_seconds != now.retention_seconds,
                "It may be kept for another time.",
            ),
            (
                before.onward != now.onward,
                "Whether it may be passed on is different.",
            ),
            (
                before.policy_digest != now.policy_digest,
                "Another policy is active.",
            ),
        ];
        for (differs, sentence) in others {
            if differs {
                changes.sentences.push(sentence.to_owned());
            }
        }
        if changes.sentences.is_empty() {
            let sentence = "The request is another one; what it asks for looks the same.";
            changes.sentences.push(sentence.to_owned());
        }
        changes
    }

    fn part(&mut self, name: &str, sentence: String) {
        self.parts.push(name.to_owned());
        self.sentences.push(sentence);
    }

    /// Whether a part of the scope is new, or stands another way.
    pub(super) fn is_new(&self, name: &str) -> bool {
        self.parts.iter().any(|part| part == name)
    }

    pub(super) fn summary(&self) -> Markup {
        html! {
            section.notice.changed aria-labelledby="changed" data-changed {
                h2 #changed { "What changed since you looked" }
                ul { @for sentence in &self.sentences { li { (sentence) } } }
            }
        }
    }
}

const fn treated(treatment: Treatment) -> &'static str {
    match treatment {
        Treatment::Ordinary => "the policy allows it without asking you now",
        Treatment::Gated => "it needs your answer now",
        Treatment::Denied => "it is denied whatever you answer now",
    }
}
