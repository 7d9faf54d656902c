//! The log from outside, held to a naive implementation, to two other ones, and to hostile input.

#![allow(clippy::unwrap_used, reason = "tests")]

mod appending;
mod corpus;
mod merkle;
mod naive;
mod policy;
mod proving;
mod second_opinion;
mod signing;
mod texts;
mod tiles;
