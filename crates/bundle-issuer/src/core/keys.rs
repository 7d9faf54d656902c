//! The keys that the issuer signs with.

use cl_model::key::SigningKey;

/// The issuer's keys, one for each purpose.
#[derive(Debug)]
pub struct Keys {
    /// Signs bundles.
    pub bundle: SigningKey,
    /// Signs disclosure notes.
    pub notes: SigningKey,
}
