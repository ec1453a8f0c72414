//! Writing to a segment: every method requires a [`Locked`], which is the proof of [I5].

use super::codec::Codec;
use super::geometry::{Place, pair};
use super::table::{Segment, State, Table};
use crate::engine::{Hop, Moving, Path, QUEUE, Tags, publish_departures, search};
use crate::sync::{MutexGuard, Ordering, step};

/// In wide buckets paths are shorter than this, as in the maps: at most five displacements.
const WIDE_PATH: usize = 6;
/// Buckets of one or two slots need longer ones: their searches hardly branch.
const NARROW_PATH: usize = 250;

/// A segment and its lock.
pub(crate) struct Locked<'a> {
    segment: Segment<'a>,
    state: MutexGuard<'a, State>,
}

/// A segment's buckets, as the search for a path sees them.
struct Buckets<'a, C> {
    segment: Segment<'a>,
    codec: C,
}

impl<C: Codec> Tags for Buckets<'_, C> {
    type Bucket = C::Bits;

    #[inline(always)]
    fn slots(&self) -> u32 {
        self.codec.slots()
    }

    #[inline(always)]
    fn load(&self, bucket: u32) -> C::Bits {
        self.codec.load(self.segment.words, bucket)
    }

    #[inline(always)]
    fn free_lane(&self, tags: C::Bits) -> Option<u32> {
        self.codec.free_lane(tags)
    }

    #[inline(always)]
    fn alternate(&self, bucket: u32, tags: C::Bits, lane: u32) -> u32 {
        self.segment.table.geometry().alternate(bucket, self.codec.get(tags, lane))
    }
}

impl<'a> Locked<'a> {
    /// Takes the lock of a segment [W1].
    #[inline]
    pub(crate) fn lock(table: &'a Table, index: u32) -> Self {
        let segment = table.segment(index);
        Locked { segment, state: segment.write().state.lock() }
    }

    /// `lock`, for writing to a place, whose buckets are prefetched first, so that the waits for them and for the lock overlap:
    /// a load after a locked instruction begins only when that has ended.
    #[inline]
    pub(crate) fn fetch_and_lock<C: Codec>(table: &'a Table, codec: C, place: Place) -> Self {
        table.prefetch(codec.bucket_bits(), place);
        Self::lock(table, place.segment)
    }

    /// The locked segment.
    #[inline]
    pub(crate) fn segment(&self) -> Segment<'a> {
        self.segment
    }

    /// The state that the lock guards in addition to the table.
    pub(crate) fn state(&mut self) -> &mut State {
        &mut self.state
    }

    /// The number of fingerprints in the segment.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.segment.write().len.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set_len(&self, len: usize) {
        // Relaxed: only the lock's holder stores; others read it for information.
        self.segment.write().len.store(len, Ordering::Relaxed);
    }

    #[inline(always)]
    fn load<C: Codec>(&self, codec: C, bucket: u32) -> C::Bits {
        codec.load(self.segment.words, bucket)
    }

    /// Whether a place's fingerprint is in one of its buckets.
    #[inline]
    pub(crate) fn contains<C: Codec>(&self, codec: C, place: Place) -> bool {
        let (first, second) = (self.load(codec, place.first), self.load(codec, place.second));
        codec.either_has(first, second, place.fingerprint)
    }

    /// How often a place's fingerprint is in its buckets.
    pub(crate) fn count<C: Codec>(&self, codec: C, place: Place) -> u32 {
        let count = |bucket| codec.count(self.load(codec, bucket), place.fingerprint);
        count(place.first) + count(place.second)
    }

    /// Puts a fingerprint into one of its buckets, displacing others if it must [W3]..[W6]. Returns `false` if there is no
    /// path; then nothing has changed.
    #[inline]
    pub(crate) fn insert<C: Codec>(&mut self, codec: C, place: Place) -> bool {
        self.insert_directly(codec, place) || self.insert_displacing(codec, place)
    }

    /// As `insert`, but prefers the emptier bucket, where the layout can tell [W3]: so both are full much later, and fewer
    /// paths are searched. It always reads both: use it only where they have been fetched.
    #[inline]
    pub(crate) fn insert_evenly<C: Codec>(&mut self, codec: C, place: Place) -> bool {
        let (first, second) = (self.load(codec, place.first), self.load(codec, place.second));
        let Some((is_second, more)) = codec.either_with(first, second, place.fingerprint) else {
            return self.insert_displacing(codec, place);
        };
        let (bucket, old) = if is_second { (place.second, second) } else { (place.first, first) };
        self.put(codec, bucket, old, more);
        true
    }

    /// Puts a fingerprint into one of its buckets, if one has an empty slot [W3].
    #[inline]
    pub(crate) fn insert_directly<C: Codec>(&mut self, codec: C, place: Place) -> bool {
        for bucket in [place.first, place.second] {
            let bits = self.load(codec, bucket);
            if let Some(more) = codec.with(bits, place.fingerprint) {
                self.put(codec, bucket, bits, more);
                return true;
            }
        }
        false
    }

    /// `insert`, when both buckets are full.
    #[inline]
    fn insert_displacing<C: Codec>(&mut self, codec: C, place: Place) -> bool {
        let Some(bucket) = self.make_room(codec, place) else { return false };
        let bits = self.load(codec, bucket);
        let more = codec.with(bits, place.fingerprint).expect("room was made");
        self.put(codec, bucket, bits, more);
        true
    }

    /// Replaces the content of a bucket by the content with one more fingerprint.
    #[inline(always)]
    fn put<C: Codec>(&mut self, codec: C, bucket: u32, old: C::Bits, more: C::Bits) {
        self.change(codec, bucket, old, more);
        self.set_len(self.len() + 1);
    }

    /// Removes one copy of a place's fingerprint. Returns `false` if there is none.
    #[inline]
    pub(crate) fn remove<C: Codec>(&mut self, codec: C, place: Place) -> bool {
        for bucket in [place.first, place.second] {
            let bits = self.load(codec, bucket);
            if let Some(less) = codec.without(bits, place.fingerprint) {
                // If the other bucket has a copy, the removal looks as if one had moved: a reader may have passed the other
                // bucket before the copy was put there, and must not find this one gone without noticing [I4].
                let twin = !C::TEARS && self.count(codec, place) > 1;
                let stripe = self.segment.stripe(place.pair());
                let _moving = twin.then(|| Moving::start(stripe));
                self.change(codec, bucket, bits, less);
                self.set_len(self.len() - 1);
                return true;
            }
        }
        false
    }

    /// Empties the segment.
    pub(crate) fn clear<C: Codec>(&mut self, codec: C) {
        if !C::TEARS {
            self.segment.clear();
            return self.set_len(0);
        }
        let empty = codec.load(super::words::Bytes(&[]), 0);
        for bucket in 0..self.segment.table.geometry().buckets {
            let bits = self.load(codec, bucket);
            // Pages that were never written to stay untouched.
            if codec.count(bits, 0) < codec.slots() {
                self.change(codec, bucket, bits, empty);
            }
        }
        self.set_len(0);
    }

    /// Calls `f` with bucket and fingerprint of every occupied slot.
    pub(crate) fn for_each<C: Codec>(&self, codec: C, mut f: impl FnMut(u32, u32)) {
        for bucket in 0..self.segment.table.geometry().buckets {
            let bits = self.load(codec, bucket);
            for lane in 0..codec.slots() {
                let fingerprint = codec.get(bits, lane);
                if fingerprint != 0 {
                    f(bucket, fingerprint);
                }
            }
        }
    }

    /// Fills the segment of a table that nobody else sees yet.
    pub(crate) fn set_words(&mut self, words: impl Iterator<Item = u64>, len: usize) {
        for (index, word) in words.enumerate() {
            self.segment.words.set_word(index, word);
        }
        self.set_len(len);
    }

    /// Searches for a path and moves its fingerprints, last first: the hole arrives in one of the place's own buckets.
    #[cold]
    #[inline(never)]
    fn make_room<C: Codec>(&mut self, codec: C, place: Place) -> Option<u32> {
        if self.len() as u64 == u64::from(self.segment.table.geometry().buckets) * u64::from(codec.slots()) {
            // As in the maps: a search would look at hundreds of buckets.
            return None;
        }
        let buckets = Buckets { segment: self.segment, codec };
        let roots = [place.first, place.second];
        if codec.slots() <= 2 {
            let path: Path<NARROW_PATH> = search(&buckets, roots, QUEUE)?;
            return Some(self.displace_all(codec, path.hops()));
        }
        let path: Path<WIDE_PATH> = search(&buckets, roots, QUEUE)?;
        Some(self.displace_all(codec, path.hops()))
    }

    /// Moves along a path, from its hole backwards; returns the bucket in which the hole ends up.
    fn displace_all<C: Codec>(&mut self, codec: C, hops: &[Hop]) -> u32 {
        for pair in hops.windows(2).rev() {
            self.displace(codec, pair[0], pair[1].bucket);
        }
        self.state.displacements += hops.len() as u64 - 1;
        hops[0].bucket
    }

    /// Moves one fingerprint to its other bucket, which has an empty slot [W5].
    fn displace<C: Codec>(&self, codec: C, from: Hop, to: u32) {
        let (source, target) = (self.load(codec, from.bucket), self.load(codec, to));
        let fingerprint = codec.get(source, from.lane);
        debug_assert_eq!(self.segment.table.geometry().alternate(from.bucket, fingerprint), to, "[I1]");
        let more = codec.with(target, fingerprint).expect("a path ends in an empty slot");
        let less = codec.without(source, fingerprint).expect("a path leads over occupied slots");
        // Where buckets tear, each change bumps its own bucket's stripe, and readers check both.
        let stripe = self.segment.stripe(pair(from.bucket, to));
        let _moving = (!C::TEARS).then(|| Moving::start(stripe));
        // The target before the source [I3].
        self.change(codec, to, target, more);
        step();
        self.change(codec, from.bucket, source, less);
    }

    /// Replaces the content of a bucket.
    #[inline]
    fn change<C: Codec>(&self, codec: C, bucket: u32, old: C::Bits, new: C::Bits) {
        if !C::TEARS {
            return codec.store(self.segment.words, bucket, new);
        }
        // Release: pairs with the Acquire fence in `unchanged`: a reader that reads the new copy in an older odd version sees
        // that the version has changed. Redundant today, as such a fence came before the last copy was withdrawn.
        publish_departures();
        self.segment.set_undo(Some((bucket, codec.to_words(old))));
        // The odd version's Release publishes the copy.
        let moving = Moving::start(self.segment.stripe(bucket));
        codec.store(self.segment.words, bucket, new);
        drop(moving);
        // Release: as above: who finds the copy withdrawn sees the version even.
        publish_departures();
        self.segment.set_undo(None);
    }
}
