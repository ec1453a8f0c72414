//! Whatever threads do to a key at the same time, there is an order in which they could have done it one after the other:
//! recorded histories of both maps, in growth, shrinking, displacement, and tiny segments; and of caches and filters.
//!
//! `KOEL_HISTORIES` sets how many histories are recorded in each scenario (9). Best run with `--release`, and with
//! `RUSTFLAGS="--cfg koel_steps"`, which makes threads meet between any two steps of the protocol.

mod broken;
mod cache;
mod checker;
mod checker_tests;
#[path = "../common/mod.rs"]
mod common;
mod filter;
mod history;
mod loads;
mod whole;

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use checker::{Register, Saw};
use common::{AnyMap, Config, Rng, Seeded, env_number, growing_configs, seed, seeded};
use history::{Plan, Seen, Subject, record, run, saw};
use koel::{HashMap, InlineMap, Operation};

/// A number in the form of a value, which may be longer than a word, and so may be torn.
trait Coded {
    fn encode(n: u64) -> Self;
    fn decode(&self) -> Result<u64, String>;
}

impl Coded for u64 {
    fn encode(n: u64) -> Self {
        n
    }

    fn decode(&self) -> Result<u64, String> {
        Ok(*self)
    }
}

impl Coded for [u64; 3] {
    fn encode(n: u64) -> Self {
        [n, !n, n]
    }

    fn decode(&self) -> Result<u64, String> {
        let [a, b, c] = *self;
        if a == !b && a == c { Ok(a) } else { Err(format!("torn: {self:x?}")) }
    }
}

/// Keys from here on are not recorded.
const FILLERS: u64 = 1 << 20;

/// What happens to a map in addition to the recorded operations.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    Nothing,
    /// New keys make it grow; now and then they are removed, and it shrinks.
    GrowAndShrink,
    /// Each thread exchanges keys, of which there are so many that displacements are needed.
    Displace,
}

/// A map under test.
struct Koel<M> {
    map: M,
    disturbance: Disturbance,
    next_filler: AtomicU64,
    /// How many fillers of each thread are in the map, for displacements.
    fillers: u64,
}

impl<M: AnyMap<Key = u64, Value: Coded, Hasher = Seeded>> Koel<M> {
    fn new(config: Config, hasher: u64, disturbance: Disturbance) -> Self {
        let map = M::build(config, seeded(hasher));
        Koel { map, disturbance, next_filler: AtomicU64::new(FILLERS), fillers: 0 }
    }

    /// Fills a map of fixed capacity, except for the keys in use.
    fn fill(mut self, entries: usize, plan: Plan) -> Self {
        self.fillers = (entries as u64 - plan.keys) / plan.threads as u64 - 2;
        for thread in 0..plan.threads as u64 {
            for i in 0..self.fillers {
                self.map.insert(FILLERS + (thread << 32) + i, M::Value::encode(i));
            }
        }
        self
    }

    fn grow_and_shrink(&self, rng: &mut Rng) {
        let key = self.next_filler.fetch_add(1, Ordering::Relaxed);
        self.map.insert(key, M::Value::encode(key));
        if rng.one_in(1500) {
            self.map.retain(|key, _| *key < FILLERS);
            self.map.shrink_to_fit();
        }
    }

    fn displace(&self, rng: &mut Rng, thread: usize) {
        // Each thread has a window of fillers in the map: it removes one and inserts one.
        let base = FILLERS + ((thread as u64) << 32);
        let key = base + rng.below(self.fillers * 2);
        let other = if key >= base + self.fillers { key - self.fillers } else { key + self.fillers };
        if self.map.remove(&key).is_some() {
            assert_eq!(self.map.insert(other, M::Value::encode(other)).map(|_| ()), None);
        }
    }
}

fn decoded<V: Coded>(value: Option<V>) -> Seen {
    value.map(|value| value.decode()).transpose()
}

impl<M: AnyMap<Key = u64, Value: Coded, Hasher = Seeded>> Subject for Koel<M> {
    fn get(&self, key: u64) -> Seen {
        decoded(self.map.get(&key))
    }

    fn get_many(&self, keys: &[u64]) -> Vec<Seen> {
        self.map.get_many(keys).into_iter().map(decoded).collect()
    }

    fn contains_key(&self, key: u64) -> bool {
        self.map.contains_key(&key)
    }

    fn may_contain(&self, key: u64) -> bool {
        self.map.may_contain(&key)
    }

    fn insert(&self, key: u64, value: u64) -> Saw {
        saw(decoded(self.map.insert(key, M::Value::encode(value))))
    }

    fn try_insert(&self, key: u64, value: u64) -> Seen {
        match self.map.try_insert(key, M::Value::encode(value)) {
            Ok(new) => new.decode().map(|_| None),
            Err(occupied) => decoded(Some(occupied.current)),
        }
    }

    fn remove(&self, key: u64) -> Seen {
        decoded(self.map.remove(&key))
    }

    fn compute(&self, key: u64, value: u64, remove: bool) -> Seen {
        if !remove && value % 2 == 0 {
            let mut seen = None;
            self.map.update(key, |old| {
                seen = Some(old);
                M::Value::encode(value)
            });
            return decoded(seen);
        }
        let mut seen = None;
        self.map.compute(key, |old| {
            seen = old;
            match (&seen, remove) {
                (None, _) => Operation::Abort(()),
                (Some(_), true) => Operation::Remove,
                (Some(_), false) => Operation::Insert(M::Value::encode(value)),
            }
        });
        decoded(seen)
    }

    fn update_or_insert(&self, key: u64, value: u64) -> Seen {
        let mut seen = None;
        let update = |old| {
            seen = Some(old);
            M::Value::encode(value)
        };
        self.map.update_or_insert_with(key, update, || M::Value::encode(value));
        decoded(seen)
    }

    fn disturb(&self, rng: &mut Rng, thread: usize, _step: usize) {
        match self.disturbance {
            Disturbance::Nothing => {}
            Disturbance::GrowAndShrink => self.grow_and_shrink(rng),
            Disturbance::Displace => self.displace(rng, thread),
        }
    }
}

/// Records and checks many histories, each on a new map that `make` makes.
fn all_histories_are_linearizable<S: Subject>(name: &str, operations: usize, make: impl Fn(Plan) -> S) {
    for_all_plans(name, operations, |plan| run(&make(plan), plan));
}

/// Runs all plans.
fn for_all_plans<B: Display>(name: &str, operations: usize, run: impl Fn(Plan) -> Result<usize, B>) {
    let (seed, histories) = (seed(), env_number("KOEL_HISTORIES", 9) as u64);
    for history in 0..histories {
        let plan = Plan {
            threads: 2 + (history % 3) as usize,
            operations,
            keys: [3, 8, 24][history as usize / 3 % 3],
            seed: (seed + history) & 0xF_FFFF,
        };
        if let Err(broken) = run(plan) {
            panic!("{name}, history {history} ({plan:?}, KOEL_SEED={seed}): {broken}");
        }
    }
}

fn hot_keys<M: AnyMap<Key = u64, Value: Coded, Hasher = Seeded>>() {
    for config in growing_configs() {
        all_histories_are_linearizable(M::NAME, 10_000, |plan| {
            Koel::<M>::new(config, plan.seed, Disturbance::Nothing)
        });
    }
}

fn growth<M: AnyMap<Key = u64, Value: Coded, Hasher = Seeded>>() {
    for config in growing_configs() {
        all_histories_are_linearizable(M::NAME, 10_000, |plan| {
            Koel::<M>::new(config, plan.seed, Disturbance::GrowAndShrink)
        });
    }
}

fn displacement<M: AnyMap<Key = u64, Value: Coded, Hasher = Seeded>>() {
    for (entries, segments) in [(1000, 1 << 20), (1000, 64), (100, 1 << 20), (200, 8)] {
        let config = Config::fixed(entries).segments_of(segments);
        let make = |plan: Plan| Koel::<M>::new(config, plan.seed, Disturbance::Displace).fill(entries, plan);
        all_histories_are_linearizable(M::NAME, 10_000, make);
    }
}

/// Two to four threads, a dozen operations, one key: here Wing and Gong's search is the judge.
fn short_histories<M: AnyMap<Key = u64, Value: Coded, Hasher = Seeded>>() {
    let seed = seed();
    for history in 0..env_number("KOEL_HISTORIES", 9) as u64 * 50 {
        let plan = Plan {
            threads: 2 + (history % 3) as usize,
            operations: 5,
            keys: 1,
            seed: (seed + history) & 0xF_FFFF,
        };
        let map = Koel::<M>::new(Config::GROWING, plan.seed, Disturbance::Nothing);
        for (initial, events) in record(&map, plan) {
            assert!(checker::search(Register::Keeps, initial, &events), "{} {plan:?}: {events:?}", M::NAME);
        }
    }
}

macro_rules! laws {
    ($($law:ident => $hash_map:ident, $inline_map:ident, $long_values:ident;)*) => {$(
        #[test]
        fn $hash_map() {
            $law::<HashMap<u64, u64, Seeded>>();
        }

        #[test]
        fn $inline_map() {
            $law::<InlineMap<u64, u64, Seeded>>();
        }

        #[test]
        fn $long_values() {
            $law::<InlineMap<u64, [u64; 3], Seeded>>();
        }
    )*};
}

laws! {
    hot_keys => hash_map_is_linearizable, inline_map_is_linearizable, inline_map_of_long_values_is_linearizable;
    growth => hash_map_is_linearizable_in_growth, inline_map_is_linearizable_in_growth,
        inline_map_of_long_values_is_linearizable_in_growth;
    displacement => hash_map_is_linearizable_in_displacement, inline_map_is_linearizable_in_displacement,
        inline_map_of_long_values_is_linearizable_in_displacement;
    short_histories => hash_map_is_linearizable_in_short_histories, inline_map_is_linearizable_in_short_histories,
        inline_map_of_long_values_is_linearizable_in_short_histories;
}

#[test]
fn displacing_displaces() {
    let plan = Plan { threads: 2, operations: 5000, keys: 8, seed: 1 };
    let config = Config::fixed(1000);
    let map = Koel::<InlineMap<u64, u64, Seeded>>::new(config, 1, Disturbance::Displace).fill(1000, plan);
    let before = map.map.stats().displacements;
    run(&map, plan).unwrap_or_else(|broken| panic!("{broken}"));
    let displacements = map.map.stats().displacements - before;
    assert!(displacements > 500, "{displacements} displacements");
}
