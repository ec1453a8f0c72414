//! qfilter::Filter, a rank-and-select quotient filter.

use std::fmt;

use parking_lot::RwLock;

use super::{BuildShared, Expected, Filter, Full, Size};

/// A power of two of slots, filled to at most 95%.
pub struct Quotient(qfilter::Filter<Box<[u8]>, BuildShared>);

impl fmt::Debug for Quotient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quotient").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

impl Filter for Quotient {
    const NAME: &'static str = "qfilter";
    const FIXED_SLOTS: bool = true;
    type Shared = RwLock<Self>;

    fn empty(size: Size) -> Result<Self, String> {
        // The remainder has three bits less than the fingerprint, as a look-up does not search eight slots. A quotient filter's
        // rate is the load divided by two to the power of the remainder's bits, and so is then the cuckoo filter's rate.
        let rate = 2_f64.powi(3 - size.bits as i32);
        qfilter::Filter::new_with_hasher(size.doubled() as u64, rate, BuildShared)
            .map(Quotient)
            .map_err(|e| e.to_string())
    }

    #[inline]
    fn insert(&mut self, key: u64) -> Result<(), Full> {
        // Inserted as often as asked: otherwise a key that only seemed to be there would be removed along with the one that is.
        self.0.insert_duplicated(key).map_err(|_| Full)
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(key)
    }

    fn entries(&self) -> Option<u64> {
        Some(self.0.len())
    }

    fn load(&self) -> Option<f64> {
        // The largest capacity is 95% of the slots.
        Some(self.0.len() as f64 / (self.0.max_capacity() as f64 / 0.95))
    }

    fn expected(&self, _: u64) -> Expected {
        Expected::AtMost(self.0.current_error_ratio())
    }

    fn share(self) -> RwLock<Self> {
        RwLock::new(self)
    }
}
