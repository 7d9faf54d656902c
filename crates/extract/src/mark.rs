//! The marks: why something is in doubt, or was seen and not taken.
//!
//! Marks are lower-case words joined by `.` and `_`. The reader of a native format hands the first
//! group in; extraction adds the others, to a candidate that is in doubt or to the message.

/// From the reader: no person wrote the message for this occasion (RFC 3834). Nothing is taken.
pub const AUTOMATIC: &str = "mail.automatic";
/// From the reader: the message went to a list or to many. Nothing is taken.
pub const BULK: &str = "mail.bulk";
/// From the reader: the characters were guessed, so a currency sign may be another one.
pub const CHARSET_GUESSED: &str = "charset.guessed";
/// From the reader: the `Date` field has no usable zone, or says that its zone is unknown.
pub const ZONE_UNKNOWN: &str = "date.zone_unknown";

/// Something that looks like a date or an amount stands outside the grammar.
pub const NOT_EXTRACTED: &str = "not_extracted";
/// The author cannot be read.
pub const AUTHOR_UNKNOWN: &str = "author.unknown";
/// The owner wrote the message: what the owner asks of others is not read yet.
pub const AUTHOR_OWNER: &str = "author.owner";
/// The owner only gets a copy, so that the request may be for somebody else.
pub const OWNER_COPIED: &str = "owner.copied";
/// No address of the owner is among the recipients.
pub const OWNER_NOT_ADDRESSED: &str = "owner.not_addressed";
/// The text talks to a machine, e.g. tells it to ignore instructions.
pub const INSTRUCTION_SUSPECTED: &str = "instruction.suspected";
/// The text is not in a language of the grammar.
pub const LANGUAGE_NOT_READ: &str = "language.not_read";
/// There was more text than is read.
pub const TEXT_CUT: &str = "text.cut";
/// There were more candidates than are kept.
pub const CANDIDATES_CUT: &str = "candidates.cut";

/// Day and month could stand in either order.
pub const DATE_ORDER: &str = "date.order_ambiguous";
/// "next Friday": people mean the coming one or the one after.
pub const DATE_NEXT_WEEKDAY: &str = "date.next_weekday_ambiguous";
/// The weekday of the message itself: this one or the next.
pub const DATE_SAME_WEEKDAY: &str = "date.same_weekday_ambiguous";
/// Weekday and date do not agree.
pub const DATE_WEEKDAY_MISMATCH: &str = "date.weekday_mismatch";
/// A relative day in a message without a readable date.
pub const DATE_NO_REFERENCE: &str = "date.no_reference";
/// A day that does not exist, or lies decades away.
pub const DATE_IMPLAUSIBLE: &str = "date.implausible";
/// A day before the message.
pub const DATE_PAST: &str = "date.past";
/// The year is missing, and the nearest such day is long ahead or just past.
pub const DATE_YEAR_UNCLEAR: &str = "date.year_unclear";
/// Coarser than a day: next week, August, the third quarter.
pub const DATE_VAGUE: &str = "date.vague";
/// From one day to another, or one day or another.
pub const DATE_RANGE: &str = "date.range";
/// Working days need a calendar of holidays.
pub const DATE_BUSINESS_DAYS: &str = "date.business_days";
/// A recurring day.
pub const DATE_RECURRING: &str = "date.recurring";
/// "before Friday" may or may not include it.
pub const DATE_EXCLUSIVE: &str = "date.exclusive_bound";
/// The sentence denies it.
pub const NEGATED: &str = "statement.negated";
/// The sentence asks whether it is so.
pub const QUESTIONED: &str = "statement.question";
/// The clause depends on a condition.
pub const CONDITIONAL: &str = "statement.conditional";
/// The words are somebody else's, told by the author.
pub const REPORTED: &str = "statement.reported";

/// One separator with three digits behind it, and nothing says what it means.
pub const AMOUNT_SEPARATOR: &str = "amount.separator_ambiguous";
/// A comma before three digits, taken for thousands as English writes it.
pub const AMOUNT_SEPARATOR_ASSUMED: &str = "amount.separator_assumed";
/// Digits that form no amount.
pub const AMOUNT_UNREADABLE: &str = "amount.unreadable";
/// Negative, or in brackets.
pub const AMOUNT_NEGATIVE: &str = "amount.negative";
/// Per hour, each, a month.
pub const AMOUNT_RATE: &str = "amount.rate";
/// About, up to, from: not exact.
pub const AMOUNT_INEXACT: &str = "amount.inexact";
/// Paid, refunded, saved, quoted: not owed.
pub const AMOUNT_NOT_DUE: &str = "amount.not_due";
/// The sign stands for several currencies.
pub const CURRENCY_SHARED_SIGN: &str = "currency.shared_sign";
/// No currency beside an amount that is to be paid, or one that is not read.
pub const CURRENCY_UNKNOWN: &str = "currency.unknown";
