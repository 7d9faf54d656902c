//! What the engine decides, without IO: values and `now` in, decisions and documents out.

pub mod answer;
pub mod evaluation;
pub mod evidence;
pub mod facts;
pub mod grant;
pub mod item;
pub mod keys;
pub use cl_model::operation;
pub mod request;
pub mod state;
