//! Text that may be a trace for koel-bench: see `harness::trace`.
#![no_main]

#[path = "../harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::trace(data));
