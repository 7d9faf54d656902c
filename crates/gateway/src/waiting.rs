//! Following a request until it is final, or until the caller has waited long enough.

use std::time::Duration;

use cl_host::deadline::Deadline;
use cl_model::urn::RequestId;

use crate::auth::Caller;
use crate::engine::Standing;
use crate::error::Error;
use crate::service::Gateway;

/// The longest wait before an answer, in seconds.
pub(crate) const MAX_WAIT_SECONDS: u32 = 60;

/// What a call keeps of its time for its own answer.
const MARGIN: Duration = Duration::from_secs(1);

/// How long a caller wants to wait for a final state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wait(u32);

impl Wait {
    /// A wait of up to [`MAX_WAIT_SECONDS`]; `None` for more.
    pub(crate) fn new(seconds: u32) -> Option<Self> {
        (seconds <= MAX_WAIT_SECONDS).then_some(Self(seconds))
    }

    /// The nearest wait that is possible.
    pub(crate) fn at_most(seconds: u64) -> Self {
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        Self(seconds.min(MAX_WAIT_SECONDS))
    }

    /// In seconds.
    pub(crate) const fn seconds(self) -> u32 {
        self.0
    }

    fn within(self, deadline: Deadline) -> Duration {
        let left = deadline.remaining().saturating_sub(MARGIN);
        Duration::from_secs(self.0.into()).min(left)
    }
}

impl Gateway {
    /// Waits for a final state. Whoever waits in vain, or while the engine is away, gets what is
    /// known: waiting never makes an answer worse.
    pub(crate) async fn wait(
        &self,
        caller: &Caller,
        mut standing: Standing,
        wait: Wait,
        deadline: Deadline,
    ) -> Standing {
        let time = wait.within(deadline);
        if time.is_zero() || !standing.can_change() {
            return standing;
        }
        let follow = async {
            let request = standing.request.clone();
            let mut following = self.engine.follow(caller, &request).await?;
            while standing.can_change() {
                match following.next().await? {
                    Some(next) => standing = next,
                    None => return Ok(()),
                }
            }
            Ok::<(), Error>(())
        };
        if let Ok(Err(error)) = tokio::time::timeout(time, follow).await {
            tracing::debug!(%error, "a wait ended early");
        }
        standing
    }

    /// Reads where a request of the caller's own stands, after a wait.
    pub(crate) async fn standing_after(
        &self,
        caller: &Caller,
        request: &RequestId,
        wait: Wait,
        deadline: Deadline,
    ) -> Result<Standing, Error> {
        let standing = self.standing(caller, request, deadline).await?;
        Ok(self.wait(caller, standing, wait, deadline).await)
    }
}
