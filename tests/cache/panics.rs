//! A panic at the n-th call of each kind of user code, for every n: the cache stays intact. Entries that have left were
//! reported, all others are there, everything is dropped once, and the cache goes on working.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use koel::{Cache, CacheDump, ManualClock, Operation, Policy};

use crate::POLICIES;
use crate::common::fuse::{Fragile, Fused, Key, Site, arm, disarm, tick};
use crate::common::{Ledger, catch};

/// The number of an entry, which is unique.
type Number = u64;

type Subject = Cache<Key, Fragile, Fused>;

/// A cache whose user code has fuses, and what is known about it.
struct Scene {
    cache: Subject,
    ledger: Arc<Ledger>,
    told: Arc<Mutex<Vec<(u64, Number)>>>,
    clock: ManualClock,
}

/// How many entries a scene has: the first half have expired.
const ENTRIES: u64 = 12;
/// The weight of each entry whose number is below 1000; others weigh their number.
const WEIGHT: u64 = 10;
const CAPACITY: u64 = 2 * ENTRIES * WEIGHT;
/// The number of the entry that is inserted.
const NEW: Number = 500;

fn weight(number: Number) -> u64 {
    if number < 1000 { WEIGHT } else { CAPACITY }
}

impl Scene {
    fn new(policy: Policy, segments: bool) -> Self {
        let told: Arc<Mutex<Vec<(u64, Number)>>> = Arc::default();
        let (ear, clock) = (Arc::clone(&told), ManualClock::new());
        let mut builder = Cache::builder().max_weight(CAPACITY).policy(policy).clock(clock.clone());
        if segments {
            builder = builder.estimated_entries(crate::SEVERAL_SEGMENTS);
        }
        let cache = builder
            .weigher(|_, value: &Fragile| {
                tick(Site::Weigher);
                weight(value.0.n)
            })
            .expiry(|_, _| {
                tick(Site::Expiry);
                Some(Duration::from_secs(10))
            })
            .on_removal(move |key: &Key, value: &Fragile, _| {
                ear.lock().unwrap().push((key.0, value.0.n));
                tick(Site::Listener);
            })
            .hasher(Fused::new())
            .build();
        let scene = Scene { cache, ledger: Ledger::new(), told, clock };
        for key in 0..ENTRIES {
            if key == ENTRIES / 2 {
                scene.clock.advance(Duration::from_secs(6));
            }
            scene.cache.insert(Key(key), scene.value(key)).unwrap();
        }
        // Segments evict entries for which they have no room; some are left.
        scene.clock.advance(Duration::from_secs(6));
        scene
    }

    fn value(&self, number: Number) -> Fragile {
        Fragile(self.ledger.value(number))
    }

    /// # Panics
    ///
    /// If the cache is not intact.
    fn check(&self, what: &str) {
        let cache = &self.cache;
        let told = self.told.lock().unwrap().clone();
        let departed: BTreeSet<_> = told.iter().copied().collect();
        assert_eq!(departed.len(), told.len(), "{what}: told twice: {told:?}");
        let alive: BTreeSet<_> = cache.pin().iter().map(|(key, value)| (key.0, value.0.n)).collect();
        assert!(alive.is_disjoint(&departed), "{what}: told of what is there");
        let of_old = |(key, number): (u64, Number)| key == number && key < ENTRIES;
        let expired: BTreeSet<_> = (0..ENTRIES / 2).map(|key| (key, key)).collect();
        let expired: Vec<_> = expired.difference(&departed).copied().collect();
        for key in ENTRIES / 2..ENTRIES {
            let entry = (key, key);
            assert!(alive.contains(&entry) != departed.contains(&entry), "{what}: {key} is lost");
        }
        assert!(alive.iter().chain(&departed).all(|&entry| of_old(entry) || entry.1 >= NEW));
        let weight: u64 = alive.iter().chain(&expired).map(|(_, number)| weight(*number)).sum();
        assert_eq!((cache.weight(), cache.len()), (weight, alive.len() + expired.len()), "{what}");
        assert!(cache.weight() <= cache.capacity(), "{what}: {cache:?}");
    }

    /// Checks that locks are free, and everything works.
    fn works(&self, what: &str) {
        let cache = &self.cache;
        cache.set_capacity(CAPACITY);
        // If these keys were still being loaded, this would wait.
        for key in [1, 9, 100, 101] {
            drop(cache.remove(&Key(key)));
            let load = || Ok::<_, ()>(self.value(key + 600));
            let loaded = cache.try_get_or_insert_with_timeout(Key(key), Duration::ZERO, load);
            assert_eq!(loaded.map(|value| value.0.n), Ok(key + 600), "{what}");
        }
        for key in 0..40 {
            cache.insert(Key(key), self.value(key + 600)).unwrap();
            assert_eq!(cache.get(&Key(key)).map(|value| value.0.n), Some(key + 600), "{what}");
        }
        let heavy = CAPACITY * 10;
        // It may be rejected as long as it meets entries that were hit.
        for _ in 0..2 * 40 {
            cache.insert(Key(77), self.value(heavy)).unwrap();
        }
        assert_eq!((cache.len(), cache.weight()), (1, CAPACITY), "{what}");
        cache.clear();
        assert_eq!((cache.len(), cache.weight()), (0, 0), "{what}");
    }
}

type Verb = (&'static str, fn(&Scene));

const VERBS: &[Verb] = &[
    ("insert", |scene| scene.cache.insert(Key(100), scene.value(NEW)).unwrap()),
    ("insert over", |scene| scene.cache.insert(Key(9), scene.value(NEW)).unwrap()),
    ("insert over what has expired", |scene| scene.cache.insert(Key(1), scene.value(NEW)).unwrap()),
    ("insert what takes all", |scene| scene.cache.insert(Key(100), scene.value(1000)).unwrap()),
    ("insert what takes all, over", |scene| scene.cache.insert(Key(9), scene.value(1000)).unwrap()),
    ("insert until it is full", |scene| {
        (0..30).for_each(|i| scene.cache.insert(Key(200 + i), scene.value(NEW + i)).unwrap());
    }),
    ("get", |scene| drop(scene.cache.get(&Key(9)))),
    ("get what has expired", |scene| drop(scene.cache.get(&Key(1)))),
    ("get_ref", |scene| {
        let _ = scene.cache.pin().get_ref(&Key(9)).map(|value| value.0.n);
    }),
    ("peek", |scene| drop(scene.cache.peek(&Key(9)))),
    ("contains_key", |scene| {
        let _ = scene.cache.contains_key(&Key(9));
    }),
    ("remove", |scene| drop(scene.cache.remove(&Key(9)))),
    ("remove what has expired", |scene| drop(scene.cache.remove(&Key(1)))),
    ("remove_if", |scene| {
        drop(scene.cache.remove_if(&Key(9), |_, _| {
            tick(Site::Closure);
            true
        }));
    }),
    ("retain", |scene| {
        scene.cache.retain(|key, _| {
            tick(Site::Closure);
            key.0 % 2 == 0
        });
    }),
    ("clear", |scene| scene.cache.clear()),
    ("purge", |scene| scene.cache.purge()),
    ("iter", |scene| assert!(scene.cache.iter().count() > 0)),
    ("dump", |scene| assert!(!scene.cache.dump().is_empty())),
    ("load", |scene| assert!(scene.cache.load(others(scene, &[100, 101, 102])).is_empty())),
    ("load over what has expired", |scene| assert!(scene.cache.load(others(scene, &[1, 100])).is_empty())),
    ("load over what is there", |scene| assert_eq!(scene.cache.load(others(scene, &[9, 10])).len(), 2)),
    ("set_capacity", |scene| scene.cache.set_capacity(3 * WEIGHT)),
    ("compute to insert", |scene| compute(scene, 100, |scene| Operation::Insert(scene.value(NEW)))),
    ("compute to replace", |scene| compute(scene, 9, |scene| Operation::Insert(scene.value(NEW)))),
    ("compute what takes all", |scene| compute(scene, 9, |scene| Operation::Insert(scene.value(1000)))),
    ("compute over what has expired", |scene| compute(scene, 1, |scene| Operation::Insert(scene.value(NEW)))),
    ("compute to remove", |scene| compute(scene, 9, |_| Operation::Remove)),
    ("compute to leave", |scene| compute(scene, 9, |_| Operation::Abort(()))),
    ("update", |scene| drop(scene.cache.update(Key(9), |_| made(scene)))),
    ("update what has expired", |scene| drop(scene.cache.update(Key(1), |_| made(scene)))),
    ("update_or_insert to insert", |scene| {
        drop(scene.cache.update_or_insert(Key(100), |_| unreachable!(), scene.value(NEW)));
    }),
    ("update_or_insert to replace", |scene| {
        drop(scene.cache.update_or_insert(Key(9), |_| made(scene), scene.value(NEW + 1)));
    }),
    ("update_or_insert_with", |scene| {
        drop(scene.cache.update_or_insert_with(Key(1), |_| unreachable!(), || made(scene)));
    }),
    ("try_insert", |scene| drop(scene.cache.try_insert(Key(100), scene.value(NEW)))),
    ("try_insert over", |scene| drop(scene.cache.try_insert(Key(9), scene.value(NEW)))),
    ("try_insert over what has expired", |scene| drop(scene.cache.try_insert(Key(1), scene.value(NEW)))),
    ("set_time_left", |scene| {
        assert!(scene.cache.set_time_left(&Key(9), Duration::from_secs(5)));
    }),
    ("get_many", |scene| {
        let mut out = [const { None }; 3];
        scene.cache.get_many(&[Key(9), Key(1), Key(100)], &mut out);
    }),
    ("get_or_insert_with", |scene| drop(scene.cache.get_or_insert_with(Key(100), || made(scene)))),
    ("get_or_insert_with of what is there", |scene| {
        drop(scene.cache.get_or_insert_with(Key(9), || unreachable!()));
    }),
    ("get_or_insert_with of what has expired", |scene| {
        drop(scene.cache.get_or_insert_with(Key(1), || made(scene)));
    }),
    ("get_or_insert_with of what takes all", |scene| {
        drop(scene.cache.get_or_insert_with(Key(100), || {
            tick(Site::Closure);
            scene.value(1000)
        }));
    }),
    ("get_or_insert_with_ref", |scene| {
        drop(scene.cache.get_or_insert_with_ref(&Key(100), || made(scene)));
    }),
    ("try_get_or_insert_with_shared", |scene| {
        drop(scene.cache.try_get_or_insert_with_shared(Key(100), || Ok::<_, ()>(made(scene))));
    }),
    ("get_or_insert_with_if what is there is stale", |scene| {
        let is_stale = |_: &Fragile| {
            tick(Site::Closure);
            true
        };
        drop(scene.cache.get_or_insert_with_if(Key(9), || made(scene), is_stale));
    }),
    ("get_or_reserve", |scene| {
        drop(scene.cache.get_or_reserve(Key(100)).unwrap_err().insert(made(scene)));
    }),
    ("get_or_reserve of what is there", |scene| drop(scene.cache.get_or_reserve(Key(9)).unwrap())),
    ("get_or_reserve of what has expired", |scene| {
        drop(scene.cache.get_or_reserve(Key(1)).unwrap_err().insert(scene.value(1000)));
    }),
    ("get_or_reserve in vain", |scene| drop(scene.cache.get_or_reserve_ref(&Key(100)).unwrap_err())),
    ("get_many_or_insert_with", |scene| {
        let mut out = [const { None }; 4];
        scene.cache.get_many_or_insert_with(&[9, 1, 100, 101].map(Key), &mut out, |keys| {
            tick(Site::Closure);
            (NEW..).zip(keys).map(|(number, key)| (key, scene.value(number))).collect::<Vec<_>>()
        });
    }),
];

fn made(scene: &Scene) -> Fragile {
    tick(Site::Closure);
    scene.value(NEW)
}

/// The dump of another cache.
fn others(scene: &Scene, keys: &[u64]) -> CacheDump<Key, Fragile> {
    let cache: Cache<Key, Fragile> = Cache::new(10);
    for (number, &key) in (NEW..).zip(keys) {
        cache.insert(Key(key), scene.value(number)).unwrap();
    }
    let dump = cache.dump();
    // Here, as a value that is being returned leaks when a local's drop panics.
    drop(cache);
    dump
}

fn compute(scene: &Scene, key: u64, what: fn(&Scene) -> Operation<Fragile, ()>) {
    let answer = scene.cache.compute(Key(key), |_| {
        tick(Site::Closure);
        what(scene)
    });
    drop(answer.map_err(drop));
}

const SITES: [Site; 9] = [
    Site::Hash,
    Site::Eq,
    Site::BuildHasher,
    Site::Clone,
    Site::Drop,
    Site::Closure,
    Site::Weigher,
    Site::Expiry,
    Site::Listener,
];

/// Panics in each call of a kind of user code in an operation; returns how many calls there were.
fn panics_in(site: Site, (name, verb): Verb, policy: Policy, segments: bool) -> usize {
    for n in 0.. {
        let scene = Scene::new(policy, segments);
        let what = format!("{name}, {site:?} {n}, {policy:?}");
        arm(site, n);
        let result = catch(|| verb(&scene));
        let blown = disarm();
        match result {
            Ok(()) => assert!(!blown || site == Site::Drop, "{what}: a panic came to nothing"),
            Err(message) => assert_eq!(message, format!("fuse: {site:?}"), "{what}"),
        }
        scene.check(&what);
        scene.works(&what);
        let Scene { cache, ledger, .. } = scene;
        drop(cache);
        ledger.assert_settled(&what);
        if !blown {
            return n;
        }
    }
    unreachable!()
}

#[test]
fn cache_stays_whole_whatever_panics() {
    for site in SITES {
        let mut calls = 0;
        for &verb in VERBS {
            for policy in POLICIES {
                calls += panics_in(site, verb, policy, false) + panics_in(site, verb, policy, true);
            }
        }
        assert!(calls > 0, "{site:?} was never called");
    }
}

/// The only place where entries are dropped and not reported.
#[test]
fn dropping_a_cache_drops_each_entry_whatever_panics() {
    for n in 0..=2 * ENTRIES as usize {
        let Scene { cache, ledger, told, .. } = Scene::new(Policy::default(), false);
        let before = told.lock().unwrap().len();
        arm(Site::Drop, n);
        let result = catch(|| drop(cache));
        let blown = disarm();
        assert!(result.is_ok() || blown);
        assert_eq!(told.lock().unwrap().len(), before);
        ledger.assert_settled("a dropped cache");
        if !blown {
            return assert!(n > 0);
        }
    }
    panic!("there are not so many entries");
}
