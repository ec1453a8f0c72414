//! Loads of many keys by one call.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::thread;

use super::{Cache, Count, until};
use crate::cache::flight::LoadError;
use crate::sync::Mutex;

/// A future that is pending once.
async fn pending() {
    let mut first = true;
    poll_fn(|_| if core::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// A tenth of each key.
fn tenths(keys: Vec<u32>) -> Result<Vec<(u32, u32)>, ()> {
    Ok(keys.into_iter().map(|key| (key, key / 10)).collect())
}

/// A loader that must not run.
fn unreachable(keys: Vec<u32>) -> Result<[(u32, u32); 0], ()> {
    unreachable!("{keys:?} are loaded")
}

#[test]
fn they_are_loaded_by_one_call_and_kept() {
    let cache = Cache::new();
    let calls = Count::default();
    let load = |mut keys: Vec<u32>| {
        calls.add();
        assert_eq!(keys, [10, 20, 30]);
        keys.reverse();
        tenths(keys)
    };
    assert_eq!(cache.try_load_many(&[10, 20, 30], load), Ok(vec![Some(1), Some(2), Some(3)]));
    assert_eq!((calls.get(), cache.get(&20), cache.loads()), (1, Some(2), 0));
    // The leader looks once more: the keys are there.
    assert_eq!(cache.try_load_many(&[30, 10], unreachable), Ok(vec![Some(3), Some(1)]));
    assert_eq!(cache.loads(), 0);
}

#[test]
fn what_a_loader_does_not_have_has_no_value_and_what_nobody_asked_for_is_dropped() {
    let cache = Cache::new();
    let load = |_| Ok::<_, ()>([(2, 20), (7, 70), (2, 21)]);
    assert_eq!(cache.try_load_many(&[1, 2], load), Ok(vec![None, Some(20)]));
    assert_eq!((cache.get(&1), cache.get(&2), cache.get(&7), cache.loads()), (None, Some(20), None, 0));
}

/// All orders of up to five pairs, some of which come twice, and one that nobody asked for.
#[test]
fn they_come_in_any_order() {
    for code in 0..5_u32.pow(5) {
        let order: Vec<u32> = (0..5).map(|i| code / 5_u32.pow(i) % 5).collect();
        let cache = Cache::new();
        let load = |keys| {
            assert_eq!(keys, [0, 1, 2, 3]);
            Ok::<_, ()>(order.iter().zip(10..).map(|(&key, value)| (key, value)))
        };
        // The first value that came for each key.
        let first = |key| order.iter().position(|&other| other == key).map(|place| 10 + place as u32);
        let expected: Vec<_> = (0..4).map(first).collect();
        assert_eq!(cache.try_load_many(&[0, 1, 2, 3], load).as_ref(), Ok(&expected), "{order:?}");
        assert_eq!((cache.get(&0), cache.get(&3), cache.get(&4)), (expected[0], expected[3], None));
        assert_eq!(cache.loads(), 0);
    }
}

#[test]
fn an_error_or_a_panic_leaves_nobody_loading() {
    let cache = Cache::new();
    let failed = cache.try_load_many(&[1, 2], |_| Err::<[_; 0], _>("no"));
    assert_eq!((failed, cache.loads()), (Err(LoadError::Loader("no")), 0));
    let panics = |_| -> Result<[(u32, u32); 0], ()> { panic!("as planned") };
    assert!(catch_unwind(AssertUnwindSafe(|| cache.try_load_many(&[1, 2], panics))).is_err());
    assert_eq!(cache.loads(), 0);
    // A list that panics after its first pair.
    let list = |_| Ok::<_, ()>((1..3).map(|key| if key == 2 { panic!("as planned") } else { (key, 10) }));
    assert!(catch_unwind(AssertUnwindSafe(|| cache.try_load_many(&[1, 2], list))).is_err());
    assert_eq!((cache.get(&1), cache.get(&2), cache.loads()), (Some(10), None, 0));
}

#[test]
fn many_who_ask_for_overlapping_keys_load_each_once() {
    const KEYS: u32 = 24;
    for round in 0..50 {
        let cache = Cache::new();
        let loaded = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for n in 0..4 {
                let (cache, loaded) = (&cache, &loaded);
                scope.spawn(move || {
                    let keys: Vec<u32> =
                        (0..KEYS).map(|i| (i * [5, 7, 11, 13][n] + round) % KEYS * 10).collect();
                    let load = |keys: Vec<u32>| {
                        loaded.lock().extend_from_slice(&keys);
                        thread::yield_now();
                        tenths(keys)
                    };
                    let values = cache.try_load_many(&keys, load).unwrap();
                    assert!(keys.iter().zip(values).all(|(key, value)| value == Some(key / 10)));
                });
            }
        });
        let mut loaded = loaded.into_inner();
        loaded.sort_unstable();
        assert_eq!(loaded, (0..KEYS).map(|key| key * 10).collect::<Vec<_>>());
        assert_eq!(cache.loads(), 0);
    }
}

/// The caller that is waited for fails, or has no value.
#[test]
fn what_another_could_not_load_is_loaded_by_itself() {
    for fails in [true, false] {
        let cache = Cache::new();
        let calls = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let lacking = |_| {
                scope.spawn(|| {
                    let load = |keys: Vec<u32>| {
                        calls.lock().push(keys.clone());
                        tenths(keys)
                    };
                    assert_eq!(cache.try_load_many(&[10, 20, 30], load), Ok(vec![Some(1), Some(2), Some(3)]));
                });
                until(|| cache.followers(&20) == 1);
                if fails { Err("no") } else { Ok([]) }
            };
            let expected = if fails { Err(LoadError::Loader("no")) } else { Ok(vec![None]) };
            assert_eq!(cache.try_load_many(&[20], lacking), expected);
        });
        assert_eq!((calls.into_inner(), cache.loads()), (vec![vec![10, 30], vec![20]], 0));
    }
}

/// Everything that is left to load by then is loaded together, by threads and by tasks.
#[test]
fn what_another_could_not_load_is_loaded_by_one_call() {
    let (cache, calls) = (Cache::new(), Mutex::new(Vec::new()));
    let load = |keys: Vec<u32>| {
        calls.lock().push(keys.clone());
        tenths(keys)
    };
    thread::scope(|scope| {
        let lacking = |_| {
            // It waits for the first key, which is the last to be left.
            scope.spawn(|| {
                assert_eq!(cache.try_load_many(&[10, 20, 30], load), Ok(vec![Some(1), Some(2), Some(3)]));
            });
            until(|| cache.followers(&30) == 1);
            Err::<[_; 0], _>("no")
        };
        let failed = cache.try_load_many(&[10, 20, 30], lacking);
        assert_eq!(failed, Err(LoadError::Loader("no")));
    });
    let lacking = async |_| {
        pending().await;
        Ok::<_, ()>([(50, 5)])
    };
    let mut context = Context::from_waker(Waker::noop());
    let mut first = pin!(cache.try_load_many_async(&[40, 50, 60, 70], lacking));
    let mut second = pin!(cache.try_load_many_async(&[70, 50, 40, 60], async |keys| load(keys)));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert_eq!(first.as_mut().poll(&mut context), Poll::Ready(Ok(vec![None, Some(5), None, None])));
    let values = vec![Some(7), Some(5), Some(4), Some(6)];
    assert_eq!(second.as_mut().poll(&mut context), Poll::Ready(Ok(values)));
    assert_eq!((calls.lock().clone(), cache.loads()), (vec![vec![10, 20, 30], vec![70, 40, 60]], 0));
}

#[test]
fn a_loader_that_asks_for_any_of_its_keys_is_told() {
    let cache = Cache::new();
    let load = |keys: Vec<u32>| {
        for key in &keys {
            let inner = cache.try_get_or_insert_with(key, || Ok::<_, ()>(0));
            assert_eq!(inner, Err(LoadError::Recursion));
        }
        assert_eq!(cache.try_load_many(&[5, 20], unreachable), Err(LoadError::Recursion));
        assert_eq!(cache.try_load_many(&[50, 60], tenths), Ok(vec![Some(5), Some(6)]));
        tenths(keys)
    };
    assert_eq!(cache.try_load_many(&[10, 20], load), Ok(vec![Some(1), Some(2)]));
    assert_eq!(cache.loads(), 0);
}

/// In whatever order they have come, this thread runs none of them any more, but still the outer ones.
#[test]
fn what_has_been_loaded_is_not_running_any_more() {
    let cache = Cache::new();
    let value = cache.get_or_insert_with(&1, || {
        let load = |_| Ok::<_, ()>([(3, 30), (2, 20), (4, 40)]);
        assert_eq!(cache.try_load_many(&[2, 3, 4], load), Ok(vec![Some(20), Some(30), Some(40)]));
        for key in [2, 3, 4] {
            cache.remove(&key);
            assert_eq!(cache.get_or_insert_with(&key, || 5), 5);
        }
        let inner = cache.try_load_many(&[8, 1], unreachable);
        assert_eq!(inner, Err(LoadError::Recursion));
        7
    });
    assert_eq!((value, cache.loads()), (7, 0));
}

#[test]
fn a_task_that_is_dropped_while_it_loads_leaves_its_keys_to_others() {
    let cache = Cache::new();
    let never = |_| core::future::pending::<Result<[(u32, u32); 0], ()>>();
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut task = pin!(cache.try_load_many_async(&[1, 2], never));
        assert!(task.as_mut().poll(&mut context).is_pending());
        assert_eq!(cache.loads(), 2);
        // This thread loads nothing while nobody polls this future.
        let mut other = pin!(cache.try_get_or_insert_async(&1, async { Ok::<_, ()>(5) }));
        assert!(other.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(cache.loads(), 0);
    let mut task = pin!(cache.try_load_many_async(&[1, 2], async |keys| tenths(keys)));
    assert_eq!(task.as_mut().poll(&mut context), Poll::Ready(Ok(vec![Some(0), Some(0)])));
}

/// Tasks of one thread, which wait for each other's keys.
#[test]
fn tasks_that_ask_for_the_same_keys_in_another_order_all_get_them() {
    let cache = Cache::new();
    let calls = Count::default();
    let get = async |keys: [u32; 3]| {
        let load = async |keys: Vec<u32>| {
            calls.add();
            pending().await;
            tenths(keys)
        };
        cache.try_load_many_async(&keys, load).await.unwrap()
    };
    let mut tasks = [[10, 20, 30], [40, 30, 20], [10, 50, 40]].map(|keys| Box::pin(get(keys)));
    let mut answers = [const { None }; 3];
    while answers.iter().any(Option::is_none) {
        for (task, answer) in tasks.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(values) = task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                *answer = Some(values);
            }
        }
    }
    let some = |values: [u32; 3]| Some(values.map(Some).to_vec());
    assert_eq!(answers, [some([1, 2, 3]), some([4, 3, 2]), some([1, 5, 4])]);
    assert_eq!((calls.get(), cache.loads()), (3, 0));
}

/// A loader's destructor finds nobody loading.
#[test]
fn a_loader_that_is_dropped_may_ask_for_its_keys() {
    struct Late<'c>(&'c Cache);
    impl Drop for Late<'_> {
        fn drop(&mut self) {
            assert_eq!(self.0.get_or_insert_with(&1, || 5), 5);
        }
    }
    let cache = Cache::new();
    let never = |_| {
        let late = Late(&cache);
        async move {
            let _late = &late;
            core::future::pending::<Result<[(u32, u32); 0], ()>>().await
        }
    };
    {
        let mut task = pin!(cache.try_load_many_async(&[1, 2], never));
        assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!((cache.get(&1), cache.loads()), (Some(5), 0));
}
