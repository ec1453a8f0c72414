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
            assert_eq!(back.load(dump.clone()), dump.len());
            assert_eq!(contents(&back), contents(&cache), "{policy:?} {other:?}");
        }
    }
}

/// Every eviction that a scan asks for is the same, one after the other, though the old cache's rings have stale entries.
#[test]
fn adaptive_goes_on_as_if_nothing_had_been() {
    let (cache, told) = told_cache(Policy::Adaptive, 500);
    live_without_returns(&cache);
    let (back, told_back) = told_cache(Policy::Adaptive, 500);
    assert_eq!(back.load(cache.dump()), 500);
    let again = back.dump();
    assert!(again.iter().eq(cache.dump().iter()), "another order");
    let without = scan(&cache, &told, 400);
    assert!(without.len() == 400 && without.iter().any(|&key| key < 1_000_000));
    assert_eq!(scan(&back, &told_back, 400), without);
}

/// A capacity that falls shows main's order and hits, too: each is spared once for each hit.
#[test]
fn adaptive_shrinks_as_it_would_have_without_the_restart() {
    let (cache, told) = told_cache(Policy::Adaptive, 500);
    live_without_returns(&cache);
    let (back, told_back) = told_cache(Policy::Adaptive, 500);
    assert_eq!(back.load(cache.dump()), cache.len());
    for shrinking in [&cache, &back] {
        (0..50).for_each(|step| shrinking.set_capacity(500 - 10 * step));
    }
    let leaving = |told: &Told| told.lock().unwrap().iter().rev().take(400).map(|t| t.0).collect::<Vec<_>>();
    assert_eq!(leaving(&told), leaving(&told_back));
}

#[test]
fn a_clock_spares_what_was_hit_before_the_restart() {
    let (cache, told) = told_cache(Policy::Clock, 500);
    (0..500).for_each(|key| cache.insert(key, key).unwrap());
    (0..250).for_each(|key| assert!(cache.get(&(2 * key)).is_some()));
    let (back, told_back) = told_cache(Policy::Clock, 500);
    assert_eq!(back.load(cache.dump()), 500);
    for (cache, told) in [(&cache, &told), (&back, &told_back)] {
        let gone = scan(cache, told, 100);
        assert!(gone.len() == 100 && gone.iter().all(|key| key % 2 == 1), "{gone:?}");
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
            assert_eq!(small.load(cache.dump()), 500);
            assert!(hot.iter().all(|key| small.contains_key(key)), "{policy:?}");
            let smaller: Cache<u64, u64> = Cache::builder().max_entries(100).policy(policy).build();
            assert_eq!(smaller.load(cache.dump()), 100);
            assert!(smaller.iter().all(|(key, _)| key % 10 == 0), "{policy:?}");
        }
    }
}

#[test]
fn what_is_there_stays_and_counts_as_younger() {
    let old: Cache<u64, u64> = Cache::new(10);
    (0..10).for_each(|key| old.insert(key, 1).unwrap());
    let new: Cache<u64, u64> = Cache::new(10);
    (5..9).for_each(|key| new.insert(key, 2).unwrap());
    assert_eq!(new.load(old.dump()), 6);
    let expected = (0..10).map(|key| (key, if (5..9).contains(&key) { 2 } else { 1 }));
    assert_eq!(contents(&new), expected.collect());
    assert_eq!(new.load(old.dump()), 0);
    let keys: Vec<u64> = new.dump().iter().map(|(&key, _)| key).collect();
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
    let kept = cache.load(dump);
    assert_eq!(kept, cache.len());
    assert_eq!(cache.weight(), cache.iter().map(|(_, value)| value).sum::<u64>());
    assert!(kept >= 2 && cache.weight() <= 7);
    // Heavier than all: left out.
    let light: Cache<u64, u64> = Cache::new(1);
    light.insert(8, 8).unwrap();
    assert_eq!(cache.load(light.dump()), 0);
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
        assert_eq!(cache.load(dump.clone()), 2);
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
    assert_eq!((new.load(dump.clone()), strict.load(dump)), (3, 1));
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
    assert_eq!(cache.load(young), 1);
    assert_eq!(cache.get(&1), Some(1));
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
        assert_eq!(text, "[1,[[1,2,4,50000000000,10000000000]]]");
        let cache: Hashed = told_cache(Policy::Adaptive, 500).0;
        live(&cache, 5000);
        let text = serde_json::to_string(&cache.dump()).unwrap();
        let dump: Dump = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&dump).unwrap(), text);
        let back = told_cache(Policy::Adaptive, 500).0;
        assert_eq!(back.load(dump), cache.len());
        assert_eq!(contents(&back), contents(&cache));
        // Order, hits and queues with it.
        assert_eq!(serde_json::to_string(&back.dump()).unwrap(), text);
    }

    #[test]
    fn what_is_no_dump_is_an_error() {
        let bad = [
            "",
            "1",
            "[]",
            "[1]",
            "{}",
            "[2,[]]",
            "[0,[]]",
            "[-1,[]]",
            "[1,1]",
            "[1,[1]]",
            "[1,[],1]",
            "[1,[[]]]",
            "[1,[[1,1,0,null]]]",
            "[1,[[1,1,3,null,0]]]",
            "[1,[[1,1,7,null,0]]]",
            "[1,[[1,1,8,null,0]]]",
            "[1,[[1,1,0,-1,0]]]",
            "[1,[[1,1,0,null,-1]]]",
            "[1,[[1,1,0,null,null]]]",
            "[1,[[1,1,0,null,0,0]]]",
        ];
        for text in bad {
            assert!(serde_json::from_str::<Dump>(text).is_err(), "{text}");
        }
        let good = "[1,[[1,1,0,null,0],[2,2,6,7,0]]]";
        assert_eq!(serde_json::from_str::<Dump>(good).unwrap().len(), 2);
        (0..good.len()).for_each(|len| assert!(serde_json::from_str::<Dump>(&good[..len]).is_err(), "{len}"));
    }

    #[test]
    fn absurd_numbers_and_equal_keys_do_no_harm() {
        let text =
            format!("[1,[[1,1,0,{0},{0}],[1,2,6,{0},0],[2,3,5,0,0],[3,4,2,1,{0}],[4,5,4,null,0]]]", u64::MAX);
        let dump: Dump = serde_json::from_str(&text).unwrap();
        let clock = ManualClock::new();
        let cache = dying(&clock, 60, 50);
        assert_eq!(cache.load(dump.clone()), 2);
        assert_eq!(contents(&cache), BTreeMap::from([(1, 2), (4, 5)]));
        for policy in POLICIES {
            let cache = told_cache(policy, 3).0;
            assert_eq!(cache.load(dump.clone()), 3);
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
        Entries,
    }

    impl<'de> Deserializer<'de> for Part {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self {
                Part::Version => visitor.visit_u32(1),
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
        let parts = SeqDeserializer::<_, Error>::new([Part::Version, Part::Entries].into_iter());
        let read = Dump::deserialize(parts);
        assert!(read.is_ok_and(|dump| dump.is_empty()));
    }
}
