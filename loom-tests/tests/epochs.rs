//! Epochs against readers [C1], [C2], [C5]: nobody reads what was freed, and what was flushed is freed.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::{Reclaimer, end_thread};
use loom::sync::Notify;
use loom_tests::{Cell, scene};

/// The object to which a cell leads another thread is replaced and freed; `reader` is what that thread does meanwhile.
fn replaced_beside(reader: impl Fn(&Arc<Cell>) + Copy + Send + Sync + 'static) {
    loom::model(move || {
        replace_beside(reader);
    });
}

/// The same, where the object must have been freed.
fn freed_beside(reader: impl Fn(&Arc<Cell>) + Copy + Send + Sync + 'static) {
    loom::model(move || {
        let cell = replace_beside(reader);
        assert!(cell.objects[0].is_freed(), "nobody has freed it");
    });
}

fn replace_beside(reader: impl Fn(&Arc<Cell>) + 'static) -> Arc<Cell> {
    let cell = Cell::new();
    let reader = cell.spawn(reader);
    cell.replace();
    reader.join().unwrap();
    cell
}

#[test]
fn what_a_guard_leads_to_is_not_freed() {
    replaced_beside(|cell| {
        let _guard = cell.reclaimer.enter();
        cell.read();
    });
}

#[test]
fn what_an_owned_guard_leads_to_is_not_freed() {
    replaced_beside(|cell| {
        let _guard = cell.reclaimer.enter_owned();
        cell.read();
    });
}

/// Of two guards, the first has a record to itself. A guard that leaves another record first takes nothing from one that shares
/// it, and the guard that leaves last sees what the first has seen.
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

/// One guard after the other, and one inside the other.
#[test]
fn a_record_that_is_used_again_hides_no_guard() {
    replaced_beside(|cell| {
        drop(cell.reclaimer.enter());
        let guard = cell.reclaimer.enter();
        drop(cell.reclaimer.enter());
        cell.read();
        drop(guard);
    });
}

/// A record goes from one collector's guard to another's, and back: it hides neither.
#[test]
fn a_record_of_two_collectors_hides_no_guard() {
    replaced_beside(|cell| {
        drop(cell.other.enter());
        let guard = cell.reclaimer.enter();
        cell.read();
        drop(guard);
        let _other = cell.other.enter();
    });
}

/// A guard in a thread's second record, and, when the first record is idle again, another guard of the same collector in that
/// one.
#[test]
fn two_records_of_one_collector_hide_no_guard() {
    for first_ends_first in [false, true] {
        replaced_beside(move |cell| {
            let (other, second) = (cell.other.enter(), cell.reclaimer.enter());
            drop(other);
            let first = cell.reclaimer.enter();
            cell.read_until_both_end(first, second, first_ends_first);
        });
    }
}

/// Guards of two collectors at a time, which end in either order.
#[test]
fn guards_of_two_collectors_are_both_seen() {
    for other_ends_first in [false, true] {
        replaced_beside(move |cell| {
            let (other, guard) = (cell.other.enter(), cell.reclaimer.enter());
            cell.read();
            if other_ends_first {
                drop(other);
                cell.read();
            }
            drop(guard);
        });
    }
}

/// A record that is another collector's by the time it is looked at again is not waited for in vain.
#[test]
fn what_was_flushed_is_freed_when_the_record_is_another_collectors() {
    freed_beside(|cell| {
        drop(cell.reclaimer.enter());
        drop(cell.other.enter());
    });
}

/// A call that another collector's guard of the same record has answered is made anew, even if there is again a guard with the
/// same stamp as the first.
#[test]
fn what_was_flushed_is_freed_when_another_collectors_guard_has_answered() {
    // Away from the reader before its first guard leaves, back to it when that guard is called, away again when the last guard
    // is there.
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

/// Threads that give their seats back, one of them while its guard lives, and one that takes a seat again.
#[test]
fn seats_that_are_given_back_hide_no_guard() {
    fn seated(read: fn(&Cell)) {
        loom::model(move || {
            let cell = Cell::new();
            // Takes a seat: later, that would show what came before to whoever takes the next.
            drop(cell.reclaimer.enter());
            let reader = cell.spawn(move |cell| read(cell));
            cell.replace();
            reader.join().unwrap();
            cell.reclaimer.flush();
            assert!(cell.objects[0].is_freed(), "nobody has freed it");
        });
    }
    seated(|cell| {
        let guard = cell.reclaimer.enter();
        cell.read();
        drop(guard);
        end_thread();
    });
    seated(|cell| {
        let guard = cell.reclaimer.enter();
        end_thread();
        cell.read();
        drop(guard);
    });
    seated(|cell| {
        drop(cell.reclaimer.enter());
        end_thread();
        let _guard = cell.reclaimer.enter();
        cell.read();
    });
}

/// A thread has more guards than records of its own; and others have all records that it shares, so that one is lent.
#[test]
fn guards_that_share_a_record_or_are_lent_one_hide_none() {
    for (others, first_ends_first) in [(2, false), (2, true), (3, false), (3, true)] {
        freed_beside(move |cell| {
            let others: Vec<_> = (0..others).map(|_| cell.other.enter()).collect();
            let (first, second) = (cell.reclaimer.enter(), cell.reclaimer.enter());
            cell.read_until_both_end(first, second, first_ends_first);
            drop(others);
        });
    }
}

/// Each guard is entered before the last one leaves: those that share a record are of one epoch, or the next epoch would never
/// come.
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

/// The guard that leaves last frees what a flush could not.
#[test]
fn what_was_flushed_is_freed_when_the_last_guard_has_gone() {
    freed_beside(|cell| drop(cell.reclaimer.enter()));
}
