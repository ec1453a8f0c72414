//! A filter's table: segments of equal size in one allocation, and how to read it.
//!
//! The maps' segments without payloads, and of fixed number. Anybody may read, at any time, without a lock, without a
//! store and without waiting ([R2]..[R4]). Writes are in `locked`.
//!
//! ```text
//! | segment 0's words | segment 1's words | ... | 2 spare words | stripes of segment 0 | stripes of segment 1 | ...
//! ```
//!
//! A fingerprint that is displaced is watched through the stripe of its pair, as in the maps. What was found is final:
//! there is no payload that could be torn. Where one word may be half of a bucket, a change of one lane leaves the
//! bits of the others alone, so that a torn bucket still has all that was in it throughout.
//!
//! Not so in semi-sorted buckets of more than a word ([`Codec::TEARS`]). There every change of a bucket is watched:
//! readers check a stripe for each of the two buckets; while one is odd, they take the bucket's old content from the
//! segment's undo copy.

use core::alloc::Layout as Memory;

use crossbeam_utils::CachePadded;

use super::codec::Codec;
use super::geometry::{Geometry, Place};
use super::words::{Shared, Words};
use crate::engine::{Block, Meter, Version, begin, prefetch, unchanged};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, init_zeroed, spin_loop, step};

/// Version counters of a table, shared out among its segments: few enough to stay in the first-level cache.
const STRIPES: u32 = 1024;
/// Fewest stripes in a segment: one cache line.
const MIN_STRIPES: u32 = 8;
/// Words that a reader of the last bucket may read beyond it.
const SPARE_WORDS: usize = 2;

/// Segments, in one allocation.
pub(crate) struct Table {
    words: *const AtomicU64,
    stripes: *const AtomicU64,
    geometry: Geometry,
    segment_words: usize,
    /// Stripes of a segment, less one; they are a power of two.
    stripe_mask: u32,
    writes: Box<[CachePadded<Write>]>,
    block: Option<Block>,
    meter: Meter,
}

/// The lock of a segment and what only its writers touch.
pub(crate) struct Write {
    pub(crate) state: Mutex<State>,
    /// Fingerprints in the segment. Stored under the lock.
    pub(crate) len: AtomicUsize,
    /// The content before a change, of a bucket that tears; its number plus 1, or 0.
    undo_bucket: AtomicU64,
    undo_words: [AtomicU64; 2],
}

/// What the lock guards beside the table.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Fingerprints moved from one of their buckets to the other.
    pub(crate) displacements: u64,
    /// No more inserts: the segment's table is being emptied into others.
    pub(crate) closed: bool,
}

// SAFETY: all that is shared is atomics and mutexes; the raw pointers lead into the table's own allocation.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl core::panic::UnwindSafe for Table {}
impl core::panic::RefUnwindSafe for Table {}

/// One segment of a table.
#[derive(Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) words: Shared,
    stripes: *const AtomicU64,
    pub(crate) table: &'a Table,
    pub(crate) index: u32,
}

/// The stripes that a reader of two buckets checks, and their versions when it began [R2].
struct Watch<'a> {
    first: (&'a AtomicU64, Version),
    second: Option<(&'a AtomicU64, Version)>,
}

impl Watch<'_> {
    #[inline(always)]
    fn is_odd(&self) -> bool {
        self.first.1.is_odd() || self.second.is_some_and(|(_, version)| version.is_odd())
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

    /// Words and stripes of a table; `None` if they overflow.
    fn memory(geometry: Geometry, bucket_bits: u32) -> Option<(Memory, usize, u32)> {
        let most = geometry.buckets.min((STRIPES / geometry.segments).max(MIN_STRIPES));
        let stripes = 1 << most.ilog2();
        let words = Self::segment_words(geometry, bucket_bits)
            .checked_mul(geometry.segments as usize)?
            .checked_add(SPARE_WORDS)?;
        let (memory, stripes_at) = Memory::array::<AtomicU64>(words)
            .ok()?
            .align_to(64)
            .ok()?
            .extend(
                Memory::array::<AtomicU64>(stripes as usize * geometry.segments as usize)
                    .ok()?
                    .align_to(64)
                    .ok()?,
            )
            .ok()?;
        Some((memory.pad_to_align(), stripes_at, stripes))
    }

    /// Bytes that a table would take, as far as they can be counted.
    pub(crate) fn bytes(geometry: Geometry, bucket_bits: u32) -> usize {
        Self::memory(geometry, bucket_bits).map_or(usize::MAX, |(memory, ..)| memory.size())
    }

    /// An empty table; `None` if there is no memory for it.
    pub(crate) fn allocate(geometry: Geometry, bucket_bits: u32, huge_pages: bool) -> Option<Self> {
        let (memory, stripes_at, stripes) = Self::memory(geometry, bucket_bits)?;
        if !Meter::has(memory) {
            return None;
        }
        let meter = Meter::new();
        let block = match huge_pages {
            true => Block::allocate_slab(memory, 1, &meter)?.pop()?,
            false => Block::allocate(memory, &meter)?,
        };
        let base = block.base().as_ptr();
        let segment_words = Self::segment_words(geometry, bucket_bits);
        let all_words = segment_words * geometry.segments as usize + SPARE_WORDS;
        // SAFETY: a zeroed block of this layout, ours alone.
        let (words, stripe_words) = unsafe {
            let (words, stripe_words) = (base.cast::<AtomicU64>(), base.add(stripes_at).cast::<AtomicU64>());
            init_zeroed(words, all_words);
            init_zeroed(stripe_words, stripes as usize * geometry.segments as usize);
            (words, stripe_words)
        };
        let writes = (0..geometry.segments).map(|_| CachePadded::new(Write::new())).collect();
        Some(Table {
            words,
            stripes: stripe_words,
            geometry,
            segment_words,
            stripe_mask: stripes - 1,
            writes,
            block: Some(block),
            meter,
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
        let at = index as usize * self.segment_words;
        let spare = (self.geometry.segments as usize - index as usize) * self.segment_words + SPARE_WORDS;
        // SAFETY: the index is below the number of segments that was allocated: `scale` stays below it. The words live
        // as long as the table, which the result borrows.
        unsafe {
            Segment {
                words: Shared::new(self.words.add(at), spare),
                stripes: self.stripes.add(index as usize * (self.stripe_mask as usize + 1)),
                table: self,
                index,
            }
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

    /// Bytes that the table has from the allocator.
    pub(crate) fn memory_usage(&self) -> usize {
        self.meter.bytes() + size_of_val(&*self.writes)
    }

    /// Displacements so far.
    pub(crate) fn displacements(&self) -> u64 {
        self.writes.iter().map(|write| write.state.lock().displacements).sum()
    }

    /// Whether the fingerprint of a place is in one of its buckets. Takes no lock, writes nothing, waits for nobody.
    #[inline(always)]
    pub(crate) fn contains<C: Codec>(&self, codec: C, place: Place) -> bool {
        let segment = self.segment(place.segment);
        let watch = segment.watch::<C>(place);
        step();
        let (first, second) = segment.pass(codec, place, &watch);
        if codec.either_has(first, second, place.fingerprint) {
            return true;
        }
        if !watch.is_odd() && watch.is_unchanged() {
            return false;
        }
        segment.contains_carefully(codec, place)
    }

    /// How often the fingerprint of a place is in its buckets; waits for nobody. One copy may be counted twice while
    /// it is being moved.
    pub(crate) fn count<C: Codec>(&self, codec: C, place: Place) -> u32 {
        let segment = self.segment(place.segment);
        let count =
            |(first, second)| codec.count(first, place.fingerprint) + codec.count(second, place.fingerprint);
        loop {
            let watch = segment.watch::<C>(place);
            let mut found = count(segment.pass(codec, place, &watch));
            if watch.is_odd() {
                found = count(segment.pass(codec, place, &watch));
            }
            if watch.is_unchanged() {
                return found;
            }
            spin_loop();
        }
    }

    /// Starts loading what a look-up of a place reads.
    #[inline(always)]
    pub(crate) fn prefetch<C: Codec>(&self, codec: C, place: Place) {
        let segment = self.segment(place.segment);
        for bucket in [place.first, place.second] {
            prefetch(segment.words.address(u64::from(bucket) * u64::from(codec.bucket_bits())));
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            // SAFETY: from this meter, and nobody uses the table any more.
            unsafe { block.free(&self.meter) };
        }
    }
}

impl Write {
    fn new() -> Self {
        Write {
            state: Mutex::new(State::default()),
            len: AtomicUsize::new(0),
            undo_bucket: AtomicU64::new(0),
            undo_words: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }
}

impl<'a> Segment<'a> {
    /// The lock and the writers' part.
    #[inline(always)]
    pub(crate) fn write(&self) -> &'a Write {
        &self.table.writes[self.index as usize]
    }

    /// The stripe of a number: of a pair, its smaller bucket; where buckets tear, of a bucket.
    #[inline(always)]
    pub(crate) fn stripe(&self, number: u32) -> &'a AtomicU64 {
        let stripe = number & self.table.stripe_mask;
        // SAFETY: at most `stripe_mask`, and the segment has `stripe_mask + 1` stripes as long as the table lives.
        unsafe { &*self.stripes.add(stripe as usize) }
    }

    /// [R2].
    #[inline(always)]
    fn watch<C: Codec>(&self, place: Place) -> Watch<'a> {
        let watch = |number| {
            let stripe = self.stripe(number);
            (stripe, begin(stripe))
        };
        if C::TEARS {
            return Watch { first: watch(place.first), second: Some(watch(place.second)) };
        }
        Watch { first: watch(place.first.min(place.second)), second: None }
    }

    /// [R3]: reads both buckets once.
    #[inline(always)]
    fn pass<C: Codec>(&self, codec: C, place: Place, watch: &Watch<'_>) -> (C::Bits, C::Bits) {
        let mut first = codec.load(self.words, place.first);
        step();
        let mut second = codec.load(self.words, place.second);
        if C::TEARS && watch.is_odd() {
            first = self.undone(codec, place.first).unwrap_or(first);
            second = self.undone(codec, place.second).unwrap_or(second);
        }
        (first, second)
    }

    /// What was in a bucket before the change that is under way, if it is that bucket which is changed.
    #[cold]
    fn undone<C: Codec>(&self, codec: C, bucket: u32) -> Option<C::Bits> {
        let write = self.write();
        // Relaxed: written before the odd version, which was stored with Release and read with Acquire.
        if write.undo_bucket.load(Ordering::Relaxed) != u64::from(bucket) + 1 {
            return None;
        }
        let [low, high] = &write.undo_words;
        Some(codec.from_words([low.load(Ordering::Relaxed), high.load(Ordering::Relaxed)]))
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

    /// `contains`, when something moved or is just moving. Every turn of the loop but the last was made necessary by a
    /// writer that finished something meanwhile.
    #[cold]
    #[inline(never)]
    fn contains_carefully<C: Codec>(&self, codec: C, place: Place) -> bool {
        loop {
            let watch = self.watch::<C>(place);
            step();
            let (first, second) = self.pass(codec, place, &watch);
            let mut found = codec.either_has(first, second, place.fingerprint);
            if !found && watch.is_odd() {
                // One fingerprint is being moved, and the writer may never get to finish. Whoever has seen its source
                // empty sees its target filled: so look once more.
                step();
                let (first, second) = self.pass(codec, place, &watch);
                found = codec.either_has(first, second, place.fingerprint);
            }
            if found {
                return true;
            }
            if watch.is_unchanged() {
                return false;
            }
            spin_loop();
        }
    }

    /// The segment's words.
    pub(crate) fn all_words(&self) -> impl Iterator<Item = u64> + use<> {
        let (words, len) = (self.words, self.table.segment_words);
        (0..len).map(move |index| words.word(index))
    }
}
