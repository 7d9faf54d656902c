//! Conformance tools.

fn main() {}
