#![no_main]

#[path = "../policy_bodies.rs"]
mod policy_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| policy_bodies::cedar_policy(bytes));
