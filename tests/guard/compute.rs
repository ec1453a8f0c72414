//! Writes that depend on the current value [D9].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::scope;

use koel::Operation;
use koel::guard::{Computed, FjallStore, Guarded, HashMapStore, RedbStore, Store};

use crate::common::{key, ready};
use crate::scripted::{Act, Op, filled};

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn one_more(old: Option<&[u8]>) -> Operation<Vec<u8>, ()> {
    Operation::Insert((old.map_or(0, number) + 1).to_le_bytes().to_vec())
}

/// Several threads add to a few values, and no addition is lost, while others write to these and to other keys.
fn all_are_counted<S: Store>(store: S, times: u64)
where
    S::Error: std::fmt::Debug,
{
    const THREADS: u64 = 4;
    let store = Arc::new(store);
    for cache_bytes in [0, 10_000] {
        let guarded = Guarded::builder(Arc::clone(&store)).cache_bytes(cache_bytes).open().unwrap();
        for counter in 0..3 {
            guarded.delete(&key(counter)).unwrap();
        }
        scope(|scope| {
            for thread in 0..THREADS {
                let guarded = &guarded;
                scope.spawn(move || {
                    for time in 0..times {
                        guarded.compute(&key(time % 3), one_more).unwrap();
                        guarded.put(&key(100 + thread), b"another").unwrap();
                    }
                });
            }
        });
        let counted: u64 = (0..3).map(|counter| number(&guarded.get(&key(counter)).unwrap().unwrap())).sum();
        assert_eq!(counted, THREADS * times);
        guarded.wait_until_ready().unwrap();
        assert_eq!(guarded.stats().filter_keys, 3 + THREADS);
    }
}

#[test]
fn of_those_who_add_to_a_value_all_are_counted() {
    all_are_counted(HashMapStore::new(), 3000);
}

#[test]
fn of_those_who_add_to_a_value_on_a_disk_all_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    all_are_counted(RedbStore::open(folder.path().join("redb")).unwrap(), 30);
    all_are_counted(FjallStore::open(folder.path().join("fjall")).unwrap(), 300);
}

#[test]
fn the_answer_is_what_was_done() {
    let guarded = ready(HashMapStore::new());
    let compute = |decided: Operation<&'static [u8], u8>| guarded.compute(b"key", |_| decided).unwrap();
    let value = |bytes: &[u8]| bytes.into();
    assert_eq!(compute(Operation::Abort(7)), Computed::Aborted(7));
    assert_eq!(compute(Operation::Insert(b"1")), Computed::Put(None));
    assert_eq!(compute(Operation::Insert(b"2")), Computed::Put(Some(value(b"1"))));
    assert_eq!((guarded.stats().filter_keys, guarded.get(b"key").unwrap().as_deref()), (1, Some(&b"2"[..])));
    assert_eq!(compute(Operation::Remove), Computed::Deleted(value(b"2")));
    assert_eq!((guarded.stats().filter_keys, guarded.get(b"key").unwrap()), (0, None));
}

/// Another thread writes while the closure decides: it is called again.
#[test]
fn a_write_meanwhile_is_seen() {
    let guarded = ready(HashMapStore::new());
    let mut seen = Vec::new();
    let done = guarded.compute(b"key", |old| {
        seen.push(old.map(<[u8]>::to_vec));
        if seen.len() < 3 {
            guarded.put(b"key", &[seen.len() as u8]).unwrap();
        }
        Operation::<_, ()>::Insert(b"last".to_vec())
    });
    assert!(matches!(done.unwrap(), Computed::Put(Some(old)) if *old == [2]));
    assert_eq!(seen, [None, Some(vec![1]), Some(vec![2])]);
}

/// The store holds none of these keys, and is hardly ever asked for one.
#[test]
fn a_new_key_is_put_without_a_look_into_the_store() {
    let store = filled(0);
    let guarded = ready(Arc::clone(&store));
    for new in 0..100 {
        let put = guarded.compute(&key(new), |old| match old {
            None => Operation::Insert(b"new".to_vec()),
            Some(_) => Operation::Abort(()),
        });
        assert!(matches!(put, Ok(Computed::Put(None))));
    }
    assert!(store.reads() < 20 && guarded.stats().filter_keys == 100);
}

#[test]
fn what_panics_or_fails_has_done_nothing() {
    let store = filled(0);
    let guarded = ready(Arc::clone(&store));
    guarded.put(b"key", b"1").unwrap();
    type Decide = fn(Option<&[u8]>) -> Operation<Vec<u8>, ()>;
    let panics = |of: &[u8], decide: Decide| {
        catch_unwind(AssertUnwindSafe(|| drop(guarded.compute(of, decide)))).unwrap_err();
    };
    panics(b"key", |_| panic!("decided nothing"));
    panics(b"absent", |_| Operation::Remove);
    store.next(Op::Get, [Act::Fail]);
    guarded.compute(b"key", one_more).unwrap_err();
    store.next(Op::Put, [Act::Fail]);
    guarded.compute(b"key", |_| Operation::<_, ()>::Insert(b"2".to_vec())).unwrap_err();
    store.next(Op::Delete, [Act::Fail]);
    guarded.compute(b"key", |_| Operation::<Vec<u8>, ()>::Remove).unwrap_err();
    assert_eq!(guarded.get(b"key").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(!guarded.contains_key(b"absent").unwrap());
}

/// A value that writes to the guard when it is asked for its bytes.
struct Nested<'g>(&'g Guarded<HashMapStore>);

impl AsRef<[u8]> for Nested<'_> {
    fn as_ref(&self) -> &[u8] {
        if self.0.get(b"other").unwrap().is_none() {
            self.0.put(b"other", b"1").unwrap();
            self.0.put(b"key", b"1").unwrap();
        }
        b"2"
    }
}

/// The value, too, is asked for its bytes with nothing locked.
#[test]
fn a_value_that_writes_to_the_guard_is_decided_about_again() {
    let guarded = ready(HashMapStore::new());
    let done = guarded.compute(b"key", |_| Operation::<_, ()>::Insert(Nested(&guarded))).unwrap();
    assert_eq!(done, Computed::Put(Some(b"1"[..].into())));
    assert_eq!(guarded.get(b"key").unwrap().as_deref(), Some(&b"2"[..]));
}
