//! The decision of `compute` is carried out on the entry that it has seen, even if room is made for the value meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use koel::{Cache, Compute, InlineCache, ManualClock, Operation};
use pollster::block_on;

use crate::common::{Rng, catch, env_number, on_threads, seed};
use crate::{POLICIES, weighing_values};

/// Heavier than a segment's share, so that other segments are asked for room; no two weights are equal.
const HEAVY: u64 = 1 << 32;

#[test]
fn a_value_replaces_the_one_it_was_made_from() {
    let steps = env_number("KOEL_CACHE_WRITES", 6000) as u64 / 3;
    for policy in POLICIES {
        let cache = weighing_values(3 * HEAVY).policy(policy).build();
        let compute = |thread: u64| {
            let mut rng = Rng::new(seed() ^ thread << 32);
            let step = |n| {
                let (mut seen, value) = (None, HEAVY + n * 4 + thread);
                let answer = cache.compute(rng.below(3), |old| {
                    seen = old.copied();
                    // With the lock held, for which other threads wait: they get it while this one asks for room.
                    std::thread::yield_now();
                    Operation::<_, ()>::Insert(value)
                });
                match answer.unwrap() {
                    Compute::Updated { old, new } => assert_eq!((Some(old.1), new.1), (seen, value)),
                    Compute::Inserted(_, new) => assert_eq!((seen, new), (None, value)),
                    other => unreachable!("{other:?}"),
                }
                seen
            };
            (0..steps).filter_map(step).collect::<Vec<_>>()
        };
        let replaced = on_threads(3, |thread| compute(thread as u64)).concat();
        assert_eq!(
            replaced.iter().collect::<BTreeSet<_>>().len(),
            replaced.len(),
            "one value replaced twice"
        );
    }
}

/// The entry was there when the closure was called.
#[test]
fn an_entry_whose_time_ends_while_it_is_decided_about_is_decided_about_once() {
    let clock = ManualClock::new();
    let builder = Cache::builder().max_entries(10).clock(clock.clone());
    let cache: Cache<u64, u64> = builder.time_to_live(Duration::from_secs(1)).build();
    cache.insert(1, 10).unwrap();
    let mut asked = Vec::new();
    let answer = cache.compute(1, |old| {
        asked.push(old.copied());
        clock.advance(Duration::from_secs(1));
        Operation::<_, ()>::Insert(11)
    });
    assert_eq!(asked, [Some(10)]);
    assert_eq!(answer.unwrap(), Compute::Updated { old: (1, 10), new: (1, 11) });
    assert_eq!(cache.get(&1), Some(11));
}

#[test]
fn an_update_is_of_what_is_there_and_begins_its_time_anew() {
    let clock = ManualClock::new();
    let builder = weighing_values(100).clock(clock.clone());
    let cache: Cache<u64, u64> = builder.time_to_live(Duration::from_secs(2)).build();
    assert_eq!(cache.update(1, |_| unreachable!("there is none")).unwrap(), None);
    assert_eq!(cache.update_or_insert(1, |_| unreachable!("there is none"), 10).unwrap(), 10);
    clock.advance(Duration::from_secs(1));
    assert_eq!(cache.update_or_insert_with(1, |n| n + 1, || unreachable!("it is there")).unwrap(), 11);
    // A value that does not fit is handed back, and the entry stays.
    assert_eq!(cache.update(1, |n| n + 100).unwrap_err().value, 111);
    assert_eq!(cache.update_or_insert(2, |_| unreachable!("there is none"), 101).unwrap_err().key, 2);
    clock.advance(Duration::from_secs(1));
    assert_eq!(cache.update(1, |n| n + 1).unwrap(), Some(12));
    assert_eq!((cache.get(&1), cache.weight()), (Some(12), 12));
    clock.advance(Duration::from_secs(2));
    assert_eq!(cache.update(1, |_| unreachable!("it has expired")).unwrap(), None);
    assert_eq!(cache.update_or_insert_with(1, |_| unreachable!("it has expired"), || 13).unwrap(), 13);
}

#[test]
fn no_update_of_many_threads_is_lost() {
    let steps = env_number("KOEL_CACHE_WRITES", 6000) as u64 / 3;
    for policy in POLICIES {
        let cache = weighing_values(3 * HEAVY).policy(policy).build();
        on_threads(3, |_| {
            for n in 0..steps {
                cache.update_or_insert(n % 2, |n| n + 1, 1).unwrap();
            }
        });
        assert_eq!((0..2).map(|key| cache.get(&key).unwrap()).sum::<u64>(), 3 * steps);
    }
}

/// It would wait for other threads, which may wait for its lock: it panics before any loader runs.
#[test]
fn who_decides_loads_nothing() {
    let (cache, inline) = (Cache::<u64, u64>::new(10), InlineCache::<u64, u64>::new(10));
    let none = |_: Vec<u64>| -> [(u64, u64); 0] { unreachable!("nothing is loaded") };
    let ways: [&dyn Fn(); 8] = [
        &|| _ = cache.get_or_insert_with(2, || unreachable!("nothing is loaded")),
        &|| _ = block_on(cache.get_or_insert_async(2, async { unreachable!("nothing is loaded") })),
        &|| cache.get_many_or_insert_with(&[2], &mut [None], none),
        &|| block_on(cache.get_many_or_insert_async(&[2], &mut [None], async |keys| none(keys))),
        &|| _ = inline.get_or_insert_with(2, || unreachable!("nothing is loaded")),
        &|| _ = block_on(inline.get_or_insert_async(2, async { unreachable!("nothing is loaded") })),
        &|| inline.get_many_or_insert_with(&[2], &mut [None], none),
        &|| block_on(inline.get_many_or_insert_async(&[2], &mut [None], async |keys| none(keys))),
    ];
    for (number, way) in (0..).zip(ways) {
        let decide = |_: Option<&u64>| {
            way();
            Operation::<_, ()>::Insert(1)
        };
        let decided = catch(|| match number < 4 {
            true => _ = cache.compute(1, decide),
            false => _ = inline.compute(1, |old| decide(old.as_ref())),
        });
        let message = decided.unwrap_err();
        assert!(message.contains("loaded into"), "{number}: {message}");
    }
    assert!(cache.is_empty() && inline.is_empty());
    assert_eq!((cache.get_or_insert_with(1, || 7), inline.get_or_insert_with(1, || 7)), (7, 7));
}
