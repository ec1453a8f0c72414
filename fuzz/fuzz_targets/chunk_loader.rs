//! Hostile chunks: see `harness::chunk_loader`.
#![no_main]

#[path = "../harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::chunk_loader(data));
