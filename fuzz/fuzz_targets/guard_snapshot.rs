//! Bytes that may be a guard's snapshot: see `harness::guard_snapshot`.
#![no_main]

#[path = "../harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::guard_snapshot(data));
