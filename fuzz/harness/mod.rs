//! The harnesses that run a fuzzer's input. `tests/fuzz` runs them on the committed inputs and their mutations.
#![allow(dead_code, unused_imports, reason = "every target compiles all of it and uses one function")]

#[cfg(feature = "serde")]
mod cache_dump;
mod cache_ops;
mod chunks;
#[path = "../../tests/common/mod.rs"]
pub(crate) mod common;
#[path = "../../tests/model/driver.rs"]
mod driver;
mod filter_bytes;
mod filter_ops;
mod guard_snapshot;
mod inline_cache_ops;
mod input;
mod maps;
#[path = "../../tests/model/ops.rs"]
mod ops;
mod oracle;
mod traces;

use common::counting::{Counting, peak_of};

#[cfg(feature = "serde")]
pub(crate) use cache_dump::{cache_dump, is_dump};
pub(crate) use cache_ops::cache_ops;
pub(crate) use chunks::load as chunk_loader;
pub(crate) use filter_ops::filter_ops;
pub(crate) use guard_snapshot::{guard_snapshot, is_snapshot};
pub(crate) use inline_cache_ops::inline_cache_ops;
pub(crate) use maps::{inline_map_ops, map_ops};
pub(crate) use traces::{is_trace, trace};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory allowed per byte of input: a segment of two buckets takes 24 bytes of input, and in memory two cache lines, and as
/// much for its lock; while it is loaded, a vector of its own.
const PER_BYTE: usize = 24;
/// Memory allowed regardless of the input: a filter that grows has a reclaimer.
const CONSTANT: usize = 64 << 10;

/// # Panics
///
/// If something takes memory out of proportion to its input.
fn bounded<T>(input: usize, f: impl FnOnce() -> T) -> T {
    bounded_beside(0, input, f)
}

/// The same for something that takes `own` bytes in addition, whatever its input.
fn bounded_beside<T>(own: usize, input: usize, f: impl FnOnce() -> T) -> T {
    let (result, peak) = peak_of(f);
    let most = own + CONSTANT + PER_BYTE * input;
    assert!(peak <= most, "{peak} bytes of memory for {input} bytes of input");
    result
}

/// Bytes that may be a filter: reading them gives an error or a filter, no panic, and takes no memory out of proportion.
pub(crate) fn filter_bytes(data: &[u8]) {
    let bytes = filter_bytes::signed(data);
    bounded(bytes.len(), || filter_bytes::all_ways(&bytes));
}

/// Whether bytes as `filter_bytes` takes them are a filter of either kind.
pub(crate) fn is_filter(data: &[u8]) -> bool {
    filter_bytes::all_ways(&filter_bytes::signed(data))
}
