//! What panics gives back the memory that it had meanwhile.

mod common;

use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};

use common::counting::{Counting, allocated};
use common::fuse::{Fragile, Site, arm, disarm};
use common::{Ledger, catch};
use koel::{Cache, ManualClock, Operation};
use pollster::block_on;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// It is told of what has expired when the room for the dump is looked for.
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

/// What an operation of a cache drops itself: keys and closures that are given to it, and clones that it does not return.
#[test]
fn an_answer_is_not_leaked_if_a_drop_panics_before_it_is_returned() {
    type Verb = fn(&Cache<Fragile, Fragile>, &dyn Fn(u64) -> Fragile);
    let verbs: [(&str, Verb); 16] = [
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
        ("load as a task", |cache, new| drop(block_on(cache.get_or_insert_async(new(3), async { new(7) })))),
    ];
    for (what, verb) in verbs {
        for n in 0.. {
            let (ledger, cache) = (Ledger::new(), Cache::new(10));
            let new = |n| Fragile(ledger.value(n));
            cache.insert(new(1), new(2)).unwrap();
            arm(Site::Drop, n);
            let result = catch(|| verb(&cache, &new));
            let blown = disarm();
            assert_eq!(result.is_err(), blown);
            drop(cache);
            ledger.assert_settled(&format!("{what}, drop {n}"));
            if !blown {
                break;
            }
        }
    }
}
