//! Lists of free pieces: those of one segment, and those that threads gave back.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::engine::try_box;
use crate::sync::SCHEDULED;

/// A free piece.
pub(super) struct Free {
    next: Option<NonNull<Free>>,
}

impl Free {
    /// Puts a free piece at the head of a list.
    pub(super) fn link(piece: NonNull<Free>, head: &mut Option<NonNull<Free>>) {
        // SAFETY: a free piece is its holder's, large enough and aligned for a link.
        unsafe { piece.write(Free { next: *head }) };
        *head = Some(piece);
    }

    /// Takes the piece at the head of a list.
    pub(super) fn unlink(head: &mut Option<NonNull<Free>>) -> Option<NonNull<Free>> {
        let piece = (*head)?;
        // SAFETY: pieces in a list are free and hold a link.
        *head = unsafe { piece.as_ref() }.next;
        Some(piece)
    }
}

/// The addresses of some free pieces, side by side in memory that is not theirs: handing them on does not touch the pieces,
/// whose lines may long have been in another core's cache. Owned by a slab, whose memory they are; dropping a magazine loses
/// nothing but the knowledge that they are free.
#[repr(C)]
pub(crate) struct Magazine {
    pieces: [MaybeUninit<NonNull<Free>>; Self::ROOM],
    /// Last, next to what follows and changes as often.
    len: usize,
}

// SAFETY: free pieces belong to whoever has the magazine.
unsafe impl Send for Magazine {}

impl Default for Magazine {
    fn default() -> Self {
        Magazine { pieces: [const { MaybeUninit::uninit() }; Self::ROOM], len: 0 }
    }
}

impl Magazine {
    /// Most pieces: with their count, four cache lines.
    pub(super) const ROOM: usize = 31;

    /// Whether one more piece fits.
    pub(super) fn has_room(&self) -> bool {
        self.len < Self::ROOM
    }

    /// Adds a piece; there must be room.
    #[inline]
    pub(super) fn push(&mut self, piece: NonNull<Free>) {
        self.pieces[self.len].write(piece);
        self.len += 1;
    }

    /// Takes the last piece.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<NonNull<Free>> {
        let piece = *self.pieces().last()?;
        self.len -= 1;
        Some(piece)
    }

    /// Keeps the pieces for which `keep` returns true; the order is lost.
    pub(super) fn retain(&mut self, keep: impl Fn(NonNull<Free>) -> bool) {
        let all = core::mem::take(self);
        all.pieces().iter().copied().filter(|&piece| keep(piece)).for_each(|piece| self.push(piece));
    }

    /// All pieces.
    #[inline]
    pub(super) fn pieces(&self) -> &[NonNull<Free>] {
        // SAFETY: that many have been written.
        unsafe { core::slice::from_raw_parts(self.pieces.as_ptr().cast(), self.len) }
    }
}

/// The number of linked lists in a [`Chain`]: that many waits for a piece's link, which may be far from the caches, overlap.
const STRANDS: usize = 8;

/// Free pieces that are linked through themselves: any number, without memory for it, but each has to be looked at to get to
/// the next. Owned, and dropped, as a [`Magazine`].
#[derive(Default)]
pub(crate) struct Chain {
    /// Pieces are added to these in turn, and taken in the reverse order: `len` says whose turn it is.
    heads: [Option<NonNull<Free>>; STRANDS],
    len: usize,
}

// SAFETY: free pieces belong to whoever has the chain.
unsafe impl Send for Chain {}

impl Chain {
    /// How many pieces there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Takes the piece that was added last.
    pub(super) fn pop(&mut self) -> Option<NonNull<Free>> {
        self.len = self.len.checked_sub(1)?;
        let piece = Free::unlink(&mut self.heads[self.len % STRANDS]);
        Some(piece.expect("as many pieces are linked as are counted"))
    }

    /// Adds a piece.
    pub(super) fn push(&mut self, piece: NonNull<Free>) {
        Free::link(piece, &mut self.heads[self.len % STRANDS]);
        self.len += 1;
    }

    /// Takes some pieces out, or all if they are few.
    pub(super) fn split(&mut self) -> Chain {
        let mut some = Chain::default();
        (0..Magazine::ROOM).map_while(|_| self.pop()).for_each(|piece| some.push(piece));
        some
    }

    /// Moves all pieces of a magazine into this chain.
    pub(super) fn take_from(&mut self, magazine: &mut Magazine) {
        while let Some(piece) = magazine.pop() {
            self.push(piece);
        }
    }

    /// Moves pieces to a magazine until it is full; returns false if the magazine then has none.
    pub(super) fn fill(&mut self, magazine: &mut Magazine) -> bool {
        while magazine.has_room() {
            let Some(piece) = self.pop() else { break };
            magazine.push(piece);
        }
        magazine.len > 0
    }
}

/// Most magazines that are kept as such: beyond that, their pieces are linked to one another.
const MOST_MAGAZINES: usize = 1024;

/// Pieces that are returned to a place between two steps of a release. Schedules have few.
const PIECES_A_STEP: usize = if SCHEDULED { 2 } else { Magazine::ROOM };
/// Such steps, at one of which the free pieces are counted.
const STEPS_A_SAMPLE: usize = if SCHEDULED { 2 } else { 64 };

/// What a thread that has returned pieces is to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Due {
    Nothing,
    /// A step of a release, if there is one.
    Step,
    /// The same, or a sample of how much is free.
    Sample,
}

/// Pieces that threads gave back.
#[derive(Default)]
pub(super) struct Returned {
    /// How many pieces writers have ever returned. Those that a release puts back do not count.
    pieces: usize,
    /// How many pieces there are now.
    len: usize,
    /// Pieces given back one by one, or a few at a time; and all for which there is no room in `magazines`.
    loose: Chain,
    /// Handed on without a look at the pieces. Each is at least half full.
    #[expect(clippy::vec_box, reason = "they come in boxes")]
    magazines: Vec<Box<Magazine>>,
}

impl Returned {
    /// Adds a piece, and returns what is due.
    pub(super) fn push(&mut self, piece: NonNull<Free>) -> Due {
        self.add(piece);
        self.due_after(1)
    }

    fn due_after(&mut self, more: usize) -> Due {
        let before = self.pieces / PIECES_A_STEP;
        self.pieces = self.pieces.wrapping_add(more);
        match self.pieces / PIECES_A_STEP {
            now if now == before => Due::Nothing,
            now if now % STEPS_A_SAMPLE == 0 => Due::Sample,
            _ => Due::Step,
        }
    }

    fn add(&mut self, piece: NonNull<Free>) {
        self.len += 1;
        self.loose.push(piece);
        if self.loose.len >= Magazine::ROOM && self.has_room() {
            if let Ok(mut magazine) = try_box(Magazine::default()) {
                self.loose.fill(&mut magazine);
                self.magazines.push(magazine);
            }
        }
    }

    /// Whether one more magazine can be kept.
    fn has_room(&mut self) -> bool {
        self.magazines.len() < MOST_MAGAZINES && self.magazines.try_reserve(1).is_ok()
    }

    /// Adds the pieces of a magazine, and returns what is due.
    pub(super) fn push_all(&mut self, mut magazine: Box<Magazine>) -> Due {
        let due = self.due_after(magazine.len);
        self.len += magazine.len;
        if magazine.len > Magazine::ROOM / 2 && self.has_room() {
            self.magazines.push(magazine);
        } else {
            self.loose.take_from(&mut magazine);
        }
        due
    }

    /// Adds the pieces of a chain.
    pub(super) fn push_chain(&mut self, mut chain: Chain) {
        while let Some(piece) = chain.pop() {
            self.add(piece);
        }
    }

    /// Fills an empty magazine; false if there is no piece.
    pub(super) fn fill(&mut self, magazine: &mut Magazine) -> bool {
        assert_eq!(magazine.len, 0, "pieces would be forgotten");
        let has_some = match self.magazines.pop() {
            Some(some) => {
                *magazine = *some;
                true
            }
            None => self.loose.fill(magazine),
        };
        self.len -= magazine.len;
        has_some
    }

    /// How many pieces there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes from the allocator.
    pub(super) fn memory_usage(&self) -> usize {
        self.magazines.capacity() * size_of::<Box<Magazine>>() + self.magazines.len() * size_of::<Magazine>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const ROOM: usize = Magazine::ROOM;

    /// Memory for pieces, and the chain of them.
    fn pieces(n: usize) -> (Vec<Free>, Chain) {
        let mut memory: Vec<Free> = (0..n).map(|_| Free { next: None }).collect();
        let base = NonNull::new(memory.as_mut_ptr()).unwrap();
        let mut chain = Chain::default();
        // SAFETY: within the vector.
        (0..n).for_each(|i| chain.push(unsafe { base.add(i) }));
        (memory, chain)
    }

    /// The pieces, which stay where they are.
    fn pieces_of(chain: &Chain) -> HashSet<NonNull<Free>> {
        // SAFETY: pieces in a chain are free and hold a link.
        let strand =
            |head| core::iter::successors(head, |piece: &NonNull<Free>| unsafe { piece.as_ref() }.next);
        chain.heads.iter().copied().flat_map(strand).collect()
    }

    /// All pieces that `returned` has, magazine by magazine.
    fn all_of(mut returned: Returned) -> HashSet<NonNull<Free>> {
        let mut all = HashSet::new();
        let mut magazine = Magazine::default();
        while returned.fill(&mut magazine) {
            while let Some(piece) = magazine.pop() {
                assert!(all.insert(piece), "twice");
            }
        }
        assert_eq!((returned.magazines.len(), returned.len), (0, 0));
        all
    }

    #[test]
    fn a_magazine_is_four_lines_and_full_at_last() {
        assert_eq!(size_of::<Magazine>(), 32 * size_of::<usize>());
        for n in [0, 1, ROOM - 1, ROOM, ROOM + 1, 3 * ROOM] {
            let (_memory, mut chain) = pieces(n);
            let all = pieces_of(&chain);
            let mut magazine = Magazine::default();
            chain.fill(&mut magazine);
            assert_eq!((magazine.pieces().len(), chain.len()), (n.min(ROOM), n.saturating_sub(ROOM)));
            assert_eq!(
                magazine.pieces().iter().copied().chain(pieces_of(&chain)).collect::<HashSet<_>>(),
                all
            );
            assert_eq!(all.len(), n);
            chain.take_from(&mut magazine);
            assert_eq!((magazine.pop(), chain.len()), (None, n));
        }
    }

    #[test]
    fn magazines_are_few_and_their_memory_is_told() {
        let n = (MOST_MAGAZINES + 10) * ROOM;
        let (_memory, mut chain) = pieces(n);
        let mut returned = Returned::default();
        assert_eq!(returned.memory_usage(), 0);
        while chain.len() > 0 {
            let mut magazine = Box::new(Magazine::default());
            chain.fill(&mut magazine);
            returned.push_all(magazine);
        }
        assert_eq!((returned.magazines.len(), returned.loose.len()), (MOST_MAGAZINES, 10 * ROOM));
        assert!(returned.memory_usage() >= MOST_MAGAZINES * 33 * size_of::<usize>());
        assert_eq!(all_of(returned).len(), n);
        let (_memory, chain) = pieces(n);
        let mut returned = Returned::default();
        returned.push_chain(chain);
        assert_eq!((returned.magazines.len(), returned.loose.len()), (MOST_MAGAZINES, 10 * ROOM));
    }

    #[test]
    fn what_is_given_back_one_by_one_or_in_magazines_comes_back_once() {
        for step in [1, 2, ROOM / 2, ROOM / 2 + 1, ROOM - 1, ROOM] {
            let (_memory, mut chain) = pieces(10 * ROOM);
            let all = pieces_of(&chain);
            let mut returned = Returned::default();
            while chain.len() > 0 {
                let mut magazine = Box::new(Magazine::default());
                (0..step).filter_map(|_| chain.pop()).for_each(|piece| magazine.push(piece));
                if step == 1 {
                    returned.push(magazine.pop().unwrap());
                } else {
                    returned.push_all(magazine);
                }
            }
            assert_eq!(returned.magazines.is_empty(), [2, ROOM / 2].contains(&step), "{step}");
            assert_eq!(all_of(returned), all);
        }
        let (_memory, mut chain) = pieces(2 * ROOM + 1);
        let mut returned = Returned::default();
        while chain.len() > 0 {
            returned.push_chain(chain.split());
        }
        assert_eq!((returned.magazines.len(), returned.loose.len()), (2, 1));
        assert_eq!(all_of(returned).len(), 2 * ROOM + 1);
    }
}
