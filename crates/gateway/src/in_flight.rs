//! How many calls run at a time, in all, for each tenant and for each caller.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cl_model::scalar::Reference;

use crate::auth::{Caller, TenantName};
use crate::error::Error;

/// Bounds on calls at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Of all callers.
    pub max_in_flight: usize,
    /// Of one tenant, whatever its principals.
    pub max_in_flight_per_tenant: usize,
    /// Of one principal of one tenant, whatever its connections and credentials.
    pub max_in_flight_per_caller: usize,
}

/// The calls that run now.
pub(crate) struct InFlight {
    limits: CallLimits,
    running: Mutex<Running>,
}

type Principal = (TenantName, Reference);

#[derive(Default)]
struct Running {
    all: usize,
    by_tenant: HashMap<TenantName, usize>,
    by_caller: HashMap<Principal, usize>,
}

/// The right of one call to run, until it is dropped.
pub(crate) struct Permit {
    in_flight: Arc<InFlight>,
    principal: Principal,
}

impl InFlight {
    pub(crate) fn new(limits: CallLimits) -> Self {
        Self {
            limits,
            running: Mutex::default(),
        }
    }

    /// Takes the place of one call, or refuses at once.
    pub(crate) fn begin(self: &Arc<Self>, caller: &Caller) -> Result<Permit, Error> {
        let principal = (caller.tenant().clone(), caller.principal().clone());
        let mut running = self.running();
        if running.all >= self.limits.max_in_flight {
            return Err(Error::Busy);
        }
        let of_tenant = count(&running.by_tenant, &principal.0);
        let own = count(&running.by_caller, &principal);
        if of_tenant >= self.limits.max_in_flight_per_tenant
            || own >= self.limits.max_in_flight_per_caller
        {
            return Err(Error::RateLimited(None));
        }
        running.all += 1;
        running.by_tenant.insert(principal.0.clone(), of_tenant + 1);
        running.by_caller.insert(principal.clone(), own + 1);
        Ok(Permit {
            in_flight: Arc::clone(self),
            principal,
        })
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut running = self.in_flight.running();
        running.all -= 1;
        release(&mut running.by_tenant, &self.principal.0);
        release(&mut running.by_caller, &self.principal);
    }
}

fn count<K: Eq + Hash>(running: &HashMap<K, usize>, key: &K) -> usize {
    running.get(key).copied().unwrap_or_default()
}

fn release<K: Eq + Hash>(running: &mut HashMap<K, usize>, key: &K) {
    if let Some(own) = running.get_mut(key) {
        *own -= 1;
        if *own == 0 {
            running.remove(key);
        }
    }
}
