//! The reclaimer alone [C1], [C2], [C5]: nothing is freed that a thread may still look at, and in the end everything is freed,
//! while many threads retire, enter guards of both kinds, advance, come and go.
#![cfg(shuttle)]

use koel::model::{Reclaimer, Watched};
use shuttle::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use shuttle::thread;
use shuttle_tests::{explore, pause};

/// A cell that leads to one of many objects after the other.
struct Cell {
    reclaimer: Reclaimer,
    link: AtomicPtr<Watched>,
    objects: Vec<Watched>,
    /// The next object that it will lead to.
    next: AtomicUsize,
}

// SAFETY: readers look at an object by shared reference only, and it consists of an atomic alone.
unsafe impl Sync for Cell {}

impl Cell {
    fn new(objects: usize) -> Self {
        let cell = Cell {
            reclaimer: Reclaimer::new(),
            link: AtomicPtr::new(std::ptr::null_mut()),
            objects: (0..objects).map(|_| Watched::default()).collect(),
            next: AtomicUsize::new(1),
        };
        cell.link.store(cell.object(0), Ordering::SeqCst);
        cell
    }

    fn object(&self, index: usize) -> *mut Watched {
        std::ptr::from_ref(&self.objects[index]).cast_mut()
    }

    /// The object it leads to now. Under a guard.
    fn follow(&self) -> &Watched {
        // SAFETY: one of ours, which live as long as we do: the reclaimer only marks them as freed.
        unsafe { &*self.link.load(Ordering::SeqCst) }
    }

    /// Checks, under a guard, that the object it leads to is there, and stays there.
    fn read(&self) {
        let object = self.follow();
        object.read();
        pause();
        object.read();
    }

    /// Leads to the next object, and retires the one before.
    fn replace(&self) {
        let next = self.next.fetch_add(1, Ordering::SeqCst);
        let old = self.link.swap(self.object(next), Ordering::SeqCst);
        // SAFETY: unlinked just now, by us alone.
        unsafe { self.reclaimer.retire(old) };
    }

    /// How many objects have been freed.
    fn freed(&self) -> usize {
        self.objects.iter().filter(|object| object.is_freed()).count()
    }
}

/// Guards of each kind, and one inside the other.
fn look(cell: &Cell) {
    {
        let _guard = cell.reclaimer.enter();
        cell.read();
    }
    {
        let _guard = cell.reclaimer.enter_owned();
        cell.read();
    }
    let outer = cell.reclaimer.enter();
    let object = cell.follow();
    drop(cell.reclaimer.enter());
    object.read();
    drop(outer);
}

fn retire(cell: &Cell, n: usize) {
    for i in 0..n {
        cell.replace();
        if i % 4 == 3 {
            cell.reclaimer.flush();
        }
    }
}

#[test]
fn what_a_guard_leads_to_is_not_freed_and_all_is_in_the_end() {
    const EACH: usize = 8;
    explore(500, || {
        let cell = Cell::new(1 + 2 * EACH);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| retire(&cell, EACH));
            }
            for _ in 0..3 {
                scope.spawn(|| look(&cell));
            }
        });
        cell.reclaimer.flush();
        assert_eq!(cell.freed(), 2 * EACH);
        assert!(!cell.follow().is_freed());
    });
}

/// Without a flush: as many guards leave as there are objects.
#[test]
fn what_is_left_to_who_leaves_is_freed_in_the_end() {
    const EACH: usize = 4;
    explore(500, || {
        let cell = Cell::new(1 + 2 * EACH);
        let retire = || {
            for i in 0..EACH {
                cell.replace();
                cell.reclaimer.seal();
                // One bag of two objects.
                if i % 2 == 1 {
                    cell.reclaimer.free_a_share();
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(retire);
            scope.spawn(retire);
            scope.spawn(|| look(&cell));
        });
        (0..2 * EACH).for_each(|_| drop(cell.reclaimer.enter()));
        assert_eq!(cell.freed(), 2 * EACH);
        assert!(!cell.follow().is_freed());
    });
}

/// There is neither memory nor room for what is retired under guards that still live: it waits all the same, and not in vain.
#[test]
fn what_is_retired_without_memory_is_not_freed_early_and_all_is_in_the_end() {
    const EACH: usize = 9;
    explore(500, || {
        let cell = Cell { reclaimer: Reclaimer::without_memory(), ..Cell::new(1 + 2 * EACH) };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..EACH).for_each(|_| cell.replace()));
            }
            for _ in 0..2 {
                scope.spawn(|| look(&cell));
            }
            scope.spawn(|| {
                let _guard = cell.reclaimer.enter();
                (0..4).for_each(|_| cell.read());
            });
        });
        cell.reclaimer.flush();
        assert_eq!(cell.freed(), 2 * EACH);
    });
}

/// Objects that found no room before are old enough, and those that found none later are not.
#[test]
fn what_is_retired_last_without_memory_is_not_freed_with_what_came_before() {
    explore(1, || {
        let cell = Cell { reclaimer: Reclaimer::without_memory(), ..Cell::new(11) };
        let first = cell.reclaimer.enter();
        assert!(cell.reclaimer.advance());
        // As many as there is room for, and one more.
        (0..9).for_each(|_| cell.replace());
        drop(first);
        assert!(cell.reclaimer.advance());
        // This guard prevents that room is made for the last object.
        let second = cell.reclaimer.enter();
        assert!(cell.reclaimer.advance());
        let reader = cell.reclaimer.enter();
        let object = cell.follow();
        cell.replace();
        assert_eq!(cell.freed(), 0);
        drop(second);
        assert!(cell.reclaimer.advance());
        cell.reclaimer.free();
        assert_eq!(cell.freed(), 9, "all but the last, which came later");
        object.read();
        drop(reader);
        cell.reclaimer.flush();
        assert_eq!(cell.freed(), 10);
    });
}

/// Nobody flushes after the last guard: the thread that held it does what was left to do.
#[test]
fn what_was_flushed_is_freed_when_the_last_guard_has_gone() {
    explore(500, || {
        let cell = Cell::new(2);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let _guard = cell.reclaimer.enter();
                    cell.read();
                });
            }
            scope.spawn(|| {
                let _guard = cell.reclaimer.enter_owned();
                cell.read();
            });
            scope.spawn(|| {
                cell.replace();
                cell.reclaimer.flush();
            });
        });
        assert_eq!(cell.freed(), 1, "nobody has freed it");
    });
}

/// A record has guards of two collectors in turn: a guard does not know whose call it answers.
#[test]
fn what_was_flushed_is_freed_though_records_have_guards_of_two_collectors() {
    explore(8000, || {
        let (cell, other) = (Cell::new(2), Cell::new(2));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        drop(cell.reclaimer.enter());
                        drop(other.reclaimer.enter());
                    }
                });
            }
            for cell in [&cell, &other] {
                scope.spawn(|| {
                    cell.replace();
                    cell.reclaimer.flush();
                });
            }
        });
        assert_eq!([cell.freed(), other.freed()], [1, 1], "nobody has freed it");
    });
}

/// Some threads advance, others free, and an object is unlinked at any moment in between.
#[test]
fn what_others_advance_over_is_not_freed_early() {
    explore(1500, || {
        let cell = Cell::new(3);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    cell.reclaimer.advance();
                    cell.reclaimer.advance();
                    cell.reclaimer.free();
                });
                scope.spawn(|| {
                    let _guard = cell.reclaimer.enter();
                    let object = cell.follow();
                    cell.reclaimer.advance();
                    cell.reclaimer.free();
                    object.read();
                });
            }
            scope.spawn(|| {
                let guard = cell.reclaimer.enter();
                cell.replace();
                cell.reclaimer.seal();
                drop(guard);
                cell.replace();
                cell.reclaimer.seal();
            });
        });
    });
}

/// A thread that ends gives its seat to the next, and with it its record: there are fewer seats than threads here.
#[test]
fn a_thread_that_ends_leaves_its_record_to_the_next() {
    const ROUNDS: usize = 6;
    explore(300, || {
        let cell = Cell::new(1 + ROUNDS * 3);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        thread::scope(|inner| {
                            inner.spawn(|| look(&cell));
                        });
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    thread::scope(|inner| {
                        inner.spawn(|| retire(&cell, 3));
                    });
                }
            });
        });
        cell.reclaimer.flush();
        assert_eq!(cell.freed(), ROUNDS * 3);
    });
}
