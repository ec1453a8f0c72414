//! Panics on request: the n-th call of one kind of user code blows a fuse, once.

use core::cell::Cell;
use core::hash::{BuildHasher, Hash, Hasher};

use super::{Counted, Seeded, seeded};

/// A kind of user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    Hash,
    Eq,
    BuildHasher,
    Clone,
    Drop,
    Closure,
    Weigher,
    Expiry,
    Listener,
}

thread_local!(static ARMED: Cell<Option<(Site, usize)>> = const { Cell::new(None) });

/// From now on, on this thread, call number `n` (from 0) of `site` panics.
pub(crate) fn arm(site: Site, n: usize) {
    ARMED.with(|armed| armed.set(Some((site, n))));
}

/// Ends the panics; returns whether there was one.
pub(crate) fn disarm() -> bool {
    ARMED.with(|armed| armed.take().is_none())
}

/// Called whenever user code of this kind runs.
pub(crate) fn tick(site: Site) {
    let blown = ARMED.with(|armed| match armed.get() {
        Some((at, 0)) if at == site => {
            armed.set(None);
            true
        }
        Some((at, n)) if at == site => {
            armed.set(Some((at, n - 1)));
            false
        }
        _ => false,
    });
    if blown {
        panic!("fuse: {site:?}");
    }
}

/// A key that hashes and compares with a fuse.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Key(pub(crate) u64);

// SAFETY: as transparent as its integer.
unsafe impl bytemuck::Zeroable for Key {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Key {}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        tick(Site::Eq);
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        tick(Site::Hash);
        self.0.hash(state);
    }
}

/// A hash function that is made with a fuse.
#[derive(Clone, Debug)]
pub(crate) struct Fused(Seeded);

impl Fused {
    pub(crate) fn new() -> Self {
        Fused(seeded(3))
    }
}

impl BuildHasher for Fused {
    type Hasher = <Seeded as BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        tick(Site::BuildHasher);
        self.0.build_hasher()
    }
}

/// Counted, and cloned and dropped with a fuse.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fragile(pub(crate) Counted);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        tick(Site::Clone);
        Fragile(self.0.clone())
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        // The field is dropped, and counted, all the same.
        tick(Site::Drop);
    }
}
