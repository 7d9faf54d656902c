//! Refusals as pages: a stable code and a safe text.

use maud::{Markup, html};

use super::{ALERT, Chrome, Place, icon};
use crate::error::Told;

pub(crate) fn page(chrome: &Chrome, told: &Told, back: Option<&str>) -> Markup {
    let main = html! {
        section.card.narrow aria-labelledby="title" {
            h1 #title tabindex="-1" data-focus { (icon(ALERT)) " " (told.title) }
            p.lead { (told.text) }
            @if let Some(after) = told.retry_after {
                p { "Try again in " (super::words::duration(after.as_secs().max(1))) "." }
            }
            p.small { "Code: " code data-code { (told.code) } }
            p {
                @match back {
                    Some(back) => a.button href=(back) { "Back to the request" },
                    None => a.button href="/" { "To the start" },
                }
            }
        }
    };
    chrome.page(&format!("Error: {}", told.title), Place::Elsewhere, &main)
}

pub(crate) fn signed_out(told: &Told) -> Markup {
    let main = html! {
        section.card.narrow aria-labelledby="title" {
            h1 #title tabindex="-1" data-focus { (told.title) }
            p.lead { (told.text) }
            p.small { "Code: " code data-code { (told.code) } }
            p { a.button href="/sign-in" { "Sign in" } }
        }
    };
    Chrome::bare().page(&format!("Error: {}", told.title), Place::Elsewhere, &main)
}
