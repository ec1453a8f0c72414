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
/// How often all free pieces are counted anew in vain. More than once, because those that are returned meanwhile to a place
/// that has been counted may be overlooked again.
const MOST_RECOUNTS: usize = if SCHEDULED { 1 } else { 4 };
/// Classes of chunks by the share of their pieces that is in use.
const CLASSES: usize = 32;

/// Free pieces, and the chunks that they may belong to: nobody cuts more pieces from these.
#[derive(Default)]
pub(super) struct Sorting {
    /// In the order of their addresses; of their age in schedules, which are to be the same each time they are run.
    chunks: Vec<Chunk>,
    /// The number of places that pieces are returned to, from the first on, that have been found empty.
    emptied_places: usize,
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
    /// How often all free pieces have been counted anew since a chunk has become unused.
    recounts: usize,
    /// Whether the search is over.
    is_resting: bool,
    /// Whether no chunk is to be emptied, and withheld pieces are to be given back.
    is_given_up: bool,
    /// The number of chunks, from the first on, that withhold nothing.
    given_back: usize,
}

// SAFETY: the chunks go with the slab.
unsafe impl Send for Sorting {}

impl Sorting {
    /// A sorting of these chunks.
    pub(super) fn new(mut chunks: Vec<Chunk>) -> Self {
        if !SCHEDULED {
            chunks.sort_unstable_by_key(|chunk| chunk.base);
        }
        chunks.iter_mut().for_each(Chunk::begin_anew);
        Sorting { chunks, ..Sorting::default() }
    }

    /// A place whose pieces are to be counted.
    pub(super) fn place(&self) -> Option<usize> {
        (self.emptied_places < PLACES).then_some(self.emptied_places)
    }

    /// Notes that nothing is left at this place.
    pub(super) fn note_empty(&mut self, place: usize) {
        self.emptied_places = place + 1;
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
        if pieces <= 2 * used || self.is_given_up {
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
        self.most_looks = if SCHEDULED { 64 } else { 2 * pieces };
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
                // Those of chunks that stay were counted once, before the decision, which nothing depends on any more.
                Some(chunk) if !is_decided || chunk.fate == Fate::Emptied => chunk.free -= 1,
                _ => {}
            }
            magazine.push(piece);
        }
        if magazine.pieces().is_empty() && self.is_sorted() {
            // Just now more pieces are in use than the other chunks have room for.
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
            (self.looks, self.recounts) = (self.most_looks, 0);
        }
        chunk.take()
    }

    /// Whether all pieces that are here are withheld ones.
    pub(super) fn is_sorted(&self) -> bool {
        self.is_decided && self.counted.len() == 0 && self.place().is_none()
    }

    /// Whether chunks are still to be emptied.
    pub(super) fn is_emptying(&self) -> bool {
        self.to_empty > 0 && !self.is_resting && !self.is_given_up
    }

    /// Whether nothing is to be done until a thread [gives up](Self::give_up) the withheld pieces.
    pub(super) fn is_resting(&self) -> bool {
        self.to_empty > 0 && self.is_resting && !self.is_given_up
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
        self.is_resting = self.looks == 0 && self.recounts == MOST_RECOUNTS;
        (others, unused)
    }

    /// Whether all free pieces are to be [counted anew](Self::recount).
    pub(super) fn wants_recount(&self) -> bool {
        self.looks == 0 && self.recounts < MOST_RECOUNTS
    }

    /// Begins to count anew. (Some pieces had been returned before anybody looked, and lie below others.)
    pub(super) fn recount(&mut self) {
        (self.emptied_places, self.seen, self.looks) = (0, 0, self.most_looks);
        self.recounts += 1;
    }

    /// No further chunk is emptied; withheld pieces are to be given back.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// How many free pieces are withheld, when all are sorted.
    pub(super) fn withheld(&self) -> usize {
        self.chunks.iter().filter(|chunk| chunk.fate == Fate::Emptied).map(|chunk| chunk.free).sum()
    }

    /// Bytes of the list of chunks.
    pub(super) fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// Takes some of the withheld pieces out. `None` if there are no more.
    pub(super) fn take_withheld(&mut self) -> Option<Chain> {
        debug_assert!(self.is_sorted() && !self.is_emptying() && !self.is_resting());
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
        // An unused chunk is about to be freed, with the pieces that it withholds.
        let is_unused = chunk.is_unused();
        if let Some(piece) = if is_unused { None } else { chunk.pop_withheld() } {
            chunk.free -= 1;
            return Some(piece);
        }
        if chunk.fate == Fate::Emptied && !is_unused {
            chunk.fate = Fate::Kept;
            self.to_empty -= 1;
        }
        self.given_back += 1;
        None
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
        // The memory of a freed chunk may be another slab's by now, or in a chunk that is not being sorted.
        let is_in = |chunk: &Chunk| chunk.fate != Fate::Freed && chunk.has(piece);
        if SCHEDULED {
            return self.chunks.iter().position(is_in);
        }
        let at = self.chunks.partition_point(|chunk| chunk.base.cast() <= piece).checked_sub(1)?;
        is_in(&self.chunks[at]).then_some(at)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
