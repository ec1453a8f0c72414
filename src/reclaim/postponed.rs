//! Calls to collect that a thread could not follow when its guard left [C5]: in a closure under the lock of some map, where
//! others' destructors must not run, or deep in destructors already; and flushes there. They are followed when the next guard
//! of the same collector leaves on this thread, or by the call that frees further out.

use core::cell::Cell;

use crate::record::{Extent, POSTPONED};
use crate::seats;
use crate::sync::Ordering::Relaxed;
use crate::sync::{per_thread, with_mine};

/// How many collectors are remembered; if there are more, the last ones.
const MOST: usize = 4;
/// After so many guards of other collectors have left, everything is forgotten: each of them took the slow path in vain.
const PATIENCE: u32 = 100;

struct Mine {
    /// Numbers of collectors, and how much they ask to be freed; 0 is no collector's.
    collectors: [Cell<(u32, Extent)>; MOST],
    /// Where the next call is noted if no place is free.
    next: Cell<usize>,
    patience: Cell<u32>,
}

const NOBODY: (u32, Extent) = (0, Extent::Share);

per_thread! {
    static MINE: Mine = Mine {
        collectors: [const { Cell::new(NOBODY) }; MOST],
        next: Cell::new(0),
        patience: Cell::new(0),
    };
}

/// Notes a call: the next guard that leaves on this thread asks [`to_follow`]. Returns false if the thread has no records that
/// could tell it.
pub(super) fn postpone(collector: u32, extent: Extent) -> bool {
    let Some(records) = seats::my_records_if_any() else { return false };
    with_mine(&MINE, |mine| {
        let noted = mine.of(collector).or_else(|| mine.of(NOBODY.0)).unwrap_or_else(|| mine.next_in_turn());
        let before = if noted.get().0 == collector { noted.get().1 } else { Extent::Share };
        noted.set((collector, extent.max(before)));
        mine.patience.set(PATIENCE);
    });
    records.iter().for_each(|record| record.call(POSTPONED));
    true
}

impl Mine {
    /// The place whose call is forgotten when there is no room for another.
    fn next_in_turn(&self) -> &Cell<(u32, Extent)> {
        let next = self.next.get();
        self.next.set((next + 1) % MOST);
        &self.collectors[next]
    }

    /// The place where a call of this collector is noted.
    fn of(&self, collector: u32) -> Option<&Cell<(u32, Extent)>> {
        self.collectors.iter().find(|noted| noted.get().0 == collector)
    }

    /// Takes out what a noted call of this collector asked for; the call is then forgotten.
    fn take(&self, collector: u32) -> Option<Extent> {
        self.of(collector).map(|noted| noted.replace(NOBODY).1)
    }
}

/// Whether a call may have been postponed on this thread.
#[inline]
pub(super) fn is_any() -> bool {
    // Relaxed: the thread's own.
    seats::my_records_if_any().is_some_and(|mine| mine.first().calls.load(Relaxed) & POSTPONED != 0)
}

/// Takes what a postponed call of this collector asked for. The caller must follow it.
pub(super) fn take(collector: u32) -> Option<Extent> {
    with_mine(&MINE, |mine| mine.take(collector))
}

/// The same, when a guard of the collector leaves.
#[cold]
pub(super) fn to_follow(collector: u32) -> Option<Extent> {
    with_mine(&MINE, |mine| {
        let noted = mine.take(collector);
        mine.patience.set(mine.patience.get().saturating_sub(1));
        if mine.patience.get() == 0 {
            mine.collectors.iter().for_each(|noted| noted.set(NOBODY));
        }
        if mine.collectors.iter().all(|noted| noted.get() == NOBODY) {
            for record in seats::my_records_if_any().into_iter().flat_map(|records| records.iter()) {
                record.uncall(POSTPONED);
            }
        }
        noted
    })
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::record::Record;

    fn are_called() -> bool {
        let is_called = |record: &Record| record.calls.load(Relaxed) & POSTPONED != 0;
        let called = seats::my_records().iter().filter(|record| is_called(record)).count();
        assert!([0, seats::my_records().iter().count()].contains(&called));
        called > 0
    }

    fn on_a_new_thread(test: fn()) {
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn calls_are_followed_by_their_own_collectors_once() {
        on_a_new_thread(|| {
            assert!(!postpone(7, Extent::All), "this thread has no records yet");
            assert!(!are_called());
            assert!(postpone(7, Extent::Share) && postpone(8, Extent::Share) && postpone(7, Extent::Share));
            assert!(are_called());
            assert_eq!([9, 7, 7].map(to_follow), [None, Some(Extent::Share), None]);
            assert!(are_called());
            assert_eq!(to_follow(8), Some(Extent::Share));
            assert!(!are_called());
        });
    }

    #[test]
    fn what_nobody_follows_is_forgotten_and_of_many_the_first() {
        on_a_new_thread(|| {
            seats::my_records();
            for collector in 1..=5 {
                assert!(postpone(collector, Extent::All));
            }
            assert_eq!([1, 2, 5].map(to_follow), [None, Some(Extent::All), Some(Extent::All)]);
            assert_eq!((0..PATIENCE).filter(|_| are_called() && to_follow(6).is_some()).count(), 0);
            assert!(!are_called() && to_follow(3).is_none());
        });
    }

    #[test]
    fn nothing_is_forgotten_while_there_is_room() {
        on_a_new_thread(|| {
            seats::my_records();
            let note = |collector| postpone(collector, Extent::All);
            assert!((1..=4).all(note) && [2, 3].into_iter().all(|noted| to_follow(noted).is_some()));
            assert!(note(5) && note(6));
            assert!([1, 4, 5, 6].into_iter().all(|noted| to_follow(noted).is_some()) && !are_called());
        });
    }

    /// The order of the calls does not matter.
    #[test]
    fn all_is_freed_if_any_of_several_calls_has_asked_for_it() {
        on_a_new_thread(|| {
            seats::my_records();
            assert!(postpone(1, Extent::Share) && postpone(1, Extent::All));
            assert!(postpone(2, Extent::All) && postpone(2, Extent::Share) && postpone(3, Extent::Share));
            assert_eq!([1, 2, 3].map(to_follow), [Some(Extent::All), Some(Extent::All), Some(Extent::Share)]);
        });
    }
}
