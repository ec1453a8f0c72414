//! Operations on a cache of any kind, checked by the oracle. They are chosen at random in `laws`, by a fuzzer in `fuzz`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use koel::{Cache, CacheDump, CacheStats, Cause, Compute, ManualClock, Operation, Policy, Why};

use super::kind::{Bound, Kind, build};
use super::oracle::{Act, Held, Item, Oracle, Told};

/// A source of choices of operations, keys and values: random numbers, or a fuzzer.
pub(crate) trait Choices {
    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64;

    /// Whether there is more to choose from.
    fn go_on(&self) -> bool {
        true
    }
}

/// A cache, and what is known about it.
struct Run<'c, C> {
    cache: &'c Cache<u64, Item>,
    oracle: Oracle,
    told: Told,
    clock: ManualClock,
    kind: Kind,
    choices: C,
    numbers: u64,
}

impl<C: Choices> Run<'_, C> {
    fn key(&mut self) -> u64 {
        self.choices.below(2 * self.kind.capacity.min(10_000) + 3)
    }

    fn item(&mut self) -> Item {
        self.numbers += 1;
        let capacity = self.oracle.capacity;
        let weight = match self.choices.below(12) {
            0 => self.choices.below(capacity + 2),
            1 => capacity,
            2 => 0,
            _ => self.choices.below(capacity / 8 + 2),
        };
        let lives = (self.choices.below(3) != 0).then(|| Duration::from_millis(10 * self.choices.below(300)));
        Item { number: Box::new(self.numbers), weight, lives }
    }

    /// Takes account of entries that have left.
    fn told(&mut self, act: Act, own: Option<u64>) {
        self.oracle.told(&self.told, act, own);
    }

    fn insert(&mut self) {
        let (key, item) = (self.key(), self.item());
        let weight = self.oracle.weight_of(&item);
        if let Err(refused) = self.cache.insert(key, item.clone()) {
            assert_eq!((refused.key, &refused.value), (key, &item), "handed back whole");
            return self.refused(refused.why, weight);
        }
        self.inserted(key, &item);
    }

    fn refused(&mut self, why: Why, weight: u64) {
        let capacity = self.oracle.capacity;
        assert!(weight > capacity, "{weight} of {capacity} was refused");
        assert_eq!(why, Why::TooHeavy { weight, capacity });
        // Nothing leaves for it, except that expired entries may go.
        self.told(Act::Look, None);
    }

    fn inserted(&mut self, key: u64, item: &Item) {
        let (before, evictions) = (self.oracle.weight(), self.oracle.stats.evictions);
        let replaced = self.oracle.held_weight(key);
        let left = self.left_at_once(key, item);
        self.told(Act::Insert, Some(key));
        if left == Some(Cause::Size) {
            return self.oracle.turned_away(item);
        }
        self.oracle.insert(key, item);
        self.told.lock().unwrap().extend(left.map(|cause| (key, *item.number, cause)));
        self.told(Act::Look, None);
        let evicted = self.oracle.stats.evictions > evictions;
        let asked = before - replaced + self.oracle.weight_of(item);
        // Each segment evicts by itself; a single one evicts only to keep the bound, and no more than it must. Only the
        // adaptive policy may evict several items for one that it considers better.
        if self.cache_has_one_segment() && self.kind.policy != Policy::Adaptive {
            assert!(!evicted || asked > self.oracle.capacity, "evicted, and all would fit");
            let last = self.oracle.last_evicted;
            // Expired entries go as well, and one may be the last to go.
            let evicted = evicted && !self.kind.lives.expire();
            assert!(!evicted || self.oracle.weight() + last > self.oracle.capacity, "one too many evicted");
        }
    }

    /// Why an entry that was just inserted has left at once, if the listener was told about it and not about another value of
    /// its key.
    fn left_at_once(&mut self, key: u64, item: &Item) -> Option<Cause> {
        let mut told = self.told.lock().unwrap();
        let at = told.iter().position(|&(other, number, _)| (other, number) == (key, *item.number))?;
        let cause = told.remove(at).2;
        let turns_away = self.kind.policy == Policy::Adaptive && self.kind.bound != Bound::Entries;
        assert!(cause == Cause::Expired || cause == Cause::Size && turns_away, "{key} left at once: {cause}");
        Some(cause)
    }

    fn cache_has_one_segment(&self) -> bool {
        match self.kind.bound {
            Bound::Entries => self.kind.capacity < 2048,
            Bound::Weight => true,
            Bound::Ones | Bound::WeightOfMany => false,
        }
    }

    fn remove(&mut self) {
        let key = self.key();
        let expected = self.oracle.number(key);
        let wanted = self.choices.below(2) == 0;
        let gone = match self.choices.below(2) {
            0 => self.cache.remove(&key),
            _ => {
                let gone = self.cache.remove_if(&key, |at, item| {
                    assert_eq!((*at, Some(*item.number)), (key, expected));
                    wanted
                });
                if !wanted {
                    assert_eq!(gone, None);
                    self.told(Act::Look, None);
                    return assert_eq!(self.oracle.number(key), expected, "removed, though not wanted");
                }
                gone
            }
        };
        self.told(Act::Remove, None);
        assert_eq!(gone.map(|item| *item.number), expected);
        assert_eq!(self.oracle.number(key), None, "removed, and nobody was told");
    }

    fn compute(&mut self) {
        let (key, item) = (self.key(), self.item());
        let (expected, what) = (self.oracle.number(key), self.choices.below(3));
        let answer = self.cache.compute(key, |old| {
            assert_eq!(old.map(|item| *item.number), expected);
            match (what, old) {
                (0, _) => Operation::Abort(17),
                (1, Some(_)) => Operation::Remove,
                _ => Operation::Insert(item.clone()),
            }
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(refused) => {
                assert_eq!((refused.key, &refused.value), (key, &item), "handed back whole");
                return self.refused(refused.why, self.oracle.weight_of(&item));
            }
        };
        match (answer, expected) {
            (Compute::Aborted(17), _) => self.told(Act::Look, None),
            (Compute::Removed(at, old), Some(number)) => {
                assert_eq!((at, *old.number), (key, number));
                self.told(Act::Remove, None);
            }
            (Compute::Inserted(at, new), None) => {
                assert_eq!((at, &new), (key, &item));
                self.inserted(key, &item);
            }
            (Compute::Updated { old, new }, Some(number)) => {
                assert_eq!((old.0, *old.1.number, &new.1), (key, number, &item));
                self.inserted(key, &item);
            }
            other => panic!("{other:?}"),
        }
    }

    fn retain(&mut self) {
        let (odd, mut asked) = ((self.choices.below(2) == 0), BTreeSet::new());
        let expected: BTreeSet<u64> = self.oracle.alive().into_iter().map(|(key, _)| key).collect();
        self.cache.retain(|key, _| {
            asked.insert(*key);
            (key % 2 == 1) == odd
        });
        assert_eq!(asked, expected, "`retain` sees each entry");
        self.told(Act::Remove, None);
        assert!(self.oracle.alive().iter().all(|(key, _)| (key % 2 == 1) == odd));
        assert_eq!(self.oracle.expired(), 0, "what has expired has gone, and was told");
    }

    fn clear(&mut self) {
        self.cache.clear();
        self.told(Act::Clear, None);
        assert_eq!((self.oracle.len(), self.cache.len(), self.cache.weight()), (0, 0, 0));
    }

    /// Dumps the cache, and loads the dump: into the cache as it is, and again after it was cleared.
    fn restart(&mut self) {
        let dump = self.cache.dump();
        self.told(Act::Look, None);
        let of = |dump: &CacheDump<u64, Item>| dump.iter().map(|(key, item)| (*key, *item.number)).collect();
        let dumped: BTreeMap<u64, u64> = of(&dump);
        assert_eq!(dump.len(), dumped.len(), "a key twice");
        assert_eq!(dumped.into_iter().collect::<Vec<_>>(), self.oracle.alive());
        let rest = self.cache.load(dump);
        self.told(Act::Look, None);
        let rest_of: BTreeMap<u64, u64> = of(&rest);
        assert_eq!(rest_of.into_iter().collect::<Vec<_>>(), self.oracle.alive(), "what is there stays");
        self.load_cleared(rest, self.oracle.alive_entries());
    }

    /// Loads a dump after the cache was cleared: all of its entries that are alive, according to `alive`.
    fn load_cleared(&mut self, dump: CacheDump<u64, Item>, mut alive: BTreeMap<u64, Held>) {
        self.clear();
        let back: BTreeSet<u64> = self.cache.load(dump).into_iter().map(|(key, _)| key).collect();
        // Of several segments, one that held more than its share may not be lent as much again.
        let all = self.cache_has_one_segment();
        assert!(!all || back.iter().all(|key| !alive.contains_key(key)), "{back:?} had no room");
        alive.retain(|key, _| !back.contains(key));
        self.oracle.restore(alive);
        self.told(Act::Insert, None);
    }

    /// Dumps the cache, lets time pass for dump and cache, and loads a part of the dump after the cache was cleared.
    fn restart_later(&mut self) {
        let mut dump = self.cache.dump();
        dump.age(self.advance());
        dump.retain(|key, _| key % 4 != 0);
        // Without entries that have been idle for too long, which are handed back.
        let alive = self.oracle.alive_entries().into_iter().filter(|(key, _)| key % 4 != 0);
        self.load_cleared(dump, alive.collect());
    }

    /// Gets a value, which is loaded if there is none: by its entry, by a reference, by a reservation, or in vain.
    fn load(&mut self) {
        let (key, item) = (self.key(), self.item());
        let (expected, mut ran) = (self.oracle.number(key), false);
        let mut make = || {
            ran = true;
            item.clone()
        };
        let got = match self.choices.below(4) {
            0 => Some(self.cache.entry(key).or_insert_with(make)),
            1 => Some(self.cache.get_or_insert_with_ref(&key, make)),
            2 => Some(self.cache.get_or_reserve(key).unwrap_or_else(|held| held.insert(make()))),
            _ => self.cache.try_get_or_insert_with(key, || Err(make())).ok(),
        };
        assert_eq!(ran, expected.is_none(), "whether {key} was loaded");
        if !ran {
            self.told(Act::Look, None);
            return self.oracle.hit(key, got.map(|item| *item.number));
        }
        self.oracle.hit(key, None);
        let Some(got) = got else {
            self.oracle.stats.failed_loads += 1;
            return self.told(Act::Look, None);
        };
        self.oracle.stats.loads += 1;
        assert_eq!(got, item);
        if self.oracle.weight_of(&item) > self.oracle.capacity {
            return self.told(Act::Look, None);
        }
        self.inserted(key, &item);
    }

    fn set_capacity(&mut self) {
        let capacity = match self.choices.below(4) {
            0 => self.oracle.capacity,
            1 => self.choices.below(self.kind.capacity + 1),
            2 => self.choices.below(2 * self.kind.capacity + 2),
            _ => self.kind.capacity,
        };
        let grows = capacity >= self.oracle.capacity;
        let evictions = self.oracle.stats.evictions;
        self.cache.set_capacity(capacity);
        self.oracle.capacity = capacity;
        self.told(Act::Resize, None);
        assert!(!grows || self.oracle.stats.evictions == evictions, "evicted for more room");
        assert_eq!(self.cache.capacity(), capacity);
    }

    fn purge(&mut self) {
        self.cache.purge();
        self.told(Act::Look, None);
        assert_eq!(self.oracle.expired(), 0);
    }

    /// Lets some time pass, and returns how much.
    fn advance(&mut self) -> Duration {
        let by = Duration::from_millis(10 * self.choices.below(40));
        self.clock.advance(by);
        self.oracle.now += by;
        by
    }

    fn peek(&mut self) {
        let key = self.key();
        assert_eq!(self.cache.peek(&key).map(|item| *item.number), self.oracle.number(key));
        assert_eq!(self.cache.contains_key(&key), self.oracle.number(key).is_some());
        self.told(Act::Look, None);
    }

    fn get(&mut self) {
        let key = self.key();
        let seen = self.cache.get(&key);
        self.told(Act::Look, None);
        self.oracle.hit(key, seen.map(|item| *item.number));
    }

    /// Looks up to two batches up, in which keys may occur twice.
    fn get_many(&mut self) {
        let keys: Vec<u64> = (0..self.choices.below(40)).map(|_| self.key()).collect();
        let mut seen = vec![None; keys.len()];
        if self.choices.below(2) == 0 {
            self.cache.get_many(&keys, &mut seen);
        } else {
            let view = self.cache.pin();
            let mut shown = vec![None; keys.len()];
            view.get_many_ref(&keys.iter().collect::<Vec<_>>(), &mut shown);
            seen = shown.into_iter().map(|item| item.cloned()).collect();
        }
        self.told(Act::Look, None);
        for (key, seen) in keys.into_iter().zip(seen) {
            self.oracle.hit(key, seen.map(|item: Item| *item.number));
        }
    }

    fn step(&mut self) {
        match self.choices.below(220) {
            0..45 => self.get(),
            45..50 => self.get_many(),
            50..60 => self.peek(),
            60..130 => self.insert(),
            130..150 => self.remove(),
            150..175 => self.compute(),
            175..190 => drop(self.advance()),
            190..192 => self.retain(),
            192..194 => self.purge(),
            194..198 => self.set_capacity(),
            198 => self.clear(),
            199 => self.restart(),
            200 => self.restart_later(),
            _ => self.load(),
        }
    }

    /// Checks what must hold at every moment.
    fn check(&self, all: bool) {
        let (cache, oracle) = (self.cache, &self.oracle);
        assert_eq!((cache.len(), cache.weight()), (oracle.len(), oracle.weight()));
        assert!(cache.weight() <= cache.capacity(), "{cache:?}");
        assert_eq!(cache.is_empty(), oracle.len() == 0);
        if all {
            let mut seen: Vec<_> = cache.iter().map(|(key, item)| (key, *item.number)).collect();
            seen.sort_unstable();
            assert_eq!(seen, oracle.alive());
            let view = cache.pin();
            let mut seen: Vec<_> = view.iter().map(|(key, item)| (*key, *item.number)).collect();
            seen.sort_unstable();
            assert_eq!(seen, oracle.alive());
            let stats = cache.stats();
            let expected = (oracle.len(), oracle.weight(), oracle.capacity);
            assert_eq!((stats.len, stats.weight, stats.capacity), expected);
            let counts = |stats: &CacheStats| {
                let loads = (stats.loads, stats.failed_loads);
                let left = (stats.evictions, stats.evicted_weight, stats.expirations);
                (stats.hits, stats.misses, loads, stats.insertions, left)
            };
            assert_eq!(counts(&stats), counts(&oracle.stats));
        }
    }
}

/// Runs this many operations on a cache, or fewer if there are no more choices. Each is checked.
pub(crate) fn run(kind: Kind, steps: usize, mut choices: impl Choices) {
    let (cache, told, clock) = build(kind, choices.below(1 << 16));
    let oracle = Oracle::new(kind.lives, kind.bound.weighs(), kind.capacity);
    let mut run = Run { cache: &cache, oracle, told, clock, kind, choices, numbers: 0 };
    let mut view = cache.pin();
    let mut kept = Vec::new();
    for step in 0..steps {
        if !run.choices.go_on() {
            break;
        }
        run.step();
        // References stay valid, whatever becomes of their entries.
        let key = run.key();
        let seen = view.get_key_value(&key).map(|(_, item)| item);
        run.told(Act::Look, None);
        run.oracle.hit(key, seen.map(|item| *item.number));
        kept.extend(seen.map(|item| (item, *item.number)));
        if step % 64 == 63 {
            assert!(kept.iter().all(|(item, number)| *item.number == *number));
            kept = Vec::new();
            view = cache.pin();
        }
        run.check(kind.capacity <= 7 || step % 64 == 0);
    }
    run.check(true);
}
