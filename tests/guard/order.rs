//! The order rules, with a store that fails, panics or stalls on command.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use koel::guard::{Error, Guarded, Store};

use crate::common::{finds, key, ready};
use crate::scripted::{Act, Gate, Op, Scripted, ScriptedStore, sure};

type Opened = (Arc<ScriptedStore>, Guarded<Arc<ScriptedStore>>);

fn open() -> Opened {
    let store = Arc::new(ScriptedStore::default());
    let guarded = ready(Arc::clone(&store));
    (store, guarded)
}

fn keys(guarded: &Guarded<Arc<ScriptedStore>>) -> u64 {
    guarded.stats().filter_keys
}

fn failed<T: std::fmt::Debug>(result: Result<T, Error<Scripted>>) {
    assert!(matches!(result, Err(Error::Store(Scripted))), "{result:?}");
}

#[test]
fn an_absent_key_does_not_reach_the_store() {
    let (store, guarded) = open();
    assert!(!finds(&guarded, b"nobody"));
    assert_eq!((store.reads(), guarded.stats().blocked), (0, 1));
}

#[test]
fn a_new_key_has_one_fingerprint_and_an_overwritten_one_no_more() {
    let (_, guarded) = open();
    assert!(!guarded.put(b"a", b"1").unwrap());
    for _ in 0..100 {
        assert!(guarded.put(b"a", b"2").unwrap());
        assert_eq!(keys(&guarded), 1);
    }
    assert!(guarded.delete(b"a").unwrap());
    assert_eq!(keys(&guarded), 0);
    assert!(!guarded.delete(b"a").unwrap());
    assert_eq!((keys(&guarded), finds(&guarded, b"a")), (0, false));
}

#[test]
fn a_delete_of_a_key_that_is_not_there_takes_nobodys_fingerprint() {
    let (_, guarded) = open();
    for number in 0..1000 {
        guarded.put(&key(number), b"1").unwrap();
    }
    // Among this many absent keys there are false positives.
    for number in 1000..20_000 {
        assert!(!guarded.delete(&key(number)).unwrap());
    }
    assert_eq!(keys(&guarded), 1000);
    assert!((0..1000).all(|number| finds(&guarded, &key(number))));
}

#[test]
fn the_fingerprint_is_in_the_filter_while_the_put_is_under_way() {
    let (store, guarded) = open();
    for (act, visible) in [(Act::Stall as fn(Gate) -> Act, false), (Act::DoAndStall, true)] {
        let gate = Gate::new();
        store.next(Op::Put, [act(gate.clone())]);
        let name: &[u8] = if visible { b"after" } else { b"before" };
        std::thread::scope(|scope| {
            scope.spawn(|| guarded.put(name, b"1").unwrap());
            let waiting = gate.wait();
            let reads = store.reads();
            assert_eq!(finds(&guarded, name), visible);
            assert_eq!(store.reads(), reads + 1, "the filter says perhaps");
            waiting.open();
        });
        assert!(finds(&guarded, name));
    }
    assert_eq!(keys(&guarded), 2);
}

#[test]
fn the_fingerprint_is_in_the_filter_until_the_delete_has_committed() {
    let (store, guarded) = open();
    for (act, visible) in [(Act::Stall as fn(Gate) -> Act, true), (Act::DoAndStall, false)] {
        guarded.put(b"a", b"1").unwrap();
        let gate = Gate::new();
        store.next(Op::Delete, [act(gate.clone())]);
        std::thread::scope(|scope| {
            scope.spawn(|| guarded.delete(b"a").unwrap());
            let waiting = gate.wait();
            assert_eq!((finds(&guarded, b"a"), keys(&guarded)), (visible, 1));
            waiting.open();
        });
        assert_eq!((finds(&guarded, b"a"), keys(&guarded)), (false, 0));
    }
}

#[test]
fn a_put_that_fails_leaves_no_fingerprint_of_a_key_that_did_not_come() {
    let (store, guarded) = open();
    store.next(Op::Put, [Act::Fail]);
    failed(guarded.put(b"a", b"1"));
    assert_eq!((keys(&guarded), guarded.stats().failed_writes), (0, 1));
}

#[test]
fn a_put_that_fails_after_its_commit_is_found() {
    let (store, guarded) = open();
    store.next(Op::Put, [Act::DoAndFail]);
    failed(guarded.put(b"a", b"1"));
    assert!(finds(&guarded, b"a"));
    assert!(guarded.delete(b"a").unwrap());
    assert_eq!(keys(&guarded), 0);
}

#[test]
fn a_put_of_which_the_store_cannot_say_what_became_stays_in_the_filter() {
    let put = [Act::Fail, Act::DoAndFail, Act::Fail, Act::DoAndFail];
    let get = [Act::Fail, Act::Fail, Act::Panic, Act::Panic];
    for (put, get) in put.into_iter().zip(get) {
        let (store, guarded) = open();
        store.next(Op::Put, [put]);
        store.next(Op::Get, [get]);
        let put = catch_unwind(AssertUnwindSafe(|| guarded.put(b"a", b"1")));
        assert!(!matches!(put, Ok(Ok(_))));
        assert_eq!((keys(&guarded), guarded.stats().failed_writes), (1, 1));
        let there = sure(store.inner.get(b"a")).is_some();
        assert_eq!(finds(&guarded, b"a"), there);
    }
}

#[test]
fn an_overwrite_that_fails_leaves_the_key_in_the_filter() {
    for act in [Act::Fail, Act::DoAndFail, Act::Panic, Act::DoAndPanic] {
        let (store, guarded) = open();
        guarded.put(b"a", b"1").unwrap();
        store.next(Op::Put, [act]);
        let _ = catch_unwind(AssertUnwindSafe(|| guarded.put(b"a", b"2")));
        assert!(finds(&guarded, b"a"));
        guarded.delete(b"a").unwrap();
        assert!(!finds(&guarded, b"a"));
    }
}

#[test]
fn a_delete_that_fails_leaves_the_key_in_the_filter() {
    for (act, failed) in [(Act::Fail, 1), (Act::DoAndFail, 1), (Act::Panic, 0), (Act::DoAndPanic, 0)] {
        let (store, guarded) = open();
        guarded.put(b"a", b"1").unwrap();
        store.next(Op::Delete, [act]);
        let _ = catch_unwind(AssertUnwindSafe(|| guarded.delete(b"a")));
        let there = sure(store.inner.get(b"a")).is_some();
        assert_eq!((finds(&guarded, b"a"), keys(&guarded)), (there, 1));
        assert_eq!((guarded.stats().deletes, guarded.stats().failed_writes), (0, failed));
        // And it can be written again.
        guarded.put(b"a", b"2").unwrap();
        assert!(finds(&guarded, b"a"));
    }
}

#[test]
fn a_store_that_panics_leaves_no_lock_and_no_false_absent() {
    for act in [Act::Panic, Act::DoAndPanic] {
        let (store, guarded) = open();
        store.next(Op::Put, [act]);
        assert!(catch_unwind(AssertUnwindSafe(|| guarded.put(b"a", b"1"))).is_err());
        let there = sure(store.inner.get(b"a")).is_some();
        assert_eq!(finds(&guarded, b"a"), there);
        guarded.put(b"a", b"2").unwrap();
        assert_eq!(guarded.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
    }
}

#[test]
fn writes_of_one_key_wait_for_each_other() {
    let (store, guarded) = open();
    let gate = Gate::new();
    store.next(Op::Put, [Act::DoAndStall(gate.clone())]);
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(!guarded.put(b"a", b"1").unwrap()));
        let waiting = gate.wait();
        for second in [true, false] {
            let (guarded, done) = (&guarded, done.clone());
            scope.spawn(move || {
                if second {
                    guarded.put(b"a", b"2").unwrap();
                } else {
                    guarded.delete(b"a").unwrap();
                }
                done.send(()).unwrap();
            });
        }
        let early = is_done.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "the first is not over");
        waiting.open();
    });
    let there = sure(store.inner.get(b"a")).is_some();
    assert_eq!((finds(&guarded, b"a"), keys(&guarded)), (there, u64::from(there)));
}

/// A reader that has got "not there" from the store before a put must not remember it afterwards.
#[test]
fn what_a_reader_had_before_a_write_is_not_remembered_after_it() {
    let store = Arc::new(ScriptedStore::default());
    let builder = Guarded::builder(Arc::clone(&store)).false_positive_rate(0.4).expected_keys(1);
    let guarded = builder.open().unwrap();
    guarded.wait_until_ready().unwrap();
    for number in 0..2000 {
        guarded.put(&key(number), b"1").unwrap();
    }
    let passes = |number: &u64| {
        let before = guarded.stats().passed_absent;
        assert!(!finds(&guarded, &key(*number)));
        guarded.stats().passed_absent > before
    };
    // A key is remembered when it is a false positive for the second time: two readers.
    let wrong: Vec<u64> = (10_000..).filter(passes).take(20).collect();
    for number in wrong {
        let gates = [Gate::new(), Gate::new()];
        store.next(Op::Get, gates.clone().map(Act::DoAndStall));
        std::thread::scope(|scope| {
            let readers = gates.each_ref().map(|gate| {
                let reader = scope.spawn(|| finds(&guarded, &key(number)));
                (reader, gate.wait())
            });
            guarded.put(&key(number), b"1").unwrap();
            let readers = readers.map(|(reader, waiting)| {
                waiting.open();
                reader
            });
            for reader in readers {
                assert!(!reader.join().unwrap(), "read before the put");
            }
        });
        assert!(finds(&guarded, &key(number)), "read after the put");
    }
}

/// Nor a value, however the write ends.
#[test]
fn what_a_reader_had_before_a_write_is_not_cached_after_it() {
    for act in [Act::DoAndFail, Act::DoAndPanic] {
        let store = Arc::new(ScriptedStore::default());
        let guarded = Guarded::builder(Arc::clone(&store)).cache_bytes(1 << 20).open().unwrap();
        guarded.wait_until_ready().unwrap();
        guarded.put(b"a", b"1").unwrap();
        let gate = Gate::new();
        store.next(Op::Get, [Act::DoAndStall(gate.clone())]);
        store.next(Op::Put, [act]);
        let get = || guarded.get(b"a").unwrap().expect("it is there").to_vec();
        std::thread::scope(|scope| {
            let reader = scope.spawn(get);
            let waiting = gate.wait();
            assert!(!matches!(catch_unwind(AssertUnwindSafe(|| guarded.put(b"a", b"2"))), Ok(Ok(_))));
            waiting.open();
            assert_eq!(reader.join().unwrap(), b"1", "read before the put");
        });
        assert_eq!(get(), b"2", "read after the put");
    }
}

/// A reader that looks a key up while it is put or deleted may pass the filter and find nothing: the filter knows such a key,
/// and is not wrong.
#[test]
fn a_look_up_beside_a_write_is_no_false_positive() {
    let (store, guarded) = open();
    let counts = || {
        let stats = guarded.stats();
        (stats.passed_absent, stats.passed_beside_write, stats.observed_false_positive_rate)
    };
    let beside = |op, act: fn(Gate) -> Act, write: &(dyn Fn() + Sync), look: &dyn Fn()| {
        let gate = Gate::new();
        store.next(op, [act(gate.clone())]);
        std::thread::scope(|scope| {
            scope.spawn(write);
            let waiting = gate.wait();
            look();
            waiting.open();
        });
    };
    let finds_nothing = || assert!(!finds(&guarded, b"a"));
    let put = || assert!(!guarded.put(b"a", b"1").unwrap());
    let delete = || assert!(guarded.delete(b"a").unwrap());
    beside(Op::Put, Act::Stall, &put, &finds_nothing);
    assert_eq!(counts(), (1, 1, 0.0));
    beside(Op::Delete, Act::DoAndStall, &delete, &finds_nothing);
    assert_eq!(counts(), (2, 2, 0.0));
    put();
    // Complete when the look-up reads.
    beside(Op::Get, Act::Stall, &finds_nothing, &delete);
    assert_eq!(counts(), (3, 3, 0.0));
    finds_nothing();
    let stats = guarded.stats();
    assert_eq!((stats.blocked, stats.lookups(), stats.store_reads()), (1, 4, 3));
}
