//! The guard over a store that fails and panics, before and after it has done what it was asked for [D1]..[D3], [D5]: a key
//! that the store holds is never denied, and a value is never older than what the store held when the look-up began.
#![cfg(shuttle)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use koel::guard::{Error, Generation, Guarded, HashMapStore, Phase, Scanned, Store, Value, Write};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::thread;
use shuttle_tests::{Failed, explore, pause};

const WRITERS: usize = 2;
/// Two keys for each writer.
const KEYS: usize = 2 * WRITERS;

/// The effects of a key's writes, which are numbered from 1 on.
#[derive(Default)]
struct History {
    begun: AtomicU64,
    over: AtomicU64,
    /// A bit for each write, of which there are fewer than bits: whether it was a put, which put its number.
    puts: AtomicU64,
}

impl History {
    /// The key's value when so many writes were over.
    fn value(&self, writes: u64) -> Option<u64> {
        (self.puts.load(Ordering::SeqCst) >> writes & 1 == 1).then_some(writes)
    }

    fn write<T>(&self, is_put: bool, write: impl FnOnce(u64) -> T) -> T {
        let number = self.begun.load(Ordering::SeqCst) + 1;
        self.puts.fetch_or(u64::from(is_put) << number, Ordering::SeqCst);
        self.begun.store(number, Ordering::SeqCst);
        let result = write(number);
        self.over.store(number, Ordering::SeqCst);
        result
    }
}

/// A store each of whose calls may fail or panic.
struct Faulty {
    inner: HashMapStore,
    histories: [History; KEYS],
    has_faults: AtomicBool,
}

fn sure<T>(result: Result<T, std::convert::Infallible>) -> T {
    let Ok(value) = result;
    value
}

impl Faulty {
    fn run<T>(&self, action: impl FnOnce() -> T) -> Result<T, Failed> {
        let act = if self.has_faults.load(Ordering::SeqCst) { thread_rng().gen_range(0..12) } else { 12 };
        let done = (act > 1).then(action);
        match act {
            0 | 2 => Err(Failed),
            // Without a message: there are thousands of such panics.
            1 | 3 => resume_unwind(Box::new(())),
            _ => done.ok_or(Failed),
        }
    }

    fn history(&self, key: &[u8]) -> &History {
        &self.histories[usize::from(key[0])]
    }
}

impl Store for Faulty {
    type Error = Failed;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Failed> {
        self.run(|| sure(self.inner.get(key)))
    }

    /// Puts the number of the write.
    fn put(&self, key: &[u8], _: &[u8]) -> Result<bool, Failed> {
        let put = |number: u64| sure(self.inner.put(key, &number.to_le_bytes()));
        self.run(|| self.history(key).write(true, put))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failed> {
        self.run(|| self.history(key).write(false, |_| sure(self.inner.delete(key))))
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Failed>>, Failed> {
        let keys = self.run(|| sure(self.inner.scan_keys()))?;
        Ok(keys.map(|key| self.run(|| sure(key))))
    }

    fn generation(&self) -> Result<Generation, Failed> {
        self.run(|| sure(self.inner.generation()))
    }
}

type Guard = Guarded<Arc<Faulty>>;

/// The answer; `None` if the store has failed or panicked.
fn answer<T>(f: impl FnOnce() -> Result<T, Error<Failed>>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(f)).ok().and_then(Result::ok)
}

fn get(guard: &Guard, key: usize) -> Option<Option<u64>> {
    let value = answer(|| guard.get(&[key as u8]))?;
    Some(value.map(|value| u64::from_le_bytes(value[..].try_into().expect("eight bytes"))))
}

fn write(guard: &Guard, writer: usize) {
    let [one, other] = &[[writer as u8], [(writer + WRITERS) as u8]];
    answer(|| guard.put(one, &[]));
    answer(|| guard.write_many(&[Write::Put(one, &[]), Write::Put(other, &[])]));
    answer(|| guard.delete(one));
    answer(|| guard.write_many(&[Write::Put(one, &[]), Write::Delete(other)]));
}

fn read(guard: &Guard) {
    for round in 0..8 {
        let history = &guard.store().histories[round % KEYS];
        let least = history.over.load(Ordering::SeqCst);
        let Some(seen) = get(guard, round % KEYS) else { continue };
        let most = history.begun.load(Ordering::SeqCst);
        let was_so = (least..=most).any(|writes| history.value(writes) == seen);
        assert!(was_so, "{seen:?} while {least} writes were over and {most} had begun");
    }
}

fn is_right_whatever_its_store_does(cache_bytes: u64, rebuilds: usize) {
    explore(300, move || {
        let (inner, histories) = (HashMapStore::new(), Default::default());
        let store = Arc::new(Faulty { inner, histories, has_faults: AtomicBool::new(false) });
        let builder = Guarded::builder(Arc::clone(&store)).expected_keys(2).cache_bytes(cache_bytes);
        let guard = builder.open().expect("options in their range");
        guard.wait_until_ready().expect("it does not fail yet");
        store.has_faults.store(true, Ordering::SeqCst);
        thread::scope(|scope| {
            let guard = &guard;
            (0..WRITERS).for_each(|writer| drop(scope.spawn(move || write(guard, writer))));
            (0..2).for_each(|_| drop(scope.spawn(|| read(guard))));
            if rebuilds > 0 {
                scope.spawn(|| {
                    for _ in 0..rebuilds {
                        guard.rebuild().expect("threads");
                        // Unless the scan has failed.
                        let _ = guard.wait_until_ready();
                        pause();
                    }
                });
            }
        });
        let _ = guard.wait_until_ready();
        store.has_faults.store(false, Ordering::SeqCst);
        read(&guard);
        assert_eq!(guard.verify(100).expect("it does not fail any more").false_negatives, 0);
        guard.rebuild().expect("threads");
        guard.wait_until_ready().expect("it does not fail any more");
        let held =
            store.histories.iter().filter_map(|history| history.value(history.over.load(Ordering::SeqCst)));
        assert_eq!((guard.progress().phase, guard.stats().filter_keys), (Phase::Ready, held.count() as u64));
    });
}

#[test]
fn guard_is_right_whatever_its_store_does() {
    is_right_whatever_its_store_does(0, 0);
}

#[test]
fn guard_is_right_whatever_its_store_does_with_a_cache() {
    is_right_whatever_its_store_does(2000, 0);
}

#[test]
fn guard_is_right_whatever_its_store_does_while_it_scans() {
    is_right_whatever_its_store_does(0, 3);
}
