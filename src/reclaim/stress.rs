//! The collector alone, on real threads that come and go: nothing is freed that a guard leads to, everything is freed once, and
//! what waits to be freed is bounded by what was retired while a guard lived. Bounded by iterations, not by time.
//!
//! Objects are never given back to the allocator: one that was freed says so to any thread that still looks at it. Their words
//! are not atomic, so that ThreadSanitizer sees whether reading comes before freeing.

use std::cell::{Cell, UnsafeCell};
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

use super::crowd::FEW_BAGS;
use super::epochs::{BAGS, Collector, MANY};
use super::guards::{LocalGuard, OwnedGuard};
use super::pace::Pace;
use super::{Guard, PROTECTED, Retire};
use crate::record::Extent;
use crate::seats;
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, step};

const ALIVE: u64 = 0xA11E;
const FREED: u64 = 0xDEAD;
/// Few, so that threads meet.
const CELLS: usize = 2;
const THREADS: usize = 4;
/// A thread ends after so many operations, and another takes its place.
const LIFE: usize = 500;

/// Relaxed, all: they say what has happened, and order nothing.
#[derive(Debug, Default)]
struct Counts {
    retired: AtomicUsize,
    freed: AtomicUsize,
    freed_twice: AtomicUsize,
    most_waiting: AtomicUsize,
    /// The most objects that were retired while a guard lived.
    longest: AtomicUsize,
}

impl Counts {
    fn retired(&self) -> usize {
        self.retired.load(Ordering::Relaxed)
    }

    fn freed(&self) -> usize {
        self.freed.load(Ordering::Relaxed)
    }
}

/// Raises `most`, only seldom by a locked instruction: those would hide a missing barrier.
fn raise(most: &AtomicUsize, to: usize) {
    if most.load(Ordering::Relaxed) < to {
        most.fetch_max(to, Ordering::Relaxed);
    }
}

struct Object<'w> {
    canary: UnsafeCell<u64>,
    counts: &'w Counts,
}

// SAFETY: the canary is written before the object is published and by the thread that frees it; that nobody reads it meanwhile
// is what is tested.
unsafe impl Sync for Object<'_> {}

impl Object<'_> {
    fn is_alive(&self) -> bool {
        // SAFETY: as above. Volatile: each look is a load.
        unsafe { self.canary.get().read_volatile() == ALIVE }
    }
}

impl Retire for Object<'_> {
    unsafe fn free(this: *mut Self) {
        // SAFETY: the arena keeps it.
        let this = unsafe { &*this };
        // A panic would go no further than here: counted instead.
        this.counts.freed_twice.fetch_add(usize::from(!this.is_alive()), Ordering::Relaxed);
        this.counts.freed.fetch_add(1, Ordering::Relaxed);
        // SAFETY: nobody looks at it, if the collector is correct.
        unsafe { this.canary.get().write_volatile(FREED) };
    }
}

/// A guard that has been put down, for any thread to pick up, with the object it leads to.
struct PutDown<'w> {
    guard: OwnedGuard<'w>,
    object: &'w Object<'w>,
    entered: usize,
}

struct World<'w> {
    collector: &'w Collector,
    /// Collectors that have guards but nothing to retire: as many as a thread has records, so that guards of ours are lent one.
    others: [Collector; 8],
    counts: &'w Counts,
    objects: &'w [Object<'w>],
    next: AtomicUsize,
    cells: [AtomicPtr<Object<'w>>; CELLS],
    put_down: Mutex<Vec<PutDown<'w>>>,
    /// One of so many operations is a flush; 0: none is.
    flushes: u64,
}

impl<'w> World<'w> {
    fn new(collector: &'w Collector, counts: &'w Counts, objects: &'w [Object<'w>], flushes: u64) -> Self {
        let cells = core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut()));
        let put_down = Mutex::new(Vec::new());
        let others = core::array::from_fn(|_| Collector::new(true, None));
        let next = AtomicUsize::new(0);
        let world = World { collector, others, counts, objects, next, cells, put_down, flushes };
        for cell in &world.cells {
            cell.store(world.make(), Ordering::Relaxed);
        }
        world
    }

    fn make(&self) -> *mut Object<'w> {
        let object = &self.objects[self.next.fetch_add(1, Ordering::Relaxed)];
        // SAFETY: nobody else has it yet.
        unsafe { object.canary.get().write_volatile(ALIVE) };
        core::ptr::from_ref(object).cast_mut()
    }

    /// The object that a cell leads to, under a guard.
    fn find(&self, cell: usize) -> &'w Object<'w> {
        // Acquire: pairs with the swap that put it there.
        // SAFETY: one of the arena's.
        unsafe { &*self.cells[cell].load(PROTECTED) }
    }

    /// Looks at an object `times` times, and yields the processor now and then.
    fn look(&self, object: &Object<'_>, times: u64) {
        for n in 0..times {
            assert!(object.is_alive(), "freed under a guard");
            step();
            if n % 8 == 7 {
                std::thread::yield_now();
            }
        }
    }

    /// Notes that a guard that was entered at `entered` has gone.
    fn left(&self, entered: usize) {
        raise(&self.counts.longest, self.counts.retired() - entered);
    }

    fn replace(&self, cell: usize) {
        let entered = self.counts.retired();
        let guard = self.collector.enter();
        // AcqRel: a thread that finds the object finds its canary; and we free the old one after its maker has written its
        // canary.
        let old = self.cells[cell].swap(self.make(), Ordering::AcqRel);
        let retired = self.counts.retired.fetch_add(1, Ordering::Relaxed) + 1;
        // SAFETY: unlinked just now, by us alone.
        unsafe { guard.retire(old) };
        drop(guard);
        self.left(entered);
        raise(&self.counts.most_waiting, retired.saturating_sub(self.counts.freed()));
    }

    fn put_down(&self, cell: usize) {
        let entered = self.counts.retired();
        let guard = self.collector.enter_owned();
        let object = self.find(cell);
        self.put_down.lock().unwrap().push(PutDown { guard, object, entered });
    }

    fn take_up(&self) {
        let found = self.put_down.lock().unwrap().pop();
        if let Some(PutDown { guard, object, entered }) = found {
            self.look(object, 4);
            drop(guard);
            self.left(entered);
        }
    }

    fn operate(&self, random: u64) {
        let cell = (random >> 8) as usize % CELLS;
        let times = (random >> 16) % 24;
        let entered = self.counts.retired();
        if self.flushes != 0 && (random >> 24) % self.flushes == 0 {
            self.collector.flush();
        }
        let others = [0, 0, 0, 0, 1, 1, 5, self.others.len()][(random >> 32) as usize % 8];
        let mut others: Vec<_> = self.others[..others].iter().map(Collector::enter).collect();
        match random % 16 {
            0 => self.put_down(cell),
            1 | 2 => self.take_up(),
            3 | 4 => {
                let guard = self.collector.enter_owned();
                self.look(self.find(cell), times);
                drop(guard);
                self.left(entered);
            }
            5..9 => {
                let (first, second) = (self.collector.enter(), self.collector.enter());
                let object = self.find(cell);
                if random & 32 == 0 {
                    others.clear();
                }
                // One guard inside the other, or not.
                let last = if random & 16 == 0 {
                    drop(second);
                    first
                } else {
                    drop(first);
                    second
                };
                self.look(object, times);
                drop(last);
                self.left(entered);
            }
            _ => self.replace(cell),
        }
    }

    /// Lets threads come and go until that many operations are done; then nobody has a guard.
    fn run(&self, operations: usize) {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for life in 0..operations.div_ceil(LIFE * THREADS) {
                        self.live((life * THREADS + thread) as u64);
                    }
                });
            }
        });
        while !self.put_down.lock().unwrap().is_empty() {
            self.take_up();
        }
    }

    /// The life of one thread.
    fn live(&self, seed: u64) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Knuth's generator, from MMIX.
                let mut random = seed;
                for _ in 0..LIFE {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    self.operate(random >> 24);
                }
            });
        });
    }
}

fn operations() -> usize {
    let more = std::env::var("KOEL_RECLAIMER_OPERATIONS").ok();
    more.map_or(400_000, |more| more.parse().expect("KOEL_RECLAIMER_OPERATIONS is a number"))
}

/// Runs threads, with barriers at this pace, and calls `look` on the counts before and after a flush.
fn run(pace: Pace, flushes: u64, look: impl Fn(&Counts)) {
    let operations = operations();
    let counts = Counts::default();
    let new = |_| Object { canary: UnsafeCell::new(0), counts: &counts };
    let objects: Vec<_> = (0..operations + THREADS * LIFE + CELLS).map(new).collect();
    let collector = Collector::at(pace, false, None);
    let world = World::new(&collector, &counts, &objects, flushes);
    world.run(operations);
    look(&counts);
    collector.flush();
    assert_eq!(counts.freed(), counts.retired(), "not all were freed");
    assert_eq!(counts.freed_twice.load(Ordering::Relaxed), 0);
    for cell in 0..CELLS {
        assert!(world.find(cell).is_alive());
    }
}

#[test]
fn nothing_is_freed_under_a_guard_and_all_in_the_end() {
    run(Pace::new(0, 0), 100, |counts| assert!(counts.retired() > 0));
}

/// How much may wait without a flush, if barriers do not rest. An epoch lasts while guards of the one before live, and until a
/// bag is sealed: no longer than it takes to fill all open bags. What was retired in four epochs waits; in each list, if it was
/// last used then.
fn most_waiting(counts: &Counts) -> usize {
    4 * BAGS * (counts.longest.load(Ordering::Relaxed) + BAGS * MANY)
}

#[test]
fn what_waits_is_bounded_by_what_was_retired_while_a_guard_lived() {
    run(Pace::new(0, 0), 0, |counts| {
        let waiting = counts.most_waiting.load(Ordering::Relaxed);
        assert!(waiting <= most_waiting(counts), "{waiting} waited: {counts:?}");
    });
}

/// By the pace there is no barrier after the first, however slow the threads are, but there are others when lists are long.
#[test]
fn what_waits_for_a_barrier_is_bounded() {
    run(Pace::new(u64::MAX, u64::MAX), 0, |counts| {
        let waiting = counts.most_waiting.load(Ordering::Relaxed);
        assert!(waiting >= FEW_BAGS * MANY, "{waiting} waited, but not for barriers: {counts:?}");
        assert!(waiting <= most_waiting(counts) + BAGS * FEW_BAGS * MANY, "{waiting} waited: {counts:?}");
    });
}

/// An object that counts itself when it is freed.
struct Freed<'a>(&'a AtomicU64);

impl Retire for Freed<'_> {
    unsafe fn free(this: *mut Self) {
        // SAFETY: the caller's; from a box.
        let freed = unsafe { Box::from_raw(this) };
        freed.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Retires `n` objects that count themselves.
pub(super) fn retire(n: usize, collector: &Collector, freed: &AtomicU64) {
    (0..n).for_each(|_| retire_under(1, &collector.enter(), freed));
}

/// The same, under one guard.
pub(super) fn retire_under(n: usize, guard: &impl Guard, freed: &AtomicU64) {
    for _ in 0..n {
        // SAFETY: nobody else has it, and it is retired once.
        unsafe { guard.retire(Box::into_raw(Box::new(Freed(freed)))) };
    }
}

/// After the first barrier none is ever due.
#[test]
fn as_many_wait_as_there_is_room_for_and_then_they_are_freed() {
    const ROOM: usize = 3 * FEW_BAGS * MANY;
    // Declared before the collectors, which free the rest when they are dropped.
    let (freed, freed_of_few) = (AtomicU64::new(0), AtomicU64::new(0));
    let collector = Collector::at(Pace::new(u64::MAX, u64::MAX), false, Some(Box::new(|| ROOM)));
    retire(ROOM - 1, &collector, &freed);
    assert_eq!(freed.load(Ordering::Relaxed), 0, "there is room");
    retire(5 * MANY, &collector, &freed);
    assert!(freed.load(Ordering::Relaxed) >= MANY as u64, "there was no room any more");
    let few = Collector::at(Pace::new(u64::MAX, u64::MAX), false, None);
    retire(FEW_BAGS * MANY - 1, &few, &freed_of_few);
    assert_eq!(freed_of_few.load(Ordering::Relaxed), 0, "few wait in any case");
    retire(5 * MANY, &few, &freed_of_few);
    assert!(freed_of_few.load(Ordering::Relaxed) >= MANY as u64, "nothing was said of room");
}

/// Otherwise it would wait for a thread that has the same list, and meanwhile take the room of others.
#[test]
fn what_a_thread_leaves_behind_is_freed_by_others() {
    // Including a bag that is not full.
    const LEFT: usize = 50 * MANY + 7;
    let (left, freed, own) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let collector = Collector::at(Pace::new(0, 0), false, Some(Box::new(|| usize::MAX)));
    let list = || seats::number() % BAGS;
    let mine = list();
    let all_alive = std::sync::Barrier::new(BAGS);
    std::thread::scope(|scope| {
        for _ in 0..BAGS {
            scope.spawn(|| {
                all_alive.wait();
                if list() != mine {
                    left.fetch_add(LEFT as u64, Ordering::Relaxed);
                    retire(LEFT, &collector, &freed);
                }
            });
        }
    });
    let (left, before) = (left.into_inner(), freed.load(Ordering::Relaxed));
    assert!(left > 0 && before < left, "{before} of {left} are freed already");
    // All may have left their objects in one list, which is looked at after one of 64 seals: this is twice what that takes.
    retire(16 * BAGS * LEFT, &collector, &own);
    assert_eq!(freed.load(Ordering::Relaxed), left);
    collector.flush();
}

/// Otherwise every advance would look at them for good, and so would each further guard.
#[test]
fn a_thread_that_has_guards_of_many_collectors_has_few_records() {
    let thread = std::thread::spawn(|| {
        let collectors: Vec<_> = (0..100).map(|_| Collector::new(true, None)).collect();
        let guards: Vec<_> =
            collectors.iter().map(|collector| [collector.enter(), collector.enter()]).collect();
        assert!(seats::my_records().iter().count() <= 8);
        // Guards of the current epoch; then of an older one.
        assert!(
            collectors.iter().all(|collector| collector.advance().is_ok() && collector.advance().is_err())
        );
        let mut second = Vec::new();
        for [one, other] in guards {
            drop(one);
            second.push(other);
        }
        assert!(collectors.iter().all(|collector| collector.advance().is_err()));
        drop(second);
        assert!(collectors.iter().all(|collector| collector.advance().is_ok()));
    });
    thread.join().unwrap();
}

/// The thread could not follow the call before, and has no record left that its next guard could share.
#[test]
fn a_call_is_followed_when_a_guard_leaves_that_was_lent_a_record() {
    let others: [_; 8] = core::array::from_fn(|_| Collector::new(true, None));
    let freed = AtomicU64::new(0);
    let collector = Collector::at(Pace::new(0, 0), false, None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _others: Vec<_> = others.iter().map(Collector::enter).collect();
            retire(1, &collector, &freed);
            collector.seal_all();
            let (first, last) = (collector.enter(), collector.enter());
            assert!(collector.postpone(Extent::All));
            drop(first);
            assert_eq!(freed.load(Ordering::Relaxed), 0, "a guard lives");
            drop(last);
            assert_eq!(freed.load(Ordering::Relaxed), 1);
        });
    });
}

/// Guards that are kept in thread-local variables.
#[test]
fn threads_whose_guards_leave_when_they_have_ended_lose_no_seats() {
    static COLLECTOR: LazyLock<Collector> = LazyLock::new(|| Collector::new(true, None));
    std::thread_local!(static LATE: Cell<Option<LocalGuard<'static>>> = const { Cell::new(None) });
    let ends_late = || {
        std::thread::spawn(|| {
            // Initialized before the seat, so dropped after it.
            LATE.with(|_| ());
            LATE.set(Some(COLLECTOR.enter()));
            seats::number()
        })
    };
    let taken: HashSet<_> = (0..600).map(|_| ends_late().join().unwrap()).collect();
    assert!(taken.len() < 500, "{} seats for one thread after the other", taken.len());
}

/// As where the kernel does not help, and every guard takes the slow path.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn all_of_this_holds_without_the_kernels_help() {
    const ALONE: &str = "KOEL_WITHOUT_MEMBARRIER";
    if std::env::var_os(ALONE).is_some() {
        return;
    }
    let tests = std::env::current_exe().expect("a test's own file");
    let output = std::process::Command::new(tests)
        .args([
            "reclaim::stress",
            "reclaim::shares",
            "reclaim::postponed",
            "seats::",
            "per_thread::",
            "swapped::",
        ])
        .env(ALONE, "1")
        .output()
        .expect("tests run");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !said.contains("running 0 tests"), "{said}");
}
