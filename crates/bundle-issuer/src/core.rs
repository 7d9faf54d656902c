//! What the issuer decides, without IO: values and `now` in, bundles, states and receipts out.

pub mod assembly;
pub mod bundle;
pub mod disclosure;
pub mod evidence;
pub mod keys;
