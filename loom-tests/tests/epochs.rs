//! Epochs against readers [C1], [C2], [C5]: nobody reads what was freed, and what was flushed is freed.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::{Reclaimer, Watched};
use loom::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use loom::thread;

/// A cell that leads to one of two objects, the first of which is going to be retired.
struct Cell {
    reclaimer: Reclaimer,
    link: AtomicPtr<Watched>,
    objects: [Watched; 2],
}

impl Cell {
    fn new() -> Arc<Self> {
        let cell = Arc::new(Cell {
            reclaimer: Reclaimer::new(),
            link: AtomicPtr::new(std::ptr::null_mut()),
            objects: Default::default(),
        });
        cell.link.store(cell.object(0), Ordering::Relaxed);
        cell
    }

    fn object(&self, index: usize) -> *mut Watched {
        std::ptr::from_ref(&self.objects[index]).cast_mut()
    }

    /// What a reader does under its guard.
    fn read(&self) {
        // SAFETY: one of ours.
        unsafe { &*self.link.load(Ordering::Acquire) }.read();
    }

    /// Unlinks the first object, and frees it as soon as it may.
    fn replace(&self) {
        self.link.store(self.object(1), Ordering::Release);
        // SAFETY: unlinked just now, once.
        unsafe { self.reclaimer.retire(self.object(0)) };
        self.reclaimer.flush();
    }
}

#[test]
fn what_a_guard_leads_to_is_not_freed() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                let _guard = cell.reclaimer.enter();
                cell.read();
            })
        };
        cell.replace();
        reader.join().unwrap();
    });
}

#[test]
fn what_an_owned_guard_leads_to_is_not_freed() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                let _guard = cell.reclaimer.enter_owned();
                cell.read();
            })
        };
        cell.replace();
        reader.join().unwrap();
    });
}

/// A guard after the other, and one inside of the other.
#[test]
fn a_record_that_is_used_again_hides_no_guard() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                drop(cell.reclaimer.enter());
                let guard = cell.reclaimer.enter();
                drop(cell.reclaimer.enter());
                cell.read();
                drop(guard);
            })
        };
        cell.replace();
        reader.join().unwrap();
    });
}

/// One thread retires, another advances, and the first frees what it finds old enough.
#[test]
fn what_others_advance_over_is_not_freed_early() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                let _guard = cell.reclaimer.enter();
                cell.read();
            })
        };
        cell.link.store(cell.object(1), Ordering::Release);
        // SAFETY: unlinked just now, once.
        unsafe { cell.reclaimer.retire(cell.object(0)) };
        cell.reclaimer.seal();
        let done = Arc::new(AtomicBool::new(false));
        let advancer = {
            let cell = Arc::clone(&cell);
            let done = Arc::clone(&done);
            thread::spawn(move || {
                for _ in 0..3 {
                    cell.reclaimer.advance();
                }
                // Relaxed: to free needs no more order than the epoch gives.
                done.store(true, Ordering::Relaxed);
            })
        };
        while !done.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        cell.reclaimer.free();
        reader.join().unwrap();
        advancer.join().unwrap();
    });
}

/// Whoever leaves last frees what a flush could not.
#[test]
fn what_was_flushed_is_freed_when_the_last_guard_has_gone() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || drop(cell.reclaimer.enter()))
        };
        cell.replace();
        reader.join().unwrap();
        assert!(cell.objects[0].is_freed(), "nobody has freed it");
    });
}
