//! A store with one lock, which a scan holds to its end: nothing waits for a write that waits for the scan.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock, mpsc};
use std::time::Duration;

use koel::guard::{Generation, HashMapStore, Scanned, Store, Value};

use crate::common::ready;
use crate::scripted::sure;

#[derive(Default)]
struct Locked {
    inner: HashMapStore,
    lock: RwLock<()>,
    /// Whether the next scan yields no key before a delete waits for it.
    waits: AtomicBool,
    is_scanned: AtomicBool,
    is_deleted: AtomicBool,
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

impl Store for Locked {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Infallible> {
        let _lock = self.lock.read().unwrap();
        self.inner.get(key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Infallible> {
        let _lock = self.lock.write().unwrap();
        self.inner.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Infallible> {
        self.is_deleted.store(true, Ordering::SeqCst);
        let _lock = self.lock.write().unwrap();
        self.inner.delete(key)
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Infallible>>, Infallible> {
        let lock = self.lock.read().unwrap();
        let keys = self.inner.scan_keys()?;
        Ok(keys.inspect(move |_| {
            let _held = &lock;
            if self.waits.load(Ordering::SeqCst) {
                self.is_scanned.store(true, Ordering::SeqCst);
                wait_for(&self.is_deleted);
            }
        }))
    }

    fn generation(&self) -> Result<Generation, Infallible> {
        self.inner.generation()
    }
}

#[test]
fn a_sample_of_a_store_that_is_locked_while_it_is_scanned_waits_for_no_write() {
    let store = Arc::new(Locked::default());
    let guarded = Arc::new(ready(Arc::clone(&store)));
    // Around the guard: the filter takes this key for absent, and the scan's keys are checked a second time.
    sure(store.inner.put(b"around", b""));
    store.waits.store(true, Ordering::SeqCst);
    let (tell, told) = mpsc::channel();
    let verifier = Arc::clone(&guarded);
    std::thread::spawn(move || tell.send(verifier.verify(10).unwrap()));
    std::thread::spawn(move || {
        wait_for(&store.is_scanned);
        guarded.delete(b"around").unwrap()
    });
    let verification =
        told.recv_timeout(Duration::from_secs(30)).expect("nobody waits for somebody who waits for him");
    assert_eq!((verification.checked, verification.false_negatives), (1, 0), "deleted when it was its turn");
}
