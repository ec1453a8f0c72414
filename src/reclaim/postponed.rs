//! Calls to collect that a thread could not follow when its guard left [C5]: in a closure under the lock of some map, where
//! others' destructors must not run, or deep in destructors already; and flushes there. They are followed when the next guard
//! of the same collector leaves on this thread, or by whoever frees further out.

use core::cell::Cell;

use crate::record::POSTPONED;
use crate::seats;
use crate::sync::Ordering::Relaxed;
use crate::sync::{per_thread, with_mine};

/// Collectors that are remembered; of more, the last ones.
const MOST: usize = 4;
/// After so many guards of other collectors have left all is forgotten: each of them went the long way in vain.
const PATIENCE: u32 = 100;

struct Mine {
    /// Numbers of collectors; 0 is nobody's.
    collectors: [Cell<u32>; MOST],
    /// Where the next is noted if none is free.
    next: Cell<usize>,
    patience: Cell<u32>,
}

per_thread! {
    static MINE: Mine = Mine {
        collectors: [const { Cell::new(0) }; MOST],
        next: Cell::new(0),
        patience: Cell::new(0),
    };
}

/// Whoever leaves next on this thread asks [`is_to_follow`]. False: the thread has no records that could tell.
pub(super) fn postpone(collector: u32) -> bool {
    let Some(records) = seats::my_records_if_any() else { return false };
    with_mine(&MINE, |mine| {
        let is_noted = mine.collectors.iter().any(|noted| noted.get() == collector);
        if !is_noted {
            let free = mine.collectors.iter().find(|noted| noted.get() == 0);
            free.unwrap_or_else(|| mine.next_in_turn()).set(collector);
        }
        mine.patience.set(PATIENCE);
    });
    records.iter().for_each(|record| record.call(POSTPONED));
    true
}

impl Mine {
    /// Whose call is forgotten where there is no room for another.
    fn next_in_turn(&self) -> &Cell<u32> {
        let next = self.next.get();
        self.next.set((next + 1) % MOST);
        &self.collectors[next]
    }

    /// Whether a call of this collector was noted, which is forgotten.
    fn take(&self, collector: u32) -> bool {
        let noted = self.collectors.iter().find(|noted| noted.get() == collector);
        noted.is_some_and(|noted| noted.replace(0) == collector)
    }
}

/// Whether a call may have been postponed on this thread.
#[inline]
pub(super) fn is_any() -> bool {
    // Relaxed: the thread's own.
    seats::my_records_if_any().is_some_and(|mine| mine.first().calls.load(Relaxed) & POSTPONED != 0)
}

/// Whether a call of this collector was postponed. It is to be followed then.
pub(super) fn take(collector: u32) -> bool {
    with_mine(&MINE, |mine| mine.take(collector))
}

/// The same, when a guard of the collector leaves.
#[cold]
pub(super) fn is_to_follow(collector: u32) -> bool {
    with_mine(&MINE, |mine| {
        let is_noted = mine.take(collector);
        mine.patience.set(mine.patience.get().saturating_sub(1));
        if mine.patience.get() == 0 {
            mine.collectors.iter().for_each(|noted| noted.set(0));
        }
        if mine.collectors.iter().all(|noted| noted.get() == 0) {
            for record in seats::my_records_if_any().into_iter().flat_map(|records| records.iter()) {
                record.uncall(POSTPONED);
            }
        }
        is_noted
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
            assert!(!postpone(7), "this thread has no records yet");
            assert!(!are_called());
            assert!(postpone(7) && postpone(8) && postpone(7) && are_called());
            assert!(!is_to_follow(9) && is_to_follow(7) && !is_to_follow(7) && are_called());
            assert!(is_to_follow(8) && !are_called());
        });
    }

    #[test]
    fn what_nobody_follows_is_forgotten_and_of_many_the_first() {
        on_a_new_thread(|| {
            seats::my_records();
            for collector in 1..=5 {
                assert!(postpone(collector));
            }
            assert!(!is_to_follow(1) && is_to_follow(2) && is_to_follow(5));
            assert_eq!((0..PATIENCE).filter(|_| are_called() && is_to_follow(6)).count(), 0);
            assert!(!are_called() && !is_to_follow(3));
        });
    }

    #[test]
    fn nothing_is_forgotten_while_there_is_room() {
        on_a_new_thread(|| {
            seats::my_records();
            assert!((1..=4).all(postpone) && is_to_follow(2) && is_to_follow(3));
            assert!(postpone(5) && postpone(6));
            assert!([1, 4, 5, 6].into_iter().all(is_to_follow) && !are_called());
        });
    }
}
