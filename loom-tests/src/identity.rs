//! A hash by which a test knows where its keys are.

use std::hash::{BuildHasher, Hasher};

/// Hashes an integer to itself, so that a model knows where its keys are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity(u64);

impl BuildHasher for Identity {
    type Hasher = Identity;

    fn build_hasher(&self) -> Identity {
        Identity(0)
    }
}

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the models' keys are u64")
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
