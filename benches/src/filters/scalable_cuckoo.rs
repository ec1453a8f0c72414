//! scalable_cuckoo_filter::ScalableCuckooFilter.

use std::fmt;

use parking_lot::RwLock;
use rand09::SeedableRng;
use rand09::rngs::SmallRng;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};

use super::{BUCKET_SLOTS, Expected, FIRST_KEYS, Filter, Full, SharedHasher, Size};

/// Buckets of four, whose number is a power of two; when a table is full, another is added. Built for its keys, or, if `GROWN`,
/// for [`FIRST_KEYS`].
pub struct RustScalableCuckoo<const GROWN: bool>(ScalableCuckooFilter<u64, SharedHasher, SmallRng>);

impl<const GROWN: bool> fmt::Debug for RustScalableCuckoo<GROWN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustScalableCuckoo").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

impl<const GROWN: bool> Filter for RustScalableCuckoo<GROWN> {
    const NAME: &'static str = if GROWN { "scalable_cuckoo_filter-grown" } else { "scalable_cuckoo_filter" };
    // Its removals ask the oldest table first, and there take an empty slot for a key whose fingerprint is 0: a failed debug
    // assertion, or a removal that removed nothing (0.5.1).
    const REMOVES: bool = !GROWN;
    type Shared = RwLock<Self>;

    fn empty(size: Size) -> Result<Self, String> {
        // Its default random numbers are a handle to the thread's, which is neither Send nor fast.
        let filter = ScalableCuckooFilterBuilder::new()
            .initial_capacity(if GROWN { FIRST_KEYS } else { size.doubled() })
            .false_positive_probability(size.rate().min(0.99))
            .entries_per_bucket(BUCKET_SLOTS as usize)
            .hasher(SharedHasher::default())
            .rng(SmallRng::seed_from_u64(1))
            .finish();
        Ok(RustScalableCuckoo(filter))
    }

    #[inline]
    fn insert(&mut self, key: u64) -> Result<(), Full> {
        self.0.insert(&key);
        Ok(())
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(&key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn entries(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn load(&self) -> Option<f64> {
        Some(self.0.len() as f64 / self.0.capacity() as f64)
    }

    fn expected(&self, _: u64) -> Expected {
        Expected::AtMost(self.0.false_positive_probability())
    }

    fn share(self) -> RwLock<Self> {
        RwLock::new(self)
    }
}
