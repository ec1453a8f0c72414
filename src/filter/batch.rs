//! Many digests at once: all waits for memory overlap, as every bucket is prefetched before the first is looked at.

use super::codec::Codec;
use super::geometry::{Older, Place, WholeDigest};
use super::inner::{Inner, places};
use super::layout::Task;
use super::locked::Locked;
use super::table::Table;
use crate::engine::{BATCH, digests_of};
use crate::hash::Digest;

/// The missing digests of a batch are a bit each.
const _: () = assert!(BATCH == u32::BITS as usize);

/// Panics if the method of this name was given fewer or more places for answers than keys, or hashes.
#[inline]
#[track_caller]
pub(crate) fn assert_answers<T>(method: &str, items: &[T], answers: &[bool]) {
    assert_eq!(items.len(), answers.len(), "{method}: as many places for answers as keys or hashes");
}

/// Returns items and the places for their answers, `BATCH` at a time, with the items' digests.
#[inline]
pub(crate) fn batches<'a, T>(
    items: &'a [T],
    answers: &'a mut [bool],
    digest: impl Fn(&T) -> Digest + 'a,
) -> impl Iterator<Item = ([Digest; BATCH], &'a mut [bool])> {
    let batches = items.chunks(BATCH).zip(answers.chunks_mut(BATCH));
    batches.map(move |(items, answers)| (digests_of(items, &digest), answers))
}

/// Up to `BATCH` digests at a time, in tables whose alternates are selected by whole fingerprints.
impl Inner {
    /// Looks digests up.
    #[inline]
    pub(crate) fn contains_batch(&self, digests: &[Digest], found: &mut [bool]) {
        self.layout.run(Contains { table: &self.table, digests, found });
    }

    /// Inserts digests, in order, up to the first that has no room; returns how many had room.
    pub(crate) fn insert_batch(&self, digests: &[Digest]) -> usize {
        self.layout.run(Insert { table: &self.table, digests })
    }

    /// Inserts those that are not present, in order, up to the first that has no room; returns how many were inserted or
    /// present.
    pub(crate) fn insert_unique_batch(&self, digests: &[Digest], inserted: &mut [bool]) -> usize {
        self.layout.run(InsertUnique { table: &self.table, digests, inserted })
    }

    /// Removes one copy of each digest.
    pub(crate) fn remove_batch(&self, digests: &[Digest], removed: &mut [bool]) {
        self.layout.run(Remove { table: &self.table, digests, removed });
    }
}

/// The same for a growing filter.
impl Inner {
    /// Looks up those of a batch that are `missing`, a bit for each, at their places in this table; returns those that still
    /// are.
    pub(crate) fn contains_missing<'p>(&self, place: impl Fn(usize) -> Older<'p>, missing: u32) -> u32 {
        ones(missing).for_each(|i| self.prefetch(&place(i)));
        self.layout.run(ContainsMissing { table: &self.table, place, missing })
    }
}

struct Contains<'a> {
    table: &'a Table,
    digests: &'a [Digest],
    found: &'a mut [bool],
}

impl Task for Contains<'_> {
    type Output = ();

    #[inline]
    fn run<C: Codec>(self, codec: C) {
        let places = places::<C, WholeDigest>(self.table, codec, self.digests);
        for ((found, digest), place) in self.found.iter_mut().zip(self.digests).zip(&places) {
            *found = self.table.contains(codec, WholeDigest(*digest), *place);
        }
    }
}

struct Insert<'a> {
    table: &'a Table,
    digests: &'a [Digest],
}

impl Task for Insert<'_> {
    type Output = usize;

    fn run<C: Codec>(self, codec: C) -> usize {
        let places = &places::<C, WholeDigest>(self.table, codec, self.digests)[..self.digests.len()];
        let full = |place: &Place| !Locked::lock(self.table, place.segment).insert(codec, *place);
        places.iter().position(full).unwrap_or(places.len())
    }
}

struct InsertUnique<'a> {
    table: &'a Table,
    digests: &'a [Digest],
    inserted: &'a mut [bool],
}

impl Task for InsertUnique<'_> {
    type Output = usize;

    fn run<C: Codec>(self, codec: C) -> usize {
        let places = &places::<C, WholeDigest>(self.table, codec, self.digests)[..self.digests.len()];
        let full = |(place, inserted): (&Place, &mut bool)| {
            let mut locked = Locked::lock(self.table, place.segment);
            let is_there = locked.contains(codec, *place);
            *inserted = !is_there && locked.insert(codec, *place);
            !is_there && !*inserted
        };
        places.iter().zip(self.inserted).position(full).unwrap_or(places.len())
    }
}

struct Remove<'a> {
    table: &'a Table,
    digests: &'a [Digest],
    removed: &'a mut [bool],
}

impl Task for Remove<'_> {
    type Output = ();

    fn run<C: Codec>(self, codec: C) {
        let places = places::<C, WholeDigest>(self.table, codec, self.digests);
        for (removed, place) in self.removed.iter_mut().zip(&places) {
            *removed = Locked::lock(self.table, place.segment).remove(codec, *place);
        }
    }
}

struct ContainsMissing<'a, F> {
    table: &'a Table,
    place: F,
    missing: u32,
}

impl<'p, F: Fn(usize) -> Older<'p>> Task for ContainsMissing<'_, F> {
    type Output = u32;

    fn run<C: Codec>(self, codec: C) -> u32 {
        ones(self.missing).fold(self.missing, |missing, i| {
            let at = (self.place)(i);
            let is_here = self.table.contains(codec, &at, self.table.place(codec, &at));
            missing & !(u32::from(is_here) << i)
        })
    }
}

/// Returns a bit for each digest of a batch of this many: all are missing.
#[inline]
pub(crate) fn all_missing(found: &[bool]) -> u32 {
    u32::MAX >> (BATCH - found.len())
}

/// Records which of a batch were found: those whose bits are not set.
#[inline]
pub(crate) fn tell_found(missing: u32, found: &mut [bool]) {
    for (i, found) in found.iter_mut().enumerate() {
        *found = missing >> i & 1 == 0;
    }
}

/// Returns the numbers of the bits that are set.
#[inline]
pub(crate) fn ones(mut bits: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        lowest
    })
}
