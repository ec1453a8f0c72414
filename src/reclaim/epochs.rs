//! Reclamation by epochs (Fraser, Practical lock-freedom, 2004, section 5.2.3), with an asymmetric barrier.
//!
//! What was unlinked at epoch `n` is freed at epoch `n + 3`. The epoch advances when every guard that lives was entered in it,
//! so that guards are of the current epoch or the one before. To enter and to leave costs a thread a few plain stores to a
//! [`Record`] of its own: no locked instruction and, where the kernel helps, no fence. `docs/design.md` argues [C1]..[C5].

use crossbeam_utils::CachePadded;

use super::bags::{Bags, FEW, free_all, is_deep};
use super::barrier::Barrier;
use super::crowd::{Crowd, Room};
use super::owned::{OwnedRecord, OwnedRecords};
use super::pace::{LONGEST, Pace, REST};
use super::postponed;
use super::stamp::Stamp;
use super::stranded::Stranded;
use crate::record::{AWAITED, ENDED, Extent, LENT, POSTPONED, Record, SHARES};
use crate::sync::Ordering::{self, Acquire, Relaxed, Release};
use crate::sync::{AtomicBool, AtomicU64, Mutex, SCHEDULED, global, step};
use crate::{reentry, seats};

/// Lists of bags; so many threads can retire without meeting.
pub(super) const BAGS: usize = if SCHEDULED { 2 } else { 8 };
/// How many objects fill a bag; [`FEW`], if each of them stands for many.
pub(super) const MANY: usize = 32;

/// What retired memory belongs to: one for each map.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(super) told: CachePadded<Told>,
    pub(super) barrier: Barrier,
    pub(super) pace: CachePadded<Pace>,
    /// Records of guards that are not bound to a thread, or whose thread has none left for them.
    pub(super) owned: OwnedRecords,
    pub(super) bags: [CachePadded<Mutex<Bags>>; BAGS],
    /// How many objects fill a bag.
    pub(super) size: usize,
    /// What was retired when there was neither memory nor room.
    pub(super) stranded: Mutex<Stranded>,
    /// Whether anything is stranded. Stored under its lock. Relaxed, always: a thread that flushes sees what was retired
    /// before, and others will see it in time.
    pub(super) has_stranded: AtomicBool,
    /// Whether a thread has ever postponed a call of this collector: only then do owned guards ask for it [C5]. Relaxed,
    /// always: the thread that asks is the one that has postponed.
    has_postponed: AtomicBool,
    pub(super) crowd: CachePadded<Crowd>,
    /// 0; or a stamp: what was sealed until then has been flushed [C5].
    pub(super) flushed: AtomicU64,
}

/// What every guard reads.
#[derive(Debug)]
pub(super) struct Told {
    /// The collector's number and its epoch: a [`Stamp`].
    stamp: AtomicU64,
    /// 0; or the stamp at which more was old enough to be freed than the thread that was called for it had to free: threads
    /// whose guards leave free some of it each, until all is freed [C5].
    pub(super) owed: AtomicU64,
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

impl Older<'_> {
    /// Whether the guard has this record.
    pub(super) fn is_of(&self, record: &Record) -> bool {
        core::ptr::eq(self.record, record)
    }

    /// Whether a thread waits for it to leave.
    pub(super) fn is_awaited(&self) -> bool {
        self.record.calls.load(Relaxed) & AWAITED != 0
    }
}

impl Collector {
    /// A collector that frees after some hundreds of retirements of one thread, or, if `soon`, after some dozens; later, if
    /// there is `room` for more that wait.
    pub(crate) fn new(soon: bool, room: Option<Room>) -> Self {
        Self::at(Pace::new(REST, LONGEST), soon, room)
    }

    /// The same, at this pace.
    pub(super) fn at(pace: Pace, soon: bool, room: Option<Room>) -> Self {
        Collector {
            told: CachePadded::new(Told {
                stamp: AtomicU64::new(Stamp::first(MADE.fetch_add(1, Relaxed)).bits()),
                owed: AtomicU64::new(Stamp::NONE.bits()),
            }),
            barrier: Barrier::new(),
            pace: CachePadded::new(pace),
            owned: OwnedRecords::default(),
            bags: core::array::from_fn(|_| CachePadded::new(Mutex::new(Bags::default()))),
            size: if soon { FEW } else { MANY },
            stranded: Mutex::new(Stranded::default()),
            has_stranded: AtomicBool::new(false),
            has_postponed: AtomicBool::new(false),
            crowd: CachePadded::new(Crowd::new(room)),
            flushed: AtomicU64::new(Stamp::NONE.bits()),
        }
    }

    pub(super) fn stamp(&self, ordering: Ordering) -> Stamp {
        Stamp::from_bits(self.told.stamp.load(ordering))
    }

    /// What is left to threads whose guards leave; 0 if nothing.
    #[inline(always)]
    pub(super) fn owed(&self) -> u64 {
        // Relaxed: if a thread sees it too late, others follow that will see it.
        self.told.owed.load(Relaxed)
    }

    /// The number that distinguishes it from others.
    pub(super) fn number(&self) -> u32 {
        // Relaxed: it never changes.
        self.stamp(Relaxed).number()
    }

    /// Announces a guard: whoever advances the epoch sees this record, or we see what was unlinked before. If the light barrier
    /// is to be completed, this holds once it has been.
    #[inline(always)]
    pub(super) fn announce(&self, record: &Record) {
        // Acquire: pairs with the exchange in `advance`: what its barrier saw unlinked, we do not find. The light barrier below
        // is no substitute: one heavy barrier may reach us sooner than the thread that unlinks.
        let stamp = self.told.stamp.load(Acquire);
        step();
        // Release: pairs with the load in `older_guard`: a thread that sees it has seen earlier guards of the record leave, of
        // whichever collector, and what they read.
        record.stamp.store(stamp, Release);
        // Pairs with the heavy one in `advance`.
        Barrier::light();
    }

    /// Notes that the guard of a record has gone.
    #[inline(always)]
    pub(super) fn leave(&self, record: &Record) {
        // Release: pairs with the load in `older_guard`: what we have read is freed after we have read it.
        record.stamp.store(0, Release);
        step();
        // Pairs with the heavy one in `await_leaving`.
        Barrier::light();
        if record.calls.load(Relaxed) | self.owed() != 0 {
            self.leave_on_call(record);
        }
    }

    /// Notes that the guard of a record has gone when there is more to do than that.
    #[cold]
    fn leave_on_call(&self, record: &Record) {
        if record.calls.load(Relaxed) & SHARES != 0 {
            return self.leave_shared(record);
        }
        if record.calls.load(Relaxed) & LENT != 0 {
            return self.leave_lent(record);
        }
        self.barrier.complete_light();
        // Not in a closure under the lock of some map: code that only reads there does not expect others' destructors to run.
        if is_deep() || reentry::holds_a_lock() {
            // As much as the call asks for when it is taken back.
            let extent = Extent::asked_for(record.uncall(AWAITED));
            if let Some(extent) = extent.filter(|extent| !self.postpone(*extent)) {
                record.call_for(self.number(), extent);
            }
            if record.calls.load(Relaxed) & ENDED != 0 {
                seats::left_late(record);
            }
            return;
        }
        let calls = record.uncall(AWAITED);
        if calls & ENDED != 0 {
            // This comes first: what is freed may enter guards.
            seats::left_late(record);
        }
        let postponed = if calls & POSTPONED != 0 { postponed::to_follow(self.number()) } else { None };
        match Extent::asked_for(calls).max(postponed) {
            Some(extent) => {
                if let Some(refused) = self.follow(extent) {
                    record.call_for(self.number(), refused);
                }
            }
            None => self.pay(),
        }
    }

    /// Has a call that this thread has postponed be followed by the last guard to leave the record.
    #[cold]
    #[inline(never)]
    fn follow_in(&self, owned: &OwnedRecord) {
        // That there is one is noted in the thread's own records.
        let postponed = if postponed::is_any() { postponed::to_follow(self.number()) } else { None };
        if let Some(extent) = postponed {
            // Of the guards that share a record, another may be the last.
            let extent = if owned.of_one().is_some() { extent } else { extent.of_others() };
            owned.record.call_for(self.number(), extent);
        }
    }

    /// Makes this thread follow a call when its next guard leaves [C5]. Returns false if the thread has no records that could
    /// tell it.
    pub(super) fn postpone(&self, extent: Extent) -> bool {
        self.has_postponed.store(true, Relaxed);
        postponed::postpone(self.number(), extent)
    }

    /// Notes that a guard has gone that shared a record, of which this is the proxy.
    #[inline(never)]
    fn leave_shared(&self, proxy: &Record) {
        let shared = seats::shared_record(proxy);
        if shared.part() {
            self.leave(&shared.record);
        } else {
            self.pay();
        }
    }

    /// Notes that a guard of this thread has gone that had a record of the collector, of which this is the proxy.
    #[inline(never)]
    fn leave_lent(&self, proxy: &Record) {
        self.leave_owned(self.owned.of_proxy(proxy));
    }

    /// Notes that a guard has gone that had a record of the collector.
    #[inline]
    pub(super) fn leave_owned(&self, owned: &OwnedRecord) {
        if self.has_postponed.load(Relaxed) {
            self.follow_in(owned);
        }
        if owned.part() {
            self.leave(&owned.record);
            owned.give_back();
        } else {
            self.pay();
        }
    }

    /// Advances the epoch, unless a guard of an older epoch lives: then the error is that guard.
    pub(super) fn advance(&self) -> Result<(), Option<Older<'_>>> {
        // Relaxed: the heavy barrier makes it an Acquire of the exchange below, by the thread that advanced to this epoch.
        let now = self.stamp(Relaxed);
        // No barrier is needed for a guard that we see without one.
        self.older_guard(now)?;
        // Measured with the look at all guards, which takes longer than the barrier if there have been many threads.
        self.pace.pass(|| {
            // Pairs with the light one in `announce`.
            if !self.barrier.heavy() {
                return Err(None);
            }
            step();
            self.older_guard(now)
        })?;
        // Release: pairs with the loads of threads that free, and enter, in the next epoch. Another thread may have been
        // faster.
        let _ = self.told.stamp.compare_exchange(now.bits(), now.next().bits(), Release, Relaxed);
        Ok(())
    }

    /// Fails with a guard of ours that was not entered in the epoch that is `now`.
    fn older_guard(&self, now: Stamp) -> Result<(), Option<Older<'_>>> {
        let threads = seats::records().map(|record| -> &Record { record });
        let owned = self.owned.iter().map(|owned| -> &Record { &owned.record });
        let mut guards = threads.chain(owned).map(|record| {
            // Acquire: pairs with the stores of `announce` and `leave`.
            Older { record, entered: Stamp::from_bits(record.stamp.load(Acquire)) }
        });
        match guards.find(|guard| guard.entered.holds_up(now)) {
            Some(older) => Err(Some(older)),
            None => Ok(()),
        }
    }

    /// Whether a guard still lives, and will collect when it leaves.
    pub(super) fn await_leaving(&self, Older { record, entered }: &Older<'_>, extent: Extent) -> bool {
        step();
        record.call_for(self.number(), extent);
        step();
        // Pairs with the light one in `leave`: either the leaving has been seen here, or the guard will see that it is awaited.
        // If the kernel refuses, either may be the case. The guard then counts as living: to try again might mean waiting for
        // this thread itself.
        let passed = self.pace.pass(|| self.barrier.heavy());
        // Acquire: pairs with the store in `announce`: if another guard of the same stamp is seen, it is also seen that a guard
        // before it, maybe another collector's, has answered the call.
        let is_there = || record.stamp.load(Acquire) == entered.bits();
        // This comes after the load above. A call for another collector does not count: it came after ours was answered.
        let is_called = || {
            step();
            record.is_called_for(self.number(), extent)
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
        let stranded = self.stranded.lock().take_all();
        stranded.for_each(free_all);
    }
}
