//! Logs that have grown a moment ago, which proves that receipts of theirs can be written.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::routing::Tenant;

/// How long it proves that, in milliseconds.
const LASTS_MS: u64 = 1000;

/// When each log has last grown, durable and pinned, with no failure since.
#[derive(Debug, Default)]
pub struct Proven(Mutex<BTreeMap<Tenant, u64>>);

impl Proven {
    /// These logs have grown.
    pub fn note<'a>(&self, logs: impl IntoIterator<Item = &'a Tenant>, now_ms: u64) {
        let mut grown = self.lock();
        grown.retain(|_, at_ms| is_fresh(*at_ms, now_ms));
        for tenant in logs {
            grown.insert(tenant.clone(), now_ms);
        }
    }

    /// Something could not be written: only another writing tells whether that is over.
    pub fn forget(&self) {
        self.lock().clear();
    }

    /// Whether a receipt of this tenant was written a moment ago.
    pub fn has(&self, tenant: &Tenant, now_ms: u64) -> bool {
        let mut grown = self.lock();
        // What is over stays so, also when the clock comes to that second again.
        grown.retain(|_, at_ms| is_fresh(*at_ms, now_ms));
        grown.contains_key(tenant)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Tenant, u64>> {
        // No code under this lock leaves half a change behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clock that was set back proves nothing.
fn is_fresh(at_ms: u64, now_ms: u64) -> bool {
    (at_ms..at_ms.saturating_add(LASTS_MS)).contains(&now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasts_for_a_second_of_a_clock_that_runs() {
        let acme = Tenant::parse("acme").unwrap();
        let other = Tenant::parse("other").unwrap();
        let proven = Proven::default();
        assert!(!proven.has(&acme, 5000));
        proven.note([&acme], 5000);
        assert!(proven.has(&acme, 5000) && proven.has(&acme, 5999));
        assert!(!proven.has(&other, 5000));
        proven.note([&other], 5999);
        assert!(proven.has(&acme, 5999) && proven.has(&other, 5999));
        assert!(!proven.has(&acme, 6000) && proven.has(&other, 6000));
        assert!(!proven.has(&acme, 5999), "over is over");
        // A clock that was set back ends it, too.
        assert!(!proven.has(&other, 5998) && !proven.has(&other, 5999));
        proven.note([&acme], 5999);
        proven.forget();
        assert!(!proven.has(&acme, 5999));
    }
}
