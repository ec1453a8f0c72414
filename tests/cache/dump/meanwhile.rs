//! Concurrent operations on a key while an entry of a dump is inserted for it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use koel::{Cache, CacheDump};

type Hook = (bool, Box<dyn FnOnce()>);

thread_local! {
    /// Hooks to run on this thread, one after the other, at the next comparison of keys that are equal, or not.
    static HOOKS: RefCell<VecDeque<Hook>> = const { RefCell::new(VecDeque::new()) };
}

fn when_compared(are_equal: bool, hook: impl FnOnce() + 'static) {
    HOOKS.with_borrow_mut(|hooks| hooks.push_back((are_equal, Box::new(hook))));
}

/// A key that is compared with all others.
#[derive(Clone, Debug)]
struct Key(u64);

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        let are_equal = self.0 == other.0;
        let next = HOOKS.with_borrow_mut(|hooks| {
            let is_next = hooks.front().is_some_and(|hook| hook.0 == are_equal);
            if is_next { hooks.pop_front() } else { None }
        });
        if let Some((_, hook)) = next {
            hook();
        }
        are_equal
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// One hash for all: not one whose two buckets are the same, as then each look-up compares twice.
type Hasher = BuildHasherDefault<DefaultHasher>;

/// A cache of these keys.
type Keyed = Cache<Key, u64, Hasher>;

/// A cache that has key 1, and a dump of a cache that has key 2.
fn one_and_a_dump_of_two() -> (Arc<Keyed>, CacheDump<Key, u64>) {
    let [cache, old] = [1, 2].map(|key| {
        let cache = Cache::builder().max_entries(10).hasher(Hasher::default()).build();
        cache.insert(Key(key), key).unwrap();
        cache
    });
    (Arc::new(cache), old.dump())
}

/// Runs the hook when an entry is inserted, under its segment's lock: its key is compared once before, to see whether it is
/// there.
fn when_it_is_put_in(hook: impl FnOnce() + 'static) {
    when_compared(false, || ());
    when_compared(false, hook);
}

#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// No task has to be polled for the others to be woken.
#[test]
fn all_who_wait_for_a_key_are_woken_when_it_is_put_in() {
    let (cache, dump) = one_and_a_dump_of_two();
    let woken: [_; 3] = std::array::from_fn(|_| Arc::new(Woken::default()));
    let (asking, wakers) = (Arc::clone(&cache), woken.clone().map(Waker::from));
    // Neither polled nor dropped again before everything has been checked.
    let (keep, kept) = mpsc::channel::<Pin<Box<dyn Future<Output = u64> + Send>>>();
    when_it_is_put_in(move || {
        let wait = move || {
            for waker in wakers {
                let asking = Arc::clone(&asking);
                let load = async { unreachable!("it is put in") };
                let mut task = Box::pin(async move { asking.get_or_insert_async(Key(2), load).await });
                assert_eq!(task.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
                keep.send(task).unwrap();
            }
        };
        thread::spawn(wait).join().unwrap();
    });
    assert!(cache.load(dump).is_empty());
    assert_eq!(cache.peek(&Key(2)), Some(2));
    assert_eq!(woken.map(|woken| woken.0.load(Ordering::SeqCst)), [1; 3]);
    assert_eq!(kept.try_iter().count(), 3);
}

/// By a writer that has marked the key's flight stale, and has not written yet.
#[test]
fn an_entry_whose_key_is_written_to_meanwhile_is_handed_back() {
    let (cache, dump) = one_and_a_dump_of_two();
    let (writing, (done, inserted)) = (Arc::clone(&cache), mpsc::channel());
    when_it_is_put_in(move || {
        let is_marking = Arc::new(Barrier::new(2));
        let marking = Arc::clone(&is_marking);
        thread::spawn(move || {
            // Compared with the flight's key, under the lock of the flights.
            when_compared(true, move || {
                marking.wait();
            });
            done.send(writing.try_insert(Key(2), 9)).unwrap();
        });
        is_marking.wait();
    });
    let rest = cache.load(dump);
    assert_eq!(inserted.recv().unwrap(), Ok(Ok(())));
    assert_eq!((rest.len(), cache.peek(&Key(2))), (1, Some(9)));
}
