//! What can go wrong with a call to a fake, and what every call to one must have.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cl_wire::status::{StatusBuilder, status};
use tonic::{Code, Request, Status};

/// Clones share what was planned.
#[derive(Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    refusals: VecDeque<Status>,
    lost_answers: usize,
    calls: usize,
}

impl Faults {
    /// Refuses the next call before anything happens.
    pub(crate) fn refuse_next(&self, refusal: Status) {
        self.0.lock().unwrap().refusals.push_back(refusal);
    }

    /// Carries the next call out, and loses the answer.
    pub(crate) fn lose_next_answer(&self) {
        self.0.lock().unwrap().lost_answers += 1;
    }

    /// How many calls arrived.
    pub(crate) fn calls(&self) -> usize {
        self.0.lock().unwrap().calls
    }

    pub(crate) fn before<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let headers = format!("{:?}", request.metadata());
        assert!(
            !headers.contains("authorization"),
            "tokens stay at the edge"
        );
        assert!(request.metadata().get("grpc-timeout").is_some());
        let mut plan = self.0.lock().unwrap();
        plan.calls += 1;
        plan.refusals.pop_front().map_or(Ok(()), Err)
    }

    pub(crate) fn after(&self) -> Result<(), Status> {
        let mut plan = self.0.lock().unwrap();
        if plan.lost_answers == 0 {
            return Ok(());
        }
        plan.lost_answers -= 1;
        Err(Status::unavailable("the connection broke"))
    }
}

pub(crate) fn refusal(code: Code, reason: &str) -> Status {
    status(code, reason, "the peer's own words")
}

pub(crate) fn invalid(field: &'static str) -> Status {
    StatusBuilder::new(Code::InvalidArgument, "INVALID_FIELD", "malformed")
        .violation(field, "MALFORMED", "malformed")
        .build()
}

pub(crate) fn check_caller(tenant: &str, principal: &str) -> Result<(), Status> {
    if tenant.is_empty() || tenant.len() > 63 {
        return Err(invalid("tenant"));
    }
    if !(3..=512).contains(&principal.chars().count()) {
        return Err(invalid("principal"));
    }
    Ok(())
}

pub(crate) fn check_operation_id(text: &str) -> Result<(), Status> {
    let uuid = text.strip_prefix("urn:cl:operation:");
    let is_v7 = uuid.is_some_and(|uuid| uuid.len() == 36 && &uuid[14..15] == "7");
    is_v7.then_some(()).ok_or_else(|| invalid("operation_id"))
}
