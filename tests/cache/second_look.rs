//! A loader looks the key up once more before it loads. A value that it finds then is its own, and not for callers that come
//! after the value has left.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use koel::{Cache, CacheBuilder, Clock, LoadError, ManualClock};

use crate::edges::comes_to_an_end;

/// Events in a thread's use of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    KeyCloned,
    KeyDropped,
    KeysCompared,
    ValueCloned,
    TimeRead,
}

type Hook = (Event, Box<dyn FnOnce()>);

thread_local! {
    /// Hooks to run on this thread, one after the other, at the next such event.
    static HOOKS: RefCell<VecDeque<Hook>> = const { RefCell::new(VecDeque::new()) };
}

fn at_next(event: Event, hook: impl FnOnce() + 'static) {
    HOOKS.with_borrow_mut(|hooks| hooks.push_back((event, Box::new(hook))));
}

fn happens(event: Event) {
    let next = HOOKS.with_borrow_mut(|hooks| {
        let is_next = hooks.front().is_some_and(|hook| hook.0 == event);
        if is_next { hooks.pop_front() } else { None }
    });
    if let Some((_, hook)) = next {
        hook();
    }
}

/// The only key.
#[derive(Debug)]
struct Key;

impl Clone for Key {
    fn clone(&self) -> Self {
        happens(Event::KeyCloned);
        Key
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // A thread that ends may drop some when it has no hooks any more.
        if HOOKS.try_with(|_| ()).is_ok() {
            happens(Event::KeyDropped);
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, _: &Key) -> bool {
        happens(Event::KeysCompared);
        true
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(Debug, PartialEq, Eq)]
struct Value(u32);

impl Clone for Value {
    fn clone(&self) -> Self {
        happens(Event::ValueCloned);
        Value(self.0)
    }
}

/// A clock that reports a read after it has determined the time to return.
struct Hooked(ManualClock);

impl Clock for Hooked {
    fn now(&self) -> Duration {
        let now = self.0.now();
        happens(Event::TimeRead);
        now
    }
}

/// When a call that loads a value runs user code after its loader, an hour goes by, and the value has expired: `ask` is called.
/// Then the key has the value that this leaves there.
fn comes_after_a_loaded_value_has_expired(at: Event, ask: impl FnOnce(Arc<Cache<Key, Value>>) + 'static) {
    let clock = ManualClock::new();
    let builder: CacheBuilder<Key, Value> = Cache::builder().max_entries(10);
    let cache = Arc::new(builder.time_to_live(Duration::from_secs(1)).clock(Hooked(clock.clone())).build());
    let late = Arc::clone(&cache);
    let loaded = cache.get_or_insert_with(Key, || {
        at_next(at, move || {
            clock.advance(Duration::from_secs(3600));
            ask(late);
        });
        Value(1)
    });
    assert_eq!(loaded, Value(1));
    assert!(HOOKS.with_borrow(VecDeque::is_empty), "it has been called");
}

/// The value is in the cache, and the load has ended.
#[test]
fn who_comes_after_a_loaded_value_has_expired_loads_anew() {
    comes_after_a_loaded_value_has_expired(Event::ValueCloned, |cache| {
        std::thread::spawn(move || {
            assert_eq!(cache.get(&Key), None);
            assert_eq!(cache.get_or_insert_with(Key, || Value(2)), Value(2));
            assert_eq!((cache.get(&Key), cache.stats().loads), (Some(Value(2)), 2));
        })
        .join()
        .unwrap();
    });
}

/// The clock was read when the value's lifetime begins, and the value is not in the cache yet: a new caller has to wait.
#[test]
fn who_comes_when_a_loaded_value_will_have_expired_loads_anew() {
    let (answer, answers) = std::sync::mpsc::channel();
    comes_after_a_loaded_value_has_expired(Event::TimeRead, |cache| {
        let is_asking = Arc::new(Barrier::new(2));
        let asking = Arc::clone(&is_asking);
        std::thread::spawn(move || {
            assert_eq!(cache.get(&Key), None);
            at_next(Event::KeysCompared, move || {
                asking.wait();
            });
            let loaded = cache.get_or_insert_with(Key, || Value(2));
            answer.send((loaded, cache.get(&Key), cache.stats().loads)).unwrap();
        });
        is_asking.wait();
    });
    assert_eq!(answers.recv().unwrap(), (Value(2), Some(Value(2)), 2));
}

/// Nobody has followed the load, which has ended; its key is dropped as the panic goes on.
#[test]
fn a_key_whose_drop_panics_after_its_values_clone_has_panicked_is_survived() {
    let cache = Cache::new(10);
    at_next(Event::ValueCloned, || {
        at_next(Event::KeyDropped, || panic!("the key's drop"));
        panic!("the value's clone");
    });
    let load = || cache.get_or_insert_with(Key, || Value(1));
    let panic = catch_unwind(AssertUnwindSafe(load)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"the value's clone"));
    assert!(HOOKS.with_borrow(VecDeque::is_empty));
    assert_eq!(cache.get_or_insert_with(Key, || Value(2)), Value(1));
}

/// A value with a weight; when it is cloned next, it runs the hook that `HOOKS` has for that.
#[derive(Debug)]
struct Heavy(u64);

impl Clone for Heavy {
    fn clone(&self) -> Self {
        happens(Event::ValueCloned);
        Heavy(self.0)
    }
}

/// A rejected value is not in the cache: to load it once more would go on forever.
#[test]
fn a_value_that_is_turned_away_and_asks_for_its_key_as_it_is_cloned_is_told() {
    comes_to_an_end(|| {
        let cache = Arc::new(Cache::builder().max_weight(100).weigher(|_, value: &Heavy| value.0).build());
        for key in 0..100 {
            cache.insert(key, Heavy(1)).unwrap();
            cache.get(&key);
        }
        let told = Arc::new(AtomicBool::new(false));
        let (asks, is_told) = (Arc::clone(&cache), Arc::clone(&told));
        at_next(Event::ValueCloned, move || {
            let answer = asks.try_get_or_insert_with(1000, || Ok::<_, ()>(Heavy(1)));
            is_told.store(matches!(answer, Err(LoadError::Recursion)), Ordering::Relaxed);
        });
        assert_eq!(cache.get_or_insert_with(1000, || Heavy(50)).0, 50);
        assert_eq!((cache.stats().turned_away, told.load(Ordering::Relaxed)), (1, true));
    });
}

/// The key asks for itself at the next such event on this thread, and notes whether it gets the error that it would wait for
/// itself.
fn asks_for_itself(at: Event, cache: &Arc<Cache<Key, Value>>, told: &Arc<AtomicBool>) {
    let (cache, told) = (Arc::clone(cache), Arc::clone(told));
    at_next(at, move || {
        let answer = cache.try_get_or_insert_with(Key, || Ok::<_, ()>(Value(4)));
        told.store(matches!(answer, Err(LoadError::Recursion)), Ordering::Relaxed);
    });
}

/// As while it is being loaded: a caller that would wait for itself gets an error.
#[test]
fn a_key_that_asks_for_itself_as_a_task_puts_it_is_told() {
    comes_to_an_end(|| {
        let cache = Arc::new(Cache::new(10));
        let told = Arc::new(AtomicBool::new(false));
        let load = async {
            asks_for_itself(Event::KeyCloned, &cache, &told);
            Value(1)
        };
        assert_eq!(pollster::block_on(cache.get_or_insert_async(Key, load)), Value(1));
        assert!(told.load(Ordering::Relaxed));
    });
}

/// A leader has failed, and its waiter has not been polled yet: another caller leads, whose copy of the key is dropped.
#[test]
fn a_key_that_asks_for_itself_as_somebody_takes_over_is_told() {
    comes_to_an_end(|| {
        let cache = Arc::new(Cache::new(10));
        let told = Arc::new(AtomicBool::new(false));
        let mut context = Context::from_waker(Waker::noop());
        let fails = Cell::new(false);
        let fails_later = poll_fn(|_| if fails.get() { Poll::Ready(Err(())) } else { Poll::Pending });
        let mut leader = Box::pin(cache.try_get_or_insert_async(Key, fails_later));
        assert!(leader.as_mut().poll(&mut context).is_pending());
        let mut waits = Box::pin(cache.try_get_or_insert_async(Key, async { Ok::<_, ()>(Value(2)) }));
        assert!(waits.as_mut().poll(&mut context).is_pending());
        fails.set(true);
        assert!(leader.as_mut().poll(&mut context).is_ready());
        asks_for_itself(Event::KeyDropped, &cache, &told);
        assert_eq!(cache.try_get_or_insert_with(Key, || Ok::<_, ()>(Value(3))), Ok(Value(3)));
        assert!(told.load(Ordering::Relaxed));
        assert_eq!(waits.as_mut().poll(&mut context), Poll::Ready(Ok(Value(3))));
    });
}

/// A task or a thread misses the key. Another inserts it, and a third, which retains nothing, has marked its flight in vain, as
/// nobody loads it. The first leads and finds it; then it is gone; and only then another caller asks.
fn found_by_who_loads_and_removed(ask: fn(&Cache<Key, Value>, u32) -> Value) {
    let cache = Arc::new(Cache::new(10));
    let (is_found, is_removed) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (of_key, of_value) = (Arc::clone(&cache), Arc::clone(&cache));
    let (found, removed) = (Arc::clone(&is_found), Arc::clone(&is_removed));
    at_next(Event::KeyCloned, move || {
        of_key.insert(Key, Value(1)).unwrap();
        let is_removing = Arc::new(Barrier::new(2));
        let removing = Arc::clone(&is_removing);
        std::thread::spawn(move || {
            // As the entry is found, under its lock.
            at_next(Event::KeysCompared, move || {
                removing.wait();
                found.wait();
            });
            of_key.retain(|_, _| false);
            assert!(of_key.is_empty());
            removed.wait();
        });
        is_removing.wait();
    });
    let (answer, answers) = std::sync::mpsc::channel();
    at_next(Event::ValueCloned, move || {
        is_found.wait();
        is_removed.wait();
        let is_asking = Arc::new(Barrier::new(2));
        let asking = Arc::clone(&is_asking);
        std::thread::spawn(move || {
            // With the key of the loader, so that it is waited for.
            at_next(Event::KeysCompared, move || {
                asking.wait();
            });
            answer.send(ask(&of_value, 3)).unwrap();
        });
        is_asking.wait();
    });
    assert_eq!(ask(&cache, 2), Value(1), "it was there when he looked");
    assert_eq!(answers.recv().unwrap(), Value(3), "it was removed before he asked");
    assert_eq!(cache.get(&Key), Some(Value(3)));
}

#[test]
fn who_comes_after_a_removal_does_not_get_what_was_found_before() {
    found_by_who_loads_and_removed(|cache, value| cache.get_or_insert_with(Key, || Value(value)));
    found_by_who_loads_and_removed(|cache, value| {
        pollster::block_on(cache.get_or_insert_async(Key, async { Value(value) }))
    });
}
