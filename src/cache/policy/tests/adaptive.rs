//! The default policy compared with a plain implementation, and on the loads it was made for.

use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;

use super::super::adaptive::{FEW, PATIENCE, PATIENCE_EACH};
use super::super::ghost::Ghost;
use super::super::heavy::{LOOKS, MANY};
use super::{Cache, Newcomer, locator, mark};
use crate::cache::Policy;

/// The same policy over keys, with queues that are searched: without marks, locators, stale entries or slots.
struct Plain {
    capacity: u64,
    target: f64,
    /// Key and weight, the next to go first.
    window: VecDeque<(u32, u64)>,
    main: VecDeque<(u32, u64)>,
    hits: HashMap<u32, u32>,
    rejected: Option<Ghost>,
    demoted: Option<Ghost>,
    late_is_odd: bool,
}

fn weight(queue: &VecDeque<(u32, u64)>) -> u64 {
    queue.iter().map(|entry| entry.1).sum()
}

fn remember(ghost: &mut Option<Ghost>, reach: usize, key: u32) {
    let other = ghost.as_ref().map_or(0, Ghost::reach);
    if reach > 2 * other || other > 4 * reach {
        *ghost = Some(Ghost::new(reach));
    }
    ghost.as_mut().expect("just made").push(locator(key));
}

impl Plain {
    fn new(capacity: u64) -> Self {
        Plain {
            capacity,
            target: 0.01 * capacity as f64,
            window: VecDeque::new(),
            main: VecDeque::new(),
            hits: HashMap::new(),
            rejected: None,
            demoted: None,
            late_is_odd: false,
        }
    }

    fn len(&self) -> usize {
        self.window.len() + self.main.len()
    }

    fn fits(&self, more: u64) -> bool {
        weight(&self.window) + weight(&self.main) + more <= self.capacity
    }

    /// How much the window may weigh, in whole numbers.
    fn share(&self) -> u64 {
        self.target.ceil().max(1.0) as u64
    }

    fn main_room(&self) -> u64 {
        self.capacity.saturating_sub(self.share()).max(1)
    }

    fn get(&mut self, key: u32) {
        if let Some(hits) = self.hits.get_mut(&key) {
            *hits = (*hits + 1).min(2);
        }
    }

    fn insert(&mut self, key: u32, heavy: u64) {
        let known = |ghost: &Option<Ghost>| ghost.as_ref().map_or(0, Ghost::len).max(1) as f64;
        let step = self.capacity as f64 / (self.len() + 64) as f64;
        let mut steps = 0;
        if let Some(ago) = self.rejected.as_mut().and_then(|ghost| ghost.take(locator(key))) {
            if 4 * ago > self.len() {
                self.late_is_odd = !self.late_is_odd;
                steps = usize::from(self.len() >= FEW || !self.late_is_odd);
            } else {
                steps = 4;
                self.target += step * f64::max(1.0, known(&self.demoted) / known(&self.rejected));
            }
        } else if self.demoted.as_mut().is_some_and(|ghost| ghost.take(locator(key)).is_some()) {
            self.target -= step * f64::max(1.0, known(&self.rejected) / known(&self.demoted));
        }
        self.bound_target();
        let admitted = steps > 0 && (self.fits(heavy) || self.admit(heavy, steps));
        let filling = self.fits(heavy) && weight(&self.main) + heavy <= self.main_room();
        self.make_room(heavy);
        let queue = if admitted || filling { &mut self.main } else { &mut self.window };
        queue.push_back((key, heavy));
        self.hits.insert(key, 0);
    }

    fn bound_target(&mut self) {
        let capacity = self.capacity as f64;
        self.target = self.target.clamp(0.01 * capacity, 0.9 * capacity);
    }

    fn make_room(&mut self, more: u64) {
        let mut spared = 0;
        while self.len() > 0 && !self.fits(more) {
            let is_over = spared >= PATIENCE;
            let due = !self.window.is_empty() && (is_over || weight(&self.window) >= self.share());
            if due || self.main.is_empty() {
                let &(key, heavy) = self.window.front().expect("due");
                let moves = self.hits[&key] > 0 && !is_over && self.admit(heavy, 4);
                spared = if moves { spared + 1 } else { spared.saturating_sub(PATIENCE_EACH) };
                self.window.pop_front();
                if moves {
                    self.hits.insert(key, 0);
                    self.main.push_back((key, heavy));
                } else {
                    self.hits.remove(&key);
                    let reach = ((self.len() + 1) * 7 / 4).max(32);
                    remember(&mut self.rejected, reach, key);
                }
            } else if !is_over && self.spare(0) {
                spared += 1;
            } else {
                self.demote();
                spared = spared.saturating_sub(PATIENCE_EACH);
            }
        }
    }

    /// Spares an entry of main that was hit.
    fn spare(&mut self, index: usize) -> bool {
        let hits = self.hits.get_mut(&self.main[index].0).expect("a resident");
        let spared = *hits > 0;
        if spared {
            *hits -= 1;
            let entry = self.main.remove(index).expect("it is there");
            self.main.push_back(entry);
        }
        spared
    }

    fn demote(&mut self) {
        let (key, _) = self.main.pop_front().expect("an entry");
        self.hits.remove(&key);
        let reach = self.len().div_ceil(2).max(2);
        remember(&mut self.demoted, reach, key);
    }

    fn admit(&mut self, heavy: u64, steps: usize) -> bool {
        let mut held = 0;
        for step in 0..=steps {
            let rest: u64 = self.main.iter().skip(held).map(|entry| entry.1).sum();
            if held == self.main.len() || rest + heavy <= self.main_room() {
                (0..held).for_each(|_| self.demote());
                return true;
            }
            if step < steps && !self.spare(held) {
                held += 1;
            }
        }
        false
    }

    fn remove(&mut self, key: u32) {
        self.window.retain(|entry| entry.0 != key);
        self.main.retain(|entry| entry.0 != key);
        self.hits.remove(&key);
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.target *= capacity as f64 / self.capacity as f64;
        self.capacity = capacity;
        self.bound_target();
        self.make_room(0);
    }

    fn residents(&self) -> Vec<u32> {
        let mut keys: Vec<u32> = self.hits.keys().copied().collect();
        keys.sort_unstable();
        keys
    }
}

proptest! {
    #[test]
    fn residents_are_those_of_the_plain_policy(
        requests in prop::collection::vec((0_u32..200, 0_u32..100), 1..1500),
        capacity in 1_u64..60,
        most in 1_u64..8,
    ) {
        let mut plain = Plain::new(capacity);
        let mut cache = Cache::new(Policy::Adaptive, capacity, 1 << 20);
        let mut removals = HashMap::new();
        for (number, what) in requests {
            // Squared, so that some keys are popular. A key that was removed has another name when it comes back: its stale
            // entry would mean the new item, while the plain policy has no stale entries.
            let number = number * number / 200;
            let removed: &mut u32 = removals.entry(number).or_default();
            let key = number + 1000 * *removed;
            match what {
                0 => {
                    let capacity = u64::from(number) / 2 + 1;
                    cache.evictor.set_capacity(capacity, &mut cache.table);
                    plain.set_capacity(capacity);
                }
                1..10 => {
                    *removed += u32::from(cache.remove(key));
                    plain.remove(key);
                }
                _ if cache.get(key) => plain.get(key),
                _ => {
                    let weight = 1 + u64::from(key) % most;
                    if cache.insert(key, weight) {
                        plain.insert(key, weight);
                    }
                }
            }
            prop_assert_eq!(cache.residents().into_keys().collect::<Vec<_>>(), plain.residents());
        }
    }
}

/// Hits per 100 requests of a load, after the cache has seen as much of it before.
fn hit_ratio(policy: Policy, capacity: u64, requests: u32, mut load: impl FnMut(u32) -> u32) -> u32 {
    let mut cache = Cache::new(policy, capacity, 1 << 20);
    for i in 0..requests {
        cache.read_through(load(i));
    }
    let hits = (requests..2 * requests).filter(|&i| cache.read_through(load(i))).count();
    hits as u32 * 100 / requests
}

#[test]
fn a_loop_larger_than_the_cache_keeps_what_fits() {
    let around = |i| i % 110;
    assert_eq!(hit_ratio(Policy::Clock, 100, 5000, around), 0);
    let adaptive = hit_ratio(Policy::Adaptive, 100, 5000, around);
    assert!(adaptive >= 75, "{adaptive}");
}

/// The keys that are there and those that are not are asked for equally often, and none is better than the others.
#[test]
fn a_loop_of_twice_the_capacity_keeps_nearly_half_in_small_caches_as_well() {
    for capacity in [4, 6, 10, 16, 20, 24, 28, 32, 40, 63, 64, 100] {
        for seed in 0..20 {
            let around = |i| seed * 1000 + i % (2 * capacity);
            let hits = hit_ratio(Policy::Adaptive, capacity.into(), 400 * capacity, around);
            assert!(hits >= 50 - 100 / capacity - 4, "{hits} of {capacity}, {seed}");
        }
    }
}

/// Numbers below `n`, without a pattern; the square of a fraction, so that small numbers are popular.
fn popular(i: u32, n: u32) -> u32 {
    let fraction = u64::from(i.wrapping_mul(0x9E37_79B1) ^ i.wrapping_mul(0x85EB_CA77).rotate_left(13));
    ((((fraction * fraction) >> 32) * u64::from(n)) >> 32) as u32
}

#[test]
fn a_scan_does_not_drive_out_what_is_popular() {
    // Every other request is for a key that never comes again.
    let scanned = |i: u32| if i % 2 == 0 { 1_000_000 + i } else { popular(i, 200) };
    let (adaptive, clock) =
        (hit_ratio(Policy::Adaptive, 50, 4000, scanned), hit_ratio(Policy::Clock, 50, 4000, scanned));
    assert!(adaptive >= clock + 5, "{adaptive} {clock}");
}

#[test]
fn the_window_grows_where_recency_is_all_that_counts() {
    // A hundred keys at a time, ten requests each within a short while, and never again.
    let drifting = |i: u32| i / 10 + popular(i, 100);
    let (adaptive, clock) =
        (hit_ratio(Policy::Adaptive, 80, 6000, drifting), hit_ratio(Policy::Clock, 80, 6000, drifting));
    assert!(adaptive + 4 >= clock, "{adaptive} {clock}");
}

/// A cache of 1000 items of weight 1, hit so many times each.
fn of_light_ones(hits: u32) -> Cache {
    let mut cache = Cache::new(Policy::Adaptive, 1000, u32::MAX);
    (0..1000).for_each(|key| assert!(cache.insert(key, 1)));
    (0..hits).for_each(|_| (0..1000).for_each(|key| assert!(cache.get(key))));
    cache
}

fn turns_away(cache: &mut Cache, key: u32, weight: u64) -> bool {
    let newcomer = Newcomer { locator: locator(key), weight };
    cache.evictor.turns_away(newcomer, &mut cache.table)
}

/// Light items that were hit are not given up for one that is as heavy as many of them, but in the end those are that were hit
/// long ago.
#[test]
fn what_is_heavy_is_turned_away_until_what_it_would_push_out_is_no_longer_asked_for() {
    // Items that nobody has asked for are given up, and a few items may be in any case.
    assert!((1..=1000).all(|weight| !turns_away(&mut of_light_ones(0), 5000, weight)));
    assert!((1..=MANY).all(|weight| !turns_away(&mut of_light_ones(2), 5000, weight)));
    for hits in 1..3 {
        let mut cache = of_light_ones(hits);
        // Half of the items lose all their hits, one at a time.
        let times = (5000..).take_while(|&key| turns_away(&mut cache, key, 500)).count();
        assert_eq!(times, 500 * hits as usize);
        assert_eq!(cache.evictor.weight(), 1000, "nobody has left");
    }
}

/// However many would have to be evicted, only a limited number is looked at.
#[test]
fn what_is_heavy_is_let_in_if_none_of_the_first_was_hit() {
    for hit in [0, LOOKS - 1, LOOKS, 900] {
        let mut cache = of_light_ones(0);
        assert!(cache.get(hit as u32));
        assert_eq!(turns_away(&mut cache, 5000, 1000), hit < LOOKS, "{hit}");
    }
}

/// However often the light items are asked for.
#[test]
fn what_is_heavy_and_asked_for_often_is_let_in() {
    for weight in [50, 100, 300] {
        let mut cache = of_light_ones(2);
        let mut times = 0;
        while turns_away(&mut cache, 5000, weight) {
            times += 1;
            assert!(times < 10, "{weight}");
            // Other items come and go meanwhile, and all are hit.
            (0..1000 / weight as u32 / 10).for_each(|i| {
                cache.insert(6000 + 10 * times + i, 1);
            });
            (0..1000).for_each(|key| {
                cache.get(key);
            });
        }
        assert!(times >= 4, "{weight}: {times}");
        assert!(cache.insert(5000, weight) && cache.get(5000));
        // It is in main.
        (7000..7050).for_each(|key| assert!(cache.insert(key, 1)));
        assert!(cache.get(5000), "{weight}");
    }
}

/// An item that has been turned away once and comes back is worth those that nobody has asked for.
#[test]
fn what_is_heavy_and_new_is_turned_away_once_hits_have_been_met() {
    // The window's hand meets an item that was hit, or main's does: the window has its share, or one less.
    let mut by_window = of_light_ones(0);
    (990..1000).for_each(|key| assert!(by_window.get(key)));
    assert!(by_window.insert(1000, 1));
    let mut by_main = of_light_ones(0);
    (0..990).for_each(|key| assert!(by_main.get(key)));
    assert!(by_main.remove(999) && by_main.insert(1000, 2));
    for mut cache in [by_window, by_main] {
        // Then all lose their hits.
        cache.table.slots.iter_mut().flatten().for_each(|item| item.mark &= mark::MAIN);
        assert!((1..=MANY).all(|weight| !turns_away(&mut cache, 5000, weight)));
        for weight in [MANY + 1, 500, 1000] {
            let key = 5000 + weight as u32;
            assert!(turns_away(&mut cache, key, weight), "{weight}: nothing is known of it");
            assert!(!turns_away(&mut cache, key, weight), "{weight}: it is back");
        }
    }
}

/// Main has been spared for long enough: the victim is in the window, though it is not the window's turn.
#[test]
fn who_goes_after_too_many_that_were_hit_is_in_the_window() {
    let mut cache = of_light_ones(0);
    (0..990).for_each(|key| assert!(cache.get(key) && cache.get(key)));
    // The window has one less than its share, and is not due.
    assert!(cache.remove(999) && cache.insert(1000, 2));
    assert_eq!(cache.table.evicted, [990]);
    assert_eq!((cache.residents().len(), cache.evictor.weight()), (999, 1000));
}

/// All of main was hit, and a key that comes back has just shown that the window is too small: main has to give way.
#[test]
fn an_insertion_takes_few_hits_however_many_there_are() {
    const N: u32 = 2000;
    let mut cache = Cache::new(Policy::Adaptive, u64::from(N), u32::MAX);
    (0..N).for_each(|key| assert!(cache.insert(key, 1)));
    (0..2 * N).for_each(|i| assert!(cache.get(i % N)));
    let hits =
        |cache: &Cache| cache.table.slots.iter().flatten().map(|item| mark::hits(item.mark)).sum::<u32>();
    let mut most = 0;
    for key in (N..2 * N).flat_map(|key| [key, key - N / 100]) {
        if cache.table.slot_of(key).is_none() {
            let before = hits(&cache);
            cache.insert(key, 1);
            most = most.max(before - hits(&cache));
        }
    }
    // And the few steps of the candidate, and of the item at the window's front.
    assert!((PATIENCE as u32..PATIENCE as u32 + 16).contains(&most), "{most} hits were taken at once");
}
