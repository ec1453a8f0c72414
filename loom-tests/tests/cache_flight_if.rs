//! Single flight of values that are stale to their callers [F9]: one caller loads the value anew and the others wait, nobody
//! gets a value that is too old for it, and what is written meanwhile stays.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::LoadOnce;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;
use loom_tests::model_with_preemptions;

/// A cache whose only key has the value 0, what its source has, and how often the key was loaded.
struct Scene {
    cache: LoadOnce<u64, u64>,
    source: AtomicU64,
    loads: AtomicUsize,
}

impl Scene {
    fn new() -> Arc<Self> {
        let cache = LoadOnce::new();
        cache.insert(1, 0);
        Arc::new(Scene { cache, source: AtomicU64::new(0), loads: AtomicUsize::new(0) })
    }

    /// Loads `value` if 0 is there. Nothing but the cache may order the loads.
    fn get(&self, value: u64) -> u64 {
        let load = || {
            self.loads.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ()>(value)
        };
        self.cache.try_get_or_insert_if(&1, load, |old| *old == 0).unwrap()
    }

    /// Loads what the source has, if less than `least` is there.
    fn get_at_least(&self, least: u64) -> u64 {
        let load = || Ok::<_, ()>(self.source.load(Ordering::Relaxed));
        self.cache.try_get_or_insert_if(&1, load, |old| *old < least).unwrap()
    }

    fn end(&self) -> (usize, usize) {
        (self.loads.load(Ordering::Relaxed), self.cache.loads())
    }
}

/// Runs in another thread.
fn spawn(scene: &Arc<Scene>, f: impl FnOnce(&Scene) + 'static) -> thread::JoinHandle<()> {
    let scene = Arc::clone(scene);
    thread::spawn(move || f(&scene))
}

#[test]
fn of_two_who_find_a_value_stale_one_loads_it_anew() {
    loom::model(|| {
        let scene = Scene::new();
        let other = spawn(&scene, |scene| assert!(matches!(scene.get(7), 7 | 8)));
        let value = scene.get(8);
        assert!(matches!(value, 7 | 8));
        other.join().unwrap();
        assert_eq!((scene.end(), scene.cache.get(&1)), ((1, 0), Some(value)));
    });
}

/// If nobody is woken, the model is stuck, which loom reports. The old value stays until one has loaded.
#[test]
fn who_waits_for_one_who_fails_to_load_anew_loads() {
    loom::model(|| {
        let scene = Scene::new();
        let other = spawn(&scene, |scene| {
            let failed = scene.cache.try_get_or_insert_if(&1, || Err(()), |old| *old == 0);
            assert!(matches!(failed, Ok(7) | Err(_)));
            assert!(matches!(scene.cache.get(&1), Some(0 | 7)));
        });
        assert_eq!(scene.get(7), 7);
        other.join().unwrap();
        assert_eq!((scene.end(), scene.cache.get(&1)), ((1, 0), Some(7)));
    });
}

/// The source has changed before the caller asks, and the cache is not told: the caller may wait for a load that began before.
#[test]
fn who_waits_does_not_get_what_is_too_old_for_him() {
    loom::model(|| {
        let scene = Scene::new();
        scene.cache.remove(&1);
        let other = spawn(&scene, |scene| assert!(matches!(scene.get_at_least(0), 0 | 1)));
        scene.source.store(1, Ordering::Relaxed);
        assert_eq!(scene.get_at_least(1), 1);
        other.join().unwrap();
        assert_eq!((scene.cache.get(&1), scene.cache.loads()), (Some(1), 0));
    });
}

/// Two preemptions: the writer marks what is being loaded, which is nothing yet; the loader finds 0, and loads; the writer
/// inserts; and the loader keeps.
#[test]
fn what_was_inserted_is_not_replaced_by_what_was_loaded_anew() {
    loom::model(|| {
        let scene = Scene::new();
        let loader = spawn(&scene, |scene| assert!(matches!(scene.get(7), 7 | 8)));
        scene.cache.insert(1, 8);
        assert_eq!(scene.cache.get(&1), Some(8));
        loader.join().unwrap();
        assert_eq!((scene.cache.get(&1), scene.cache.loads()), (Some(8), 0));
    });
}

/// The source changes, and then `removal` tells the cache.
fn what_was_loaded_anew_before_is_not_kept_after(removal: fn(&Scene)) {
    model_with_preemptions(3, move || {
        let scene = Scene::new();
        let loader = spawn(&scene, |scene| assert!(matches!(scene.get_at_least(1), 0 | 1)));
        removal(&scene);
        assert!(matches!(scene.cache.get(&1), None | Some(1)));
        loader.join().unwrap();
        assert!(matches!(scene.cache.get(&1), None | Some(1)));
    });
}

#[test]
fn what_was_loaded_anew_before_a_removal_is_not_kept_after_it() {
    what_was_loaded_anew_before_is_not_kept_after(|scene| {
        scene.source.store(1, Ordering::Relaxed);
        scene.cache.remove(&1);
    });
}

/// The source changes while the condition decides: a loader that began before that has read what the source had.
#[test]
fn what_was_loaded_anew_before_a_condition_has_decided_is_not_kept_after_it() {
    what_was_loaded_anew_before_is_not_kept_after(|scene| {
        scene.cache.remove_if(&1, |_| {
            scene.source.store(1, Ordering::Relaxed);
            true
        });
    });
}
