//! The cache under threads: its bound at every step, hits on entries that are being evicted, and what becomes of each entry:
//! the listener is told of it once, and it is dropped once.
#![cfg(shuttle)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use koel::{Cause, Policy, RandomState};
use shuttle::thread;
use shuttle_tests::{Identity, Ledger, Value, explore, pause};

type Cache = koel::Cache<u64, Value, Identity>;
type Builder<S = RandomState> = koel::CacheBuilder<u64, Value, S>;

/// How much a cache may hold: entries weigh one or four, and four is more than a half of this.
const CAPACITY: u64 = 6;
/// The number of a writer's keys.
const MINE: u64 = 6;

fn weight(key: u64) -> u64 {
    if key % 4 == 3 { 4 } else { 1 }
}

/// A cache of so many segments, which counts the entries that it evicts.
fn cache(policy: Policy, segments: usize, ledger: &Arc<Ledger>, evicted: &Arc<AtomicUsize>) -> Cache {
    let (ledger, evicted) = (Arc::clone(ledger), Arc::clone(evicted));
    let builder: Builder = koel::Cache::builder();
    let builder = builder.max_weight(CAPACITY).estimated_entries(segments).policy(policy);
    let builder = builder.weigher(|key, _| weight(*key)).on_removal(move |key, value, cause| {
        ledger.tell(*key, value);
        if cause == Cause::Size {
            evicted.fetch_add(1, Ordering::Relaxed);
        }
    });
    builder.hasher(Identity::default()).build()
}

/// Keys that lie in all segments.
fn key(i: u64) -> u64 {
    i | (i % 5) << 61
}

fn write(cache: &Cache, ledger: &Arc<Ledger>, first: u64) {
    for i in 0..MINE {
        let mine = key(first + i);
        cache.insert(mine, ledger.value(mine, i)).expect("light enough");
        if i % 3 == 1 {
            // The writer that has the key next to ours writes it as well.
            let other = key(first ^ 16 | i);
            cache.insert(other, ledger.value(other, i)).expect("light enough");
        }
        if i % 3 == 2 {
            let gone = cache.remove(&mine);
            gone.iter().for_each(|value| value.check(mine));
            assert!(cache.get(&mine).is_none(), "removed, and nobody else writes it");
        }
    }
}

fn hit(cache: &Cache, ledger: &Ledger) {
    for i in (0..2 * MINE).rev() {
        let wanted = key(i);
        if let Some(value) = cache.get(&wanted) {
            value.check(wanted);
        }
        let view = cache.pin();
        if let Some(value) = view.get_ref(&wanted) {
            ledger.check(wanted, value);
            pause();
            ledger.check(wanted, value);
        }
    }
}

fn watch(cache: &Cache) {
    for _ in 0..30 {
        let weight = cache.weight();
        assert!(weight <= CAPACITY, "{weight}");
    }
}

/// Makes the cache smaller, and as large again.
fn resize(cache: &Cache) {
    for _ in 0..2 {
        cache.set_capacity(CAPACITY - 2);
        assert!(cache.weight() <= CAPACITY - 2, "{} after it was made smaller", cache.weight());
        cache.set_capacity(CAPACITY);
    }
}

fn nothing_exceeds_the_bound_or_is_lost(policy: Policy, segments: usize, resizes: bool) {
    let evicted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&evicted);
    explore(200, move || {
        let ledger = Arc::<Ledger>::default();
        let cache = cache(policy, segments, &ledger, &count);
        thread::scope(|scope| {
            let (cache, ledger) = (&cache, &ledger);
            for first in [0, 16, 32] {
                scope.spawn(move || write(cache, ledger, first));
            }
            scope.spawn(|| hit(cache, ledger));
            scope.spawn(|| watch(cache));
            if resizes {
                scope.spawn(|| resize(cache));
            }
        });
        let view = cache.pin();
        let held: u64 =
            view.iter().inspect(|(key, value)| ledger.check(**key, value)).map(|(key, _)| weight(*key)).sum();
        assert_eq!(cache.weight(), held);
        drop(view);
        ledger.all_are_told_but(cache.len());
        drop(cache);
        ledger.all_are_dropped();
    });
    assert!(evicted.load(Ordering::Relaxed) > 0, "nothing was evicted");
}

#[test]
fn bound_holds_and_no_entry_is_lost_in_one_segment() {
    nothing_exceeds_the_bound_or_is_lost(Policy::default(), 1, false);
}

#[test]
fn bound_holds_and_no_entry_is_lost_while_segments_borrow() {
    nothing_exceeds_the_bound_or_is_lost(Policy::default(), 2, false);
}

#[test]
fn bound_holds_and_no_entry_is_lost_by_a_clock() {
    nothing_exceeds_the_bound_or_is_lost(Policy::Clock, 2, false);
}

#[test]
fn bound_holds_and_no_entry_is_lost_among_neighbours() {
    nothing_exceeds_the_bound_or_is_lost(Policy::Local, 2, false);
}

#[test]
fn bound_holds_and_no_entry_is_lost_while_the_capacity_changes() {
    nothing_exceeds_the_bound_or_is_lost(Policy::default(), 2, true);
}
