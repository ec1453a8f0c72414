//! The policy's knowledge survives: which entries leave next, and how many requests hit.

use koel::Policy;

use super::{Hashed, keys, load_all, told_cache};
use crate::common::Rng;
use crate::{POLICIES, SEVERAL_SEGMENTS, Told};

/// The same, but no key returns after its eviction, which the ghosts would notice; the cache is full at the end. The run is the
/// same each time: a ghost may take one key for another.
fn live_without_returns(cache: &Hashed) {
    let mut rng = Rng::new(1);
    for key in 0..1500 {
        cache.insert(key, key).unwrap();
        (0..3).for_each(|_| _ = cache.get(&rng.below(key + 1)));
        if rng.one_in(20) {
            cache.remove(&rng.below(key + 1));
        }
    }
    (1500..)
        .take_while(|_| (cache.len() as u64) < cache.capacity())
        .for_each(|key| cache.insert(key, key).unwrap());
}

/// The keys that leave, in order, as more and more new ones come.
fn scan(cache: &Hashed, told: &Told, keys: u64) -> Vec<u64> {
    told.lock().unwrap().clear();
    (0..keys).for_each(|n| cache.insert(1_000_000 + n, 0).unwrap());
    told.lock().unwrap().iter().map(|&(key, ..)| key).collect()
}

/// How many of the keys in `left` are not among as many of `right`. The policy cannot tell two keys apart that have buckets and
/// tag in common, so that one of them may leave in place of the other: 500 keys have about six such pairs.
fn strangers(left: &[u64], right: &[u64]) -> usize {
    assert_eq!(left.len(), right.len());
    left.iter().filter(|&key| !right.contains(key)).count()
}

/// The entries of all segments are in one order, not those of one segment after those of another.
#[test]
fn a_dump_of_several_segments_is_in_one_order() {
    let (cache, _) = told_cache(Policy::Adaptive, SEVERAL_SEGMENTS);
    let n = SEVERAL_SEGMENTS as u64;
    (0..n).for_each(|key| cache.insert(key, key).unwrap());
    let order = keys(&cache.dump());
    // The newest are in the window, which comes first.
    let tenths: Vec<_> = order.chunks(order.len().div_ceil(10)).skip(1).collect();
    let means: Vec<u64> = tenths.iter().map(|tenth| tenth.iter().sum::<u64>() / tenth.len() as u64).collect();
    assert!(means.is_sorted() && means[0] < n / 4 && means[8] > n * 3 / 4, "{means:?} of {n}");
}

/// A scan causes the same evictions, though the old cache's rings have stale entries.
#[test]
fn adaptive_goes_on_as_if_nothing_had_been() {
    let (cache, told) = told_cache(Policy::Adaptive, 500);
    live_without_returns(&cache);
    let (back, told_back) = told_cache(Policy::Adaptive, 500);
    load_all(&back, &cache.dump());
    let places = |cache: &Hashed| keys(&cache.dump());
    let moved = places(&cache).iter().zip(places(&back)).filter(|(before, after)| **before != *after).count();
    assert!(moved <= 12, "{moved} in other places");
    let (without, with) = (scan(&cache, &told, 400), scan(&back, &told_back, 400));
    assert!(without.len() == 400 && without.iter().any(|&key| key < 1_000_000));
    for count in [50, 100, 200, 400] {
        assert!(strangers(&without[..count], &with[..count]) <= 6, "{without:?} {with:?}");
    }
}

/// A falling capacity shows main's order and hits, too: each entry is spared once for each hit.
#[test]
fn adaptive_shrinks_as_it_would_have_without_the_restart() {
    let (cache, told) = told_cache(Policy::Adaptive, 500);
    live_without_returns(&cache);
    let (back, told_back) = told_cache(Policy::Adaptive, 500);
    load_all(&back, &cache.dump());
    told.lock().unwrap().clear();
    let leaving = |told: &Told| told.lock().unwrap().iter().map(|t| t.0).collect::<Vec<_>>();
    for step in 1..50 {
        for shrinking in [&cache, &back] {
            shrinking.set_capacity(500 - 10 * step);
        }
        let (without, with) = (leaving(&told), leaving(&told_back));
        assert_eq!(without.len() as u64, 10 * step);
        assert!(strangers(&without, &with) <= 6, "{without:?} {with:?}");
    }
}

/// Requests for which recency pays: the window grows.
pub(super) fn wander(cache: &Hashed, requests: std::ops::Range<u64>) -> u64 {
    let mut rng = Rng::new(requests.start + 1);
    let mut hits = 0;
    for now in requests {
        let key = now / 4 + rng.below(600);
        match cache.get(&key) {
            Some(_) => hits += 1,
            None => cache.insert(key, key).unwrap(),
        }
    }
    hits
}

#[test]
fn the_hit_ratio_after_a_warm_restart_is_that_before() {
    for policy in POLICIES {
        let make = || told_cache(policy, 500).0;
        let (cache, warm, cold) = (make(), make(), make());
        wander(&cache, 0..20_000);
        load_all(&warm, &cache.dump());
        for requests in [20_000..20_500, 20_500..22_000, 22_000..40_000] {
            let of = |cache| wander(cache, requests.clone());
            let (went_on, warm, cold) = (of(&cache), of(&warm), of(&cold));
            let asked = requests.end - requests.start;
            assert!(warm.abs_diff(went_on) <= asked / 20, "{policy:?}: {warm} of {asked}, {went_on} without");
            let at_first = requests.start == 20_000;
            assert!(!at_first || warm > cold + asked / 10, "{policy:?}: {warm} of {asked}, {cold} cold");
        }
    }
}

#[test]
fn a_clock_spares_what_was_hit_before_the_restart() {
    let (cache, told) = told_cache(Policy::Clock, 500);
    (0..500).for_each(|key| cache.insert(key, key).unwrap());
    (0..250).for_each(|key| assert!(cache.get(&(2 * key)).is_some()));
    let (back, told_back) = told_cache(Policy::Clock, 500);
    load_all(&back, &cache.dump());
    for (cache, told) in [(&cache, &told), (&back, &told_back)] {
        let gone = scan(cache, told, 100);
        assert!(gone.len() == 100 && gone.iter().all(|&key| key % 2 == 1 || key >= 1_000_000), "{gone:?}");
    }
}
