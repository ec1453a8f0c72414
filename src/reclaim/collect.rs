//! Collecting: what was retired is gathered in bags, and these are freed when no guard is left that may lead to it [C2], [C5].

use super::bags::{AGE, Bag, Bags, Pile, Retired, free_all, free_bag, is_deep, is_freeing};
use super::epochs::{BAGS, Collector, Older};
use super::postponed;
use super::stamp::Stamp;
use super::stranded::Link;
use crate::record::{Extent, Record};
use crate::sync::Mutex;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::{reentry, seats};

/// Objects that are freed when one is retired: no thread is kept from its own work for long.
const FREED_AT_ONCE: usize = 2;
/// Bags that are freed when one is sealed and too many wait: several times as many as are added, and in bounded time.
const FREED_WHEN_MANY: usize = 8;
// So if lists are looked at in turn, one at each seal, as much is freed from them as is added.
const _: () = assert!(FREED_WHEN_MANY >= BAGS);
/// Bags that are freed when one is sealed under a map's lock, where nothing is freed otherwise.
const FREED_WITH_CARE: usize = 4;

/// After every so many seals of a list, one of all lists, in turn, is checked for being forsaken; after each seal if too many
/// bags wait.
const LOOKS_AROUND: usize = 8;

impl Collector {
    /// Frees `retired` when no guard older than now lives [C2]. `record` is that of the caller's guard, if it is one that
    /// advances look at and the guard has it to itself.
    ///
    /// # Safety
    ///
    /// As [`Guard::retire`](super::Guard::retire).
    pub(super) unsafe fn retire(&self, retired: Retired, link: Link, record: Option<&Record>) {
        let bags = &self.bags[seats::number() % BAGS];
        // In a closure under some map's lock, objects are freed only seldom, and many at once.
        let is_careful = is_deep() || reentry::holds_a_lock();
        let (old, sealed) = {
            let mut bags = bags.lock();
            if !bags.has_room(self.size) && !self.seal(&mut bags) {
                drop(bags);
                // SAFETY: the caller's.
                return unsafe { self.retire_without_memory(retired, link, is_careful) };
            }
            let is_full = bags.push(retired, self.size);
            if is_full {
                self.seal(&mut bags);
            }
            let old = if is_careful { Bag::new() } else { self.take_old(&mut bags, FREED_AT_ONCE) };
            let pile = is_full.then(|| bags.pile()).flatten();
            (old, pile)
        };
        // Unlocked: destructors may retire.
        if !old.is_empty() {
            free_all(old);
        }
        if let Some(pile) = sealed.filter(|_| !is_deep()) {
            self.collect(bags, pile, record, is_careful);
        }
    }

    /// Frees what it can, whether it is time or not, and puts `retired` into whichever list then has room; if none has,
    /// `retired` waits with others of its kind, linked through itself.
    ///
    /// # Safety
    ///
    /// As [`Guard::retire`](super::Guard::retire).
    #[cold]
    #[inline(never)]
    unsafe fn retire_without_memory(&self, retired: Retired, link: Link, is_careful: bool) {
        // No further: the thread that retires has a guard. The next time it will be another guard.
        let _ = self.advance();
        let most = match is_careful {
            _ if is_deep() => 0,
            true => FREED_WITH_CARE,
            false => usize::MAX,
        };
        self.bags.iter().for_each(|bags| self.free_old(bags, most));
        if most == usize::MAX {
            self.free_stranded();
        }
        for bags in &self.bags {
            let mut bags = bags.lock();
            if bags.has_room(self.size) || self.seal(&mut bags) {
                bags.push(retired, self.size);
                if !bags.has_room(self.size) {
                    // As soon as possible: its age counts from then on.
                    self.seal(&mut bags);
                }
                return;
            }
        }
        // There has been no memory for some time, and some guard has lived for longer. To wait for the guards that may lead to
        // the object might mean waiting for this thread itself. An object that has no word for a link is never freed.
        let mut stranded = self.stranded.lock();
        // Relaxed: as in `seal`.
        // SAFETY: the caller's.
        if unsafe { stranded.push(retired, link, self.stamp(Relaxed).epoch()) } {
            self.has_stranded.store(true, Relaxed);
        }
    }

    /// Frees what was retired when there was neither memory nor room, as far as it is old enough.
    pub(super) fn free_stranded(&self) {
        if !self.has_stranded.load(Relaxed) {
            return;
        }
        loop {
            let old = {
                let mut stranded = self.stranded.lock();
                // Acquire: as in `take_old`.
                let old = stranded.take_old(self.stamp(Acquire).epoch());
                self.has_stranded.store(stranded.has_any(), Relaxed);
                old
            };
            // Unlocked: destructors may retire.
            match old {
                Some(old) => free_all(old),
                None => return,
            }
        }
    }

    /// Called by a thread that has just sealed a bag, under the guard of this record: advances if it is time, and frees some
    /// bags.
    fn collect(
        &self,
        bags: &Mutex<Bags>,
        Pile { len, oldest, last_of_many, seals }: Pile,
        record: Option<&Record>,
        is_careful: bool,
    ) {
        let is_crowded = self.crowd.is_too_much(len, self.size);
        // If the oldest bag may be freed already, that needs no barrier. But if something is left to others, that may be freed
        // already, and says nothing about what came later.
        let oldest = if self.owed() == Stamp::NONE.bits() { oldest } else { last_of_many };
        let is_stuck = is_crowded && self.stamp(Relaxed).epoch().since(oldest) < AGE;
        if is_stuck || self.pace.is_due() {
            let older = self.advance().err().flatten();
            if let Some(older) = older.filter(|_| is_stuck) {
                self.leave_to(&older, record, is_careful);
            }
        }
        if !is_careful {
            self.free_stranded();
        }
        let most = if is_careful { FREED_WITH_CARE } else { FREED_WHEN_MANY };
        if is_careful || is_crowded {
            self.free_old(bags, most);
        }
        // Some of the bags that crowd it may be forsaken, or all: then this frees at least as much as is added.
        let looks_at_each = is_crowded || !is_careful && self.crowd.is_left_full(self.size);
        if looks_at_each || seals % LOOKS_AROUND == 0 {
            let turn = if looks_at_each { seals } else { seals / LOOKS_AROUND };
            self.free_forsaken(&self.bags[turn % BAGS], most);
        }
    }

    /// Lets a guard that is in the way go on with the work: perhaps nobody retires any more once it has left. Called by a
    /// thread that has just sealed a bag under the guard of this record.
    fn leave_to(&self, older: &Older<'_>, record: Option<&Record>, is_careful: bool) {
        if let Some(own) = record.filter(|own| older.is_of(own)) {
            // No other thread, which might not see this, ends that guard.
            own.call_itself_for(self.number());
        } else if older.is_awaited() || self.await_leaving(older, Extent::Share) {
            // That guard will go on.
        } else if is_careful {
            // Too much may be waiting to be freed under some map's lock.
            self.postpone(Extent::Share);
        } else {
            self.follow_now_or_later(Extent::Share);
        }
    }

    /// Takes up to `most` objects out of the oldest bag, if that is old enough.
    fn take_old(&self, bags: &mut Bags, most: usize) -> Bag {
        // Acquire: pairs with the exchange in `advance`: no guard is left, and its reads came before.
        bags.take_old(self.stamp(Acquire).epoch(), most, &self.crowd)
    }

    /// Notes when what is in the open bag was unlinked: not later than now. Returns false if there is no memory for that.
    fn seal(&self, bags: &mut Bags) -> bool {
        // Relaxed: the thread that retired has passed a light barrier, when its guard was entered. If the advance over the next
        // epoch does not see that guard, its heavy barrier has shown us what came before.
        bags.seal(self.stamp(Relaxed).epoch(), &self.crowd)
    }

    /// Frees up to `most` bags that are old enough.
    fn free_old(&self, bags: &Mutex<Bags>, most: usize) {
        for _ in 0..most {
            let old = self.take_old(&mut bags.lock(), usize::MAX);
            if old.is_empty() {
                return;
            }
            // Unlocked: destructors may retire.
            free_bag(old);
        }
    }

    /// Frees some bags of a list whose threads seem to have ended, or to write no more; and seals a bag that they have left
    /// open.
    fn free_forsaken(&self, bags: &Mutex<Bags>, most: usize) {
        let is_forsaken = {
            let mut bags = bags.lock();
            if bags.is_left_open() {
                // The list will be looked at again.
                self.seal(&mut bags);
            }
            // Relaxed: when a bag is freed, its age is checked again.
            bags.is_forsaken(self.stamp(Relaxed).epoch())
        };
        if is_forsaken {
            self.free_old(bags, most);
        }
    }

    /// Frees what was retired until now, or returns false and leaves that to the last thread that could still look at it [C5].
    pub(crate) fn flush(&self) -> bool {
        self.seal_all();
        // Relaxed: a thread that is called sees it, if its own barrier comes after the one that follows the call. If it happens
        // to see the call before that, and not this store, we find its guard gone, or the call answered, and go on ourselves.
        self.stamp(Relaxed).raise(&self.flushed);
        if is_deep() {
            // The call that frees further out goes on with it. A thread without records cannot be told; then the next flush
            // does it.
            self.postpone(Extent::All);
        }
        self.follow_now_or_later(Extent::All);
        !self.has_sealed()
    }

    pub(super) fn seal_all(&self) {
        for bags in &self.bags {
            let mut bags = bags.lock();
            if bags.has_open() {
                self.seal(&mut bags);
            }
        }
    }

    /// Advances as far as needed and frees, as a call asks for; does so again if what was freed has asked for it deep in
    /// destructors. Returns what the kernel has refused, and nobody will go on with.
    pub(super) fn follow(&self, mut extent: Extent) -> Option<Extent> {
        if is_deep() {
            return None;
        }
        loop {
            if !self.follow_once(extent) {
                return Some(extent);
            }
            extent = postponed::take(self.number())?;
        }
    }

    /// The same; if the kernel refuses, it is done when the next guard leaves on this thread.
    fn follow_now_or_later(&self, extent: Extent) {
        if let Some(refused) = self.follow(extent) {
            self.postpone(refused);
        }
    }

    fn follow_once(&self, extent: Extent) -> bool {
        let mut refused = false;
        let mut advances = 0;
        while advances < AGE && self.has_sealed() {
            match self.advance() {
                Ok(()) => advances += 1,
                Err(Some(older)) if !self.await_leaving(&older, extent.of_others()) => {}
                Err(older) => {
                    refused = older.is_none();
                    break;
                }
            }
        }
        match extent {
            Extent::Share => {}
            Extent::Possible => self.free(),
            Extent::All => self.free_flushed(),
        }
        if self.has_sealed() {
            self.leave_to_others();
            self.pay();
        }
        self.free_stranded();
        !refused
    }

    /// Leaves what is sealed to threads whose guards leave.
    pub(super) fn leave_to_others(&self) {
        // Relaxed: the age of a bag is checked again when it is freed.
        self.stamp(Relaxed).raise(&self.told.owed);
    }

    /// Frees what was sealed before the last flush began, as far as it is old enough. A thread that is called in vain, or late,
    /// frees no more than that.
    fn free_flushed(&self) {
        let flushed = Stamp::from_bits(self.flushed.load(Relaxed));
        if flushed == Stamp::NONE {
            return;
        }
        for bags in &self.bags {
            loop {
                let old = {
                    let mut bags = bags.lock();
                    let is_flushed = bags.has_any_of(flushed.epoch());
                    if is_flushed { self.take_old(&mut bags, usize::MAX) } else { Bag::new() }
                };
                if old.is_empty() {
                    break;
                }
                // Unlocked: destructors may retire.
                free_bag(old);
            }
        }
    }

    /// Frees what is old enough already, of the objects that found room in bags.
    pub(super) fn free(&self) {
        for bags in &self.bags {
            // Not bags that others seal meanwhile.
            let sealed = bags.lock().sealed();
            // One more, for a bag that was closed.
            self.free_old(bags, sealed + 1);
        }
    }

    /// Frees a bag of what is left to threads whose guards leave, and leaves the rest to the next one. Not under some map's
    /// lock; nor by guards of destructors: a thread that is freeing has enough to free.
    pub(super) fn pay(&self) {
        if self.owed() == Stamp::NONE.bits() || is_freeing() || reentry::holds_a_lock() {
            return;
        }
        // Relaxed: whoever has sealed what is left in some list has held its lock before us; see [C5]. This comes before the
        // look at the lists: what is left from now on is not overlooked.
        let owed = Stamp::from_bits(self.told.owed.swap(Stamp::NONE.bits(), Relaxed));
        if owed == Stamp::NONE {
            return;
        }
        let first = seats::number();
        let lists = (0..BAGS).map(|n| &self.bags[(first + n) % BAGS]);
        let mut old = Bag::new();
        for bags in lists {
            let mut bags = bags.lock();
            if old.is_empty() {
                old = self.take_old(&mut bags, usize::MAX);
            }
            // Even if this thread has not yet seen an epoch at which they are old enough.
            if bags.has_old(owed.epoch()) {
                drop(bags);
                owed.raise(&self.told.owed);
                break;
            }
        }
        // Unlocked: destructors may retire.
        free_bag(old);
    }

    /// Makes memory unavailable from now on.
    #[cfg(any(loom, shuttle, test))]
    pub(super) fn lack_memory(&self) {
        self.bags.iter().for_each(|bags| bags.lock().lacks_memory = true);
    }

    /// How many objects were retired and are not freed yet, without those that were stranded for want of memory. Locks one list
    /// after the other, and looks at each of its bags.
    #[cfg_attr(loom, allow(dead_code, reason = "the tables have the stand-in's"))]
    pub(crate) fn waiting(&self) -> usize {
        self.bags.iter().map(|bags| bags.lock().len()).sum()
    }

    fn has_sealed(&self) -> bool {
        self.bags.iter().any(|bags| bags.lock().has_sealed()) || self.has_stranded.load(Relaxed)
    }
}
