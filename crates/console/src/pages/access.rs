//! Access that is active, and its end.

use maud::{Markup, html};

use super::review::names;
use super::{ALERT, Chrome, Place, foreign, hidden, icon, moment, more, words};
use crate::engine::Decision;

pub(crate) fn page(chrome: &Chrome, entries: &[Decision], next: Option<u64>) -> Markup {
    let main = html! {
        h1 { "Active access" }
        @if entries.is_empty() {
            p.lead.empty { "Nobody has access now by a decision about you." }
        } @else {
            p.lead { "What was granted and can still be used or fetched. You can end it at any time." }
            ul.cards {
                @for entry in entries {
                    li {
                        article.card.entry {
                            h2 { (foreign(&entry.recipient)) }
                            p.due { "until " (moment(entry.expires_at)) }
                            (summary(entry, false))
                            p {
                                a.button href={ "/access/" (entry.decision) "/revoke" } {
                                    "End this access"
                                    span.off-screen { " of " (foreign(&entry.recipient)) }
                                }
                            }
                        }
                    }
                }
            }
        }
        (more("/access", "", next))
    };
    chrome.page("Active access", Place::Access, &main)
}

pub(crate) fn ask(chrome: &Chrome, entry: &Decision, operation: &str) -> Markup {
    let main = html! {
        section.card aria-labelledby="title" {
            h1 #title { "End this access?" }
            p.lead { "Nothing further is handed over, and what was handed over may not be used any more. What the recipient has learned already cannot be taken back." }
            (summary(entry, true))
            form method="post" action={ "/access/" (entry.decision) "/revoke" } {
                (chrome.csrf())
                (hidden("operation_id", operation))
                div.buttons {
                    button.danger type="submit" { "End the access" }
                    a.button href="/access" { "Keep it" }
                }
            }
        }
    };
    chrome.page("End this access?", Place::Access, &main)
}

pub(crate) fn done(chrome: &Chrome) -> Markup {
    let main = html! {
        section.card.narrow aria-labelledby="title" {
            h1 #title tabindex="-1" data-focus data-result="revoked" { "The access has ended" }
            p.lead { "Nothing is issued under it any more, and the recipient is told that it was revoked." }
            p { a.button href="/access" { "To active access" } }
        }
    };
    chrome.page("The access has ended", Place::Access, &main)
}

/// What a decision granted, to whom; below the heading of the page, or of an entry on it.
fn summary(entry: &Decision, is_question: bool) -> Markup {
    html! {
        dl.facts {
            dt { "Asked by" } dd { (foreign(&entry.requester)) }
            dt { "Goes to" } dd { (foreign(&entry.recipient)) }
            dt { "About" } dd { (foreign(&entry.subject)) }
            dt { "Purpose" } dd { (words::purpose(&entry.purpose_code)) }
            dt { "Decided" } dd { (moment(entry.decided_at)) }
            dt { "By" }
            dd {
                @if entry.approval.is_some() { "a person's answer, under the policy" } @else { "the policy alone" }
            }
        }
        @if is_question { h2 { "Granted" } } @else { h3 { "Granted" } }
        (names(&entry.granted, &entry.granted_actions))
        @if entry.bundle.is_none() {
            p.small { (icon(ALERT)) " It has not been made ready for the recipient yet." }
        }
    }
}
