//! What user code may do while an entry is inserted, also a loaded one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use koel::{Cache, CacheBuilder, Cause, LoadError, Operation};

/// Runs `f` on a thread of its own, so that a test fails instead of waiting forever if it hangs.
fn must_end<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = channel();
    std::thread::spawn(move || done.send(f()));
    ended.recv_timeout(Duration::from_secs(60)).expect("it hangs, or has panicked")
}

type Shared = Arc<OnceLock<Weak<Cache<u64, u64>>>>;

/// A cache whose closures reach it.
fn known(
    build: impl FnOnce(CacheBuilder<u64, u64>, Shared) -> CacheBuilder<u64, u64>,
) -> Arc<Cache<u64, u64>> {
    let shared = Shared::default();
    let cache = Arc::new(build(Cache::builder(), Arc::clone(&shared)).build());
    shared.set(Arc::downgrade(&cache)).expect("once");
    cache
}

fn cache_of(shared: &Shared) -> Arc<Cache<u64, u64>> {
    shared.get().and_then(Weak::upgrade).expect("the cache is in use")
}

/// A listener that is told that 2 has left loads it: it was evicted by an entry that the listener of its own load loaded.
#[test]
fn a_listener_may_load_what_is_being_loaded() {
    for with in 0..3 {
        let values = must_end(move || {
            let depth = AtomicUsize::new(0);
            let cache = known(|builder, shared| {
                builder.max_entries(1).on_removal(move |key, _, cause| {
                    if cause == Cause::Size && depth.fetch_add(1, Ordering::Relaxed) < 2 {
                        assert_eq!(cache_of(&shared).get_or_insert_with(*key, || key * 10), key * 10);
                    }
                })
            });
            let load = |key: u64| match with {
                0 => cache.get_or_insert_with(key, || key * 10),
                1 => cache.try_get_or_insert_with(key, || Ok::<_, ()>(key * 10)).unwrap(),
                _ => pollster::block_on(cache.get_or_insert_async(key, async { key * 10 })),
            };
            [load(1), load(2)]
        });
        assert_eq!(values, [10, 20]);
    }
}

#[test]
fn a_weigher_that_loads_its_own_key_is_told_so() {
    let error = must_end(|| {
        let errors = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&errors);
        let cache = known(|builder, shared| {
            builder.max_weight(100).weigher(move |key, _| {
                let loaded = cache_of(&shared).try_get_or_insert_with(*key, || Ok::<_, ()>(1));
                seen.lock().unwrap().push(loaded);
                1
            })
        });
        cache.get_or_insert_with(1, || 10);
        errors.lock().unwrap().pop()
    });
    assert_eq!(error, Some(Err(LoadError::Recursion)));
}

#[test]
fn no_value_leaks_when_the_listener_panics_at_a_load() {
    for is_async in [false, true] {
        let builder = Cache::builder().max_entries(1).on_removal(|_, _: &Arc<()>, _| panic!("listener"));
        let cache: Cache<u64, Arc<()>> = builder.build();
        cache.insert(1, Arc::new(())).unwrap();
        let value = Arc::new(());
        let copy = Arc::clone(&value);
        let load = || match is_async {
            true => pollster::block_on(cache.get_or_insert_async(2, async { copy })),
            false => cache.get_or_insert_with(2, || copy),
        };
        catch_unwind(AssertUnwindSafe(load)).expect_err("the listener panics");
        assert!(cache.get(&2).is_some(), "it is there all the same");
        let _ = catch_unwind(AssertUnwindSafe(|| cache.clear()));
        drop(cache);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}

/// A value that writes to its cache when it is dropped, which must not be with one of the cache's locks held.
#[derive(Clone)]
struct Writes(Weak<Cache<u64, Writes>>, Arc<AtomicUsize>);

impl Drop for Writes {
    fn drop(&mut self) {
        if let Some(cache) = self.0.upgrade() {
            self.1.fetch_add(1, Ordering::Relaxed);
            cache.remove(&99);
        }
    }
}

#[test]
fn values_are_dropped_unlocked_when_the_weigher_panics() {
    static PANICS: AtomicBool = AtomicBool::new(false);
    let weigher = |_: &u64, _: &Writes| {
        assert!(!PANICS.load(Ordering::Relaxed), "weigher");
        1
    };
    let cache: Arc<Cache<u64, Writes>> = Arc::new(Cache::builder().max_weight(10).weigher(weigher).build());
    let dropped = Arc::new(AtomicUsize::new(0));
    let value = || Writes(Arc::downgrade(&cache), Arc::clone(&dropped));
    cache.insert(1, value()).unwrap_or_else(|_| panic!("it fits"));
    PANICS.store(true, Ordering::Relaxed);
    let decide = |_: Option<&Writes>| Operation::<_, ()>::Insert(value());
    catch_unwind(AssertUnwindSafe(|| cache.compute(1, decide))).err().expect("the weigher panics");
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    PANICS.store(false, Ordering::Relaxed);
    assert!(cache.get(&1).is_some() && cache.compute(1, decide).is_ok());
}

/// A value whose `Clone` panics once when it is set to.
struct Fragile(Arc<AtomicBool>);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!self.0.swap(false, Ordering::Relaxed), "clone");
        Fragile(Arc::clone(&self.0))
    }
}

/// A listener that is told that 1 has left removes 2, which replaced it, and reloads it: nobody loads it any more.
#[test]
fn a_listener_may_load_what_was_being_loaded_when_its_clone_panicked() {
    let answers = must_end(|| {
        let (panics, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (copy, told) = (Arc::clone(&panics), Arc::clone(&answers));
        let shared = Arc::<OnceLock<Weak<Cache<u64, Fragile>>>>::default();
        let known = Arc::clone(&shared);
        let builder = Cache::builder().max_entries(1).on_removal(move |key, _, _| {
            if let Some(cache) = known.get().and_then(Weak::upgrade).filter(|_| *key == 1) {
                cache.remove(&2);
                let again = cache.try_get_or_insert_with(2, || Ok::<_, ()>(Fragile(Arc::clone(&copy))));
                told.lock().unwrap().push(again.map(|_| ()));
            }
        });
        let cache = Arc::new(builder.build());
        shared.set(Arc::downgrade(&cache)).expect("once");
        cache.insert(1, Fragile(Arc::clone(&panics))).unwrap_or_else(|_| panic!("it fits"));
        let load = || {
            panics.store(true, Ordering::Relaxed);
            Fragile(Arc::clone(&panics))
        };
        catch_unwind(AssertUnwindSafe(|| cache.get_or_insert_with(2, load))).err().expect("the clone panics");
        answers.lock().unwrap().split_off(0)
    });
    assert_eq!(answers, [Ok(())]);
}

/// A value that, when it is dropped, loads the key that is being loaded.
#[derive(Clone)]
struct Loads {
    cache: Weak<Cache<u64, Loads>>,
    loading: Arc<AtomicUsize>,
    told: Arc<Mutex<Vec<bool>>>,
}

impl Drop for Loads {
    fn drop(&mut self) {
        let key = self.loading.swap(0, Ordering::Relaxed);
        if let Some(cache) = self.cache.upgrade().filter(|_| key > 0) {
            let loaded = cache.try_get_or_insert_with(key as u64, || Err(()));
            self.told.lock().unwrap().push(loaded.is_ok());
        }
    }
}

/// Heavy entries are freed by the next loader, after the waiters have been woken.
#[test]
fn what_left_is_freed_when_a_load_has_ended() {
    let told = must_end(|| {
        let cache: Arc<Cache<u64, Loads>> =
            Arc::new(Cache::builder().max_weight(4 << 20).weigher(|_, _: &Loads| 1 << 20).build());
        let (loading, told) = (Arc::default(), Arc::<Mutex<Vec<bool>>>::default());
        for key in 1..50 {
            let value = Loads {
                cache: Arc::downgrade(&cache),
                loading: Arc::clone(&loading),
                told: Arc::clone(&told),
            };
            let loaded = cache.get_or_insert_with(key, || {
                loading.store(key as usize, Ordering::Relaxed);
                value
            });
            loading.store(0, Ordering::Relaxed);
            drop(loaded);
        }
        told.lock().unwrap().split_off(0)
    });
    assert!(told.len() > 10 && told.iter().all(|&is_there| is_there), "{told:?}");
}
