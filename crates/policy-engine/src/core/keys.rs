//! The keys that the engine decides with.

use cl_model::alias::AliasScheme;
use cl_model::key::{MacKey, Seed, SigningKey};

/// The engine's keys, one for each purpose.
#[derive(Debug)]
pub struct Keys {
    /// Signs grants.
    pub decision: SigningKey,
    /// Names subjects in one exchange.
    pub aliases: AliasScheme,
    /// Names tenants in receipts. The alias key too; the two uses have different domains.
    pub tenant_alias: MacKey,
    /// Makes challenges. The alias key too, with domains of its own.
    pub challenge: MacKey,
    /// Tags subjects in receipts; the vault holds it too.
    pub subject_tag: MacKey,
}

impl Keys {
    /// The keys of their secrets.
    pub fn new(decision: SigningKey, alias: &Seed, subject_tag: &Seed) -> Self {
        Self {
            decision,
            aliases: AliasScheme::Keyed(MacKey::from_seed(alias)),
            tenant_alias: MacKey::from_seed(alias),
            challenge: MacKey::from_seed(alias),
            subject_tag: MacKey::from_seed(subject_tag),
        }
    }
}
