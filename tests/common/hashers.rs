//! Hash functions: reproducible, and bad ones.

use core::cell::Cell;
use core::hash::{BuildHasher, Hasher};
use std::hash::{DefaultHasher, RandomState};

/// A good hash function with a fixed seed.
pub(crate) type Seeded = ahash::RandomState;

/// A good hash function; the same for the same seed.
pub(crate) fn seeded(seed: u64) -> Seeded {
    ahash::RandomState::with_seeds(seed, 0x13, 0x37, !seed)
}

/// Folds the bytes that are written into 64 bits, unmixed: integers hash to themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raw(u64);

impl Hasher for Raw {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = self.0.rotate_left(17) ^ n;
    }
}

/// Applies a function to the integer to which a key hashes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Through(pub(crate) fn(u64) -> u64);

/// What [`Through`] builds.
#[derive(Debug)]
pub(crate) struct ThroughHasher(Raw, fn(u64) -> u64);

impl BuildHasher for Through {
    type Hasher = ThroughHasher;

    fn build_hasher(&self) -> ThroughHasher {
        ThroughHasher(Raw::default(), self.0)
    }
}

impl Hasher for ThroughHasher {
    fn finish(&self) -> u64 {
        (self.1)(self.0.finish())
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u64(&mut self, n: u64) {
        self.0.write_u64(n);
    }
}

/// Every key has the same hash.
pub(crate) const CONSTANT: Through = Through(|_| 42);

/// Integers hash to themselves.
pub(crate) const IDENTITY: Through = Through(|n| n);

/// Two hashes in all.
pub(crate) const ONE_BIT: Through = Through(|n| n & 1);

/// The first 20 keys collide, the others are spread.
pub(crate) const TWENTY_COLLIDE: Through =
    Through(|n| if n < 20 { 7 } else { n.wrapping_mul(0x9E37_79B9_7F4A_7C15) });

/// A different hash each time, whatever the key.
pub(crate) const RANDOM: Through = Through(|_| arbitrary());

thread_local!(static ARBITRARY: Cell<u64> = const { Cell::new(1) });

/// An arbitrary number; reproducible on one thread.
pub(crate) fn arbitrary() -> u64 {
    ARBITRARY.with(|state| {
        let mut rng = super::Rng::new(state.get());
        let next = rng.next();
        state.set(next);
        next
    })
}

thread_local!(static HASHED: Cell<usize> = const { Cell::new(0) });

/// Counts on each thread how often it is asked for a hasher.
#[derive(Clone, Default)]
pub(crate) struct Hashing(RandomState);

impl BuildHasher for Hashing {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        HASHED.set(HASHED.get() + 1);
        self.0.build_hasher()
    }
}

/// How often this thread has asked a [`Hashing`].
pub(crate) fn hashed() -> usize {
    HASHED.get()
}
