//! What an item says about meetings. A time that is in none of the contract's forms is no content:
//! a text would else leave the vault as a claim.

use std::collections::HashSet;

use cl_model::digest::Digest;
use cl_wire::vault::v1 as wire;

use super::{all, instant, mailbox, mark};
use crate::core::meeting::{Meeting, MeetingTime, is_start, is_time};

const MAX_MEETINGS: usize = 32;
const MAX_TIMES: usize = 40;
const MAX_ORGANIZERS: usize = 8;
const MAX_MARKS: usize = 8;

pub(super) fn meetings(messages: Vec<wire::Meeting>) -> Option<Vec<Meeting>> {
    let times: usize = messages.iter().map(|message| message.times.len()).sum();
    let organizers = messages.iter().filter_map(|it| it.organizer.as_ref());
    let organizers: HashSet<_> = organizers.map(|it| it.address.as_str()).collect();
    let is_bounded =
        messages.len() <= MAX_MEETINGS && times <= MAX_TIMES && organizers.len() <= MAX_ORGANIZERS;
    let has_authors = organizers.iter().all(|address| address.contains('@'));
    if !is_bounded || !has_authors {
        return None;
    }
    all(messages, meeting)
}

fn meeting(message: wire::Meeting) -> Option<Meeting> {
    let is_about_all =
        message.is_cancelled && !message.is_one_of_series && message.organizer.is_some();
    let is_within_series = message.is_one_of_series || !message.is_and_later;
    let is_bounded = message.marks.len() <= MAX_MARKS;
    if !is_bounded || !is_within_series || (message.times.is_empty() && !is_about_all) {
        return None;
    }
    Some(Meeting {
        series: Digest::parse(&message.series_digest)?,
        organizer: match message.organizer {
            None => None,
            Some(organizer) => Some(mailbox(organizer)?.address),
        },
        sequence: message.sequence,
        stamped_at: match message.stamped_at {
            None => None,
            Some(time) => Some(instant(&time)?),
        },
        is_cancelled: message.is_cancelled,
        is_one_of_series: message.is_one_of_series,
        is_and_later: message.is_and_later,
        times: all(message.times, time)?,
        marks: all(message.marks, mark)?,
    })
}

fn time(message: wire::MeetingTime) -> Option<MeetingTime> {
    let is_formed = is_time(&message.time) && is_start(&message.occurrence);
    is_formed.then_some(MeetingTime {
        time: message.time,
        occurrence: message.occurrence,
    })
}
