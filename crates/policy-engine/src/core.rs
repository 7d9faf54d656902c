//! What the engine decides, without IO: values and `now` in, decisions and documents out.

pub mod answer;
pub mod challenge;
pub mod concealed;
pub mod difference;
pub mod evaluation;
pub mod evidence;
pub mod explanation;
pub mod facts;
pub mod grant;
pub mod item;
pub mod keys;
pub use cl_model::operation;
pub mod open_answers;
pub mod rates;
mod reasons;
pub mod request;
pub mod signals;
pub mod state;
