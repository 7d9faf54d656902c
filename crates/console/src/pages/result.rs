//! What came of an answer: what the engine recorded, and nothing else.

use cl_model::object::PolicyDecision;
use maud::{Markup, html};

use super::review::names;
use super::{Chrome, Place, foreign, words};
use crate::engine::{Item, Outcome, RequestState};

pub(crate) fn page(chrome: &Chrome, item: Option<&Item>, outcome: &Outcome) -> Markup {
    let decision = &outcome.decision;
    let (title, text) = told(outcome);
    let grants = decision.decision.allows() && is_live(outcome.state);
    let main = html! {
        section.card aria-labelledby="title" {
            h1 #title tabindex="-1" data-focus data-result=(if grants { "granted" } else { "not-granted" }) { (title) }
            p.lead { (text) }
            @if let Some(code) = &outcome.failure { p.small { "Code: " code data-code { (code) } } }
            @if let Some(item) = item {
                dl.facts {
                    dt { "Asked by" } dd { (foreign(&item.summary.requester)) }
                    dt { "Goes to" } dd { (foreign(&item.summary.recipient)) }
                }
            }
            @if grants {
                h2 { "Granted" }
                (names(&granted(decision), &actions(decision)))
            }
            (denied(decision))
            h2 { "Why" }
            ul.plain {
                @for code in decision.reason_codes.iter() {
                    li { (words::reason(code.as_str())) " " code { (code.as_str()) } }
                }
            }
            div.buttons {
                a.button href="/approvals" { "To all requests" }
                @if grants { a.button href="/access" { "To active access" } }
            }
        }
    };
    chrome.page(title, Place::Queue, &main)
}

const fn is_live(state: RequestState) -> bool {
    matches!(state, RequestState::Decided | RequestState::Issued)
}

fn told(outcome: &Outcome) -> (&'static str, &'static str) {
    if !outcome.decision.decision.allows() {
        return (
            "Nothing was granted",
            "Your answer was recorded. The recipient learns nothing by this request.",
        );
    }
    match outcome.state {
        RequestState::Issued => (
            "Access was granted",
            "Your answer was recorded, and the recipient can fetch what you granted.",
        ),
        RequestState::Decided => (
            "Access was granted",
            "Your answer was recorded. What you granted is being made ready for the recipient.",
        ),
        RequestState::Failed => (
            "Your answer was recorded, but nothing is handed over",
            "What you granted could not be made ready for the recipient.",
        ),
        RequestState::Revoked => (
            "What you granted was taken back",
            "Your answer was recorded, and the access was ended since.",
        ),
        RequestState::Expired | RequestState::PendingApproval => (
            "Your answer was recorded, but its time is over",
            "The request ran out before anything could be handed over.",
        ),
    }
}

fn granted(decision: &PolicyDecision) -> Vec<String> {
    let granted = decision.granted_selectors.iter();
    granted.map(|it| it.predicate.as_str().to_owned()).collect()
}

fn actions(decision: &PolicyDecision) -> Vec<String> {
    let granted = decision.granted_actions.iter();
    granted.map(|it| it.as_str().to_owned()).collect()
}

fn denied(decision: &PolicyDecision) -> Markup {
    let selectors = decision.denied_selectors.iter();
    let selectors: Vec<_> = selectors
        .map(|it| it.predicate.as_str().to_owned())
        .collect();
    let actions = decision.denied_actions.iter();
    let actions: Vec<_> = actions.map(|it| it.as_str().to_owned()).collect();
    html! {
        @if !selectors.is_empty() || !actions.is_empty() {
            h2 { "Not granted" }
            (names(&selectors, &actions))
        }
    }
}
