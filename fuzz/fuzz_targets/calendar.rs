#![no_main]

#[path = "../mail_bodies.rs"]
mod mail_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mail_bodies::calendar(bytes));
