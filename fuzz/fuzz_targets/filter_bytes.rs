//! Hostile bytes, through every way in: see `harness::filter_bytes`.
#![no_main]

#[path = "../harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::filter_bytes(data));
