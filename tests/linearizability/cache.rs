//! Caches: a key may be evicted at any moment, and a value that was evicted, replaced or removed must not come back. A broken
//! cache in which it does must be caught.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use koel::{Cache, CacheBuilder, InlineCache, Operation, Policy};

use super::all_histories_are_linearizable;
use super::checker::{Register, Saw};
use super::history::{Plan, Seen, Subject, run};
use crate::common::{Rng, Seeded, seeded};

/// How a value is stored: inline, or behind a pointer, where access to freed memory is noticed.
trait Number: Clone + Send + Sync {
    fn of(n: u64) -> Self;
    fn get(&self) -> u64;
}

impl Number for u64 {
    fn of(n: u64) -> Self {
        n
    }

    fn get(&self) -> u64 {
        *self
    }
}

impl Number for Box<u64> {
    fn of(n: u64) -> Self {
        Box::new(n)
    }

    fn get(&self) -> u64 {
        **self
    }
}

/// A cache under test: keys that are not recorded evict those that are.
struct Evicting<V> {
    cache: Cache<u64, V, Seeded>,
    next_filler: AtomicU64,
}

impl<V: Number> Evicting<V> {
    fn decide(&self, key: u64, decide: impl Fn(Option<u64>) -> Operation<V, ()>) -> Seen {
        let mut seen = None;
        let answer = self.cache.compute(key, |old| {
            seen = old.map(V::get);
            decide(seen)
        });
        answer.map(|_| seen).map_err(|refused| refused.to_string())
    }
}

impl<V: Number> Subject for Evicting<V> {
    const REGISTER: Register = Register::Forgets;

    fn get(&self, key: u64) -> Seen {
        Ok(self.cache.get(&key).map(|value| value.get()))
    }

    fn get_many(&self, keys: &[u64]) -> Vec<Seen> {
        let view = self.cache.pin();
        let mut seen = vec![None; keys.len()];
        view.get_many(keys, &mut seen);
        seen.into_iter().map(|value| Ok(value.map(V::get))).collect()
    }

    fn contains_key(&self, key: u64) -> bool {
        self.cache.contains_key(&key)
    }

    fn may_contain(&self, key: u64) -> bool {
        self.cache.peek(&key).is_some()
    }

    fn insert(&self, key: u64, value: u64) -> Saw {
        match self.cache.insert(key, V::of(value)) {
            Ok(()) => Saw::Nothing,
            Err(refused) => Saw::Garbage(refused.to_string()),
        }
    }

    fn try_insert(&self, key: u64, value: u64) -> Seen {
        let answer = self.cache.try_insert(key, V::of(value)).map_err(|refused| refused.to_string())?;
        Ok(answer.err().map(|occupied| occupied.current.get()))
    }

    fn remove(&self, key: u64) -> Seen {
        Ok(self.cache.remove(&key).map(|value| value.get()))
    }

    fn compute(&self, key: u64, value: u64, remove: bool) -> Seen {
        self.decide(key, |old| match old {
            None => Operation::Abort(()),
            Some(_) if remove => Operation::Remove,
            Some(_) => Operation::Insert(V::of(value)),
        })
    }

    fn update_or_insert(&self, key: u64, value: u64) -> Seen {
        self.decide(key, |_| Operation::Insert(V::of(value)))
    }

    fn disturb(&self, rng: &mut Rng, _thread: usize, step: usize) {
        let filler = || (1 << 20) + self.next_filler.fetch_add(1, Ordering::Relaxed);
        match rng.below(12) {
            0 | 1 => self.cache.insert(filler(), V::of(0)).unwrap(),
            2 if step % 64 == 0 => self.cache.purge(),
            _ => {}
        }
    }
}

/// An inline cache under test, whose values are `N` words.
struct EvictingInline<const N: usize>
where
    [u64; N]: Pod,
{
    cache: InlineCache<u64, [u64; N], Seeded>,
    next_filler: AtomicU64,
}

/// The value that was read, unless it was torn.
fn whole<const N: usize>(seen: Option<[u64; N]>) -> Seen {
    match seen {
        Some(words) if words != [words[0]; N] => Err(format!("torn: {words:?}")),
        seen => Ok(seen.map(|words| words[0])),
    }
}

impl<const N: usize> EvictingInline<N>
where
    [u64; N]: Pod,
{
    fn decide(&self, key: u64, decide: impl Fn(Option<u64>) -> Operation<u64, ()>) -> Seen {
        let mut seen = None;
        self.cache.compute(key, |old| {
            seen = old;
            match decide(old.map(|words| words[0])) {
                Operation::Insert(value) => Operation::Insert([value; N]),
                Operation::Remove => Operation::Remove,
                Operation::Abort(()) => Operation::Abort(()),
            }
        });
        whole(seen)
    }
}

impl<const N: usize> Subject for EvictingInline<N>
where
    [u64; N]: Pod,
{
    const REGISTER: Register = Register::Forgets;

    fn get(&self, key: u64) -> Seen {
        whole(self.cache.get(&key))
    }

    fn get_many(&self, keys: &[u64]) -> Vec<Seen> {
        let mut seen = vec![None; keys.len()];
        self.cache.get_many(keys, &mut seen);
        seen.into_iter().map(whole).collect()
    }

    fn contains_key(&self, key: u64) -> bool {
        self.cache.contains_key(&key)
    }

    fn may_contain(&self, key: u64) -> bool {
        self.cache.contains_key(&key)
    }

    fn insert(&self, key: u64, value: u64) -> Saw {
        match whole(self.cache.insert(key, [value; N])) {
            Ok(Some(old)) => Saw::Value(old),
            Ok(None) => Saw::Absent,
            Err(torn) => Saw::Garbage(torn),
        }
    }

    fn try_insert(&self, key: u64, value: u64) -> Seen {
        whole(self.cache.try_insert(key, [value; N]).err().map(|occupied| occupied.current))
    }

    fn remove(&self, key: u64) -> Seen {
        whole(self.cache.remove(&key))
    }

    fn compute(&self, key: u64, value: u64, remove: bool) -> Seen {
        self.decide(key, |old| match old {
            None => Operation::Abort(()),
            Some(_) if remove => Operation::Remove,
            Some(_) => Operation::Insert(value),
        })
    }

    fn update_or_insert(&self, key: u64, value: u64) -> Seen {
        self.decide(key, |_| Operation::Insert(value))
    }

    fn disturb(&self, rng: &mut Rng, _thread: usize, _step: usize) {
        let filler = || (1 << 20) + self.next_filler.fetch_add(1, Ordering::Relaxed);
        if rng.below(12) < 2 {
            self.cache.insert(filler(), [0; N]);
        }
    }
}

fn evicts_inline<const N: usize>(max_entries: usize)
where
    [u64; N]: Pod,
{
    for policy in [Policy::Adaptive, Policy::Clock, Policy::Local] {
        all_histories_are_linearizable("an inline cache", 4000, |plan| EvictingInline::<N> {
            cache: InlineCache::builder()
                .max_entries(max_entries)
                .policy(policy)
                .hasher(seeded(plan.seed))
                .build(),
            next_filler: AtomicU64::new(0),
        });
    }
}

#[test]
fn inline_cache_is_linearizable_under_eviction() {
    evicts_inline::<1>(6);
    evicts_inline::<1>(12);
}

#[test]
fn inline_cache_of_wide_values_is_linearizable_under_eviction() {
    evicts_inline::<3>(6);
    evicts_inline::<3>(12);
}

fn evicts<V: Number>(builder: impl Fn() -> CacheBuilder<u64, V>) {
    for policy in [Policy::Adaptive, Policy::Clock, Policy::Local] {
        all_histories_are_linearizable("a cache", 4000, |plan| Evicting {
            cache: builder().policy(policy).hasher(seeded(plan.seed)).build(),
            next_filler: AtomicU64::new(0),
        });
    }
}

#[test]
fn cache_is_linearizable_under_eviction() {
    evicts::<u64>(|| Cache::builder().max_entries(6));
    evicts::<Box<u64>>(|| Cache::builder().max_entries(12));
    // With values that grow when they are replaced.
    evicts::<u64>(|| Cache::builder().max_weight(30).weigher(|_, value: &u64| 1 + value % 5 * 3));
}

/// Four segments that borrow from one another for each entry.
#[test]
fn cache_of_several_segments_is_linearizable_under_eviction() {
    evicts::<u64>(|| Cache::builder().max_weight(5).estimated_entries(5000));
    evicts::<Box<u64>>(|| {
        let builder = Cache::builder().max_weight(30).estimated_entries(5000);
        builder.weigher(|key, _| 1 + key % 5 * 6)
    });
}

/// A table that doubles, starting from almost nothing.
#[test]
fn cache_is_linearizable_in_growth() {
    evicts::<Box<u64>>(|| Cache::builder().max_weight(1 << 40).weigher(|_, _| 1));
}

/// A defect of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// A value that was evicted is there again.
    ResurrectsEvicted,
    /// A value that was removed is there again.
    ResurrectsRemoved,
    /// A value that was replaced is there again.
    ResurrectsReplaced,
}

/// A locked cache that evicts at random.
struct Defective {
    /// Its current and its previous entries.
    map: Mutex<(HashMap<u64, u64>, HashMap<u64, u64>)>,
    defect: Defect,
}

impl Defective {
    /// Writes; remembers the old value if it is to come back.
    fn write(&self, key: u64, value: Option<u64>, defect: Defect) -> Option<u64> {
        let (map, before) = &mut *self.map.lock().unwrap();
        let old = match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
        before.extend(old.filter(|_| self.defect == defect).map(|old| (key, old)));
        old
    }

    fn read(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().0.get(&key).copied()
    }
}

impl Subject for Defective {
    const REGISTER: Register = Register::Forgets;

    fn get(&self, key: u64) -> Seen {
        Ok(self.read(key))
    }

    fn get_many(&self, keys: &[u64]) -> Vec<Seen> {
        keys.iter().map(|key| self.get(*key)).collect()
    }

    fn contains_key(&self, key: u64) -> bool {
        self.read(key).is_some()
    }

    fn may_contain(&self, key: u64) -> bool {
        self.contains_key(key)
    }

    fn insert(&self, key: u64, value: u64) -> Saw {
        self.write(key, Some(value), Defect::ResurrectsReplaced);
        Saw::Nothing
    }

    fn try_insert(&self, key: u64, value: u64) -> Seen {
        let (map, _) = &mut *self.map.lock().unwrap();
        let old = map.get(&key).copied();
        map.entry(key).or_insert(value);
        Ok(old)
    }

    fn remove(&self, key: u64) -> Seen {
        Ok(self.write(key, None, Defect::ResurrectsRemoved))
    }

    fn compute(&self, key: u64, value: u64, remove: bool) -> Seen {
        let (map, _) = &mut *self.map.lock().unwrap();
        let old = map.get(&key).copied();
        match (old, remove) {
            (Some(_), true) => map.remove(&key),
            (Some(_), false) => map.insert(key, value),
            (None, _) => None,
        };
        Ok(old)
    }

    fn update_or_insert(&self, key: u64, value: u64) -> Seen {
        Ok(self.write(key, Some(value), Defect::ResurrectsReplaced))
    }

    fn disturb(&self, rng: &mut Rng, _: usize, step: usize) {
        let key = rng.below(4);
        if step % 10 == 0 {
            self.write(key, None, Defect::ResurrectsEvicted);
        }
        if step % 100 == 50 {
            let (map, before) = &mut *self.map.lock().unwrap();
            map.extend(before.remove(&key).map(|old| (key, old)));
        }
    }
}

fn run_with(defect: Defect) -> Result<usize, String> {
    let plan = Plan { threads: 3, operations: 5000, keys: 4, seed: 1 };
    run(&Defective { map: Mutex::default(), defect }, plan).map_err(|broken| broken.to_string())
}

#[test]
fn a_locked_cache_without_defects_is_linearizable() {
    let operations = run_with(Defect::None).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(operations > 14_000);
}

#[test]
fn every_resurrection_is_caught() {
    for defect in [Defect::ResurrectsEvicted, Defect::ResurrectsRemoved, Defect::ResurrectsReplaced] {
        assert!(run_with(defect).is_err(), "{defect:?} was not caught");
    }
}
