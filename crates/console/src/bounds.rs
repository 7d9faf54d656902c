//! How many calls run at a time, and how often a peer may try to get in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::error::Error;

/// The most peers that are told apart; beyond them all others share one allowance.
const MAX_PEERS: usize = 4096;

/// Tries that a peer may make at once.
const BURST: f64 = 20.0;

/// Bounds on callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls at a time; one more is refused before its body is read.
    pub max_in_flight: usize,
    /// Tries of one peer to sign in or enrol, in a minute.
    pub tries_per_minute: u32,
    /// From the head of a call to the end of its body.
    pub max_body_time: Duration,
}

/// The calls that run, and the tries that were made.
pub(crate) struct Bounds {
    limits: Limits,
    running: Arc<Semaphore>,
    tries: Mutex<HashMap<Option<IpAddr>, Allowance>>,
}

#[derive(Clone, Copy)]
struct Allowance {
    left: f64,
    at: Instant,
}

impl Bounds {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            running: Arc::new(Semaphore::new(limits.max_in_flight)),
            tries: Mutex::default(),
        }
    }

    pub(crate) const fn max_body_time(&self) -> Duration {
        self.limits.max_body_time
    }

    /// Takes the place of one call until it is dropped, or refuses at once.
    pub(crate) fn begin(&self) -> Result<OwnedSemaphorePermit, Error> {
        let running = Arc::clone(&self.running);
        running.try_acquire_owned().map_err(|_| Error::Busy)
    }

    /// Counts a try of a peer, or refuses it.
    pub(crate) fn try_once(&self, peer: Option<SocketAddr>) -> Result<(), Error> {
        let per_second = f64::from(self.limits.tries_per_minute) / 60.0;
        let now = Instant::now();
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let refilled = |allowance: &Allowance| {
            let since = now.duration_since(allowance.at).as_secs_f64();
            since.mul_add(per_second, allowance.left).min(BURST)
        };
        let mut peer = peer.map(|peer| network(peer.ip()));
        if tries.len() >= MAX_PEERS && !tries.contains_key(&peer) {
            tries.retain(|_, allowance| refilled(allowance) < BURST);
            if tries.len() >= MAX_PEERS {
                peer = None;
            }
        }
        let allowance = tries.entry(peer).or_insert(Allowance {
            left: BURST,
            at: now,
        });
        let left = refilled(allowance);
        if left < 1.0 {
            let wait = Duration::from_secs_f64(((1.0 - left) / per_second).ceil());
            return Err(Error::RateLimited(wait));
        }
        *allowance = Allowance {
            left: left - 1.0,
            at: now,
        };
        Ok(())
    }
}

/// An IPv6 peer has a whole network of addresses to itself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds() -> Bounds {
        Bounds::new(Limits {
            max_in_flight: 2,
            tries_per_minute: 60,
            max_body_time: Duration::from_secs(1),
        })
    }

    fn peer(text: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(text.parse().unwrap(), 1))
    }

    #[test]
    fn one_call_too_many_is_refused_and_a_place_comes_back() {
        let bounds = bounds();
        let first = bounds.begin().unwrap();
        let _second = bounds.begin().unwrap();
        assert!(matches!(bounds.begin(), Err(Error::Busy)));
        drop(first);
        assert!(bounds.begin().is_ok());
    }

    #[test]
    fn tries_run_out_for_one_peer_alone() {
        let bounds = bounds();
        let tries = |text: &str| {
            let allowed = (0..200).take_while(|_| bounds.try_once(peer(text)).is_ok());
            allowed.count()
        };
        assert!((20..200).contains(&tries("192.0.2.1")));
        assert!(matches!(
            bounds.try_once(peer("::ffff:192.0.2.1")),
            Err(Error::RateLimited(_)) | Ok(())
        ));
        assert!(tries("2001:db8::1") >= 20);
        assert!(tries("2001:db8::2") < 20, "one network");
        assert!(tries("2001:db8:0:1::1") >= 20);
    }

    #[test]
    fn peers_without_end_share_what_is_left() {
        let bounds = bounds();
        for index in 0..u32::try_from(MAX_PEERS).unwrap() {
            let address = std::net::Ipv4Addr::from_bits(index);
            bounds.try_once(Some((address, 1).into())).unwrap();
        }
        let tries = (0..200).take_while(|index| {
            let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + index);
            bounds.try_once(Some((address, 1).into())).is_ok()
        });
        assert!(tries.count() < 200);
    }
}
