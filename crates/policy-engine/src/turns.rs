//! Turns of the calls of one requester that count in the same places.

use cl_model::digest::Digest;
use cl_model::scalar::Reference;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

use crate::core::operation::TenantName;

/// How many requesters can be apart from each other.
const PLACES: usize = 1024;

/// Lets the calls of one requester count one after the other, so that they need not start over for
/// each other. It excludes nothing: that is the store's, which other replicas use too.
pub(crate) struct Turns(Box<[Mutex<()>]>);

impl Turns {
    pub(crate) fn new() -> Self {
        Self((0..PLACES).map(|_| Mutex::new(())).collect())
    }

    /// Waits for the turn of a requester.
    pub(crate) async fn of(
        &self,
        tenant: &TenantName,
        requester: &Reference,
    ) -> Option<MutexGuard<'_, ()>> {
        let name = Digest::of_json(&json!([tenant.as_str(), requester.as_str()]));
        let [first, second, ..] = *name.as_bytes();
        let place = usize::from(u16::from_be_bytes([first, second])) % PLACES;
        Some(self.0.get(place)?.lock().await)
    }
}
