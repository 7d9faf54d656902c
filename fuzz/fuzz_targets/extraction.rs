#![no_main]

#[path = "../extraction_bodies.rs"]
mod extraction_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| extraction_bodies::text(bytes));
