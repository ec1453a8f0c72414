//! What is dropped, and when: errors of the store, whose drops may do anything, and the store itself.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::time::{Duration, Instant};

use koel::guard::{Generation, Guarded, HashMapStore, Phase, Scanned, Store, Value, Write};

use crate::common::{finds, ready};
use crate::scripted::{Gate, sure};

type AtDrop = Arc<dyn Fn() + Send + Sync>;

/// An error that does something when it is dropped.
struct Loud(AtDrop);

impl Drop for Loud {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl fmt::Debug for Loud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loud")
    }
}

impl fmt::Display for Loud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("loud")
    }
}

impl std::error::Error for Loud {}

/// A store that fails as long as it is told to.
#[derive(Default)]
struct Failing {
    inner: HashMapStore,
    at_drop: Mutex<Option<AtDrop>>,
    /// Whether the next `get` panics.
    get_panics: AtomicBool,
}

impl Failing {
    fn fail(&self, at_drop: impl Fn() + Send + Sync + 'static) {
        *self.at_drop.lock().unwrap() = Some(Arc::new(at_drop));
    }

    fn go_on(&self) {
        *self.at_drop.lock().unwrap() = None;
    }

    fn check(&self) -> Result<(), Loud> {
        self.at_drop.lock().unwrap().clone().map_or(Ok(()), |at_drop| Err(Loud(at_drop)))
    }
}

impl Store for Failing {
    type Error = Loud;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Loud> {
        assert!(!self.get_panics.swap(false, Ordering::Relaxed), "as planned");
        self.check().map(|()| sure(self.inner.get(key)))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Loud> {
        self.check().map(|()| sure(self.inner.put(key, value)))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Loud> {
        self.check().map(|()| sure(self.inner.delete(key)))
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Loud>>, Loud> {
        self.check()?;
        Ok(sure(self.inner.scan_keys()).map(|key| Ok(sure(key))))
    }

    fn generation(&self) -> Result<Generation, Loud> {
        self.check().map(|()| sure(self.inner.generation()))
    }
}

fn wait_for_the_scan<S: Store>(guarded: &Guarded<S>) {
    let start = Instant::now();
    while guarded.progress().phase == Phase::Rebuilding {
        assert!(start.elapsed() < Duration::from_secs(30), "the scan never ends");
        std::thread::yield_now();
    }
}

/// The first scan's error is dropped when the second one fails.
#[test]
fn an_error_of_a_scan_may_panic_when_it_is_dropped() {
    let store = Arc::new(Failing::default());
    store.fail(|| panic!("dropped"));
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    wait_for_the_scan(&guarded);
    guarded.rebuild().unwrap();
    wait_for_the_scan(&guarded);
    std::mem::forget(guarded.wait_until_ready().unwrap_err());
    store.go_on();
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!(guarded.progress().phase, Phase::Ready);
}

/// An error of the scan, and of the look-up after a put that has failed.
#[test]
fn an_error_may_use_the_guard_when_it_is_dropped() {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let store = Arc::new(Failing::default());
        let guarded = Arc::new(ready(Arc::clone(&store)));
        let (guard, failing): (Weak<Guarded<Arc<Failing>>>, _) =
            (Arc::downgrade(&guarded), Arc::clone(&store));
        store.fail(move || {
            let Some(guard) = guard.upgrade() else { return };
            failing.go_on();
            guard.put(b"a", b"1").unwrap();
            guard.rebuild().unwrap();
        });
        for _ in 0..2 {
            guarded.rebuild().unwrap();
            wait_for_the_scan(&guarded);
        }
        std::mem::forget(guarded.put(b"a", b"2"));
        tell.send(finds(&guarded, b"a"))
    });
    assert!(told.recv_timeout(Duration::from_secs(30)).expect("no lock is held"));
}

/// The store is asked for the outcome of a failed write, and panics.
#[test]
fn an_error_that_a_panic_drops_may_use_the_guard() {
    type Writes = fn(&Guarded<Arc<Failing>>);
    let put: Writes = |guarded| std::mem::forget(guarded.put(b"a", b"2"));
    let put_many: Writes = |guarded| std::mem::forget(guarded.write_many(&[Write::Put(b"a", b"2")]));
    for write in [put, put_many] {
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let store = Arc::new(Failing::default());
            let guarded = Arc::new(ready(Arc::clone(&store)));
            let (guard, failing) = (Arc::downgrade(&guarded), Arc::clone(&store));
            store.fail(move || {
                let Some(guard) = guard.upgrade() else { return };
                failing.go_on();
                guard.put(b"a", b"1").unwrap();
            });
            store.get_panics.store(true, Ordering::Relaxed);
            let panic = catch_unwind(AssertUnwindSafe(|| write(&guarded))).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"as planned"));
            tell.send(finds(&guarded, b"a"))
        });
        assert!(told.recv_timeout(Duration::from_secs(30)).expect("no lock is held"));
    }
}

/// Dropping it waits for the threads of its scans, but not for the one that it runs on.
#[test]
fn a_listener_may_drop_the_guard() {
    let store = Arc::new(HashMapStore::new());
    let held: Arc<Mutex<Option<Guarded<Arc<HashMapStore>>>>> = Arc::default();
    let (opened, is_open) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let (is_open, holds) = (Mutex::new(is_open), Arc::clone(&held));
    let listen = move |_| {
        if is_open.lock().unwrap().recv().is_ok() {
            let guarded = holds.lock().unwrap().take();
            drop(guarded);
            tell.send(()).unwrap();
        }
    };
    let guarded = Guarded::builder(Arc::clone(&store)).on_progress(listen).open().unwrap();
    *held.lock().unwrap() = Some(guarded);
    opened.send(()).unwrap();
    drop(opened);
    told.recv_timeout(Duration::from_secs(30)).expect("it does not wait for itself");
    assert!(held.lock().unwrap().is_none());
    let start = Instant::now();
    while Arc::strong_count(&store) > 1 {
        assert!(start.elapsed() < Duration::from_secs(30), "the scan never ends");
        std::thread::yield_now();
    }
}

/// Even if its listener is still being told how a scan has ended, and another scan has followed.
#[test]
fn a_guard_that_is_dropped_gives_the_store_back() {
    let (store, gate) = (Arc::new(HashMapStore::new()), Gate::new());
    let first = Mutex::new(Some(gate.clone()));
    let listen = move |progress: koel::guard::Progress| {
        if progress.phase != Phase::Rebuilding {
            let first = first.lock().unwrap().take();
            first.inspect(Gate::stall);
        }
    };
    let guarded = Guarded::builder(Arc::clone(&store)).on_progress(listen).open().unwrap();
    let listening = gate.wait();
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            drop(guarded);
            assert_eq!(Arc::strong_count(&store), 1);
        });
        // Long enough for the drop to be over, if it waits for nothing.
        std::thread::sleep(Duration::from_millis(200));
        listening.open();
    });
}
