//! Reclamation by epochs (Fraser, Practical lock-freedom, 2004, section 5.2.3), with an asymmetric barrier.
//!
//! What was unlinked at epoch `n` is freed at epoch `n + 3`. The epoch advances when every guard that lives was entered in it,
//! so that guards, too, are of this epoch or the one before. To enter and to leave costs a thread a few plain stores to a
//! [`Record`] of its own: no locked instruction and, where the kernel helps, no fence. `docs/design.md` argues [C1]..[C5].

use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crossbeam_utils::CachePadded;

use super::bags::{AGE, Bag, Bags, FEW, Pile, Retired, free_all, is_deep};
use super::barrier::Barrier;
use super::crowd::{Crowd, Room};
use super::pace::{LONGEST, Pace, REST};
use super::sealed::Sealed;
use super::stamp::Stamp;
use super::stranded::{Link, Stranded};
use super::{Guard, Retire, postponed};
use crate::record::{AWAITED, ENDED, INCOMPLETE, POSTPONED, Record, Records, SHARES};
use crate::sync::Ordering::{self, Acquire, Relaxed, Release};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, Mutex, SCHEDULED, global, step};
use crate::{reentry, seats};

/// Lists of bags; as many threads retire without meeting.
pub(super) const BAGS: usize = if SCHEDULED { 2 } else { 8 };
/// Objects in a bag that is sealed; [`FEW`], if each of them stands for many.
pub(super) const MANY: usize = 32;
/// Objects that are freed when one is retired: no thread is kept from its own business for long.
const FREED_AT_ONCE: usize = 2;
/// Bags that are freed when one is sealed and too many wait: some times as many as come, and a bounded time.
const FREED_WHEN_MANY: usize = 8;
/// Bags that are freed when one is sealed under a map's lock, where nothing is freed otherwise; half of those that wait, where
/// these are more.
const FREED_WITH_CARE: usize = 4;

/// At each so many seals of a list one of all, in turn, is looked at: whether it is forsaken. At each, where too many wait.
const LOOKS_AROUND: usize = 8;

/// What retired memory belongs to: one for each map.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Which one it is, and its epoch: a [`Stamp`].
    stamp: CachePadded<AtomicU64>,
    barrier: Barrier,
    pace: CachePadded<Pace>,
    /// The first record of guards that are not bound to a thread; each leads to the next.
    owned: AtomicPtr<OwnedRecord>,
    bags: [CachePadded<Mutex<Bags>>; BAGS],
    /// Objects in a bag that is sealed.
    size: usize,
    /// What has come when there was neither memory nor room.
    stranded: Mutex<Stranded>,
    /// Whether that is any. Stored under its lock. Relaxed, always: who flushes sees what was retired before, and others will.
    has_stranded: AtomicBool,
    crowd: CachePadded<Crowd>,
}

global! {
    /// How many collectors have been made.
    static MADE: AtomicU64 = AtomicU64::new(0);
}

/// A guard that holds up an advance.
#[derive(Debug)]
pub(super) struct Older<'c> {
    record: &'c Record,
    entered: Stamp,
}

/// A record that is lent to one owned guard after the other.
#[derive(Debug, Default)]
struct OwnedRecord {
    record: CachePadded<Record>,
    is_lent: AtomicBool,
    next: AtomicPtr<OwnedRecord>,
}

impl Collector {
    /// A collector that frees after some hundreds of retirements of one thread, or `soon` after some dozens; later, if there is
    /// `room` for more that wait.
    pub(crate) fn new(soon: bool, room: Option<Room>) -> Self {
        Self::at(Pace::new(REST, LONGEST), soon, room)
    }

    /// The same, at this pace.
    pub(super) fn at(pace: Pace, soon: bool, room: Option<Room>) -> Self {
        Collector {
            stamp: CachePadded::new(AtomicU64::new(Stamp::first(MADE.fetch_add(1, Relaxed)).bits())),
            barrier: Barrier::new(),
            pace: CachePadded::new(pace),
            owned: AtomicPtr::new(core::ptr::null_mut()),
            bags: core::array::from_fn(|_| CachePadded::new(Mutex::new(Bags::default()))),
            size: if soon { FEW } else { MANY },
            stranded: Mutex::new(Stranded::default()),
            has_stranded: AtomicBool::new(false),
            crowd: CachePadded::new(Crowd::new(room)),
        }
    }

    /// A guard bound to this thread [C1].
    #[inline]
    pub(crate) fn enter(&self) -> LocalGuard<'_> {
        match seats::first_record() {
            Some(record) if record.is_idle() => {
                self.announce(record);
                LocalGuard { collector: self, record, here: PhantomData }
            }
            _ => self.enter_beside(),
        }
    }

    /// A guard of a thread that has others, or has had none yet, or where the light barrier is to be completed.
    #[cold]
    #[inline(never)]
    fn enter_beside(&self) -> LocalGuard<'_> {
        let records = seats::my_records();
        let record = match records.own().find(|record| record.is_idle()) {
            Some(record) => {
                self.take(record);
                record
            }
            None => self.share(records),
        };
        LocalGuard { collector: self, record, here: PhantomData }
    }

    /// Announces a guard in an idle record of this thread.
    fn take(&self, record: &Record) {
        if self.barrier.is_to_be_completed() {
            record.call(INCOMPLETE);
        } else {
            seats::offer_first_record();
        }
        self.announce(record);
        self.barrier.complete_light();
    }

    /// Adds a guard to those of this thread that share a record; what it has in its place.
    fn share(&self, records: &'static Records) -> &'static Record {
        // Relaxed: any guard of ours protects what a later one finds. But it is not one of an older epoch, if that can be told:
        // where each is entered before the last one leaves, their record would never be idle, and hold up the next for ever.
        let now = self.stamp(Relaxed).bits();
        // Relaxed: the thread's own.
        let shared = records.shared().find(|shared| shared.record.stamp.load(Relaxed) == now);
        let shared = shared.unwrap_or_else(|| {
            let idle = records.shared().find(|shared| shared.record.is_idle());
            let shared = idle.unwrap_or_else(|| records.add());
            self.take(&shared.record);
            shared
        });
        shared.join()
    }

    fn stamp(&self, ordering: Ordering) -> Stamp {
        Stamp::from_bits(self.stamp.load(ordering))
    }

    /// What tells it from others.
    fn number(&self) -> u32 {
        // Relaxed: it never changes.
        self.stamp(Relaxed).number()
    }

    /// A guard that may move between threads [C1].
    pub(crate) fn enter_owned(&self) -> OwnedGuard<'_> {
        let lent = self.owned_records().find(|owned| {
            // Acquire: pairs with the store in the guard's drop: the record is as that left it.
            !owned.is_lent.load(Relaxed)
                && owned.is_lent.compare_exchange(false, true, Acquire, Relaxed).is_ok()
        });
        let owned = lent.unwrap_or_else(|| self.add_owned_record());
        self.announce(&owned.record);
        self.barrier.complete_light();
        OwnedGuard { collector: self, owned }
    }

    fn owned_records(&self) -> impl Iterator<Item = &OwnedRecord> {
        // Acquire, and in the links: pairs with the exchange in `add_owned_record`.
        let mut next = self.owned.load(Acquire);
        core::iter::from_fn(move || {
            // SAFETY: records are freed with the collector.
            let owned = unsafe { next.as_ref() }?;
            next = owned.next.load(Acquire);
            Some(owned)
        })
    }

    #[cold]
    fn add_owned_record(&self) -> &OwnedRecord {
        let new = OwnedRecord { is_lent: AtomicBool::new(true), ..OwnedRecord::default() };
        if self.barrier.is_to_be_completed() {
            new.record.call(INCOMPLETE);
        }
        // The pointer of the box, which is to be one again: a reference would lead to less.
        let raw = Box::into_raw(Box::new(new));
        // SAFETY: freed with the collector.
        let new = unsafe { &*raw };
        let mut first = self.owned.load(Relaxed);
        loop {
            // Published by the exchange.
            new.next.store(first, Relaxed);
            // Release: pairs with the loads in `owned_records`.
            match self.owned.compare_exchange(first, raw, Release, Relaxed) {
                Ok(_) => return new,
                Err(other) => first = other,
            }
        }
    }

    /// Whoever advances the epoch sees this record, or we see what was unlinked before; where the light barrier is to be
    /// completed, when it has been.
    #[inline(always)]
    fn announce(&self, record: &Record) {
        // Acquire: pairs with the exchange in `advance`: what its barrier saw unlinked, we do not find. The light barrier below
        // is no substitute: one heavy barrier reaches us sooner than whoever unlinks.
        let stamp = self.stamp.load(Acquire);
        step();
        // Release: pairs with the load in `older_guard`: who sees it has seen the guards before leave, of whichever collector,
        // and what they read.
        record.stamp.store(stamp, Release);
        // Pairs with the heavy one in `advance`.
        Barrier::light();
    }

    /// The guard of a record has gone.
    #[inline(always)]
    fn leave(&self, record: &Record) {
        // Release: pairs with the load in `older_guard`: what we have read is freed after we have read it.
        record.stamp.store(0, Release);
        step();
        // Pairs with the heavy one in `await_leaving`.
        Barrier::light();
        if record.calls.load(Relaxed) != 0 {
            self.leave_on_call(record);
        }
    }

    /// The guard of a record has gone, and that is not all.
    #[cold]
    fn leave_on_call(&self, record: &Record) {
        if record.calls.load(Relaxed) & SHARES != 0 {
            return self.leave_shared(record);
        }
        self.barrier.complete_light();
        // Not in a closure under the lock of some map: who only reads there does not expect that others' destructors run.
        if is_deep() || reentry::is_writing_any() {
            let is_awaited = record.calls.load(Relaxed) & AWAITED != 0;
            if is_awaited && postponed::postpone(self.number()) {
                record.uncall(AWAITED);
            }
            if record.calls.load(Relaxed) & ENDED != 0 {
                seats::left_late(record);
            }
            return;
        }
        let calls = record.uncall(AWAITED);
        if calls & ENDED != 0 {
            // First: what is freed may enter guards.
            seats::left_late(record);
        }
        let was_postponed = calls & POSTPONED != 0 && postponed::is_to_follow(self.number());
        if (calls & AWAITED != 0 || was_postponed) && !self.collect_all() {
            record.call_for(self.number());
        }
    }

    /// A guard has gone that shared a record, of which this is the proxy.
    #[inline(never)]
    fn leave_shared(&self, proxy: &Record) {
        let shared = seats::shared_record(proxy);
        if shared.part() {
            self.leave(&shared.record);
        }
    }

    /// Advances the epoch, unless a guard of an older one lives: that one then.
    pub(super) fn advance(&self) -> Result<(), Option<Older<'_>>> {
        // Relaxed: the heavy barrier makes it an Acquire of the exchange below, by whoever advanced to here.
        let now = self.stamp(Relaxed);
        // Whom we see without a barrier we need none for.
        self.older_guard(now)?;
        // Pairs with the light one in `announce`.
        if !self.pace.pass(|| self.barrier.heavy()) {
            return Err(None);
        }
        step();
        self.older_guard(now)?;
        // Release: pairs with the loads of whoever frees, and enters, in the next epoch. Somebody else may have been faster.
        let _ = self.stamp.compare_exchange(now.bits(), now.next().bits(), Release, Relaxed);
        Ok(())
    }

    /// Fails with a guard of ours that was not entered in the epoch that is `now`.
    fn older_guard(&self, now: Stamp) -> Result<(), Option<Older<'_>>> {
        let threads = seats::records().map(|record| -> &Record { record });
        let owned = self.owned_records().map(|owned| -> &Record { &owned.record });
        let mut guards = threads.chain(owned).map(|record| {
            // Acquire: pairs with the stores of `announce` and `leave`.
            Older { record, entered: Stamp::from_bits(record.stamp.load(Acquire)) }
        });
        match guards.find(|guard| guard.entered.holds_up(now)) {
            Some(older) => Err(Some(older)),
            None => Ok(()),
        }
    }

    /// Frees `retired` when no guard older than now lives [C2].
    ///
    /// # Safety
    ///
    /// As [`Guard::retire`].
    unsafe fn retire(&self, retired: Retired, link: Link) {
        let bags = &self.bags[seats::number() % BAGS];
        // In a closure under some map's lock what is freed is freed all at once, seldom.
        let is_careful = is_deep() || reentry::is_writing_any();
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
            self.collect(bags, pile, is_careful);
        }
    }

    /// Frees what it can, whether it is time or not, and puts `retired` into whichever list has room then; if none has, it
    /// waits with others of its kind, linked through itself.
    ///
    /// # Safety
    ///
    /// As [`Guard::retire`].
    #[cold]
    #[inline(never)]
    unsafe fn retire_without_memory(&self, retired: Retired, link: Link, is_careful: bool) {
        // Not further: whoever retires has a guard. The next time that is another one.
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
                    // As soon as can be: its age counts from then on.
                    self.seal(&mut bags);
                }
                return;
            }
        }
        // There has been no memory for some time, and some guard has been there for longer. To wait for the guards that may
        // lead to it might be to wait for this thread itself. What has no word for a link is never freed.
        let mut stranded = self.stranded.lock();
        // Relaxed: as in `seal`.
        // SAFETY: the caller's.
        if unsafe { stranded.push(retired, link, self.stamp(Relaxed).epoch()) } {
            self.has_stranded.store(true, Relaxed);
        }
    }

    /// Frees what has come when there was neither memory nor room, if the last of it is old enough.
    fn free_stranded(&self) {
        if !self.has_stranded.load(Relaxed) {
            return;
        }
        let old = {
            let mut stranded = self.stranded.lock();
            // Acquire: as in `take_old`.
            let old = stranded.take_old(self.stamp(Acquire).epoch());
            self.has_stranded.store(stranded.has_any(), Relaxed);
            old
        };
        // Unlocked: destructors may retire.
        if let Some(old) = old {
            free_all(old);
        }
    }

    /// By whoever has just sealed a bag: advances if it is time, and frees some bags.
    fn collect(&self, bags: &Mutex<Bags>, Pile { len, oldest, seals }: Pile, is_careful: bool) {
        let is_crowded = self.crowd.is_too_much(len, self.size);
        // Whoever finds that the oldest is free to go needs no barrier for that.
        let is_stuck = is_crowded && self.stamp(Relaxed).epoch().since(oldest) < AGE;
        if is_stuck || self.pace.is_due() {
            match self.advance() {
                // Maybe nobody retires any more once it has left.
                Err(Some(older))
                    if is_stuck
                        && older.record.calls.load(Relaxed) & AWAITED == 0
                        && !self.await_leaving(&older) =>
                {
                    if is_careful {
                        // All that waits is too much to free under some map's lock.
                        postponed::postpone(self.number());
                    } else {
                        self.collect_all();
                    }
                }
                _ => {}
            }
        }
        if !is_careful {
            self.free_stranded();
        }
        let most = if is_careful { FREED_WITH_CARE } else { FREED_WHEN_MANY };
        if is_careful {
            self.free_old(bags, most.max(len / 2));
        } else if is_crowded {
            self.free_old(bags, most);
        }
        // Of those that crowd it some may be forsaken.
        if is_crowded || seals % LOOKS_AROUND == 0 {
            let turn = if is_crowded { seals } else { seals / LOOKS_AROUND };
            self.free_forsaken(&self.bags[turn % BAGS], most);
        }
    }

    /// Takes up to so many objects out of the oldest bag, if that is old enough.
    fn take_old(&self, bags: &mut Bags, most: usize) -> Bag {
        // Acquire: pairs with the exchange in `advance`: no guard is left, and its reads came before.
        bags.take_old(self.stamp(Acquire).epoch(), most, &self.crowd)
    }

    /// Notes when what is in the open bag was unlinked: not later than now. False: there is no memory for that.
    fn seal(&self, bags: &mut Bags) -> bool {
        // Relaxed: who retired has passed a light barrier, when its guard was entered. What the advance over the next
        // epoch does not see of that guard, its heavy barrier has shown to us.
        bags.seal(self.stamp(Relaxed).epoch(), &self.crowd)
    }

    /// Frees up to so many bags that are old enough.
    fn free_old(&self, bags: &Mutex<Bags>, most: usize) {
        for _ in 0..most {
            let old = self.take_old(&mut bags.lock(), usize::MAX);
            if old.is_empty() {
                return;
            }
            // Unlocked: destructors may retire.
            free_all(old);
        }
    }

    /// Frees some bags of a list whose threads seem to have gone, or to write no more; and seals one that they have left open.
    fn free_forsaken(&self, bags: &Mutex<Bags>, most: usize) {
        let is_forsaken = {
            let mut bags = bags.lock();
            if bags.is_left_open() {
                // It is looked at again.
                self.seal(&mut bags);
            }
            // Relaxed: when it is freed, its age is looked at again.
            bags.is_forsaken(self.stamp(Relaxed).epoch())
        };
        if is_forsaken {
            self.free_old(bags, most);
        }
    }

    /// Frees what was retired until now, or lets the last one do it who could still look at it [C5].
    pub(crate) fn flush(&self) {
        self.seal_all();
        if is_deep() {
            // Whoever frees further out goes on with it. A thread without records cannot be told; then the next flush does.
            postponed::postpone(self.number());
        }
        self.collect_all();
    }

    pub(super) fn seal_all(&self) {
        for bags in &self.bags {
            let mut bags = bags.lock();
            if bags.has_open() {
                self.seal(&mut bags);
            }
        }
    }

    /// Advances as far as that takes, and frees; again, if what was freed has asked for it deep in destructors. False: the
    /// kernel has refused, and nobody will go on with it.
    fn collect_all(&self) -> bool {
        if is_deep() {
            return true;
        }
        loop {
            let passed = self.collect_once();
            if !passed || !postponed::take(self.number()) {
                return passed;
            }
        }
    }

    fn collect_once(&self) -> bool {
        let mut refused = false;
        let mut advances = 0;
        while advances < AGE && self.has_sealed() {
            match self.advance() {
                Ok(()) => advances += 1,
                Err(Some(older)) if !self.await_leaving(&older) => {}
                Err(older) => {
                    refused = older.is_none();
                    break;
                }
            }
        }
        self.bags.iter().for_each(|bags| self.free_old(bags, usize::MAX));
        self.free_stranded();
        !refused
    }

    /// Frees what is old enough already.
    #[cfg(any(loom, shuttle))]
    pub(super) fn free(&self) {
        self.bags.iter().for_each(|bags| self.free_old(bags, usize::MAX));
        self.free_stranded();
    }

    /// From now on there is no memory.
    #[cfg(any(loom, shuttle))]
    pub(super) fn lack_memory(&self) {
        self.bags.iter().for_each(|bags| bags.lock().lacks_memory = true);
    }

    fn has_sealed(&self) -> bool {
        self.bags.iter().any(|bags| bags.lock().has_sealed()) || self.has_stranded.load(Relaxed)
    }

    /// Whether a guard lives on, and will collect when it leaves.
    fn await_leaving(&self, Older { record, entered }: &Older<'_>) -> bool {
        step();
        record.call_for(self.number());
        step();
        // Pairs with the light one in `leave`: either that has been seen here, or it will see that it is awaited.
        // If the kernel refuses, it may have been seen or not. It counts as living on: to try again might be to wait for
        // this thread itself.
        let passed = self.pace.pass(|| self.barrier.heavy());
        // Acquire: pairs with the store in `announce`: of another guard that was entered as early it is seen that one before
        // has answered the call, maybe another collector's.
        let is_there = || record.stamp.load(Acquire) == entered.bits();
        // As told, after the load before. Not by a call for another collector, which comes after ours was answered.
        let is_called = || {
            step();
            record.is_called_for(self.number())
        };
        !passed || is_there() && is_called()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // [C3]: `&mut self`: no guard is left.
        for bags in &self.bags {
            let bags = core::mem::take(&mut *bags.lock());
            bags.into_all().for_each(free_all);
        }
        let stranded = self.stranded.lock().take();
        stranded.into_iter().for_each(free_all);
        let mut next = self.owned.load(Relaxed);
        while !next.is_null() {
            // SAFETY: from a box, and nobody looks at it any more.
            let owned = unsafe { Box::from_raw(next) };
            next = owned.next.load(Relaxed);
        }
    }
}

/// A guard bound to its thread: neither `Send` nor `Sync`. To enter another on the same thread searches the thread's records.
pub struct LocalGuard<'c> {
    collector: &'c Collector,
    record: &'c Record,
    here: PhantomData<*mut ()>,
}

/// A guard that may be sent and shared.
pub struct OwnedGuard<'c> {
    collector: &'c Collector,
    owned: &'c OwnedRecord,
}

/// A panic in user code leaves what it guards whole.
impl UnwindSafe for LocalGuard<'_> {}
/// A panic in user code leaves what it guards whole.
impl RefUnwindSafe for LocalGuard<'_> {}
/// A panic in user code leaves what it guards whole.
impl UnwindSafe for OwnedGuard<'_> {}
/// A panic in user code leaves what it guards whole.
impl RefUnwindSafe for OwnedGuard<'_> {}

/// [`Retire::link`] of what is a `T`.
///
/// # Safety
///
/// As for that.
unsafe fn link<T: Retire>(this: *mut ()) -> *mut *mut () {
    // SAFETY: the caller's.
    unsafe { T::link(this.cast()) }
}

/// [`Retire::free`] of what was a `T`.
///
/// # Safety
///
/// As for that.
unsafe fn free<T: Retire>(this: *mut ()) {
    // SAFETY: the caller's.
    unsafe { T::free(this.cast()) };
}

impl Guard for LocalGuard<'_> {
    #[inline]
    unsafe fn retire<T: Retire>(&self, this: *mut T) {
        // SAFETY: the caller's.
        unsafe { self.collector.retire(Retired { this: this.cast(), free: free::<T> }, link::<T>) };
    }
}

impl Guard for OwnedGuard<'_> {
    #[inline]
    unsafe fn retire<T: Retire>(&self, this: *mut T) {
        // SAFETY: the caller's.
        unsafe { self.collector.retire(Retired { this: this.cast(), free: free::<T> }, link::<T>) };
    }
}

impl Drop for LocalGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.collector.leave(self.record);
    }
}

impl Drop for OwnedGuard<'_> {
    fn drop(&mut self) {
        self.collector.leave(&self.owned.record);
        // Release: pairs with the exchange in `enter_owned`.
        self.owned.is_lent.store(false, Release);
    }
}

impl Sealed for LocalGuard<'_> {}
impl Sealed for OwnedGuard<'_> {}

impl fmt::Debug for LocalGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalGuard")
    }
}

impl fmt::Debug for OwnedGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnedGuard")
    }
}
