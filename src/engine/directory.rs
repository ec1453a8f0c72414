//! The directory: which segment a prefix belongs to, and locking it.
//!
//! An array of segment pointers behind one root pointer. `prefix * len >> 32` selects the entry, for any length, and
//! when the length doubles entry i becomes 2i and 2i + 1: so a capacity need not be a power of two and the map
//! still grows (`growth`). Anybody may read and lock at any time.
//!
//! Segments and roots that were replaced go to a pool and stay what they are; so a late reader reads stale data but never
//! foreign memory, and needs no guard for that: before it reports a miss, it checks that the segment is still the current one
//! [R4]. They are freed by what drains the pool [G5], `Table::purge` under guards or `InlineMap::release_unused` with the map
//! to itself, and by `drop`.

use core::alloc::Layout;
use core::panic::RefUnwindSafe;
use core::ptr::NonNull;
use std::sync::Arc;

use super::allowance::Allowance;
use super::found::Found;
use super::locked::Locked;
use super::memory::Meter;
use super::payload::Payload;
use super::pool::Pool;
use super::root::{Root, RootHeader, free_root};
use super::segment::{Segment, SegmentRef};
use super::sizing::{CapacityError, Shape};
use super::tags::SLOTS;
use crate::hash::{Digest, Place, scale};
use crate::reentry::{self, Entered};
use crate::sync::{AtomicPtr, AtomicU64, Mutex, Ordering, spin_loop, step};

/// All segments of one table.
pub(crate) struct Directory<P: Payload> {
    root: AtomicPtr<RootHeader>,
    pub(super) shape: Shape,
    pub(super) pool: Mutex<Pool<P>>,
    /// Shared with what was retired, which may be freed after the map has moved elsewhere.
    pub(super) meter: Arc<Meter>,
    pub(super) counts: Counts,
    /// For items that find no path, if the capacity is fixed.
    pub(super) allowance: Allowance,
}

/// A panic in user code leaves the directory intact. Whether the entries it leads to are unwind safe is up to the type that
/// owns the directory: the type behind a pointer is not known here, nor to walks.
impl<P: Payload> RefUnwindSafe for Directory<P> {}

/// What happened to the directory as a whole. All are Relaxed counts, for information.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) splits: AtomicU64,
    pub(super) doublings: AtomicU64,
    pub(super) longest_pause_ns: AtomicU64,
}

/// Which prefixes a segment covers: those that a directory of `base << level` entries maps to entry `index`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coverage {
    pub(super) index: u32,
    pub(super) level: u32,
}

/// A locked segment that is the current one for some prefix, and stays so while this lives.
pub(crate) struct Writing<'a, P: Payload> {
    /// The segment. Dropped before `entered`.
    pub(crate) locked: Locked<'a, P>,
    #[expect(dead_code, reason = "its drop tells that the thread no longer writes")]
    entered: Entered,
}

/// Where a key is in a locked segment, or should be.
pub(crate) struct Spot<'a, P: Payload> {
    pub(crate) writing: Writing<'a, P>,
    pub(crate) digest: Digest,
    /// The digest's place in the segment.
    pub(crate) place: Place,
    /// The key's slot, if it is there.
    pub(crate) found: Option<Found>,
}

impl<P: Payload> Spot<'_, P> {
    /// The key's item, if it is there.
    #[inline]
    pub(crate) fn current(&self) -> Option<P::Item> {
        self.found.map(|found| self.writing.locked.item(found))
    }
}

impl<'a, P: Payload> Writing<'a, P> {
    /// Finds the item that `eq` accepts in the segment, which is that of its digest [W1].
    #[inline(always)]
    pub(crate) fn find(self, digest: Digest, eq: impl FnMut(P::Item) -> bool) -> Spot<'a, P> {
        let place = Place::new(digest, self.locked.segment().buckets().len());
        let found = self.locked.find(place, eq);
        Spot { writing: self, digest, place, found }
    }
}

impl<P: Payload> Directory<P> {
    /// An empty table of the given shape, made for `requested` entries.
    pub(crate) fn new(shape: Shape, requested: usize) -> Result<Self, CapacityError> {
        let coverage = (0..shape.segments).map(|index| Coverage { index, level: 0 });
        Self::with_segments(shape, requested, shape.buckets, 0, coverage)
    }

    /// An empty table whose segments have so many buckets and are of `level` at the most; together they cover all prefixes.
    pub(super) fn with_segments(
        shape: Shape,
        requested: usize,
        buckets: u32,
        level: u32,
        coverage: impl ExactSizeIterator<Item = Coverage>,
    ) -> Result<Self, CapacityError> {
        let this = Directory {
            root: AtomicPtr::new(core::ptr::null_mut()),
            shape,
            pool: Mutex::new(Pool::default()),
            meter: Arc::new(Meter::new()),
            counts: Counts::default(),
            allowance: Allowance::none(),
        };
        let made = this.populate(buckets, level, coverage);
        made.ok_or(CapacityError { requested, limit: shape.limit(), out_of_memory: true })?;
        Ok(this)
    }

    /// Allocates the first segments; `None` if there is no memory; then nothing is left behind except what `drop` frees.
    fn populate(
        &self,
        buckets: u32,
        level: u32,
        coverage: impl ExactSizeIterator<Item = Coverage>,
    ) -> Option<()> {
        let Shape { segments: base, huge_pages, .. } = self.shape;
        let count = coverage.len();
        let stripes = self.shape.stripes_for(buckets);
        let plan = Segment::<P>::plan(buckets, stripes)?;
        Self::probe(plan.bytes().checked_mul(count)?)?;
        let root = Root::<P>::allocate(base << level, level, &self.meter)?;
        // Relaxed: nobody else knows the map yet. From here on `drop` frees what there is.
        self.root.store(root.as_ptr(), Ordering::Relaxed);
        let mut pool = self.pool.lock();
        // SAFETY: just constructed; freed by `drop`.
        let root = unsafe { Root::<P>::new(root) };
        for (done, Coverage { index, level: of_level }) in coverage.enumerate() {
            let left = count - done;
            // Slots of one segment are long enough to be by themselves, unless they are to share huge pages.
            let slots = if huge_pages { left } else { 1 };
            let memory = pool.supply.take(&plan, left, slots, huge_pages, &self.meter)?;
            let segment = Segment::<P>::construct(memory, buckets, stripes);
            let span = level - of_level;
            for entry in index << span..(index + 1) << span {
                root.entry(entry).store(segment.as_ptr(), Ordering::Relaxed);
            }
            // SAFETY: just constructed.
            Locked::lock(unsafe { SegmentRef::new(segment) }).state().covers(index, of_level, base);
        }
        pool.live = count;
        Some(())
    }

    /// Asks the allocator for everything at once and gives it back: a request far beyond what the machine has fails here, not
    /// after it has used up the memory piece by piece.
    pub(super) fn probe(bytes: usize) -> Option<()> {
        let whole = Layout::array::<u8>(bytes).ok()?;
        (bytes <= 64 << 20 || Meter::has(whole)).then_some(())
    }

    #[inline(always)]
    pub(super) fn root(&self) -> Root<'_, P> {
        // Acquire: pairs with the Release in `set_root`: the entries are seen [R1].
        let header = self.root.load(crate::reclaim::PROTECTED);
        // SAFETY: never null once constructed. A root that was replaced is in the pool; what leaves the pool is freed when no
        // guard is left, or with `&mut self` [I6], [G5].
        let root = unsafe { Root::new(NonNull::new_unchecked(header)) };
        root.watch.read();
        root
    }

    /// Replaces the root, and returns the old one. With the pool locked.
    pub(super) fn set_root(&self, root: NonNull<RootHeader>) -> Option<NonNull<RootHeader>> {
        // Relaxed: stored with the pool locked.
        let old = NonNull::new(self.root.load(Ordering::Relaxed));
        // Release: pairs with the Acquire in `root`: the entries are seen.
        self.root.store(root.as_ptr(), Ordering::Release);
        old
    }

    /// [R1]: the segment that covers `prefix`.
    #[inline(always)]
    pub(super) fn locate(&self, prefix: u32) -> SegmentRef<'_, P> {
        Self::locate_from(self.root(), prefix)
    }

    /// [R1] from a root that was loaded since the look-up began.
    #[inline(always)]
    pub(super) fn locate_from(root: Root<'_, P>, prefix: u32) -> SegmentRef<'_, P> {
        step();
        let entry = root.entry(scale(prefix, root.len));
        // Acquire: pairs with the Release in `publish`: the segment is seen as its builder left it.
        let segment = entry.load(crate::reclaim::PROTECTED);
        // SAFETY: entries of a root that was published are never null, and came from `construct`; a segment that was replaced
        // is kept, and freed, like a root that was [I6], [G5].
        let segment = unsafe { SegmentRef::new(NonNull::new_unchecked(segment)) };
        segment.watch.read();
        segment
    }

    /// Whether the directory still leads to this segment: a miss in a segment that was replaced means nothing [I8].
    ///
    /// The directory is asked anew, so that the root that led there need not be kept in a register meanwhile; that root may
    /// have doubled, and the new one lead to the same segment.
    #[inline(always)]
    pub(super) fn is_current(&self, prefix: u32, segment: &Segment<P>) -> bool {
        step();
        // Acquire, in `root`: pairs with the Release of `set_root`: the entries of a root that has just doubled are seen.
        // Acquire, in `locate_from`: pairs with the Release of `publish`: if the segment has been used anew and led back to,
        // the version that is read next shows it [R4]. For the entry Relaxed would do: a reader's next step is the Acquire
        // fence in `unchanged`, and for a writer [W1] the lock it holds orders this load after all that its earlier holders
        // did, the replacing of this segment among it.
        core::ptr::eq(self.locate(prefix).segment(), segment)
    }

    /// Locks the segment of a digest and finds the item that `eq` accepts [W1].
    ///
    /// # Panics
    ///
    /// If this thread is already writing to this table.
    // Always inlined: a result that is handed back through memory would have to be waited for.
    #[inline(always)]
    pub(crate) fn lock_and_find(&self, digest: Digest, eq: impl FnMut(P::Item) -> bool) -> Spot<'_, P> {
        // This is on its way while we lock.
        let prefetch = |segment: &_| Self::prefetch_in(segment, digest);
        let (writing, place) = self.lock_after(digest.prefix(), prefetch);
        let found = writing.locked.find(place, eq);
        Spot { writing, digest, place, found }
    }

    /// The same, unless another thread has locked the segment, or is replacing it: waits for nobody.
    ///
    /// # Panics
    ///
    /// If this thread is already writing to this table.
    pub(crate) fn try_lock_and_find(
        &self,
        digest: Digest,
        eq: impl FnMut(P::Item) -> bool,
    ) -> Option<Spot<'_, P>> {
        let entered = Entered::new(self);
        let segment = self.locate(digest.prefix());
        let locked = Locked::try_lock(segment)?;
        if !self.is_current(digest.prefix(), &segment) {
            return None;
        }
        Some(Writing { locked, entered }.find(digest, eq))
    }

    /// Starts loading what `lock_and_find` reads of the segment that covers the digest now.
    #[inline]
    pub(crate) fn prefetch(&self, digest: Digest) {
        Self::prefetch_in(&self.locate(digest.prefix()), digest);
    }

    /// Starts loading what `lock_and_find` reads, and returns where that is.
    #[inline(always)]
    fn prefetch_in(segment: &Segment<P>, digest: Digest) -> Place {
        let buckets = segment.buckets();
        let place = Place::new(digest, buckets.len());
        buckets.prefetch_slot(place.first);
        buckets.prefetch_tags(place.first);
        buckets.prefetch_tags(place.second);
        place
    }

    /// Locks the segment of a prefix [W1].
    ///
    /// # Panics
    ///
    /// If this thread is already writing to this table.
    pub(crate) fn lock(&self, prefix: u32) -> Writing<'_, P> {
        self.lock_after(prefix, |_| ()).0
    }

    /// As [`Directory::lock`]; also returns what `prepare` made of the segment before it was locked.
    #[inline(always)]
    fn lock_after<T>(&self, prefix: u32, prepare: impl Fn(&Segment<P>) -> T) -> (Writing<'_, P>, T) {
        let entered = Entered::new(self);
        loop {
            let segment = self.locate(prefix);
            let prepared = prepare(&segment);
            let locked = Locked::lock(segment);
            // A segment is replaced only by its lock's holder: it is current until we let go.
            if self.is_current(prefix, &segment) {
                return (Writing { locked, entered }, prepared);
            }
            drop(locked);
            spin_loop();
        }
    }

    /// The table's options; a replica's segments may differ from them.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The shape of a table with the same options that is made for the items of this one.
    pub(crate) fn shape_for_items(&self) -> Result<Shape, CapacityError> {
        self.shape.for_items(self.len())
    }

    /// Sets how many items a table of fixed capacity takes, and returns how many it took; `None` if it grows.
    pub(crate) fn limit(&mut self, items: usize) -> Option<usize> {
        self.allowance.withdraw();
        self.shape.fixed_capacity.as_mut().map(|limit| core::mem::replace(limit, items))
    }

    /// The shape of a table that should replace this one for so many items: if this one is empty, has less room, and grows.
    pub(crate) fn shape_anew(&self, items: usize) -> Option<Shape> {
        // In this order: counting slots means looking at all segments.
        if self.shape.fixed_capacity.is_some() || !self.is_empty() {
            return None;
        }
        let lacks_room = Shape::buckets_for(items) > self.slots() as u64 / u64::from(SLOTS);
        if lacks_room { self.shape.for_items(items).ok() } else { None }
    }

    /// Panics if this thread holds a lock of this table.
    pub(crate) fn assert_not_writing(&self) {
        drop(Entered::new(self));
    }

    /// Whether this thread holds a lock of this table, so that taking another one would panic.
    pub(crate) fn is_writing(&self) -> bool {
        reentry::is_writing(self)
    }

    /// Whether this thread may not take a lock of this table, because it would panic.
    pub(crate) fn may_not_write(&self) -> bool {
        reentry::may_not_write(self)
    }
}

impl<P: Payload> Drop for Directory<P> {
    fn drop(&mut self) {
        let pool = core::mem::take(&mut *self.pool.lock());
        // Relaxed: `&mut self`: whoever wrote last has handed the map over.
        if let Some(root) = NonNull::new(self.root.load(Ordering::Relaxed)) {
            let mut last = core::ptr::null_mut();
            for index in 0..self.root().len {
                let segment = self.root().entry(index).load(Ordering::Relaxed);
                if let Some(segment) = NonNull::new(segment).filter(|_| !core::ptr::eq(segment, last)) {
                    // SAFETY: nobody uses the map any more; each segment's entries are neighbours.
                    unsafe { Segment::free(segment, &self.meter) };
                }
                last = segment;
            }
            // SAFETY: as above.
            unsafe { free_root(root, &self.meter) };
        }
        // SAFETY: as above; the pool holds nothing that is current.
        unsafe { pool.free(&self.meter) };
    }
}
