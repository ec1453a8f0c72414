//! atomic_cuckoo_filter::CuckooFilter.

use atomic_cuckoo_filter::{CuckooFilter, CuckooFilterBuilder};

use super::{BUCKET_SLOTS, Expected, Filter, Full, Shared, SharedHasher, Size, slot_rate};

/// Slots of 4, 8, 16 or 32 bits; readers wait while a writer displaces fingerprints.
#[derive(Debug)]
pub struct AtomicCuckoo {
    filter: CuckooFilter<SharedHasher>,
    bits: u32,
}

impl Filter for AtomicCuckoo {
    const NAME: &'static str = "atomic-cuckoo-filter";
    const FIXED_SLOTS: bool = true;
    const SHARED_WRITES: bool = true;
    type Shared = Self;

    fn empty(size: Size) -> Result<Self, String> {
        let bits = size.bits.next_power_of_two().clamp(4, 32);
        let filter = CuckooFilterBuilder::<SharedHasher>::default()
            .capacity(size.doubled())
            .fingerprint_size(bits as usize)
            .bucket_size(BUCKET_SLOTS as usize)
            .build()
            .map_err(|e| e.to_string())?;
        Ok(AtomicCuckoo { filter, bits })
    }

    #[inline]
    fn insert(&mut self, key: u64) -> Result<(), Full> {
        Shared::insert(self, key)
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        Shared::remove(self, key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.filter.contains(&key)
    }

    fn entries(&self) -> Option<u64> {
        Some(self.filter.len() as u64)
    }

    fn load(&self) -> Option<f64> {
        Some(self.filter.len() as f64 / self.filter.capacity() as f64)
    }

    fn expected(&self, _: u64) -> Expected {
        Expected::AtMost(slot_rate(self.load().unwrap_or(1.0), self.bits))
    }

    fn share(self) -> Self {
        self
    }
}

impl Shared for AtomicCuckoo {
    type Filter = Self;

    #[inline]
    fn insert(&self, key: u64) -> Result<(), Full> {
        self.filter.insert(&key).map_err(|_| Full)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.filter.remove(&key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.filter.contains(&key)
    }

    fn into_inner(self) -> Self {
        self
    }
}
