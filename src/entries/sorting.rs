//! [`Sorting`]: free pieces are told apart by their chunks, some at a time, until it is known which chunks nobody uses [M4].
//!
//! Whoever allocates meanwhile takes pieces from here before it asks for a new chunk: all that were free are here, and writers
//! that found none would cut as many anew as they use while it lasts, which would then be there to be sorted the next time.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::magazine::{Chain, Free, Magazine};
use crate::engine::Meter;
use crate::sync::SCHEDULED;

/// Memory from the allocator, and how many pieces have been cut from it.
pub(super) struct Chunk {
    pub(super) base: NonNull<u8>,
    pub(super) layout: Layout,
    pub(super) pieces: usize,
    /// How many of them are free: counted by a [`Sorting`].
    free: usize,
}

impl Chunk {
    /// One of which nothing has been cut.
    pub(super) fn new(base: NonNull<u8>, layout: Layout) -> Self {
        Chunk { base, layout, pieces: 0, free: 0 }
    }

    fn is_unused(&self) -> bool {
        self.free == self.pieces
    }

    /// Gives it back to the allocator.
    ///
    /// # Safety
    ///
    /// Nobody uses its pieces any more; `meter` is the one it was allocated with.
    pub(super) unsafe fn free(self, meter: &Meter) {
        // SAFETY: the caller's.
        unsafe { meter.free(self.base, self.layout) };
    }
}

/// Places that pieces are returned to.
pub(super) const PLACES: usize = 8;
/// Magazines whose pieces are looked at without a pause for who waits. Schedules have few, and a pause among them.
pub(super) const MAGAZINES_A_STEP: usize = if SCHEDULED { 1 } else { 8 };
/// As many pieces.
const PIECES_AT_A_TIME: usize = MAGAZINES_A_STEP * Magazine::ROOM;

/// Free pieces, and the chunks that they may be of: nobody cuts more pieces from these.
#[derive(Default)]
pub(super) struct Sorting {
    /// In the order of their addresses, as long as there are pieces to be sorted.
    chunks: Vec<Chunk>,
    /// How many chunks there were.
    taken: usize,
    /// Magazines that are to be counted of each place that pieces are returned to.
    to_count: [usize; PLACES],
    counted: Chain,
    /// All are counted: of a chunk that is unused now no piece is given away any more.
    is_decided: bool,
    /// Chunks that have turned out to be used, from the first one on.
    seen: usize,
}

// SAFETY: the chunks go with the slab.
unsafe impl Send for Sorting {}

impl Sorting {
    /// Of these chunks, and so many magazines of each place.
    pub(super) fn new(mut chunks: Vec<Chunk>, to_count: [usize; PLACES]) -> Self {
        chunks.sort_unstable_by_key(|chunk| chunk.base);
        chunks.iter_mut().for_each(|chunk| chunk.free = 0);
        Sorting { taken: chunks.len(), chunks, to_count, ..Sorting::default() }
    }

    /// A place of which magazines are to be counted.
    pub(super) fn place(&self) -> Option<usize> {
        self.to_count.iter().position(|magazines| *magazines > 0)
    }

    /// Of this place there is one less to be counted, or none any more.
    pub(super) fn note_counted(&mut self, place: usize, has_more: bool) {
        self.to_count[place] = if has_more { self.to_count[place].saturating_sub(1) } else { 0 };
    }

    /// Counts the pieces of a magazine.
    pub(super) fn count(&mut self, magazine: &mut Magazine) {
        debug_assert!(!self.is_decided);
        while let Some(piece) = magazine.pop() {
            if let Some(chunk) = self.chunk_of(piece) {
                chunk.free += 1;
            }
            self.counted.push(piece);
        }
    }

    /// All are counted. False: that has been said before.
    pub(super) fn decide(&mut self) -> bool {
        !core::mem::replace(&mut self.is_decided, true)
    }

    /// Takes some pieces out, when all are counted: those of chunks that others use. `None`: there are no more.
    pub(super) fn sort(&mut self) -> Option<Chain> {
        debug_assert!(self.is_decided);
        let mut used = Chain::default();
        for looked_at in 0..PIECES_AT_A_TIME {
            let Some(piece) = self.counted.pop() else {
                return (looked_at > 0).then_some(used);
            };
            if !self.chunk_of(piece).is_some_and(|chunk| chunk.is_unused()) {
                used.push(piece);
            }
        }
        Some(used)
    }

    /// Fills a magazine for whoever finds no piece elsewhere. False if none of the next [`PIECES_AT_A_TIME`] may be given away:
    /// the caller takes a new chunk then, rather than wait longer under a segment's lock.
    pub(super) fn fill(&mut self, magazine: &mut Magazine) -> bool {
        for _ in 0..PIECES_AT_A_TIME {
            if !magazine.has_room() {
                break;
            }
            let Some(piece) = self.counted.pop() else { break };
            let is_decided = self.is_decided;
            match self.chunk_of(piece) {
                // It goes with its chunk.
                Some(chunk) if is_decided && chunk.is_unused() => continue,
                Some(chunk) => chunk.free -= 1,
                None => {}
            }
            magazine.push(piece);
        }
        !magazine.pieces().is_empty()
    }

    /// Takes out a chunk that nobody uses, when all pieces are sorted: it is to be freed. `None`: there are no more.
    pub(super) fn take_unused(&mut self) -> Option<Chunk> {
        debug_assert!(self.is_decided && self.counted.len() == 0);
        self.seen += self.chunks[self.seen..].iter().take_while(|chunk| !chunk.is_unused()).count();
        (self.seen < self.chunks.len()).then(|| self.chunks.swap_remove(self.seen))
    }

    /// The chunks that others use, and how many there were in all.
    pub(super) fn into_chunks(self) -> (Vec<Chunk>, usize) {
        (self.chunks, self.taken)
    }

    /// The chunk of a piece; `None` if it is another's.
    fn chunk_of(&mut self, piece: NonNull<Free>) -> Option<&mut Chunk> {
        let at = self.chunks.partition_point(|chunk| chunk.base.cast() <= piece).checked_sub(1)?;
        let chunk = &mut self.chunks[at];
        (piece.addr().get() - chunk.base.addr().get() < chunk.layout.size()).then_some(chunk)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PIECES: usize = 100;
    const PIECE: usize = 32;

    /// Chunks side by side, and the pieces of each.
    struct Scene {
        _memory: Vec<u128>,
        base: NonNull<u8>,
    }

    impl Scene {
        fn of(chunks: usize) -> Self {
            let mut memory = vec![0_u128; chunks * PIECES * PIECE / size_of::<u128>()];
            Scene { base: NonNull::new(memory.as_mut_ptr()).unwrap().cast(), _memory: memory }
        }

        fn piece(&self, chunk: usize, at: usize) -> NonNull<Free> {
            // SAFETY: within the memory.
            unsafe { self.base.add((chunk * PIECES + at) * PIECE) }.cast()
        }

        /// Not in the order of their addresses.
        fn chunks(&self, some: &[usize]) -> Vec<Chunk> {
            let layout = Layout::from_size_align(PIECES * PIECE, 8).unwrap();
            let chunk = |&chunk: &usize| {
                let mut chunk = Chunk::new(self.piece(chunk, 0).cast(), layout);
                chunk.pieces = PIECES;
                chunk
            };
            some.iter().rev().map(chunk).collect()
        }
    }

    fn count(sorting: &mut Sorting, pieces: impl IntoIterator<Item = NonNull<Free>>) {
        for piece in pieces {
            let mut magazine = Magazine::default();
            magazine.push(piece);
            sorting.count(&mut magazine);
        }
    }

    /// The pieces that are sorted out, and where the unused chunks begin.
    fn end(mut sorting: Sorting) -> (HashSet<NonNull<Free>>, HashSet<NonNull<Free>>) {
        let mut used = HashSet::new();
        while let Some(mut some) = sorting.sort() {
            while let Some(piece) = some.pop() {
                assert!(used.insert(piece), "twice");
            }
        }
        let unused = core::iter::from_fn(|| sorting.take_unused()).map(|chunk| chunk.base.cast()).collect();
        let (chunks, taken) = sorting.into_chunks();
        assert!(chunks.len() <= taken && chunks.iter().all(|chunk| !chunk.is_unused()));
        (used, unused)
    }

    #[test]
    fn chunks_are_unused_if_all_their_pieces_are_free() {
        let scene = Scene::of(4);
        // The fourth is not among those that are sorted, and begins where the third ends.
        let mut sorting = Sorting::new(scene.chunks(&[0, 1, 2]), [0; PLACES]);
        count(&mut sorting, (0..PIECES).map(|at| scene.piece(0, at)));
        count(&mut sorting, (1..PIECES).map(|at| scene.piece(1, at)));
        count(&mut sorting, (0..PIECES).map(|at| scene.piece(2, at)));
        count(&mut sorting, [scene.piece(3, 0), scene.piece(3, 7)]);
        assert!(sorting.decide() && !sorting.decide());
        let (used, unused) = end(sorting);
        let expected = (1..PIECES).map(|at| scene.piece(1, at)).chain([0, 7].map(|at| scene.piece(3, at)));
        assert_eq!(used, expected.collect());
        assert_eq!(unused, [scene.piece(0, 0), scene.piece(2, 0)].into());
    }

    #[test]
    fn who_takes_a_piece_before_it_is_decided_keeps_its_chunk() {
        let scene = Scene::of(2);
        let mut sorting = Sorting::new(scene.chunks(&[0, 1]), [0; PLACES]);
        count(
            &mut sorting,
            (0..2).flat_map(|chunk| (0..PIECES).map(move |at| (chunk, at))).map(|(c, at)| scene.piece(c, at)),
        );
        let mut magazine = Magazine::default();
        assert!(sorting.fill(&mut magazine));
        assert_eq!(magazine.pieces().len(), Magazine::ROOM);
        sorting.decide();
        let (mut used, unused) = end(sorting);
        used.extend(magazine.pieces());
        assert_eq!(
            used,
            (0..PIECES).map(|at| scene.piece(1, at)).collect(),
            "the last that were counted come first"
        );
        assert_eq!(unused, [scene.piece(0, 0)].into());
    }

    #[test]
    fn of_unused_chunks_nobody_takes_a_piece_when_that_is_decided() {
        let scene = Scene::of(2);
        let mut sorting = Sorting::new(scene.chunks(&[0, 1]), [0; PLACES]);
        count(&mut sorting, (0..PIECES - 5).map(|at| scene.piece(0, at)));
        count(&mut sorting, (0..PIECES).map(|at| scene.piece(1, at)));
        sorting.decide();
        let mut taken = HashSet::new();
        let mut magazine = Magazine::default();
        while sorting.fill(&mut magazine) {
            while let Some(piece) = magazine.pop() {
                assert!(taken.insert(piece), "twice");
            }
        }
        assert_eq!(taken, (0..PIECES - 5).map(|at| scene.piece(0, at)).collect());
        let (used, unused) = end(sorting);
        assert_eq!((used, unused), ([].into(), [scene.piece(1, 0)].into()));
    }
}
