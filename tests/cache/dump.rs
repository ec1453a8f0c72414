//! Warm restarts: what a cache dumps, another one goes on from.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use koel::{Cache, CacheBuilder, CacheDump, ManualClock, Policy};

use crate::common::{Rng, Seeded, on_threads, seed, seeded};
use crate::{POLICIES, SEVERAL_SEGMENTS, Told, listening};

const SECOND: Duration = Duration::from_secs(1);

type Hashed = Cache<u64, u64, Seeded>;

/// A cache that writes down what leaves it.
fn told_cache(policy: Policy, entries: usize) -> (Hashed, Told) {
    let builder = Cache::builder().max_entries(entries).policy(policy).hasher(seeded(7));
    let (builder, told) = listening(builder);
    (builder.build(), told)
}

fn contents<S>(cache: &Cache<u64, u64, S>) -> BTreeMap<u64, u64> {
    cache.iter().collect()
}

/// Queues in some disorder: hits, removals, evictions.
fn live<S: std::hash::BuildHasher>(cache: &Cache<u64, u64, S>, requests: u64) {
    let mut rng = Rng::new(seed());
    for _ in 0..requests {
        // The smaller the likelier.
        let bound = rng.below(2 * cache.capacity()) + 1;
        let key = rng.below(bound);
        if cache.get(&key).is_none() {
            cache.insert(key, key + 1).unwrap();
        }
        if rng.one_in(20) {
            cache.remove(&rng.below(bound));
        }
    }
}

/// The same, but no key comes back, which the ghosts would notice; and full in the end. The same each time: a ghost may take
/// one key for another.
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

/// Keys that leave, in order, as more and more new ones come.
fn scan(cache: &Hashed, told: &Told, keys: u64) -> Vec<u64> {
    told.lock().unwrap().clear();
    (0..keys).for_each(|n| cache.insert(1_000_000 + n, 0).unwrap());
    told.lock().unwrap().iter().map(|&(key, ..)| key).collect()
}

/// Loads a dump for all of which there is room.
#[track_caller]
fn load_all<S: std::hash::BuildHasher>(cache: &Cache<u64, u64, S>, dump: &CacheDump<u64, u64>) {
    let rest = cache.load(dump.clone());
    assert_eq!(keys(&rest), [0; 0], "left out of {}", dump.len());
}

fn keys(dump: &CacheDump<u64, u64>) -> Vec<u64> {
    dump.iter().map(|(&key, _)| key).collect()
}

/// How many of the keys in `left` are not among as many of `right`. Two keys with buckets and tag in common the policy
/// cannot tell apart, so that one of them may leave for the other: of 500 keys some six pairs have.
fn strangers(left: &[u64], right: &[u64]) -> usize {
    assert_eq!(left.len(), right.len());
    left.iter().filter(|&key| !right.contains(key)).count()
}

#[test]
fn all_entries_come_back_in_a_cache_with_room() {
    for policy in POLICIES {
        let cache: Cache<u64, u64> = Cache::builder().max_entries(SEVERAL_SEGMENTS).policy(policy).build();
        live(&cache, 20_000);
        let dump = cache.dump();
        assert_eq!(
            dump.iter().map(|(&key, &value)| (key, value)).collect::<BTreeMap<_, _>>(),
            contents(&cache)
        );
        assert_eq!((dump.len(), dump.is_empty()), (cache.len(), false));
        for other in POLICIES {
            let back: Cache<u64, u64> =
                Cache::builder().max_entries(2 * SEVERAL_SEGMENTS).policy(other).build();
            load_all(&back, &dump);
            assert_eq!(contents(&back), contents(&cache), "{policy:?} {other:?}");
        }
    }
}

/// The evictions that a scan asks for are the same, though the old cache's rings have stale entries.
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

/// A capacity that falls shows main's order and hits, too: each is spared once for each hit.
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

/// Requests by which recency pays: the window grows.
fn wander(cache: &Hashed, requests: std::ops::Range<u64>) -> u64 {
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

#[test]
fn a_smaller_cache_keeps_the_hottest() {
    for policy in POLICIES {
        let cache: Cache<u64, u64> = Cache::builder().max_entries(SEVERAL_SEGMENTS).policy(policy).build();
        // Not full: nothing is evicted before its time.
        (0..4000).for_each(|key| cache.insert(key, key).unwrap());
        let hot: Vec<u64> = (0..400).map(|n| n * 10).collect();
        hot.iter().for_each(|key| assert!(cache.get(key).is_some()));
        for policy in POLICIES {
            let builder: CacheBuilder<u64, u64> = Cache::builder();
            let small = builder.max_entries(500).policy(policy).build();
            assert_eq!(small.load(cache.dump()).len(), 3500);
            assert!(hot.iter().all(|key| small.contains_key(key)), "{policy:?}");
            let smaller: Cache<u64, u64> = Cache::builder().max_entries(100).policy(policy).build();
            let rest = smaller.load(cache.dump());
            assert_eq!((smaller.len(), rest.len()), (100, 3900));
            assert!(smaller.iter().all(|(key, _)| key % 10 == 0), "{policy:?}");
            // What was handed back can still be loaded, in the same order.
            let left: Vec<u64> = cache.dump().iter().map(|(&key, _)| key).collect();
            let left: Vec<u64> = left.into_iter().filter(|key| !smaller.contains_key(key)).collect();
            assert_eq!(keys(&rest), left);
            smaller.set_capacity(1000);
            let rest = smaller.load(rest);
            assert_eq!((smaller.len(), rest.len()), (1000, 3000));
            assert!(hot.iter().all(|key| smaller.contains_key(key)), "{policy:?}");
        }
    }
}

/// Full to full, with another hash function: the bound holds, and what has no room in its segment is handed back.
#[test]
fn as_large_a_cache_takes_nearly_all_and_hands_back_the_coldest() {
    for policy in POLICIES {
        let make =
            |seed| Cache::builder().max_entries(SEVERAL_SEGMENTS).policy(policy).hasher(seeded(seed)).build();
        let cache: Hashed = make(1);
        (0..4 * SEVERAL_SEGMENTS as u64).for_each(|key| cache.insert(key, key).unwrap());
        assert_eq!(cache.len(), SEVERAL_SEGMENTS);
        let hot: Vec<u64> = cache.iter().map(|(key, _)| key).filter(|key| key % 8 == 0).collect();
        hot.iter().for_each(|key| assert!(cache.get(key).is_some()));
        let dump = cache.dump();
        let back = make(2);
        let rest = back.load(dump.clone());
        assert_eq!(back.len() + rest.len(), SEVERAL_SEGMENTS);
        assert!(rest.len() <= SEVERAL_SEGMENTS / 50, "{} left out", rest.len());
        assert!(hot.iter().all(|key| back.contains_key(key)));
        assert!(rest.iter().all(|(key, _)| !back.contains_key(key)));
        // The same hash function: everything.
        load_all(&make(1), &dump);
    }
}

#[test]
fn what_is_there_stays_and_counts_as_younger() {
    let old: Cache<u64, u64> = Cache::new(10);
    (0..10).for_each(|key| old.insert(key, 1).unwrap());
    let new: Cache<u64, u64> = Cache::new(10);
    (5..9).for_each(|key| new.insert(key, 2).unwrap());
    assert_eq!(keys(&new.load(old.dump())), [5, 6, 7, 8]);
    let expected = (0..10).map(|key| (key, if (5..9).contains(&key) { 2 } else { 1 }));
    assert_eq!(contents(&new), expected.collect());
    assert_eq!(new.load(old.dump()).len(), 10);
    let keys = keys(&new.dump());
    assert!(keys[..4].iter().all(|key| !(5..9).contains(key)), "{keys:?}");
}

#[test]
fn the_weigher_is_asked_again() {
    let dump = {
        let cache: Cache<u64, u64> = Cache::new(10);
        (1..=4).for_each(|key| cache.insert(key, key).unwrap());
        cache.dump()
    };
    let cache: Cache<u64, u64> = Cache::builder().max_weight(7).weigher(|_, value| *value).build();
    let kept = 4 - cache.load(dump).len();
    assert_eq!(kept, cache.len());
    assert_eq!(cache.weight(), cache.iter().map(|(_, value)| value).sum::<u64>());
    assert!(kept >= 2 && cache.weight() <= 7);
    // Heavier than all: left out.
    let light: Cache<u64, u64> = Cache::new(1);
    light.insert(8, 8).unwrap();
    assert_eq!(keys(&cache.load(light.dump())), [8]);
}

fn dying(clock: &ManualClock, live: u32, idle: u32) -> Cache<u64, u64> {
    let builder = Cache::builder().max_entries(10).clock(clock.clone());
    builder.time_to_live(SECOND * live).time_to_idle(SECOND * idle).build()
}

#[test]
fn what_was_left_of_a_life_is_left() {
    let clock = ManualClock::new();
    clock.advance(1000 * SECOND);
    let old = dying(&clock, 60, 1000);
    old.insert(1, 1).unwrap();
    clock.advance(20 * SECOND);
    old.insert(2, 2).unwrap();
    clock.advance(10 * SECOND);
    let dump = old.dump();
    // A clock that has just begun.
    let clock = ManualClock::new();
    let (new, longer, shorter) = (dying(&clock, 60, 1000), dying(&clock, 500, 1000), dying(&clock, 5, 1000));
    for cache in [&new, &longer, &shorter] {
        load_all(cache, &dump);
    }
    let alive = |cache: &Cache<u64, u64>| contents(cache).into_keys().collect::<Vec<_>>();
    clock.advance(5 * SECOND);
    assert_eq!((alive(&new), alive(&shorter)), (vec![1, 2], vec![]));
    clock.advance(24 * SECOND);
    assert_eq!((alive(&new), alive(&longer)), (vec![1, 2], vec![1, 2]));
    clock.advance(SECOND);
    assert_eq!((alive(&new), alive(&longer)), (vec![2], vec![2]));
    clock.advance(20 * SECOND);
    assert_eq!((alive(&new), alive(&longer)), (vec![], vec![]));
}

#[test]
fn what_was_idle_has_been_idle() {
    let clock = ManualClock::new();
    let old = dying(&clock, 1000, 30);
    (1..=3).for_each(|key| old.insert(key, key).unwrap());
    clock.advance(20 * SECOND);
    old.get(&2);
    clock.advance(9 * SECOND);
    let dump = old.dump();
    let clock = ManualClock::new();
    let (new, strict) = (dying(&clock, 1000, 30), dying(&clock, 1000, 10));
    // 1 and 3 were idle for 29 seconds, 2 for 9.
    load_all(&new, &dump);
    assert_eq!(strict.load(dump).len(), 2);
    assert!(new.get(&3).is_some());
    clock.advance(SECOND);
    assert_eq!(contents(&new).into_keys().collect::<Vec<_>>(), [2, 3]);
    assert!(strict.is_empty() || contents(&strict).is_empty());
    clock.advance(20 * SECOND);
    assert_eq!(contents(&new).into_keys().collect::<Vec<_>>(), [3]);
}

#[test]
fn expired_entries_are_neither_dumped_nor_in_the_way() {
    let clock = ManualClock::new();
    let cache = dying(&clock, 10, 100);
    cache.insert(1, 1).unwrap();
    let young = cache.dump();
    clock.advance(10 * SECOND);
    assert!(cache.dump().is_empty() && young.len() == 1);
    // Its own expired entry has the key.
    load_all(&cache, &young);
    assert_eq!(cache.get(&1), Some(1));
}

/// Where nobody minds how long entries are not used, it is not noted when they were.
#[test]
fn what_may_be_idle_is_dumped_as_just_used() {
    let clock = ManualClock::new();
    let builder = Cache::builder().max_entries(10).clock(clock.clone());
    let old: Cache<u64, u64> = builder.time_to_live(SECOND * 100).build();
    old.insert(1, 1).unwrap();
    clock.advance(SECOND * 50);
    let new = dying(&clock, 1000, 10);
    load_all(&new, &old.dump());
    clock.advance(SECOND * 9);
    assert_eq!(new.get(&1), Some(1));
    clock.advance(SECOND * 11);
    assert_eq!(new.get(&1), None);
}

/// A writer raises its counter before it inserts that value: a dump may have no value that had not been begun when it
/// ended, nor one that had been replaced when it began.
#[test]
fn what_is_dumped_was_there_meanwhile() {
    const KEYS: u64 = 300;
    let cache: Cache<u64, u64> = Cache::builder().max_entries(SEVERAL_SEGMENTS).build();
    let (begun, done): (Vec<_>, Vec<_>) = (0..KEYS).map(|_| (AtomicU64::new(0), AtomicU64::new(0))).unzip();
    let over = AtomicU64::new(0);
    on_threads(3, |thread| {
        if thread == 0 {
            for _ in 0..40 {
                let before: Vec<u64> = done.iter().map(|n| n.load(Ordering::SeqCst)).collect();
                let dump = cache.dump();
                let after: Vec<u64> = begun.iter().map(|n| n.load(Ordering::SeqCst)).collect();
                let mut met = BTreeMap::new();
                for (&key, &value) in dump.iter() {
                    assert!((before[key as usize]..=after[key as usize]).contains(&value), "{key}: {value}");
                    assert_eq!(met.insert(key, value), None, "twice");
                }
                assert!((0..KEYS).all(|key| before[key as usize] == 0 || met.contains_key(&key)));
            }
            over.store(1, Ordering::SeqCst);
            return;
        }
        for value in 1.. {
            for key in (0..KEYS).filter(|key| key % 2 == thread as u64 - 1) {
                begun[key as usize].store(value, Ordering::SeqCst);
                cache.insert(key, value).unwrap();
                done[key as usize].store(value, Ordering::SeqCst);
                cache.get(&(key / 2));
            }
            if over.load(Ordering::SeqCst) == 1 {
                break;
            }
        }
    });
}

#[cfg(feature = "serde")]
mod serde {
    use super::*;
    use ::serde::de::value::{Error, SeqDeserializer};
    use ::serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};

    type Dump = CacheDump<u64, u64>;

    #[test]
    fn what_is_written_down_comes_back() {
        let clock = ManualClock::new();
        let old = dying(&clock, 60, 50);
        old.insert(1, 2).unwrap();
        clock.advance(10 * SECOND);
        let text = serde_json::to_string(&old.dump()).unwrap();
        assert_eq!(text, "[1,10000,[[1,2,4,50000000000,10000000000]]]");
        let cache: Hashed = told_cache(Policy::Adaptive, 500).0;
        wander(&cache, 0..20_000);
        let text = serde_json::to_string(&cache.dump()).unwrap();
        let dump: Dump = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&dump).unwrap(), text);
        let back = told_cache(Policy::Adaptive, 500).0;
        load_all(&back, &dump);
        // Hits, queues and the window's share with it. For the order see `strangers`.
        assert_eq!(parts(&back.dump()), parts(&dump));
        let window = parts(&dump).0.unwrap();
        assert!(window > 100_000, "the window has not grown: {window}");
    }

    type Entry = (u64, u64, u8, Option<u64>, u64);

    /// The window's share, and the entries by key.
    fn parts(dump: &Dump) -> (Option<u32>, Vec<Entry>) {
        let text = serde_json::to_string(dump).unwrap();
        let (_, window, mut entries): (u32, Option<u32>, Vec<Entry>) = serde_json::from_str(&text).unwrap();
        entries.sort_unstable();
        (window, entries)
    }

    #[test]
    fn the_windows_share_is_taken_over_by_who_has_not_evicted() {
        let wide: Dump = serde_json::from_str("[1,500000,[]]").unwrap();
        let share = |cache: &Cache<u64, u64>| parts(&cache.dump()).0;
        for entries in [500, SEVERAL_SEGMENTS] {
            let cache: Cache<u64, u64> = Cache::new(entries);
            (0..10).for_each(|key| cache.insert(key, key).unwrap());
            assert_eq!(share(&cache), Some(10_000));
            assert!(cache.load(wide.clone()).is_empty());
            assert_eq!(share(&cache), Some(500_000));
            // A clock does not know.
            let clock = Cache::builder().max_entries(10).policy(Policy::Clock).build();
            assert_eq!(share(&clock), None);
            assert!(cache.load(clock.dump()).is_empty() && clock.load(wide.clone()).is_empty());
            assert_eq!((share(&cache), share(&clock)), (Some(500_000), None));
            // No policy goes so far.
            for (text, most) in [("[1,1000000,[]]", 900_000), ("[1,0,[]]", 10_000)] {
                assert!(cache.load(serde_json::from_str(text).unwrap()).is_empty());
                assert_eq!(share(&cache), Some(most));
            }
            (0..2 * entries as u64).for_each(|key| cache.insert(key, key).unwrap());
            let own = share(&cache);
            assert!(cache.load(wide.clone()).is_empty());
            assert_eq!(share(&cache), own);
        }
        assert_eq!(share(&Cache::new(0)), None);
    }

    #[test]
    fn what_is_no_dump_is_an_error() {
        let bad = [
            ("", "EOF"),
            ("1", "expected a cache's dump: version 1"),
            ("{}", "expected a cache's dump: version 1"),
            ("[]", "expected a cache's dump: version 1"),
            ("[1]", "invalid length 1"),
            ("[1,null]", "invalid length 2"),
            ("[2,0,[]]", "a cache's dump of version 2: only 1 can be read"),
            ("[2,{\"else\":0}]", "a cache's dump of version 2: only 1 can be read"),
            ("[0,0,[]]", "a cache's dump of version 0"),
            ("[-1,0,[]]", "u32"),
            ("[1,-1,[]]", "u32"),
            ("[1,0.5,[]]", "u32"),
            ("[1,1000001,[]]", "window's share"),
            ("[1,[]]", "u32"),
            ("[1,0,1]", "expected a list"),
            ("[1,0,[1]]", "tuple of size 5"),
            ("[1,0,[],1]", "trailing"),
            ("[1,0,[[]]]", "invalid length 0"),
            ("[1,0,[[1,1,0,null]]]", "invalid length 4"),
            ("[1,0,[[1,1,3,null,0]]]", "heat: 0 to 2, or 4 to 6"),
            ("[1,0,[[1,1,7,null,0]]]", "heat: 0 to 2, or 4 to 6"),
            ("[1,0,[[1,1,8,null,0]]]", "heat: 0 to 2, or 4 to 6"),
            ("[1,0,[[1,1,256,null,0]]]", "u8"),
            ("[1,0,[[1,1,0,-1,0]]]", "u64"),
            ("[1,0,[[1,1,0,null,-1]]]", "u64"),
            ("[1,0,[[1,1,0,18446744073709551616,0]]]", "u64"),
            ("[1,0,[[1,1,0,null,null]]]", "u64"),
            ("[1,0,[[1,1,0,null,0,0]]]", "trailing"),
        ];
        for (text, expected) in bad {
            let error = serde_json::from_str::<Dump>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let good = "[1,20000,[[1,1,0,null,0],[2,2,6,7,0]]]";
        assert_eq!(serde_json::from_str::<Dump>(good).unwrap().len(), 2);
        (0..good.len()).for_each(|len| assert!(serde_json::from_str::<Dump>(&good[..len]).is_err(), "{len}"));
    }

    #[test]
    fn absurd_numbers_and_equal_keys_do_no_harm() {
        let text = format!(
            "[1,0,[[1,1,0,{0},{0}],[1,2,6,{0},0],[2,3,5,0,0],[3,4,2,1,{0}],[4,5,4,null,0]]]",
            u64::MAX
        );
        let dump: Dump = serde_json::from_str(&text).unwrap();
        let clock = ManualClock::new();
        let cache = dying(&clock, 60, 50);
        assert_eq!(keys(&cache.load(dump.clone())), [1, 2, 3]);
        assert_eq!(contents(&cache), BTreeMap::from([(1, 2), (4, 5)]));
        for policy in POLICIES {
            let cache = told_cache(policy, 3).0;
            assert_eq!(cache.load(dump.clone()).len(), 2);
            live(&cache, 100);
            assert!(cache.len() <= 3);
        }
    }

    /// Of a list: as long as can be, by its own account, and empty.
    struct Liar;

    impl Iterator for Liar {
        type Item = u64;

        fn next(&mut self) -> Option<u64> {
            None
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, Some(usize::MAX))
        }
    }

    enum Part {
        Version,
        Window,
        Entries,
    }

    impl<'de> Deserializer<'de> for Part {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self {
                Part::Version => visitor.visit_u32(1),
                Part::Window => visitor.visit_none(),
                Part::Entries => visitor.visit_seq(SeqDeserializer::<_, Error>::new(Liar)),
            }
        }

        ::serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }

    impl IntoDeserializer<'_, Error> for Part {
        type Deserializer = Self;

        fn into_deserializer(self) -> Self {
            self
        }
    }

    #[test]
    fn a_lying_length_is_not_believed() {
        let parts =
            SeqDeserializer::<_, Error>::new([Part::Version, Part::Window, Part::Entries].into_iter());
        let read = Dump::deserialize(parts);
        assert!(read.is_ok_and(|dump| dump.is_empty()));
    }
}
