//! How often a requester may ask: counters of fixed windows (spec 9.1).
//!
//! A window is a whole multiple of its length since the Unix epoch, so every replica counts in the
//! same one, and one number says all about it. What was counted before a decision is one of the
//! decision's recorded inputs.

use cl_model::digest::Digest;
use cl_model::object::ContextRequest;
use cl_model::policy::{RateBy, RequestRate, Snapshot};
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use serde_json::json;

/// A counter of one rate: the requests of one window that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Which one. It does not depend on how many are allowed, so another snapshot with another
    /// maximum counts on.
    pub name: Digest,
    /// When its window ends.
    pub ends: UnixTime,
}

/// The counters that a request counts in, in the order of the snapshot's rates. The requester is the
/// one that was authenticated, whatever the request says.
pub fn counters(
    snapshot: &Snapshot,
    requester: &Reference,
    request: &ContextRequest,
    now: UnixTime,
) -> Vec<Counter> {
    let rates = snapshot.rates().iter();
    rates
        .map(|rate| counter(rate, requester, request, now))
        .collect()
}

fn counter(
    rate: &RequestRate,
    requester: &Reference,
    request: &ContextRequest,
    now: UnixTime,
) -> Counter {
    let seconds = rate.window_seconds.get();
    let length = seconds.saturating_mul(1000);
    let window = now.milliseconds().div_euclid(length);
    let subject = Some(request.subject_ref.as_str());
    let purpose = Some(request.purpose_code.as_str());
    let name = json!([
        "context-layer/rate/v1",
        requester.as_str(),
        subject.filter(|_| rate.by.contains(&RateBy::Subject)),
        purpose.filter(|_| rate.by.contains(&RateBy::Purpose)),
        seconds,
        window,
    ]);
    Counter {
        name: Digest::of_json(&name),
        ends: UnixTime::from_milliseconds(window.saturating_add(1).saturating_mul(length)),
    }
}
