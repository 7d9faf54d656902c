//! Following a request until it is final.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cl_host::deadline::Deadline;
use cl_host::life::Shutdown;
use cl_model::operation::TenantName;
use tokio::sync::watch;

use crate::error::Error;
use crate::service::{PolicyEngine, RequestStatus};
use crate::store::RequestKey;

/// How many calls may follow requests at a time.
const MAX_WATCHERS: usize = 1024;

/// How many of them may be one tenant's.
const MAX_OF_TENANT: usize = 256;

/// How long one call may follow.
const MAX_WATCH: Duration = Duration::from_secs(600);

/// Time between two looks for what another replica, or the clock, has changed.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells the calls that follow a request that something about it has changed.
pub(crate) struct Changes {
    followed: Arc<Mutex<Followed>>,
}

/// Which requests are followed, and by how many calls.
#[derive(Default)]
struct Followed {
    requests: HashMap<RequestKey, watch::Sender<()>>,
    tenants: HashMap<TenantName, usize>,
    all: usize,
}

fn locked(followed: &Mutex<Followed>) -> MutexGuard<'_, Followed> {
    followed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Changes {
    pub(crate) fn new() -> Self {
        Self {
            followed: Arc::default(),
        }
    }

    /// Something about a request has changed.
    pub(crate) fn announce(&self, key: &RequestKey) {
        if let Some(sender) = locked(&self.followed).requests.get(key) {
            sender.send_replace(());
        }
    }

    /// A call that follows a request.
    pub(crate) fn watcher(&self, key: RequestKey) -> Result<Watcher, Error> {
        let mut followed = locked(&self.followed);
        let of_tenant = followed.tenants.get(&key.tenant).copied().unwrap_or(0);
        if followed.all >= MAX_WATCHERS || of_tenant >= MAX_OF_TENANT {
            return Err(Error::TooManyWatchers);
        }
        followed.all += 1;
        followed.tenants.insert(key.tenant.clone(), of_tenant + 1);
        let sender = followed.requests.entry(key.clone());
        Ok(Watcher {
            changes: sender.or_insert_with(|| watch::Sender::new(())).subscribe(),
            ends: Deadline::after(MAX_WATCH),
            last: None,
            followed: Arc::clone(&self.followed),
            key,
        })
    }
}

/// One call that follows a request.
pub(crate) struct Watcher {
    changes: watch::Receiver<()>,
    ends: Deadline,
    last: Option<RequestStatus>,
    followed: Arc<Mutex<Followed>>,
    key: RequestKey,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut followed = locked(&self.followed);
        let followed = &mut *followed;
        followed.all -= 1;
        if let Some(count) = followed.tenants.get_mut(&self.key.tenant) {
            *count -= 1;
            if *count == 0 {
                followed.tenants.remove(&self.key.tenant);
            }
        }
        let sender = followed.requests.get(&self.key);
        // This call is still one of them.
        if sender.is_some_and(|sender| sender.receiver_count() <= 1) {
            followed.requests.remove(&self.key);
        }
    }
}

impl Watcher {
    /// The next status that differs from the one before; none once the request is final or the time
    /// is up.
    pub(crate) async fn next(
        &mut self,
        engine: &PolicyEngine,
        shutdown: &Shutdown,
    ) -> Result<Option<RequestStatus>, Error> {
        if self.last.as_ref().is_some_and(RequestStatus::is_final) {
            return Ok(None);
        }
        loop {
            self.changes.mark_unchanged();
            let status = engine.request(&self.key).await?;
            if self.last.as_ref() != Some(&status) {
                self.last = Some(status.clone());
                return Ok(Some(status));
            }
            let left = self.ends.remaining();
            if left.is_zero() || shutdown.is_requested() {
                return Ok(None);
            }
            tokio::select! {
                () = shutdown.requested() => return Ok(None),
                _ = self.changes.changed() => {}
                () = tokio::time::sleep(left.min(PAUSE)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cl_model::scalar::Reference;
    use cl_model::urn::RequestId;

    use super::*;

    fn key(tenant: &str, number: usize) -> RequestKey {
        RequestKey {
            tenant: TenantName::parse(tenant).unwrap(),
            principal: Reference::new("agent:planner").unwrap(),
            id: RequestId::parse(&format!("urn:cl:request:r{number}")).unwrap(),
        }
    }

    fn fill(changes: &Changes, tenant: &str) -> Vec<Watcher> {
        let watchers = (0..MAX_OF_TENANT).map(|number| changes.watcher(key(tenant, number)));
        watchers.collect::<Result<_, _>>().unwrap()
    }

    fn is_refused(answer: &Result<Watcher, Error>) -> bool {
        matches!(answer, Err(Error::TooManyWatchers))
    }

    #[test]
    fn one_tenant_leaves_room_for_the_others_and_all_are_bounded() {
        let changes = Changes::new();
        let mut first = fill(&changes, "one");
        assert!(is_refused(&changes.watcher(key("one", 0))));
        let others = ["two", "three", "four"].map(|tenant| fill(&changes, tenant));
        assert!(is_refused(&changes.watcher(key("five", 0))));
        first.pop();
        assert!(changes.watcher(key("five", 0)).is_ok());
        drop((first, others));
        let followed = locked(&changes.followed);
        assert!(followed.requests.is_empty() && followed.tenants.is_empty());
        assert_eq!(followed.all, 0);
    }

    #[test]
    fn a_change_is_told_to_those_who_follow_that_request() {
        let changes = Changes::new();
        let [mut one, mut same, other] =
            [1, 1, 2].map(|number| changes.watcher(key("one", number)).unwrap());
        changes.announce(&key("one", 1));
        changes.announce(&key("one", 3));
        assert!(one.changes.has_changed().unwrap() && same.changes.has_changed().unwrap());
        assert!(!other.changes.has_changed().unwrap());
        one.changes.mark_unchanged();
        same.changes.mark_unchanged();
        drop(one);
        changes.announce(&key("one", 1));
        assert!(same.changes.has_changed().unwrap());
    }
}
