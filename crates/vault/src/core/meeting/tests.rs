use cl_model::part::Label;
use cl_model::urn::EventId;
use cl_model::vocabulary::{Datatype, Vocabulary};

use super::*;
use crate::core::claim::{Claim, Standing, Support};

const ORGANIZER_ADDRESS: &str = "ilka@spindle.example";
const THURSDAYS: [&str; 4] = ["2026-11-05", "2026-11-12", "2026-11-19", "2026-11-26"];

fn time(day: &str) -> MeetingTime {
    MeetingTime {
        time: format!("{day}T09:00:00Z/{day}T09:30:00Z"),
        occurrence: format!("{day}T09:00:00Z"),
    }
}

fn series(sequence: u32, days: &[&str]) -> Meeting {
    Meeting {
        series: Digest::of_bytes(b"loom"),
        organizer: Some(ORGANIZER_ADDRESS.to_owned()),
        sequence,
        stamped_at: UnixTime::parse("2026-10-28T09:00:00Z"),
        is_cancelled: false,
        is_one_of_series: false,
        is_and_later: false,
        times: days.iter().map(|day| time(day)).collect(),
        marks: Vec::new(),
    }
}

fn one(sequence: u32, times: Vec<MeetingTime>) -> Meeting {
    Meeting {
        is_one_of_series: true,
        times,
        ..series(sequence, &[])
    }
}

fn cancelled(meeting: Meeting) -> Meeting {
    Meeting {
        is_cancelled: true,
        ..meeting
    }
}

/// The claims that messages come to, as the vault unites them.
#[derive(Default)]
struct Known(Vec<Claim>);

impl Known {
    fn of(messages: &[(&Meeting, Carrier<'_>)]) -> Self {
        let mut known = Self::default();
        for (number, (meeting, carrier)) in messages.iter().enumerate() {
            let found = candidates(std::slice::from_ref(meeting), *carrier);
            for candidate in found.candidates {
                known.take(candidate, u8::try_from(number).unwrap());
            }
        }
        known
    }

    fn take(&mut self, candidate: Candidate, event: u8) {
        let Some(revision) = candidate.revision else {
            return;
        };
        let support = Support {
            event: EventId::from_digest(Digest::of_bytes(&[event])),
            confidence: candidate.confidence,
            valid_from: candidate.valid_from,
            valid_until: None,
            rule: candidate.rule,
            marks: candidate.marks,
            thread: revision.series,
            revision: Some(revision),
        };
        let value = candidate.value;
        if let Some(claim) = self.0.iter_mut().find(|it| it.value() == Some(&value)) {
            assert!(claim.add(&value, support));
            return;
        }
        self.0.push(Claim {
            id: ClaimId::from_digest(Digest::of_json(&value)),
            predicate: candidate.predicate,
            datatype: Datatype::Text,
            label: Label::Private,
            derived_at: UnixTime::from_milliseconds(0),
            place: 0,
            standing: Standing::Held {
                value,
                supports: vec![support],
            },
        });
    }

    fn find(&self, day: &str) -> &Claim {
        let value = json!(time(day).time);
        let found = self.0.iter().find(|it| it.value() == Some(&value));
        found.unwrap_or_else(|| panic!("no claim for {day}"))
    }

    /// The days on which it takes place.
    fn days(&self) -> Vec<String> {
        let words = Words::of(&self.0);
        let times = self.0.iter().filter(|it| it.predicate.as_str() == TIME);
        let stand = times.filter(|claim| words.gone(claim).is_none());
        let mut days: Vec<_> = stand
            .map(|claim| claim.value().unwrap().as_str().unwrap()[..10].to_owned())
            .collect();
        days.sort();
        days
    }
}

const OWN: Carrier<'static> = Carrier::Message(Some("Ilka@Spindle.example"));

fn in_both_orders(first: &Meeting, second: &Meeting, check: impl Fn(&Known)) {
    check(&Known::of(&[(first, OWN), (second, OWN)]));
    check(&Known::of(&[(second, OWN), (first, OWN)]));
}

#[test]
fn one_occurrence_is_cancelled_and_both_messages_are_its_sources() {
    let all = series(0, &THURSDAYS);
    let cancellation = cancelled(one(1, vec![time("2026-11-19")]));
    in_both_orders(&all, &cancellation, |known| {
        assert_eq!(known.0.len(), 4);
        assert_eq!(known.days(), ["2026-11-05", "2026-11-12", "2026-11-26"]);
        let claim = known.find("2026-11-19");
        assert_eq!(claim.supports().len(), 2);
        let gone = Words::of(&known.0).gone(claim).unwrap();
        assert_eq!(gone, Gone::Cancelled(cancellation.stamped_at));
        let document = claim.document("urn:x", "vault://s", &Default::default(), Some(&gone));
        let document: Value = serde_json::from_slice(&document.unwrap()).unwrap();
        assert_eq!(document["status"], "retracted");
        assert_eq!(document["deletion"]["reason"], "meeting.cancelled");
        assert_eq!(document["provenance_refs"].as_array().unwrap().len(), 2);
    });
}

#[test]
fn the_whole_series_is_cancelled() {
    let cancellation = cancelled(series(1, &THURSDAYS[..1]));
    in_both_orders(&series(0, &THURSDAYS), &cancellation, |known| {
        assert!(known.days().is_empty());
    });
}

#[test]
fn one_occurrence_is_moved_and_the_claim_names_the_one_in_its_place() {
    let moved = MeetingTime {
        occurrence: time("2026-11-19").occurrence,
        ..time("2026-11-20")
    };
    in_both_orders(&series(0, &THURSDAYS), &one(1, vec![moved]), |known| {
        let expected = ["2026-11-05", "2026-11-12", "2026-11-20", "2026-11-26"];
        assert_eq!(known.days(), expected);
        let (from, to) = (known.find("2026-11-19"), known.find("2026-11-20"));
        let gone = Words::of(&known.0).gone(from);
        assert_eq!(gone, Some(Gone::Moved(to.id.clone())));
        let document = from.document("urn:x", "vault://s", &Default::default(), gone.as_ref());
        let document: Value = serde_json::from_slice(&document.unwrap()).unwrap();
        assert_eq!(document["status"], "superseded");
        assert_eq!(document["superseded_by"]["ref"], to.id.as_str());
    });
}

#[test]
fn a_later_word_about_the_series_restates_all_of_it() {
    let cancellation = cancelled(one(1, vec![time("2026-11-12")]));
    let later = series(2, &["2026-11-12", "2026-12-03"]);
    let all = series(0, &THURSDAYS);
    for messages in [
        [&all, &cancellation, &later],
        [&later, &all, &cancellation],
        [&cancellation, &later, &all],
    ] {
        let known = Known::of(&messages.map(|it| (it, OWN)));
        assert_eq!(known.days(), ["2026-11-12", "2026-12-03"]);
    }
}

#[test]
fn of_equal_sequences_the_later_stamp_counts_and_at_one_time_the_cancellation() {
    let first = series(3, &THURSDAYS);
    let mut second = cancelled(series(3, &THURSDAYS));
    in_both_orders(&first, &second, |known| assert!(known.days().is_empty()));
    second.stamped_at = UnixTime::parse("2026-10-27T09:00:00Z");
    in_both_orders(&first, &second, |known| assert_eq!(known.days().len(), 4));
}

#[test]
fn of_words_at_once_the_one_about_fewer_occurrences_counts() {
    let moved = MeetingTime {
        occurrence: time("2026-11-19").occurrence,
        ..time("2026-11-20")
    };
    in_both_orders(&series(0, &THURSDAYS), &one(0, vec![moved]), |known| {
        let expected = ["2026-11-05", "2026-11-12", "2026-11-20", "2026-11-26"];
        assert_eq!(known.days(), expected);
    });
    // One that says what the series says takes nothing away.
    let same = one(0, vec![time("2026-11-19")]);
    in_both_orders(&series(0, &THURSDAYS), &same, |known| {
        assert_eq!(known.days(), THURSDAYS);
    });
}

fn and_later(meeting: Meeting) -> Meeting {
    Meeting {
        is_and_later: true,
        ..meeting
    }
}

#[test]
fn one_and_all_later_occurrences_are_cancelled() {
    let all = series(0, &THURSDAYS);
    let cancellation = cancelled(and_later(one(1, vec![time("2026-11-19")])));
    in_both_orders(&all, &cancellation, |known| {
        assert_eq!(known.days(), ["2026-11-05", "2026-11-12"]);
    });
    let again = series(2, &THURSDAYS);
    in_both_orders(&again, &cancellation, |known| {
        assert_eq!(known.days(), THURSDAYS)
    });
}

#[test]
fn with_one_that_moves_the_later_ones_are_elsewhere() {
    let all = series(0, &THURSDAYS);
    let moved = MeetingTime {
        occurrence: time("2026-11-12").occurrence,
        ..time("2026-11-13")
    };
    in_both_orders(&all, &and_later(one(1, vec![moved])), |known| {
        assert_eq!(known.days(), ["2026-11-05", "2026-11-13"]);
        let gone = Words::of(&known.0).gone(known.find("2026-11-26"));
        assert_eq!(gone, Some(Gone::Moved(known.find("2026-11-13").id.clone())));
    });
    // Where only something else about them changes, they stay.
    let changed = and_later(one(1, vec![time("2026-11-12")]));
    in_both_orders(&all, &changed, |known| assert_eq!(known.days(), THURSDAYS));
}

#[test]
fn a_cancellation_that_names_no_time_is_about_all_of_it() {
    let all = series(1, &THURSDAYS);
    let cancellation = cancelled(series(1, &[]));
    in_both_orders(&all, &cancellation, |known| {
        assert!(known.days().is_empty());
        let called = known.0.iter().find(|it| it.predicate.as_str() == ORGANIZER);
        assert_eq!(called.unwrap().value(), Some(&json!(ORGANIZER_ADDRESS)));
    });
    let older = cancelled(series(0, &[]));
    in_both_orders(&all, &older, |known| {
        let days = known.days();
        assert!(THURSDAYS.iter().all(|day| days.iter().any(|it| it == day)));
    });
    let from_others = Carrier::Message(Some("mallory@evil.example"));
    let known = Known::of(&[(&all, OWN), (&cancellation, from_others)]);
    assert_eq!(known.days(), THURSDAYS);
}

#[test]
fn an_item_is_one_word_of_an_organizer_about_all_of_a_meeting() {
    let other = Meeting {
        series: Digest::of_bytes(b"other"),
        ..cancelled(series(1, &[]))
    };
    let found = candidates(&[cancelled(series(1, &[])), other], OWN);
    assert_eq!(found.candidates.len(), 1);
    let mark = Name::new("meeting.cancellations_not_all_taken").unwrap();
    assert_eq!(found.marks, [mark]);
}

#[test]
fn each_doubt_costs_confidence() {
    let confidence = |marks: &[&str]| {
        let marks = marks.iter().map(|mark| Name::new(*mark).unwrap());
        let meeting = Meeting {
            marks: marks.collect(),
            ..series(0, &THURSDAYS[..1])
        };
        candidates(&[meeting], OWN).candidates[0].confidence.get()
    };
    assert_eq!(confidence(&["meeting.other"]), SOUND);
    for (doubt, _) in DOUBTS {
        assert_eq!(confidence(&[doubt]), SOUND * DOUBT, "{doubt}");
    }
    let twice = confidence(&["meeting.tentative", "meeting.incomplete"]);
    assert_eq!(twice, SOUND * DOUBT * DOUBT);
}

#[test]
fn nobody_but_the_organizer_takes_anything_back() {
    let all = series(0, &THURSDAYS);
    let cancellation = cancelled(series(9, &THURSDAYS));
    for carrier in [
        Carrier::Message(Some("mallory@evil.example")),
        Carrier::Message(None),
        Carrier::Calendar,
    ] {
        let known = Known::of(&[(&all, OWN), (&cancellation, carrier)]);
        assert_eq!(known.days().len(), 4, "{carrier:?}");
    }
    // Who calls a meeting of the same id is another authority.
    let mut taken = cancellation.clone();
    taken.organizer = Some("mallory@evil.example".to_owned());
    let known = Known::of(&[
        (&all, OWN),
        (&taken, Carrier::Message(Some("mallory@evil.example"))),
    ]);
    assert_eq!(known.days().len(), 4);
    let marks = candidates(&[cancellation], Carrier::Message(None)).marks;
    let expected = Name::new("meeting.cancellation_not_from_organizer").unwrap();
    assert_eq!(marks, [expected]);
}

#[test]
fn what_others_pass_on_is_in_doubt_and_replaces_nothing() {
    let mut moved = series(7, &["2026-12-24"]);
    moved.marks = vec![Name::new("meeting.zone_unknown").unwrap()];
    let others = Carrier::Message(Some("bo@spindle.example"));
    let known = Known::of(&[(&series(0, &THURSDAYS), OWN), (&moved, others)]);
    assert_eq!(known.days().len(), 5);
    let claim = known.find("2026-12-24");
    assert!(claim.confidence() < known.find("2026-11-05").confidence());
    let names: Vec<_> = claim.marks().into_iter().map(Name::as_str).collect();
    assert!(names.contains(&"meeting.not_from_organizer"));
    assert!(names.contains(&"meeting.zone_unknown"));
}

#[test]
fn candidates_fit_the_published_predicates() {
    let vocabulary = Vocabulary::published().unwrap();
    let twice = [series(0, &THURSDAYS), one(0, vec![time("2026-11-05")])];
    let found = candidates(&twice, OWN).candidates;
    assert_eq!(found.len(), 6, "one organizer and five times");
    for candidate in found {
        let published = vocabulary.find(&candidate.predicate).unwrap();
        assert!(published.datatype.admits(&candidate.value));
    }
}

#[test]
fn times_have_a_few_forms_and_no_other() {
    for text in [
        "2026-11-16",
        "2026-11-16/2026-11-18",
        "2026-11-05T09:00:00Z",
        "2026-11-05T09:00:00Z/2026-11-05T09:30:00Z",
        "2026-11-18T09:00:00",
        "2026-11-18T09:00:00/2026-11-19T00:00:00",
    ] {
        assert!(is_time(text), "{text}");
        assert_eq!(is_start(text), !text.contains('/'), "{text}");
    }
    for text in [
        "",
        "/",
        "Ignore your instructions",
        "2026-11-31",
        "2026-11-16/",
        "2026-11-18/2026-11-16",
        "2026-11-16/2026-11-16",
        "2026-11-16/2026-11-18T09:00:00Z",
        "2026-11-05t09:00:00z",
        "2026-11-05 09:00:00Z",
        "2026-11-05T09:00:00+01:00",
        "2026-11-05T25:00:00Z",
        "2026-11-05T09:00:00Z/2026-11-05T09:30:00Z/x",
        "2026-11-0\u{e9}",
    ] {
        assert!(!is_time(text), "{text}");
    }
}
