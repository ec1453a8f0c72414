//! Several threads that advance an epoch, free what is old, and unlink meanwhile [C2]: nobody reads what was freed.
#![cfg(loom)]

use koel::model::{end_thread, stall};
use loom::sync::atomic::Ordering;
use loom::thread;
use loom_tests::{Cell, scene};

/// One thread unlinks, one advances, and is also stopped between what it tells the guards and its look at them, and one frees:
/// what the reader has read reaches the freeing thread by the record and the epoch alone. Then the reader's record has another
/// guard, of the same collector or of another.
fn advances_by_others(then: fn(&Cell)) {
    scene(1, move || {
        let cell = Cell::new();
        // Takes its seat: later, that would show what came before to whoever takes the next.
        drop(cell.reclaimer.enter());
        let retirer = cell.spawn(|cell| {
            cell.unlink();
            cell.reclaimer.seal();
            cell.reclaimer.advance();
        });
        let advancer = cell.spawn(|cell| {
            stall::after(0, thread::yield_now);
            cell.reclaimer.advance();
        });
        let freer = cell.spawn(|cell| {
            thread::yield_now();
            cell.reclaimer.free();
        });
        cell.reclaimer.advance();
        let guard = cell.reclaimer.enter();
        cell.read();
        retirer.join().unwrap();
        // Until the advancing thread is in the middle.
        thread::yield_now();
        drop(guard);
        then(&cell);
        advancer.join().unwrap();
        freer.join().unwrap();
    });
}

#[test]
fn what_others_advance_over_is_not_freed_early() {
    advances_by_others(|cell| std::mem::forget(cell.reclaimer.enter()));
}

#[test]
fn what_others_advance_over_is_not_freed_early_for_another_collectors_guard() {
    advances_by_others(|cell| std::mem::forget(cell.other.enter()));
}

#[test]
fn what_others_advance_over_is_not_freed_early_for_a_seat_that_is_given_back() {
    advances_by_others(|_| end_thread());
}

/// Each advance is made by a thread that may have missed the guard in the advance before.
#[test]
fn what_several_advance_over_is_not_freed_early() {
    scene(1, || {
        let cell = Cell::new();
        // Takes its seat: later, that would show what came before to whoever takes the next.
        drop(cell.reclaimer.enter());
        let retirer = cell.spawn(|cell| {
            cell.unlink();
            cell.reclaimer.seal();
        });
        let advancer = cell.spawn(|cell| {
            cell.reclaimer.advance();
        });
        let freer = cell.spawn(|cell| {
            cell.reclaimer.advance();
            cell.reclaimer.free();
        });
        cell.reclaimer.advance();
        let _guard = cell.reclaimer.enter();
        cell.read();
        for thread in [retirer, advancer, freer] {
            thread.join().unwrap();
        }
    });
}

/// Unlinked in the middle of an advance, and read after it.
#[test]
fn what_is_unlinked_late_is_not_freed_early() {
    scene(0, || {
        let cell = Cell::new();
        let first = cell.spawn(|cell| {
            cell.reclaimer.advance();
        });
        let second = cell.spawn(|cell| {
            stall::after(0, thread::yield_now);
            cell.reclaimer.advance();
        });
        let nobody = thread::spawn(|| ());
        let reader = cell.spawn(|cell| {
            // Until the second advance is done.
            thread::yield_now();
            let _guard = cell.reclaimer.enter();
            // SAFETY: one of ours.
            let object = unsafe { &*cell.link.load(Ordering::Acquire) };
            cell.reclaimer.advance();
            cell.reclaimer.free();
            object.read();
        });
        let guard = cell.reclaimer.enter();
        // Until the second advance is in the middle. A yield would not do: after it, no thread reads an old value a second time
        // if there is a newer one.
        nobody.join().unwrap();
        cell.unlink();
        cell.reclaimer.seal();
        drop(guard);
        for thread in [first, second, reader] {
            thread.join().unwrap();
        }
    });
}
