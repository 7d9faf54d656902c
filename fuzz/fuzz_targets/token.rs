#![no_main]

#[path = "../token_bodies.rs"]
mod token_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| token_bodies::token(bytes));
