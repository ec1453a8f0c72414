//! *Seats*: a seat gives each thread a number that no other living thread has, a place for its values in [`PerThread`], and its
//! [`Records`], in which the reclaimer sees its guards.
//!
//! Seats are few and their numbers small, because they are given back when a thread ends. The values of one container lie in
//! blocks of 1, 2, 4, ... values, so that a seat's value never moves. Seats themselves lie in rows. A word of each row says
//! which of its seats are taken, so that a thread that looks at all guards skips the others.
//!
//! [`PerThread`]: crate::per_thread::PerThread
//!
//! A seat is not given back while a guard lives that has one of its records; a guard to which its collector has lent a record
//! needs no seat. A guard may be dropped by a destructor of another thread-local variable, after this one's. The last of them
//! gives the seat back. Seats themselves record whether their threads have ended, because on some systems a thread that is
//! ending loses its variables one after the other, and gets new ones if it asks again.

use core::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crossbeam_utils::CachePadded;

use crate::record::{ENDED, Record, Records, SharedRecord};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, Mutex, Ordering, global, per_thread, with_mine};

/// Blocks of values: enough for 2^32 threads, or for the few of a test under loom or shuttle, and one that never exists, for
/// threads without a seat.
pub(crate) const BLOCKS: usize = match (cfg!(loom), cfg!(shuttle)) {
    (true, _) => 4,
    (_, true) => 5,
    _ => 33,
};
const NO_BLOCK: usize = BLOCKS - 1;

/// Seats per row: one for each bit of a word; or, in tests, so few that two threads of a model, or four of a schedule, need two
/// rows.
const ROW: usize = match (cfg!(loom), cfg!(shuttle)) {
    (true, _) => 1,
    (_, true) => 2,
    _ => 64,
};

/// The place of the seat with this number in its row.
#[cfg_attr(loom, expect(clippy::modulo_one, reason = "loom's rows have one seat"))]
const fn lane(number: usize) -> usize {
    number % ROW
}

/// A place for a thread: made once, and passed from one thread to the next.
#[derive(Debug)]
#[repr(C)]
struct Seat {
    records: Records,
    number: usize,
    /// Whether its thread has ended, but still has guards. Relaxed: the thread's own, or under the lock of `SEATS`.
    ended: AtomicBool,
    row: &'static Row,
}

/// Seats that were made one after the other, and which of them are taken: a thread that looks at all guards looks at no others.
#[derive(Debug)]
struct Row {
    /// A bit for each seat that a thread has. Changed with `SEATS` locked.
    taken: AtomicU64,
    /// Null, or leaked in `make_seat`.
    seats: [AtomicPtr<CachePadded<Seat>>; ROW],
    /// The row that was made before, or null.
    next: AtomicPtr<Row>,
}

/// Which seat this thread has, and where its values are.
struct Mine {
    block: Cell<usize>,
    index: Cell<usize>,
    seat: Cell<Option<&'static Seat>>,
    /// The seat's first record, if guards may take it by the fast path: see [`first_record`].
    record: Cell<Option<&'static Record>>,
}

per_thread! {
    static MINE: Mine = Mine {
        block: Cell::new(NO_BLOCK),
        index: Cell::new(0),
        seat: Cell::new(None),
        record: Cell::new(None),
    };
}

per_thread! {
    static END: End = End { seat: Cell::new(None) };
}

struct Seats {
    all: Vec<&'static Seat>,
    /// The numbers of seats that were given back.
    returned: BinaryHeap<Reverse<usize>>,
}

global! {
    static SEATS: Mutex<Seats> = Mutex::new(Seats { all: Vec::new(), returned: BinaryHeap::new() });
}

global! {
    /// The row that was made last; each leads to the one before. Stored with `SEATS` locked.
    static LAST: AtomicPtr<Row> = AtomicPtr::new(core::ptr::null_mut());
}

/// Dropped at the end of a thread that has taken a seat.
struct End {
    seat: Cell<Option<&'static Seat>>,
}

impl Drop for End {
    fn drop(&mut self) {
        // By now, loom's threads have lost their other variables.
        if let (Some(seat), false) = (self.seat.get(), cfg!(loom)) {
            seat.end();
            seat.give_back_if_idle();
        }
    }
}

impl Seat {
    /// Its bit in `taken`.
    fn bit(&self) -> u64 {
        1 << lane(self.number)
    }

    /// Notes that its thread has ended: guards that leave from now on check whether they are the last.
    fn end(&'static self) {
        self.ended.store(true, Ordering::Relaxed);
        self.records.iter().for_each(|record| record.call(ENDED));
    }

    /// Gives the seat back if its thread has ended and no guard lives. Called by that thread.
    fn give_back_if_idle(&'static self) {
        if !self.ended.load(Ordering::Relaxed) || !self.records.iter().all(Record::is_idle) {
            return;
        }
        self.records.iter().for_each(|record| {
            record.uncall(ENDED);
        });
        self.ended.store(false, Ordering::Relaxed);
        // This thread may have lost its variables since then, and have another seat now.
        let _ = MINE.try_with(|mine| {
            if mine.seat.get().is_some_and(|seat| core::ptr::eq(seat, self)) {
                mine.block.set(NO_BLOCK);
                mine.seat.set(None);
                mine.record.set(None);
            }
        });
        let mut seats = SEATS.lock();
        // Release: pairs with the load in `Row::taken`: a thread that sees that nobody has the seat has seen its guards leave,
        // and what they read.
        self.row.taken.fetch_and(!self.bit(), Ordering::Release);
        seats.returned.push(Reverse(self.number));
    }
}

/// Whether this thread is not ending yet, and will drop its [`End`].
fn goes_on() -> bool {
    END.try_with(|_| ()).is_ok()
}

impl Row {
    /// Makes an empty row, which all threads can find by `LAST`. With `SEATS` locked.
    fn make() -> &'static Row {
        let row: &'static Row = Box::leak(Box::new(Row {
            taken: AtomicU64::new(0),
            seats: core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut())),
            // Relaxed: stored with `SEATS` locked, as it is now.
            next: AtomicPtr::new(LAST.load(Ordering::Relaxed)),
        }));
        // Release: pairs with the load in `seats`.
        LAST.store(core::ptr::from_ref(row).cast_mut(), Ordering::Release);
        row
    }

    /// The seats of the row that are taken.
    fn taken(&self) -> impl Iterator<Item = &'static Seat> {
        // Acquire: pairs with the changes in `take_seat` and `give_back_if_idle`. They are read-modify-writes: each passes on
        // what those before it have released.
        let mut bits = self.taken.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            let seat = self.seats.get(bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            // SAFETY: null, or leaked in `make_seat`. Relaxed: it was stored before the bit was set for the first time.
            let seat = unsafe { seat.load(Ordering::Relaxed).as_ref() };
            Some(&**seat.expect("a seat that is taken has been made"))
        })
    }
}

/// Makes a seat, in the row that was made last, or in a new one. With `SEATS` locked.
fn make_seat(number: usize) -> &'static Seat {
    // Relaxed: stored with `SEATS` locked, as it is now.
    let last = LAST.load(Ordering::Relaxed);
    // SAFETY: leaked in `Row::make`, as it was for the first seat of the row.
    let row = if lane(number) == 0 { Row::make() } else { unsafe { &*last } };
    let seat = Seat { records: Records::new(), number, ended: AtomicBool::new(false), row };
    // Alone in its cache lines: each pin writes to the seat, and its neighbours may be other threads'.
    let seat: &'static CachePadded<Seat> = Box::leak(Box::new(CachePadded::new(seat)));
    // Relaxed: nobody looks for the seat before its bit is set.
    row.seats[lane(number)].store(core::ptr::from_ref(seat).cast_mut(), Ordering::Relaxed);
    seat
}

/// Takes a seat for this thread.
#[cold]
fn take_seat(mine: &Mine) -> &'static Seat {
    let seat = {
        let mut seats = SEATS.lock();
        let seat = match seats.returned.pop() {
            Some(Reverse(number)) => seats.all[number],
            None => {
                let seat = make_seat(seats.all.len());
                seats.all.push(seat);
                // None of them is in the list: room for all, because nothing should be allocated when a thread ends.
                let all = seats.all.len();
                seats.returned.reserve(all);
                seat
            }
        };
        // This comes before any guard is announced, and a thread that sees a guard sees this. Release: pairs with the load in
        // `Row::taken`, for a seat that is new.
        seat.row.taken.fetch_or(seat.bit(), Ordering::Release);
        seat
    };
    let block = (seat.number + 1).ilog2() as usize;
    assert!(block < NO_BLOCK, "too many threads");
    mine.block.set(block);
    mine.index.set(seat.number + 1 - (1 << block));
    mine.seat.set(Some(seat));
    // A thread that is ending gives the seat back with its last guard: `END` is gone, or has the seat that was lost.
    let until_the_end = END.try_with(|end| {
        let is_first = end.seat.get().is_none();
        if is_first {
            end.seat.set(Some(seat));
        }
        is_first
    });
    if !until_the_end.unwrap_or(false) {
        seat.end();
    }
    seat
}

/// This thread's first record, if it has one that a guard may take at once.
#[inline(always)]
pub(crate) fn first_record() -> Option<&'static Record> {
    with_mine(&MINE, |mine| mine.record.get())
}

/// All of this thread's records. A caller that takes one must enter a guard: if the thread is ending, the last guard to leave
/// gives the seat back.
pub(crate) fn my_records() -> &'static Records {
    with_mine(&MINE, |mine| &mine.seat.get().unwrap_or_else(|| take_seat(mine)).records)
}

/// The same, if it has any.
pub(crate) fn my_records_if_any() -> Option<&'static Records> {
    with_mine(&MINE, |mine| mine.seat.get().map(|seat| &seat.records))
}

/// Makes [`first_record`] return this thread's record from now on.
pub(crate) fn offer_first_record() {
    with_mine(&MINE, |mine| mine.record.set(mine.seat.get().map(|seat| seat.records.first())));
}

/// The shared record for which this one stands.
#[cold]
pub(crate) fn shared_record(proxy: &Record) -> &'static SharedRecord {
    // Mostly it is this thread's: there may be many records of all threads.
    let mine = my_records_if_any().into_iter().flat_map(Records::shared);
    let mut shared = mine.chain(seats().flat_map(|seat| seat.records.shared()));
    shared.find(|shared| shared.has_proxy(proxy)).expect("each thread's seat stays")
}

/// The records of all threads that have a seat.
pub(crate) fn records() -> impl Iterator<Item = &'static Record> {
    seats().flat_map(|seat| seat.records.iter())
}

/// The seats that are taken: no other seat has a guard.
fn seats() -> impl Iterator<Item = &'static Seat> {
    // Acquire: pairs with the store in `Row::make`. The rows that it links to were there before.
    // SAFETY: null, or leaked there.
    let last = unsafe { LAST.load(Ordering::Acquire).as_ref() };
    // SAFETY: as above.
    let next = |row: &&'static Row| unsafe { row.next.load(Ordering::Relaxed).as_ref() };
    core::iter::successors(last, next).flat_map(Row::taken)
}

/// Notes that a guard has left whose thread has [`ENDED`]: if it was the last, its seat is given back. Called by that thread.
#[cold]
pub(crate) fn left_late(record: &Record) {
    let has_it = |seat: &&'static Seat| seat.records.iter().any(|other| core::ptr::eq(other, record));
    if let Some(seat) = seats().find(has_it) {
        seat.give_back_if_idle();
    }
}

/// A number of this thread: small, and no other living thread's; or 0 for a thread that is ending and has no seat.
#[inline]
pub(crate) fn number() -> usize {
    with_mine(&MINE, |mine| match mine.seat.get() {
        Some(seat) => seat.number,
        None if goes_on() => take_seat(mine).number,
        None => 0,
    })
}

/// Where this thread's values are: in which block, at which index. If it has no seat, in the block that never exists.
#[inline(always)]
pub(crate) fn place() -> (usize, usize) {
    with_mine(&MINE, |mine| (mine.block.get(), mine.index.get()))
}

/// The same; the thread takes a seat for that if it has none. A thread that is ending and has no seat gets the place of the
/// first seat: it takes no seat that it might not give back.
#[cold]
pub(crate) fn take_place() -> (usize, usize) {
    with_mine(&MINE, |mine| {
        if mine.seat.get().is_none() {
            if !goes_on() {
                return (0, 0);
            }
            take_seat(mine);
        }
        (mine.block.get(), mine.index.get())
    })
}

#[cfg(loom)]
pub(crate) mod model {
    use super::{MINE, with_mine};

    /// Does what happens when a thread ends. loom's threads have lost their variables by then, and have to call this.
    pub fn end_thread() {
        if let Some(seat) = with_mine(&MINE, |mine| mine.seat.get()) {
            seat.end();
            seat.give_back_if_idle();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;

    /// Enters something like a guard.
    fn enter() -> &'static Record {
        let idle = my_records().iter().find(|record| record.is_idle());
        let record = idle.unwrap_or_else(|| &my_records().add().expect("few at a time").record);
        // A stamp of no collector: collectors of other tests would wait for it. Release: as in `announce`.
        record.stamp.store(1, Ordering::Release);
        record
    }

    fn leave(record: &Record) {
        record.stamp.store(0, Ordering::Relaxed);
        if record.calls.load(Ordering::Relaxed) & ENDED != 0 {
            left_late(record);
        }
    }

    #[test]
    fn each_living_thread_has_records_of_its_own() {
        const THREADS: usize = 20;
        let (together, done) = (Barrier::new(THREADS), Barrier::new(THREADS));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    together.wait();
                    assert!(my_records().iter().all(Record::is_idle));
                    let record = enter();
                    assert_eq!(records().filter(|other| core::ptr::eq(*other, record)).count(), 1);
                    // No thread leaves a seat to another before all have one.
                    done.wait();
                    leave(record);
                });
            }
        });
    }

    /// However many threads other tests have meanwhile: these determine how high the numbers are.
    #[test]
    fn seats_are_used_again() {
        let taken: HashSet<_> = (0..1000).map(|_| std::thread::spawn(number).join().unwrap()).collect();
        assert!(taken.len() < 500, "{} seats for one thread after the other", taken.len());
    }

    #[test]
    fn a_seat_with_a_guard_is_nobody_elses() {
        let (kept, record) = std::thread::spawn(|| (number(), enter())).join().unwrap();
        for _ in 0..50 {
            assert_ne!(std::thread::spawn(number).join().unwrap(), kept);
        }
        // Otherwise it would be nobody's for good. The thread that had it has ended.
        leave(record);
    }

    #[test]
    fn there_are_as_many_records_as_a_thread_has_guards() {
        let kept = std::thread::spawn(|| {
            let kept: Vec<_> = (0..8).map(|_| enter()).collect();
            let all = my_records().iter().count();
            assert_eq!(all, 8);
            assert!(kept.iter().all(|record| records().any(|other| core::ptr::eq(other, *record))));
            kept.into_iter().for_each(leave);
            assert!(my_records().iter().all(Record::is_idle));
            assert_eq!(my_records().iter().count(), all);
        });
        kept.join().unwrap();
    }

    /// A variable whose destructor runs after that of the seat: it asks for one again.
    #[test]
    fn a_thread_that_ends_has_its_records_to_the_last() {
        struct Late(Cell<Option<&'static Record>>);
        impl Drop for Late {
            fn drop(&mut self) {
                let before = self.0.take();
                if let Some(record) = before {
                    assert!(!record.is_idle() && my_records().iter().any(|mine| core::ptr::eq(mine, record)));
                }
                let late = enter();
                assert!(before.is_none_or(|before| !core::ptr::eq(before, late)));
                before.into_iter().for_each(leave);
                leave(late);
            }
        }
        std::thread_local!(static LATE: Late = const { Late(Cell::new(None)) });
        for first in [true, false] {
            let thread = std::thread::spawn(move || {
                if first {
                    LATE.with(|_| ());
                }
                let record = enter();
                LATE.with(|late| late.0.set(Some(record)));
                number()
            });
            let seat = thread.join().unwrap();
            // It has been given back, or is another thread's by now: in other tests threads end late as well.
            let has_ended = || SEATS.lock().all[seat].ended.load(Ordering::Relaxed);
            let given_back = (0..1000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                !has_ended()
            });
            assert!(given_back, "{seat} was not given back");
        }
    }

    /// Destructors that run after that of the seat lose no seat for good.
    #[test]
    fn threads_that_end_late_lose_no_seats() {
        /// Has so many guards, of which the last leaves last.
        struct Late(Cell<usize>);
        impl Drop for Late {
            fn drop(&mut self) {
                number();
                take_place();
                let guards: Vec<_> = (0..self.0.get()).map(|_| enter()).collect();
                guards.into_iter().for_each(leave);
                number();
            }
        }
        std::thread_local!(static LATE: Late = const { Late(Cell::new(0)) });
        let ends_late = |n: usize| {
            std::thread::spawn(move || {
                // Initialized before the seat, so dropped after it.
                LATE.with(|late| late.0.set([0, 1, 8][n % 3]));
                number()
            })
        };
        // A third of the threads would each have lost its own seat.
        let taken: HashSet<_> = (0..1800).map(|n| ends_late(n).join().unwrap()).collect();
        assert!(taken.len() < 300, "{} seats for one thread after the other", taken.len());
    }
}
