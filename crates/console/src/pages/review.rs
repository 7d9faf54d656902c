//! What exactly a passkey is about to sign.

use maud::{Markup, html};

use super::sign_in::assertion_fields;
use super::{
    BARRED, Chrome, Place, TICK, foreign, hidden, icon, moment, needs_script, status, words,
};
use crate::engine::{Answer, Item, OpenAnswer};
use crate::http::encoded;

pub(crate) fn page(
    chrome: &Chrome,
    item: &Item,
    answer: &Answer,
    open: &OpenAnswer,
    operation: &str,
) -> Markup {
    let grants = !answer.granted_selectors.is_empty() || !answer.granted_actions.is_empty();
    let title = if grants {
        "Confirm what you grant"
    } else {
        "Confirm that you deny"
    };
    let credentials: Vec<_> = open.credentials.iter().map(|id| encoded(id)).collect();
    let main = html! {
        h1 { (title) }
        section.card aria-labelledby="sum" {
            h2 #sum {
                @if grants { "If you confirm" } @else { "If you confirm, nothing of this is granted" }
            }
            dl.facts {
                dt { "Asked by" } dd { (foreign(&item.summary.requester)) }
                dt { "Goes to" } dd { (foreign(&item.summary.recipient)) }
                dt { "About" } dd { (foreign(&item.summary.subject)) }
            }
            @if grants {
                h3 { (icon(TICK)) " You grant" }
                (names(&answer.granted_selectors, &answer.granted_actions))
            }
            @if !answer.declined_selectors.is_empty() || !answer.declined_actions.is_empty() {
                h3 { (icon(BARRED)) " You decline" }
                (names(&answer.declined_selectors, &answer.declined_actions))
            }
            @if grants {
                p { "Access ends on " (moment(item.access_ends_at)) " at the latest. You can end it earlier here." }
            }
        }
        section.card.answer aria-labelledby="confirm" {
            h2 #confirm { "Confirm" }
            p { "Your passkey signs this answer and nothing else. The confirmation is open until " (moment(open.ceremony.expires_at)) "." }
            (needs_script())
            (status())
            form method="post" action={ "/approvals/" (item.approval) "/confirm" }
                data-passkey="answer"
                data-challenge=(encoded(&open.ceremony.challenge))
                data-rp-id=(open.ceremony.rp_id)
                data-credentials=(credentials.join(" ")) {
                (chrome.csrf())
                (hidden("ceremony_id", &encoded(&open.ceremony.id)))
                (hidden("operation_id", operation))
                (assertion_fields())
                div.buttons {
                    @if grants {
                        button.primary type="submit" data-guarded { "Confirm with your passkey" }
                    } @else {
                        button.danger type="submit" data-guarded { "Deny with your passkey" }
                    }
                    a.button href={ "/approvals/" (item.approval) } { "Back, grant nothing" }
                }
            }
            details {
                summary { "The document that is signed" }
                pre tabindex="0" { code { (words::visible(&open.document)) } }
            }
        }
    };
    chrome.page(title, Place::Queue, &main)
}

/// Parts of a scope by name.
pub(super) fn names(selectors: &[String], actions: &[String]) -> Markup {
    html! {
        ul.names {
            @for name in selectors { li { (foreign(&words::name(name))) " " code { (words::visible(name)) } } }
            @for name in actions { li { (foreign(&words::name(name))) " " code { (words::visible(name)) } } }
        }
    }
}
