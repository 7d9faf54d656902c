use time::Month;

use super::*;
use crate::token::tokens;

fn day(text: &str) -> Date {
    let mut parts = text.split('-').filter_map(|it| it.parse::<u16>().ok());
    let mut next = || parts.next().unwrap();
    let (year, month, day) = (next(), next(), next());
    let month = Month::try_from(u8::try_from(month).unwrap()).unwrap();
    Date::from_calendar_date(i32::from(year), month, u8::try_from(day).unwrap()).unwrap()
}

fn read(text: &str, offset: Option<i32>) -> Result<Option<String>, Mark> {
    let tokens = tokens(text);
    let at = tokens.iter().position(|it| it.is_word("friday")).unwrap();
    let friday = day("2026-11-06");
    let found = beside(&tokens, at, at + 1)?;
    found
        .map(|clock| clock.on(friday, Some(day("2026-11-03")), offset))
        .transpose()
}

#[test]
fn reads_times_on_either_side_of_the_day() {
    let rows = [
        ("Friday at 3 pm", "2026-11-06T15:00:00Z"),
        ("Friday 3pm", "2026-11-06T15:00:00Z"),
        ("Friday, 9:30 a.m.", "2026-11-06T09:30:00Z"),
        ("Friday at 4.15 p.m.", "2026-11-06T16:15:00Z"),
        ("at 10 am on Friday", "2026-11-06T10:00:00Z"),
        ("at 15:45 on Friday", "2026-11-06T15:45:00Z"),
        ("Friday at noon", "2026-11-06T12:00:00Z"),
        ("Friday at 17h30", "2026-11-06T17:30:00Z"),
        ("Friday evening at 8", "2026-11-06T20:00:00Z"),
        ("Friday morning at 7", "2026-11-06T07:00:00Z"),
        ("Friday at 9 at night", "2026-11-06T21:00:00Z"),
        ("Friday at 15:00 (GMT)", "2026-11-06T15:00:00Z"),
        ("Friday at 12 pm", "2026-11-06T12:00:00Z"),
        ("Friday at 14h", "2026-11-06T14:00:00Z"),
        ("Friday at 9", "2026-11-06T09:00:00Z"),
        ("Friday at 3 in the afternoon", "2026-11-06T15:00:00Z"),
        ("Friday at 08:15", "2026-11-06T08:15:00Z"),
    ];
    for (text, instant) in rows {
        assert_eq!(read(text, Some(0)), Ok(Some(instant.to_owned())), "{text}");
    }
    for text in ["Friday", "Friday 3 boxes", "Friday with 14 people"] {
        assert_eq!(read(text, Some(0)), Ok(None), "{text}");
    }
    for (text, mark) in [
        ("Friday at 7", mark::HALF_DAY_UNCLEAR),
        ("Friday at 2:30", mark::HALF_DAY_UNCLEAR),
        ("Friday after 3 pm", mark::TIME_INEXACT),
        ("Friday between 3 and 5 pm", mark::TIME_INEXACT),
        ("Friday at 3 pm PT", mark::TIME_ZONE_UNCLEAR),
        ("Friday at 3 pm your time", mark::TIME_ZONE_UNCLEAR),
        ("Friday at 12 am", mark::TIME_MIDNIGHT),
        ("Friday at 0:00", mark::TIME_MIDNIGHT),
        ("Friday at 2 at night", mark::TIME_INEXACT),
        ("Friday at 10:00 or 11:00", mark::TIME_INEXACT),
        ("Friday at half past five", mark::NOT_EXTRACTED),
        ("Friday at 1700", mark::NOT_EXTRACTED),
        ("Friday at 24:00", mark::NOT_EXTRACTED),
        ("Friday at 3 pm London time", mark::TIME_ZONE_UNCLEAR),
        ("Friday at 15:00 (Berlin)", mark::TIME_ZONE_UNCLEAR),
        ("Friday at 15:00 their time", mark::TIME_ZONE_UNCLEAR),
        ("Friday at 3 pm UTC+2", mark::TIME_ZONE_UNCLEAR),
        ("Friday at 3 pm XYZ", mark::TIME_ZONE_UNCLEAR),
    ] {
        assert_eq!(read(text, Some(0)), Err(mark), "{text}");
    }
}

#[test]
fn a_zone_that_several_share_is_the_authors_or_none() {
    let at = |text: &str, offset| read(&format!("Friday at 3 pm {text}"), offset);
    let instant = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(at("IST", Some(330)), instant("2026-11-06T09:30:00Z"));
    assert_eq!(at("CST", Some(480)), instant("2026-11-06T07:00:00Z"));
    assert_eq!(at("CST", Some(-360)), instant("2026-11-06T21:00:00Z"));
    assert_eq!(at("CST", Some(60)), Err(mark::TIME_ZONE_UNCLEAR));
    assert_eq!(at("IST", None), Err(mark::TIME_ZONE_UNCLEAR));
    assert_eq!(at("CET", Some(-480)), instant("2026-11-06T14:00:00Z"));
    assert_eq!(at("", None), Err(mark::TIME_ZONE_UNCLEAR));
}

#[test]
fn no_time_is_given_across_a_change_of_clocks() {
    let change = |from: &str, to: &str, offset| clocks_may_change(day(from), day(to), offset);
    assert!(change("2026-10-19", "2026-11-03", 120));
    assert!(!change("2026-10-26", "2026-11-03", 60));
    assert!(change("2026-10-30", "2026-11-02", -300));
    assert!(!change("2026-11-02", "2026-11-20", -300));
    assert!(change("2026-03-30", "2026-04-09", 660));
    assert!(!change("2026-01-01", "2026-12-01", 330));
    assert!(change("2026-01-01", "2028-01-01", 60));
}
