//! Operations on an inline cache, compared with a cache: see `harness::inline_cache_ops`.
#![no_main]

#[path = "../harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::inline_cache_ops(data));
