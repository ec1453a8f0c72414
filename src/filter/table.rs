//! A filter's table: segments of equal size in one allocation, and how to read it.
//!
//! The segments are those of the maps without payloads, and their number is fixed. Any thread may read, at any time, without a
//! lock, without a store and without waiting ([R2]..[R4]). Writes are in `locked`.
//!
//! ```text
//! | stripes of segment 0 | its words | stripes of segment 1 | its words | ... | 2 spare words |
//! ```
//!
//! Readers notice the displacement of a fingerprint through the stripe of its pair, as in the maps. A fingerprint that was
//! found needs no further check: there is no payload that could be torn. Where one word may be half of a bucket, a change of
//! one lane leaves the bits of the others alone, so that a torn bucket still has all fingerprints that were in it throughout.
//!
//! This does not hold for semi-sorted buckets of more than a word ([`Codec::TEARS`]). There every change of a bucket is
//! noticed: readers check a stripe for each of the two buckets. A look-up takes the buckets as they are, and believes what it
//! finds: a torn bucket may have a fingerprint by chance, as a whole one may. A reader that finds nothing while a stripe is odd
//! looks again, and takes that bucket's old content from the segment's undo copy; counts do so at once.

use core::alloc::Layout as Memory;

use crossbeam_utils::CachePadded;

use super::codec::{Codec, load_pair};
use super::collect::{HUGE_BYTES, try_collect};
use super::geometry::{Geometry, Place, ToPlace};
use super::words::{SPARE_WORDS, Shared, Words};
use crate::engine::{Block, Meter, Version, begin_first, settled, unchanged};
use crate::prefetch::prefetch;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, init_zeroed, spin_loop, step};

/// The number of version counters of a table, shared out among its segments: few enough to stay in the first-level cache.
const STRIPES: u32 = 1024;
/// The smallest number of stripes in a segment: one cache line.
const MIN_STRIPES: u32 = 8;
/// The number of words of a cache line.
const LINE_WORDS: usize = 8;

/// Segments, in one allocation.
///
/// Nothing in it changes, except the memory that it points to. So the compiler need not reload for each look-up the values that
/// it has in registers: 6 instructions of 82 in a loop.
pub(crate) struct Table {
    /// The words of the first segment's buckets; its stripes are before them.
    words: *const AtomicU64,
    /// The number of bytes from one segment's words to the next one's, which are whole words.
    stride: usize,
    /// All bits except those that select a stripe, of which there are a power of two: a stripe's number, counted backwards from
    /// the words, is any number with these bits.
    not_stripe: u64,
    /// The number of words before those of the buckets: the padding that rounds the stripes up to cache lines, and the stripes.
    head: u32,
    geometry: Geometry,
    segment_words: usize,
    writes: Box<[CachePadded<Write>]>,
    block: Option<Block>,
    /// Bytes of the block.
    bytes: usize,
}

/// The lock of a segment and the data that only its writers touch.
#[derive(Default)]
pub(crate) struct Write {
    pub(crate) state: Mutex<State>,
    /// Fingerprints in the segment. Stored under the lock.
    pub(crate) len: AtomicUsize,
    /// The content, before a change, of a bucket that tears; its number plus 1, or 0.
    undo_bucket: AtomicU64,
    undo_words: [AtomicU64; 2],
}

/// The state that the lock guards in addition to the table.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Fingerprints moved from one of their buckets to the other.
    pub(crate) displacements: u64,
    /// No more insertions: the segment's table is being emptied into others.
    pub(crate) closed: bool,
}

// SAFETY: everything that is shared is atomics and mutexes; the raw pointers lead into the table's own allocation.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl core::panic::UnwindSafe for Table {}
impl core::panic::RefUnwindSafe for Table {}

/// One segment of a table.
#[derive(Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) words: Shared,
    pub(crate) table: &'a Table,
    pub(crate) index: u32,
}

/// The stripes that a reader of two buckets checks, and their versions when it began [R2].
struct Versions<'a> {
    first: (&'a AtomicU64, Version),
    second: Option<(&'a AtomicU64, Version)>,
}

impl Versions<'_> {
    #[inline(always)]
    fn is_odd(&self) -> bool {
        self.first.1.is_odd() || self.second.is_some_and(|(_, version)| version.is_odd())
    }

    /// [R4], on the common path: unchanged, and even.
    #[inline(always)]
    fn is_settled(&self) -> bool {
        settled(self.first.0, self.first.1)
            && self.second.is_none_or(|(stripe, version)| settled(stripe, version))
    }

    /// [R4].
    #[inline(always)]
    fn is_unchanged(&self) -> bool {
        unchanged(self.first.0, self.first.1)
            && self.second.is_none_or(|(stripe, version)| unchanged(stripe, version))
    }
}

impl Table {
    /// Words of a segment: whole ones, so that no two segments share any.
    pub(crate) fn segment_words(geometry: Geometry, bucket_bits: u32) -> usize {
        (u64::from(geometry.buckets) * u64::from(bucket_bits)).div_ceil(64) as usize
    }

    /// Memory of a table, its stride in words and its stripes; `None` if they overflow.
    fn memory(geometry: Geometry, bucket_bits: u32) -> Option<(Memory, usize, u32)> {
        let most = geometry.buckets.min((STRIPES / geometry.segments).max(MIN_STRIPES));
        let stripes = 1_u32 << most.ilog2();
        let words = Self::segment_words(geometry, bucket_bits).checked_next_multiple_of(LINE_WORDS)?;
        let stride = words.checked_add(Self::head(stripes))?;
        let all = stride.checked_mul(geometry.segments as usize)?.checked_add(SPARE_WORDS)?;
        let memory = Memory::array::<AtomicU64>(all).ok()?.align_to(8 * LINE_WORDS).ok()?;
        Some((memory, stride, stripes))
    }

    /// Words of a segment before those of its buckets.
    fn head(stripes: u32) -> usize {
        (stripes as usize).next_multiple_of(LINE_WORDS)
    }

    /// The number of bytes that a table would take at most.
    pub(crate) fn bytes(geometry: Geometry, bucket_bits: u32) -> usize {
        let Some((memory, ..)) = Self::memory(geometry, bucket_bits) else { return usize::MAX };
        // And the possible cost of its alignment.
        let beside = geometry.segments as usize * size_of::<CachePadded<Write>>() + 2 * memory.align();
        memory.size().saturating_add(beside)
    }

    /// An empty table; `None` if there is no memory for it.
    pub(crate) fn allocate(geometry: Geometry, bucket_bits: u32, huge_pages: Option<bool>) -> Option<Self> {
        let (memory, stride, stripes) = Self::memory(geometry, bucket_bits)?;
        if !Meter::has(memory) {
            return None;
        }
        let writes = try_collect((0..geometry.segments).map(|_| CachePadded::default())).ok()?;
        let meter = Meter::new();
        let huge_pages = huge_pages.unwrap_or(memory.size() >= HUGE_BYTES);
        let block = Block::allocate_shared(memory, 1, huge_pages, &meter)?.pop()?;
        let base = block.base().as_ptr().cast::<AtomicU64>();
        // SAFETY: a zeroed block of this layout, ours alone.
        unsafe { init_zeroed(base, stride * geometry.segments as usize + SPARE_WORDS) };
        Some(Table {
            // SAFETY: the block begins with a segment, which is longer than its head.
            words: unsafe { base.add(Self::head(stripes)) },
            stride: stride * size_of::<AtomicU64>(),
            not_stripe: !u64::from(stripes - 1),
            head: Self::head(stripes) as u32,
            geometry,
            segment_words: Self::segment_words(geometry, bucket_bits),
            writes: writes.into(),
            block: Some(block),
            bytes: meter.bytes(),
        })
    }

    /// How its slots are arranged.
    #[inline(always)]
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// A segment.
    #[inline(always)]
    pub(crate) fn segment(&self, index: u32) -> Segment<'_> {
        debug_assert!(index < self.geometry.segments);
        // SAFETY: the index is below the number of segments that was allocated: a fraction of it stays below it. The words live
        // as long as the table, which the result borrows.
        unsafe {
            let offset = index as usize * self.stride;
            let len = self.stride / size_of::<AtomicU64>() - self.head as usize + SPARE_WORDS;
            Segment { words: Shared::new(self.words.byte_add(offset), len), table: self, index }
        }
    }

    /// All segments.
    pub(crate) fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        (0..self.geometry.segments).map(|index| self.segment(index))
    }

    /// Fingerprints: exact while nobody writes.
    pub(crate) fn len(&self) -> usize {
        // Relaxed: information.
        self.writes.iter().map(|write| write.len.load(Ordering::Relaxed)).sum()
    }

    /// The same for one segment.
    pub(crate) fn len_of(&self, segment: u32) -> usize {
        // Relaxed: information.
        self.writes[segment as usize].len.load(Ordering::Relaxed)
    }

    /// Bytes that the table has from the allocator.
    pub(crate) fn memory_usage(&self) -> usize {
        self.bytes + size_of_val(&*self.writes)
    }

    /// Displacements so far.
    pub(crate) fn displacements(&self) -> u64 {
        self.writes.iter().map(|write| write.state.lock().displacements).sum()
    }

    /// The place in this table at which something belongs.
    #[inline(always)]
    pub(crate) fn place<C: Codec>(&self, _: C, at: impl ToPlace) -> Place {
        at.place(&self.geometry, C::FINGERPRINT_BITS)
    }

    /// Whether a fingerprint is in one of its buckets. No lock, no writing, no waiting. `place` is that of `at`.
    #[inline(always)]
    pub(crate) fn contains<C: Codec>(&self, codec: C, at: impl ToPlace, place: Place) -> bool {
        let segment = self.segment(place.segment);
        let versions = segment.versions::<C>(place);
        step();
        if codec.pair_has(segment.words, place.first, place.second, place.fingerprint) {
            return true;
        }
        if versions.is_settled() {
            return false;
        }
        self.contains_carefully(codec, at)
    }

    /// `contains`, when a fingerprint has moved or is just moving. The place is computed once more: if it were kept for this,
    /// it would take registers of the common path.
    #[cold]
    #[inline(never)]
    fn contains_carefully<C: Codec>(&self, codec: C, at: impl ToPlace) -> bool {
        let place = self.place(codec, at);
        let has = |first, second| u32::from(codec.either_has(first, second, place.fingerprint));
        self.read_carefully(codec, place, has, 1) > 0
    }

    /// How often the fingerprint of a place is in its buckets; waits for nothing. One copy may be counted twice while it is
    /// being moved.
    pub(crate) fn count<C: Codec>(&self, codec: C, place: Place) -> u32 {
        let count =
            |first, second| codec.count(first, place.fingerprint) + codec.count(second, place.fingerprint);
        self.read_carefully(codec, place, count, u32::MAX)
    }

    /// Whether one of a place's buckets seems to have a free slot: no version is checked.
    pub(crate) fn has_room<C: Codec>(&self, codec: C, place: Place) -> bool {
        let words = self.segment(place.segment).words;
        let (first, second) = load_pair(codec, words, place.first, place.second);
        codec.free_lane(first).or(codec.free_lane(second)).is_some()
    }

    /// [R2]..[R4] for any state of the stripe: the result of `look` in a place's buckets, not less than what is there. A result
    /// of `final_at` or more is believed without looking at the version. Every turn of the loop but the last was made necessary
    /// by a writer that finished something meanwhile.
    #[inline]
    fn read_carefully<C: Codec>(
        &self,
        codec: C,
        place: Place,
        look: impl Fn(C::Bits, C::Bits) -> u32,
        final_at: u32,
    ) -> u32 {
        let segment = self.segment(place.segment);
        loop {
            let versions = segment.versions::<C>(place);
            step();
            let (first, second) = segment.pass(codec, place, &versions);
            let mut found = look(first, second);
            if found < final_at && versions.is_odd() {
                // One fingerprint is being moved, and the writer may never get to finish. A reader that has seen its source
                // empty sees its target filled: so look once more. The second pass does not replace the first: the first may
                // have met the fingerprint where it was, and the second may miss it.
                step();
                let (first, second) = segment.pass(codec, place, &versions);
                found = found.max(look(first, second));
            }
            if found >= final_at || versions.is_unchanged() {
                return found;
            }
            spin_loop();
        }
    }

    /// Starts loading the memory that a look-up of a place reads; buckets have this many bits.
    #[inline(always)]
    pub(crate) fn prefetch(&self, bucket_bits: u32, place: Place) {
        let segment = self.segment(place.segment);
        for bucket in [place.first, place.second] {
            prefetch(segment.words.address(u64::from(bucket) * u64::from(bucket_bits)));
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            // SAFETY: all that this meter has counted, and nobody uses the table any more.
            unsafe { block.free(&Meter::of(self.bytes)) };
        }
    }
}

impl<'a> Segment<'a> {
    /// The lock and the writers' part.
    #[inline(always)]
    pub(crate) fn write(&self) -> &'a Write {
        debug_assert!((self.index as usize) < self.table.writes.len());
        // SAFETY: only `Table::segment` makes segments, of an index below their number; `allocate` made as many `Write`s.
        unsafe { self.table.writes.get_unchecked(self.index as usize) }
    }

    /// The stripe of a number: of [`Place::pair`], or, where buckets tear, of a bucket.
    #[inline(always)]
    pub(crate) fn stripe(&self, number: u32) -> &'a AtomicU64 {
        let stripe = (u64::from(number) | self.table.not_stripe) as isize;
        // SAFETY: from minus the number of stripes to -1: that many are before the words as long as the table lives.
        unsafe { &*self.words.address(0).offset(stripe) }
    }

    /// [R2].
    #[inline(always)]
    fn versions<C: Codec>(&self, place: Place) -> Versions<'a> {
        let begin = |number| {
            let stripe = self.stripe(number);
            (stripe, begin_first(stripe))
        };
        if C::TEARS {
            return Versions { first: begin(place.first), second: Some(begin(place.second)) };
        }
        Versions { first: begin(place.pair()), second: None }
    }

    /// [R3]: reads both buckets once.
    #[inline(always)]
    fn pass<C: Codec>(&self, codec: C, place: Place, versions: &Versions<'_>) -> (C::Bits, C::Bits) {
        let (mut first, mut second) = load_pair(codec, self.words, place.first, place.second);
        if C::TEARS && versions.is_odd() {
            first = self.undone(codec, place.first).unwrap_or(first);
            second = self.undone(codec, place.second).unwrap_or(second);
        }
        (first, second)
    }

    /// The content of a bucket before the change that is under way, if that bucket is being changed.
    #[cold]
    fn undone<C: Codec>(&self, codec: C, bucket: u32) -> Option<C::Bits> {
        let write = self.write();
        // Relaxed: written before the odd version, which was stored with Release and read with Acquire.
        if write.undo_bucket.load(Ordering::Relaxed) != u64::from(bucket) + 1 {
            return None;
        }
        let [low, high] = &write.undo_words;
        Some(codec.of_words([low.load(Ordering::Relaxed), high.load(Ordering::Relaxed)]))
    }

    /// Leaves the old content of a bucket for readers; `None` to take it back. The lock's holder only [I5].
    pub(crate) fn set_undo(&self, old: Option<(u32, [u64; 2])>) {
        let write = self.write();
        let (number, words) = old.map_or((0, [0; 2]), |(bucket, words)| (u64::from(bucket) + 1, words));
        write.undo_bucket.store(number, Ordering::Relaxed);
        for (undo, word) in write.undo_words.iter().zip(words) {
            undo.store(word, Ordering::Relaxed);
        }
    }

    /// Empties all buckets, in a layout that does not tear: half a bucket's content means what it meant in the whole. The
    /// lock's holder only [I5].
    pub(crate) fn clear(&self) {
        (0..self.table.segment_words).for_each(|index| self.words.clear_word(index));
    }

    /// The segment's words.
    pub(crate) fn all_words(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (words, len) = (self.words, self.table.segment_words);
        (0..len).map(move |index| words.word(index))
    }
}
