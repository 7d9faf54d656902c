//! Sentences about receipts: one template for each fact, and no word that the receipt does not bear
//! out (spec 7.8).

use std::fmt;

use crate::object::{DecisionState, Outcome, Receipt};
use crate::receipt::BUNDLE_CONSUME;
use crate::scalar::{Name, ReasonCode};
use crate::time::UnixTime;

/// The operation of the store's own receipts about intents that nobody settled in time.
pub const OVERDUE: &str = "operation.overdue";

/// Whose word a receipt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A process of the deployment about itself.
    Authority,
    /// The consumer of a bundle.
    Consumer,
}

impl Word {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Authority => "authority",
            Self::Consumer => "consumer",
        }
    }
}

/// The operations of this deployment: what "set out to" do means, and what "did".
const KNOWN: [(&str, &str, &str); 31] = [
    (
        "vault.capture",
        "take source events into the vault",
        "took source events into the vault",
    ),
    (
        "vault.resolve",
        "look up the claims that a grant allows",
        "looked up the claims that a grant allows",
    ),
    (
        "vault.erase_subject",
        "erase all that the vault held of a subject",
        "erased all that the vault held of a subject",
    ),
    (
        "vault.erase_event",
        "erase one source event",
        "erased one source event",
    ),
    (
        "memory.propose",
        "keep a proposed memory update for review",
        "kept a proposed memory update for review",
    ),
    (
        "semantic_proxy.project",
        "bring granted claims into the form that may be disclosed",
        "brought granted claims into the form that may be disclosed",
    ),
    (
        "policy.decide",
        "decide a context request",
        "decided a context request",
    ),
    (
        "policy.put_snapshot",
        "store a policy snapshot",
        "stored a policy snapshot",
    ),
    (
        "policy.activate_snapshot",
        "make a policy snapshot the active one",
        "made a policy snapshot the active one",
    ),
    (
        "policy.replay",
        "evaluate a recorded decision again",
        "evaluated a recorded decision again",
    ),
    (
        "policy.approve",
        "take a person's answer to a context request",
        "took a person's answer to a context request",
    ),
    (
        "policy.refuse_approval",
        "take a person's answer that did not fit",
        "took a person's answer that did not fit",
    ),
    (
        "policy.refuse_sign_in",
        "sign a person in by a passkey that may have been copied",
        "signed a person in by a passkey that may have been copied",
    ),
    (
        "policy.open_enrolment",
        "make a link to enrol a passkey",
        "made a link to enrol a passkey",
    ),
    (
        "policy.enrol_credential",
        "enrol a passkey",
        "enrolled a passkey",
    ),
    (
        "policy.confirm_credential",
        "confirm a passkey",
        "confirmed a passkey",
    ),
    (
        "policy.revoke_credential",
        "revoke a passkey",
        "revoked a passkey",
    ),
    (
        "policy.revoke_grant",
        "take back what a decision granted, as a person asked",
        "took back what a decision granted, as a person asked",
    ),
    (
        "policy.set_anomaly",
        "set the anomaly state of a requester",
        "set the anomaly state of a requester",
    ),
    (
        "policy.clear_anomaly",
        "clear the anomaly state of a requester",
        "cleared the anomaly state of a requester",
    ),
    (
        "policy.set_shadow",
        "have a policy snapshot evaluated beside the active one",
        "had a policy snapshot evaluated beside the active one",
    ),
    (
        "policy.clear_shadow",
        "end the evaluation of a policy snapshot beside the active one",
        "ended the evaluation of a policy snapshot beside the active one",
    ),
    (
        "policy.delegate",
        "write down what a subject delegates",
        "wrote down what a subject delegates",
    ),
    (
        "policy.revoke_delegation",
        "revoke what a subject had delegated",
        "revoked what a subject had delegated",
    ),
    (
        "bundle.issue",
        "issue a bundle for one recipient",
        "issued a bundle for one recipient",
    ),
    (
        "bundle.deliver",
        "hand a bundle out to its recipient",
        "handed a bundle out to its recipient",
    ),
    (
        "bundle.revoke",
        "end bundles before their time",
        "ended bundles before their time",
    ),
    (BUNDLE_CONSUME, "open a bundle", "opened a bundle"),
    (
        "receipts.hold",
        "put receipts on hold",
        "put receipts on hold",
    ),
    (
        "receipts.release",
        "end a hold on receipts",
        "ended a hold on receipts",
    ),
    ("receipts.erase", "erase receipts", "erased receipts"),
];

/// A receipt, its contents checked, with what is known beside it.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The receipt.
    pub receipt: &'a Receipt,
    /// Whose word it is.
    pub word: Word,
    /// The process that wrote it.
    pub writer: &'a str,
    /// When the receipt store recorded it.
    pub recorded_at: UnixTime,
    /// How further receipts of the decision can be found, behind "say it"; may be empty.
    pub pointer: &'a str,
}

impl Facts<'_> {
    /// All that the receipt says.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![self.deed()];
        sentences.extend(self.results());
        sentences.push(self.subject());
        sentences.push(self.occasion());
        sentences.push(self.policy());
        sentences.push(self.times());
        sentences.push(self.word());
        sentences.extend(self.withheld());
        let superseded = self.receipt.supersedes_ref.as_ref();
        if let Some(superseded) = superseded.and_then(|it| it.get()) {
            let superseded = superseded.as_str();
            sentences.push(format!("It takes the place of the receipt {superseded}."));
        }
        sentences
    }

    fn deed(&self) -> String {
        let actor = self.receipt.actor.as_str();
        let operation = self.receipt.operation.as_str();
        if operation == OVERDUE && self.word == Word::Authority {
            let named = self.name("operation");
            let named = named.map_or("an operation".to_owned(), |it| {
                format!("the operation {it}")
            });
            return format!(
                "{actor} noted that {named} did not report its end by its deadline: it may have been \
                 done, or not."
            );
        }
        // A consumer may report any action that its bundle grants, whatever its name.
        let is_ours = (operation == BUNDLE_CONSUME) == (self.word == Word::Consumer);
        let known = KNOWN
            .iter()
            .find(|(name, ..)| is_ours && *name == operation);
        let (attempt, done) = match known {
            Some((_, attempt, done)) => ((*attempt).to_owned(), (*done).to_owned()),
            None => (
                format!("carry out the operation {operation}"),
                format!("carried out the operation {operation}"),
            ),
        };
        match self.receipt.outcome {
            Outcome::Success => format!("{actor} {done}."),
            Outcome::Failure => format!("{actor} set out to {attempt}, and it was not done."),
            Outcome::Indeterminate => {
                format!("{actor} set out to {attempt}: it may have been done, or not.")
            }
        }
    }

    /// What came of it, as far as the metadata of our own receipts has it.
    fn results(&self) -> Vec<String> {
        let mut results = Vec::new();
        if let Some(decision) = self.fact("decision").and_then(DecisionState::parse) {
            results.push(format!(
                "The decision is {}: {}.",
                decision.as_str(),
                decided(decision)
            ));
        }
        let counted = |(name, what, after): &(&str, &str, &str)| {
            let count = self.count(name)?;
            let plural = if count == 1 { "" } else { "s" };
            let be = if count == 1 { "was" } else { "were" };
            Some(format!("{count} {what}{plural} {be} {after}."))
        };
        let counts: &[_] = match self.receipt.operation.as_str() {
            "vault.capture" => &[
                ("captured", "source event", "new"),
                ("duplicates", "source event", "known already"),
                ("refused", "item", "refused"),
            ],
            "vault.resolve" => &[("claims", "claim", "found that may be used")],
            "vault.erase_subject" => &[
                ("events", "source event", "erased"),
                ("claims", "claim", "erased"),
            ],
            "vault.erase_event" => &[("retracted_claims", "claim", "retracted with it")],
            "semantic_proxy.project" => &[("items", "item", "let through")],
            "bundle.issue" => &[("items", "item", "put into the bundle")],
            "bundle.revoke" => &[("bundles", "bundle", "ended")],
            _ => &[],
        };
        results.extend(counts.iter().filter_map(counted));
        if let Some(reason) = self.name("reason") {
            results.push(format!("The reason given is {reason}."));
        }
        let code = self
            .fact("code")
            .filter(|code| ReasonCode::new(*code).is_some());
        results.extend(code.map(|code| format!("The reason has the code {code}.")));
        results
    }

    fn subject(&self) -> String {
        let alias = self.receipt.subject_ref.as_str();
        format!("It concerns a context that is known here by the alias {alias} only.")
    }

    fn occasion(&self) -> String {
        let receipt = self.receipt;
        let request = receipt.request_ref.get().map(|it| ("request", it.as_str()));
        let decision = receipt
            .decision_ref
            .get()
            .map(|it| ("decision", it.as_str()));
        let bundle = receipt.bundle_ref.get().map(|it| ("bundle", it.as_str()));
        let named = [request, decision, bundle].into_iter().flatten();
        let named: Vec<_> = named.map(|(what, id)| format!("the {what} {id}")).collect();
        if named.is_empty() {
            return "It belongs to no request, decision or bundle.".to_owned();
        }
        format!("It belongs to {}.", named.join(", "))
    }

    fn policy(&self) -> String {
        match self.receipt.policy_snapshot.get() {
            Some(digest) => format!(
                "The policy that it is about, or that was in force, has the digest {digest}."
            ),
            None => "It names no policy.".to_owned(),
        }
    }

    fn times(&self) -> String {
        let receipt = self.receipt;
        let (from, to) = (receipt.started_at.as_str(), receipt.completed_at.as_str());
        let recorded = self.recorded_at;
        format!(
            "It began at {from} and ended at {to}; the receipt store recorded it at {recorded}."
        )
    }

    fn word(&self) -> String {
        let writer = self.writer;
        match self.word {
            Word::Authority => {
                format!("By the receipt store's account, this is the word of the process {writer}.")
            }
            Word::Consumer => format!(
                "By the receipt store's account, this is the word of {}, who had the bundle, passed \
                 on by {writer}; only where it came from was checked.",
                self.receipt.actor.as_str(),
            ),
        }
    }

    /// What was withheld, where a decision was carried out.
    fn withheld(&self) -> Option<String> {
        let decision = self.receipt.decision_ref.get()?.as_str();
        let pointer = match self.pointer {
            "" => String::new(),
            pointer => format!(": {pointer} {decision}"),
        };
        Some(match self.count("withheld") {
            Some(1) => "1 claim was withheld.".to_owned(),
            Some(count) => format!("{count} claims were withheld."),
            None => format!(
                "Whether anything was withheld is not said here; other receipts of the decision may \
                 say it{pointer}."
            ),
        })
    }

    /// A fact of the metadata. A consumer's is not shown: it may be any text.
    fn fact(&self, name: &str) -> Option<&str> {
        let metadata = self.receipt.metadata.as_ref();
        let metadata = metadata.filter(|_| self.word == Word::Authority)?;
        let found = metadata.iter().find(|(key, _)| key.as_str() == name);
        found.map(|(_, fact)| fact.as_str())
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.fact(name)?.parse().ok()
    }

    fn name(&self, name: &str) -> Option<&str> {
        self.fact(name).filter(|fact| Name::new(*fact).is_some())
    }
}

const fn decided(decision: DecisionState) -> &'static str {
    match decision {
        DecisionState::Allow => "all that was asked for is granted",
        DecisionState::AllowWithReductions => {
            "a part of what was asked for is granted, or a reduced form of it"
        }
        DecisionState::Deny => "nothing is granted",
        DecisionState::NeedsApproval => "a person has to approve it first",
    }
}

/// That a newer receipt has taken the place of one.
pub fn superseded_by(newer: &str) -> String {
    format!("By the receipt store's account, the receipt {newer} has taken its place.")
}

/// That the proof of a receipt verifies.
pub fn proven(sequence: u64, size: u64, origin: &str) -> String {
    format!(
        "Its proof verifies: it is entry {sequence} of the {size} in the log {origin}, under a \
         signature of a trusted key."
    )
}

/// That it does not, and why.
pub fn not_proven(why: &impl fmt::Display) -> String {
    format!("Its proof does not verify: {why}.")
}

#[cfg(test)]
mod tests {
    use crate::json::read::FromJson;
    use crate::receipt::Draft;

    use super::*;

    fn draft(operation: &'static str, outcome: Outcome) -> Draft<'static> {
        let now = UnixTime::from_milliseconds(1_900_000_000_000);
        Draft::new(
            operation,
            "urn:a:b",
            "urn:cl:alias:x",
            outcome,
            "Canary.",
            now,
        )
    }

    fn sentences(draft: Draft<'_>, word: Word) -> Vec<String> {
        let record = draft.finish().expect("a receipt");
        let receipt = Receipt::from_json(&record.into_value()).ok();
        let facts = Facts {
            receipt: &receipt.expect("a receipt"),
            word,
            writer: "spiffe://t/w",
            recorded_at: UnixTime::from_milliseconds(1_900_000_000_000),
            pointer: "list --decision",
        };
        facts.sentences()
    }

    #[test]
    fn unknown_operations_get_a_truthful_sentence() {
        for (outcome, expected) in [
            (
                Outcome::Success,
                "urn:a:b carried out the operation tea.brew.",
            ),
            (
                Outcome::Failure,
                "urn:a:b set out to carry out the operation tea.brew, and it was not done.",
            ),
            (
                Outcome::Indeterminate,
                "urn:a:b set out to carry out the operation tea.brew: it may have been done, or not.",
            ),
        ] {
            let said = sentences(draft("tea.brew", outcome), Word::Consumer);
            assert_eq!(said[0], expected);
            assert_eq!(
                said[1],
                "It concerns a context that is known here by the alias urn:cl:alias:x only."
            );
            assert_eq!(said[2], "It belongs to no request, decision or bundle.");
        }
    }

    #[test]
    fn a_consumer_is_not_believed_to_be_a_process() {
        let said = sentences(draft("policy.decide", Outcome::Success), Word::Consumer);
        assert_eq!(said[0], "urn:a:b carried out the operation policy.decide.");
        assert!(
            said.iter()
                .any(|it| it.contains("only where it came from was checked"))
        );
        let said = sentences(draft(BUNDLE_CONSUME, Outcome::Success), Word::Consumer);
        assert_eq!(said[0], "urn:a:b opened a bundle.");
    }

    #[test]
    fn only_facts_of_a_known_form_are_shown() {
        let with = |word| {
            let (request, decision) = ("urn:cl:request:r", "urn:cl:decision:d");
            let draft = draft("vault.resolve", Outcome::Failure)
                .about_decision(request, decision)
                .with_metadata("withheld", "2")
                .with_metadata("claims", "canary")
                .with_metadata("code", "canary text")
                .with_metadata("other", "canary");
            sentences(draft, word)
        };
        let said = with(Word::Authority);
        assert!(
            said.contains(&"2 claims were withheld.".to_owned()),
            "{said:?}"
        );
        assert!(!said.concat().to_lowercase().contains("canary"), "{said:?}");
        let said = with(Word::Consumer);
        let pointer = "may say it: list --decision urn:cl:decision:d.";
        assert!(said.iter().any(|it| it.ends_with(pointer)), "{said:?}");
    }

    #[test]
    fn an_operation_that_is_overdue_is_named() {
        let draft =
            draft(OVERDUE, Outcome::Indeterminate).with_metadata("operation", "bundle.issue");
        let said = sentences(draft, Word::Authority);
        assert_eq!(
            said[0],
            "urn:a:b noted that the operation bundle.issue did not report its end by its deadline: \
             it may have been done, or not."
        );
    }
}
