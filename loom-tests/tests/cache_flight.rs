//! Single flight [F1]..[F8], [F10]: one caller loads, nobody sleeps forever, and what was loaded before a write is not kept
//! after it.
#![cfg(loom)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use koel::model::LoadOnce;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;
use loom_tests::model_with_preemptions;

type Cache = LoadOnce<u64, u64>;

/// A cache, and how often its only key was loaded.
struct Scene {
    cache: Cache,
    loads: AtomicUsize,
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Scene { cache: Cache::new(), loads: AtomicUsize::new(0) })
    }

    /// Loads `value` unless it is there. Nothing but the cache may order the loads.
    fn get(&self, value: u64) -> u64 {
        self.cache.get_or_insert_with(&1, || {
            self.loads.fetch_add(1, Ordering::Relaxed);
            value
        })
    }

    /// Reserves the key, if it is not there, and puts `value`.
    fn reserve(&self, value: u64) -> u64 {
        let load = || {
            self.loads.fetch_add(1, Ordering::Relaxed);
            Some(value)
        };
        self.cache.reserve(&1, load).unwrap().expect("it is put")
    }

    /// Reserves the key, if it is not there, and gives the reservation up.
    fn reserve_in_vain(&self) {
        assert!(matches!(self.cache.reserve(&1, || None), Ok(None | Some(7))));
    }

    /// Gets the key, with a loader that fails.
    fn fail(&self) {
        let _ = self.cache.try_get_or_insert_with(&1, || Err(()));
    }

    /// Gets the key, with a loader that fails, and an error that is shared with callers that wait on the same terms.
    fn fail_together(&self) {
        let _ = self.cache.try_get_or_insert_shared(&1, || Err(()));
    }

    /// A task that begins to get the key and is dropped when it would wait.
    fn give_up(&self) {
        let load = async {
            self.loads.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ()>(9)
        };
        let task = pin!(self.cache.try_get_or_insert_async(&1, load));
        if let Poll::Ready(value) = task.poll(&mut Context::from_waker(Waker::noop())) {
            assert!(matches!(value, Ok(7..=9)));
        }
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

/// Loads what the source has, in another thread.
fn load_from(scene: &Arc<Scene>, source: &Arc<AtomicU64>) -> thread::JoinHandle<()> {
    let source = Arc::clone(source);
    spawn(scene, move |scene| {
        scene.cache.get_or_insert_with(&1, || source.load(Ordering::Relaxed));
    })
}

#[test]
fn of_two_loaders_exactly_one_loads() {
    loom::model(|| {
        let scene = Scene::new();
        let other = spawn(&scene, |scene| assert!(matches!(scene.get(7), 7 | 8)));
        let value = scene.get(8);
        other.join().unwrap();
        assert_eq!((scene.end(), scene.cache.get(&1)), ((1, 0), Some(value)));
    });
}

#[test]
fn of_three_loaders_exactly_one_loads() {
    model_with_preemptions(1, || {
        let scene = Scene::new();
        let others =
            [7, 8].map(|value| spawn(&scene, move |scene| assert!(matches!(scene.get(value), 7..=9))));
        scene.get(9);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(scene.end(), (1, 0));
    });
}

#[test]
fn of_one_who_reserves_a_key_and_one_who_loads_it_exactly_one_loads() {
    loom::model(|| {
        let scene = Scene::new();
        let other = spawn(&scene, |scene| assert!(matches!(scene.get(7), 7 | 8)));
        let value = scene.reserve(8);
        other.join().unwrap();
        assert_eq!((scene.end(), scene.cache.get(&1)), ((1, 0), Some(value)));
    });
}

/// Each waits for the other, or leads after it.
#[test]
fn who_waits_for_a_key_that_is_reserved_in_vain_reserves_it() {
    loom::model(|| {
        let scene = Scene::new();
        let other = spawn(&scene, Scene::reserve_in_vain);
        assert_eq!(scene.reserve(7), 7);
        other.join().unwrap();
        assert_eq!((scene.end(), scene.cache.get(&1)), ((1, 0), Some(7)));
    });
}

/// If nobody is woken, the model is stuck, which loom reports.
#[test]
fn who_waits_for_a_leader_that_fails_leads() {
    loom::model(|| {
        let scene = Scene::new();
        let other = spawn(&scene, Scene::fail);
        assert_eq!(scene.get(7), 7);
        other.join().unwrap();
        assert_eq!((scene.end(), scene.cache.get(&1)), ((1, 0), Some(7)));
    });
}

/// Of two callers that share their errors and one that does not, each may lead, and wait for each.
#[test]
fn who_shares_an_error_leaves_nobody_asleep() {
    model_with_preemptions(1, || {
        let scene = Scene::new();
        let others = [spawn(&scene, Scene::fail_together), spawn(&scene, Scene::fail_together)];
        assert_eq!(scene.get(7), 7);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(scene.end(), (1, 0));
    });
}

/// Three preemptions: one leads, and two wait; it fails, and the first of the two leads and fails as well.
#[test]
fn nobody_is_forgotten_when_a_leader_fails() {
    model_with_preemptions(3, || {
        let scene = Scene::new();
        let others = [spawn(&scene, Scene::fail), spawn(&scene, Scene::fail)];
        assert_eq!(scene.get(7), 7);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(scene.end(), (1, 0));
    });
}

/// A leader fails, and the follower that is woken to take over may be dropped instead.
#[test]
fn a_follower_that_is_dropped_passes_the_lead_on() {
    model_with_preemptions(3, || {
        let scene = Scene::new();
        let others = [spawn(&scene, Scene::fail), spawn(&scene, Scene::give_up)];
        assert!(matches!(scene.get(7), 7 | 9));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(scene.end(), (1, 0));
    });
}

/// The source is no part of the cache, and orders nothing: its writer removes the key, and from then on the cache does
/// not have the old value.
///
/// Three preemptions: the loader reads, the writer begins, the loader keeps, the writer ends.
fn what_was_loaded_before_is_not_kept_after(removal: fn(&Cache)) {
    model_with_preemptions(3, move || {
        let scene = Scene::new();
        let source = Arc::new(AtomicU64::new(0));
        let loader = load_from(&scene, &source);
        source.store(1, Ordering::Relaxed);
        removal(&scene.cache);
        assert_ne!(scene.cache.get(&1), Some(0));
        loader.join().unwrap();
        assert_ne!(scene.cache.get(&1), Some(0));
    });
}

#[test]
fn what_was_loaded_before_a_removal_is_not_kept_after_it() {
    what_was_loaded_before_is_not_kept_after(|cache| {
        cache.remove(&1);
    });
}

#[test]
fn what_was_loaded_before_all_were_removed_is_not_kept_after_it() {
    what_was_loaded_before_is_not_kept_after(Cache::clear);
}

#[test]
fn who_comes_after_a_removal_does_not_get_what_was_loaded_before() {
    loom::model(|| {
        let scene = Scene::new();
        let source = Arc::new(AtomicU64::new(0));
        let loader = load_from(&scene, &source);
        source.store(1, Ordering::Relaxed);
        scene.cache.remove(&1);
        assert_eq!(scene.cache.get_or_insert_with(&1, || 1), 1);
        loader.join().unwrap();
    });
}

/// Two preemptions: a removal has marked what is being loaded, which is nothing yet; the key is loaded and put; it is taken
/// out, and asked for, before the load has ended.
#[test]
fn who_comes_after_a_removal_does_not_get_what_that_has_taken_out() {
    loom::model(|| {
        let scene = Scene::new();
        let loader = spawn(&scene, |scene| assert!(matches!(scene.get(7), 7 | 8)));
        let taken = scene.cache.remove(&1);
        let got = scene.get(8);
        assert!(taken.is_none() || got == 8);
        loader.join().unwrap();
    });
}

/// Three preemptions: the loader misses; another thread inserts, and begins to remove; the loader leads and finds the value;
/// the value is removed, and asked for.
#[test]
fn who_comes_after_a_removal_does_not_get_what_was_found_before() {
    model_with_preemptions(3, || {
        let scene = Scene::new();
        let writer = spawn(&scene, |scene| {
            scene.cache.insert(1, 9);
            scene.cache.remove(&1);
            assert_ne!(scene.get(8), 9);
        });
        assert!(matches!(scene.get(7), 7..=9));
        writer.join().unwrap();
        assert!(matches!(scene.end(), (1 | 2, 0)));
    });
}

#[test]
fn an_insert_is_not_replaced_by_what_was_loaded() {
    loom::model(|| {
        let scene = Scene::new();
        let loader = spawn(&scene, |scene| assert!(matches!(scene.get(7), 7 | 8)));
        scene.cache.insert(1, 8);
        assert_eq!(scene.cache.get(&1), Some(8));
        loader.join().unwrap();
        assert_eq!((scene.cache.get(&1), scene.cache.loads()), (Some(8), 0));
    });
}

/// Each loads one key and asks for the other's in its loader.
#[test]
fn loaders_that_would_wait_for_each_other_are_told() {
    loom::model(|| {
        let scene = Scene::new();
        let crossed = |mine: u64, other: u64| {
            move |scene: &Scene| {
                scene.cache.get_or_insert_with(&mine, || {
                    scene.cache.try_get_or_insert_with(&other, || Ok::<_, ()>(5)).unwrap_or(6)
                });
            }
        };
        let other = spawn(&scene, crossed(1, 2));
        crossed(2, 1)(&scene);
        other.join().unwrap();
        assert_eq!(scene.cache.loads(), 0);
    });
}

/// Each caller leads the keys that it is the first to join, and waits for the others only when it has loaded these.
#[test]
fn who_loads_the_same_keys_in_another_order_waits_for_nobody_in_vain() {
    model_with_preemptions(2, || {
        let scene = Scene::new();
        let get = |scene: &Scene, keys: [u64; 2]| {
            let load = |keys: Vec<u64>| {
                scene.loads.fetch_add(keys.len(), Ordering::Relaxed);
                Ok::<_, ()>(keys.into_iter().map(|key| (key, key)))
            };
            assert_eq!(scene.cache.try_load_many(&keys, load), Ok(keys.map(Some).to_vec()));
        };
        let other = spawn(&scene, move |scene| get(scene, [1, 2]));
        get(&scene, [2, 1]);
        other.join().unwrap();
        assert_eq!(scene.end(), (2, 0));
    });
}

/// The first caller may lead both keys; one that waits for these takes over what it leaves.
#[test]
fn who_waits_for_many_that_are_not_loaded_loads_them() {
    model_with_preemptions(2, || {
        let scene = Scene::new();
        let other = spawn(&scene, |scene| {
            let _ = scene.cache.try_load_many(&[1, 2], |_| Err::<[_; 0], _>(()));
        });
        let load = |keys: Vec<u64>| Ok::<_, ()>(keys.into_iter().map(|key| (key, key)));
        assert_eq!(scene.cache.try_load_many(&[2, 1], load), Ok(vec![Some(2), Some(1)]));
        other.join().unwrap();
        assert_eq!(scene.cache.loads(), 0);
    });
}

/// A scene whose key has the value 5, which is due.
fn due() -> Arc<Scene> {
    let scene = Scene::new();
    scene.cache.insert(1, 5);
    scene.cache.make_due(&1);
    scene
}

#[test]
fn of_two_who_find_a_value_due_one_refreshes_it() {
    loom::model(|| {
        let scene = due();
        let other = spawn(&scene, |scene| assert!(matches!(scene.get(7), 5 | 7 | 8)));
        assert!(matches!(scene.get(8), 5 | 7 | 8));
        other.join().unwrap();
        assert_eq!(scene.end(), (1, 0));
        assert!(matches!(scene.cache.get(&1), Some(7 | 8)));
    });
}

/// The old value leaves meanwhile: a caller that then misses it waits for the new one, or loads it.
#[test]
fn who_misses_what_is_refreshed_gets_it() {
    loom::model(|| {
        let scene = due();
        let other = spawn(&scene, |scene| assert!(matches!(scene.get(7), 7 | 8)));
        scene.cache.evict(&1);
        assert!(matches!(scene.get(8), 7 | 8));
        other.join().unwrap();
        assert!(matches!(scene.end(), (1 | 2, 0)));
    });
}

#[test]
fn what_was_refreshed_before_a_removal_is_not_kept_after_it() {
    model_with_preemptions(3, || {
        let scene = due();
        let source = Arc::new(AtomicU64::new(0));
        let loader = load_from(&scene, &source);
        source.store(1, Ordering::Relaxed);
        scene.cache.remove(&1);
        assert!(matches!(scene.cache.get(&1), None | Some(1)));
        loader.join().unwrap();
        assert!(matches!(scene.cache.get(&1), None | Some(1)));
    });
}

#[test]
fn an_insert_is_not_replaced_by_what_was_refreshed() {
    loom::model(|| {
        let scene = due();
        let loader = spawn(&scene, |scene| assert!(matches!(scene.get(7), 5 | 7 | 8)));
        scene.cache.insert(1, 8);
        assert_eq!(scene.cache.get(&1), Some(8));
        loader.join().unwrap();
        assert_eq!((scene.cache.get(&1), scene.cache.loads()), (Some(8), 0));
    });
}

/// The value is due again because the life of what is inserted may be short.
#[test]
fn what_was_refreshed_before_an_insert_does_not_replace_what_is_due_again() {
    model_with_preemptions(3, || {
        let scene = due();
        let source = Arc::new(AtomicU64::new(0));
        let loader = load_from(&scene, &source);
        source.store(1, Ordering::Relaxed);
        scene.cache.insert(1, 1);
        scene.cache.make_due(&1);
        assert_eq!(scene.cache.get(&1), Some(1));
        loader.join().unwrap();
        assert_eq!(scene.cache.get(&1), Some(1));
    });
}
