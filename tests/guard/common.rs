//! Helpers for several of these tests.

#[path = "../common/mod.rs"]
mod shared;

use koel::guard::{Guarded, Store};

#[cfg(feature = "metrics")]
pub(crate) use shared::recorder;
pub(crate) use shared::{Rng, catch, seed};

/// The key of a number.
pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// A guard whose filter is ready.
pub(crate) fn ready<S: Store>(store: S) -> Guarded<S> {
    let guarded = Guarded::open(store).expect("a guard");
    guarded.wait_until_ready().expect("a filter");
    guarded
}

/// Whether the guard finds the key.
pub(crate) fn finds<S: Store>(guarded: &Guarded<S>, key: &[u8]) -> bool {
    guarded.get(key).expect("no error").is_some()
}

/// Whether the long form of a test was asked for: `KOEL_GUARD_LONG=1`.
pub(crate) fn long() -> bool {
    std::env::var_os("KOEL_GUARD_LONG").is_some()
}
