//! How often the user's code is called, and that it is not called under a lock.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use koel::{Cache, CacheBuilder, LoadError, ManualClock, Operation};

use crate::common::catch;

type Shared = Arc<OnceLock<Weak<Cache<u64, u64>>>>;

/// A cache whose weigher and expiries count how often they are called for small keys, and insert another entry, as they may.
fn counting() -> (Arc<Cache<u64, u64>>, Arc<[AtomicU64; 3]>) {
    let (shared, asked) = (Shared::default(), Arc::new([const { AtomicU64::new(0) }; 3]));
    let ask = |which: usize| {
        let (shared, asked) = (Arc::clone(&shared), Arc::clone(&asked));
        move |key: &u64| {
            if *key < 100 {
                asked[which].fetch_add(1, Ordering::Relaxed);
                if let Some(cache) = shared.get().and_then(Weak::upgrade) {
                    cache.insert(100 + key, 0).unwrap();
                }
            }
        }
    };
    let (weigh, live, idle) = (ask(0), ask(1), ask(2));
    let builder: CacheBuilder<u64, u64> = Cache::builder().max_weight(1000).clock(ManualClock::new());
    let builder = builder.weigher(move |key, _| {
        weigh(key);
        1
    });
    let builder = builder.expiry(move |key, _| {
        live(key);
        Some(Duration::from_secs(9))
    });
    let builder = builder.idle_expiry(move |key, _| {
        idle(key);
        Some(Duration::from_secs(9))
    });
    let cache = Arc::new(builder.build());
    shared.set(Arc::downgrade(&cache)).expect("once");
    (cache, asked)
}

#[test]
fn what_an_entry_weighs_and_how_long_it_lives_is_asked_once_unlocked() {
    let (cache, asked) = counting();
    let are_asked = |times: u64, f: &dyn Fn()| {
        f();
        for count in asked.iter() {
            assert_eq!(count.swap(0, Ordering::Relaxed), times);
        }
    };
    are_asked(1, &|| cache.insert(1, 1).unwrap());
    are_asked(1, &|| cache.insert(1, 2).unwrap());
    are_asked(1, &|| assert_eq!(cache.get_or_insert_with(2, || 2), 2));
    are_asked(0, &|| assert_eq!(cache.get_or_insert_with(2, || unreachable!()), 2));
    are_asked(1, &|| assert_eq!(cache.try_insert(3, 3).unwrap(), Ok(())));
    are_asked(0, &|| assert!(cache.try_insert(3, 4).unwrap().is_err()));
    are_asked(2, &|| {
        cache.get_many_or_insert_with(&[4, 5], &mut [None; 2], |keys| keys.into_iter().map(|k| (k, k)))
    });
    // Under the lock: a value that is decided there is weighed there.
    let decided = catch(|| cache.compute(1, |_| Operation::<_, ()>::Insert(7)));
    assert!(decided.unwrap_err().contains("the same map"));
    assert_eq!((cache.get(&1), cache.len()), (Some(2), 10));
}

#[test]
fn writing_under_the_lock_panics_and_changes_nothing() {
    let cache: Cache<u64, u64> = Cache::new(10);
    cache.insert(1, 10).unwrap();
    let dump = cache.dump();
    let writes: [&dyn Fn(); 15] = [
        &|| drop(cache.insert(2, 2)),
        &|| drop(cache.try_insert(9, 9)),
        &|| _ = cache.remove(&2),
        &|| _ = cache.remove_if(&2, |_, _| true),
        &|| _ = cache.pin().remove(&1).copied(),
        &|| drop(cache.update(1, |n| *n)),
        &|| cache.retain(|_, _| true),
        &|| cache.clear(),
        &|| cache.purge(),
        &|| cache.flush(),
        &|| drop(cache.dump()),
        &|| drop(cache.load(dump.clone())),
        &|| _ = cache.iter().count(),
        &|| _ = cache.pin().iter().count(),
        &|| _ = cache.memory_usage(),
    ];
    for (which, write) in writes.iter().enumerate() {
        let deciding = || {
            cache.compute(1, |_| -> Operation<u64, ()> {
                write();
                Operation::Abort(())
            })
        };
        for panicked in [
            catch(deciding).map(drop),
            catch(|| {
                cache.update(1, |_| {
                    write();
                    1
                })
            })
            .map(drop),
        ] {
            assert!(panicked.is_err_and(|told| told.contains("the same map")), "write {which}");
        }
        assert_eq!(cache.iter().collect::<Vec<_>>(), [(1, 10)], "write {which}");
    }
    cache.insert(5, 5).unwrap();
    assert_eq!(cache.len(), 2);
}

#[test]
fn who_is_asked_what_stays_is_asked_again_about_what_has_come_meanwhile() {
    for stays in [false, true] {
        let cache: Cache<u64, u64> = Cache::new(10);
        cache.insert(1, 10).unwrap();
        let mut asked = Vec::new();
        cache.retain(|_, value| {
            asked.push(*value);
            if *value < 12 {
                cache.insert(1, value + 1).unwrap();
            }
            stays && *value == 12
        });
        assert_eq!((asked, cache.get(&1)), (vec![10, 11, 12], stays.then_some(12)));
    }
}

#[test]
fn loads_are_timed_and_those_that_are_dropped_have_failed() {
    let cache: Cache<u64, u64> = Cache::new(10);
    cache.get_or_insert_with(1, || {
        thread::sleep(Duration::from_millis(5));
        1
    });
    assert!(cache.stats().load_time >= Duration::from_millis(5));
    let mut task = Box::pin(cache.get_or_insert_async(2, std::future::pending()));
    assert_eq!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    drop(task);
    drop(cache.get_or_insert_async(3, std::future::pending())); // no loader has begun
    assert_eq!((cache.stats().loads, cache.stats().failed_loads), (1, 1));
}

#[test]
fn what_has_left_is_dropped_with_the_last_view_that_is_older_than_a_flush() {
    let cache: Cache<u64, Arc<()>> = Cache::new(10);
    let value = Arc::new(());
    cache.insert(1, Arc::clone(&value)).unwrap();
    let view = cache.pin_owned();
    cache.remove(&1);
    cache.flush();
    assert_eq!(Arc::strong_count(&value), 2);
    thread::scope(|scope| scope.spawn(move || drop(view)).join().unwrap());
    assert_eq!(Arc::strong_count(&value), 1);
}

thread_local! {
    /// Whether comparisons ask which keys are due.
    static ASKS: Cell<bool> = const { Cell::new(false) };
}

#[derive(Clone, Debug)]
struct Curious(u64);

/// The cache that they ask.
static CURIOUS: OnceLock<Cache<Curious, u64>> = OnceLock::new();

const MANY: u64 = 300;

impl PartialEq for Curious {
    fn eq(&self, other: &Self) -> bool {
        if ASKS.take() {
            let cache = CURIOUS.get().expect("it is made first");
            // Whichever shard of loads a key is in, another of these keys is in the same one.
            (0..MANY).for_each(|key| _ = cache.needs_refresh(&Curious(key)));
            ASKS.set(true);
        }
        self.0 == other.0
    }
}

impl Eq for Curious {}

impl Hash for Curious {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Also if it is compared with keys that are being loaded.
#[test]
fn a_key_that_is_compared_may_ask_which_are_due() {
    let clock = ManualClock::new();
    let (life, ahead) = (Duration::from_secs(60), Duration::from_secs(10));
    let builder = Cache::builder().max_entries(1000).time_to_live(life).refresh_ahead(ahead);
    let cache = CURIOUS.get_or_init(|| builder.clock(clock.clone()).build());
    (0..MANY).for_each(|key| cache.insert(Curious(key), key).unwrap());
    clock.advance(life - ahead / 2);
    assert!((0..MANY).all(|key| cache.needs_refresh(&Curious(key))));
    let key = || Curious(MANY);
    let loaded = cache.get_or_insert_with(key(), || {
        let (done, ended) = channel();
        thread::spawn(move || {
            ASKS.set(true);
            let late =
                cache.try_get_or_insert_with_timeout(key(), Duration::ZERO, || Err::<u64, _>("not led"));
            cache.remove(&key());
            ASKS.set(false);
            done.send(late)
        });
        // A panic would wait for the same lock.
        let late = ended.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| {
            eprintln!("who compares keys waits for himself");
            std::process::abort()
        });
        assert_eq!(late, Err(LoadError::TimedOut));
        7
    });
    assert_eq!(loaded, 7);
}
