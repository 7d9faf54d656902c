//! The pages. They hold no decision: what they show is given to them, and all of it is escaped.

pub(crate) mod access;
pub(crate) mod decisions;
pub(crate) mod enrol;
pub(crate) mod error;
pub(crate) mod item;
pub(crate) mod queue;
pub(crate) mod receipts;
pub(crate) mod result;
pub(crate) mod review;
pub(crate) mod sign_in;
pub(crate) mod words;

use cl_model::time::UnixTime;
use maud::{DOCTYPE, Markup, html};

use self::words::visible;
use crate::assets::{ICON, SCRIPT, STYLE};

/// What is around a page: nothing, or the way to the others and out.
pub(crate) struct Chrome {
    person: Option<(String, String)>,
}

/// The pages that are always in reach.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Queue,
    Access,
    Decisions,
    Receipts,
    Elsewhere,
}

const PLACES: [(Place, &str, &str); 4] = [
    (Place::Queue, "/approvals", "Requests"),
    (Place::Access, "/access", "Active access"),
    (Place::Decisions, "/decisions", "Decisions"),
    (Place::Receipts, "/receipts", "Receipts"),
];

impl Chrome {
    /// For nobody.
    pub(crate) const fn bare() -> Self {
        Self { person: None }
    }

    /// For somebody who is signed in, with the value of their forms.
    pub(crate) fn of(principal: &str, csrf: String) -> Self {
        Self {
            person: Some((visible(principal), csrf)),
        }
    }

    /// The hidden field that ties a form to the session.
    pub(crate) fn csrf(&self) -> Markup {
        html! {
            @if let Some((_, csrf)) = &self.person { (hidden("csrf", csrf)) }
        }
    }

    /// A whole page. The title begins with what went wrong, if something did.
    pub(crate) fn page(&self, title: &str, place: Place, main: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="robots" content="noindex";
                    title { (title) " – Context Layer" }
                    link rel="icon" type="image/svg+xml" href=(ICON.path());
                    link rel="stylesheet" href=(STYLE.path());
                    script src=(SCRIPT.path()) defer {}
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    header.top {
                        div.bar {
                            a.brand href="/" {
                                svg.mark viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false" {
                                    rect width="32" height="32" rx="7" {}
                                    path d="M9 16.5l4.6 4.6L23 11.6" {}
                                }
                                span { "Context Layer" }
                            }
                            @if let Some((principal, _)) = &self.person {
                                div.who {
                                    span.principal { span.off-screen { "Signed in as " } bdi { (principal) } }
                                    form method="post" action="/sign-out" {
                                        (self.csrf())
                                        button.quiet type="submit" { "Sign out" }
                                    }
                                }
                            }
                        }
                        @if self.person.is_some() {
                            nav aria-label="Main" {
                                ul {
                                    @for (other, path, name) in PLACES {
                                        li {
                                            a href=(path) aria-current=[(other == place).then_some("page")] { (name) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                    main #main tabindex="-1" { (main) }
                    footer.bottom {
                        p { "Every answer leaves a receipt that can be verified." }
                    }
                }
            }
        }
    }
}

/// A hidden field of a form.
pub(crate) fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// A moment, for people and for machines.
pub(crate) fn moment(time: UnixTime) -> Markup {
    html! { time datetime=(time.to_string()) { (words::moment(time)) } }
}

/// Text that somebody else wrote: set apart, so that its direction moves nothing around it.
pub(crate) fn foreign(text: &str) -> Markup {
    html! { bdi { (visible(text)) } }
}

/// Where the script of a page says what happens; empty until then.
pub(crate) fn status() -> Markup {
    html! { p.status role="alert" data-status {} }
}

/// For browsers that run no script.
pub(crate) fn needs_script() -> Markup {
    html! {
        noscript {
            p.notice.warn { "Passkeys need JavaScript. Allow it for this site, then reload the page." }
        }
    }
}

/// The way to the rest of a list.
pub(crate) fn more(path: &str, query: &str, next: Option<u64>) -> Markup {
    let glue = if query.is_empty() { "" } else { "&" };
    html! {
        @if let Some(next) = next {
            nav.more aria-label="Further entries" {
                a href={ (path) "?" (query) (glue) "page=" (next) } rel="next" { "Show more" }
            }
        }
    }
}

/// A sign beside a word, never in its place.
pub(crate) fn icon(path: &str) -> Markup {
    html! {
        svg.icon viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false" {
            path d=(path) {}
        }
    }
}

/// A triangle with a mark.
pub(crate) const ALERT: &str = "M8 1.5 15 14H1L8 1.5Zm0 4.2v4M8 11.6v.6";
/// A tick.
pub(crate) const TICK: &str = "M2.5 8.5 6.3 12.3 13.5 4.5";
/// A bar in a circle.
pub(crate) const BARRED: &str = "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13ZM3.5 12.5 12.5 3.5";
/// A circle with a question in it.
pub(crate) const ASKED: &str = "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13ZM6.2 6.3a1.9 1.9 0 1 1 2.6 1.8c-.6.2-.8.6-.8 1.1M8 11.3v.5";
