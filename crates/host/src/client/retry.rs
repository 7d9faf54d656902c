//! Trying again what is safe to try again.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::deadline;
use crate::ids::Ids;
use crate::status;

/// How an idempotent call is repeated: after `UNAVAILABLE` only, with growing, jittered pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, the first one included.
    pub max_attempts: u32,
    /// Upper bound of the first pause; doubled for each further one.
    pub first_pause: Duration,
    /// Upper bound of every pause.
    pub max_pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            first_pause: Duration::from_millis(50),
            max_pause: Duration::from_secs(2),
        }
    }
}

impl Retry {
    /// Calls `attempt`, which gets the time left, until it succeeds, fails for good, or attempts,
    /// budget or `deadline` are used up. An attempt that passes the deadline is dropped.
    ///
    /// The pause is random between zero and its bound, and at least what a `RetryInfo` asks for.
    pub async fn run<T, F, A>(
        &self,
        deadline: Instant,
        budget: &RetryBudget,
        ids: &dyn Ids,
        mut attempt: F,
    ) -> Result<T, Status>
    where
        F: FnMut(Duration) -> A,
        A: Future<Output = Result<T, Status>>,
    {
        let mut attempts = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = match tokio::time::timeout(left, attempt(left)).await {
                Ok(answer) => answer,
                Err(_) => return Err(deadline::exceeded()),
            };
            let status = match answer {
                Ok(value) => {
                    budget.succeeded();
                    return Ok(value);
                }
                Err(status) => status,
            };
            attempts += 1;
            if !is_worth_a_retry(&status) || attempts >= self.max_attempts || !budget.spend() {
                return Err(status);
            }
            let pause = self.pause(attempts, &status, ids);
            if Instant::now() + pause >= deadline {
                return Err(status);
            }
            tracing::debug!(attempts, ?pause, "trying again");
            sleep(pause).await;
        }
    }

    fn pause(&self, attempts: u32, status: &Status, ids: &dyn Ids) -> Duration {
        let doubled = 1_u32.checked_shl(attempts - 1).unwrap_or(u32::MAX);
        let bound = self.first_pause.saturating_mul(doubled).min(self.max_pause);
        let mut random = [0; 2];
        // Without randomness the pause is the longest allowed one.
        let fraction = match ids.fill(&mut random) {
            Ok(()) => f64::from(u16::from_be_bytes(random)) / f64::from(u16::MAX),
            Err(_) => 1.0,
        };
        let asked = status
            .get_details_retry_info()
            .and_then(|info| info.retry_delay)
            .unwrap_or_default();
        bound.mul_f64(fraction).max(asked)
    }
}

fn is_worth_a_retry(status: &Status) -> bool {
    let lasting = [status::PEER_NOT_VERIFIED, status::OWN_CERTIFICATE_REFUSED];
    status.code() == Code::Unavailable
        && !status::reason(status).is_some_and(|reason| lasting.contains(&reason.as_str()))
}

/// Keeps retries a small part of all calls to one peer, so that they do not finish off a peer that
/// is down: each retry costs one token, each success earns a tenth.
#[derive(Debug)]
pub struct RetryBudget {
    max_tenths: u32,
    tenths: Mutex<u32>,
}

impl RetryBudget {
    /// Starts full, with `max_retries` tokens.
    pub fn new(max_retries: u32) -> Self {
        let max_tenths = max_retries.saturating_mul(10);
        Self {
            max_tenths,
            tenths: Mutex::new(max_tenths),
        }
    }

    fn succeeded(&self) {
        let mut tenths = self.tenths.lock().unwrap_or_else(PoisonError::into_inner);
        *tenths = (*tenths + 1).min(self.max_tenths);
    }

    fn spend(&self) -> bool {
        let mut tenths = self.tenths.lock().unwrap_or_else(PoisonError::into_inner);
        let left = tenths.checked_sub(10);
        if let Some(left) = left {
            *tenths = left;
        }
        left.is_some()
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self::new(20)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::ManualClock;
    use crate::ids::SeededIds;

    fn ids() -> SeededIds {
        SeededIds::new(3, Arc::new(ManualClock::new(0)))
    }

    async fn attempts_against(
        answer: impl Fn(u32) -> Result<(), Status>,
        time: Duration,
        budget: &RetryBudget,
    ) -> (u32, Result<(), Status>) {
        let mut attempts = 0;
        let outcome = Retry::default()
            .run(Instant::now() + time, budget, &ids(), |_| {
                attempts += 1;
                std::future::ready(answer(attempts))
            })
            .await;
        (attempts, outcome)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn repeats_unavailable_until_it_works() {
        let answer = |attempt| match attempt {
            3 => Ok(()),
            _ => Err(Status::unavailable("")),
        };
        let (attempts, outcome) = attempts_against(answer, LONG, &RetryBudget::default()).await;
        assert!(outcome.is_ok());
        assert_eq!(attempts, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn repeats_nothing_else() {
        let lasting = || unavailable_for(status::PEER_NOT_VERIFIED);
        let refused = || unavailable_for(status::OWN_CERTIFICATE_REFUSED);
        let answers: [&dyn Fn() -> Status; 5] = [
            &|| Status::internal(""),
            &|| Status::deadline_exceeded(""),
            &|| Status::resource_exhausted(""),
            &lasting,
            &refused,
        ];
        for answer in answers {
            let budget = RetryBudget::default();
            let (attempts, outcome) = attempts_against(|_| Err(answer()), LONG, &budget).await;
            assert!(outcome.is_err());
            assert_eq!(attempts, 1);
        }
    }

    fn unavailable_for(reason: &'static str) -> Status {
        status::refusal(Code::Unavailable, reason, "")
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_by_attempts_budget_and_deadline() {
        let down = |_| Err(Status::unavailable(""));
        let (attempts, _) = attempts_against(down, LONG, &RetryBudget::default()).await;
        assert_eq!(attempts, 4);

        let budget = RetryBudget::new(1);
        let (attempts, _) = attempts_against(down, LONG, &budget).await;
        assert_eq!(attempts, 2);
        let (attempts, _) = attempts_against(down, LONG, &budget).await;
        assert_eq!(attempts, 1);

        let later = |_| {
            Err(status::refusal_with_retry(
                Code::Unavailable,
                "BUSY",
                "",
                Duration::from_secs(5),
            ))
        };
        let (attempts, _) =
            attempts_against(later, Duration::from_secs(12), &RetryBudget::default()).await;
        assert_eq!(attempts, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn drops_an_attempt_at_the_deadline() {
        let outcome = Retry::default()
            .run(
                Instant::now() + Duration::from_secs(1),
                &RetryBudget::default(),
                &ids(),
                |_| std::future::pending::<Result<(), Status>>(),
            )
            .await;
        assert_eq!(outcome.unwrap_err().code(), Code::DeadlineExceeded);
    }
}
