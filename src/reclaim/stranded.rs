//! What was retired when there was neither memory to note it nor room left: it is linked through itself.
//!
//! Only what has a word that nobody reads as long as it waits ([`Retire::link`](super::Retire::link)): entries that have boxes.

use core::ptr::NonNull;

use super::bags::{AGE, Retired};
use super::stamp::Epoch;

/// [`Retire::link`](super::Retire::link) of what was retired.
pub(super) type Link = unsafe fn(*mut ()) -> *mut *mut ();

/// A chain, if there is one, and the epoch after all that is in it was unlinked.
#[derive(Debug, Default)]
pub(super) struct Stranded {
    chain: Option<Chain>,
    epoch: Epoch,
}

/// Things of one type, each of which leads to the next, the last to `word`.
#[derive(Debug)]
pub(super) struct Chain {
    first: *mut (),
    free: unsafe fn(*mut ()),
    link: Link,
    /// What each has in that word otherwise.
    word: *mut (),
}

// SAFETY: as `Retired`.
unsafe impl Send for Chain {}

impl Stranded {
    /// Adds one that was unlinked by this epoch. False: it has no word for a link, or is of another type than those there.
    ///
    /// # Safety
    ///
    /// The link is that of what was retired, to which nobody else has a claim.
    pub(super) unsafe fn push(&mut self, retired: Retired, link: Link, epoch: Epoch) -> bool {
        let Retired { this, free } = retired;
        // SAFETY: the caller's.
        let Some(at) = NonNull::new(unsafe { link(this) }) else { return false };
        match &mut self.chain {
            // SAFETY: the caller's: the word is ours.
            None => self.chain = Some(Chain { first: this, free, link, word: unsafe { at.read() } }),
            Some(chain) if core::ptr::fn_addr_eq(chain.free, free) => {
                // SAFETY: as above.
                unsafe { at.write(chain.first) };
                chain.first = this;
            }
            Some(_) => return false,
        }
        // Of all of them: not earlier than theirs.
        self.epoch = epoch;
        true
    }

    /// Whether there is a chain.
    pub(super) fn has_any(&self) -> bool {
        self.chain.is_some()
    }

    /// The chain, if it is old enough at this epoch.
    pub(super) fn take_old(&mut self, epoch: Epoch) -> Option<Chain> {
        if epoch.since(self.epoch) < AGE { None } else { self.take() }
    }

    /// The chain.
    pub(super) fn take(&mut self) -> Option<Chain> {
        self.chain.take()
    }
}

/// What is taken out has its word again.
impl Iterator for Chain {
    type Item = Retired;

    fn next(&mut self) -> Option<Retired> {
        let this = self.first;
        if this == self.word {
            return None;
        }
        // SAFETY: pushed, with the link of its type, and not taken out yet.
        self.first = unsafe { (self.link)(this).replace(self.word) };
        Some(Retired { this, free: self.free })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::cell::Cell;

    use super::super::stamp::Stamp;
    use super::*;

    /// A word, and how often it was freed.
    #[repr(C)]
    struct Thing(Cell<*mut ()>, Cell<u32>);

    unsafe fn link(this: *mut ()) -> *mut *mut () {
        this.cast()
    }

    unsafe fn no_link(_: *mut ()) -> *mut *mut () {
        core::ptr::null_mut()
    }

    unsafe fn free(this: *mut ()) {
        // SAFETY: a `Thing`.
        let thing = unsafe { &*this.cast::<Thing>() };
        thing.1.set(thing.1.get() + 1);
    }

    unsafe fn free_another(_: *mut ()) {
        unreachable!("there is none");
    }

    #[test]
    fn what_is_linked_comes_out_once_with_its_word_when_the_last_is_old_enough() {
        let word = core::ptr::from_ref(&0_u8).cast_mut().cast::<()>();
        let things: [Thing; 5] = core::array::from_fn(|_| Thing(Cell::new(word), Cell::new(0)));
        let retired =
            |thing: &Thing, free| Retired { this: core::ptr::from_ref(thing).cast_mut().cast(), free };
        let mut stranded = Stranded::default();
        let first = Stamp::first(0);
        let at = |n| (0..n).fold(first, |stamp, _| stamp.next()).epoch();
        assert!(!stranded.has_any() && stranded.take().is_none());
        for round in 1..3 {
            for (thing, n) in things.iter().zip(0..) {
                // SAFETY: a `Thing` begins with its word.
                assert!(unsafe { stranded.push(retired(thing, free), link, at(n)) });
            }
            // SAFETY: as above.
            assert!(!unsafe { stranded.push(retired(&things[0], free), no_link, at(9)) }, "no word");
            // SAFETY: as above.
            let is_taken = unsafe { stranded.push(retired(&things[0], free_another), link, at(9)) };
            assert!(!is_taken, "another type");
            assert!(stranded.has_any() && stranded.take_old(at(4 + AGE - 1)).is_none());
            let chain = stranded.take_old(at(4 + AGE)).expect("old enough");
            // SAFETY: each once.
            chain.for_each(|Retired { this, free }| unsafe { free(this) });
            assert!(things.iter().all(|thing| (thing.0.get(), thing.1.get()) == (word, round)));
            assert!(!stranded.has_any());
        }
    }
}
