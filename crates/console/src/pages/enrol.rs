//! Enrolling a passkey.

use maud::{Markup, html};

use super::{Chrome, Place, hidden, needs_script, status};

pub(crate) fn page(csrf: &str, operation: &str) -> Markup {
    let main = html! {
        section.card.narrow aria-labelledby="title" {
            h1 #title { "Enrol a passkey" }
            p.lead { "With it you sign in here, and confirm what you grant. It stays on your device." }
            dl.facts {
                dt { "For" }
                dd { bdi data-person { "Not known yet" } }
                dt { "Organisation" }
                dd { bdi data-tenant { "Not known yet" } }
            }
            p { "If this is not you, close the page and tell your operator." }
            (needs_script())
            (status())
            form method="post" action="/enrol" data-passkey="enrol" data-begin="/enrol/begin" {
                (hidden("csrf", csrf))
                (hidden("operation_id", operation))
                (hidden("link_token", ""))
                (hidden("ceremony_id", ""))
                (hidden("client_data", ""))
                (hidden("attestation_object", ""))
                button.primary.wide type="submit" { "Create the passkey" }
            }
        }
    };
    Chrome::bare().page("Enrol a passkey", Place::Elsewhere, &main)
}

pub(crate) fn done(fingerprint: &str) -> Markup {
    let main = html! {
        section.card.narrow aria-labelledby="title" {
            h1 #title tabindex="-1" data-focus { "Your passkey is enrolled" }
            p.lead { "It cannot be used yet. Your operator has to confirm it." }
            p { "Read this fingerprint to your operator, in person or by phone:" }
            p.fingerprint data-fingerprint { (fingerprint) }
            p.small { "They compare it with what they see. When it was confirmed, you can sign in." }
            p { a.button href="/sign-in" { "Go to the sign-in" } }
        }
    };
    Chrome::bare().page("Passkey enrolled", Place::Elsewhere, &main)
}
