//! [`Found`]: which slot of a locked segment an item is in.

use core::num::NonZeroU64;

use super::buckets::SLOTS;

/// An occupied slot, in a bucket or in the overflow. True as long as the lock is held and nothing is put or removed.
///
/// One word, that registers pass on: what is written to the stack in parts and read back as a whole has to wait until
/// the parts have reached the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found(NonZeroU64);

/// In bits 0 and 1 the lane, in bit 2 whether it is in the overflow; bit 3 is set, above is the bucket.
const LANE: u64 = SLOTS as u64 - 1;
const OVERFLOW: u64 = 4;
const TAKEN: NonZeroU64 = NonZeroU64::new(8).expect("not zero");
const BUCKET: u32 = 4;

impl Found {
    /// A slot of a segment's buckets.
    #[inline(always)]
    pub(super) fn in_bucket(bucket: u32, lane: u32) -> Self {
        debug_assert!(lane < SLOTS);
        Found(TAKEN | u64::from(bucket) << BUCKET | u64::from(lane))
    }

    /// A slot of the overflow, by its bucket's number there.
    pub(super) fn in_overflow(number: u32, lane: u32) -> Self {
        Found(Self::in_bucket(number, lane).0 | OVERFLOW)
    }

    /// Whether it is in the overflow.
    #[inline(always)]
    pub(super) fn is_in_overflow(self) -> bool {
        self.0.get() & OVERFLOW != 0
    }

    /// Its bucket; in the overflow, that bucket's number.
    #[inline(always)]
    pub(super) fn bucket(self) -> u32 {
        (self.0.get() >> BUCKET) as u32
    }

    /// Its lane in the bucket.
    #[inline(always)]
    pub(super) fn lane(self) -> u32 {
        (self.0.get() & LANE) as u32
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::Found;

    #[test]
    fn what_was_put_together_comes_apart() {
        for (bucket, lane) in [(0, 0), (0, 3), (1, 2), (7, 1), (u32::MAX, 3)] {
            let (here, there) = (Found::in_bucket(bucket, lane), Found::in_overflow(bucket, lane));
            assert_eq!((here.bucket(), here.lane(), here.is_in_overflow()), (bucket, lane, false));
            assert_eq!((there.bucket(), there.lane(), there.is_in_overflow()), (bucket, lane, true));
            assert_ne!(here, there);
        }
        assert_eq!(size_of::<Option<Found>>(), 8);
    }
}
