//! What the vault decides, without IO: values and `now` in, claims and documents out.

pub mod choose;
pub mod claim;
pub mod content;
pub mod event;
pub mod evidence;
pub mod keys;
pub mod meeting;
pub mod proposal;
