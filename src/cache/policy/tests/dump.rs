//! What a dump keeps of a policy: a cache that goes on from it evicts the same items.

use proptest::prelude::*;

use super::super::WindowShare;
use super::{Cache, Heat, Policy};

/// No two keys share a locator.
const LOCATORS: u32 = 1 << 20;

#[derive(Clone, Debug)]
enum Op {
    /// Looks up the key at this fraction, in 256ths, of the keys that there were.
    Get(u8),
    /// Inserts a key that there never was.
    Insert(u64),
    Remove(u8),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => any::<u8>().prop_map(Op::Get),
        8 => (1_u64..5).prop_map(Op::Insert),
        2 => any::<u8>().prop_map(Op::Remove),
    ];
    prop::collection::vec(op, 1..300)
}

fn lived(policy: Policy, capacity: u64, window: f64, ops: Vec<Op>) -> Cache {
    let mut cache = Cache::new(policy, capacity, LOCATORS);
    cache.evictor.learn(WindowShare::of(window));
    let mut next = 0;
    for op in ops {
        let some_key = |part: u8| next * u32::from(part) / 256;
        match op {
            Op::Get(part) => _ = cache.get(some_key(part)),
            Op::Remove(part) => _ = cache.remove(some_key(part)),
            Op::Insert(weight) => {
                cache.insert(next, weight);
                next += 1;
            }
        }
    }
    cache
}

/// Another cache that goes on from this one, if there is room for all.
fn restarted(cache: &mut Cache, policy: Policy) -> Cache {
    let capacity = cache.evictor.capacity();
    let mut back = Cache::new(policy, capacity, LOCATORS);
    if let Some(target) = cache.evictor.window_target() {
        back.evictor.learn(WindowShare::of(target / capacity as f64));
    }
    for (key, weight, heat) in cache.order().into_iter().rev() {
        assert!(back.restore(key, weight, heat), "no room for {key}");
    }
    back
}

/// The keys that leave, one after the other, as the capacity falls.
fn leaving(cache: &mut Cache) -> Vec<u32> {
    cache.table.evicted.clear();
    for capacity in (0..cache.evictor.capacity()).rev() {
        cache.evictor.set_capacity(capacity, &mut cache.table);
    }
    cache.table.evicted.clone()
}

proptest! {
    #[test]
    fn adaptive_evicts_in_the_order_it_would_have(
        ops in ops(), capacity in 1_u64..200, window in 0.01_f64..0.9,
    ) {
        let mut cache = lived(Policy::Adaptive, capacity, window, ops);
        let mut back = restarted(&mut cache, Policy::Adaptive);
        prop_assert_eq!(back.order(), cache.order());
        prop_assert_eq!(leaving(&mut back), leaving(&mut cache));
    }

    /// The table decides the order in which a hand meets items; those that were hit stay longer than those that were not.
    #[test]
    fn a_hand_spares_who_was_hit(ops in ops(), capacity in 1_u64..200, is_local in any::<bool>()) {
        let policy = if is_local { Policy::Local } else { Policy::Clock };
        let mut cache = lived(policy, capacity, 0.1, ops);
        let before = cache.order();
        let mut back = restarted(&mut cache, policy);
        let hits = before.iter().filter(|entry| entry.2.hits() > 0).count();
        let gone = leaving(&mut back);
        let was_hit = |key: &u32| before.iter().any(|entry| entry.0 == *key && entry.2.hits() > 0);
        prop_assert_eq!(gone.len(), before.len());
        prop_assert!(gone[gone.len() - hits..].iter().all(was_hit), "{:?} of {:?}", gone, before);
    }

    /// From one policy to another and back: hits are kept as far as its bits can represent them.
    #[test]
    fn policies_go_on_from_each_other(ops in ops(), capacity in 1_u64..200, is_local in any::<bool>()) {
        let (other, most) = if is_local { (Policy::Local, 2) } else { (Policy::Clock, 1) };
        let mut cache = lived(Policy::Adaptive, capacity, 0.3, ops);
        let mut between = restarted(&mut cache, other);
        prop_assert_eq!(between.residents(), cache.residents());
        let mut back = restarted(&mut between, Policy::Adaptive);
        prop_assert_eq!(back.residents(), cache.residents());
        let hot = |cache: &mut Cache| {
            let mut hot: Vec<_> = cache.order().into_iter().filter(|e| e.2.hits() > 0).map(|e| e.0).collect();
            hot.sort_unstable();
            hot
        };
        prop_assert_eq!(hot(&mut back), hot(&mut cache));
        prop_assert!(back.order().iter().all(|entry| entry.2.in_main() && entry.2.hits() <= most));
    }
}

/// First in, first out, without hits: written down by hand.
#[test]
fn the_order_is_window_then_main_the_next_to_go_first() {
    let mut cache = Cache::new(Policy::Adaptive, 8, LOCATORS);
    cache.evictor.learn(WindowShare::of(0.5));
    // Main fills first, to four; then the window.
    (0..8).for_each(|key| assert!(cache.insert(key, 1)));
    assert!([1, 6, 6].iter().all(|&key| cache.get(key)));
    let told = |cache: &mut Cache| -> Vec<_> {
        cache.order().into_iter().map(|(key, _, heat)| (key, heat.in_main(), heat.hits())).collect()
    };
    let window = [(4, false, 0), (5, false, 0), (6, false, 2), (7, false, 0)];
    let main = [(0, true, 0), (1, true, 1), (2, true, 0), (3, true, 0)];
    assert_eq!(told(&mut cache), [window, main].concat());
    // Restored items come before them.
    assert!(cache.remove(5) && cache.remove(2));
    assert!(cache.restore(9, 1, Heat::new(1, false)) && cache.restore(8, 1, Heat::new(0, true)));
    assert!(!cache.restore(10, 1, Heat::new(2, true)));
    let window = [(9, false, 1), (4, false, 0), (6, false, 2), (7, false, 0)];
    let main = [(8, true, 0), (0, true, 0), (1, true, 1), (3, true, 0)];
    assert_eq!(told(&mut cache), [window, main].concat());
}

#[test]
fn a_window_that_has_rejected_somebody_is_not_taught() {
    let mut cache = Cache::new(Policy::Adaptive, 100, LOCATORS);
    cache.evictor.learn(WindowShare::of(0.25));
    assert_eq!(cache.evictor.window_target(), Some(25.0));
    // It is a share, and so applies to any capacity.
    cache.evictor.set_capacity(200, &mut cache.table);
    assert_eq!(cache.evictor.window_target(), Some(50.0));
    (0..200).for_each(|key| assert!(cache.insert(key, 1)));
    cache.evictor.learn(WindowShare::of(0.5));
    assert_eq!(cache.evictor.window_target(), Some(100.0));
    assert!(cache.insert(200, 1));
    cache.evictor.learn(WindowShare::of(0.25));
    assert_eq!(cache.evictor.window_target(), Some(100.0));
    cache.evictor.clear();
    cache.evictor.learn(WindowShare::of(1.0));
    assert_eq!(cache.evictor.window_target(), Some(180.0));
    assert_eq!(Cache::new(Policy::Clock, 100, LOCATORS).evictor.window_target(), None);
}

/// A segment has no capacity for a while when others have borrowed all of it.
#[test]
fn the_windows_part_of_nothing_is_its_part_of_something_later() {
    let mut cache = Cache::new(Policy::Adaptive, 0, LOCATORS);
    for (part, capacity) in [(0.25, 100), (0.5, 1000)] {
        cache.evictor.learn(WindowShare::of(part));
        for capacity in [0, 3, 0, capacity] {
            cache.evictor.set_capacity(capacity, &mut cache.table);
            let target = cache.evictor.window_target().unwrap();
            assert!((target - part * capacity as f64).abs() < 1e-9, "{target} of {capacity}");
        }
    }
}

#[test]
fn who_is_left_keeps_its_place_when_a_queue_drops_those_who_have_gone() {
    for window in [0.01, 0.9] {
        let mut cache = Cache::new(Policy::Adaptive, 1000, 1 << 20);
        cache.evictor.learn(WindowShare::of(window));
        (0..1000).for_each(|key| assert!(cache.insert(key, 1)));
        let keys = |cache: &mut Cache| cache.order().into_iter().map(|(key, ..)| key).collect::<Vec<_>>();
        let mut left = keys(&mut cache);
        assert_eq!(left.len(), 1000);
        left.retain(|key| key % 10 == 7 || !cache.remove(*key));
        // Into both queues.
        (1000..1900).for_each(|key| assert!(cache.insert(key, 1)));
        let (old, new): (Vec<u32>, Vec<u32>) = keys(&mut cache).into_iter().partition(|key| *key < 1000);
        assert_eq!((old, new.len()), (left, 900), "{window}");
    }
}
