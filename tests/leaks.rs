//! Operations that panic give back the memory that they had taken.

mod common;

use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};

use common::counting::{Counting, allocated};
use common::fuse::{Fragile, Site, arm, disarm};
use common::{Ledger, catch};
use koel::{Cache, HashMap, InlineCache, ManualClock, Operation};
use pollster::block_on;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// It is told of expired entries when room for the dump is looked for.
#[test]
fn a_load_leaks_nothing_if_the_listener_panics() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_entries(10)
        .time_to_live(Duration::from_secs(1))
        .clock(clock.clone())
        .on_removal(|_, _, _| resume_unwind(Box::new("told")))
        .build();
    let from: Cache<u64, u64> = Cache::new(10);
    from.insert(1, 1).unwrap();
    let load = || {
        cache.insert(2, 2).unwrap();
        clock.advance(Duration::from_secs(2));
        let dump = from.dump();
        assert!(catch_unwind(AssertUnwindSafe(|| cache.load(dump))).is_err());
        cache.flush();
    };
    (0..10).for_each(|_| load());
    let before = allocated();
    (0..100).for_each(|_| load());
    let lost = allocated() - before;
    assert!(lost < 1000, "{lost} bytes");
}

/// Makes counted keys and values.
type New<'l> = dyn Fn(u64) -> Fragile + 'l;

/// Does `verb` to a new store for every n, with a fuse in the n-th drop: at the end everything has been dropped once.
fn leaks_nothing<S>(what: &str, build: fn(&New<'_>) -> S, verb: impl Fn(&S, &New<'_>)) {
    for n in 0.. {
        let ledger = Ledger::new();
        let new = |n| Fragile(ledger.value(n));
        let store = build(&new);
        arm(Site::Drop, n);
        let result = catch(|| verb(&store, &new));
        let blown = disarm();
        assert_eq!(result.is_err(), blown, "{what}, drop {n}: {result:?}");
        drop(store);
        ledger.assert_settled(&format!("{what}, drop {n}"));
        if !blown {
            break;
        }
    }
}

/// A cache that has key 1.
fn with_one(new: &New<'_>) -> Cache<Fragile, Fragile> {
    let cache = Cache::new(10);
    cache.insert(new(1), new(2)).unwrap();
    cache
}

/// Drops in operations of a cache: of keys and closures that are given to it, and of clones that it does not return.
#[test]
fn an_answer_of_a_cache_is_not_leaked_if_a_drop_panics_before_it_is_returned() {
    type Verb = fn(&Cache<Fragile, Fragile>, &New<'_>);
    let verbs: [(&str, Verb); 22] = [
        ("update", |cache, new| drop(cache.update(new(1), |_| new(7)))),
        ("update_or_insert", |cache, new| drop(cache.update_or_insert(new(1), |_| new(7), new(8)))),
        ("compute to remove", |cache, new| drop(cache.compute(new(1), |_| Operation::<_, ()>::Remove))),
        ("compute to leave", |cache, new| drop(cache.compute(new(1), |_| Operation::Abort(new(7))))),
        ("load what is there", |cache, new| drop(cache.get_or_insert_with(new(1), || unreachable!()))),
        ("load", |cache, new| drop(cache.get_or_insert_with(new(3), || new(7)))),
        ("load by reference", |cache, new| drop(cache.get_or_insert_with_ref(&new(3), || new(7)))),
        ("fail to load", |cache, new| {
            drop(cache.try_get_or_insert_with(new(3), || Err::<Fragile, _>(new(7))));
        }),
        ("update by what owns", |cache, new| {
            let own = new(9);
            drop(cache.update(new(1), move |_| own.clone()));
        }),
        ("update or insert by what owns", |cache, new| {
            let (own, other) = (new(8), new(9));
            drop(cache.update_or_insert_with(new(1), move |_| own.clone(), move || other.clone()));
        }),
        ("compute by what owns", |cache, new| {
            let own = new(9);
            drop(cache.compute(new(1), move |_| Operation::<_, ()>::Insert(own.clone())));
        }),
        ("compute_ref by what owns", |cache, new| {
            let own = new(9);
            drop(cache.compute_ref(&new(1), move |_| Operation::<_, ()>::Insert(own.clone())));
        }),
        ("update_or_insert_ref by what owns", |cache, new| {
            let own = new(9);
            drop(cache.update_or_insert_ref(&new(1), move |_| own.clone(), new(7)));
        }),
        ("load what is there by what owns", |cache, new| {
            let own = new(9);
            drop(cache.get_or_insert_with(new(1), move || own));
        }),
        ("load by reference what is there by what owns", |cache, new| {
            let own = new(9);
            drop(cache.get_or_insert_with_ref(&new(1), move || own));
        }),
        ("load by reference what is there, to share errors, by what owns", |cache, new| {
            let own = new(9);
            drop(cache.try_get_or_insert_with_shared_ref(&new(1), move || Ok::<_, ()>(own)));
        }),
        ("load what is there, as a task", |cache, new| {
            drop(block_on(cache.get_or_insert_async(new(1), async { unreachable!() })));
        }),
        ("reserve what is there", |cache, new| drop(cache.get_or_reserve(new(1)).unwrap())),
        ("reserve", |cache, new| drop(cache.get_or_reserve(new(3)).unwrap_err().insert(new(7)))),
        ("reserve in vain", |cache, new| drop(cache.get_or_reserve_ref(&new(3)).unwrap_err())),
        ("reserve as a task what is there", |cache, new| {
            drop(block_on(cache.get_or_reserve_async(new(1))).unwrap());
        }),
        ("load as a task", |cache, new| drop(block_on(cache.get_or_insert_async(new(3), async { new(7) })))),
    ];
    verbs.into_iter().for_each(|(what, verb)| leaks_nothing(what, with_one, verb));
}

/// A write that panics for lack of room, with no other message than that.
fn without_room<T>(write: impl FnOnce() -> T) {
    let message = catch(|| drop(write())).expect_err("the map is full");
    assert!(message.contains("is full"), "{message}");
}

/// For a full map, so that the entry that it hands back is an answer, too.
#[test]
fn an_answer_of_a_map_is_not_leaked_if_a_drop_panics_before_it_is_returned() {
    type Verb = fn(&HashMap<Fragile, Fragile>, &New<'_>);
    let verbs: [(&str, Verb); 11] = [
        ("try_insert what is there", |map, new| drop(map.pin().try_insert(new(1), new(7)))),
        ("try_insert where there is no room", |map, new| drop(map.pin().checked_try_insert(new(77), new(7)))),
        ("fail to make", |map, new| {
            drop(map.pin().try_get_or_insert_with(new(77), || Err::<Fragile, _>(new(7))));
        }),
        ("compute to leave", |map, new| drop(map.pin().compute(new(1), |_| Operation::Abort(new(7))))),
        ("checked_update_or_insert by what owns", |map, new| {
            let own = new(9);
            drop(map.pin().checked_update_or_insert(new(77), move |_| own.clone(), new(7)));
        }),
        ("checked_update_or_insert_with by what owns", |map, new| {
            let own = new(9);
            drop(map.pin().checked_update_or_insert_with(new(77), move |_| own.clone(), || new(7)));
        }),
        ("update_or_insert by what owns", |map, new| {
            let own = new(9);
            without_room(|| map.pin().update_or_insert(new(77), move |_| own.clone(), new(7)).0.n);
        }),
        ("update_or_insert_with by what owns", |map, new| {
            let own = new(9);
            without_room(|| map.pin().update_or_insert_with(new(77), move |_| own.clone(), || new(7)).0.n);
        }),
        ("compute_ref to leave", |map, new| {
            drop(map.pin().compute_ref(&new(1), |_| Operation::Abort(new(7))));
        }),
        ("checked_compute_ref where there is no room", |map, new| {
            drop(map.pin().checked_compute_ref(&new(77), |_| Operation::<_, ()>::Insert(new(7))));
        }),
        ("checked_update_or_insert_with_ref by what owns", |map, new| {
            let own = new(9);
            drop(map.pin().checked_update_or_insert_with_ref(&new(77), move |_| own.clone(), || new(7)));
        }),
    ];
    let build = |new: &New<'_>| {
        let map = HashMap::builder().fixed_capacity(4).build();
        // So many that each place is taken, also those of key 77.
        (0..500).filter(|n| *n != 77).for_each(|n| drop(map.pin().checked_insert(new(n), new(n))));
        map
    };
    verbs.into_iter().for_each(|(what, verb)| leaks_nothing(what, build, verb));
}

/// A loader that is done at once, and still owns something then.
struct Owns<T>(Option<T>, Fragile);

impl<T: Unpin> Future for Owns<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(self.0.take().expect("polled once"))
    }
}

#[test]
fn an_answer_is_not_leaked_if_the_drop_of_a_tasks_loader_panics() {
    type Load<T> = fn(&Cache<Fragile, Fragile>, Fragile, Owns<T>);
    let loads: [(&str, Load<Fragile>); 5] = [
        ("load", |cache, key, load| drop(block_on(cache.get_or_insert_async(key, load)))),
        ("by reference", |cache, key, load| drop(block_on(cache.get_or_insert_async_ref(&key, load)))),
        ("if", |cache, key, load| drop(block_on(cache.get_or_insert_async_if(key, load, |_| false)))),
        ("anew", |cache, key, load| drop(block_on(cache.get_or_insert_async_if(key, load, |_| true)))),
        ("entry", |cache, key, load| drop(block_on(cache.entry(key).or_insert_async(load)))),
    ];
    let may_fail: [(&str, Load<Result<Fragile, Fragile>>); 9] = [
        ("try", |cache, key, load| drop(block_on(cache.try_get_or_insert_async(key, load)))),
        ("shared", |cache, key, load| drop(block_on(cache.try_get_or_insert_async_shared(key, load)))),
        ("try by reference", |cache, key, load| {
            drop(block_on(cache.try_get_or_insert_async_ref(&key, load)));
        }),
        ("shared by reference", |cache, key, load| {
            drop(block_on(cache.try_get_or_insert_async_shared_ref(&key, load)));
        }),
        ("try if", |cache, key, load| {
            drop(block_on(cache.try_get_or_insert_async_if(key, load, |_| false)));
        }),
        ("try anew", |cache, key, load| {
            drop(block_on(cache.try_get_or_insert_async_if(key, load, |_| true)));
        }),
        ("shared anew", |cache, key, load| {
            drop(block_on(cache.try_get_or_insert_async_shared_if(key, load, |_| true)));
        }),
        ("try entry", |cache, key, load| drop(block_on(cache.entry(key).or_try_insert_async(load)))),
        ("inline", |_, _, load| {
            let inline: InlineCache<u64, u64> = InlineCache::new(10);
            let own = Owns(load.0.map(|loaded| loaded.map(|_| 7)), load.1);
            drop(block_on(inline.try_get_or_insert_async(3, own)));
        }),
    ];
    for key in [1, 3] {
        for (what, load) in loads {
            leaks_nothing(&format!("{what} {key}"), with_one, |cache, new| {
                load(cache, new(key), Owns(Some(new(7)), new(9)));
            });
        }
        for (what, load) in may_fail {
            leaks_nothing(&format!("{what} {key}"), with_one, |cache, new| {
                load(cache, new(key), Owns(Some(Ok(new(7))), new(9)));
            });
            leaks_nothing(&format!("{what} {key}, fails"), with_one, |cache, new| {
                load(cache, new(key), Owns(Some(Err(new(7))), new(9)));
            });
        }
    }
}
