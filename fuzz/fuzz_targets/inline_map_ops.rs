//! Operations on an `InlineMap` against a model: see `harness::map_ops`.
#![no_main]

#[path = "../harness/mod.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|data: &[u8]| harness::inline_map_ops(data));
