//! What several of these tests need.

use koel::guard::{Guarded, Store};

/// The key of a number.
pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// A guard whose filter is there.
pub(crate) fn ready<S: Store>(store: S) -> Guarded<S> {
    let guarded = Guarded::open(store).expect("a guard");
    guarded.wait_until_ready().expect("a filter");
    guarded
}

/// Whether the guard finds the key.
pub(crate) fn finds<S: Store>(guarded: &Guarded<S>, key: &[u8]) -> bool {
    guarded.get(key).expect("no error").is_some()
}

/// The long form of a test was asked for: `KOEL_GUARD_LONG=1`.
pub(crate) fn long() -> bool {
    std::env::var_os("KOEL_GUARD_LONG").is_some()
}

/// xorshift64*: numbers for workloads.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
