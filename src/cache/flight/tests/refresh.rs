//! Values that are loaded anew while others get the old ones [F8].

use core::future::{Future, pending};
use core::pin::pin;
use core::task::{Context, Poll};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::thread;

use super::{Cache, Count, until};
use crate::cache::flight::LoadError;

/// A cache whose key 1 has the value 7, which is due.
fn due() -> Cache {
    let cache = Cache::new();
    cache.insert(1, 7);
    cache.make_due(&1);
    cache
}

/// A loader that must not run.
fn unreachable() -> u32 {
    unreachable!("somebody else loads")
}

#[test]
fn one_loads_anew_and_the_others_get_the_old_value_meanwhile() {
    let cache = due();
    let new = cache.get_or_insert_with(&1, || {
        // Also on this thread: nobody waits for itself.
        assert_eq!(cache.get_or_insert_with(&1, unreachable), 7);
        let other = || cache.get_or_insert_with(&1, unreachable);
        assert_eq!(thread::scope(|scope| scope.spawn(other).join().unwrap()), 7);
        assert_eq!((cache.get(&1), cache.loads(), cache.followers(&1)), (Some(7), 1, 0));
        8
    });
    assert_eq!((new, cache.get(&1), cache.loads()), (8, Some(8), 0));
    assert_eq!(cache.get_or_insert_with(&1, unreachable), 8);
}

#[test]
fn who_fails_gets_the_old_value_if_that_is_still_there() {
    let cache = due();
    assert_eq!(cache.try_get_or_insert_with(&1, || Err("no")), Ok(7));
    // The refresh is put off.
    assert_eq!(cache.get_or_insert_with(&1, unreachable), 7);
    cache.make_due(&1);
    let gone = cache.try_get_or_insert_with(&1, || {
        cache.evict(&1);
        Err("no")
    });
    assert_eq!((gone, cache.loads()), (Err(LoadError::Loader("no")), 0));

    let cache = due();
    assert!(
        catch_unwind(AssertUnwindSafe(|| cache.get_or_insert_with(&1, || panic!("as planned")))).is_err()
    );
    assert_eq!((cache.get(&1), cache.loads()), (Some(7), 0));
    assert_eq!(cache.get_or_insert_with(&1, || 8), 8);
}

/// The old value leaves while it is loaded anew: a caller that misses it waits for the new one.
#[test]
fn who_misses_what_is_loaded_anew_waits_for_it() {
    let cache = due();
    thread::scope(|scope| {
        let other = || cache.get_or_insert_with(&1, unreachable);
        let mut follower = None;
        let new = cache.get_or_insert_with(&1, || {
            cache.evict(&1);
            follower = Some(scope.spawn(other));
            until(|| cache.followers(&1) == 1);
            8
        });
        assert_eq!((new, follower.map(|thread| thread.join().unwrap())), (8, Some(8)));
    });
    assert_eq!((cache.get(&1), cache.loads()), (Some(8), 0));
}

/// The same, but the load fails: the caller that waits loads.
#[test]
fn who_waits_for_one_who_fails_to_load_anew_loads() {
    let cache = due();
    thread::scope(|scope| {
        let mut follower = None;
        let failed = cache.try_get_or_insert_with(&1, || {
            cache.evict(&1);
            follower = Some(scope.spawn(|| cache.get_or_insert_with(&1, || 9)));
            until(|| cache.followers(&1) == 1);
            Err("no")
        });
        // The failed caller's last look may find what the other has loaded.
        assert!(matches!(failed, Ok(9) | Err(LoadError::Loader("no"))), "{failed:?}");
        assert_eq!(follower.map(|thread| thread.join().unwrap()), Some(9));
    });
    assert_eq!((cache.get(&1), cache.loads()), (Some(9), 0));
}

#[test]
fn what_was_written_meanwhile_is_not_replaced() {
    type Write = fn(&Cache);
    let writes: [(Write, Option<u32>); 4] = [
        (|cache| cache.insert(1, 9), Some(9)),
        // Even if that value is due as well.
        (|cache| (cache.insert(1, 9), cache.make_due(&1)).1, Some(9)),
        (|cache| assert_eq!(cache.remove(&1), Some(7)), None),
        (Cache::clear, None),
    ];
    for (write, kept) in writes {
        let cache = due();
        let new = cache.get_or_insert_with(&1, || {
            write(&cache);
            8
        });
        assert_eq!((new, cache.get(&1), cache.loads()), (8, kept, 0));
    }
}

/// A write to the key makes way for the next caller that finds it due: the load that runs is too old.
#[test]
fn what_is_due_after_a_write_is_loaded_by_another() {
    let cache = due();
    let old = cache.get_or_insert_with(&1, || {
        cache.insert(1, 9);
        cache.make_due(&1);
        assert_eq!(cache.get_or_insert_with(&1, || 10), 10);
        8
    });
    assert_eq!((old, cache.get(&1), cache.loads()), (8, Some(10), 0));
}

#[test]
fn a_task_that_is_dropped_leaves_the_old_value_and_the_lead() {
    let cache = due();
    let mut context = Context::from_waker(Waker::noop());
    {
        let task = pin!(cache.try_get_or_insert_async(&1, pending::<Result<u32, ()>>()));
        assert!(task.poll(&mut context).is_pending());
        let other = pin!(cache.try_get_or_insert_async(&1, pending::<Result<u32, ()>>()));
        assert_eq!(other.poll(&mut context), Poll::Ready(Ok(7)));
        assert_eq!(cache.loads(), 1);
    }
    assert_eq!((cache.get(&1), cache.loads()), (Some(7), 0));
    let task = pin!(cache.try_get_or_insert_async(&1, async { Err("no") }));
    assert_eq!(task.poll(&mut context), Poll::Ready(Ok(7)));
    let task = pin!(cache.try_get_or_insert_async(&1, pending::<Result<u32, ()>>()));
    assert_eq!(task.poll(&mut context), Poll::Ready(Ok(7)), "it is put off");
    cache.make_due(&1);
    let task = pin!(cache.try_get_or_insert_async(&1, async { Ok::<_, ()>(8) }));
    assert_eq!(task.poll(&mut context), Poll::Ready(Ok(8)));
    assert_eq!((cache.get(&1), cache.loads()), (Some(8), 0));
}

#[test]
fn of_many_keys_those_that_are_due_are_loaded_with_those_that_are_missed() {
    let cache = due();
    let tens = |keys: Vec<u32>| Ok::<_, ()>(keys.into_iter().map(|key| (key, 10 * key)));
    let new = cache.try_load_many(&[1, 2], |keys| {
        assert_eq!(keys, [1, 2]);
        // A caller that asks for both gets the old value of the one, and waits for the other.
        let others = cache.try_load_many(&[1, 3], |keys| {
            assert_eq!(keys, [3]);
            tens(keys)
        });
        assert_eq!(others, Ok(vec![Some(7), Some(30)]));
        tens(keys)
    });
    assert_eq!((new, cache.loads()), (Ok(vec![Some(10), Some(20)]), 0));
    // The second look finds that it is due no more.
    assert_eq!(
        cache.try_load_many(&[1], |keys| -> Result<[_; 0], ()> { unreachable!("{keys:?}") }).err(),
        None
    );
}

#[test]
fn of_many_keys_that_cannot_be_loaded_anew_the_old_values_are_there() {
    let cache = due();
    let fail = |_| Err::<[_; 0], _>("no");
    assert_eq!(cache.try_load_many(&[1], fail), Ok(vec![Some(7)]));
    assert_eq!(cache.get_or_insert_with(&1, unreachable), 7, "it is put off");
    // Another key is missed, and has no value.
    cache.make_due(&1);
    assert_eq!(cache.try_load_many(&[1, 2], fail), Err(LoadError::Loader("no")));
    cache.make_due(&1);
    let gone = cache.try_load_many(&[1], |_| {
        cache.evict(&1);
        Err::<[_; 0], _>("no")
    });
    assert_eq!((gone, cache.loads()), (Err(LoadError::Loader("no")), 0));
}

/// The source has no row for the key any more.
#[test]
fn of_many_keys_that_have_no_new_value_the_old_one_is_there_unless_it_has_left() {
    type Write = fn(&Cache);
    let writes: [(Write, Option<u32>); 4] = [
        (|_| {}, Some(7)),
        (|cache| cache.insert(1, 9), Some(9)),
        (|cache| assert_eq!(cache.remove(&1), Some(7)), None),
        (|cache| cache.evict(&1), None),
    ];
    for (write, there) in writes {
        let cache = due();
        let load = |_| {
            write(&cache);
            Ok::<[_; 0], ()>([])
        };
        assert_eq!(cache.try_load_many(&[1], load), Ok(vec![there]));
        assert_eq!((cache.get(&1), cache.loads()), (there, 0));
    }
}

/// A stale flight leaves the key to the next one, which it does not put off, whether it fails or not.
#[test]
fn a_load_that_is_too_old_does_not_put_off_the_next() {
    type Load = fn() -> Result<u32, &'static str>;
    let loads: [(Load, u32); 2] = [(|| Ok(8), 8), (|| Err("no"), 7)];
    for (load, answer) in loads {
        let (cache, go) = (due(), Count::default());
        let load_next = || {
            until(|| go.get() == 1);
            9
        };
        thread::scope(|scope| {
            let mut next = None;
            let outer = cache.try_get_or_insert_with(&1, || {
                // The key is written to, and has the same value as before.
                cache.insert(1, 7);
                cache.make_due(&1);
                next = Some(scope.spawn(|| cache.get_or_insert_with(&1, load_next)));
                until(|| cache.loads() == 2);
                load()
            });
            assert_eq!((outer, cache.get(&1)), (Ok(answer), Some(7)));
            go.add();
            assert_eq!(next.map(|next| next.join().unwrap()), Some(9));
        });
        assert_eq!((cache.get(&1), cache.loads()), (Some(9), 0));
    }
}
