//! Operations of a store that look keys up through the guard that has called them.

use std::cell::Cell;
use std::convert::Infallible;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use koel::Operation;
use koel::guard::{Filter, Generation, Guarded, HashMapStore, Scanned, Store, Value, Write};

use crate::common::{finds, key};

thread_local! {
    /// Whether an operation is looking something up: the calls of the store that this causes do not.
    static ASKS: Cell<bool> = const { Cell::new(false) };
}

/// Keys that stay.
const KNOWN: u64 = 50;

#[derive(Default)]
struct Asking {
    inner: HashMapStore,
    guarded: OnceLock<Weak<Guarded<Arc<Asking>>>>,
}

impl Asking {
    /// Looks up the keys that stay, other keys, and this one: the answers agree with the store.
    fn ask(&self, asked: &[u8]) {
        let Some(guarded) = self.guarded.get().and_then(Weak::upgrade) else { return };
        if ASKS.replace(true) {
            return;
        }
        for number in 0..2 * KNOWN {
            assert_eq!(finds(&guarded, &key(number)), number < KNOWN, "{number}");
            assert_eq!(guarded.contains_key(&key(number)).unwrap(), number < KNOWN, "{number}");
        }
        let Ok(there) = self.inner.get(asked);
        assert_eq!(guarded.get_many(&[key(7).as_slice(), asked]).unwrap()[1], there);
        ASKS.set(false);
    }
}

impl Store for Asking {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Infallible> {
        self.ask(key);
        self.inner.get(key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Infallible> {
        self.ask(key);
        let done = self.inner.put(key, value);
        self.ask(key);
        done
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Infallible> {
        self.ask(key);
        let done = self.inner.delete(key);
        self.ask(key);
        done
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Infallible>>, Infallible> {
        self.ask(b"a scan");
        let keys = self.inner.scan_keys()?;
        Ok(keys.inspect(|_| self.ask(b"a scanned key")))
    }

    fn generation(&self) -> Result<Generation, Infallible> {
        self.ask(b"the generation");
        self.inner.generation()
    }
}

fn runs(filter: Filter, cached: u64) {
    let store = Arc::new(Asking::default());
    (0..KNOWN).for_each(|number| assert_eq!(store.inner.put(&key(number), b"known"), Ok(false)));
    let builder = Guarded::builder(Arc::clone(&store)).filter(filter).cache_bytes(cached);
    let guarded = Arc::new(builder.open().unwrap());
    guarded.wait_until_ready().unwrap();
    store.guarded.set(Arc::downgrade(&guarded)).unwrap();

    let new = key(1000);
    assert!(!finds(&guarded, &new) && finds(&guarded, &key(1)));
    for round in 0..3_u8 {
        assert!(!guarded.put(&new, &[round]).unwrap() && guarded.put(&new, b"again").unwrap());
        let decided = guarded.compute(&new, |old| {
            assert_eq!(old, Some(&b"again"[..]));
            Operation::<_, ()>::Insert([round])
        });
        decided.unwrap();
        assert!(guarded.delete(&new).unwrap() && !guarded.delete(&new).unwrap());
        let written = guarded.write_many(&[Write::Put(&new, b""), Write::Delete(&new)]).unwrap();
        assert_eq!(written, [false, true]);
        guarded.rebuild().unwrap();
        guarded.wait_until_ready().unwrap();
    }
    assert_eq!(guarded.get_many(&[key(1), new]).unwrap()[1], None);
}

#[test]
fn a_store_may_look_up_through_its_guard() {
    for filter in [Filter::Cuckoo, Filter::Bloom, Filter::None] {
        for cached in [0, 1 << 20] {
            let (done, ended) = channel();
            thread::spawn(move || {
                runs(filter, cached);
                done.send(()).expect("the test waits");
            });
            match ended.recv_timeout(Duration::from_secs(120)) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("see above: {filter:?}"),
                Err(RecvTimeoutError::Timeout) => {
                    eprintln!(
                        "a store that looks up through its guard waits for itself: {filter:?}, {cached}"
                    );
                    std::process::abort()
                }
            }
        }
    }
}
