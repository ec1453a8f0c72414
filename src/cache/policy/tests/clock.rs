//! MemC3's CLOCK.

use proptest::prelude::*;

use super::Cache;
use crate::cache::Policy;

/// Keys in slots, with a bit each, and a hand.
struct Plain {
    slots: Vec<(u32, bool)>,
    hand: usize,
    capacity: usize,
}

impl Plain {
    fn read_through(&mut self, key: u32) -> bool {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.0 == key) {
            slot.1 = true;
            return true;
        }
        if self.slots.len() < self.capacity {
            self.slots.push((key, false));
            return false;
        }
        while self.slots[self.hand].1 {
            self.slots[self.hand].1 = false;
            self.hand = (self.hand + 1) % self.capacity;
        }
        self.slots[self.hand] = (key, false);
        self.hand = (self.hand + 1) % self.capacity;
        false
    }
}

proptest! {
    #[test]
    fn hits_are_those_of_a_plain_clock(keys in prop::collection::vec(0_u32..40, 1..400), capacity in 1_usize..30) {
        let mut plain = Plain { slots: Vec::new(), hand: 0, capacity };
        let mut cache = Cache::new(Policy::Clock, capacity as u64, 1 << 20);
        for key in keys {
            prop_assert_eq!(cache.read_through(key), plain.read_through(key));
        }
    }
}

#[test]
fn a_hit_saves_an_entry_once() {
    let mut cache = Cache::new(Policy::Clock, 2, 1 << 20);
    cache.read_through(1);
    cache.read_through(2);
    assert!(cache.get(1) && cache.get(1));
    cache.read_through(3);
    assert_eq!(cache.residents().into_keys().collect::<Vec<_>>(), [1, 3]);
    cache.read_through(4);
    assert_eq!(cache.residents().into_keys().collect::<Vec<_>>(), [3, 4]);
    assert_eq!(cache.evictor.memory_usage(), 0);
}

#[test]
fn the_order_is_that_in_which_the_hand_comes_by() {
    let mut cache = Cache::new(Policy::Clock, 10, 1 << 20);
    (0..13).for_each(|key| assert!(cache.insert(key, 1)));
    let keys = |cache: &mut Cache| cache.order().into_iter().map(|(key, ..)| key).collect::<Vec<_>>();
    assert_eq!(keys(&mut cache), (3..13).collect::<Vec<_>>());
    // The hand is beyond a table that has become smaller.
    cache.table.slots.truncate(2);
    assert_eq!(keys(&mut cache), [10, 11]);
}
