//! Objects that were retired when there was neither memory to note them nor room left: they are linked through themselves.
//!
//! Only objects that have a word that nobody reads as long as they wait ([`Retire::link`](super::Retire::link)): entries that
//! have boxes.

use core::ptr::NonNull;

use super::bags::{AGE, Retired};
use super::stamp::Epoch;

/// [`Retire::link`](super::Retire::link) of a retired object.
pub(super) type Link = unsafe fn(*mut ()) -> *mut *mut ();

/// One more than the number of epochs that objects wait for: those of one epoch are in one chain, and no chain is in the way of
/// the next.
const CHAINS: usize = AGE as usize + 1;
const _: () = assert!(CHAINS.is_power_of_two(), "epochs come again after 2^32");

/// Chains, each with the epoch that was read after everything in it was unlinked.
#[derive(Debug, Default)]
pub(super) struct Stranded {
    chains: [Option<(Chain, Epoch)>; CHAINS],
}

/// Objects of one type, each of which leads to the next, and the last to `word`.
#[derive(Debug)]
pub(super) struct Chain {
    first: *mut (),
    free: unsafe fn(*mut ()),
    link: Link,
    /// What each has in that word otherwise. This shows that they are of one type: one type's functions may have several
    /// addresses.
    word: *mut (),
}

// SAFETY: as `Retired`.
unsafe impl Send for Chain {}

impl Stranded {
    /// Adds an object that was unlinked by this epoch, which is not earlier than that of any call before. Returns false if it
    /// has no word for a link, or is of another type than those in the chain.
    ///
    /// # Safety
    ///
    /// The link is that of the retired object, to which nobody else has a claim.
    pub(super) unsafe fn push(&mut self, retired: Retired, link: Link, epoch: Epoch) -> bool {
        let Retired { this, free } = retired;
        // SAFETY: the caller's.
        let Some(at) = NonNull::new(unsafe { link(this) }) else { return false };
        // SAFETY: the caller's: the word is ours.
        let word = unsafe { at.read() };
        let place = &mut self.chains[epoch.nth(CHAINS)];
        match place {
            None => *place = Some((Chain { first: this, free, link, word }, epoch)),
            Some((chain, of)) if chain.word == word => {
                // SAFETY: as above.
                unsafe { at.write(chain.first) };
                chain.first = this;
                // This is an older chain, which nobody has freed since it became old enough; it waits once more.
                *of = epoch;
            }
            Some(_) => return false,
        }
        true
    }

    /// Whether there is a chain.
    pub(super) fn has_any(&self) -> bool {
        self.chains.iter().any(Option::is_some)
    }

    /// Takes a chain that is old enough at this epoch.
    pub(super) fn take_old(&mut self, epoch: Epoch) -> Option<Chain> {
        let is_old = |(_, of): &mut (Chain, Epoch)| epoch.since(*of) >= AGE;
        self.chains.iter_mut().find_map(|chain| chain.take_if(is_old)).map(|(chain, _)| chain)
    }

    /// Takes all chains.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Chain> + use<> {
        core::mem::take(&mut self.chains).into_iter().flatten().map(|(chain, _)| chain)
    }
}

/// Takes the objects out; each gets its word back.
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

    /// A word, and how often the object was freed.
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

    unsafe fn free_too(this: *mut ()) {
        // SAFETY: as for `free`.
        unsafe { free(this) };
    }

    fn retired(thing: &Thing, free: unsafe fn(*mut ())) -> Retired {
        Retired { this: core::ptr::from_ref(thing).cast_mut().cast(), free }
    }

    fn at(n: i32) -> Epoch {
        (0..n).fold(Stamp::first(0), |stamp, _| stamp.next()).epoch()
    }

    fn free_all(chain: Chain) {
        // SAFETY: each is freed once.
        chain.for_each(|Retired { this, free }| unsafe { free(this) });
    }

    #[test]
    fn what_is_linked_comes_out_once_with_its_word_when_it_is_old_enough() {
        let word = core::ptr::from_ref(&0_u8).cast_mut().cast::<()>();
        let other_word = word.wrapping_byte_add(1);
        let things: [Thing; 9] = core::array::from_fn(|_| Thing(Cell::new(word), Cell::new(0)));
        let stranger = Thing(Cell::new(other_word), Cell::new(0));
        let mut stranded = Stranded::default();
        assert!(!stranded.has_any() && stranded.take_all().next().is_none());
        for round in [0, 20] {
            // Three objects at each of three epochs.
            for (thing, n) in things.iter().zip(0..) {
                // With either of two functions, as when two crates have their own copies.
                let free = if n % 2 == 0 { free } else { free_too };
                // SAFETY: a `Thing` begins with its word.
                assert!(unsafe { stranded.push(retired(thing, free), link, at(round + n / 3)) });
            }
            // SAFETY: as above.
            let (no_word, another_type) = unsafe {
                let no_word = stranded.push(retired(&stranger, free), no_link, at(round));
                (no_word, stranded.push(retired(&stranger, free), link, at(round)))
            };
            assert!(!no_word && !another_type && stranded.has_any());
            for n in 0..3 {
                assert!(stranded.take_old(at(round + n + AGE - 1)).is_none());
                free_all(stranded.take_old(at(round + n + AGE)).expect("old enough"));
                let times = |index: usize| things[index].1.get() as i32 - (round > 0) as i32;
                assert!((0..9).all(|index| times(index) == (index as i32 / 3 <= n) as i32));
            }
            assert!(!stranded.has_any() && things.iter().all(|thing| thing.0.get() == word));
        }
    }

    #[test]
    fn what_has_waited_for_too_long_waits_with_what_comes_into_its_place() {
        let word = core::ptr::from_ref(&0_u8).cast_mut().cast::<()>();
        let things: [Thing; 2] = core::array::from_fn(|_| Thing(Cell::new(word), Cell::new(0)));
        let mut stranded = Stranded::default();
        for (thing, n) in things.iter().zip([0, CHAINS as i32]) {
            // SAFETY: a `Thing` begins with its word.
            assert!(unsafe { stranded.push(retired(thing, free), link, at(n)) });
        }
        assert!(stranded.take_old(at(CHAINS as i32 + AGE - 1)).is_none());
        stranded.take_all().for_each(free_all);
        assert!(things.iter().all(|thing| thing.1.get() == 1) && !stranded.has_any());
    }
}
