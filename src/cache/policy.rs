//! Who is to leave a cache.

/// How a cache chooses what to evict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// A hand.
    #[default]
    Clock,
}

impl Policy {
    /// The bits of a mark that count uses.
    pub(super) const USES: u8 = 1;

    /// The mark of an entry that is hit.
    #[inline(always)]
    pub(super) fn touch(self, mark: u8) -> u8 {
        mark | 1
    }
}

/// What a policy asks of a locked segment.
pub(super) trait Residents {
    type Slot: Copy;
    fn find(&self, locator: u32, accept: impl Fn(u8) -> bool) -> Option<Self::Slot>;
    fn mark(&self, slot: Self::Slot) -> u8;
    fn set_mark(&mut self, slot: Self::Slot, mark: u8);
    fn weight(&self, slot: Self::Slot) -> u64;
    fn buckets(&self) -> u32;
    fn occupied(&self, bucket: u32) -> impl Iterator<Item = Self::Slot>;
}

#[derive(Default)]
pub(super) struct Queues {
    hand: u32,
}

impl Queues {
    pub(super) fn new(_policy: Policy, _quota: u64) -> Self {
        Queues { hand: 0 }
    }
    pub(super) fn set_capacity(&mut self, _quota: u64) {}
    pub(super) fn admit(&mut self, _locator: u32, _weight: u64) -> u8 {
        0
    }
    pub(super) fn removed(&mut self, _mark: u8, _weight: u64) {}
    pub(super) fn reweighed(&mut self, _mark: u8, _before: u64, _after: u64) {}
    pub(super) fn clear(&mut self) {}
    pub(super) fn memory_usage(&self) -> usize {
        0
    }
    pub(super) fn victim<R: Residents>(&mut self, residents: &mut R) -> Option<R::Slot> {
        let buckets = residents.buckets();
        for _ in 0..2 * buckets + 1 {
            let bucket = self.hand % buckets;
            let slots: Vec<_> = residents.occupied(bucket).collect();
            for slot in slots {
                if residents.mark(slot) & 1 == 0 {
                    return Some(slot);
                }
                residents.set_mark(slot, 0);
            }
            self.hand = bucket + 1;
        }
        None
    }
}
