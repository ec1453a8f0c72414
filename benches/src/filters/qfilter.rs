//! qfilter::Filter, a rank-and-select quotient filter.

use std::fmt;

use parking_lot::RwLock;

use super::{BuildShared, Expected, Filter, Full, Size};

/// A power of two of slots, filled to 95% at the most.
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
        // Three bits less of a remainder than the fingerprint has: nothing is looked for in eight slots. As a quotient
        // filter's rate is the load by two to the remainder's bits, it then is the cuckoo filter's rate.
        let rate = 2_f64.powi(3 - size.bits as i32);
        qfilter::Filter::new_with_hasher(size.doubled() as u64, rate, BuildShared)
            .map(Quotient)
            .map_err(|e| e.to_string())
    }

    #[inline]
    fn insert(&mut self, key: u64) -> Result<(), Full> {
        // As often as it is asked to: or a key that seems to be there would be removed with the one that is.
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
        // The largest capacity is 95% of slots.
        Some(self.0.len() as f64 / (self.0.max_capacity() as f64 / 0.95))
    }

    fn expected(&self, _: u64) -> Expected {
        Expected::AtMost(self.0.current_error_ratio())
    }

    fn share(self) -> RwLock<Self> {
        RwLock::new(self)
    }
}
