//! Threads that put, delete and read at the same time, before a store that fails, panics and is slow, while filters are rebuilt
//! and snapshots written: no key that is certainly there is ever missed, and no value is older than one that was certainly put.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use koel::guard::{Error, Filter, Generation, Guarded, HashMapStore, Scanned, Store, Value, Write};

use crate::common::{Rng, finds, key, long, seed};
use crate::scripted::{Scripted, sure};

const THREADS: u64 = 4;
/// Keys of each thread; nobody else writes them.
const KEYS: u64 = 60;

/// A store each of whose calls may fail, panic, or take a while, before or after it has done its work.
struct Faulty {
    inner: HashMapStore,
    draws: AtomicU64,
    /// How many of a thousand calls are faulty.
    faults: AtomicU64,
}

impl Faulty {
    fn new(seed: u64) -> Self {
        Faulty { inner: HashMapStore::new(), draws: AtomicU64::new(seed), faults: AtomicU64::new(0) }
    }

    fn draw(&self) -> Rng {
        Rng::new(self.draws.fetch_add(1, Ordering::Relaxed))
    }

    fn is_faulty(&self, rng: &mut Rng) -> bool {
        rng.below(1000) < self.faults.load(Ordering::Relaxed)
    }

    fn run<T>(&self, action: impl FnOnce() -> T) -> Result<T, Scripted> {
        let mut rng = self.draw();
        if !self.is_faulty(&mut rng) {
            return Ok(action());
        }
        let act = rng.below(6);
        let mut pause = || std::thread::sleep(Duration::from_micros(rng.below(300)));
        if act == 0 {
            pause();
        }
        let done = (act < 4).then(action);
        match act {
            0 => {}
            1 => pause(),
            2 | 4 => return Err(Scripted),
            _ => resume_unwind(Box::new("a fault")),
        }
        done.ok_or(Scripted)
    }
}

impl Store for Faulty {
    type Error = Scripted;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Scripted> {
        self.run(|| sure(self.inner.get(key)))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Scripted> {
        self.run(|| sure(self.inner.put(key, value)))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Scripted> {
        self.run(|| sure(self.inner.delete(key)))
    }

    /// All at once, or one after the other until one fails.
    fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>, Scripted> {
        if self.draw().below(2) == 0 {
            return self.run(|| sure(self.inner.write_many(writes)));
        }
        let each = writes.iter().map(|write| match *write {
            Write::Put(key, value) => self.put(key, value),
            Write::Delete(key) => self.delete(key),
        });
        each.collect()
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Scripted>>, Scripted> {
        let keys = self.run(|| sure(self.inner.scan_keys()))?;
        Ok(keys.map(|key| {
            let mut rng = self.draw();
            // Most scans should come to an end.
            if rng.below(50) == 0 && self.is_faulty(&mut rng) { Err(Scripted) } else { Ok(sure(key)) }
        }))
    }

    fn generation(&self) -> Result<Generation, Scripted> {
        self.run(|| sure(self.inner.generation()))
    }
}

/// What the owner of a key publishes to other threads. Writes are numbered, and every third is a delete.
#[derive(Default)]
struct Told {
    /// The last write that has begun.
    begun: AtomicU64,
    /// Twice the number of the last write that was certainly done, plus one if the key has been there since.
    done: AtomicU64,
}

type Guard = Guarded<Arc<Faulty>>;

/// The answer; `None` if the store has failed or panicked.
fn answer<T>(f: impl FnOnce() -> Result<T, Error<Scripted>>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(f)).ok().and_then(Result::ok)
}

fn number_in(value: &Value) -> u64 {
    u64::from_le_bytes(value[..].try_into().unwrap())
}

/// Writes some keys, none of which occurs twice.
fn write(guarded: &Guard, numbers: &[u64], told: &[Told]) {
    let begin = |number: &u64| {
        let begun = &told[*number as usize].begun;
        let next = begun.load(Ordering::Relaxed) + 1;
        begun.store(next, Ordering::SeqCst);
        (key(*number), next)
    };
    let begun: Vec<(Vec<u8>, u64)> = numbers.iter().map(begin).collect();
    let values: Vec<[u8; 8]> = begun.iter().map(|(_, next)| next.to_le_bytes()).collect();
    let write = |((key, next), value)| match next % 3 {
        0 => Write::Delete(key),
        _ => Write::Put(key, value),
    };
    let writes: Vec<Write<'_>> = begun
        .iter()
        .map(|(key, next)| (&key[..], next))
        .zip(values.iter().map(|value| &value[..]))
        .map(write)
        .collect();
    let existed = match writes[..] {
        [Write::Delete(key)] => answer(|| guarded.delete(key)).map(|existed| vec![existed]),
        [Write::Put(key, value)] => answer(|| guarded.put(key, value)).map(|existed| vec![existed]),
        _ => answer(|| guarded.write_many(&writes)),
    };
    for (at, number) in numbers.iter().enumerate() {
        let (told, next) = (&told[*number as usize], begun[at].1);
        let was = told.done.load(Ordering::Relaxed);
        if let Some(existed) = &existed {
            assert_eq!(existed[at], was % 2 == 1, "{number}");
        }
        // Nobody else writes this key: the store shows whether the write was done.
        let now = match sure(guarded.store().inner.get(writes[at].key())) {
            Some(value) => number_in(&value) << 1 | 1,
            None if next % 3 == 0 => next << 1,
            None => was,
        };
        assert!(existed.is_none() || now >> 1 == next, "{number} is as it was");
        told.done.store(now, Ordering::SeqCst);
    }
}

/// Reads some keys: each answer must have been right at some moment since the call.
fn read(guarded: &Guard, numbers: &[u64], told: &[Told]) {
    let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
    let before: Vec<u64> =
        numbers.iter().map(|number| told[*number as usize].done.load(Ordering::SeqCst)).collect();
    let values = match &keys[..] {
        [key] => answer(|| guarded.get(key)).map(|value| vec![value]),
        keys => answer(|| guarded.get_many(keys)),
    };
    for ((number, before), value) in numbers.iter().zip(before).zip(values.into_iter().flatten()) {
        let (done, begun) = (before >> 1, told[*number as usize].begun.load(Ordering::SeqCst));
        match value.as_ref().map(number_in) {
            Some(found) => assert!((done..=begun).contains(&found), "{number}: {found} of {done}..={begun}"),
            None => assert!(
                before % 2 == 0 || (done + 1..=begun).any(|write| write % 3 == 0),
                "{number} was there in {done}..={begun}"
            ),
        }
    }
}

fn work(guarded: &Guard, thread: u64, operations: u64, told: &[Told]) {
    let mut rng = Rng::new(seed().wrapping_add(thread));
    for _ in 0..operations {
        let (first, at) = (thread % THREADS * KEYS, rng.below(KEYS));
        let own = first + at;
        match rng.below(6) {
            0 | 1 => write(guarded, &[own], told),
            5 => write(guarded, &[own, first + (at + 7) % KEYS, first + (at + 2) % KEYS], told),
            2 => read(guarded, &[own], told),
            3 => read(guarded, &[rng.below(THREADS * KEYS)], told),
            _ => read(guarded, &[own, rng.below(THREADS * KEYS), rng.below(THREADS * KEYS)], told),
        }
    }
}

/// Meanwhile discards the filter, rebuilds it, writes snapshots and verifies it.
fn disturb(guarded: &Guard, file: &Path, over: &AtomicBool) {
    let mut rng = Rng::new(seed());
    while !over.load(Ordering::Relaxed) {
        match rng.below(4) {
            0 => guarded.rebuild().unwrap(),
            1 => _ = answer(|| guarded.snapshot(file)),
            2 => {
                let verified = answer(|| guarded.verify(50));
                assert!(verified.is_none_or(|verified| verified.false_negatives == 0));
            }
            _ => _ = guarded.wait_until_ready(),
        }
        std::thread::sleep(Duration::from_micros(rng.below(3000)));
    }
}

/// Opens a guard, from a snapshot if it fits, and uses it for a while.
fn live(guarded: &Guard, life: u64, operations: u64, told: &[Told], file: &Path) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(guarded, THREADS * life + thread, operations, told)))
            .collect();
        scope.spawn(|| disturb(guarded, file, &over));
        let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        over.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(|end| end.expect("a worker"));
    });
}

fn lives(filter: Filter, cache_bytes: u64, faults: u64) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    let store = Arc::new(Faulty::new(seed()));
    let told: Vec<Told> = (0..THREADS * KEYS).map(|_| Told::default()).collect();
    for life in 0..if long() { 100 } else { 3 } {
        let builder = Guarded::builder(Arc::clone(&store)).filter(filter).false_positive_rate(0.1);
        let guarded = builder.cache_bytes(cache_bytes).snapshot(&file).open().unwrap();
        assert_eq!(guarded.rejected_snapshot().is_some(), life == 0, "the last life's fits");
        store.faults.store(faults, Ordering::Relaxed);
        live(&guarded, life, 5000, &told, &file);
        store.faults.store(0, Ordering::Relaxed);
        for (number, told) in (0..).zip(&told) {
            assert_eq!(finds(&guarded, &key(number)), told.done.load(Ordering::Relaxed) % 2 == 1, "{number}");
        }
        assert_eq!(guarded.verify(usize::MAX).unwrap().false_negatives, 0);
        // The result of the last scan is reported once.
        let _ = guarded.wait_until_ready();
        guarded.rebuild().unwrap();
        guarded.wait_until_ready().unwrap();
        assert_eq!(Some(guarded.stats().filter_keys), store.inner.len_hint());
        guarded.snapshot(&file).unwrap();
    }
}

#[test]
fn no_key_is_missed_and_no_value_is_old_whatever_the_store_does() {
    lives(Filter::Cuckoo, 0, 60);
    lives(Filter::Cuckoo, 20_000, 60);
    lives(Filter::Bloom, 5000, 60);
    lives(Filter::Cuckoo, 5000, 400);
}
