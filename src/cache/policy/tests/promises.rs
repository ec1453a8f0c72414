//! What every policy promises, whatever happens to the table.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Cache, Heat, Item, Locator, Policy, locator, mark};
use crate::hash::{Digest, Place};

#[derive(Clone, Debug)]
enum Op {
    Get(u32),
    Insert(u32, u64),
    Remove(u32),
    Reweigh(u32, u64),
    Displace(u32),
    /// A late hit that sets a bit of whichever item is in the slot by now.
    Stray(usize, u8),
    SetCapacity(u64),
    Clear,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = || 0_u32..60;
    let op = prop_oneof![
        8 => key().prop_map(Op::Get),
        16 => (key(), 0_u64..9).prop_map(|(key, weight)| Op::Insert(key, weight)),
        4 => key().prop_map(Op::Remove),
        4 => (key(), 0_u64..9).prop_map(|(key, weight)| Op::Reweigh(key, weight)),
        2 => key().prop_map(Op::Displace),
        1 => (any::<usize>(), 1_u8..=2).prop_map(|(slot, bit)| Op::Stray(slot, bit)),
        1 => (0_u64..90).prop_map(Op::SetCapacity),
        1 => Just(Op::Clear),
    ];
    prop::collection::vec(op, 1..300)
}

fn apply(cache: &mut Cache, op: Op) {
    match op {
        Op::Get(key) => {
            cache.get(key);
        }
        Op::Insert(key, weight) => {
            if cache.table.slot_of(key).is_none() {
                cache.insert(key, weight);
            }
        }
        Op::Remove(key) => {
            cache.remove(key);
        }
        Op::Reweigh(key, weight) => {
            if weight <= cache.evictor.capacity() {
                cache.reweigh(key, weight);
            }
        }
        Op::Displace(key) => cache.displace(key),
        Op::Stray(slot, bit) => {
            let slots = cache.table.slots.len().max(1);
            if let Some(Some(item)) = cache.table.slots.get_mut(slot % slots) {
                item.mark |= bit;
            }
        }
        Op::SetCapacity(capacity) => cache.evictor.set_capacity(capacity, &mut cache.table),
        Op::Clear => {
            cache.table.slots.clear();
            cache.evictor.clear();
        }
    }
}

/// A dump has every item once, whichever slots their locators mean, leaves no trace, and gives all items a place elsewhere.
fn dumps_each_once(cache: &mut Cache, policy: Policy) -> Result<(), TestCaseError> {
    let marks = |cache: &Cache| cache.table.slots.iter().flatten().map(|item| item.mark).collect::<Vec<_>>();
    let before = marks(cache);
    let order = cache.order();
    prop_assert_eq!(marks(cache), before);
    prop_assert_eq!(order.len(), cache.residents().len());
    let dumped: BTreeMap<_, _> = order.iter().map(|&(key, weight, _)| (key, weight)).collect();
    prop_assert_eq!(dumped, cache.residents());
    let mut back = Cache::new(policy, cache.evictor.capacity(), cache.table.locators);
    for &(key, weight, heat) in order.iter().rev() {
        prop_assert!(back.restore(key, weight, heat));
    }
    prop_assert_eq!(back.evictor.weight(), cache.evictor.weight());
    prop_assert_eq!(back.residents(), cache.residents());
    back.evictor.set_capacity(0, &mut back.table);
    prop_assert!(back.residents().values().all(|&weight| weight == 0), "{:?}", back.residents());
    Ok(())
}

fn keeps_its_promises(
    policy: Policy,
    buckets: u32,
    capacity: u64,
    ops: Vec<Op>,
) -> Result<(), TestCaseError> {
    let mut cache = Cache::new(policy, capacity, buckets);
    for op in ops {
        apply(&mut cache, op);
        prop_assert_eq!(cache.evictor.weight(), cache.weight_of_residents());
        prop_assert!(cache.evictor.weight() <= cache.evictor.capacity());
    }
    dumps_each_once(&mut cache, policy)?;
    // No item is forgotten: all that weigh anything can be evicted.
    cache.evictor.set_capacity(0, &mut cache.table);
    prop_assert!(cache.residents().values().all(|&weight| weight == 0), "{:?}", cache.residents());
    Ok(())
}

proptest! {
    #[test]
    fn adaptive_keeps_the_bound_and_forgets_nobody(ops in ops(), capacity in 0_u64..90, buckets in 1_u32..20) {
        keeps_its_promises(Policy::Adaptive, buckets, capacity, ops)?;
    }

    #[test]
    fn clock_keeps_the_bound_and_forgets_nobody(ops in ops(), capacity in 0_u64..90, buckets in 1_u32..20) {
        keeps_its_promises(Policy::Clock, buckets, capacity, ops)?;
    }

    #[test]
    fn local_keeps_the_bound_and_forgets_nobody(ops in ops(), capacity in 0_u64..90, buckets in 1_u32..20) {
        keeps_its_promises(Policy::Local, buckets, capacity, ops)?;
    }
}

#[test]
fn a_hit_on_a_hot_entry_writes_nothing() {
    for (policy, hits) in [(Policy::Adaptive, 2), (Policy::Clock, 1), (Policy::Local, 2)] {
        let mut cache = Cache::new(policy, 4, 64);
        cache.insert(7, 1);
        for _ in 0..hits {
            assert_ne!(mark::hit(cache.table.item(0).mark), 0, "{policy:?}");
            cache.get(7);
        }
        assert_eq!(mark::hit(cache.table.item(0).mark), 0, "{policy:?}");
    }
}

#[test]
fn a_hit_changes_no_queue_and_every_decrement_takes_one() {
    for mark in 0..=u8::MAX {
        let after = mark | mark::hit(mark);
        assert_eq!(after & !3, mark & !3);
        assert_eq!(mark::hits(after), (mark::hits(mark) + 1).min(2));
        assert_eq!(mark::hits(mark::less(mark)), mark::hits(mark).saturating_sub(1));
        assert_eq!(mark::less(mark) & !3, mark & !3);
    }
}

#[test]
fn memory_stays_bounded_when_entries_are_inserted_and_removed_for_ever() {
    let mut cache = Cache::new(Policy::Adaptive, 100, 16);
    for key in 0..50 {
        cache.insert(key, 1);
    }
    for round in 0..20_000 {
        let key = 50 + round % 3;
        cache.insert(key, 1);
        assert!(cache.remove(key));
    }
    // The same with residents that have many stale entries and one that is their own.
    for round in 0..20_000 {
        let key = round % 3;
        assert!(cache.remove(key));
        cache.insert(key, 1);
    }
    // And with items that come back from a dump and leave again, in either queue.
    for round in 0..20_000 {
        let key = 50 + round % 3;
        assert!(cache.restore(key, 1, Heat::new(0, round % 2 == 0)) && cache.remove(key));
    }
    // 50 residents; rings are at most twice as long, plus their slack.
    assert!(cache.evictor.memory_usage() < 1500, "{}", cache.evictor.memory_usage());
    assert_eq!(cache.residents().len(), 50);
}

/// Its entry leads nowhere, like that of an item whose `Hash` contradicts itself: it is dumped all the same, as the next to go,
/// and is found again when the table has doubled, even if nothing has been evicted.
#[test]
fn who_has_no_entry_is_not_forgotten() {
    let mut cache = Cache::new(Policy::Adaptive, 10, u32::MAX);
    (0..4).for_each(|key| assert!(cache.insert(key, 1)));
    let stray = cache.table.slot_of(2).expect("it is there");
    cache.table.slots[stray].as_mut().expect("it is there").locator = locator(1000);
    let keys: Vec<u32> = cache.order().into_iter().map(|(key, ..)| key).collect();
    assert_eq!(keys, [2, 0, 1, 3]);
    assert!(cache.table.slots.iter().flatten().all(|item| item.mark & mark::SEEN == 0));
    assert!(cache.remove(0));
    assert_eq!(cache.evictor.strays(&mut cache.table), [stray]);
    let mark = cache.table.item(stray).mark;
    cache.evictor.adopt(locator(1000), mark);
    assert!(cache.evictor.strays(&mut cache.table).is_empty());
}

/// Two keys have one place in a small table, and the entry of the one that has been removed is kept for the other.
#[test]
fn who_is_led_to_by_anothers_entry_is_found_when_the_table_has_doubled() {
    let place = |key, buckets| {
        let Place { first, second, tag } = locator(key).place(buckets);
        (first, second, tag)
    };
    let alike = (1..).find(|&key| place(key, 4) == place(0, 4) && place(key, 8) != place(0, 8));
    let alike = alike.expect("one of some thousand keys");
    // After some of these numbers, the next arrival has the queue drop all entries of items that have left.
    for gone in 0..80 {
        let mut cache = Cache::new(Policy::Adaptive, 1000, u32::MAX);
        cache.table.places_among = Some(4);
        assert!(cache.insert(0, 1) && cache.insert(alike, 1) && cache.remove(alike));
        (10_000..10_000 + gone).for_each(|key| assert!(cache.insert(key, 1) && cache.remove(key)));
        assert!(cache.insert(20_000, 1));
        cache.table.places_among = Some(8);
        for slot in cache.evictor.strays(&mut cache.table) {
            let Item { locator, mark, .. } = cache.table.item(slot);
            cache.evictor.adopt(locator, mark);
        }
        cache.evictor.set_capacity(1, &mut cache.table);
        assert_eq!(cache.table.evicted, [0], "the older one, after {gone}");
    }
}

#[test]
fn tiny_caches_work() {
    for policy in [Policy::Adaptive, Policy::Clock, Policy::Local] {
        for capacity in 1..8 {
            let mut cache = Cache::new(policy, capacity, 1);
            for request in 0..2000_u32 {
                cache.read_through(request.wrapping_mul(0x9E37_79B1) >> 27);
                assert!(cache.residents().len() as u64 <= capacity);
            }
            // The key that was asked for last is there.
            cache.read_through(99);
            assert!(cache.get(99), "{policy:?} {capacity}");
        }
        let mut nothing = Cache::new(policy, 0, 1);
        assert!(!nothing.insert(1, 1));
    }
}

#[test]
fn a_locator_leads_to_the_item_in_tables_of_any_size() {
    for key in 0..1000 {
        let digest = Digest::new(key);
        for buckets in [1, 2, 77, 1 << 10, (1 << 24) - 3, 1 << 24] {
            let (there, here) = (Place::new(digest, buckets), Locator::new(digest).place(buckets));
            assert_eq!((there.first, there.second, there.tag), (here.first, here.second, here.tag));
        }
    }
}

#[test]
fn what_is_remembered_takes_less_than_ten_bytes_an_entry() {
    let mut cache = Cache::new(Policy::Adaptive, 1000, 1 << 20);
    for request in 0..8000_u32 {
        cache.read_through(request.wrapping_mul(0x9E37_79B1) >> 20);
    }
    assert_eq!(cache.evictor.weight(), 1000);
    assert!(cache.evictor.memory_usage() < 10_000, "{}", cache.evictor.memory_usage());
}

#[test]
fn somebody_goes_though_readers_hit_faster_than_hits_are_taken() {
    for policy in [Policy::Adaptive, Policy::Clock, Policy::Local] {
        for weight in [1, 7] {
            let mut cache = Cache::new(policy, 500, u32::MAX);
            for key in 0..1000 {
                assert!(cache.insert(key, weight));
                (0..2).for_each(|_| assert!(cache.get(key)));
                cache.table.is_busy = true;
            }
            assert!(cache.weight_of_residents() <= 500, "{policy:?}");
        }
    }
}

/// Even if all items are in main.
#[test]
fn somebody_goes_of_main_though_readers_hit_faster_than_hits_are_taken() {
    let mut cache = Cache::new(Policy::Adaptive, 1000, u32::MAX);
    (0..900).for_each(|key| assert!(cache.insert(key, 1) && cache.get(key) && cache.get(key)));
    assert!(cache.table.slots.iter().flatten().all(|item| item.mark & mark::MAIN != 0));
    cache.table.is_busy = true;
    cache.evictor.set_capacity(400, &mut cache.table);
    assert_eq!(cache.weight_of_residents(), 400);
}
