//! [`Ring`]: a queue of items, first in first out, in four bytes each.

use std::collections::VecDeque;

use super::{Locator, Residents, mark};

/// Locators in order of arrival, and the weight of the items.
///
/// Every item of the queue has an entry. Entries whose item was removed are *stale* and stay: they are dropped when
/// they come to the front, or when there are more of them than items.
#[derive(Debug, Default)]
pub(super) struct Ring {
    entries: VecDeque<Locator>,
    /// How many items there are: entries that are not stale.
    len: usize,
    weight: u64,
}

/// Stale entries that are never worth a compaction.
const SLACK: usize = 32;

impl Ring {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// Adds a new item at the back.
    #[inline]
    pub(super) fn push(&mut self, locator: Locator, weight: u64) {
        self.requeue(locator);
        self.len += 1;
        self.weight += weight;
    }

    /// Puts an entry that was taken out by [`pop`](Self::pop) at the back.
    #[inline]
    pub(super) fn requeue(&mut self, locator: Locator) {
        self.reserve();
        self.entries.push_back(locator);
    }

    /// Adds an item that is older than all that are there at the front.
    pub(super) fn push_front(&mut self, locator: Locator, weight: u64) {
        self.adopt(locator);
        self.len += 1;
        self.weight += weight;
    }

    /// Makes room for one more entry.
    #[inline]
    fn reserve(&mut self) {
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        // By a sixteenth: still amortized. A deque would double by itself, half of which is waste in a full cache.
        self.entries.reserve_exact(self.entries.len() / 16 + 16);
    }

    /// The entry at `index` from the front.
    #[inline]
    pub(super) fn peek(&self, index: usize) -> Option<Locator> {
        self.entries.get(index).copied()
    }

    /// Whether an entry may be stale.
    pub(super) fn may_be_stale(&self) -> bool {
        self.entries.len() != self.len
    }

    /// Adds an entry at the front for an item that counts already, but has none.
    pub(super) fn adopt(&mut self, locator: Locator) {
        self.reserve();
        self.entries.push_front(locator);
    }

    /// Takes the entry at `index` from the front out; its item still counts.
    #[inline]
    pub(super) fn pop(&mut self, index: usize) {
        if index == 0 {
            self.entries.pop_front();
        } else {
            self.entries.remove(index);
        }
    }

    /// Notes that an item has left the queue. Its entry is taken out already, or stale from now on.
    #[inline]
    pub(super) fn forget(&mut self, weight: u64) {
        debug_assert!(self.len > 0 && self.weight >= weight);
        self.len -= 1;
        self.weight -= weight;
    }

    /// Notes that an item's weight has changed.
    pub(super) fn reweigh(&mut self, old: u64, new: u64) {
        debug_assert!(self.weight >= old);
        self.weight = self.weight - old + new;
    }

    /// Drops stale entries if most are stale, and returns whether it has; `queue` is the bit of marks that says "in this ring".
    ///
    /// As many entries are dropped as items were removed since the last time: each removal pays for one.
    #[inline]
    pub(super) fn compact_if_stale<R: Residents>(&mut self, queue: u8, residents: &mut R) -> bool {
        let most_are = self.entries.len() > 2 * self.len + SLACK;
        if most_are {
            self.compact(queue, residents);
        }
        most_are
    }

    /// Drops all stale entries, and gives back the memory of those that are gone. Returns whether there were any.
    pub(super) fn tidy<R: Residents>(&mut self, queue: u8, residents: &mut R) -> bool {
        let any_is = self.may_be_stale();
        if any_is {
            self.compact(queue, residents);
        }
        self.entries.shrink_to(self.len + SLACK);
        any_is
    }

    #[cold]
    fn compact<R: Residents>(&mut self, queue: u8, residents: &mut R) {
        let mut kept = VecDeque::with_capacity(self.len + SLACK);
        // An item's own entry is the last of those that could mean it.
        for &locator in self.entries.iter().rev() {
            if see(locator, queue, residents).is_some() {
                kept.push_front(locator);
            }
        }
        for &locator in &kept {
            if let Some(slot) = residents.find(locator, mark::MAIN | mark::SEEN, queue | mark::SEEN) {
                residents.set_mark(slot, residents.mark(slot) & !mark::SEEN);
            }
        }
        // There may be fewer, if there are strays: see `Adaptive::evict_stray`.
        debug_assert!(kept.len() <= self.len);
        self.entries = kept;
    }

    /// Marks all items of the ring as seen and adds them to `out`, from the back to the front.
    pub(super) fn see<R: Residents>(&self, queue: u8, residents: &mut R, out: &mut Vec<R::Slot>) {
        out.extend(self.entries.iter().rev().filter_map(|&locator| see(locator, queue, residents)));
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.entries.capacity() * size_of::<Locator>()
    }
}

/// Finds an item of the queue that has not been seen, and marks it: the next that shares its locator is found then.
fn see<R: Residents>(locator: Locator, queue: u8, residents: &mut R) -> Option<R::Slot> {
    let slot = residents.find(locator, mark::MAIN | mark::SEEN, queue)?;
    residents.set_mark(slot, residents.mark(slot) | mark::SEEN);
    Some(slot)
}
