//! Many keys, of which the missing ones are loaded by one call; `flight`'s own tests cover waiters.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::{Future, pending, poll_fn, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Waker};

use koel::{Cache, InlineCache, LoadError};
use pollster::block_on;

use crate::common::{LARGE, Rng, catch, large};
use crate::weighing_values;

/// The source's value for each key; none for every fifth.
fn value(key: u64) -> Option<u64> {
    (key % 5 != 0).then_some(key * 10)
}

fn pairs(keys: Vec<u64>) -> Vec<(u64, u64)> {
    keys.into_iter().rev().filter_map(|key| value(key).map(|value| (key, value))).collect()
}

/// Some keys at a time, some of them twice, of either cache.
#[test]
fn each_key_is_asked_for_once_and_only_if_it_is_missed() {
    let cache: Cache<u64, u64> = Cache::new(1000);
    let inline: InlineCache<u64, u64> = InlineCache::new(1000);
    let mut random = Rng::new(7);
    let mut there = BTreeSet::new();
    let (mut hits, mut misses, mut loads) = (0, 0, 0);
    for round in 0..200 {
        let keys: Vec<u64> = (0..random.below(40)).map(|_| random.below(200)).collect();
        let lacking: BTreeSet<u64> = keys.iter().copied().filter(|key| !there.contains(key)).collect();
        let asked = RefCell::new(Vec::new());
        let load = |keys: Vec<u64>| {
            asked.borrow_mut().push(keys.clone());
            pairs(keys)
        };
        let mut out = vec![Some(1); keys.len()];
        let mut inline_out = out.clone();
        if round % 2 == 0 {
            cache.get_many_or_insert_with(&keys, &mut out, load);
            inline.get_many_or_insert_with(&keys, &mut inline_out, load);
        } else {
            block_on(cache.get_many_or_insert_async(&keys, &mut out, async |keys| load(keys)));
            block_on(inline.get_many_or_insert_async(&keys, &mut inline_out, async |keys| load(keys)));
        }
        let expected: Vec<_> = keys.iter().map(|&key| value(key)).collect();
        assert_eq!((&out, &inline_out), (&expected, &expected));
        let asked = asked.into_inner();
        assert_eq!(asked.len(), if lacking.is_empty() { 0 } else { 2 });
        for asked in asked {
            assert_eq!(asked.len(), lacking.len());
            assert_eq!(asked.into_iter().collect::<BTreeSet<_>>(), lacking);
        }
        misses += keys.iter().filter(|key| lacking.contains(key)).count() as u64;
        hits += keys.iter().filter(|key| !lacking.contains(key)).count() as u64;
        let made: Vec<u64> = lacking.into_iter().filter(|&key| value(key).is_some()).collect();
        loads += made.len() as u64;
        there.extend(made);
    }
    for stats in [cache.stats(), inline.stats()] {
        assert_eq!((stats.hits, stats.misses, stats.loads, stats.failed_loads), (hits, misses, loads, 0));
    }
    assert_eq!((cache.len(), inline.len()), (there.len(), there.len()));
}

#[test]
fn as_many_places_as_keys_are_asked_for() {
    let (cache, inline) = (Cache::<u64, u64>::new(10), InlineCache::<u64, u64>::new(10));
    let text = catch(|| cache.get_many_or_insert_with(&[1, 2], &mut [None], pairs)).unwrap_err();
    assert!(text.contains("as many places for values as keys"), "{text}");
    let text = catch(|| inline.get_many_or_insert_with(&[], &mut [None], pairs)).unwrap_err();
    assert!(text.contains("as many places for values as keys"), "{text}");
    assert_eq!((cache.stats().loads, inline.stats().loads), (0, 0));
}

#[test]
fn an_error_leaves_what_was_there() {
    let (cache, inline) = (Cache::<u64, u64>::new(10), InlineCache::<u64, u64>::new(10));
    cache.insert(2, 20).unwrap();
    inline.insert(2, 20);
    let fail = |_| Err::<[_; 0], _>("no");
    let expected = (Err(LoadError::Loader("no")), [None, Some(20), None]);
    for task in [false, true] {
        let mut out = [None; 3];
        let failed = match task {
            false => cache.try_get_many_or_insert_with(&[1, 2, 3], &mut out, fail),
            true => {
                block_on(cache.try_get_many_or_insert_async(&[1, 2, 3], &mut out, async |keys| fail(keys)))
            }
        };
        assert_eq!((failed, out), expected);
        let mut out = [None; 3];
        let failed = match task {
            false => inline.try_get_many_or_insert_with(&[1, 2, 3], &mut out, fail),
            true => {
                block_on(inline.try_get_many_or_insert_async(&[1, 2, 3], &mut out, async |keys| fail(keys)))
            }
        };
        assert_eq!((failed, out), expected);
    }
    assert_eq!((cache.stats().failed_loads, inline.stats().failed_loads), (2, 2));
    assert_eq!((cache.len(), inline.len()), (1, 1));
}

#[test]
fn a_loader_that_panics_is_counted_and_leaves_the_keys_to_others() {
    let cache: Cache<u64, u64> = Cache::new(10);
    cache.insert(2, 20).unwrap();
    let mut out = [None; 3];
    let panics = |_| -> Vec<(u64, u64)> { panic!("as planned") };
    assert!(catch(|| cache.get_many_or_insert_with(&[1, 2, 3], &mut out, panics)).is_err());
    assert_eq!((out, cache.stats().failed_loads), ([None, Some(20), None], 1));
    cache.get_many_or_insert_with(&[1, 2, 3], &mut out, pairs);
    assert_eq!(out, [Some(10), Some(20), Some(30)]);
}

/// The iterator that a loader returns may compute the values, and fail at that.
#[test]
fn a_list_that_panics_is_counted_as_a_loader_that_does() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let list = |keys: Vec<u64>| {
        keys.into_iter().map(|key| if key == 2 { panic!("as planned") } else { (key, key * 10) })
    };
    assert!(catch(|| cache.get_many_or_insert_with(&[1, 2, 3], &mut [None; 3], list)).is_err());
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.failed_loads, cache.len()), (1, 1, 1));
}

/// A value that was written while keys were being loaded is newer, but only for its own key.
#[test]
fn a_load_gives_way_to_writes() {
    let cache: Cache<u64, u64> = Cache::new(10);
    cache.insert(3, 1).unwrap();
    let mut out = [None; 4];
    cache.get_many_or_insert_with(&[1, 2, 3, 4], &mut out, |keys| {
        assert_eq!(keys, [1, 2, 4]);
        cache.insert(1, 8).unwrap();
        assert_eq!(cache.remove(&2), None);
        pairs(keys)
    });
    assert_eq!(out, [Some(10), Some(20), Some(1), Some(40)]);
    assert_eq!([1, 2, 3, 4].map(|key| cache.get(&key)), [Some(8), None, Some(1), Some(40)]);
}

/// A value that is too heavy, or is evicted at once by the next one, is returned all the same.
#[test]
fn more_than_the_cache_can_hold_is_handed_out() {
    let cache = weighing_values(5).build();
    let mut out = [None; 3];
    cache.get_many_or_insert_with(&[1, 2, 3], &mut out, |keys| keys.into_iter().zip([6, 5, 4]));
    assert_eq!(out, [Some(6), Some(5), Some(4)]);
    assert!(!cache.contains_key(&1) && cache.weight() <= 5);
}

/// A listener asks for a key that is still to be inserted, and for one that is there.
#[test]
fn a_listener_may_ask_for_what_has_come() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&told);
    let cache = Arc::<Mutex<Option<Arc<Cache<u64, u64>>>>>::default();
    let asked = Arc::clone(&cache);
    let listener = move |_: &u64, _: &u64, _| {
        let cache = asked.lock().unwrap().clone().unwrap();
        let answers = [1, 2].map(|key| cache.try_get_or_insert_with(key, || Err(())));
        ear.lock().unwrap().push(answers);
    };
    let builder: koel::CacheBuilder<u64, u64> = Cache::builder();
    let caches = Arc::new(builder.max_entries(2).on_removal(listener).build());
    *cache.lock().unwrap() = Some(Arc::clone(&caches));
    caches.insert(7, 70).unwrap();
    caches.insert(8, 80).unwrap();
    let mut out = [None; 2];
    caches.get_many_or_insert_with(&[1, 2], &mut out, |_| [(1, 10), (2, 20)]);
    assert_eq!(out, [Some(10), Some(20)]);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 2);
    assert!(matches!(told[0], [_, Err(LoadError::Recursion)]), "{told:?}");
    assert!(told.iter().flatten().all(|answer| matches!(answer, Ok(10 | 20) | Err(_))), "{told:?}");
    *cache.lock().unwrap() = None;
}

/// Tasks on several threads: their futures can be sent there.
#[test]
fn many_tasks_load_each_key_once() {
    const KEYS: u64 = 60;
    let cache: Arc<Cache<String, u64>> = Arc::new(Cache::new(1000));
    let loaded = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
    let tasks: Vec<_> = (0..30)
        .map(|task: u64| {
            let (cache, loaded) = (Arc::clone(&cache), Arc::clone(&loaded));
            runtime.spawn(async move {
                let keys: Vec<String> = (0..20).map(|i| ((task * 7 + i * 13) % KEYS).to_string()).collect();
                let mut out = vec![None; keys.len()];
                let load = |keys: Vec<String>| {
                    loaded.fetch_add(keys.len(), Ordering::Relaxed);
                    async {
                        tokio::task::yield_now().await;
                        keys.into_iter()
                            .map(|key| (key.clone(), key.parse::<u64>().unwrap()))
                            .collect::<Vec<_>>()
                    }
                };
                cache.get_many_or_insert_async(&keys, &mut out, load).await;
                assert!(keys.iter().zip(out).all(|(key, value)| value == key.parse().ok()));
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    assert_eq!((loaded.load(Ordering::Relaxed), cache.len()), (cache.len(), cache.stats().loads as usize));
}

/// Present keys cost no call.
#[test]
fn what_is_there_is_not_loaded() {
    let cache: Cache<u64, u64> = Cache::new(10);
    cache.insert(1, 10).unwrap();
    let calls = Cell::new(0);
    let load = |keys| {
        calls.set(calls.get() + 1);
        pairs(keys)
    };
    for (keys, expected) in [(&[][..], &[][..]), (&[1, 1], &[Some(10), Some(10)])] {
        let mut out = vec![None; keys.len()];
        cache.get_many_or_insert_with(keys, &mut out, load);
        assert_eq!(out, expected);
    }
    assert_eq!(calls.get(), 0);
}

/// Otherwise sizes would multiply in loaders that themselves load.
#[test]
fn a_future_has_room_for_its_loader_once() {
    let (cache, inline) = (Cache::<u64, u64>::new(10), InlineCache::<u64, u64>::new(10));
    let sizes = [
        size_of_val(&cache.get_many_or_insert_async(&[1], &mut [None], |_| large([(1, 7)]))),
        size_of_val(&inline.get_many_or_insert_async(&[1], &mut [None], |_| large([(1, 7)]))),
        size_of_val(
            &cache.try_get_many_or_insert_async(&[1], &mut [None], |_| large(Err::<[_; 0], _>("no"))),
        ),
        size_of_val(
            &inline.try_get_many_or_insert_async(&[1], &mut [None], |_| large(Err::<[_; 0], _>("no"))),
        ),
    ];
    let loader = size_of_val(&large([(1_u64, 7_u64)]));
    assert!(sizes.iter().all(|&size| size < loader + LARGE / 10), "{loader}: {sizes:?}");
}

#[test]
fn what_others_have_loaded_by_the_time_a_loader_fails_is_handed_out() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let (begun, may_end, mut out) = (Barrier::new(2), Barrier::new(2), [None; 3]);
    let answer = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            cache.get_or_insert_with(1, || {
                begun.wait();
                may_end.wait();
                10
            })
        });
        begun.wait();
        let mut other = Some(other);
        let load = |keys: Vec<u64>| {
            assert_eq!(keys, [2, 3]);
            may_end.wait();
            assert_eq!(other.take().map(|other| other.join().unwrap()), Some(10));
            cache.insert(3, 30).unwrap();
            Err::<[_; 0], _>("no")
        };
        cache.try_get_many_or_insert_with(&[1, 2, 3], &mut out, load)
    });
    assert_eq!((answer, out), (Err(LoadError::Loader("no")), [Some(10), None, Some(30)]));
    // Tasks.
    let mut out = [None; 2];
    let load = |_| async {
        cache.insert(4, 40).unwrap();
        Err::<[_; 0], _>("no")
    };
    let answer = block_on(cache.try_get_many_or_insert_async(&[4, 5], &mut out, load));
    assert_eq!((answer, out), (Err(LoadError::Loader("no")), [Some(40), None]));
}

/// Also values that the cache has not kept.
#[test]
fn what_others_have_loaded_and_nobody_keeps_is_handed_out_all_the_same() {
    for is_async in [false, true] {
        let cache: Cache<u64, u64> = Cache::new(0);
        let (goes_on, mut out) = (Cell::new(false), [None; 2]);
        let mut context = Context::from_waker(Waker::noop());
        let load = poll_fn(|_| if goes_on.get() { Poll::Ready(10) } else { Poll::Pending });
        let mut other = Box::pin(cache.get_or_insert_async(1, load));
        assert!(other.as_mut().poll(&mut context).is_pending());
        let mut fail = |_: Vec<u64>| {
            goes_on.set(true);
            assert_eq!(other.as_mut().poll(&mut context), Poll::Ready(10));
            Err::<[_; 0], _>("no")
        };
        let failed = match is_async {
            false => cache.try_get_many_or_insert_with(&[1, 2], &mut out, fail),
            true => block_on(cache.try_get_many_or_insert_async(&[1, 2], &mut out, |keys| ready(fail(keys)))),
        };
        assert_eq!((failed, out), (Err(LoadError::Loader("no")), [Some(10), None]));
    }
}

/// Notes when it is dropped.
struct Noted<'n>(&'n Cell<bool>);

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// A loader that is done at once, and still has something then.
struct Done<'n>(#[expect(dead_code, reason = "to be dropped")] Noted<'n>);

impl Future for Done<'_> {
    type Output = Vec<(u64, u64)>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(vec![(2, 20)])
    }
}

#[test]
fn a_loader_is_dropped_before_others_are_waited_for() {
    let cache: Cache<u64, u64> = Cache::new(10);
    let mut context = Context::from_waker(Waker::noop());
    let mut other = Box::pin(cache.get_or_insert_async(1, pending()));
    assert!(other.as_mut().poll(&mut context).is_pending());
    let (is_dropped, mut out) = (Cell::new(false), [None; 2]);
    let load = |_: Vec<u64>| Done(Noted(&is_dropped));
    let mut waits = Box::pin(cache.get_many_or_insert_async(&[1, 2], &mut out, load));
    assert!(waits.as_mut().poll(&mut context).is_pending());
    assert_eq!((is_dropped.get(), cache.get(&2)), (true, Some(20)));
}
