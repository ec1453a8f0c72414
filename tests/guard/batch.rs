//! Several writes at once.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use koel::guard::{
    Error, FjallError, FjallStore, Generation, Guarded, HashMapStore, Phase, RedbError, RedbStore, Scanned,
    Store, Value, Write,
};

use crate::common::{finds, key, ready};
use crate::scripted::{Act, Gate, Op, Scripted, ScriptedStore, sure, unscanned};

fn open() -> (Arc<ScriptedStore>, Guarded<Arc<ScriptedStore>>) {
    let store = Arc::new(ScriptedStore::default());
    let guarded = ready(Arc::clone(&store));
    (store, guarded)
}

#[test]
fn no_writes_are_none() {
    let (_, guarded) = open();
    assert!(guarded.write_many(&[]).unwrap().is_empty());
}

#[test]
fn a_key_that_comes_more_than_once_has_one_fingerprint_or_none() {
    let (_, guarded) = open();
    let writes =
        [Write::Put(b"a", b"1"), Write::Put(b"a", b"2"), Write::Put(b"b", b"1"), Write::Delete(b"b")];
    assert_eq!(guarded.write_many(&writes).unwrap(), [false, true, false, true]);
    assert_eq!(guarded.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!((guarded.stats().filter_keys, finds(&guarded, b"b")), (1, false));
    let writes = [Write::Delete(b"a"), Write::Put(b"a", b"3"), Write::Delete(b"c")];
    assert_eq!(guarded.write_many(&writes).unwrap(), [true, false, false]);
    let stats = guarded.stats();
    assert_eq!((stats.filter_keys, stats.puts, stats.deletes), (1, 2, 2));
    assert!(finds(&guarded, b"a"));
}

/// One after the other, as this store does them.
#[test]
fn keys_are_found_as_soon_as_the_store_has_them_and_values_are_not_cached() {
    let store = Arc::new(ScriptedStore::default());
    let guarded = Guarded::builder(Arc::clone(&store)).cache_bytes(10_000).open().unwrap();
    guarded.wait_until_ready().unwrap();
    guarded.put(b"old", b"1").unwrap();
    assert!(finds(&guarded, b"old") && finds(&guarded, b"old"));
    let gate = Gate::new();
    store.next(Op::Put, [Act::Do, Act::Do, Act::Stall(gate.clone())]);
    std::thread::scope(|scope| {
        let guarded = &guarded;
        scope.spawn(|| {
            guarded.write_many(&[Write::Put(b"a", b"1"), Write::Put(b"old", b"2"), Write::Put(b"b", b"1")])
        });
        let waiting = gate.wait();
        assert!(finds(guarded, b"a") && !finds(guarded, b"b"));
        assert_eq!(guarded.get(b"old").unwrap().as_deref(), Some(&b"2"[..]));
        waiting.open();
    });
    assert!(finds(&guarded, b"b"));
}

#[test]
fn what_was_done_before_one_fails_is_found_and_what_was_not_leaves_nothing() {
    let (store, guarded) = open();
    guarded.put(b"d", b"1").unwrap();
    store.next(Op::Put, [Act::Do, Act::Fail]);
    let writes =
        [Write::Put(b"a", b"1"), Write::Delete(b"d"), Write::Put(b"b", b"1"), Write::Put(b"c", b"1")];
    let error = guarded.write_many(&writes).unwrap_err();
    assert!(matches!(error, Error::Store(Scripted)));
    assert!(finds(&guarded, b"a") && !finds(&guarded, b"b"));
    // The fingerprint of a key that was perhaps deleted stays.
    assert_eq!((guarded.stats().filter_keys, guarded.stats().failed_writes), (2, 4));
}

#[test]
fn nothing_is_denied_after_a_panic_or_where_the_store_cannot_say_what_was_done() {
    let (store, guarded) = open();
    store.next(Op::Put, [Act::Do, Act::DoAndPanic]);
    let writes = [Write::Put(b"a", b"1"), Write::Put(b"b", b"1"), Write::Put(b"c", b"1")];
    assert!(catch_unwind(AssertUnwindSafe(|| guarded.write_many(&writes))).is_err());
    assert!(finds(&guarded, b"a") && finds(&guarded, b"b") && !finds(&guarded, b"c"));
    store.next(Op::Put, [Act::Do, Act::Fail]);
    store.next(Op::Get, [Act::Fail]);
    assert!(guarded.write_many(&[Write::Put(b"d", b"1"), Write::Put(b"e", b"1")]).is_err());
    assert!(finds(&guarded, b"d") && !finds(&guarded, b"e"));
    // No lock is held.
    assert_eq!(guarded.write_many(&writes).unwrap(), [true, true, false]);
}

/// Failed puts leave a fingerprint of a present key, until there is no room for one more.
fn crowd(store: &ScriptedStore, guarded: &Guarded<Arc<ScriptedStore>>, failed: usize) -> usize {
    guarded.put(b"again", b"1").unwrap();
    let fails = |_: &usize| {
        store.next(Op::Put, [Act::Fail]);
        guarded.put(b"again", b"2").is_err() && guarded.stats().crowded_stripes == 0
    };
    (0..failed).take_while(fails).count()
}

/// One write finds no room for its fingerprint, and marks its stripe. Others rely on the mark, though its key was there.
#[test]
fn a_mark_that_one_has_made_is_there_for_the_others() {
    let (store, guarded) = open();
    let room = crowd(&store, &guarded, 20);
    assert!(room < 19, "it is full some time");
    let (store, guarded) = open();
    assert_eq!(crowd(&store, &guarded, room), room);
    assert!(guarded.put(b"again", b"2").unwrap() && guarded.stats().crowded_stripes == 0);
    let keys: Vec<Vec<u8>> = (0..20_000).map(key).collect();
    let new = keys.iter().map(|key| Write::Put(key, b""));
    let writes: Vec<Write<'_>> = [Write::Put(b"again", b"3")].into_iter().chain(new).collect();
    let existed = guarded.write_many(&writes).unwrap();
    assert!(existed[0] && !existed[1..].contains(&true));
    // One of the others may have the fingerprint that is there so often, and mark its own stripe.
    assert!(guarded.stats().crowded_stripes > 0);
    assert_eq!(keys.iter().filter(|key| !finds(&guarded, key)).count(), 0);
}

/// Otherwise its fingerprints would find no room, and look-ups of all keys of its stripe would pass.
#[test]
fn a_key_that_comes_again_and_again_needs_no_more_room_than_one() {
    let (_, guarded) = open();
    let writes: Vec<Write<'_>> = (0..100).map(|_| Write::Put(b"counter", b"1")).collect();
    for was_there in [false, true] {
        let existed = guarded.write_many(&writes).unwrap();
        assert!(existed[0] == was_there && existed[1..].iter().all(|existed| *existed));
        assert_eq!((guarded.stats().crowded_stripes, guarded.stats().filter_keys), (0, 1));
    }
}

/// As by a single put or delete.
#[test]
fn a_key_that_somebody_put_around_the_guard_is_noticed_though_it_is_deleted_first() {
    let (store, guarded) = open();
    sure(store.inner.put(b"around", b"1"));
    assert!(!finds(&guarded, b"around"), "which must not be");
    let writes = [Write::Delete(b"around"), Write::Put(b"around", b"2"), Write::Put(b"other", b"1")];
    assert_eq!(guarded.write_many(&writes).unwrap(), [true, false, false]);
    guarded.wait_until_ready().unwrap();
    assert!(finds(&guarded, b"around") && store.scans() == 2);
}

/// A store that does all writes in one transaction refuses a batch as a whole.
fn refuses_all<S: Store>(store: S, refused: &[u8], is_refusal: fn(&S::Error) -> bool) {
    let guarded = ready(store);
    // A put first: before any write, a delete would be a write.
    guarded.put(b"c", b"3").unwrap();
    let before = guarded.store().generation().unwrap();
    let writes = [Write::Put(b"a", b"1"), Write::Put(refused, b"1"), Write::Delete(b"b")];
    let error = guarded.write_many(&writes).unwrap_err();
    assert!(matches!(&error, Error::Store(error) if is_refusal(error)), "{error}");
    assert!(!finds(&guarded, b"a"));
    assert_eq!(guarded.write_many(&[Write::Delete(b"a"), Write::Delete(b"b")]).unwrap(), [false, false]);
    assert_eq!(guarded.store().generation().unwrap(), before, "nothing has changed");
    assert_eq!(guarded.write_many(&[Write::Put(b"a", b"1"), Write::Put(b"b", b"2")]).unwrap(), [false; 2]);
    let after = guarded.store().generation().unwrap();
    assert_eq!(after.count, before.count + 1, "one transaction");
    assert_eq!(guarded.stats().filter_keys, 3);
}

#[test]
fn stores_on_disk_do_all_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let redb = RedbStore::open(folder.path().join("a")).unwrap();
    let long = vec![0; RedbStore::MAX_KEY_LEN + 1];
    refuses_all(redb, &long, |error| matches!(error, RedbError::KeyTooLong { .. }));
    let fjall = FjallStore::open(folder.path().join("b")).unwrap();
    refuses_all(fjall, b"", |error| matches!(error, FjallError::KeyEmpty));
}

/// A change would write a generation, and wait for the disk.
#[test]
fn deletes_of_absent_keys_change_no_store() {
    fn changes_nothing<S: Store>(store: S) {
        let deletes = [Write::Delete(b"a"), Write::Delete(b"b")];
        store.put(b"there", b"").unwrap();
        let before = store.generation().unwrap();
        assert!(!store.delete(b"a").unwrap());
        assert_eq!(store.write_many(&deletes).unwrap(), [false, false]);
        assert_eq!(store.generation().unwrap(), before);
        assert!(store.delete(b"there").unwrap());
        assert_ne!(store.generation().unwrap(), before);
    }
    let folder = tempfile::tempdir().unwrap();
    changes_nothing(RedbStore::open(folder.path().join("a")).unwrap());
    changes_nothing(FjallStore::open(folder.path().join("b")).unwrap());
}

/// A batch counts as its number of writes.
#[test]
fn a_scan_that_has_failed_is_tried_again_after_some_batches() {
    let (_, guarded) = unscanned();
    let keys: Vec<Vec<u8>> = (0..1024).map(key).collect();
    let writes: Vec<Write<'_>> = keys.iter().map(|key| Write::Put(key, b"")).collect();
    for _ in 0..3 {
        guarded.write_many(&writes).unwrap();
    }
    assert_eq!(guarded.progress().phase, Phase::Unfiltered);
    guarded.write_many(&writes).unwrap();
    guarded.wait_until_ready().unwrap();
    assert_eq!((guarded.progress().phase, guarded.stats().filter_keys), (Phase::Ready, 1024));
}

/// A store that returns one answer too few in batches.
struct Short(HashMapStore);

impl Store for Short {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Infallible> {
        self.0.get(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, Infallible> {
        self.0.get_many(&keys[1..])
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Infallible> {
        self.0.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Infallible> {
        self.0.delete(key)
    }

    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>, Infallible> {
        self.0.write_many(writes).map(|mut answers| {
            answers.pop();
            answers
        })
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Infallible>>, Infallible> {
        self.0.scan_keys()
    }

    fn generation(&self) -> Result<Generation, Infallible> {
        self.0.generation()
    }
}

/// No key is missed because of that, and nothing stays locked.
#[test]
fn a_store_that_answers_for_too_few_is_told_so() {
    let guarded = ready(Short(HashMapStore::new()));
    let writes = [Write::Put(b"a", b"1"), Write::Put(b"b", b"1")];
    assert!(catch_unwind(AssertUnwindSafe(|| guarded.write_many(&writes))).is_err());
    assert!(finds(&guarded, b"a") && finds(&guarded, b"b"));
    assert!(guarded.put(b"a", b"2").unwrap() && guarded.delete(b"b").unwrap());
    assert!(catch_unwind(AssertUnwindSafe(|| guarded.get_many(&["a", "b"]))).is_err());
    assert_eq!(guarded.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
}
