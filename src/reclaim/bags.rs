//! Bags: what was retired and waits until it may be freed, by age.

use core::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use smallvec::SmallVec;

use super::crowd::{Crowd, FEW_BAGS};
use super::discard;
use super::stamp::Epoch;
use crate::prefetch::prefetch;
use crate::sync::{per_thread, with_mine};

/// What is retired at epoch `n` is freed at `n + AGE`.
pub(super) const AGE: i32 = 3;
/// Age in epochs from which on a list seems to be visited by nobody any more: a thread that retires frees what is a quarter as
/// old.
const FORSAKEN: i32 = 4 * AGE;
/// How many objects fill a bag, if each of them stands for many.
pub(super) const FEW: usize = 4;

/// Something that was retired, and how to free it.
#[derive(Debug)]
pub(super) struct Retired {
    pub(super) this: *mut (),
    pub(super) free: unsafe fn(*mut ()),
}

// SAFETY: maps ask for `Send` of what they share, and whoever has the bag owns what is in it.
unsafe impl Send for Retired {}

/// What was retired together; the first few need no memory.
pub(super) type Bag = SmallVec<[Retired; FEW]>;

/// What was retired by some of the threads.
#[derive(Debug, Default)]
pub(super) struct Bags {
    open: Bag,
    /// Each with the epoch that was read after everything in it was unlinked; oldest first.
    sealed: VecDeque<(Epoch, Bag)>,
    /// How many bags have been sealed, modulo a power of two.
    seals: u16,
    /// Whether there was no memory to seal the open bag: nothing more is put into it, and it is freed where it is.
    pub(super) is_closed: bool,
    /// The epoch at which it was closed instead of sealed.
    closed: Epoch,
    /// For tests: there is no memory.
    #[cfg(any(loom, shuttle, test))]
    pub(super) lacks_memory: bool,
}

// With its lock it fits one pair of lines that are fetched together.
#[cfg(all(target_pointer_width = "64", not(any(loom, shuttle))))]
const _: () = assert!(size_of::<crate::sync::Mutex<Bags>>() <= 128);

/// What a list holds just after one more bag was sealed.
pub(super) struct Pile {
    pub(super) len: usize,
    /// When the oldest bag was sealed.
    pub(super) oldest: Epoch,
    /// When the bag was sealed that precedes the last so many, as many as may wait in any case; or else the oldest.
    pub(super) last_of_many: Epoch,
    /// How many bags have been sealed, modulo a power of two.
    pub(super) seals: usize,
}

impl Bags {
    /// The sealed bags, if any is left.
    pub(super) fn pile(&self) -> Option<Pile> {
        let &(oldest, _) = self.sealed.front()?;
        let (last_of_many, _) = self.sealed[self.sealed.len().saturating_sub(FEW_BAGS)];
        Some(Pile { len: self.sealed.len(), oldest, last_of_many, seals: self.seals.into() })
    }

    /// Whether the open bag has room for one more object, of so many in all; it gets room, if there is memory.
    pub(super) fn has_room(&mut self, size: usize) -> bool {
        if self.is_closed {
            return false;
        }
        let missing = size.saturating_sub(self.open.len()).max(1);
        self.open.len() < self.open.capacity() || self.has_memory() && self.open.try_reserve(missing).is_ok()
    }

    /// Whether the allocator may be asked.
    fn has_memory(&self) -> bool {
        #[cfg(any(loom, shuttle, test))]
        return !self.lacks_memory;
        #[cfg(not(any(loom, shuttle, test)))]
        true
    }

    /// Makes room for one more sealed bag. Returns false if there is no memory.
    fn make_room(&mut self) -> bool {
        self.sealed.len() < self.sealed.capacity() || self.has_memory() && self.sealed.try_reserve(1).is_ok()
    }

    /// Puts an object in, for which there is room. Returns whether the bag now has `size` objects.
    pub(super) fn push(&mut self, retired: Retired, size: usize) -> bool {
        self.open.push(retired);
        // For a bag that is to be sealed when there is no memory.
        let _ = self.make_room();
        self.open.len() >= size
    }

    /// Notes when what is in the open bag was unlinked: not after this epoch. Returns false if there is no memory for another
    /// open bag; then this one is closed.
    pub(super) fn seal(&mut self, epoch: Epoch, crowd: &Crowd) -> bool {
        // Nothing has been put into it since it was closed.
        let epoch = if self.is_closed { self.closed } else { epoch };
        self.is_closed = !self.make_room();
        if self.is_closed {
            self.closed = epoch;
            return false;
        }
        self.sealed.push_back((epoch, core::mem::take(&mut self.open)));
        self.seals = self.seals.wrapping_add(1);
        crowd.came();
        true
    }

    /// Takes up to `most` objects out of the oldest bag, if that is old enough at this epoch; all objects of a closed one.
    pub(super) fn take_old(&mut self, epoch: Epoch, most: usize, crowd: &Crowd) -> Bag {
        let Some((sealed, oldest)) = self.sealed.front_mut() else { return self.take_closed(epoch) };
        if epoch.since(*sealed) < AGE {
            return Bag::new();
        }
        if oldest.len() > most {
            // They are so few that they need no memory.
            return oldest.drain(oldest.len() - most..).collect();
        }
        let old = self.sealed.pop_front();
        crowd.went();
        if self.sealed.is_empty() {
            // A guard that was held for long may have gone. A new queue, because shrinking the old one might need memory.
            if self.sealed.capacity() > 2 * FEW_BAGS {
                self.sealed = VecDeque::new();
            }
        }
        old.map_or_else(Bag::new, |(_, old)| old)
    }

    /// Whether anything is old enough at this epoch.
    pub(super) fn has_old(&self, epoch: Epoch) -> bool {
        self.oldest().is_some_and(|oldest| epoch.since(oldest) >= AGE)
    }

    /// Whether anything was sealed, or closed, at this epoch or before.
    pub(super) fn has_any_of(&self, epoch: Epoch) -> bool {
        self.oldest().is_some_and(|oldest| epoch.since(oldest) >= 0)
    }

    /// When the bag that is taken next was sealed, or closed.
    fn oldest(&self) -> Option<Epoch> {
        let sealed = self.sealed.front().map(|&(sealed, _)| sealed);
        sealed.or_else(|| self.is_closed.then_some(self.closed))
    }

    /// Takes the open bag, if it was closed and is old enough.
    fn take_closed(&mut self, epoch: Epoch) -> Bag {
        if !self.is_closed || epoch.since(self.closed) < AGE {
            return Bag::new();
        }
        self.is_closed = false;
        core::mem::take(&mut self.open)
    }

    /// Whether this list seems to be visited by nobody any more.
    pub(super) fn is_forsaken(&self, epoch: Epoch) -> bool {
        self.sealed.front().is_some_and(|&(sealed, _)| epoch.since(sealed) >= FORSAKEN)
    }

    /// Whether something is in the open bag, and no bag is sealed: as in a list that nobody visits any more.
    pub(super) fn is_left_open(&self) -> bool {
        self.has_open() && self.sealed.is_empty()
    }

    /// Whether something is in the open bag.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether some bags are sealed, or one is closed.
    pub(super) fn has_sealed(&self) -> bool {
        !self.sealed.is_empty() || self.is_closed
    }

    /// How many bags are sealed.
    pub(super) fn sealed(&self) -> usize {
        self.sealed.len()
    }

    /// How many objects there are. Looks at each bag.
    pub(super) fn len(&self) -> usize {
        self.open.len() + self.sealed.iter().map(|(_, bag)| bag.len()).sum::<usize>()
    }

    /// All bags, oldest first.
    pub(super) fn into_all(self) -> impl Iterator<Item = Bag> {
        self.sealed.into_iter().map(|(_, bag)| bag).chain([self.open])
    }
}

/// Bags that one thread may be freeing at a time, each in a destructor of the one before: beyond that, what is retired there
/// waits, or destructors would pile up on the thread's stack.
const DEEPEST: u32 = 8;

per_thread! {
    static DEPTH: Cell<u32> = Cell::new(0);
}

/// Whether this thread is freeing.
pub(super) fn is_freeing() -> bool {
    with_mine(&DEPTH, Cell::get) > 0
}

/// Whether this thread must not free now.
pub(super) fn is_deep() -> bool {
    with_mine(&DEPTH, Cell::get) >= DEEPEST
}

/// Frees what is in a bag. All of it is prefetched first, because there may be a wait for each object.
pub(super) fn free_bag(bag: Bag) {
    bag.iter().for_each(|retired| prefetch(retired.this));
    free_all(bag);
}

/// Frees what is retired, one after the other.
pub(super) fn free_all(old: impl IntoIterator<Item = Retired>) {
    struct Freed;
    impl Drop for Freed {
        fn drop(&mut self) {
            with_mine(&DEPTH, |depth| depth.set(depth.get() - 1));
        }
    }
    with_mine(&DEPTH, |depth| depth.set(depth.get() + 1));
    let _freed = Freed;
    for Retired { this, free } in old {
        // A panic in a user's `Drop` ends here: it would otherwise surface in an arbitrary operation of the thread that happens
        // to collect, and the rest of the bag would be lost [C3].
        // SAFETY: `retire`'s contract: no guard is left that could lead to it.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| unsafe { free(this) })) {
            // A failure that a model finds must not end here.
            if cfg!(loom) {
                resume_unwind(payload);
            }
            discard(payload);
        }
    }
}
