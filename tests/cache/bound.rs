//! The bound, watched by a reader while others write: it holds at every moment, not only at the end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use koel::{Cache, CacheBuilder, Policy};

use crate::common::{Rng, env_number, on_threads, seed};
use crate::{POLICIES, SEVERAL_SEGMENTS, weighing_values};

/// How much a cache may hold, as noted by the thread that changes it, and how often that has changed.
struct Allowed {
    most: AtomicU64,
    changes: AtomicU64,
}

impl Allowed {
    fn set(&self, most: u64) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.most.store(most, Ordering::SeqCst);
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Checks once. Draws no conclusion if the allowed amount has changed meanwhile.
    fn check(&self, cache: &Cache<u64, u64>, by_entries: bool) {
        let before = self.changes.load(Ordering::SeqCst);
        let most = self.most.load(Ordering::SeqCst);
        let weight = cache.weight();
        let len = if by_entries { cache.len() as u64 } else { 0 };
        let same = before % 2 == 0 && self.changes.load(Ordering::SeqCst) == before;
        assert!(!same || weight <= most, "weight {weight} of {most}");
        assert!(!same || len <= most, "{len} entries of {most}");
    }
}

/// Ends the others' loops when the last writer is done, or one has failed.
struct Ends<'a>(&'a AtomicU64, &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if self.0.fetch_sub(1, Ordering::SeqCst) == 1 || std::thread::panicking() {
            self.1.store(true, Ordering::SeqCst);
        }
    }
}

/// A kind of cache, and what may change in it.
#[derive(Clone, Copy)]
struct Scene {
    capacity: u64,
    /// Weights are random, and now and then as great as possible.
    weighed: bool,
    resized: bool,
}

fn write(cache: &Cache<u64, u64>, rng: &mut Rng, scene: Scene) {
    let key = rng.below(2 * scene.capacity.min(2000) + 2);
    let weight = match rng.below(40) {
        _ if !scene.weighed => 1,
        0 => scene.capacity,
        1 => scene.capacity / 2,
        _ => rng.below(scene.capacity / 16 + 2),
    };
    match rng.below(20) {
        0..12 => {
            // Too heavy now and then, while the cache is smaller.
            let _ = cache.insert(key, weight);
        }
        12..15 => drop(cache.get(&key)),
        15..19 => drop(cache.remove(&key)),
        _ if rng.one_in(50) => cache.clear(),
        _ => cache.purge(),
    }
}

/// Two threads write, one looks, and one changes the capacity or looks as well.
fn bound_holds(scene: Scene, builder: CacheBuilder<u64, u64>, policy: Policy) {
    let cache = builder.policy(policy).build();
    let steps = env_number("KOEL_CACHE_WRITES", 6000);
    let allowed = Allowed { most: AtomicU64::new(scene.capacity), changes: AtomicU64::new(0) };
    let writers = AtomicU64::new(2);
    let stop = AtomicBool::new(false);
    let seed = seed();
    let looks = on_threads(4, |thread| {
        let mut rng = Rng::new(seed ^ (thread as u64) << 32 ^ scene.capacity);
        let mut looks = 0_usize;
        match thread {
            0 | 1 => {
                let _ends = Ends(&writers, &stop);
                for _ in 0..steps {
                    write(&cache, &mut rng, scene);
                }
            }
            2 if scene.resized => {
                let mut old = scene.capacity;
                while !stop.load(Ordering::SeqCst) {
                    let new = 1 + rng.below(scene.capacity);
                    allowed.set(old.max(new));
                    cache.set_capacity(new);
                    allowed.set(new);
                    old = new;
                    std::thread::yield_now();
                }
            }
            // At least once, however threads are scheduled.
            _ => loop {
                allowed.check(&cache, !scene.weighed);
                looks += 1;
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                // There may be as many processors as writers: these wait for a time slice otherwise, whenever they yield.
                if looks % 16 == 0 {
                    std::thread::yield_now();
                }
            },
        }
        looks
    });
    assert!(looks[3] > 0);
    allowed.check(&cache, !scene.weighed);
    // All of it can still be used.
    cache.set_capacity(scene.capacity);
    cache.clear();
    cache.insert(1, scene.capacity).unwrap();
    assert_eq!(cache.weight(), if scene.weighed { scene.capacity } else { 1 });
}

fn in_all_policies(scene: Scene, builder: impl Fn() -> CacheBuilder<u64, u64>) {
    POLICIES.into_iter().for_each(|policy| bound_holds(scene, builder(), policy));
}

#[test]
fn bound_holds_in_a_cache_of_entries() {
    let scene = Scene { capacity: 2100, weighed: false, resized: false };
    in_all_policies(scene, || Cache::builder().max_entries(2100));
}

/// Some segments have no quota except what they borrow.
#[test]
fn bound_holds_in_a_tiny_cache_of_several_segments() {
    for capacity in [1, 3, 6] {
        let builder = || Cache::builder().max_weight(capacity).estimated_entries(SEVERAL_SEGMENTS);
        in_all_policies(Scene { capacity, weighed: false, resized: false }, builder);
    }
}

#[test]
fn bound_holds_while_heavy_entries_borrow() {
    for capacity in [40, 1000, u64::MAX] {
        in_all_policies(Scene { capacity, weighed: true, resized: false }, || weighing_values(capacity));
    }
}

#[test]
fn bound_holds_while_the_capacity_changes() {
    for weighed in [false, true] {
        let builder = || {
            let builder = Cache::builder().max_weight(300).estimated_entries(SEVERAL_SEGMENTS);
            if weighed { builder.weigher(|_, value| *value) } else { builder }
        };
        in_all_policies(Scene { capacity: 300, weighed, resized: true }, builder);
    }
}
