//! Operations on a cache against an oracle: see `harness::cache_ops`.
#![no_main]

#[path = "../harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::cache_ops(data));
