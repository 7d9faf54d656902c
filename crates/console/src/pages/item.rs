//! One item, with everything that a person has to see before answering (spec 9.3).

mod changes;

use maud::{Markup, html};

use self::changes::Changes;
use super::{
    ALERT, ASKED, BARRED, Chrome, Place, TICK, foreign, hidden, icon, moment, status, words,
};
use crate::engine::{Action, Item, Selector, State, Treatment};
use crate::error::Told;

/// What is said above the item.
pub(crate) enum Notice {
    None,
    /// A part was to be granted, and nothing was ticked.
    NothingTicked,
    /// An answer was refused.
    Refused(Told),
}

pub(crate) fn page(chrome: &Chrome, item: &Item, before: Option<&Item>, notice: Notice) -> Markup {
    let changes = before.map(|before| Changes::between(before, item));
    let is_open = item.state == State::Pending;
    let heading = words::purpose(&item.summary.purpose_code);
    let is_refused = matches!(notice, Notice::Refused(_) | Notice::NothingTicked);
    let main = html! {
        (self::notice(&notice))
        h1 { (heading) }
        @if !is_open { (state_of(item.state)) }
        @if let Some(changes) = &changes { (changes.summary()) }
        @if item.policy_changed {
            p.notice { "Another policy is active now than when the request came in. What you see is read under the one that is active now." }
        }
        section.card aria-labelledby="who" {
            h2 #who { "Who asks, and for whom" }
            dl.facts {
                dt { "Asked by" } dd { (foreign(&item.summary.requester)) }
                dt { "With the program" } dd { (foreign(&item.client)) ", known by " (item.authenticated_by) }
                dt { "Goes to" } dd { (foreign(&item.summary.recipient)) }
                dt { "About" } dd { (foreign(&item.summary.subject)) }
                dt { "Purpose" } dd { (heading) " " code { (words::visible(&item.summary.purpose_code)) } }
                dt { "Task" } dd { (foreign(&words::name(&item.task))) }
            }
            figure.claimed {
                figcaption { (icon(ALERT)) " The requester's own words. Nobody has checked them." }
                blockquote dir="auto" { (foreign(&item.purpose)) }
            }
        }
        @if is_open {
            form #answer method="post" action={ "/approvals/" (item.approval) "/answer" } {
                (chrome.csrf())
                (hidden("item_digest", &item.digest))
                (scope(item, changes.as_ref(), true))
                (terms(item))
                (buttons(item))
            }
        } @else {
            (scope(item, changes.as_ref(), false))
            (terms(item))
            p { a.button href="/approvals" { "To all requests" } }
        }
    };
    let title = if is_refused {
        format!("Error: {heading}")
    } else {
        heading.to_owned()
    };
    chrome.page(&title, Place::Queue, &main)
}

fn notice(notice: &Notice) -> Markup {
    html! {
        @match notice {
            Notice::None => {},
            Notice::NothingTicked => {
                div.notice.bad role="alert" tabindex="-1" data-focus {
                    h2 { "There is a problem" }
                    p { "You chose to grant a part, and ticked nothing." }
                    ul { li { a href="#scope" { "Tick what to grant, or deny everything" } } }
                }
            },
            Notice::Refused(told) => {
                div.notice.bad role="alert" tabindex="-1" data-focus {
                    h2 { (icon(ALERT)) " " (told.title) }
                    p { (told.text) }
                    p.small { "Code: " code data-code { (told.code) } }
                }
            },
        }
    }
}

fn state_of(state: State) -> Markup {
    let (title, text) = match state {
        State::Pending => return Markup::default(),
        State::Answered => (
            "This request was answered",
            "It takes no other answer. What was decided is in your decisions.",
        ),
        State::Expired => (
            "This request has expired",
            "Its time ran out before anybody answered. Nothing was granted.",
        ),
        State::Replaced => (
            "This request was replaced",
            "The requester sent another one in its place, and it is void. Nothing was granted.",
        ),
        State::NotNeeded => (
            "No answer is needed",
            "The policy that is active now decides this request by itself.",
        ),
    };
    html! {
        div.notice data-state { h2 { (title) } p { (text) } }
    }
}

fn scope(item: &Item, changes: Option<&Changes>, is_open: bool) -> Markup {
    let is_new = |name: &str| changes.is_some_and(|it| it.is_new(name));
    html! {
        fieldset #scope.card tabindex="-1" {
            legend { h2 { "What the recipient would learn" } }
            @if item.selectors.is_empty() { p { "Nothing." } }
            ul.scope {
                @for selector in &item.selectors {
                    li { (selector_row(selector, is_open, is_new(&selector.predicate))) }
                }
            }
        }
        fieldset.card {
            legend { h2 { "What the recipient may do with it" } }
            @if item.actions.is_empty() { p { "Nothing." } }
            ul.scope {
                @for action in &item.actions {
                    li { (action_row(action, is_open, is_new(&action.action))) }
                }
            }
        }
    }
}

fn selector_row(selector: &Selector, is_open: bool, is_new: bool) -> Markup {
    let name = words::name(&selector.predicate);
    let about = html! {
        @if let Some(meaning) = words::predicate(&selector.predicate) { span.meaning { (meaning) } }
        span.tags {
            @if selector.is_sensitive {
                span.tag.alert { (icon(ALERT)) " " (words::label(&selector.label)) }
            } @else {
                span.tag { (words::label(&selector.label)) }
            }
            (treated(selector.treatment))
            @if is_new { span.tag.new { "Changed since you looked" } }
        }
    };
    row(
        "selector",
        &selector.predicate,
        &name,
        selector.treatment,
        is_open,
        &about,
    )
}

fn action_row(action: &Action, is_open: bool, is_new: bool) -> Markup {
    let name = words::name(&action.action);
    let about = html! {
        @if let Some(meaning) = words::action(&action.action) { span.meaning { (meaning) } }
        span.tags {
            @if action.is_external {
                span.tag.alert { (icon(ALERT)) " Reaches others or changes something outside" }
            } @else {
                span.tag { "Changes nothing outside" }
            }
            (treated(action.treatment))
            @if is_new { span.tag.new { "Changed since you looked" } }
        }
    };
    row(
        "action",
        &action.action,
        &name,
        action.treatment,
        is_open,
        &about,
    )
}

fn row(
    field: &str,
    code: &str,
    name: &str,
    treatment: Treatment,
    is_open: bool,
    about: &Markup,
) -> Markup {
    let id = format!("{field}-{}", words::visible(code));
    html! {
        @if is_open && treatment == Treatment::Gated {
            div.choice {
                input type="checkbox" id=(id) name=(field) value=(code) aria-describedby={ (id) "-about" };
                label for=(id) { (foreign(name)) }
                div.about id={ (id) "-about" } { (about) }
            }
        } @else {
            div.choice.fixed {
                span.name { (foreign(name)) }
                div.about { (about) }
            }
        }
    }
}

fn treated(treatment: Treatment) -> Markup {
    html! {
        @match treatment {
            Treatment::Ordinary => { span.tag.ok { (icon(TICK)) " Ordinary: the policy allows it" } },
            Treatment::Gated => { span.tag.ask { (icon(ASKED)) " Needs your answer" } },
            Treatment::Denied => { span.tag.no { (icon(BARRED)) " Denied whatever you answer" } },
        }
    }
}

fn terms(item: &Item) -> Markup {
    html! {
        section.card aria-labelledby="terms" {
            h2 #terms { "For how long, and what is written down" }
            dl.facts {
                dt { "May be kept" }
                dd { (words::retention(&item.retention_mode)) " " (words::duration(item.retention_seconds)) }
                dt { "Access ends" } dd { (moment(item.access_ends_at)) " at the latest" }
                dt { "May be passed on" } dd { (words::onward(&item.onward)) }
                dt { "Evidence" }
                dd {
                    "Receipts, which you can read and verify here:"
                    ul.plain {
                        @for operation in &item.evidence {
                            li {
                                code { (words::visible(operation)) }
                                @if let Some(meaning) = words::evidence(operation) { ": " (meaning) }
                            }
                        }
                    }
                    "The recipient has to write receipts at the level " code { (words::visible(&item.receipt_level)) } "."
                }
                dt { "Policy" }
                dd { "Version " (foreign(&item.policy_version)) " " code.digest { (item.policy_digest) } }
                dt { "Answer until" } dd { (moment(item.summary.expires_at)) }
            }
            @if !item.reasons.is_empty() {
                h3 { "Why you are asked" }
                ul.plain {
                    @for code in &item.reasons { li { (words::reason(code)) " " code { (code) } } }
                }
            }
        }
    }
}

/// Denying comes last in the order of the page and is as easy as granting.
fn buttons(item: &Item) -> Markup {
    let gated = item.gated_selectors().count() + item.gated_actions().count();
    html! {
        section.card.answer aria-labelledby="your-answer" {
            h2 #your-answer { "Your answer" }
            p { "Nothing is granted yet: on the next page you see what exactly you confirm with your passkey." }
            (status())
            div.buttons {
                @if gated > 1 {
                    button.primary type="submit" name="answer" value="part" data-guarded { "Grant what is ticked" }
                }
                button.secondary type="submit" name="answer" value="all" data-guarded {
                    @if gated > 1 { "Grant everything" } @else { "Grant it" }
                }
                button.danger type="submit" name="answer" value="deny" { "Deny" }
            }
        }
    }
}
