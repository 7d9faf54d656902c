//! How many calls run at a time, in all and for each caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cl_model::scalar::Reference;

use crate::auth::{Caller, TenantName};
use crate::error::Error;

/// Bounds on calls at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Of all callers.
    pub max_in_flight: usize,
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
        let own = running.by_caller.get(&principal).copied();
        let own = own.unwrap_or_default();
        if own >= self.limits.max_in_flight_per_caller {
            return Err(Error::RateLimited(None));
        }
        running.all += 1;
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
        if let Some(own) = running.by_caller.get_mut(&self.principal) {
            *own -= 1;
            if *own == 0 {
                running.by_caller.remove(&self.principal);
            }
        }
    }
}
