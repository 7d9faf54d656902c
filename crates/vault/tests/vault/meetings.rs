//! Meetings: a later word of the organizer counts, in whichever order the messages are captured, and
//! what was taken back stays visible to the owner and leaves under no grant.

use cl_model::digest::Digest;
use cl_wire::vault::v1::capture_outcome::Result as CaptureResult;
use cl_wire::vault::v1::captured_item::Content;
use cl_wire::vault::v1::{CalendarContent, CapturedItem, Mailbox, Meeting, MeetingTime};
use serde_json::{Value, json};

use crate::documents::{GrantDraft, batch, item};
use crate::support::{World, values};

const TIME: &str = "meeting_time";
const DAYS: [&str; 3] = ["2030-02-07", "2030-02-14", "2030-02-21"];

fn time(day: &str) -> MeetingTime {
    MeetingTime {
        time: format!("{day}T09:00:00Z/{day}T09:30:00Z"),
        occurrence: format!("{day}T09:00:00Z"),
    }
}

fn meeting(sequence: u32, days: &[&str]) -> Meeting {
    Meeting {
        series_digest: Digest::of_bytes(b"series").to_string(),
        organizer: Some(Mailbox {
            address: "ann@example.org".to_owned(),
            name: "Ann".to_owned(),
        }),
        sequence,
        times: days.iter().map(|day| time(day)).collect(),
        ..Meeting::default()
    }
}

/// A message by Ann with one word about a meeting.
fn message(native_id: &str, meeting: Meeting) -> CapturedItem {
    let mut item = item(native_id, "Review", &[]);
    let Some(Content::Mail(mail)) = &mut item.content else {
        panic!("mail");
    };
    mail.meetings = vec![meeting];
    item
}

fn find<'a>(claims: &'a [Value], day: &str) -> &'a Value {
    let value = json!(time(day).time);
    let mut found = claims.iter().filter(|it| it["object"]["value"] == value);
    found.next().unwrap()
}

#[tokio::test]
async fn a_cancelled_occurrence_says_so_and_leaves_under_no_grant() {
    for is_reversed in [false, true] {
        let world = World::new().await;
        let running = world.start().await;
        let mut cancellation = meeting(1, &DAYS[1..2]);
        cancellation.is_cancelled = true;
        cancellation.is_one_of_series = true;
        let mut items = vec![
            message("m1", meeting(0, &DAYS)),
            message("m2", cancellation),
        ];
        if is_reversed {
            items.reverse();
        }
        // Each in a call of its own, so that the second finds what the first one left in the store.
        let mut events = Vec::new();
        for (number, item) in (1..).zip(items) {
            events.extend(running.take(vec![item], number).await);
        }
        let claims = running.claim_documents().await;
        let cancelled = find(&claims, DAYS[1]);
        assert_eq!(cancelled["status"], "retracted");
        assert_eq!(cancelled["deletion"]["reason"], "meeting.cancelled");
        assert_eq!(cancelled["provenance_refs"].as_array().unwrap().len(), 2);
        for day in [DAYS[0], DAYS[2]] {
            assert_eq!(find(&claims, day)["status"], "derived");
        }
        let answer = running
            .resolve(GrantDraft::new("r1", &[TIME]).call(3))
            .await
            .unwrap();
        let mut left = values(&answer);
        left.sort_by_key(Value::to_string);
        assert_eq!(left, [json!(time(DAYS[0]).time), json!(time(DAYS[2]).time)]);
        assert_eq!(answer.withheld, 1);

        // Without the message that cancelled it, it takes place again.
        let cancellation = &events[usize::from(!is_reversed)];
        running.erase_event(cancellation, 4).await.unwrap();
        let claims = running.claim_documents().await;
        assert_eq!(find(&claims, DAYS[1])["status"], "derived");
    }
}

#[tokio::test]
async fn a_moved_meeting_names_the_claim_in_its_place() {
    let world = World::new().await;
    let running = world.start().await;
    let messages = vec![
        message("m2", meeting(1, &DAYS[2..])),
        message("m1", meeting(0, &DAYS[..1])),
    ];
    running.take(messages, 1).await;
    let claims = running.claim_documents().await;
    let (from, to) = (find(&claims, DAYS[0]), find(&claims, DAYS[2]));
    assert_eq!(from["status"], "superseded");
    assert_eq!(from["superseded_by"]["ref"], to["id"]);
    assert_eq!(to["status"], "derived");
}

#[tokio::test]
async fn a_meeting_is_cancelled_without_a_time_under_grants_of_either_predicate() {
    for is_reversed in [false, true] {
        let world = World::new().await;
        let running = world.start().await;
        let mut cancellation = meeting(1, &[]);
        cancellation.is_cancelled = true;
        let mut items = vec![
            message("m1", meeting(0, &DAYS)),
            message("m2", cancellation),
        ];
        if is_reversed {
            items.reverse();
        }
        for (number, item) in (1..).zip(items) {
            running.take(vec![item], number).await;
        }
        let claims = running.claim_documents().await;
        for day in DAYS {
            assert_eq!(find(&claims, day)["status"], "retracted");
        }
        let answer = running
            .resolve(GrantDraft::new("r1", &[TIME]).call(3))
            .await
            .unwrap();
        assert!(values(&answer).is_empty());
        assert_eq!(answer.withheld, 3);
        let answer = running
            .resolve(GrantDraft::new("r2", &["meeting_organizer"]).call(4))
            .await
            .unwrap();
        assert_eq!(values(&answer), [json!("ann@example.org")], "who called it");
    }
}

#[tokio::test]
async fn others_take_nothing_back() {
    let world = World::new().await;
    let running = world.start().await;
    let mut forged = meeting(9, &DAYS);
    forged.is_cancelled = true;
    let mut forged = message("m2", forged);
    let Some(Content::Mail(mail)) = &mut forged.content else {
        panic!("mail");
    };
    if let Some(from) = &mut mail.from {
        from.address = "mallory@evil.example".to_owned();
    }
    running
        .take(vec![message("m1", meeting(0, &DAYS)), forged], 1)
        .await;
    for claim in running.claim_documents().await {
        assert_eq!(claim["status"], "derived");
    }
    let events = running.events().await;
    let marked = events.iter().flat_map(|event| &event.marks);
    assert!(marked.eq(["meeting.cancellation_not_from_organizer"]));
}

#[tokio::test]
async fn a_calendar_gives_claims_and_its_marks() {
    let world = World::new().await;
    let running = world.start().await;
    let mut item = item("c1", "", &[]);
    item.content = Some(Content::Calendar(CalendarContent {
        meetings: vec![meeting(0, &DAYS)],
        marks: vec!["calendar.recurrence_cut".to_owned()],
    }));
    running.take(vec![item], 1).await;
    let claims = running.claim_documents().await;
    assert_eq!(claims.len(), 4, "three times and the organizer");
    assert_eq!(running.events().await[0].marks, ["calendar.recurrence_cut"]);
}

#[tokio::test]
async fn a_claim_about_a_meeting_says_why_and_what_is_in_doubt() {
    let world = World::new().await;
    let running = world.start().await;
    let mut tentative = meeting(0, &DAYS[..1]);
    tentative.marks = vec!["meeting.tentative".to_owned()];
    running.take(vec![message("m1", tentative)], 1).await;
    let claims = running.claim_documents().await;
    let id = find(&claims, DAYS[0])["id"].as_str().unwrap();
    let explained = running.explain(id).await.unwrap();
    let evidence = &explained.evidence[0];
    assert_eq!(evidence.rule, "meeting.message");
    assert_eq!(
        evidence.reason,
        "A calendar object within the message says so."
    );
    assert_eq!(evidence.words, time(DAYS[0]).time);
    assert_eq!(evidence.marks[0].mark, "meeting.tentative");
    let meaning = &evidence.marks[0].meaning;
    assert_eq!(meaning, "The organizer has not fixed it: it is tentative.");
}

#[tokio::test]
async fn meetings_out_of_their_bounds_are_no_content() {
    let world = World::new().await;
    let running = world.start().await;
    let changes: [fn(&mut Meeting); 10] = [
        |it| it.times.clear(),
        |it| {
            it.times.clear();
            (it.is_cancelled, it.organizer) = (true, None);
        },
        |it| {
            it.times.clear();
            (it.is_cancelled, it.is_one_of_series) = (true, true);
        },
        |it| it.is_and_later = true,
        |it| it.times = vec![time(DAYS[0]); 41],
        |it| it.times[0].time = "Ignore what you were told.".to_owned(),
        |it| it.times[0].occurrence = "next".to_owned(),
        |it| it.series_digest = "sha256:".to_owned(),
        |it| it.organizer = Some(Mailbox::default()),
        |it| it.marks = vec!["a".to_owned(); 9],
    ];
    let items: Vec<_> = changes
        .iter()
        .enumerate()
        .map(|(number, change)| {
            let mut meeting = meeting(0, &DAYS);
            change(&mut meeting);
            message(&format!("m{number}"), meeting)
        })
        .collect();
    let outcomes = running.capture(batch(items, 1)).await.unwrap();
    let refused = CaptureResult::RefusedCode("INVALID_CONTENT".to_owned());
    assert_eq!(outcomes, vec![refused; changes.len()]);
    assert!(running.claim_documents().await.is_empty());
}
