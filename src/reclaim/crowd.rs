//! How much may wait for a barrier that is not due yet.
//!
//! The pace of a collector limits the part of the time that it spends on barriers, however fast objects are retired; meanwhile
//! these wait. In order that their number is bounded as well, a thread that seals a bag does not wait for the pace if so many
//! bags wait that they are a considerable part of what the collector's map holds: the more a map holds, the more may wait.

use core::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicUsize, SCHEDULED};

/// Sealed bags of one list that may wait in any case.
pub(super) const FEW_BAGS: usize = 16;

/// Returns how many objects may wait, in all lists together. As safe to unwind through as the counts it reads.
pub(crate) type Room = Box<dyn Fn() -> usize + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// How much waits, and how much may wait.
pub(super) struct Crowd {
    /// Sealed bags of all lists. Relaxed, always: advice.
    sealed: AtomicUsize,
    room: Option<Room>,
}

impl Crowd {
    /// A crowd with nothing waiting; without a `room` for more, [`FEW_BAGS`] of a list may wait.
    pub(super) fn new(room: Option<Room>) -> Self {
        Crowd { sealed: AtomicUsize::new(0), room }
    }

    /// Notes that a bag was sealed. Not in models: they have no pace that this could overrule.
    pub(super) fn came(&self) {
        if !SCHEDULED {
            self.sealed.fetch_add(1, Relaxed);
        }
    }

    /// Notes that a bag was taken out to be freed.
    pub(super) fn went(&self) {
        if !SCHEDULED {
            self.sealed.fetch_sub(1, Relaxed);
        }
    }

    /// Whether so many bags of one list, of so many objects each, are too many.
    pub(super) fn is_too_much(&self, bags: usize, size: usize) -> bool {
        bags >= FEW_BAGS && self.room().is_none_or(|room| self.waiting(size) >= room)
    }

    /// Whether at least as many objects wait, in all lists together, as there is room for, however few are in the caller's own
    /// list: others have left them.
    pub(super) fn is_left_full(&self, size: usize) -> bool {
        self.sealed.load(Relaxed) >= FEW_BAGS && self.room().is_some_and(|room| self.waiting(size) >= room)
    }

    /// How much there is room for, if that was specified.
    fn room(&self) -> Option<usize> {
        self.room.as_ref().map(|room| room())
    }

    /// How many objects wait in bags of this size, in all lists together.
    fn waiting(&self, size: usize) -> usize {
        self.sealed.load(Relaxed).saturating_mul(size)
    }
}

impl fmt::Debug for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crowd").field("sealed", &self.sealed).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn where_much_is_held_much_may_wait() {
        let few = Crowd::new(None);
        assert!(!few.is_too_much(FEW_BAGS - 1, 4) && few.is_too_much(FEW_BAGS, 4));
        let many = Crowd::new(Some(Box::new(|| 400)));
        (0..99).for_each(|_| many.came());
        assert!(!many.is_too_much(99, 4));
        many.came();
        assert!(many.is_too_much(FEW_BAGS, 4), "of all lists together");
        assert!(!many.is_too_much(FEW_BAGS - 1, 4), "few in this one");
        (0..100).for_each(|_| few.came());
        assert!(many.is_left_full(4) && !few.is_left_full(4));
        many.went();
        assert!(!many.is_too_much(99, 4) && !many.is_left_full(4));
    }
}
