//! The published rules: what each takes, and why it is believed as far as it is.

/// A rule, as its candidates name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// The predicates that it yields.
    pub predicates: &'static [&'static str],
    /// What it takes, and why it is in doubt, in words for the owner.
    pub reason: &'static str,
}

/// Days that somebody asks for, promises, or wants to meet on: read by the same rules.
const DAYS: &[&str] = &[
    "meeting_date",
    "promised_delivery_date",
    "requested_delivery_date",
];

/// Every rule, by name.
pub const RULES: &[Rule] = &[
    Rule {
        name: AMOUNT,
        predicates: &["amount_due"],
        reason: "An amount with its currency, in a sentence that says that it is to be paid.",
    },
    Rule {
        name: CONTACT_SIGNATURE,
        predicates: &["contact_email", "contact_phone"],
        reason: "Stands in the author's own signature, or in labelled lines below the greeting.",
    },
    Rule {
        name: CONTACT_STATED,
        predicates: &["contact_email", "contact_phone"],
        reason: "The author says that this is how to reach them.",
    },
    Rule {
        name: "date.day_of_month",
        predicates: DAYS,
        reason: "A day without its month, taken for the coming one.",
    },
    Rule {
        name: "date.explicit",
        predicates: DAYS,
        reason: "A day with its month; without a year, the coming one.",
    },
    Rule {
        name: "date.numeric",
        predicates: DAYS,
        reason: "A day in numbers, whose order the dates of the message show.",
    },
    Rule {
        name: "date.period_end",
        predicates: DAYS,
        reason: "The last day of a month or year that the text names.",
    },
    Rule {
        name: "date.relative",
        predicates: DAYS,
        reason: "Days counted from the author's own date of the message.",
    },
    Rule {
        name: "date.weekday",
        predicates: DAYS,
        reason: "A weekday, taken for the coming one; usage varies.",
    },
    Rule {
        name: REQUEST_AUTHOR,
        predicates: &["requesting_stakeholder"],
        reason: "The author asks for something in so many words.",
    },
    Rule {
        name: REQUEST_SUMMARY,
        predicates: &["request_summary"],
        reason: "The words that follow the verb by which the author asks, up to a date or a comma.",
    },
    Rule {
        name: TIME_OF_DAY,
        predicates: &["meeting_starts_at"],
        reason: "A time beside the day of a meeting, on the author's clock or in the zone beside it.",
    },
];

pub(crate) const AMOUNT: &str = "amount.payment";
pub(crate) const CONTACT_SIGNATURE: &str = "contact.signature";
pub(crate) const CONTACT_STATED: &str = "contact.stated";
pub(crate) const REQUEST_AUTHOR: &str = "request.author";
pub(crate) const REQUEST_SUMMARY: &str = "request.summary";
pub(crate) const TIME_OF_DAY: &str = "time.of_day";

/// What a rule takes and why it is in doubt; none for rules that are not these.
pub fn reason(name: &str) -> Option<&'static str> {
    let found = RULES.iter().find(|rule| rule.name == name);
    found.map(|rule| rule.reason)
}
