//! Epochs against readers [C1], [C2], [C5]: nobody reads what was freed, and what was flushed is freed.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::{Reclaimer, Watched, stall};
use loom::sync::Notify;
use loom::sync::atomic::{AtomicPtr, Ordering};
use loom::thread;

/// A cell that leads to one of two objects, the first of which is going to be retired.
struct Cell {
    reclaimer: Reclaimer,
    /// One that has nothing to do with it.
    other: Reclaimer,
    link: AtomicPtr<Watched>,
    objects: [Watched; 2],
}

impl Cell {
    #[expect(clippy::arc_with_non_send_sync, reason = "loom runs its threads on one thread of the system")]
    fn new() -> Arc<Self> {
        let cell = Arc::new(Cell {
            reclaimer: Reclaimer::new(),
            other: Reclaimer::new(),
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

    /// Reads under two guards, and under the one that ends last.
    fn read_until_both_end<G>(&self, first: G, second: G, first_ends_first: bool) {
        self.read();
        let (ends, last) = if first_ends_first { (first, second) } else { (second, first) };
        drop(ends);
        self.read();
        drop(last);
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
    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Arc<Self>) + 'static) -> thread::JoinHandle<()> {
        let cell = Arc::clone(self);
        thread::spawn(move || f(&cell))
    }
}

/// A model whose threads meet where they wait for each other: loom runs the first of those that can run, and of those that have
/// all yielded. It varies what they see, and little else.
fn scene(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    // More take long, but find what is there to be found soon: for mutants.
    let more = std::env::var("KOEL_SCENE_PREEMPTIONS").ok().and_then(|more| more.parse().ok());
    model.preemption_bound = Some(more.unwrap_or(preemptions));
    model.check(f);
}

#[test]
fn what_a_guard_leads_to_is_not_freed() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| {
            let _guard = cell.reclaimer.enter();
            cell.read();
        });
        cell.replace();
        reader.join().unwrap();
    });
}

#[test]
fn what_an_owned_guard_leads_to_is_not_freed() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| {
            let _guard = cell.reclaimer.enter_owned();
            cell.read();
        });
        cell.replace();
        reader.join().unwrap();
    });
}

/// Of two the first has a record to itself. Who leaves another one first takes nothing from who shares it, and who comes last
/// sees what the first has seen.
#[test]
fn owned_guards_that_share_a_record_hide_none() {
    scene(1, || {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| {
            let _guard = cell.reclaimer.enter_owned();
            cell.read();
        });
        let enter = || [cell.reclaimer.enter_owned(), cell.reclaimer.enter_owned()];
        let guards = enter();
        cell.read();
        drop(guards);
        cell.replace();
        let guards = enter();
        cell.read();
        reader.join().unwrap();
        drop(guards);
        assert!(cell.objects[0].is_freed(), "nobody has freed it");
    });
}

/// A guard after the other, and one inside of the other.
#[test]
fn a_record_that_is_used_again_hides_no_guard() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| {
            drop(cell.reclaimer.enter());
            let guard = cell.reclaimer.enter();
            drop(cell.reclaimer.enter());
            cell.read();
            drop(guard);
        });
        cell.replace();
        reader.join().unwrap();
    });
}

/// A record goes from one collector's guard to another's, and back: it hides neither.
#[test]
fn a_record_of_two_collectors_hides_no_guard() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| {
            drop(cell.other.enter());
            let guard = cell.reclaimer.enter();
            cell.read();
            drop(guard);
            let _other = cell.other.enter();
        });
        cell.replace();
        reader.join().unwrap();
    });
}

/// A guard in a thread's second record, and, when the first is idle again, another one of the same collector in that.
#[test]
fn two_records_of_one_collector_hide_no_guard() {
    for first_ends_first in [false, true] {
        loom::model(move || {
            let cell = Cell::new();
            let reader = cell.spawn(move |cell| {
                let (other, second) = (cell.other.enter(), cell.reclaimer.enter());
                drop(other);
                let first = cell.reclaimer.enter();
                cell.read_until_both_end(first, second, first_ends_first);
            });
            cell.replace();
            reader.join().unwrap();
        });
    }
}

/// Guards of two collectors at a time, which end in either order.
#[test]
fn guards_of_two_collectors_are_both_seen() {
    for other_ends_first in [false, true] {
        loom::model(move || {
            let cell = Cell::new();
            let reader = cell.spawn(move |cell| {
                let (other, guard) = (cell.other.enter(), cell.reclaimer.enter());
                cell.read();
                if other_ends_first {
                    drop(other);
                    cell.read();
                }
                drop(guard);
            });
            cell.replace();
            reader.join().unwrap();
        });
    }
}

/// A record that is another collector's by the time it is looked at again is not waited for in vain.
#[test]
fn what_was_flushed_is_freed_when_the_record_is_another_collectors() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| {
            drop(cell.reclaimer.enter());
            drop(cell.other.enter());
        });
        cell.replace();
        reader.join().unwrap();
        assert!(cell.objects[0].is_freed(), "nobody has freed it");
    });
}

/// A call that another collector's guard of the same record has answered is made anew, though a guard is there again that was
/// entered as early as the first.
#[test]
fn what_was_flushed_is_freed_when_another_collectors_guard_has_answered() {
    // Away from the reader before its first guard leaves, back when that is called, away again when the last one is there.
    scene(3, || {
        let (cell, entered) = (Cell::new(), Arc::new(Notify::new()));
        let there = Arc::clone(&entered);
        let reader = cell.spawn(move |cell| {
            let guard = cell.reclaimer.enter();
            there.notify();
            drop(guard);
            drop(cell.other.enter());
            drop(cell.reclaimer.enter());
        });
        entered.wait();
        cell.replace();
        reader.join().unwrap();
        assert!(cell.objects[0].is_freed(), "nobody has freed it");
    });
}

/// Where a thread has more guards than records of its own; and where others have all that it shares, so that one is lent.
#[test]
fn guards_that_share_a_record_or_are_lent_one_hide_none() {
    for (others, first_ends_first) in [(2, false), (2, true), (3, false), (3, true)] {
        loom::model(move || {
            let cell = Cell::new();
            let reader = cell.spawn(move |cell| {
                let others: Vec<_> = (0..others).map(|_| cell.other.enter()).collect();
                let (first, second) = (cell.reclaimer.enter(), cell.reclaimer.enter());
                cell.read_until_both_end(first, second, first_ends_first);
                drop(others);
            });
            cell.replace();
            reader.join().unwrap();
            assert!(cell.objects[0].is_freed(), "nobody has freed it");
        });
    }
}

/// Each is entered before the last one leaves: what they share is of one epoch, or no other would ever come.
fn take_turns<'c, G>(cell: &'c Cell, enter: impl Fn(&'c Reclaimer) -> G) {
    let mut guard = enter(&cell.reclaimer);
    cell.unlink();
    cell.reclaimer.seal();
    for _ in 0..4 {
        let next = enter(&cell.reclaimer);
        drop(std::mem::replace(&mut guard, next));
        cell.reclaimer.advance();
    }
    cell.reclaimer.free();
    assert!(cell.objects[0].is_freed(), "held up for ever");
}

#[test]
fn guards_that_take_turns_hold_up_nothing() {
    loom::model(|| {
        let cell = Cell::new();
        let _others = [cell.other.enter(), cell.other.enter()];
        take_turns(&cell, Reclaimer::enter);
    });
    loom::model(|| take_turns(&Cell::new(), |reclaimer| [reclaimer.enter_owned(), reclaimer.enter_owned()]));
}

/// One thread unlinks, one advances, between what it tells the guards and its look at them, too, and one frees: what
/// the reader has read reaches it by the record and the epoch alone. Then the reader's record has another guard, of the same
/// collector or of another.
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
        // Until the advancer is in the middle.
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

/// Each advance by somebody who may have missed the guard in the one before.
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
        // Until the second advance is in the middle. A yield would not do: nobody sees the same twice then, if there is newer.
        nobody.join().unwrap();
        cell.unlink();
        cell.reclaimer.seal();
        drop(guard);
        for thread in [first, second, reader] {
            thread.join().unwrap();
        }
    });
}

/// Whoever leaves last frees what a flush could not.
#[test]
fn what_was_flushed_is_freed_when_the_last_guard_has_gone() {
    loom::model(|| {
        let cell = Cell::new();
        let reader = cell.spawn(|cell| drop(cell.reclaimer.enter()));
        cell.replace();
        reader.join().unwrap();
        assert!(cell.objects[0].is_freed(), "nobody has freed it");
    });
}
