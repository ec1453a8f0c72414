//! Few entries in several segments: they share the whole cache, and are not limited to a share each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use koel::{Cache, CacheBuilder, Cause, Compute, Operation};

use crate::common::{Rng, Seeded, on_threads, seed, seeded};
use crate::{POLICIES, SEVERAL_SEGMENTS};

/// Each entry weighs what its value says.
fn weighing(max_weight: u64) -> CacheBuilder<u64, u64, Seeded> {
    crate::weighing_values(max_weight).hasher(seeded(seed()))
}

/// How often a loader is called for these keys, all of which fit, in this many rounds.
fn loads(cache: &Cache<u64, u64, Seeded>, keys: u64, rounds: u64, weight: u64) -> u64 {
    for _ in 0..rounds {
        for key in 0..keys {
            assert_eq!(cache.get_or_insert_with(key, || weight), weight);
        }
    }
    cache.stats().loads
}

fn in_all_policies<S>(
    builder: impl Fn() -> CacheBuilder<u64, u64, S>,
    check: impl Fn(Cache<u64, u64, Seeded>),
) {
    let seed = seed();
    for policy in POLICIES {
        // Hash functions are different each time.
        (0..5).for_each(|round| check(builder().hasher(seeded(seed + round)).policy(policy).build()));
    }
}

#[test]
fn heavy_entries_that_fit_stay() {
    let builder = || weighing(1 << 20);
    in_all_policies(builder, |cache| assert_eq!(loads(&cache, 5, 50, 200_000), 5));
    in_all_policies(builder, |cache| assert_eq!(loads(&cache, 20, 50, 50_000), 20));
    // Segments have more entries here, and seldom ask others.
    in_all_policies(builder, |cache| {
        let loads = loads(&cache, 500, 20, 2000);
        assert!(loads <= 750, "{loads} loads of 500 keys, in 20 rounds");
    });
}

#[test]
fn entries_that_are_as_heavy_as_all_stay_one_by_one() {
    in_all_policies(
        || weighing(1000),
        |cache| {
            for key in 0..50 {
                cache.insert(key, 1000).unwrap();
                assert_eq!((cache.peek(&key), cache.weight()), (Some(1000), 1000));
            }
        },
    );
}

#[test]
fn a_cache_made_much_smaller_holds_what_fits() {
    in_all_policies(
        || Cache::builder().max_entries(SEVERAL_SEGMENTS * 10),
        |cache| {
            cache.set_capacity(100);
            let loads = loads(&cache, 80, 50, 1);
            assert!(loads <= 200, "{loads} loads of 80 keys, in 50 rounds");
        },
    );
}

/// Entries that have left wait for a hundred others or more, but not if they are heavy.
#[test]
fn what_is_heavy_is_freed_soon() {
    const WEIGHT: u64 = 1 << 20;
    let builder = Cache::builder().max_weight(50 * WEIGHT).weigher(|_, _: &Arc<()>| WEIGHT);
    let cache = builder.hasher(seeded(seed())).build();
    let value = Arc::new(());
    for key in 0..2000_u64 {
        match key % 3 {
            0 => cache.insert(key, Arc::clone(&value)).unwrap(),
            1 => drop(cache.get_or_insert_with(key, || Arc::clone(&value))),
            _ => {
                let decide = |_: Option<&Arc<()>>| Operation::<_, ()>::Insert(Arc::clone(&value));
                assert!(cache.compute(key, decide).is_ok());
            }
        }
        let alive = Arc::strong_count(&value) - 1;
        assert!(alive <= 50 + 50 / 8 + 2, "{alive} are alive");
    }
}

/// Whichever threads evict or remove it: threads that do little each, and one that only removes what the other inserts.
#[test]
fn what_is_heavy_is_freed_soon_whoever_sends_it_away() {
    const WEIGHT: u64 = 1 << 20;
    let build = || Cache::builder().max_weight(64 * WEIGHT).weigher(|_, _: &Arc<()>| WEIGHT).build();
    let value = Arc::new(());
    let check = |most: usize| {
        let alive = Arc::strong_count(&value) - 1;
        assert!(alive <= most, "{alive} are alive, {most} may be");
    };
    let cache = build();
    for round in 0..50 {
        on_threads(8, |thread| {
            let first = round * 56 + thread as u64 * 7;
            (first..first + 7).for_each(|key| cache.insert(key, Arc::clone(&value)).unwrap());
        });
        // An eighth, plus a 128th for each thread.
        check(64 + 64 / 8 + 8);
    }
    drop(cache);
    // Each by itself: one that frees memory would do so for the others.
    type Take = fn(&Cache<u64, Arc<()>>, u64);
    let takings: [Take; 6] = [
        |cache, key| assert!(cache.remove(&key).is_some()),
        |cache, key| assert!(cache.pin().remove(&key).is_some()),
        |cache, key| assert!(cache.pin().remove_if(&key, |_, _| true).is_some()),
        |cache, _| cache.retain(|_, _| false),
        |cache, _| cache.clear(),
        |cache, _| {
            cache.set_capacity(0);
            cache.set_capacity(64 * WEIGHT);
        },
    ];
    for take in takings {
        let cache = build();
        std::thread::scope(|scope| {
            let (insert, inserts) = std::sync::mpsc::channel();
            let (done, wait) = std::sync::mpsc::channel();
            let (cache, value) = (&cache, &value);
            scope.spawn(move || {
                for key in inserts {
                    cache.insert(key, Arc::clone(value)).unwrap();
                    done.send(()).unwrap();
                }
            });
            for key in 0..200 {
                insert.send(key).unwrap();
                wait.recv().unwrap();
                take(cache, key);
                check(64 / 8 + 8);
            }
        });
    }
}

/// Fills a cache for 50 entries while another thread reads. Returns how many were alive at most.
#[cfg(target_os = "linux")]
fn most_alive_beside_a_reader() -> usize {
    const WEIGHT: u64 = 1 << 20;
    let cache = Cache::builder().max_weight(50 * WEIGHT).weigher(|_, _: &Arc<()>| WEIGHT).build();
    let (value, is_over) = (Arc::new(()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _view = cache.pin();
                std::thread::yield_now();
            }
        });
        let alive = (0..20_000_u64).map(|key| {
            cache.insert(key, Arc::clone(&value)).unwrap();
            Arc::strong_count(&value) - 1
        });
        let most = alive.max();
        is_over.store(true, Ordering::Relaxed);
        most.unwrap()
    })
}

/// Even if the system has stopped a thread that is reading: a writer lets it go on. On one processor, where that is necessary;
/// provided that no other program takes the processor meanwhile.
#[cfg(target_os = "linux")]
#[test]
fn what_is_heavy_is_freed_soon_if_a_reader_has_been_stopped() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let all = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap(); // of the threads that follow as well
    let least = (0..5).map(|_| most_alive_beside_a_reader()).min().unwrap();
    sched_setaffinity(None, &all).unwrap();
    assert!(least <= 4 * 50, "{least} were alive");
}

type Told = Arc<Mutex<Vec<(u64, Cause)>>>;

/// A cache full of light entries that were hit, and its reports of those that left. An entry of weight 500 expires at once.
fn full_of_what_was_hit() -> (Cache<u64, u64, Seeded>, Told) {
    let told = Told::default();
    let ear = Arc::clone(&told);
    let builder = weighing(1000).on_removal(move |key, _, cause| ear.lock().unwrap().push((*key, cause)));
    let builder = builder.expiry(|_, weight| (*weight == 500).then_some(Duration::ZERO));
    let cache = builder.estimated_entries(1000).build();
    (0..1000).for_each(|key| cache.insert(key, 1).unwrap());
    (0..2000).for_each(|i| assert_eq!(cache.get(&(i % 1000)), Some(1)));
    (cache, told)
}

/// It is as if it had been evicted at once.
#[test]
fn who_is_told_of_evictions_is_told_of_what_is_turned_away() {
    let (cache, told) = full_of_what_was_hit();
    cache.insert(5000, 501).unwrap();
    assert_eq!((cache.get(&5000), cache.len()), (None, 1000));
    assert_eq!(cache.get_or_insert_with(5001, || 400), 400);
    assert_eq!(*told.lock().unwrap(), [(5000, Cause::Size), (5001, Cause::Size)]);
    let stats = cache.stats();
    assert_eq!(
        (stats.insertions, stats.evictions, stats.turned_away, stats.evicted_weight),
        (1002, 2, 2, 901)
    );
    // Entries that are no longer requested leave in the end.
    let times = (0..1000).take_while(|_| {
        cache.insert(5000, 501).unwrap();
        cache.get(&5000).is_none()
    });
    assert!(times.count() < 1000 && cache.weight() <= 1000);
    cache.clear();
    assert!(told.lock().unwrap().len() > 1000);
}

/// As with any entry, however it left.
#[test]
fn what_is_turned_away_when_its_time_is_over_has_expired() {
    let (cache, told) = full_of_what_was_hit();
    cache.insert(5000, 500).unwrap();
    cache.insert(5001, 400).unwrap();
    assert_eq!(*told.lock().unwrap(), [(5000, Cause::Expired), (5001, Cause::Size)]);
    let stats = cache.stats();
    assert_eq!((stats.expirations, stats.evictions, stats.turned_away, stats.len), (1, 1, 1, 1000));
}

/// Nor does it evict entries of other segments.
#[test]
fn what_is_turned_away_evicts_nobody_anywhere() {
    let cache = weighing(1 << 20).build();
    for _ in 0..2 {
        for key in 0..16_000 {
            cache.get_or_insert_with(key, || 60);
        }
    }
    let before = (cache.len(), cache.weight());
    for key in 0..10 {
        cache.insert(1 << 32 | key, 400_000).unwrap();
        let decided = cache.compute(1 << 33 | key, |_| Operation::<_, ()>::Insert(400_000));
        assert!(matches!(decided, Ok(Compute::Inserted(_, 400_000))));
        assert_eq!((cache.len(), cache.weight()), before);
    }
    // An entry that comes again and again is admitted.
    let times = (0..20_000).take_while(|_| {
        cache.get_or_insert_with(7 << 32, || 400_000) == 400_000 && cache.peek(&(7 << 32)).is_none()
    });
    assert!(times.count() < 20_000);
}

/// Nor room that others do not use: the next entry has room as before.
#[test]
fn what_is_turned_away_takes_no_room_that_is_idle() {
    let cache = weighing(1 << 20).build();
    for _ in 0..2 {
        for key in 0..900 {
            cache.get_or_insert_with(key, || 600);
        }
    }
    for key in 900..1300 {
        cache.insert(1 << 32 | key, 900_000).unwrap();
        cache.insert(key, 600).unwrap();
        // The heavy ones, each immediately.
        let stats = cache.stats();
        assert_eq!(
            (stats.len as u64, stats.evictions, stats.turned_away),
            (key + 1, key - 899, key - 899),
            "at {key}"
        );
    }
}

/// One of the numbers below `n`: the lower, the more often.
fn skewed(rng: &mut Rng, n: u64) -> u64 {
    let uniform = rng.below(1 << 53) as f64 / (1_u64 << 53) as f64;
    (n as f64).powf(uniform) as u64
}

/// Light entries are requested more often the lower their numbers, and heavy ones once each.
#[test]
fn heavy_entries_that_are_asked_for_once_push_out_few() {
    let cache = weighing(1 << 20).build();
    let (mut rng, mut loads) = (Rng::new(seed()), 0);
    for i in 0..100_000_u64 {
        if i % 5 == 0 {
            cache.insert(1 << 32 | i, 100_000).unwrap();
        } else {
            cache.get_or_insert_with(skewed(&mut rng, 100_000), || {
                loads += u64::from(i >= 50_000);
                100
            });
        }
    }
    // 40,000 were requests for light ones.
    assert!(loads < 16_000, "{loads} loads");
}

/// One page of many times the others' weight that is often requested is loaded a few times and then stays, however hot the
/// others are.
#[test]
fn a_heavy_entry_that_is_asked_for_often_is_kept() {
    for (weight, every) in [(25_000, 20), (50_000, 20), (100_000, 5)] {
        for estimated in [true, false] {
            let builder = weighing(1_000_000);
            let cache = if estimated { builder.estimated_entries(1000) } else { builder }.build();
            let (mut rng, mut loads) = (Rng::new(seed()), 0);
            for i in 0..60_000_u64 {
                if i > 30_000 && i % every == 0 {
                    cache.get_or_insert_with(1 << 32, || {
                        loads += 1;
                        weight
                    });
                } else {
                    cache.get_or_insert_with(skewed(&mut rng, 5000), || 1000);
                }
            }
            let asked = 30_000 / every;
            assert!(loads * 2 < asked, "{weight}, estimated: {estimated}: {loads} loads of {asked} requests");
        }
    }
}
