//! Coarser forms of values (spec 11.3).
//!
//! | datatype | coarser form |
//! | --- | --- |
//! | date, instant | its month: `2026-08` |
//! | number | its power of ten: `1000 to 10000`, `-10 to -1`, `0 to 1` below one |
//! | money | the same, of whole units: `EUR 1000 to 10000` |
//! | text, person, boolean | none: the claim does not leave |
//!
//! A range holds its lower end, and not its upper one; below zero it is the other way round. Numbers
//! of 10^15 and more are `1000000000000000 or more`.

use cl_model::time::CalendarDate;
use cl_model::vocabulary::{Datatype, Money};
use serde_json::Value;

/// The number of powers of ten that are told apart.
const POWERS: u32 = 15;

const TEN_THOUSAND: i128 = 10_000;

/// The coarser form of a value of its datatype; `None` if there is none.
pub fn generalise(datatype: Datatype, value: &Value) -> Option<String> {
    match datatype {
        Datatype::Date => {
            let date = CalendarDate::parse(value.as_str()?)?;
            Some(format!("{:04}-{:02}", date.year(), date.month()))
        }
        // Its day in UTC would be as exact as a date.
        Datatype::Instant => {
            let day = CalendarDate::parse(value.as_str()?.split_once('T')?.0)?;
            Some(format!("{:04}-{:02}", day.year(), day.month()))
        }
        Datatype::Number => Some(range(size_of_number(value)?)),
        Datatype::Money => {
            let money = Money::read(value)?;
            let whole = money.ten_thousandths.unsigned_abs() / TEN_THOUSAND.unsigned_abs();
            let size = Size {
                is_negative: money.ten_thousandths < 0,
                power: (whole > 0).then(|| whole.ilog10()),
            };
            Some(format!("{} {}", money.currency, range(size)))
        }
        Datatype::Text | Datatype::Person | Datatype::Boolean => None,
    }
}

/// The sign of a number and the power of ten at or below its magnitude; none below one.
struct Size {
    is_negative: bool,
    power: Option<u32>,
}

fn size_of_number(value: &Value) -> Option<Size> {
    let number = value.as_number()?;
    // Whole numbers are exact; their neighbours in binary could be on the other side of a power.
    if let Some(whole) = number
        .as_i64()
        .map(i128::from)
        .or(number.as_u64().map(i128::from))
    {
        let magnitude = whole.unsigned_abs();
        return Some(Size {
            is_negative: whole < 0,
            power: (magnitude > 0).then(|| magnitude.ilog10()),
        });
    }
    let number = number.as_f64()?;
    let magnitude = number.abs();
    let reached = (0..=POWERS).take_while(|power| {
        let power = i32::try_from(*power).unwrap_or(i32::MAX);
        magnitude >= 10_f64.powi(power)
    });
    Some(Size {
        is_negative: number < 0.0,
        power: reached.last(),
    })
}

fn range(size: Size) -> String {
    let edge = |power: u32| format!("1{}", "0".repeat(usize::try_from(power).unwrap_or(0)));
    let (near, far) = match size.power {
        None => ("0".to_owned(), Some("1".to_owned())),
        Some(power) if power < POWERS => (edge(power), Some(edge(power + 1))),
        Some(_) => (edge(POWERS), None),
    };
    match (size.is_negative, far) {
        (false, Some(far)) => format!("{near} to {far}"),
        (false, None) => format!("{near} or more"),
        (true, Some(far)) if near == "0" => format!("-{far} to 0"),
        (true, Some(far)) => format!("-{far} to -{near}"),
        (true, None) => format!("-{near} or less"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn number(value: &Value) -> String {
        generalise(Datatype::Number, value).unwrap()
    }

    fn money(amount: &str) -> String {
        let value = json!({"amount": amount, "currency": "EUR"});
        generalise(Datatype::Money, &value).unwrap()
    }

    #[test]
    fn a_moment_becomes_its_month() {
        let moment = json!("2026-08-14T09:30:00Z");
        assert_eq!(
            generalise(Datatype::Instant, &moment).as_deref(),
            Some("2026-08")
        );
    }

    #[test]
    fn edges_belong_to_the_range_that_starts_with_them() {
        for (value, expected) in [
            (json!(0), "0 to 1"),
            (json!(0.99), "0 to 1"),
            (json!(1), "1 to 10"),
            (json!(9.999), "1 to 10"),
            (json!(10), "10 to 100"),
            (json!(-0.5), "-1 to 0"),
            (json!(-1), "-10 to -1"),
            (json!(-10), "-100 to -10"),
            (
                json!(999_999_999_999_999_i64),
                "100000000000000 to 1000000000000000",
            ),
            (json!(1_000_000_000_000_000_i64), "1000000000000000 or more"),
            (json!(1e300), "1000000000000000 or more"),
            (json!(-1e300), "-1000000000000000 or less"),
        ] {
            assert_eq!(number(&value), expected, "{value}");
        }
        assert_eq!(money("1200.50"), "EUR 1000 to 10000");
        assert_eq!(money("0.9999"), "EUR 0 to 1");
        assert_eq!(money("-999.99"), "EUR -1000 to -100");
    }

    #[test]
    fn what_has_no_coarser_form_has_none() {
        for (datatype, value) in [
            (Datatype::Text, json!("2026-08-14")),
            (Datatype::Person, json!("Harriet Vane")),
            (Datatype::Boolean, json!(true)),
            (Datatype::Date, json!("2026-08")),
            (Datatype::Instant, json!("2026-08-14")),
            (Datatype::Number, json!("12")),
            (Datatype::Money, json!(12)),
        ] {
            assert_eq!(generalise(datatype, &value), None, "{datatype:?}");
        }
    }

    proptest! {
        #[test]
        fn a_month_says_nothing_of_the_day(
            year in 1000..9999_i32, month in 1..=12_u8, one in 1..=28_u8, other in 1..=28_u8,
        ) {
            let form = |day| {
                let date = json!(format!("{year}-{month:02}-{day:02}"));
                generalise(Datatype::Date, &date).unwrap()
            };
            prop_assert_eq!(form(one), form(other));
            prop_assert_eq!(form(one), format!("{year}-{month:02}"));
        }

        #[test]
        fn a_range_says_nothing_but_the_power_of_ten(
            power in 0..14_u32, one in 0.0..1.0_f64, other in 0.0..1.0_f64, sign in prop_oneof![Just(1_i64), Just(-1)],
        ) {
            let low = 10_i64.pow(power);
            let within = |fraction: f64| sign * (low + (fraction * 8.9 * low as f64) as i64);
            prop_assert_eq!(number(&json!(within(one))), number(&json!(within(other))));
            let amount = |fraction| money(&format!("{}", within(fraction)));
            prop_assert_eq!(amount(one), amount(other));
        }

        #[test]
        fn a_number_lies_in_its_range(value in -1e14..1e14_f64) {
            let text = number(&json!(value));
            let (low, high) = text.split_once(" to ").unwrap();
            let (low, high): (f64, f64) = (low.parse().unwrap(), high.parse().unwrap());
            prop_assert!(low <= value && value <= high, "{value} in {text}");
        }
    }
}
