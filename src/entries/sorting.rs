//! [`Sorting`]: sorting free pieces by their chunks, a few at a time, until it is known which chunks nobody uses [M4].
//!
//! A writer that allocates meanwhile takes pieces from here before it asks for a new chunk: all that were free are here, and
//! writers that found none would cut as many new ones as they use while the sorting lasts, and those would have to be sorted
//! the next time.
//!
//! Chunks of which few pieces are in use are *emptied*: their free pieces are withheld, and so are those that writers return
//! later, until no piece of the chunk is in use. Entries do not move, but one that is replaced leaves its chunk for another.
//! When no more chunks become unused, the sorting *rests*: withheld pieces stay withheld, for a thread that finds no piece
//! elsewhere.

use core::ptr::NonNull;

use super::chunk::{Chunk, Fate};
use super::magazine::{Chain, Free, Magazine};
use crate::sync::SCHEDULED;

/// The number of places that pieces are returned to.
pub(super) const PLACES: usize = 8;
/// Magazines whose pieces are looked at without a pause for waiting threads. Schedules have few, with a pause among them.
pub(super) const MAGAZINES_A_STEP: usize = if SCHEDULED { 1 } else { 8 };
/// The same, in pieces.
const PIECES_AT_A_TIME: usize = MAGAZINES_A_STEP * Magazine::ROOM;
/// Classes of chunks by the share of their pieces that is in use.
const CLASSES: usize = 32;

/// Free pieces, and the chunks that they may belong to: nobody cuts more pieces from these.
#[derive(Default)]
pub(super) struct Sorting {
    /// In the order of their addresses.
    chunks: Vec<Chunk>,
    /// How many magazines of each place that pieces are returned to are still to be counted.
    to_count: [usize; PLACES],
    counted: Chain,
    /// Whether all are counted: from now on no piece of an unused chunk is given away.
    is_decided: bool,
    /// The number of chunks, from the first on, that have turned out to be used, or were freed.
    seen: usize,
    /// How many chunks are still to be emptied.
    to_empty: usize,
    /// How many returned pieces are looked at, after a chunk has become unused, in search of the next one's.
    most_looks: usize,
    /// How many of these are left.
    looks: usize,
    /// Whether all free pieces have been counted anew since a chunk has become unused. (Some had been returned before anybody
    /// looked.)
    is_recounted: bool,
    /// Whether the search is over.
    is_resting: bool,
    /// The number of chunks, from the first on, that withhold nothing.
    given_back: usize,
}

// SAFETY: the chunks go with the slab.
unsafe impl Send for Sorting {}

impl Sorting {
    /// A sorting of these chunks, and of so many magazines of each place.
    pub(super) fn new(mut chunks: Vec<Chunk>, to_count: [usize; PLACES]) -> Self {
        chunks.sort_unstable_by_key(|chunk| chunk.base);
        chunks.iter_mut().for_each(Chunk::begin_anew);
        Sorting { chunks, to_count, ..Sorting::default() }
    }

    /// A place that has magazines to be counted.
    pub(super) fn place(&self) -> Option<usize> {
        self.to_count.iter().position(|magazines| *magazines > 0)
    }

    /// Notes that this place has one magazine less to be counted, or none any more.
    pub(super) fn note_counted(&mut self, place: usize, has_more: bool) {
        self.to_count[place] = if has_more { self.to_count[place].saturating_sub(1) } else { 0 };
    }

    /// Counts the pieces of a magazine as free; after the decision, only those of chunks that are to be emptied.
    pub(super) fn count(&mut self, magazine: &mut Magazine) {
        let is_decided = self.is_decided;
        while let Some(piece) = magazine.pop() {
            match self.chunk_of(piece) {
                Some(chunk) if !is_decided || chunk.fate == Fate::Emptied => chunk.free += 1,
                _ => {}
            }
            self.counted.push(piece);
        }
    }

    /// Notes that all are counted, and chooses the chunks that are to be emptied. Returns false if that was done before.
    pub(super) fn decide(&mut self) -> bool {
        if !self.is_decided {
            self.is_decided = true;
            self.choose();
            return true;
        }
        false
    }

    /// Chooses the chunks that are to be emptied, if more than half of the pieces of used chunks are free. The others, which
    /// have the most pieces in use, are to have room for all that are in use, and a quarter more.
    fn choose(&mut self) {
        let class = |chunk: &Chunk| chunk.used() * CLASSES / (chunk.pieces + 1);
        let (mut used, mut room) = (0, [0; CLASSES]);
        for chunk in self.chunks.iter().filter(|chunk| !chunk.is_unused()) {
            used += chunk.used();
            room[class(chunk)] += chunk.pieces;
        }
        let pieces: usize = room.iter().sum();
        if pieces <= 2 * used {
            self.given_back = self.chunks.len();
            return;
        }
        let (mut wanted, mut least) = (used + used / 4, CLASSES - 1);
        while wanted > room[least] {
            wanted -= room[least];
            least -= 1;
        }
        for chunk in self.chunks.iter_mut().filter(|chunk| !chunk.is_unused()) {
            let class = class(chunk);
            if class > least {
                continue;
            }
            if class == least && wanted > 0 {
                wanted = wanted.saturating_sub(chunk.pieces);
                continue;
            }
            chunk.fate = Fate::Emptied;
            self.to_empty += 1;
        }
        // If all keys are written equally often, each entry has been replaced several times by then.
        self.most_looks = if SCHEDULED { 4 } else { 2 * pieces };
        self.looks = self.most_looks;
    }

    /// Takes some pieces out when all are counted: those of chunks that others use and that stay. `None` if there are no more.
    pub(super) fn sort(&mut self) -> Option<Chain> {
        debug_assert!(self.is_decided);
        let mut used = Chain::default();
        for looked_at in 0..PIECES_AT_A_TIME {
            let Some(piece) = self.counted.pop() else {
                return (looked_at > 0).then_some(used);
            };
            match self.chunk_of(piece) {
                Some(chunk) if chunk.is_unused() => {}
                Some(chunk) if chunk.fate == Fate::Emptied => chunk.withhold(piece),
                _ => used.push(piece),
            }
        }
        Some(used)
    }

    /// Fills a magazine for a caller that finds no piece elsewhere. Returns false if none of the next [`PIECES_AT_A_TIME`] may
    /// be given away: the caller then takes a new chunk, rather than wait longer under a segment's lock.
    pub(super) fn fill(&mut self, magazine: &mut Magazine) -> bool {
        for _ in 0..PIECES_AT_A_TIME {
            if !magazine.has_room() {
                break;
            }
            let Some(piece) = self.counted.pop() else { break };
            let is_decided = self.is_decided;
            match self.chunk_of(piece) {
                // It is freed with its chunk.
                Some(chunk) if is_decided && chunk.is_unused() => continue,
                Some(chunk) => chunk.free -= 1,
                None => {}
            }
            magazine.push(piece);
        }
        if magazine.pieces().is_empty() && self.is_decided {
            // More pieces are in use than the other chunks have room for.
            self.is_resting = true;
            let some = (0..PIECES_AT_A_TIME).filter_map(|_| self.next_withheld());
            some.take(Magazine::ROOM).for_each(|piece| magazine.push(piece));
        }
        !magazine.pieces().is_empty()
    }

    /// Takes out a chunk that nobody uses when all pieces are sorted: it is to be freed. `None` if there are no more.
    pub(super) fn take_unused(&mut self) -> Option<Chunk> {
        debug_assert!(self.is_decided && self.counted.len() == 0);
        let rest = &self.chunks[self.seen..];
        self.seen += rest.iter().take_while(|chunk| chunk.fate == Fate::Freed || !chunk.is_unused()).count();
        (self.seen < self.chunks.len()).then(|| self.take(self.seen))
    }

    fn take(&mut self, at: usize) -> Chunk {
        let chunk = &mut self.chunks[at];
        if chunk.fate == Fate::Emptied {
            self.to_empty -= 1;
            (self.looks, self.is_recounted) = (self.most_looks, false);
        }
        chunk.take()
    }

    /// Whether chunks are still to be emptied.
    pub(super) fn is_emptying(&self) -> bool {
        self.to_empty > 0 && !self.is_resting
    }

    /// Whether nothing is to be done until a thread [gives up](Self::give_up) the withheld pieces.
    pub(super) fn is_resting(&self) -> bool {
        self.to_empty > 0 && self.is_resting
    }

    /// Withholds those of some free pieces that belong to chunks to be emptied. Returns the others, and a chunk that has become
    /// unused by it, which is to be freed.
    pub(super) fn withhold(&mut self, magazine: &mut Magazine) -> (Chain, Option<Chunk>) {
        debug_assert!(self.is_emptying() && self.counted.len() == 0);
        let mut others = Chain::default();
        let mut unused = None;
        while let Some(piece) = magazine.pop() {
            self.looks = self.looks.saturating_sub(1);
            let emptied = self.at(piece).filter(|&at| self.chunks[at].fate == Fate::Emptied);
            // At most one chunk becomes unused.
            let Some(at) = emptied.filter(|_| unused.is_none()) else {
                others.push(piece);
                continue;
            };
            self.chunks[at].free += 1;
            self.chunks[at].withhold(piece);
            if self.chunks[at].is_unused() {
                unused = Some(self.take(at));
            }
        }
        self.is_resting = self.looks == 0 && self.is_recounted;
        (others, unused)
    }

    /// Whether all free pieces are to be [counted anew](Self::recount).
    pub(super) fn wants_recount(&self) -> bool {
        self.looks == 0 && !self.is_recounted
    }

    /// Begins to count anew, this many magazines of each place.
    pub(super) fn recount(&mut self, to_count: [usize; PLACES]) {
        self.to_count = to_count;
        (self.seen, self.looks, self.is_recounted) = (0, self.most_looks, true);
    }

    /// No further chunk is emptied; withheld pieces are to be given back.
    pub(super) fn give_up(&mut self) {
        self.to_empty = 0;
    }

    /// Takes some of the withheld pieces out. `None` if there are no more.
    pub(super) fn take_withheld(&mut self) -> Option<Chain> {
        debug_assert!(self.to_empty == 0);
        if self.given_back == self.chunks.len() {
            return None;
        }
        let mut some = Chain::default();
        (0..PIECES_AT_A_TIME).filter_map(|_| self.next_withheld()).for_each(|piece| some.push(piece));
        Some(some)
    }

    /// Takes one withheld piece out, which then no longer counts as free; or goes on to the next chunk.
    fn next_withheld(&mut self) -> Option<NonNull<Free>> {
        let chunk = self.chunks.get_mut(self.given_back)?;
        let Some(piece) = chunk.pop_withheld() else {
            chunk.stay();
            self.given_back += 1;
            return None;
        };
        chunk.free -= 1;
        Some(piece)
    }

    /// The chunks that were not freed, and how many there were in all.
    pub(super) fn into_chunks(mut self) -> (Vec<Chunk>, usize) {
        let taken = self.chunks.len();
        self.chunks.retain(|chunk| chunk.fate != Fate::Freed);
        (self.chunks, taken)
    }

    /// The chunk of a piece; `None` if it is in none of these chunks.
    fn chunk_of(&mut self, piece: NonNull<Free>) -> Option<&mut Chunk> {
        let at = self.at(piece)?;
        Some(&mut self.chunks[at])
    }

    /// The index of that chunk.
    fn at(&self, piece: NonNull<Free>) -> Option<usize> {
        let at = self.chunks.partition_point(|chunk| chunk.base.cast() <= piece).checked_sub(1)?;
        let chunk = &self.chunks[at];
        // The memory of a freed chunk may be another slab's by now, or in a chunk that is not being sorted.
        (chunk.fate != Fate::Freed && chunk.reaches(piece)).then_some(at)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::alloc::Layout;
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

        /// These chunks, not in the order of their addresses.
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

    /// The pieces of used chunks, and where the unused chunks begin.
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
        // The fourth chunk is not among those that are sorted, and begins where the third ends.
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

    /// Ten chunks that have been sorted: four have many pieces in use, and six have few. And those few.
    fn sparse() -> (Scene, Sorting, Vec<NonNull<Free>>) {
        let scene = Scene::of(10);
        let mut sorting = Sorting::new(scene.chunks(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), [0; PLACES]);
        let is_used = |chunk: usize, at: usize| if chunk % 3 == 0 { at < 60 } else { at < 5 };
        let free = (0..10).flat_map(|chunk| (0..PIECES).map(move |at| (chunk, at)));
        count(
            &mut sorting,
            free.filter(|&(chunk, at)| !is_used(chunk, at)).map(|(c, at)| scene.piece(c, at)),
        );
        assert!(sorting.decide());
        let mut given = HashSet::new();
        while let Some(mut some) = sorting.sort() {
            given.extend(core::iter::from_fn(|| some.pop()));
        }
        let dense = [0, 3, 6, 9].into_iter().flat_map(|chunk| (60..PIECES).map(move |at| (chunk, at)));
        assert_eq!(given, dense.map(|(chunk, at)| scene.piece(chunk, at)).collect());
        assert!(sorting.take_unused().is_none() && sorting.is_emptying());
        let few = [1, 2, 4, 5, 7, 8].into_iter().flat_map(|chunk| (0..5).map(move |at| (chunk, at)));
        let few = few.map(|(chunk, at)| scene.piece(chunk, at)).collect();
        (scene, sorting, few)
    }

    fn magazine(pieces: impl IntoIterator<Item = NonNull<Free>>) -> Magazine {
        let mut magazine = Magazine::default();
        pieces.into_iter().for_each(|piece| magazine.push(piece));
        magazine
    }

    /// All withheld pieces, which are taken out a few at a time.
    fn withheld(sorting: &mut Sorting) -> HashSet<NonNull<Free>> {
        let mut all = HashSet::new();
        while let Some(mut some) = sorting.take_withheld() {
            while let Some(piece) = some.pop() {
                assert!(all.insert(piece), "twice");
            }
        }
        all
    }

    #[test]
    fn chunks_of_which_few_pieces_are_in_use_go_when_the_last_one_is_returned() {
        let (scene, mut sorting, few) = sparse();
        let mut freed = HashSet::new();
        for (i, piece) in few.into_iter().enumerate() {
            // With it comes a piece of a chunk that stays.
            let (mut others, unused) = sorting.withhold(&mut magazine([scene.piece(0, i), piece]));
            assert_eq!((others.pop(), others.pop()), (Some(scene.piece(0, i)), None));
            assert_eq!(unused.is_some(), i % 5 == 4);
            freed.extend(unused.map(|chunk| chunk.base.cast()));
        }
        assert_eq!(freed, [1, 2, 4, 5, 7, 8].map(|chunk| scene.piece(chunk, 0)).into());
        assert!(!sorting.is_emptying() && withheld(&mut sorting).is_empty());
        let (chunks, taken) = sorting.into_chunks();
        assert_eq!((chunks.len(), taken), (4, 10));
    }

    #[test]
    fn of_two_chunks_that_a_magazine_empties_one_waits_for_the_next_look() {
        let (scene, mut sorting, _) = sparse();
        let [first, last] = [1, 2].map(|chunk| (0..5).map(move |at| (chunk, at)));
        let both = first.chain(last).map(|(chunk, at)| scene.piece(chunk, at));
        let (mut others, unused) = sorting.withhold(&mut magazine(both));
        let freed = unused.expect("one").base;
        assert_eq!(freed, scene.piece(2, 0).cast());
        let others: Vec<_> = core::iter::from_fn(|| others.pop()).collect();
        assert_eq!(others.len(), 5);
        // A piece at an address of the freed chunk: it is in another one now.
        let (mut strays, none) = sorting.withhold(&mut magazine([scene.piece(2, 7)]));
        assert!(strays.pop().is_some() && none.is_none());
        assert_eq!(
            sorting.withhold(&mut magazine(others)).1.expect("the other").base,
            scene.piece(1, 0).cast()
        );
    }

    #[test]
    fn what_was_returned_unseen_is_found_when_all_is_counted_anew() {
        let (scene, mut sorting, few) = sparse();
        let (unseen, rest) = few.split_at(5);
        let cold = rest.last().copied();
        let mut stays = (0..).map(|at| scene.piece(3, at % 60));
        while !sorting.wants_recount() {
            sorting.withhold(&mut magazine(stays.by_ref().take(Magazine::ROOM)));
        }
        sorting.recount([1; PLACES]);
        assert_eq!(sorting.place(), Some(0));
        count(&mut sorting, unseen.iter().copied().chain([scene.piece(3, 1)]));
        (0..PLACES).for_each(|place| sorting.note_counted(place, false));
        assert!(!sorting.decide());
        let mut others = sorting.sort().expect("some");
        assert_eq!((others.pop(), others.pop()), (Some(scene.piece(3, 1)), None));
        assert!(sorting.sort().is_none());
        assert_eq!(sorting.take_unused().expect("the first").base, scene.piece(1, 0).cast());
        assert!(sorting.take_unused().is_none());
        // That was worth another round. When that one is in vain, the sorting rests.
        let mut rounds = 0;
        while sorting.is_emptying() {
            if sorting.wants_recount() {
                sorting.recount([0; PLACES]);
                rounds += 1;
            }
            sorting.withhold(&mut magazine(stays.by_ref().take(Magazine::ROOM)));
        }
        assert!(rounds == 1 && sorting.is_resting());
        sorting.give_up();
        let all = withheld(&mut sorting);
        assert!(all.len() == 5 * (PIECES - 5) && !cold.is_some_and(|cold| all.contains(&cold)));
    }

    #[test]
    fn a_thread_that_finds_no_piece_elsewhere_gets_withheld_ones() {
        let (scene, mut sorting, few) = sparse();
        let mut taken = HashSet::new();
        let mut magazine = Magazine::default();
        while sorting.fill(&mut magazine) {
            while let Some(piece) = magazine.pop() {
                assert!(taken.insert(piece), "twice");
            }
            assert!(sorting.is_resting());
        }
        assert_eq!(taken.len(), 6 * (PIECES - 5));
        assert!(few.iter().all(|piece| !taken.contains(piece)) && !taken.contains(&scene.piece(0, 99)));
        sorting.give_up();
        assert!(withheld(&mut sorting).is_empty());
        assert_eq!(sorting.into_chunks().0.len(), 10);
    }

    #[test]
    fn where_half_is_in_use_nothing_is_emptied() {
        let scene = Scene::of(2);
        let mut sorting = Sorting::new(scene.chunks(&[0, 1]), [0; PLACES]);
        count(&mut sorting, (10..PIECES).map(|at| scene.piece(0, at)).chain([scene.piece(1, 0)]));
        sorting.decide();
        assert!(!sorting.is_emptying() && !sorting.is_resting());
        assert_eq!(end(sorting).0.len(), PIECES - 9);
    }
}
