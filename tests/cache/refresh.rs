//! Values that are refreshed ahead of their deadline; `flight`'s own tests cover waiters.

use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use koel::{Cache, CacheBuilder, CacheError, Cause, ManualClock};
use pollster::block_on;

use crate::listening;

pub(crate) const LIFE: Duration = Duration::from_secs(60);
pub(crate) const AHEAD: Duration = Duration::from_secs(10);

/// The builder of a cache whose values expire after a minute, and are due ten seconds before that.
fn builder(clock: &ManualClock) -> CacheBuilder<u64, u64> {
    Cache::builder().max_entries(100).time_to_live(LIFE).refresh_ahead(AHEAD).clock(clock.clone())
}

/// A cache whose key 1 has the value 7, which has just become due.
pub(crate) fn due() -> (Cache<u64, u64>, ManualClock) {
    let clock = ManualClock::new();
    let cache = builder(&clock).build();
    cache.insert(1, 7).unwrap();
    clock.advance(LIFE - AHEAD);
    (cache, clock)
}

#[test]
fn a_value_is_fresh_until_it_is_near_its_end() {
    let clock = ManualClock::new();
    let cache = builder(&clock).build();
    let loads = Cell::new(0);
    let load = || {
        loads.set(loads.get() + 1);
        loads.get()
    };
    assert_eq!(cache.get_or_insert_with(1, load), 1);
    clock.advance(LIFE - AHEAD - Duration::from_nanos(1));
    assert_eq!(cache.get_or_insert_with(1, load), 1);
    clock.advance(Duration::from_nanos(1));
    // These calls load nothing.
    assert_eq!((cache.get(&1), cache.peek(&1), cache.pin().get_ref(&1)), (Some(1), Some(1), Some(&1)));
    assert_eq!(cache.get_or_insert_with(1, load), 2);
    // And it has its whole lifetime from then on.
    assert_eq!(cache.time_left(&1), Some(LIFE));
    clock.advance(LIFE - Duration::from_nanos(1));
    assert_eq!(cache.get(&1), Some(2));
    assert_eq!(cache.get_or_insert_with(1, load), 3);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.loads, stats.failed_loads), (6, 1, 3, 0));
}

type Call = fn(&Cache<String, u64>, fn() -> u64) -> u64;

/// All calls that load.
const CALLS: [Call; 20] = [
    |cache, load| cache.get_or_insert_with("one".into(), load),
    |cache, load| cache.try_get_or_insert_with("one".into(), || Ok::<_, ()>(load())).unwrap(),
    |cache, load| cache.try_get_or_insert_with_shared("one".into(), || Ok::<_, ()>(load())).unwrap(),
    |cache, load| {
        cache.try_get_or_insert_with_timeout("one".into(), Duration::ZERO, || Ok::<_, ()>(load())).unwrap()
    },
    |cache, load| cache.get_or_insert_with_ref("one", load),
    |cache, load| cache.try_get_or_insert_with_ref("one", || Ok::<_, ()>(load())).unwrap(),
    |cache, load| cache.try_get_or_insert_with_shared_ref("one", || Ok::<_, ()>(load())).unwrap(),
    |cache, load| block_on(cache.get_or_insert_async("one".into(), async { load() })),
    |cache, load| block_on(cache.try_get_or_insert_async_ref("one", async { Ok::<_, ()>(load()) })).unwrap(),
    |cache, load| {
        let load = async { Ok::<_, ()>(load()) };
        block_on(cache.try_get_or_insert_async_shared("one".into(), load)).unwrap()
    },
    |cache, load| {
        block_on(cache.try_get_or_insert_async_shared_ref("one", async { Ok::<_, ()>(load()) })).unwrap()
    },
    |cache, load| cache.entry("one".into()).or_insert_with(load),
    |cache, load| cache.entry("one".into()).or_try_insert_with(|| Ok::<_, ()>(load())).unwrap(),
    |cache, load| block_on(cache.entry("one".into()).or_insert_async(async { load() })),
    |cache, load| {
        block_on(cache.try_get_or_insert_async("one".into(), async { Ok::<_, ()>(load()) })).unwrap()
    },
    |cache, load| block_on(cache.get_or_insert_async_ref("one", async { load() })),
    |cache, load| {
        let mut out = [None];
        let load = |keys: Vec<String>| Ok::<_, ()>(keys.into_iter().map(|key| (key, load())));
        cache.try_get_many_or_insert_with_shared(&["one".into()], &mut out, load).unwrap();
        out[0].unwrap()
    },
    |cache, load| {
        let mut out = [None];
        let load = async |keys: Vec<String>| Ok::<_, ()>(keys.into_iter().map(move |key| (key, load())));
        block_on(cache.try_get_many_or_insert_async_shared(&["one".into()], &mut out, load)).unwrap();
        out[0].unwrap()
    },
    |cache, load| {
        let mut out = [None];
        cache.get_many_or_insert_with(&["one".into()], &mut out, |keys| {
            keys.into_iter().map(|key| (key, load()))
        });
        out[0].unwrap()
    },
    |cache, load| {
        let mut out = [None];
        let load = async |keys: Vec<String>| keys.into_iter().map(move |key| (key, load()));
        block_on(cache.get_many_or_insert_async(&["one".into()], &mut out, load));
        out[0].unwrap()
    },
];

/// By each of the calls that load.
#[test]
fn each_call_that_loads_refreshes() {
    let key = || "one".to_string();
    for (i, call) in CALLS.into_iter().enumerate() {
        let clock = ManualClock::new();
        let cache = Cache::builder()
            .max_entries(9)
            .time_to_live(LIFE)
            .refresh_ahead(AHEAD)
            .clock(clock.clone())
            .build();
        cache.insert(key(), 7).unwrap();
        assert_eq!(call(&cache, || unreachable!("it is fresh")), 7, "call {i}");
        clock.advance(LIFE - AHEAD);
        assert_eq!(call(&cache, || 8), 8, "call {i}");
        assert_eq!((cache.get("one"), cache.time_left("one")), (Some(8), Some(LIFE)), "call {i}");
        assert_eq!(call(&cache, || unreachable!("it is fresh again")), 8, "call {i}");
    }
}

#[test]
fn others_get_the_old_value_until_it_has_expired() {
    let (cache, clock) = due();
    thread::scope(|scope| {
        let mut late = None;
        let new = cache.get_or_insert_with(1, || {
            let other = scope.spawn(|| cache.get_or_insert_with(1, || unreachable!()));
            assert_eq!(other.join().unwrap(), 7);
            clock.advance(AHEAD);
            assert_eq!(cache.get(&1), None, "an expired one is never returned");
            late = Some(scope.spawn(|| cache.get_or_insert_with(1, || 9)));
            8
        });
        assert_eq!(new, 8);
        // It waits, or comes after the new value is there.
        assert_eq!(late.map(|late| late.join().unwrap()), Some(8));
    });
    assert_eq!((cache.get(&1), cache.len()), (Some(8), 1));
}

#[test]
fn what_was_written_meanwhile_is_not_replaced() {
    type Write = fn(&Cache<u64, u64>);
    let writes: [(Write, Option<u64>); 6] = [
        (|cache| cache.insert(1, 9).unwrap(), Some(9)),
        (|cache| assert_eq!(cache.update(1, |old| old + 2).unwrap(), Some(9)), Some(9)),
        (|cache| assert_eq!(cache.remove(&1), Some(7)), None),
        (|cache| assert_eq!(cache.remove_if(&1, |_, _| false), None), Some(7)),
        (|cache| cache.retain(|_, _| false), None),
        (Cache::clear, None),
    ];
    for (i, (write, kept)) in writes.into_iter().enumerate() {
        let (cache, _) = due();
        let new = cache.get_or_insert_with(1, || {
            write(&cache);
            8
        });
        assert_eq!((new, cache.get(&1)), (8, kept), "write {i}");
    }
}

/// Also if the weight differs; if the new value is too heavy, the old one stays.
#[test]
fn the_old_value_is_replaced_once_and_the_bound_is_kept() {
    let clock = ManualClock::new();
    let cache = Cache::builder().max_weight(100).weigher(|_, value: &u64| *value).time_to_live(LIFE);
    let (cache, told) = listening(cache.refresh_ahead(AHEAD).clock(clock.clone()));
    let cache = cache.build();
    cache.insert(1, 7).unwrap();
    cache.insert(2, 20).unwrap();
    clock.advance(LIFE - AHEAD);
    assert_eq!(cache.get_or_insert_with(1, || 90), 90);
    assert!(cache.weight() <= 100 && cache.get(&1) == Some(90), "{}", cache.weight());
    let told = std::mem::take(&mut *told.lock().unwrap());
    assert_eq!(told.iter().filter(|(key, ..)| *key == 1).collect::<Vec<_>>(), [&(1, 7, Cause::Replaced)]);

    // If the new value is too heavy, the old one stays, and is not reloaded at once.
    clock.advance(LIFE - AHEAD);
    assert_eq!(cache.get_or_insert_with(1, || 101), 101);
    assert_eq!((cache.get(&1), cache.weight()), (Some(90), 90));
    assert_eq!(cache.get_or_insert_with(1, || unreachable!()), 90);
}

/// Each entry has its own lifetime; idle times are no deadline. So a failure that is kept for a short time is not loaded again.
#[test]
fn the_deadline_counts_and_not_how_long_it_may_be_idle() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_entries(100)
        .expiry(|_, seconds| (*seconds > 0).then(|| Duration::from_secs(*seconds)))
        .time_to_idle(LIFE)
        .refresh_ahead(AHEAD)
        .clock(clock.clone())
        .build();
    for (key, life) in [(0, 0), (5, 5), (10, 10), (60, 60)] {
        cache.insert(key, life).unwrap();
    }
    // Never due, as it lives forever, or for no longer than the time ahead; or not due yet.
    for key in [0, 5, 10, 60] {
        assert_eq!(cache.get_or_insert_with(key, || unreachable!()), key);
    }
    clock.advance(LIFE - AHEAD);
    assert_eq!(cache.get_or_insert_with(0, || unreachable!()), 0);
    assert_eq!(cache.get_or_insert_with(60, || 61), 61);
    clock.advance(LIFE - Duration::from_nanos(1));
    assert_eq!(cache.get_or_insert_with(0, || unreachable!("it is idle, and not yet for long enough")), 0);
}

/// Under its lock a cache loads nothing, and panics for a missing key; a value that is due is there.
#[test]
fn nothing_is_refreshed_under_the_lock() {
    let (cache, _) = due();
    cache.insert(2, 2).unwrap();
    let mut out = [None];
    let updated = cache.update(2, |_| {
        cache.get_many_or_insert_with(&[1], &mut out, |_| -> [(u64, u64); 0] { unreachable!() });
        cache.get_or_insert_with(1, || unreachable!())
    });
    assert_eq!((updated.unwrap(), out), (Some(7), [Some(7)]));
    assert_eq!(cache.get_or_insert_with(1, || 8), 8);
}

#[test]
fn of_many_keys_those_that_are_due_are_asked_for_with_those_that_are_missed() {
    let (cache, _) = due();
    cache.insert(2, 20).unwrap();
    let mut out = [None; 5];
    cache.get_many_or_insert_with(&[1, 2, 3, 1, 3], &mut out, |keys| {
        assert_eq!(keys, [1, 3]);
        let mut others = [None; 2];
        cache.get_many_or_insert_with(&[2, 1], &mut others, |_| -> [(u64, u64); 0] { unreachable!() });
        assert_eq!(others, [Some(20), Some(7)]);
        [(3, 30), (1, 10)]
    });
    assert_eq!(out, [Some(10), Some(20), Some(30), Some(10), Some(30)]);
    assert_eq!((cache.get(&1), cache.get(&3)), (Some(10), Some(30)));
}

/// A value that is there is no reason to put another in its place.
#[test]
fn who_says_what_to_insert_refreshes_nothing() {
    let (cache, _) = due();
    assert_eq!((cache.entry(1).or_insert(8), cache.entry(1).or_default()), (7, 7));
    assert_eq!((cache.entry(2).or_insert(8), cache.entry(3).or_default()), (8, 0));
    assert_eq!(cache.entry(1).or_insert_with(|| 9), 9);
}

/// It is due when it would have been without the dump.
#[test]
fn what_was_dumped_is_refreshed_as_it_was() {
    let clock = ManualClock::new();
    let new = || builder(&clock).expiry(|_, life| Some(Duration::from_secs(*life))).build();
    let cache = new();
    cache.insert(1, 60).unwrap();
    cache.insert(2, 10).unwrap();
    clock.advance(Duration::from_secs(5));
    let warm = new();
    assert!(warm.load(cache.dump()).is_empty());
    assert_eq!(
        (warm.time_left(&1), warm.time_left(&2)),
        (Some(LIFE - Duration::from_secs(5)), Some(AHEAD / 2))
    );
    clock.advance(Duration::from_secs(4));
    assert!(!warm.needs_refresh(&1) && !warm.needs_refresh(&2) && warm.contains_key(&2));
    clock.advance(Duration::from_secs(41));
    assert!(warm.needs_refresh(&1) && !warm.contains_key(&2));
}

#[test]
fn whoever_lets_another_refresh_is_told_when() {
    let (cache, _) = due();
    assert!(cache.needs_refresh(&1) && !cache.needs_refresh(&2));
    cache.get_or_insert_with(1, || {
        assert!(!cache.needs_refresh(&1), "it is being refreshed");
        8
    });
    assert!(!cache.needs_refresh(&1));
    assert!(!Cache::<u64, u64>::new(10).needs_refresh(&1));
}

/// The closure may write to the source, which another thread reads meanwhile.
#[test]
fn what_is_loaded_while_a_condition_decides_is_not_kept() {
    what_is_loaded_while_a_condition_says(true);
    what_is_loaded_while_a_condition_says(false);
}

fn what_is_loaded_while_a_condition_says(goes: bool) {
    let (cache, _) = due();
    let (source, go) = (AtomicU64::new(7), Barrier::new(2));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            go.wait();
            cache.get_or_insert_with(1, || {
                let read = source.load(SeqCst);
                go.wait();
                read
            })
        });
        let removed = cache.remove_if(&1, |_, _| {
            go.wait();
            go.wait(); // it has read the old one, and waits for the lock
            source.store(8, SeqCst);
            goes
        });
        assert_eq!((removed, reader.join().unwrap()), (Some(7).filter(|_| goes), 7));
    });
    assert_eq!((cache.get(&1), cache.needs_refresh(&1)), (Some(7).filter(|_| !goes), !goes));
}

#[test]
fn of_many_threads_one_refreshes() {
    const THREADS: u64 = 8;
    let (cache, _) = due();
    thread::scope(|scope| {
        for mine in 0..THREADS {
            let cache = &cache;
            scope.spawn(move || {
                let got = cache.get_or_insert_with(1, || 100 + mine);
                assert!(got == 7 || got >= 100, "{got}");
            });
        }
    });
    assert!(cache.get(&1).is_some_and(|new| new >= 100));
    assert_eq!(cache.stats().loads, 1);
}

#[test]
fn what_is_never_due_or_never_fresh_is_refused() {
    let builder = || Cache::<u64, u64>::builder().max_entries(10).refresh_ahead(AHEAD);
    let refused = |builder: CacheBuilder<u64, u64>| builder.try_build().err().unwrap();
    assert_eq!(refused(builder()), CacheError::RefreshUnused);
    assert!(builder().refresh_ahead(Duration::ZERO).try_build().is_ok());
    assert_eq!(refused(builder().time_to_idle(LIFE)), CacheError::RefreshUnused);
    let error = refused(builder().time_to_live(AHEAD));
    assert_eq!(error, CacheError::RefreshTooEarly { ahead: AHEAD, life: AHEAD });
    assert_eq!(
        error.to_string(),
        "`refresh_ahead` of 10s where entries live for 10s: it must be less than that"
    );
    assert!(CacheError::RefreshUnused.to_string().contains("`time_to_live`"));
    // Nothing is refreshed.
    let clock = ManualClock::new();
    let cache = builder().time_to_live(LIFE).refresh_ahead(Duration::ZERO).clock(clock.clone()).build();
    cache.insert(1, 1).unwrap();
    clock.advance(LIFE - Duration::from_nanos(1));
    assert_eq!(cache.get_or_insert_with(1, || unreachable!()), 1);
}
