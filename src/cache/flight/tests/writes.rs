//! Writes to a key while it is being loaded: what was loaded before is not kept after.

use std::thread;

use super::{Cache, Count, until};

/// A write while the key is loaded by another thread, and what the cache has when both are over.
fn written_while_loading(write: impl Fn(&Cache), kept: Option<u32>) {
    let (cache, begun, go) = (Cache::new(), Count::default(), Count::default());
    let slow = |value| {
        let (cache, begun, go) = (&cache, &begun, &go);
        move || {
            cache.get_or_insert_with(&1, || {
                begun.add();
                until(|| go.get() == 1);
                value
            })
        }
    };
    thread::scope(|scope| {
        let leader = scope.spawn(slow(7));
        // Before that it might find what is written.
        until(|| begun.get() == 1);
        let follower = scope.spawn(slow(8));
        until(|| cache.followers(&1) == 1);
        write(&cache);
        assert_eq!(cache.get(&1), kept);
        go.add();
        assert_eq!((leader.join().unwrap(), follower.join().unwrap()), (7, 7));
    });
    assert_eq!((cache.get(&1), cache.loads()), (kept, 0));
}

#[test]
fn a_load_does_not_bring_back_what_was_removed_meanwhile() {
    written_while_loading(
        |cache| {
            cache.remove(&1);
        },
        None,
    );
    written_while_loading(Cache::clear, None);
}

#[test]
fn a_load_does_not_replace_what_was_inserted_meanwhile() {
    written_while_loading(|cache| cache.insert(1, 9), Some(9));
    // Even if that has been evicted since.
    written_while_loading(
        |cache| {
            cache.insert(1, 9);
            cache.evict(&1);
        },
        None,
    );
}

#[test]
fn a_load_is_kept_whatever_is_written_to_other_keys() {
    let cache = Cache::new();
    let value = cache.get_or_insert_with(&1, || {
        assert!((2..1000).all(|key| cache.remove(&key).is_none()));
        cache.evict(&1);
        7
    });
    assert_eq!((value, cache.get(&1)), (7, Some(7)));
}

#[test]
fn who_comes_after_a_write_does_not_wait_for_what_was_loaded_before() {
    let (cache, begun, go) = (Cache::new(), Count::default(), Count::default());
    thread::scope(|scope| {
        let old = scope.spawn(|| {
            cache.get_or_insert_with(&1, || {
                begun.add();
                until(|| go.get() == 1);
                7
            })
        });
        until(|| begun.get() == 1);
        cache.remove(&1);
        assert_eq!(cache.get_or_insert_with(&1, || 8), 8);
        go.add();
        assert_eq!(old.join().unwrap(), 7);
    });
    assert_eq!((cache.get(&1), cache.loads()), (Some(8), 0));
}

/// Each load begins after a write has made the one before stale; each write finds the load that is not yet stale.
#[test]
fn a_second_write_is_noticed_by_a_second_load() {
    let (cache, go) = (Cache::new(), Count::default());
    thread::scope(|scope| {
        let loads: Vec<_> = (1..=3)
            .map(|nth: usize| {
                let load = scope.spawn({
                    let (cache, go) = (&cache, &go);
                    move || {
                        cache.get_or_insert_with(&1, || {
                            until(|| go.get() == nth);
                            nth as u32
                        })
                    }
                });
                until(|| cache.loads() == nth);
                cache.remove(&1);
                load
            })
            .collect();
        for (nth, load) in (1..).zip(loads) {
            go.add();
            assert_eq!((load.join().unwrap(), cache.get(&1)), (nth, None));
        }
    });
    assert_eq!(cache.loads(), 0);
}

#[test]
fn followers_of_a_stale_load_that_fails_load_anew_and_once() {
    let (cache, go, loads) = (Cache::new(), Count::default(), Count::default());
    thread::scope(|scope| {
        let old = scope.spawn(|| {
            cache.try_get_or_insert_with(&1, || {
                until(|| go.get() == 1);
                Err("no")
            })
        });
        until(|| cache.loads() == 1);
        let followers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    cache.get_or_insert_with(&1, || {
                        loads.add();
                        8
                    })
                })
            })
            .collect();
        until(|| cache.followers(&1) == 4);
        cache.remove(&1);
        go.add();
        assert!(old.join().unwrap().is_err());
        assert!(followers.into_iter().all(|follower| follower.join().unwrap() == 8));
    });
    assert_eq!((loads.get(), cache.get(&1), cache.loads()), (1, Some(8), 0));
}

/// Writers announce what they write, outside the cache; what the cache has is never older than that.
#[test]
fn the_cache_is_never_older_than_the_source() {
    use crate::sync::{AtomicU32, Ordering};

    let (cache, source) = (Cache::new(), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1..=20_000 {
                source.store(version, Ordering::Release);
                cache.remove(&1);
                let seen = cache.get_or_insert_with(&1, || source.load(Ordering::Relaxed));
                assert_eq!(seen, version);
            }
        });
        scope.spawn(|| {
            for _ in 0..20_000 {
                let before = source.load(Ordering::Acquire).saturating_sub(1);
                let seen = cache.get_or_insert_with(&1, || source.load(Ordering::Relaxed));
                assert!(seen >= before, "{seen}, but {before} was removed");
            }
        });
    });
}
