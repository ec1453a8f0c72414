//! Hostile dumps: see `harness::cache_dump`.
#![no_main]

#[path = "../harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::cache_dump(data));
