//! Guards: how they are entered, each in a record that is idle, that it shares with others of its thread, or that its collector
//! lends [C1]; and how they leave.

use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use super::bags::Retired;
use super::epochs::Collector;
use super::owned::OwnedRecord;
use super::sealed::Sealed;
use super::{Guard, Retire};
use crate::record::{INCOMPLETE, Record, Records};
use crate::seats;
use crate::sync::Ordering::Relaxed;

impl Collector {
    /// Enters a guard bound to this thread [C1].
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

    /// Enters a guard of a thread that has others, or has had none yet, or if the light barrier is to be completed.
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

    /// Adds a guard to those of this thread that share a record, or, if all shared records are other collectors' or epochs', to
    /// those that have one of the collector's. Returns what the guard has instead of the record.
    fn share(&self, records: &'static Records) -> &Record {
        // Relaxed: any guard of ours protects what a later one finds. But the guard joins none of an older epoch, as far as can
        // be seen: if each is entered before the last one leaves, their record would never be idle, and would hold up the next
        // epoch forever.
        let now = self.stamp(Relaxed).bits();
        // Relaxed: the thread's own.
        let shared = records.shared().find(|shared| shared.record.stamp.load(Relaxed) == now);
        let shared = shared.or_else(|| {
            let idle = records.shared().find(|shared| shared.record.is_idle());
            let shared = idle.or_else(|| records.add())?;
            self.take(&shared.record);
            Some(shared)
        });
        match shared {
            Some(shared) => shared.join(),
            // A thread that pins thousands of maps leaves nothing behind that every advance would have to look at.
            None => self.lend().proxy(),
        }
    }

    /// Enters a guard that may move between threads [C1].
    pub(crate) fn enter_owned(&self) -> OwnedGuard<'_> {
        OwnedGuard { collector: self, owned: self.lend() }
    }

    /// Announces a guard in a record of this collector.
    fn lend(&self) -> &OwnedRecord {
        let prepare = |new: &Record| {
            if self.barrier.is_to_be_completed() {
                new.call(INCOMPLETE);
            }
        };
        let enter = |record: &Record| {
            self.announce(record);
            self.barrier.complete_light();
        };
        // Relaxed: as in `share`.
        self.owned.lend(self.stamp(Relaxed).bits(), prepare, enter)
    }
}

/// A guard bound to its thread: neither `Send` nor `Sync`. Entering another on the same thread searches the thread's records.
pub struct LocalGuard<'c> {
    collector: &'c Collector,
    record: &'c Record,
    here: PhantomData<*mut OfOneThreadUnlikePinOwned>,
}

/// Neither `Send` nor `Sync`: a view from `pin` stays on its thread. Use `pin_owned`, whose views may move between threads.
///
/// Its only use is its name, which the compiler shows to a user that sends such a view, or holds it across an `.await`.
enum OfOneThreadUnlikePinOwned {}

/// A guard that may be sent and shared. If there are many at a time, those of one epoch share a record.
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

/// [`Retire::link`] of an object that is a `T`.
///
/// # Safety
///
/// As for that.
unsafe fn link<T: Retire>(this: *mut ()) -> *mut *mut () {
    // SAFETY: the caller's.
    unsafe { T::link(this.cast()) }
}

/// [`Retire::free`] of an object that was a `T`.
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
        unsafe {
            self.collector.retire(
                Retired { this: this.cast(), free: free::<T> },
                link::<T>,
                Some(self.record),
            )
        };
    }
}

impl Guard for OwnedGuard<'_> {
    #[inline]
    unsafe fn retire<T: Retire>(&self, this: *mut T) {
        let retired = Retired { this: this.cast(), free: free::<T> };
        // SAFETY: the caller's.
        unsafe { self.collector.retire(retired, link::<T>, self.owned.of_one()) };
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
        self.collector.leave_owned(self.owned);
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
