//! Digests in the order of their segments: when a table is filled in this order, writes go to memory that is in the caches.
//!
//! If it is known how many there will be, they are partitioned as they come: a block has the same amount of room for each
//! segment, and a little more, as they do not spread quite evenly. So they are written once, and take just their own 8 bytes
//! each.

use core::mem::MaybeUninit;

use super::collect::{push, with_room, with_room_for_all};
use super::error::FilterError;
use super::geometry::Geometry;
use crate::hash::Digest;

/// The smallest number of digests of a segment for which a block has room.
const LEAST_ROOM: usize = 64;

/// The digests of all keys, by segment or in the order in which they came.
#[derive(Default)]
pub(crate) struct Parted {
    /// The number of segments by which the blocks are partitioned.
    segments: u32,
    blocks: Vec<Block>,
    /// The digests that are in no block, in order.
    rest: Vec<Digest>,
    /// See [`with_room_for_all`].
    huge_pages: Option<bool>,
}

/// Partitions digests as they come.
pub(crate) struct Parting {
    geometry: Geometry,
    /// The number of digests, in all.
    expected: usize,
    open: Block,
    parted: Parted,
}

/// Digests by segment, for as many as it is made for.
#[derive(Default)]
struct Block {
    /// `ends` says which part of it has been written.
    digests: Vec<MaybeUninit<Digest>>,
    /// The number of digests that each segment has room for.
    each: usize,
    /// The ends of each segment's digests, and of its room.
    ends: Vec<(usize, usize)>,
}

impl Parted {
    /// Digests in the order in which they came.
    pub(crate) fn in_order(rest: Vec<Digest>, huge_pages: Option<bool>) -> Self {
        Parted { rest, huge_pages, ..Parted::default() }
    }

    /// The same digests, by segment; an error if there is no memory for a second copy of them.
    pub(crate) fn again(&self, geometry: &Geometry) -> Result<Parted, FilterError> {
        let mut parting = Parting::new(*geometry, self.len(), self.huge_pages);
        self.slices().flatten().try_for_each(|digest| parting.push(*digest))?;
        parting.finish()
    }

    /// Whether they are ordered by the segments of this geometry, or nearly all are.
    pub(crate) fn is_for(&self, geometry: &Geometry) -> bool {
        self.segments == geometry.segments && self.rest.len() <= self.len() / 8
    }

    /// The number of digests.
    pub(crate) fn len(&self) -> usize {
        self.slices().map(<[Digest]>::len).sum()
    }

    /// All digests, one block after the other, and each by segment.
    pub(crate) fn slices(&self) -> impl Iterator<Item = &[Digest]> {
        self.blocks.iter().flat_map(Block::slices).chain([self.rest()])
    }

    /// The digests of a segment, except the rest.
    pub(crate) fn of_segment(&self, segment: u32) -> impl Iterator<Item = &[Digest]> {
        self.blocks.iter().map(move |block| block.of_segment(segment as usize))
    }

    /// The digests that are in the order in which they came.
    pub(crate) fn rest(&self) -> &[Digest] {
        &self.rest
    }

    /// See [`with_room_for_all`].
    #[cfg(feature = "rayon")]
    pub(crate) fn huge_pages(&self) -> Option<bool> {
        self.huge_pages
    }

    /// Adds those of another one that is partitioned by the same segments, or has none.
    #[cfg(feature = "rayon")]
    pub(crate) fn append(&mut self, other: Parted) -> Result<(), FilterError> {
        debug_assert!(self.blocks.is_empty() || other.blocks.is_empty() || self.segments == other.segments);
        self.segments = self.segments.max(other.segments);
        other.blocks.into_iter().try_for_each(|block| push(&mut self.blocks, block))?;
        other.rest.into_iter().try_for_each(|digest| push(&mut self.rest, digest))
    }
}

impl Parting {
    /// For this many digests; more may come, or fewer.
    pub(crate) fn new(geometry: Geometry, expected: usize, huge_pages: Option<bool>) -> Self {
        let parted = Parted { segments: geometry.segments, huge_pages, ..Parted::default() };
        Parting { geometry, expected, open: Block::default(), parted }
    }

    /// Returns itself, and leaves one behind that contains nothing.
    #[cfg(feature = "rayon")]
    pub(crate) fn take(&mut self) -> Self {
        let empty = Parting::new(self.geometry, self.expected, self.parted.huge_pages);
        core::mem::replace(self, empty)
    }

    /// Takes one more digest, if there is memory for it.
    #[inline]
    pub(crate) fn push(&mut self, digest: Digest) -> Result<(), FilterError> {
        if self.push_here(digest) { Ok(()) } else { self.push_elsewhere(digest) }
    }

    /// Takes one more digest, if the block has room for its segment. Returns whether it had.
    #[inline(always)]
    pub(crate) fn push_here(&mut self, digest: Digest) -> bool {
        self.open.push(self.geometry.segment(digest) as usize, digest)
    }

    /// Takes a digest for which the block has no room: into the next block, unless this one has room for most others. If all
    /// have the same segment, this may cost time, but not memory for all segments.
    #[cold]
    #[inline(never)]
    pub(crate) fn push_elsewhere(&mut self, digest: Digest) -> Result<(), FilterError> {
        // The block's fill is not summed up for each digest: all that come may be alike.
        if self.parted.rest.len() % 256 == 0 && self.open.is_half_full() {
            // For the digests still to come. Beyond that few come, or nobody knows how many.
            let taken = self.parted.len() + self.open.len();
            let expected = self.expected.saturating_sub(taken).max(taken / 4);
            let next = Block::new(self.geometry.segments as usize, expected, self.parted.huge_pages)?;
            self.close(next)?;
            if self.push_here(digest) {
                return Ok(());
            }
        }
        push(&mut self.parted.rest, digest)
    }

    /// Adds the open block to the others, unless it has no room at all, and opens another.
    fn close(&mut self, next: Block) -> Result<(), FilterError> {
        let full = core::mem::replace(&mut self.open, next);
        if full.ends.is_empty() { Ok(()) } else { push(&mut self.parted.blocks, full) }
    }

    /// Returns all digests that it has taken.
    pub(crate) fn finish(mut self) -> Result<Parted, FilterError> {
        self.close(Block::default())?;
        Ok(self.parted)
    }
}

impl Block {
    /// With room for this many in all.
    fn new(segments: usize, expected: usize, huge_pages: Option<bool>) -> Result<Self, FilterError> {
        let mean = expected.div_ceil(segments).max(LEAST_ROOM);
        // One segment in millions has more than five standard deviations beyond its share.
        let each = mean.saturating_add(5 * mean.isqrt());
        // First: no number is too large if there is memory for this many.
        let len = segments.saturating_mul(each);
        let mut digests = with_room_for_all(len, huge_pages)?;
        // SAFETY: it has room for this many, which need not be initialized.
        unsafe { digests.set_len(len) };
        let mut ends = with_room(segments)?;
        ends.extend((0..segments).map(|segment| (segment * each, (segment + 1) * each)));
        Ok(Block { digests, each, ends })
    }

    /// Returns whether there was room.
    #[inline(always)]
    fn push(&mut self, segment: usize, digest: Digest) -> bool {
        let Some((end, limit)) = self.ends.get_mut(segment) else { return false };
        if end == limit {
            return false;
        }
        self.digests[*end].write(digest);
        *end += 1;
        true
    }

    fn of_segment(&self, segment: usize) -> &[Digest] {
        let begin = segment * self.each;
        let end = self.ends.get(segment).map_or(begin, |(end, _)| *end);
        let written = &self.digests[begin..end];
        // SAFETY: `push` has written them all, from the segment's beginning on.
        unsafe { core::slice::from_raw_parts(written.as_ptr().cast(), written.len()) }
    }

    /// All digests, by segment.
    fn slices(&self) -> impl Iterator<Item = &[Digest]> {
        (0..self.ends.len()).map(|segment| self.of_segment(segment))
    }

    /// The number of digests in the block.
    fn len(&self) -> usize {
        self.slices().map(<[Digest]>::len).sum()
    }

    /// Whether half of its room is taken, or it has no room.
    fn is_half_full(&self) -> bool {
        2 * self.len() >= self.ends.len() * self.each
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn geometry(segments: u32) -> Geometry {
        Geometry::new(segments, 8, 12, 12)
    }

    fn parted(segments: u32, expected: usize, digests: &[Digest]) -> Parted {
        let mut parting = Parting::new(geometry(segments), expected, None);
        digests.iter().for_each(|digest| parting.push(*digest).unwrap());
        parting.finish().unwrap()
    }

    fn bits(digests: impl IntoIterator<Item = Digest>) -> Vec<u64> {
        digests.into_iter().map(Digest::bits).collect()
    }

    fn sorted<'d>(slices: impl Iterator<Item = &'d [Digest]>) -> Vec<u64> {
        let mut bits = bits(slices.flatten().copied());
        bits.sort_unstable();
        bits
    }

    #[test]
    fn digests_are_by_segment_and_keep_their_order_in_each_if_no_more_come_than_are_expected() {
        for (segments, len) in [(1, 500), (2, 500), (3, 0), (29, 20_000), (1000, 50_000)] {
            // As uneven as the digests of a good hash function.
            let mixed = |i: u64| (i ^ i >> 32).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let digests: Vec<Digest> = (0..len).map(|i| Digest::new(mixed(mixed(mixed(i))))).collect();
            for expected in [len as usize, 10 * len as usize] {
                let parted = parted(segments, expected, &digests);
                assert!(parted.is_for(&geometry(segments)) && parted.rest().is_empty());
                for segment in 0..segments {
                    let its = digests.iter().filter(|digest| geometry(segments).segment(**digest) == segment);
                    let found = parted.of_segment(segment).flatten().copied();
                    assert_eq!(bits(found), bits(its.copied()), "{segment} of {segments}");
                }
            }
        }
    }

    #[test]
    fn all_digests_are_there_however_many_were_expected_and_by_other_segments_as_well() {
        let digests: Vec<Digest> = (0..30_000).map(Digest::new).collect();
        let all = sorted([&digests[..]].into_iter());
        for expected in [0, 1, 1000, 29_000, 30_000] {
            let parted = parted(7, expected, &digests);
            assert_eq!((parted.len(), sorted(parted.slices())), (digests.len(), all.clone()), "{expected}");
            for segment in 0..7 {
                let slices = || parted.of_segment(segment).flatten();
                assert!(slices().all(|digest| geometry(7).segment(*digest) == segment));
            }
            assert!(parted.is_for(&geometry(7)) && !parted.is_for(&geometry(8)), "{expected}");
            let room: usize = parted.blocks.iter().map(|block| block.digests.len()).sum();
            assert!(
                room < 3 * digests.len() && parted.blocks.len() < 20,
                "{expected}: {room} in {}",
                parted.blocks.len()
            );
            let again = parted.again(&geometry(8)).unwrap();
            assert!(again.is_for(&geometry(8)) && again.rest().is_empty());
            assert_eq!(sorted(again.slices()), all);
        }
        let listed = Parted::in_order(digests, None);
        assert!(!listed.is_for(&geometry(7)) && listed.again(&geometry(7)).unwrap().is_for(&geometry(7)));
        assert!(Parting::new(geometry(7), usize::MAX, None).push(Digest::new(1)).is_err());
    }

    /// Otherwise a list of one key, repeated often enough, would take room for as many of each segment.
    #[test]
    fn digests_that_are_alike_take_no_more_memory_than_others() {
        let alike = vec![Digest::new(1); 100_000];
        for expected in [0, 100, 100_000] {
            let parted = parted(50, expected, &alike);
            assert_eq!(parted.len(), alike.len());
            assert!(!parted.is_for(&geometry(50)), "most are in the order in which they came");
            let room: usize = parted.blocks.iter().map(|block| block.digests.len()).sum();
            assert!(room < 2 * alike.len() && parted.rest.capacity() <= 2 * alike.len(), "{room}");
        }
    }
}
