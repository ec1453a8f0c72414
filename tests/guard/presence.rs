//! Whether a key is there, without its value, and what is known without the store: answered as by a look-up, as cheaply as
//! possible.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use koel::guard::{
    Error, FjallStore, Generation, Guarded, HashMapStore, Known, RedbStore, Scanned, Store, Value,
};

use crate::common::{key, ready};
use crate::scripted::{Act, Op, Scripted, ScriptedStore, filled};

/// A store that knows whether a key is there without reading the value, and counts its calls.
#[derive(Default)]
struct Telling {
    inner: HashMapStore,
    told: AtomicU64,
    read: AtomicU64,
}

impl Telling {
    /// How often it was asked whether a key is there, and how often for a value.
    fn asked(&self) -> (u64, u64) {
        (self.told.load(Ordering::Relaxed), self.read.load(Ordering::Relaxed))
    }
}

impl Store for Telling {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Infallible> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.inner.get(key)
    }

    fn contains_key(&self, key: &[u8]) -> Result<bool, Infallible> {
        self.told.fetch_add(1, Ordering::Relaxed);
        self.inner.contains_key(key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Infallible> {
        self.inner.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Infallible> {
        self.inner.delete(key)
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Infallible>>, Infallible> {
        self.inner.scan_keys()
    }

    fn generation(&self) -> Result<Generation, Infallible> {
        self.inner.generation()
    }
}

#[test]
fn a_store_that_can_tell_reads_no_value_and_none_is_kept() {
    let store = Arc::new(Telling::default());
    // Behind one more pointer: each of them forwards the question.
    let guarded = Guarded::builder(Arc::new(Arc::clone(&store))).cache_bytes(10_000).open().unwrap();
    guarded.wait_until_ready().unwrap();
    guarded.put(b"ada", b"1815").unwrap();
    for _ in 0..3 {
        assert!(guarded.contains_key(b"ada").unwrap());
    }
    assert_eq!((store.asked(), guarded.stats().cache_bytes), ((3, 0), 0));
    assert_eq!((guarded.stats().passed_found, guarded.stats().lookups()), (3, 3));
    // A value that a look-up has left in the cache answers as well.
    assert!(guarded.get(b"ada").unwrap().is_some() && guarded.contains_key(b"ada").unwrap());
    assert_eq!((store.asked(), guarded.stats().cache_hits), ((3, 1), 1));
    assert!(guarded.delete(b"ada").unwrap() && !guarded.contains_key(b"ada").unwrap());
}

#[test]
fn absent_keys_are_answered_by_the_filter_and_by_what_is_remembered_of_it() {
    let store = filled(1000);
    let guarded = ready(Arc::clone(&store));
    let absent = 1000..20_000;
    for _ in 0..4 {
        assert!(absent.clone().all(|number| !guarded.contains_key(&key(number)).unwrap()));
    }
    let stats = guarded.stats();
    assert_eq!((stats.lookups(), stats.store_reads()), (76_000, store.reads()));
    assert!(stats.blocked > 70_000 && stats.remembered_absent > 0, "{stats}");
    // A write of such a key is seen at once.
    for number in 1000..1100 {
        guarded.put(&key(number), b"").unwrap();
        assert!(guarded.contains_key(&key(number)).unwrap());
    }
}

/// Before there is a filter, too. A look-up without an answer is not counted; the next one, which asks the store, is.
#[test]
fn what_only_the_store_knows_is_unknown_and_nobody_asks_it() {
    let store = filled(1000);
    let guarded = Guarded::builder(Arc::clone(&store)).cache_bytes(1 << 20).open().unwrap();
    guarded.wait_until_ready().unwrap();
    let known = |number| guarded.get_if_known(&key(number));
    assert!((0..1000).all(|number| known(number) == Known::Unknown));
    let absent = (1000..20_000).filter(|&number| known(number) == Known::Absent).count() as u64;
    assert_eq!((store.reads(), guarded.stats().lookups()), (0, absent));
    assert!(absent > 17_000);
    // Keys that a look-up has read are known, and keys that a write has changed are not.
    for number in 0..1000 {
        let value = guarded.get(&key(number)).unwrap().expect("it is there");
        assert_eq!(known(number), Known::Present(value));
    }
    // Repeated false positives.
    (0..3).for_each(|_| assert!((1000..20_000).all(|number| guarded.get(&key(number)).unwrap().is_none())));
    let remembered = (1000..20_000).filter(|&number| known(number) == Known::Absent).count() as u64;
    assert!(remembered > absent && guarded.stats().remembered_absent > 0, "{remembered} of {absent}");
    let before = store.reads();
    for number in 1000..1100 {
        guarded.put(&key(number), b"").unwrap();
        assert_eq!(known(number), Known::Unknown);
        assert!(guarded.delete(&key(number - 1000)).unwrap());
        assert!(matches!(known(number - 1000), Known::Absent | Known::Unknown));
    }
    assert_eq!(store.reads(), before);
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!((known(1), known(1000)), (Known::Absent, Known::Unknown));
}

/// A filter that `get` would not ask, as the thread has found all keys that it looked up, is asked all the same.
#[test]
fn a_filter_that_is_idle_answers_who_may_not_ask_the_store() {
    let guarded = ready(filled(100));
    assert!((0..10_000).all(|number| guarded.get(&key(number % 100)).unwrap().is_some()));
    let absent = (1000..2000).filter(|&number| guarded.get_if_known(&key(number)) == Known::Absent).count();
    assert!(absent > 900, "{absent}");
}

#[test]
fn a_filter_that_is_of_no_use_lets_one_absent_key_pass() {
    let guarded = ready(filled(100));
    let unfiltered_after = |found: u64| {
        assert!((0..found).all(|number| guarded.contains_key(&key(number % 100)).unwrap()));
        assert!((1000..2000).all(|number| !guarded.contains_key(&key(number)).unwrap()));
        guarded.stats().unfiltered
    };
    assert_eq!([unfiltered_after(4000), unfiltered_after(5000), unfiltered_after(5000)], [0, 1, 2]);
}

#[test]
fn a_store_that_cannot_tell_is_asked_for_the_value_and_its_errors_are_handed_on() {
    let store = Arc::new(ScriptedStore::default());
    let guarded = ready(Arc::clone(&store));
    guarded.put(b"ada", b"1815").unwrap();
    store.next(Op::Get, [Act::Do, Act::Fail]);
    assert!(guarded.contains_key(b"ada").unwrap());
    assert!(matches!(guarded.contains_key(b"ada"), Err(Error::Store(Scripted))));
    assert_eq!((store.reads(), guarded.stats().lookups()), (2, 1));
}

/// Also for keys that it would not accept.
fn agrees<S: Store>(store: S) {
    let guarded = ready(Arc::new(store));
    (0..20).step_by(2).for_each(|number| assert!(!guarded.put(&key(number), &[1; 100]).unwrap()));
    guarded.delete(&key(4)).unwrap();
    for key in (0..20).map(key).chain([vec![], vec![b'a'; 65_536]]) {
        let is_there = guarded.get(&key).unwrap().is_some();
        assert_eq!(guarded.contains_key(&key).unwrap(), is_there);
        assert_eq!(guarded.store().contains_key(&key).unwrap(), is_there, "asked by itself");
    }
}

#[test]
fn every_store_tells_of_a_key_what_it_has_of_it() {
    let folder = tempfile::tempdir().unwrap();
    agrees(HashMapStore::new());
    agrees(RedbStore::open(folder.path().join("a")).unwrap().durable(false));
    agrees(FjallStore::open(folder.path().join("b")).unwrap().durable(false));
}
