//! Lists of free pieces: those of one segment, and those that threads gave back.

use core::ptr::NonNull;

/// Most pieces that are handed on together.
pub(super) const REFILL: usize = 32;

/// A free piece.
pub(super) struct Free {
    next: Option<NonNull<Free>>,
}

/// Free pieces, linked through themselves. Owned by a slab, whose memory they are; dropping a list loses nothing but
/// the knowledge that they are free.
#[derive(Default)]
pub(crate) struct Magazine {
    head: Option<NonNull<Free>>,
    len: usize,
}

// SAFETY: free pieces belong to whoever has the list.
unsafe impl Send for Magazine {}

impl Magazine {
    /// How many pieces there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Takes one.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<NonNull<Free>> {
        let piece = self.head?;
        // SAFETY: pieces in a list are free and hold a link.
        self.head = unsafe { piece.as_ref() }.next;
        self.len -= 1;
        Some(piece)
    }

    /// Adds one.
    #[inline]
    pub(super) fn push(&mut self, piece: NonNull<Free>) {
        // SAFETY: a free piece, ours, large enough and aligned for a link.
        unsafe { piece.write(Free { next: self.head }) };
        self.head = Some(piece);
        self.len += 1;
    }

    /// The pieces, which stay where they are.
    pub(super) fn iter(&self) -> impl Iterator<Item = NonNull<Free>> {
        // SAFETY: pieces in a list are free and hold a link.
        core::iter::successors(self.head, |piece| unsafe { piece.as_ref() }.next)
    }

    /// Moves all pieces from `other` to here, one by one.
    pub(crate) fn append(&mut self, other: &mut Magazine) {
        while let Some(piece) = other.pop() {
            self.push(piece);
        }
    }

    /// Takes at most `REFILL` pieces out: all at once if there are no more.
    pub(super) fn split(&mut self) -> Magazine {
        if self.len <= REFILL {
            return core::mem::take(self);
        }
        let mut some = Magazine::default();
        (0..REFILL).filter_map(|_| self.pop()).for_each(|piece| some.push(piece));
        some
    }
}

/// Most lists that are kept as such: beyond that, their pieces are linked to one another.
const MOST_LISTS: usize = 1024;

/// Pieces that threads gave back. Lists of them come and go without a look at the pieces, which may be far away.
#[derive(Default)]
pub(super) struct Returned {
    /// Given back one by one, or a few at a time; and all for which there is no room in `lists`.
    loose: Magazine,
    /// Of 1 to `REFILL` pieces each.
    lists: Vec<Magazine>,
}

impl Returned {
    /// Adds a piece.
    pub(super) fn push(&mut self, piece: NonNull<Free>) {
        self.loose.push(piece);
        if self.loose.len >= REFILL && self.has_room() {
            self.lists.push(self.loose.split());
        }
    }

    /// Whether one more list can be kept.
    fn has_room(&mut self) -> bool {
        self.lists.len() < MOST_LISTS && self.lists.try_reserve(1).is_ok()
    }

    /// Adds a list of at most `REFILL` pieces.
    pub(super) fn push_list(&mut self, mut list: Magazine) {
        debug_assert!(list.len <= REFILL);
        if list.len >= REFILL / 2 && self.has_room() {
            self.lists.push(list);
            return;
        }
        while let Some(piece) = list.pop() {
            self.push(piece);
        }
    }

    /// Takes a list: an empty one if there is no piece.
    pub(super) fn pop_list(&mut self) -> Magazine {
        self.lists.pop().unwrap_or_else(|| self.loose.split())
    }

    /// All lists.
    pub(super) fn into_lists(mut self) -> impl Iterator<Item = Magazine> {
        core::iter::from_fn(move || Some(self.pop_list()).filter(|list| list.len > 0))
    }

    /// Bytes from the allocator.
    pub(super) fn memory_usage(&self) -> usize {
        self.lists.capacity() * size_of::<Magazine>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Memory for pieces, and the list of them.
    fn pieces(n: usize) -> (Vec<Free>, Magazine) {
        let mut memory: Vec<Free> = (0..n).map(|_| Free { next: None }).collect();
        let base = NonNull::new(memory.as_mut_ptr()).unwrap();
        let mut list = Magazine::default();
        // SAFETY: within the vector.
        (0..n).for_each(|i| list.push(unsafe { base.add(i) }));
        (memory, list)
    }

    #[test]
    fn splitting_takes_so_many_and_loses_none() {
        for n in [0, 1, REFILL - 1, REFILL, REFILL + 1, 3 * REFILL] {
            let (_memory, mut list) = pieces(n);
            let all: HashSet<_> = list.iter().collect();
            let some = list.split();
            assert_eq!((some.len(), list.len()), (n.min(REFILL), n.saturating_sub(REFILL)));
            assert_eq!(some.iter().chain(list.iter()).collect::<HashSet<_>>(), all);
            assert_eq!(all.len(), n);
        }
    }

    #[test]
    fn lists_are_few_and_their_memory_is_told() {
        let n = (MOST_LISTS + 10) * REFILL;
        let (_memory, mut list) = pieces(n);
        let mut returned = Returned::default();
        assert_eq!(returned.memory_usage(), 0);
        while list.len() > 0 {
            returned.push_list(list.split());
        }
        assert_eq!((returned.lists.len(), returned.loose.len()), (MOST_LISTS, 10 * REFILL));
        assert!(returned.memory_usage() >= MOST_LISTS * 2 * size_of::<usize>());
        let back = returned.into_lists().map(|list| list.len());
        assert_eq!(back.inspect(|&len| assert!(len <= REFILL)).sum::<usize>(), n);
    }

    #[test]
    fn what_is_given_back_one_by_one_or_in_lists_comes_back_once_in_lists() {
        for step in [1, 2, REFILL / 2 - 1, REFILL / 2, REFILL - 1, REFILL] {
            let (_memory, mut list) = pieces(10 * REFILL);
            let all: HashSet<_> = list.iter().collect();
            let mut returned = Returned::default();
            while list.len() > 0 {
                let mut some = Magazine::default();
                (0..step).filter_map(|_| list.pop()).for_each(|piece| some.push(piece));
                if step == 1 {
                    returned.push(some.pop().unwrap());
                } else {
                    returned.push_list(some);
                }
            }
            let mut back = HashSet::new();
            for list in returned.into_lists() {
                assert!(list.len() <= REFILL);
                list.iter().for_each(|piece| assert!(back.insert(piece)));
            }
            assert_eq!(back, all);
        }
    }
}
