//! The guard over a store without locks [D1]..[D3], [D5], [D6]: a key that the store holds is never reported absent, a value is
//! never older than the last write that was over, and a decision is applied to the value it was based on [D9].
#![cfg(loom)]

use std::sync::Arc;

use koel::Operation;
use koel::guard::{Filter, Generation, Guarded, Phase, Scanned, Store, Value};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use loom_tests::{FAILS, Failed, model_with_preemptions, same_hashes};

const KEY: &[u8] = b"key";

/// A store of one key, whose value is a byte; 0 if the key is not there.
#[derive(Default)]
struct Word(AtomicU64);

impl Word {
    fn put(&self, value: u8) -> bool {
        self.0.swap(value.into(), Ordering::AcqRel) != 0
    }

    fn value(&self) -> u8 {
        self.0.load(Ordering::Acquire) as u8
    }
}

impl Store for Word {
    type Error = Failed;

    fn get(&self, _: &[u8]) -> Result<Option<Value>, Failed> {
        let value = self.value();
        Ok((value != 0).then(|| Arc::from([value])))
    }

    fn put(&self, _: &[u8], value: &[u8]) -> Result<bool, Failed> {
        let existed = Word::put(self, value[0]);
        if value[0] == FAILS { Err(Failed) } else { Ok(existed) }
    }

    fn delete(&self, _: &[u8]) -> Result<bool, Failed> {
        Ok(Word::put(self, 0))
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Failed>>, Failed> {
        match self.value() {
            FAILS => Err(Failed),
            value => Ok((value != 0).then(|| Ok(KEY.into())).into_iter()),
        }
    }

    fn generation(&self) -> Result<Generation, Failed> {
        Ok(Generation { lineage: 0, count: 0 })
    }

    fn len_hint(&self) -> Option<u64> {
        Some(1)
    }
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    same_hashes();
    loom::model(f);
}

fn guard(filter: Filter, cache_bytes: u64) -> Arc<Guarded<Word>> {
    let builder = Guarded::builder(Word::default()).filter(filter).expected_keys(1).false_positive_rate(0.01);
    let guard = builder.cache_bytes(cache_bytes).open().unwrap();
    guard.wait_until_ready().unwrap();
    Arc::new(guard)
}

/// The key's value, or 0.
fn get(guard: &Guarded<Word>) -> u8 {
    guard.get(KEY).unwrap().map_or(0, |value| value[0])
}

fn put(guard: &Guarded<Word>, value: u8) {
    guard.put(KEY, &[value]).unwrap();
}

/// Runs `f` in another thread.
fn spawn(guard: &Arc<Guarded<Word>>, f: impl FnOnce(&Guarded<Word>) + 'static) -> thread::JoinHandle<()> {
    let guard = Arc::clone(guard);
    thread::spawn(move || f(&guard))
}

#[test]
fn a_cached_value_is_never_older_than_the_last_write_that_was_over() {
    model(|| {
        let guard = guard(Filter::None, 1 << 10);
        put(&guard, 1);
        let reader = spawn(&guard, |guard| assert!(get(guard) <= get(guard)));
        put(&guard, 2);
        assert_eq!(get(&guard), 2);
        reader.join().unwrap();
        assert_eq!(get(&guard), 2);
    });
}

/// Adds 1 to the key's value.
fn add(guard: &Guarded<Word>) {
    let more = |old: Option<&[u8]>| Operation::<_, ()>::Insert([old.map_or(1, |old| old[0] + 1)]);
    guard.compute(KEY, more).unwrap();
}

#[test]
fn of_two_who_add_to_a_value_both_are_counted() {
    model(|| {
        let guard = guard(Filter::None, 1 << 10);
        let other = spawn(&guard, add);
        add(&guard);
        other.join().unwrap();
        assert_eq!(get(&guard), 2);
    });
}

#[test]
fn a_key_that_is_remembered_as_absent_is_there_when_it_was_put() {
    model(|| {
        let guard = guard(Filter::Cuckoo, 0);
        // The key is in the filter, and not in the store: a false positive.
        put(&guard, 1);
        guard.store().put(0);
        // A reader that finds it absent twice remembers it.
        let reader = spawn(&guard, |guard| assert_eq!(guard.get_many(&[KEY, KEY]).unwrap().len(), 2));
        put(&guard, 2);
        assert_eq!(get(&guard), 2);
        reader.join().unwrap();
        assert_eq!(get(&guard), 2);
    });
}

/// A reader that has seen in the store what is put gets it from the guard.
fn seen_is_got(guard: &Arc<Guarded<Word>>) {
    let reader = spawn(guard, |guard| {
        let seen = guard.store().value();
        assert!(get(guard) >= seen);
    });
    put(guard, 2);
    reader.join().unwrap();
}

#[test]
fn a_key_that_the_store_holds_is_not_denied() {
    model(|| seen_is_got(&guard(Filter::Cuckoo, 0)));
}

#[test]
fn a_key_that_the_store_holds_is_not_denied_beside_a_scan() {
    model(|| {
        let guard = guard(Filter::Cuckoo, 0);
        guard.rebuild().unwrap();
        seen_is_got(&guard);
    });
}

#[test]
fn a_cached_value_is_not_older_than_what_was_seen_in_the_store() {
    model(|| {
        let guard = guard(Filter::None, 1 << 10);
        put(&guard, 1);
        assert_eq!(get(&guard), 1);
        seen_is_got(&guard);
    });
}

#[test]
fn of_two_who_write_a_key_neither_undoes_what_the_other_told_the_filter() {
    model(|| {
        let guard = guard(Filter::Cuckoo, 0);
        let other = spawn(&guard, |guard| put(guard, 1));
        put(&guard, 2);
        guard.delete(KEY).unwrap();
        other.join().unwrap();
        let held = guard.store().value();
        assert_eq!(get(&guard), held);
        assert_eq!(guard.stats().filter_keys, (held > 0).into());
    });
}

#[test]
fn a_put_that_fails_takes_nothing_out_of_the_filter_that_another_has_put() {
    model(|| {
        let guard = guard(Filter::Cuckoo, 0);
        let failing = spawn(&guard, |guard| assert!(guard.put(KEY, &[FAILS]).is_err()));
        guard.delete(KEY).unwrap();
        put(&guard, 2);
        failing.join().unwrap();
        assert_eq!(get(&guard), guard.store().value());
    });
}

/// Others put and delete what a scan is about to find, or has found.
fn a_scan_beside(write: impl Fn(&Guarded<Word>) + Sync + Send + 'static, before: u8) {
    model(move || {
        let guard = guard(Filter::Cuckoo, 0);
        if before > 0 {
            put(&guard, before);
        }
        guard.rebuild().unwrap();
        write(&guard);
        guard.wait_until_ready().unwrap();
        let held = guard.store().value();
        assert_eq!(get(&guard), held);
        assert_eq!(guard.stats().filter_keys, (held > 0).into());
    });
}

#[test]
fn a_key_that_comes_beside_a_scan_is_in_the_filter() {
    a_scan_beside(|guard| put(guard, 1), 0);
}

#[test]
fn a_key_that_leaves_beside_a_scan_is_not_in_the_filter() {
    a_scan_beside(|guard| assert!(guard.delete(KEY).unwrap()), 1);
}

#[test]
fn a_key_that_leaves_and_comes_back_beside_a_scan_is_in_the_filter() {
    a_scan_beside(
        |guard| {
            guard.delete(KEY).unwrap();
            put(guard, 2);
        },
        1,
    );
}

#[test]
fn a_key_that_is_put_again_beside_a_scan_is_in_the_filter_once() {
    a_scan_beside(|guard| put(guard, 2), 1);
}

#[test]
fn a_scan_that_is_asked_for_beside_another_finds_what_has_come_around_the_guard() {
    same_hashes();
    // Two preemptions do not reveal that the first scan's filter is not asked.
    model_with_preemptions(3, || {
        let guard = guard(Filter::Cuckoo, 0);
        guard.rebuild().unwrap();
        guard.store().put(2);
        guard.rebuild().unwrap();
        assert_eq!(get(&guard), 2);
        guard.wait_until_ready().unwrap();
        assert_eq!((get(&guard), guard.stats().filter_keys), (2, 1));
        assert_eq!(guard.progress().phase, Phase::Ready);
    });
}

#[test]
fn a_key_that_is_remembered_as_absent_is_there_after_a_scan() {
    model(|| {
        let guard = guard(Filter::Cuckoo, 0);
        put(&guard, 1);
        guard.store().put(0);
        assert_eq!((get(&guard), get(&guard)), (0, 0));
        guard.store().put(2);
        guard.rebuild().unwrap();
        guard.wait_until_ready().unwrap();
        assert_eq!(get(&guard), 2);
    });
}

#[test]
fn of_two_who_wait_for_a_scan_that_fails_one_is_told() {
    model(|| {
        let guard = guard(Filter::Cuckoo, 0);
        guard.put(KEY, &[FAILS]).unwrap_err();
        guard.rebuild().unwrap();
        let told = |guard: &Guarded<Word>| u32::from(guard.wait_until_ready().is_err());
        let other = {
            let guard = Arc::clone(&guard);
            thread::spawn(move || told(&guard))
        };
        assert_eq!(told(&guard) + other.join().unwrap(), 1);
        assert_eq!(guard.progress().phase, Phase::Unfiltered);
    });
}

#[test]
fn what_was_written_around_the_guard_is_seen_after_a_scan() {
    same_hashes();
    // Two preemptions, which the others may have, do not reveal it: the reader is interrupted twice.
    model_with_preemptions(3, || {
        let guard = guard(Filter::None, 1 << 10);
        put(&guard, 1);
        let reader = spawn(&guard, |guard| assert!(get(guard) > 0));
        guard.store().put(2);
        guard.rebuild().unwrap();
        guard.wait_until_ready().unwrap();
        assert_eq!(get(&guard), 2);
        reader.join().unwrap();
        assert_eq!(get(&guard), 2);
    });
}
