//! Decisions, explained.

use maud::{Markup, html};

use super::review::names;
use super::{Chrome, Place, foreign, moment, more, words};
use crate::engine::Decision;

pub(crate) fn page(chrome: &Chrome, entries: &[Decision], next: Option<u64>) -> Markup {
    let main = html! {
        h1 { "Decisions" }
        @if entries.is_empty() {
            p.lead.empty { "Nothing was decided about you yet." }
        } @else {
            p.lead { "Everything that was decided about you, with the reasons." }
            ul.cards { @for entry in entries { li { (card(entry)) } } }
        }
        (more("/decisions", "", next))
    };
    chrome.page("Decisions", Place::Decisions, &main)
}

fn card(entry: &Decision) -> Markup {
    html! {
        article.card.entry {
            h2 { (words::outcome(&entry.outcome)) }
            p.due { (moment(entry.decided_at)) }
            dl.facts {
                dt { "Asked by" } dd { (foreign(&entry.requester)) }
                dt { "For" } dd { (foreign(&entry.recipient)) }
                dt { "About" } dd { (foreign(&entry.subject)) }
                dt { "Purpose" } dd { (words::purpose(&entry.purpose_code)) }
                dt { "Now" }
                dd {
                    (words::standing(entry.state))
                    @if entry.is_active { "; the access is active until " (moment(entry.expires_at)) }
                }
                dt { "By" }
                dd {
                    @if entry.approval.is_some() { "a person's answer, under the policy" } @else { "the policy alone" }
                }
            }
            h3 { "Why" }
            ul.plain {
                @for code in &entry.reasons { li { (words::reason(code)) " " code { (code) } } }
            }
            details {
                summary { "What was granted and what was not" }
                @if entry.granted.is_empty() && entry.granted_actions.is_empty() {
                    p { "Nothing was granted." }
                } @else {
                    h3 { "Granted" }
                    (names(&entry.granted, &entry.granted_actions))
                }
                @if !entry.denied.is_empty() || !entry.denied_actions.is_empty() {
                    h3 { "Not granted" }
                    (names(&entry.denied, &entry.denied_actions))
                }
            }
            p {
                a href={ "/receipts?decision=urn:cl:decision:" (entry.decision) } {
                    "Receipts of this decision"
                    span.off-screen { " of " (moment(entry.decided_at)) }
                }
            }
        }
    }
}
