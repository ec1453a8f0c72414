//! A panic hook is the user's: koel's own panics hold no lock while it runs.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use koel::{Cache, HashMap, InlineCache, InlineMap, Operation};

/// Whether `remove` panics, and another thread completes `write` before the hook of that panic returns.
fn lets_others_write<T: Send + Sync + 'static>(shared: T, remove: fn(&T), write: fn(&T)) -> bool {
    let shared = Arc::new(shared);
    let (told, tell) = mpsc::channel();
    let in_hook = Arc::clone(&shared);
    set_hook(Box::new(move |_| {
        let (shared, (done, wait)) = (Arc::clone(&in_hook), mpsc::channel());
        thread::spawn(move || {
            write(&shared);
            // The receiver is gone if this had to wait for the lock.
            let _ = done.send(());
        });
        told.send(wait.recv_timeout(Duration::from_secs(10)).is_ok()).expect("somebody listens");
    }));
    let panicked = catch_unwind(AssertUnwindSafe(|| remove(&shared))).is_err();
    drop(take_hook());
    panicked && tell.recv() == Ok(true)
}

/// Alone in this file: the hook is the process's.
#[test]
fn a_hook_runs_with_no_lock_held_when_compute_is_to_remove_a_key_that_is_absent() {
    assert!(lets_others_write(
        HashMap::<u64, u64>::new(),
        |map| {
            let _ = map.pin().compute(1, |_| Operation::<_, ()>::Remove);
        },
        |map| assert_eq!(map.pin().insert(1, 1), None),
    ));
    assert!(lets_others_write(
        InlineMap::<u64, u64>::new(),
        |map| {
            let _ = map.compute(1, |_| Operation::<_, ()>::Remove);
        },
        |map| assert_eq!(map.insert(1, 1), None),
    ));
    assert!(lets_others_write(
        Cache::<u64, u64>::new(1),
        |cache| {
            let _ = cache.compute(1, |_| Operation::<_, ()>::Remove);
        },
        |cache| assert_eq!(cache.insert(1, 1), Ok(())),
    ));
    assert!(lets_others_write(
        InlineCache::<u64, u64>::new(1),
        |cache| {
            let _ = cache.compute(1, |_| Operation::<_, ()>::Remove);
        },
        |cache| assert_eq!(cache.insert(1, 1), None),
    ));
}
