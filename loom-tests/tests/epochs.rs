//! Epochs against readers [C1], [C2], [C5]: nobody reads what was freed, and what was flushed is freed.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::{Reclaimer, Watched, stall};
use loom::sync::atomic::{AtomicPtr, Ordering};
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

    /// Unlinks the first object.
    fn unlink(&self) {
        self.link.store(self.object(1), Ordering::Release);
        // SAFETY: unlinked just now, once.
        unsafe { self.reclaimer.retire(self.object(0)) };
    }

    /// And frees it as soon as it may.
    fn replace(&self) {
        self.unlink();
        self.reclaimer.flush();
    }

    /// Another thread.
    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Self) + 'static) -> thread::JoinHandle<()> {
        let cell = Arc::clone(self);
        thread::spawn(move || f(&cell))
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

/// One thread retires and frees, another advances, between what it announces to the guards and what it finds then, too.
///
/// Where the threads yield is where they have to meet; and none of them learns of the others but through the epochs.
#[test]
fn what_others_advance_over_is_not_freed_early() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| {
            let guard = cell.reclaimer.enter();
            cell.read();
            thread::yield_now();
            drop(guard);
            drop(cell.reclaimer.enter());
        });
        let retirer = cell.spawn(|cell| {
            cell.unlink();
            cell.reclaimer.seal();
            thread::yield_now();
            cell.reclaimer.free();
        });
        cell.reclaimer.advance();
        thread::yield_now();
        cell.reclaimer.advance();
        stall::after(0, thread::yield_now);
        cell.reclaimer.advance();
        reader.join().unwrap();
        retirer.join().unwrap();
    });
}

/// The last advance is not by whoever has seen the guard in the one before.
#[test]
fn what_several_advance_over_is_not_freed_early() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| {
            let _guard = cell.reclaimer.enter();
            cell.read();
            thread::yield_now();
        });
        let retirer = cell.spawn(|cell| {
            cell.unlink();
            cell.reclaimer.seal();
            thread::yield_now();
            cell.reclaimer.advance();
            cell.reclaimer.free();
        });
        cell.reclaimer.advance();
        thread::yield_now();
        cell.reclaimer.advance();
        reader.join().unwrap();
        retirer.join().unwrap();
    });
}

/// Unlinked and sealed in the middle of an advance.
#[test]
fn what_is_sealed_late_is_not_freed_early() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| {
            let _guard = cell.reclaimer.enter();
            cell.read();
        });
        let retirer = cell.spawn(|cell| {
            let _guard = cell.reclaimer.enter();
            cell.unlink();
            cell.reclaimer.seal();
        });
        thread::yield_now();
        cell.reclaimer.advance();
        stall::after(0, thread::yield_now);
        cell.reclaimer.advance();
        thread::yield_now();
        cell.reclaimer.advance();
        cell.reclaimer.free();
        reader.join().unwrap();
        retirer.join().unwrap();
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
