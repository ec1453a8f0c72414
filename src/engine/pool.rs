//! Segments and roots that have been replaced.
//!
//! They stay what they are, because late readers may still be reading them, until they are used again [G1] or, under guards,
//! freed [G5]. The pool's lock is also that of the directory's entries [G2].
//!
//! Segments are linked through themselves, so that putting one away asks for no memory: it comes after the point of no
//! return.

use core::ptr::NonNull;
use std::sync::Arc;

use super::memory::Meter;
use super::payload::Payload;
use super::root::{RootHeader, free_root};
use super::segment::{Link, Links, Segment};
use super::supply::Supply;

/// Segments and roots that are not current: kept for late readers [G3], and used again where the size fits.
pub(super) struct Pool<P: Payload> {
    /// The first shelf: a segment of each kind, linked by `shelf`. There are few sizes.
    shelves: Link<P>,
    pub(super) roots: Vec<NonNull<RootHeader>>,
    /// How many segments are current.
    pub(super) live: usize,
    /// Memory for further segments.
    pub(super) supply: Supply,
    /// The segments have room for the items of so many buckets without growing: a caller has asked for it, and none has shrunk
    /// them since, as `shrinks` shows.
    pub(super) reserved_buckets: u64,
    /// How often shrinking has begun plus how often it has ended. Never decreases.
    pub(super) shrinks: u64,
}

impl<P: Payload> Default for Pool<P> {
    fn default() -> Self {
        Pool {
            shelves: None,
            roots: Vec::new(),
            live: 0,
            supply: Supply::default(),
            reserved_buckets: 0,
            shrinks: 0,
        }
    }
}

// SAFETY: pointers to things that may themselves be sent and shared.
unsafe impl<P: Payload> Send for Pool<P> {}

impl<P: Payload> Pool<P> {
    /// Nothing is reserved any more, including what a caller is about to reserve.
    pub(super) fn forget_reserved(&mut self) {
        self.reserved_buckets = 0;
        self.shrinks += 1;
    }

    /// Puts a segment that is not current away.
    pub(super) fn put(&mut self, segment: NonNull<Segment<P>>) {
        match self.shelf(kind_of(segment)) {
            // After the first of its kind.
            Some(first) => {
                let links = self.links(first);
                links.count += 1;
                let same = links.same.replace(segment);
                *self.links(segment) = Links { same, shelf: None, count: 0 };
            }
            None => {
                let shelf = self.shelves.replace(segment);
                *self.links(segment) = Links { same: None, shelf, count: 1 };
            }
        }
    }

    /// Takes out a segment of so many buckets: one without overflow, if there is one; else one with overflow, if `any` will do.
    pub(super) fn take(&mut self, buckets: u32, any: bool) -> Link<P> {
        let with_overflow = Kind { buckets, has_overflow: true };
        let taken = self.take_of(Kind { buckets, has_overflow: false });
        taken.or_else(|| if any { self.take_of(with_overflow) } else { None })
    }

    /// Whether a segment of so many buckets without overflow is to be had: from the pool, or a new one, if the pool has fewer
    /// with an overflow than there are current segments. Otherwise, where nobody frees what was put away, each new one would
    /// add to them.
    pub(super) fn may_lack_overflow(&mut self, buckets: u32) -> bool {
        if self.shelf(Kind { buckets, has_overflow: false }).is_some() {
            return true;
        }
        self.count(Kind { buckets, has_overflow: true }) < self.live
    }

    fn take_of(&mut self, kind: Kind) -> Link<P> {
        let first = self.shelf(kind)?;
        if let Some(second) = self.links(first).same {
            let same = self.links(second).same;
            let links = self.links(first);
            links.same = same;
            links.count -= 1;
            return Some(second);
        }
        let next = self.links(first).shelf;
        let mut before = None;
        let mut at = self.shelves;
        while let Some(shelf) = at.filter(|shelf| *shelf != first) {
            (before, at) = (at, self.links(shelf).shelf);
        }
        match before {
            Some(before) => self.links(before).shelf = next,
            None => self.shelves = next,
        }
        Some(first)
    }

    /// The first segment of a kind.
    fn shelf(&mut self, kind: Kind) -> Link<P> {
        let mut at = self.shelves;
        while let Some(shelf) = at.filter(|shelf| kind_of(*shelf) != kind) {
            at = self.links(shelf).shelf;
        }
        at
    }

    /// How many segments there are of a kind. Not by a walk: shrinking asks for each segment.
    fn count(&mut self, kind: Kind) -> usize {
        self.shelf(kind).map_or(0, |first| self.links(first).count)
    }

    /// The links of a segment that is in the pool or on its way there.
    fn links(&mut self, segment: NonNull<Segment<P>>) -> &mut Links<P> {
        // SAFETY: such segments are alive, and only the holder of the pool's lock, or the owner of the pool, looks at their
        // links: we have `&mut self`, which the result borrows.
        unsafe { &mut *segment.as_ref().write().links.get() }
    }

    /// Gives up all segments and roots, and memory for further segments, unless other parts of the allocation it was cut from
    /// are in use.
    pub(super) fn drain(&mut self) -> Self {
        let (shelves, roots) = (self.shelves.take(), core::mem::take(&mut self.roots));
        let mut old = Pool { shelves, roots, ..Pool::default() };
        // SAFETY: pooled segments are alive.
        let memory = old.segments().map(|segment| &unsafe { segment.as_ref() }.write().memory);
        old.supply = self.supply.give_up(memory);
        old
    }

    /// All segments.
    fn segments(&self) -> impl Iterator<Item = NonNull<Segment<P>>> + Clone + use<P> {
        let links = |segment: NonNull<Segment<P>>| {
            // SAFETY: pooled segments are alive, and we hold their pool: nobody else looks at their links.
            let Links { same, shelf, .. } = unsafe { &*segment.as_ref().write().links.get() };
            (*same, *shelf)
        };
        let shelves = core::iter::successors(self.shelves, move |first| links(*first).1);
        shelves.flat_map(move |first| core::iter::successors(Some(first), move |one| links(*one).0))
    }

    /// Bytes of the pool's own lists.
    pub(super) fn memory_usage(&self) -> usize {
        self.roots.capacity() * size_of::<usize>() + self.supply.memory_usage()
    }

    /// Frees all it holds.
    ///
    /// # Safety
    ///
    /// Nobody uses any of it any more.
    pub(super) unsafe fn free(mut self, meter: &Meter) {
        while let Some(first) = self.shelves {
            let taken = self.take_of(kind_of(first)).expect("a shelf has its first");
            // SAFETY: the caller's; taken out.
            unsafe { Segment::free(taken, meter) };
        }
        for root in self.roots {
            // SAFETY: as above.
            unsafe { free_root(root, meter) };
        }
        // SAFETY: as above.
        unsafe { self.supply.free(meter) };
    }

    #[cfg(loom)]
    fn mark_freed(&self) {
        for segment in self.segments() {
            // SAFETY: as above.
            unsafe { segment.as_ref() }.watch.free();
        }
        // SAFETY: pooled roots are alive.
        self.roots.iter().for_each(|root| unsafe { root.as_ref() }.watch.free());
    }
}

/// What distinguishes segments for a caller that looks for one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    buckets: u32,
    /// Whether it has memory for an overflow, which stays as long as the segment exists.
    has_overflow: bool,
}

/// The kind of a segment in the pool, or on its way there.
fn kind_of<P: Payload>(segment: NonNull<Segment<P>>) -> Kind {
    // SAFETY: pooled segments are alive, and so is this one.
    let segment = unsafe { segment.as_ref() };
    Kind { buckets: segment.buckets().len(), has_overflow: !segment.overflow().has_no_lists() }
}

/// Segments and roots on their way to be freed.
pub(crate) struct Retired<P: Payload> {
    pub(super) pool: Pool<P>,
    pub(super) meter: Arc<Meter>,
}

impl<P: Payload> Retired<P> {
    /// Nothing yet, for the table whose meter this is.
    pub(crate) fn nothing(meter: Arc<Meter>) -> Self {
        Retired { pool: Pool::default(), meter }
    }

    /// Frees them.
    ///
    /// # Safety
    ///
    /// Nobody uses them any more.
    pub(crate) unsafe fn free(self) {
        // SAFETY: the caller's; the meter is the one they were allocated with.
        unsafe { self.pool.free(&self.meter) };
    }

    /// Marks everything that late readers may have been reading as freed.
    #[cfg(loom)]
    pub(crate) fn mark_freed(&self) {
        self.pool.mark_freed();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::overflow::Heading;
    use super::super::payload::Inline;
    use super::super::root::Root;
    use super::*;
    use crate::hash::{Digest, Place};

    type Words = Inline<u64, u64>;

    fn segment(buckets: u32, meter: &Meter) -> NonNull<Segment<Words>> {
        let plan = Segment::<Words>::plan(buckets, 1).expect("a layout");
        let memory = Supply::default().take(&plan, 1, 1, false, meter).expect("memory");
        Segment::construct(memory, buckets, 1)
    }

    /// Three segments of each size go in; they come out one size after the other, so that the first, the last and the middle
    /// shelf are each emptied before the others.
    #[test]
    fn segments_are_found_by_their_size_whatever_leaves_first() {
        let meter = Meter::new();
        let sizes = [2, 3, 5];
        for order in [[2, 3, 5], [2, 5, 3], [3, 2, 5], [3, 5, 2], [5, 2, 3], [5, 3, 2]] {
            let mut pool = Pool::<Words>::default();
            let mut put: Vec<_> =
                sizes.repeat(3).into_iter().map(|buckets| segment(buckets, &meter)).collect();
            put.iter().for_each(|segment| pool.put(*segment));
            let mut taken = Vec::new();
            for buckets in order {
                let of_size: Vec<_> = core::iter::from_fn(|| pool.take(buckets, true)).collect();
                assert!(
                    of_size.len() == 3 && of_size.iter().all(|segment| kind_of(*segment).buckets == buckets)
                );
                taken.extend(of_size);
            }
            assert!(pool.shelves.is_none());
            put.sort();
            taken.sort();
            assert_eq!(put, taken, "each comes out once");
            for segment in taken {
                // SAFETY: ours; nobody uses it.
                unsafe { Segment::free(segment, &meter) };
            }
            assert_eq!(meter.bytes(), 0);
        }
    }

    #[test]
    fn segments_of_a_kind_are_counted_as_they_come_and_go() {
        let (meter, mut pool) = (Meter::new(), Pool::<Words> { live: 3, ..Pool::default() });
        let kinds = [2, 3].map(|buckets| [false, true].map(|has_overflow| Kind { buckets, has_overflow }));
        let assert_counted = |pool: &mut Pool<Words>| {
            for kind in kinds.concat() {
                let count = pool.segments().filter(|segment| kind_of(*segment) == kind).count();
                assert_eq!(pool.count(kind), count);
            }
            for buckets in [2, 3] {
                let [without, with] =
                    [false, true].map(|has_overflow| pool.count(Kind { buckets, has_overflow }));
                assert_eq!(pool.may_lack_overflow(buckets), without > 0 || with < 3);
            }
        };
        for kind in kinds.concat().repeat(4) {
            let segment = segment(kind.buckets, &meter);
            // SAFETY: just constructed.
            let overflow = unsafe { segment.as_ref() }.overflow();
            let place = Place::new(Digest::new(1), kind.buckets);
            assert!(!kind.has_overflow || overflow.put(kind.buckets, Heading::of(place), (1, 1), 0, &meter));
            pool.put(segment);
            assert_counted(&mut pool);
        }
        while let Some(segment) = pool.take(2, true).or_else(|| pool.take(3, true)) {
            assert_counted(&mut pool);
            // SAFETY: ours; nobody uses it.
            unsafe { Segment::free(segment, &meter) };
        }
        assert!(pool.shelves.is_none() && meter.bytes() == 0);
    }

    #[test]
    fn a_pool_frees_segments_of_all_sizes_and_roots_and_spare_memory() {
        let meter = Meter::new();
        let mut pool = Pool::<Words>::default();
        [2, 3, 2, 5, 3].iter().for_each(|buckets| pool.put(segment(*buckets, &meter)));
        assert_eq!(pool.memory_usage(), 0, "segments are linked through themselves");
        pool.roots.reserve_exact(4);
        assert_eq!(pool.memory_usage(), 4 * size_of::<usize>());
        pool.roots.push(Root::<Words>::allocate(8, 0, &meter).expect("memory"));
        let plan = Segment::<Words>::plan(2, 1).expect("a layout");
        let memory = pool.supply.take(&plan, 3, 1, false, &meter).expect("memory");
        pool.put(Segment::construct(memory, 2, 1));
        assert_eq!(pool.memory_usage(), 4 * size_of::<usize>() + pool.supply.memory_usage());
        assert!(pool.supply.memory_usage() > 0);
        // SAFETY: nobody uses any of it.
        unsafe { pool.free(&meter) };
        assert_eq!(meter.bytes(), 0);
    }
}
