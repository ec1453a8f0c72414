//! cuckoofilter::CuckooFilter.

use std::fmt;

use cuckoofilter::CuckooFilter;
use parking_lot::RwLock;

use super::{BUCKET_SLOTS, Expected, Filter, Full, SharedHasher, Size, slot_rate};

/// Fingerprints of 8 bits in buckets of four; the number of buckets is a power of two.
pub struct RustCuckooFilter(CuckooFilter<SharedHasher>);

impl fmt::Debug for RustCuckooFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustCuckooFilter").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

impl Filter for RustCuckooFilter {
    const NAME: &'static str = "cuckoofilter";
    const FIXED_SLOTS: bool = true;
    type Shared = RwLock<Self>;

    fn empty(size: Size) -> Result<Self, String> {
        Ok(RustCuckooFilter(CuckooFilter::with_capacity(size.doubled())))
    }

    #[inline]
    fn insert(&mut self, key: u64) -> Result<(), Full> {
        self.0.add(&key).map_err(|_| Full)
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.0.delete(&key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn entries(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn load(&self) -> Option<f64> {
        // A slot is a byte; apart from the slots there is only the struct.
        let slots = self.0.memory_usage() - size_of::<CuckooFilter<SharedHasher>>();
        Some(self.0.len() as f64 / slots.next_multiple_of(BUCKET_SLOTS as usize) as f64)
    }

    fn expected(&self, _: u64) -> Expected {
        Expected::AtMost(slot_rate(self.load().unwrap_or(1.0), 8))
    }

    fn share(self) -> RwLock<Self> {
        RwLock::new(self)
    }
}
