//! How long things last that people do, and for whom their passkeys are.

use cl_model::passkey::RelyingParty;

/// How long a challenge is open.
pub const CEREMONY_SECONDS: u64 = 300;

/// How long a link to enrol a passkey is open.
pub const LINK_SECONDS: u64 = 1800;

/// How long a session lasts at most.
pub const SESSION_SECONDS: u64 = 8 * 3600;

/// How long a session lasts without a call.
pub const SESSION_IDLE_SECONDS: u32 = 900;

/// What the engine holds about people's part.
#[derive(Clone, Debug)]
pub struct PeopleSettings {
    /// For whom passkeys are, and on which pages.
    pub relying_party: RelyingParty,
    /// How long a request waits for a person at most.
    pub approval_seconds: u64,
}

impl PeopleSettings {
    /// The page that a one-time link leads to, without its token.
    pub(crate) fn enrolment_page(&self) -> String {
        let origin = self.relying_party.origins().first();
        format!("{}/enrol", origin.map_or("", String::as_str))
    }
}
