//! Operations on filters against an oracle: see `harness::filter_ops`.
#![no_main]

#[path = "../harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::filter_ops(data));
