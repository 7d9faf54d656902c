//! Receipts, in plain words, and whether they verify.

use maud::{Markup, html};

use super::{ALERT, Chrome, Place, TICK, foreign, icon, moment, more, words};
use crate::forms::Form;
use crate::receipts::{Recorded, Shown};

/// A list of receipts, and the search that it answers.
pub(crate) struct Listed<'a> {
    /// What stands for each subject in addresses, and its name.
    pub(crate) subjects: Vec<(String, String)>,
    pub(crate) chosen: Option<String>,
    /// The fields of the search, which were checked.
    pub(crate) query: &'a Form,
    pub(crate) entries: Vec<Recorded>,
    pub(crate) total: u64,
    pub(crate) next: Option<u64>,
}

const OUTCOMES: [(&str, &str); 4] = [
    ("", "Any"),
    ("success", "Done"),
    ("failure", "Not done"),
    ("indeterminate", "Not known"),
];

const FIELDS: [&str; 7] = [
    "subject",
    "operation",
    "outcome",
    "from",
    "to",
    "bundle",
    "decision",
];

impl Listed<'_> {
    fn value(&self, name: &'static str) -> &str {
        self.query.optional(name).ok().flatten().unwrap_or_default()
    }

    /// The search without its place, as an address has it.
    fn query_string(&self) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        for name in FIELDS {
            let value = self.value(name);
            if !value.is_empty() {
                text.append_pair(name, value);
            }
        }
        text.finish()
    }
}

pub(crate) fn page(chrome: &Chrome, listed: &Listed<'_>) -> Markup {
    let main = html! {
        h1 { "Receipts" }
        p.lead { "What was done with your context, as it was recorded. Open one to see whether its proof verifies." }
        (search(listed))
        @if listed.chosen.is_none() {
            p.empty { "You may not approve for anybody under the active policy, so there are no receipts to show." }
        } @else if listed.entries.is_empty() {
            p.empty role="status" { "No receipt fits." }
        } @else {
            p role="status" { (listed.total) " in all, in the order in which they were recorded." }
            ul.cards { @for entry in &listed.entries { li { (card(entry)) } } }
        }
        (more("/receipts", &listed.query_string(), listed.next))
    };
    chrome.page("Receipts", Place::Receipts, &main)
}

fn search(listed: &Listed<'_>) -> Markup {
    html! {
        form.card.search method="get" action="/receipts" role="search" aria-label="Receipts" {
            div.field {
                label for="subject" { "About" }
                select #subject name="subject" {
                    @for (key, name) in &listed.subjects {
                        option value=(key) selected[listed.chosen.as_deref() == Some(key)] { (words::visible(name)) }
                    }
                }
            }
            (field("operation", "Operation", "text", "such as bundle.issue", listed))
            div.field {
                label for="outcome" { "Outcome" }
                select #outcome name="outcome" {
                    @for (value, name) in OUTCOMES {
                        option value=(value) selected[listed.value("outcome") == value] { (name) }
                    }
                }
            }
            (field("from", "From", "date", "", listed))
            (field("to", "Until", "date", "", listed))
            (field("bundle", "Bundle", "text", "urn:cl:bundle:…", listed))
            (field("decision", "Decision", "text", "urn:cl:decision:…", listed))
            div.field.submit { button.secondary type="submit" { "Search" } }
        }
    }
}

fn field(
    name: &'static str,
    label: &str,
    kind: &str,
    example: &str,
    listed: &Listed<'_>,
) -> Markup {
    let has_example = !example.is_empty();
    html! {
        div.field {
            label for=(name) { (label) }
            input id=(name) name=(name) type=(kind) value=(listed.value(name)) maxlength="512"
                autocomplete="off" spellcheck="false"
                aria-describedby=[has_example.then(|| format!("{name}-example"))];
            @if has_example { span.hint id={ (name) "-example" } { (example) } }
        }
    }
}

fn card(entry: &Recorded) -> Markup {
    let receipt = &entry.receipt;
    html! {
        article.card.entry {
            h2 {
                a href={ "/receipts/" (entry.id) } { (words::name(receipt.operation.as_str())) }
            }
            p.due { (moment(entry.recorded_at)) }
            dl.facts {
                dt { "Done by" } dd { (foreign(receipt.actor.as_str())) }
                dt { "Outcome" } dd { (outcome(receipt.outcome.as_str())) }
                dt { "Entry" } dd { (entry.sequence) }
            }
        }
    }
}

fn outcome(outcome: &str) -> &'static str {
    let known = OUTCOMES.iter().find(|(value, _)| *value == outcome);
    known.map_or("Not known", |(_, name)| name)
}

pub(crate) fn one(chrome: &Chrome, shown: &Shown) -> Markup {
    let recorded = &shown.recorded;
    let main = html! {
        h1 { "Receipt: " (words::name(recorded.receipt.operation.as_str())) }
        @match shown.proven {
            Ok(_) => {
                div.notice.good data-proof="verified" {
                    h2 { (icon(TICK)) " Its proof verifies" }
                    p { (shown.verdict) }
                }
            },
            Err(code) => {
                div.notice.bad role="alert" data-proof="not-verified" {
                    h2 { (icon(ALERT)) " Its proof does not verify" }
                    p { (shown.verdict) " Do not rely on this receipt, and tell your operator." }
                    p.small { "Code: " code data-code { (code) } }
                }
            },
        }
        section.card aria-labelledby="says" {
            h2 #says { "What it says" }
            ul.sentences { @for sentence in &shown.sentences { li { (foreign(sentence)) } } }
        }
        section.card aria-labelledby="raw" {
            h2 #raw { "The receipt itself" }
            p { code.digest { "urn:cl:receipt:" (recorded.id) } }
            details {
                summary { "As it was recorded" }
                pre tabindex="0" { code { (words::visible(&recorded.text)) } }
            }
        }
        p { a.button href="/receipts" { "To all receipts" } }
    };
    chrome.page("Receipt", Place::Receipts, &main)
}
