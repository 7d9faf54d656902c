//! The marks: why something is in doubt, or was seen and not taken.
//!
//! Marks are lower-case words joined by `.` and `_`. The reader of a native format hands the first
//! ones in; extraction adds the others, to a candidate that is in doubt or to the message.

macro_rules! marks {
    ($($name:ident = $mark:literal, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $name: &str = $mark;
        )*

        /// Every mark with what it means, in the order of the list above.
        pub const ALL: &[(&str, &str)] = &[$(($name, $meaning)),*];
    };
}

/// What a mark means, in words for the owner; none for marks that others set.
pub fn meaning(mark: &str) -> Option<&'static str> {
    let found = ALL.iter().find(|(name, _)| *name == mark);
    found.map(|(_, meaning)| *meaning)
}

marks! {
    AUTOMATIC = "mail.automatic",
        "From the reader: no person wrote the message for this occasion (RFC 3834). Nothing is taken.";
    BULK = "mail.bulk",
        "From the reader: the message went to a list or to many. Nothing is taken.";
    CHARSET_GUESSED = "charset.guessed",
        "From the reader: the characters were guessed, so a currency sign may be another one.";
    JUNK = "mail.called_junk",
        "From the reader: a filter or a folder calls the message junk.";
    DRAFT = "mail.draft",
        "From the reader: the message was never sent.";
    THROWN_AWAY = "mail.thrown_away",
        "From the reader: the message was thrown away.";
    SEVERAL_AUTHORS = "author.several",
        "From the reader: several authors stand in `From`.";
    FAR_FROM_RECEIVED = "date.far_from_received",
        "From the reader: the message was received on quite another day than it says.";
    DATE_REPEATED = "header.date_repeated",
        "From the reader: several dates stand in the header.";
    STYLE_NOT_READ = "html.style_not_read",
        "From the reader: a style sheet hides something, and what cannot be told.";
    OVERRIDDEN = "text.direction_overridden",
        "From the reader: characters turn the text around, so that a reader sees other words.";
    CORRECTED = "statement.corrected",
        "The author takes something back or corrects it, and what stands before may be meant.";
    ZONE_UNKNOWN = "date.zone_unknown",
        "From the reader: the `Date` field has no usable zone, or says that its zone is unknown.";
    NOT_EXTRACTED = "not_extracted",
        "Something that looks like a date or an amount stands outside the grammar.";
    AUTHOR_UNKNOWN = "author.unknown",
        "The author cannot be read.";
    AUTHOR_OWNER = "author.owner",
        "The owner wrote the message: what the owner asks of others is not read yet.";
    OWNER_COPIED = "owner.copied",
        "The owner only gets a copy, so that the request may be for somebody else.";
    OWNER_NOT_ADDRESSED = "owner.not_addressed",
        "No address of the owner is among the recipients.";
    INSTRUCTION_SUSPECTED = "instruction.suspected",
        "The text talks to a machine, e.g. tells it to ignore instructions.";
    LANGUAGE_NOT_READ = "language.not_read",
        "The text is not in a language of the grammar.";
    TEXT_CUT = "text.cut",
        "There was more text than is read.";
    CANDIDATES_CUT = "candidates.cut",
        "There were more candidates than are kept.";
    DATE_ORDER = "date.order_ambiguous",
        "Day and month could stand in either order.";
    DATE_NEXT_WEEKDAY = "date.next_weekday_ambiguous",
        "\"next Friday\": people mean the coming one or the one after.";
    DATE_SAME_WEEKDAY = "date.same_weekday_ambiguous",
        "The weekday of the message itself: this one or the next.";
    DATE_WEEKDAY_MISMATCH = "date.weekday_mismatch",
        "Weekday and date do not agree.";
    DATE_NO_REFERENCE = "date.no_reference",
        "A relative day in a message without a readable date.";
    DATE_IMPLAUSIBLE = "date.implausible",
        "A day that does not exist, or lies decades away.";
    DATE_PAST = "date.past",
        "A day before the message.";
    DATE_YEAR_UNCLEAR = "date.year_unclear",
        "The year is missing, and the nearest such day is long ahead or just past.";
    DATE_VAGUE = "date.vague",
        "Coarser than a day: next week, August, the third quarter.";
    DATE_RANGE = "date.range",
        "From one day to another, or one day or another.";
    DATE_BUSINESS_DAYS = "date.business_days",
        "Working days need a calendar of holidays.";
    DATE_RECURRING = "date.recurring",
        "A recurring day.";
    DATE_EXCLUSIVE = "date.exclusive_bound",
        "\"before Friday\" may or may not include it.";
    NEGATED = "statement.negated",
        "The sentence denies it.";
    QUESTIONED = "statement.question",
        "The sentence asks whether it is so.";
    CONDITIONAL = "statement.conditional",
        "The clause depends on a condition.";
    REPORTED = "statement.reported",
        "The words are somebody else's, told by the author.";
    AMOUNT_SEPARATOR = "amount.separator_ambiguous",
        "One separator with three digits behind it, and nothing says what it means.";
    AMOUNT_SEPARATOR_ASSUMED = "amount.separator_assumed",
        "A comma before three digits, taken for thousands as English writes it.";
    AMOUNT_UNREADABLE = "amount.unreadable",
        "Digits that form no amount.";
    AMOUNT_NEGATIVE = "amount.negative",
        "Negative, or in brackets.";
    AMOUNT_RATE = "amount.rate",
        "Per hour, each, a month.";
    AMOUNT_INEXACT = "amount.inexact",
        "About, up to, from: not exact.";
    AMOUNT_NOT_DUE = "amount.not_due",
        "Paid, refunded, saved, quoted: not owed.";
    CURRENCY_SHARED_SIGN = "currency.shared_sign",
        "The sign stands for several currencies.";
    CURRENCY_UNKNOWN = "currency.unknown",
        "No currency beside an amount that is to be paid, or one that is not read.";
    DATE_UNTIL = "date.until",
        "\"until\" a day beside a request, read as by that day.";
    HEDGED = "statement.hedged",
        "Hoped, tried or likely: nobody commits to it.";
    HALF_DAY_ASSUMED = "time.half_day_assumed",
        "An hour without am or pm, taken for the one in working hours.";
    HALF_DAY_UNCLEAR = "time.half_day_unclear",
        "An hour without am or pm that could be either.";
    TIME_ZONE_UNCLEAR = "time.zone_unclear",
        "A time whose zone is not known, or has a name that several zones share.";
    TIME_CLOCK_CHANGE = "time.clock_change",
        "Clocks may change between the message and the time that it names.";
    TIME_MIDNIGHT = "time.midnight",
        "Midnight of a day: its beginning or its end.";
    TIME_INEXACT = "time.inexact",
        "A time that is not exact, or a stretch of time.";
    PHONE_COUNTRY_UNKNOWN = "contact.country_unknown",
        "A telephone number without its country.";
}
