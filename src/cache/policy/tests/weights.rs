//! Items with weights: which are heavy, and which have to be evicted.

use super::super::adaptive::PATIENCE;
use super::{Cache, Newcomer, locator};
use crate::cache::Policy;

fn turns_away(cache: &mut Cache, key: u32, weight: u64) -> bool {
    let newcomer = Newcomer { locator: locator(key), weight };
    cache.evictor.turns_away(newcomer, &mut cache.table)
}

#[test]
fn who_is_heavy_makes_more_than_eight_go() {
    for policy in [Policy::Adaptive, Policy::Clock, Policy::Local] {
        let mut cache = Cache::new(policy, 100, 1 << 20);
        (0..25).for_each(|key| assert!(cache.insert(key, 2)));
        // Half of the capacity is free.
        let is_heavy = |weight| cache.evictor.is_heavy(weight, 25);
        assert!(!is_heavy(1) && !is_heavy(50 + 8 * 2) && is_heavy(51 + 8 * 2) && is_heavy(u64::MAX));
    }
}

/// Two heavy items come by turns. So what is missing for either must be at most half of what is there.
#[test]
fn who_is_heavy_is_let_in_for_its_part_of_those_who_are_turned_away() {
    for (weight, expected) in [(200 + 390, 4), (200 + 410, 7)] {
        let mut cache = Cache::new(Policy::Adaptive, 1000, u32::MAX);
        (0..800).for_each(|key| assert!(cache.insert(key, 1)));
        let mut turned_away = 0;
        for _ in 0..7 {
            (0..800).for_each(|key| assert!(cache.get(key)));
            turned_away += u32::from(turns_away(&mut cache, 5000, weight));
            turns_away(&mut cache, 6000, weight);
        }
        assert_eq!(turned_away, expected, "{weight}");
    }
}

/// It weighs far more than its share.
#[test]
fn the_window_gives_way_to_who_is_heavy_before_anybody_of_main() {
    let mut cache = Cache::new(Policy::Adaptive, 1000, u32::MAX);
    (0..600).for_each(|key| assert!(cache.insert(key, 1)));
    assert!(cache.insert(600, 395));
    (0..601).for_each(|key| assert!(cache.get(key)));
    // Five units are free, and the window may keep ten.
    assert!(!turns_away(&mut cache, 5000, 5 + 385 + 8), "eight of main may go");
    assert!(turns_away(&mut cache, 5000, 5 + 385 + 9));
}

#[test]
fn who_goes_after_too_many_that_were_hit_is_next_of_main_if_the_window_is_empty() {
    let mut cache = Cache::new(Policy::Adaptive, 1000, u32::MAX);
    (0..99).for_each(|key| assert!(cache.insert(key, 10)));
    (0..2 * 99).for_each(|i| assert!(cache.get(i % 99)));
    cache.table.is_busy = true;
    assert!(cache.insert(1000, 11));
    assert_eq!(cache.table.evicted, [PATIENCE as u32 % 99]);
}
