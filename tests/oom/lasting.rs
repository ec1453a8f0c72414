//! Removals while there is no memory for long, not even to note what was removed.

use koel::{Cache, HashMap, InlineMap, Policy, Why};

use crate::allocator::Plan;
use crate::common::counting::allocated;
use crate::common::{Counted, Ledger, seeded};

const ENTRIES: u64 = 3000;

/// A map whose entries own memory, that has never had a removal, or some.
fn filled(ledger: &std::sync::Arc<Ledger>, had_removals: bool) -> HashMap<u64, Counted> {
    let map = HashMap::new();
    (0..ENTRIES).for_each(|key| assert!(map.pin().insert(key, ledger.value(key)).is_none()));
    if had_removals {
        (0..ENTRIES).for_each(|key| assert!(map.pin().insert(key, ledger.value(key)).is_some()));
        map.flush();
    }
    map
}

#[test]
fn what_is_removed_without_memory_is_dropped() {
    for had_removals in [false, true] {
        let ledger = Ledger::new();
        let map = filled(&ledger, had_removals);
        assert_eq!(ledger.alive() as u64, ENTRIES);
        Plan::new(1, true).run(|| {
            for key in 0..ENTRIES {
                assert!(map.pin().remove(&key).is_some());
                let waiting = ledger.alive() as u64 - (ENTRIES - 1 - key);
                assert!(waiting <= 200, "{waiting} wait");
            }
            map.flush();
        });
        assert_eq!(ledger.alive(), 0, "removals before: {had_removals}");
        assert!((0..ENTRIES).all(|key| map.pin().insert(key, ledger.value(key)).is_none()));
        drop(map);
        ledger.assert_settled("without memory");
    }
}

/// Entries for which there is no room wait as well; those that a reader holds stay.
#[test]
fn what_is_removed_without_memory_under_one_pin_stays_readable() {
    let ledger = Ledger::new();
    let map = filled(&ledger, false);
    let reader = map.pin();
    let first = reader.get(&0).expect("it is there");
    Plan::new(1, true).run(|| {
        let pin = map.pin();
        assert!((0..ENTRIES).all(|key| pin.remove(&key).is_some_and(|value| value.n == key)));
        drop(pin);
        map.flush();
    });
    assert_eq!((first.n, ledger.alive() as u64), (0, ENTRIES));
    drop(reader);
    map.flush();
    assert!(ledger.alive() == 0 && map.is_empty());
    drop(map);
    ledger.assert_settled("under one pin");
}

/// As many pins as have records of their own, of several maps or of one. Further pins request memory that stays; if it is
/// refused, the process ends. So does an owned pin, unless there has been one before.
#[test]
fn six_pins_of_a_thread_want_no_memory() {
    let maps: [HashMap<u64, u64>; 6] = core::array::from_fn(|_| HashMap::new());
    drop(maps[0].pin());
    let mut plan = Plan::new(1, true);
    plan.run(|| drop(maps.each_ref().map(HashMap::pin)));
    plan.run(|| drop([&maps[0]; 6].map(HashMap::pin)));
    assert!(!plan.is_over(), "some memory was wanted");
    let asks = |pins: &dyn Fn()| {
        let before = allocated();
        pins();
        allocated() - before
    };
    assert_eq!(asks(&|| drop([&maps[0]; 7].map(HashMap::pin))), 256);
    assert_eq!([(); 2].map(|()| asks(&|| drop(maps[0].pin_owned()))), [256, 0]);
}

/// If another segment has to give up room, that is done before memory is requested.
#[test]
fn what_has_no_memory_may_have_had_others_leave() {
    let others_stay = (1..=16).filter(|other| {
        let builder = Cache::<u64, String>::builder().max_weight(1000).weigher(|_, value| value.len() as u64);
        let cache = builder.estimated_entries(2048).policy(Policy::Clock).hasher(seeded(1)).build();
        for key in [*other, 0] {
            cache.insert(key, "x".repeat(450)).expect("there is room for two");
        }
        let (heavy, mut plan) = ("x".repeat(900), Plan::new(1, true));
        let refused = plan.run(|| cache.insert(0, heavy)).expect_err("no memory");
        assert_eq!((refused.why, refused.value.len()), (Why::OutOfMemory, 900));
        assert_eq!(cache.peek(&0).map(|value| value.len()), Some(450), "the key keeps what it has");
        cache.contains_key(other)
    });
    assert!((1..16).contains(&others_stay.count()), "those of the same segment stay");
}

/// It grows at 7/8, as that costs less than long paths; if it cannot grow, paths lead to the free slots.
#[test]
fn a_map_that_cannot_grow_is_filled() {
    let map: InlineMap<u64, u64, _> = InlineMap::with_hasher(seeded(1));
    (0..1000).for_each(|key| assert!(map.insert(key, key).is_none()));
    let slots = map.capacity();
    let refused = Plan::new(1, true).run(|| (1000..).find(|&key| map.checked_insert(key, key).is_err()));
    let taken = refused.expect("one of them");
    assert!(map.capacity() == slots && taken as usize > slots * 93 / 100, "{taken} of {slots}");
    assert!((0..taken).all(|key| map.get(&key) == Some(key)) && map.len() as u64 == taken);
    assert!((taken..2 * taken).all(|key| map.checked_insert(key, key).is_ok()) && map.capacity() > slots);
}
