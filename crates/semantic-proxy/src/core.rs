//! What leaves of a granted claim, without IO: claims and `now` in, items or a violation out.

pub mod claim;
pub mod evidence;
pub mod names;
pub mod projection;
pub mod ranges;
pub mod sentence;
