//! What waits for an answer.

use cl_model::time::UnixTime;
use maud::{Markup, html};

use super::{Chrome, Place, foreign, moment, more, words};
use crate::engine::Summary;

pub(crate) fn page(
    chrome: &Chrome,
    entries: &[Summary],
    next: Option<u64>,
    now: UnixTime,
) -> Markup {
    let main = html! {
        h1 { "Requests that wait for you" }
        @if entries.is_empty() {
            p.lead.empty { "Nothing waits for your answer." }
        } @else {
            p.lead { "Nothing is disclosed until you answer. A request that you leave alone ends by itself." }
            ul.cards {
                @for entry in entries { li { (card(entry, now)) } }
            }
        }
        (more("/approvals", "", next))
    };
    chrome.page("Requests", Place::Queue, &main)
}

fn card(entry: &Summary, now: UnixTime) -> Markup {
    html! {
        article.card.entry {
            h2 {
                a href={ "/approvals/" (entry.approval) } { (words::purpose(&entry.purpose_code)) }
            }
            p.due { (words::left(entry.expires_at, now)) }
            dl.facts {
                dt { "Asked by" } dd { (foreign(&entry.requester)) }
                dt { "Goes to" } dd { (foreign(&entry.recipient)) }
                dt { "About" } dd { (foreign(&entry.subject)) }
                dt { "Came in" } dd { (moment(entry.created_at)) }
                dt { "Ends" } dd { (moment(entry.expires_at)) }
            }
        }
    }
}
