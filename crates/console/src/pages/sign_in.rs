//! The page of people who are not signed in.

use maud::{Markup, html};

use super::{Chrome, Place, hidden, needs_script, status};

pub(crate) fn page(csrf: &str) -> Markup {
    let main = html! {
        section.card.narrow aria-labelledby="title" {
            h1 #title { "Sign in" }
            p.lead { "You decide what others may learn. Sign in with the passkey that you enrolled." }
            (needs_script())
            (status())
            form method="post" action="/sign-in" data-passkey="sign-in" data-begin="/sign-in/begin" {
                (hidden("csrf", csrf))
                (hidden("ceremony_id", ""))
                (assertion_fields())
                button.primary.wide type="submit" { "Sign in with a passkey" }
            }
            p.small { "No passkey yet? Your operator gives you a link to enrol one." }
        }
    };
    Chrome::bare().page("Sign in", Place::Elsewhere, &main)
}

/// What the script fills in.
pub(super) fn assertion_fields() -> Markup {
    html! {
        (hidden("credential_id", ""))
        (hidden("client_data", ""))
        (hidden("authenticator_data", ""))
        (hidden("signature", ""))
    }
}
