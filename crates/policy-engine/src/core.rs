//! What the engine decides, without IO: values and `now` in, decisions and documents out.

pub mod answer;
pub mod difference;
pub mod evaluation;
pub mod evidence;
pub mod explanation;
pub mod facts;
pub mod grant;
pub mod item;
pub mod keys;
pub use cl_model::operation;
mod reasons;
pub mod request;
pub mod state;
