//! Walking over a directory's segments, one after the other.

use core::ops::Range;
use core::ptr::NonNull;

use super::directory::{Directory, Writing};
use super::found::Found;
use super::locked::Locked;
use super::payload::Payload;
use super::segment::{SegmentRef, State};
#[cfg(feature = "rayon")]
use crate::hash::whole_parts;

/// An item, and the slot that it was in.
pub(crate) type InSlot<P> = (Found, <P as Payload>::Item);

/// The state of a walk: items of the current segment, and where the next one begins. A clone goes on from there independently.
#[derive(Clone)]
pub(crate) struct Walk<I> {
    /// The remaining items of the current segment, last first.
    pub(crate) items: Vec<I>,
    /// The prefix at which the next segment begins; 2^32 at the end.
    cursor: u64,
}

impl<I> Walk<I> {
    /// A walk that is about to begin.
    pub(crate) fn new() -> Self {
        Walk { items: Vec::new(), cursor: 0 }
    }

    /// The next item; `fetch` appends those of the segment that begins at a prefix, and returns where the next segment begins.
    #[inline]
    pub(crate) fn next(&mut self, mut fetch: impl FnMut(u64, &mut Vec<I>) -> Option<u64>) -> Option<I> {
        loop {
            if let Some(item) = self.items.pop() {
                return Some(item);
            }
            self.cursor = fetch(self.cursor, &mut self.items)?;
        }
    }
}

impl<P: Payload> Directory<P> {
    /// The segments, each once, without locks: for counts that are exact when nobody writes.
    pub(super) fn segments(&self) -> impl Iterator<Item = SegmentRef<'_, P>> {
        let root = self.root();
        let mut last = core::ptr::null_mut();
        (0..root.len).filter_map(move |index| {
            // Acquire: pairs with the Release in `publish`: the segment is seen as its builder left it.
            let segment = root.entry(index).load(crate::reclaim::PROTECTED);
            let new = !core::ptr::eq(segment, last);
            last = segment;
            // SAFETY: as in `locate_from`.
            new.then(|| unsafe { SegmentRef::new(NonNull::new_unchecked(segment)) })
        })
    }

    /// Locks the segment that begins at prefix `cursor`, and returns where the next one begins; `None` at the end, 2^32.
    /// Segments are never merged, so a walk from 0 meets every prefix exactly once, whatever splits meanwhile.
    pub(crate) fn visit(&self, cursor: u64) -> Option<(Writing<'_, P>, u64)> {
        let writing = self.lock(u32::try_from(cursor).ok()?);
        let Range { start, end } = self.prefixes(&writing);
        debug_assert_eq!(start, cursor, "a segment that begins elsewhere");
        Some((writing, end))
    }

    /// How many segments there would be if all were of this level.
    #[inline]
    pub(super) fn segments_at(&self, level: u32) -> u64 {
        u64::from(self.shape.segments) << level
    }

    /// The prefixes that a locked segment covers.
    #[inline]
    pub(super) fn prefixes(&self, writing: &Writing<'_, P>) -> Range<u64> {
        self.prefixes_of(writing.locked.state_ref())
    }

    /// The prefixes that a segment in this state covers.
    #[inline]
    pub(super) fn prefixes_of(&self, state: &State<P>) -> Range<u64> {
        let (index, len) = (u64::from(state.index), self.segments_at(state.level));
        (index << 32).div_ceil(len)..((index + 1) << 32).div_ceil(len)
    }

    /// Locks the segments, one after the other, as [`Directory::visit`] does; it is `f` that unlocks them.
    ///
    /// # Panics
    ///
    /// If this thread is already writing to this table.
    pub(crate) fn each_segment<'a>(&'a self, mut f: impl FnMut(Writing<'a, P>)) {
        let mut cursor = 0;
        while let Some((writing, next)) = self.visit(cursor) {
            f(writing);
            cursor = next;
        }
    }

    /// Empties the segment that begins at prefix `cursor` into `out`; returns where the next segment begins, as
    /// [`Directory::visit`].
    pub(crate) fn take(&self, cursor: u64, out: &mut Vec<P::Item>) -> Option<u64> {
        let (mut writing, next) = self.visit(cursor)?;
        // Draining a map again and again that was full once mostly finds nothing here.
        if writing.locked.len() > 0 {
            writing.locked.copy_to(out);
            writing.locked.clear();
        }
        Some(next)
    }

    /// Gives all items to `each`, for a caller that drops the table next: they are still in it, and nobody looks at it any
    /// more.
    pub(crate) fn give_all(&mut self, each: &mut dyn FnMut(P::Item)) {
        for segment in self.segments() {
            let locked = Locked::lock(segment);
            for buckets in locked.arrays() {
                for bucket in 0..buckets.len() {
                    buckets.fetch_ahead(bucket);
                    buckets.items(bucket).for_each(|(item, _)| each(item));
                }
            }
        }
    }

    /// Copies the items of the segment that begins at prefix `cursor` to `out`; returns where the next segment begins, as
    /// `visit`.
    pub(crate) fn snapshot(&self, cursor: u64, out: &mut Vec<P::Item>) -> Option<u64> {
        let (writing, next) = self.visit(cursor)?;
        writing.locked.copy_to(out);
        Some(next)
    }

    /// The same, with the slots of the items, in the same order.
    pub(crate) fn snapshot_slots(
        &self,
        cursor: u64,
        out: &mut Vec<P::Item>,
        slots: &mut Vec<Found>,
    ) -> Option<u64> {
        let (writing, next) = self.visit(cursor)?;
        writing.locked.copy_to(out);
        writing.locked.slots_to(slots);
        Some(next)
    }

    /// Removes items that `snapshot_slots` found in the segment that begins at prefix `cursor`. Returns how many were removed;
    /// those are then the first of `items`. The others are not in their slot any more, or were in the overflow. `is_same`
    /// compares what is in a slot with what was.
    pub(crate) fn remove_from_slots(
        &self,
        cursor: u64,
        items: &mut [InSlot<P>],
        is_same: impl Fn(&P::Item, &P::Item) -> bool,
    ) -> usize {
        let (mut writing, mut removed) = (self.lock(cursor as u32), 0);
        for n in 0..items.len() {
            let (found, item) = items[n];
            if writing.locked.remove_if_there(found, |other| is_same(&other, &item)) {
                items.swap(removed, n);
                removed += 1;
            }
        }
        removed
    }

    /// The prefixes that each segment covers now. Later splits only divide them.
    #[cfg(feature = "rayon")]
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        self.each_segment(|writing| ranges.push(self.prefixes(&writing)));
        ranges
    }

    /// Entries of the first directory.
    #[cfg(feature = "rayon")]
    pub(crate) fn first_segments(&self) -> u32 {
        self.shape.segments
    }

    /// The prefixes among these whose segments cover no others, however they will split: those of the segments of the first
    /// directory that lie entirely within the range.
    #[cfg(feature = "rayon")]
    pub(crate) fn whole_segments(&self, prefixes: Range<u64>) -> Range<u64> {
        whole_parts(prefixes, self.shape.segments.into())
    }

    /// Copies the items of a range that `ranges` returned.
    #[cfg(feature = "rayon")]
    pub(crate) fn snapshot_range(&self, range: Range<u64>, out: &mut Vec<P::Item>) {
        let mut cursor = range.start;
        while cursor < range.end {
            cursor = self.snapshot(cursor, out).expect("a range ends by 2^32");
        }
    }
}
