#![no_main]

#[path = "../tlog_bodies.rs"]
mod tlog_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tlog_bodies::tlog(bytes));
