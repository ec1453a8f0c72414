//! Threads that put, delete and read at the same time: no key that is certainly there is ever missed.
//!
//! A million and a half operations by default; 10^8 with `KOEL_GUARD_LONG=1`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use koel::guard::{Filter, Guarded, HashMapStore, Known, Value};

use crate::common::{Rng, finds, key, long, seed};

const THREADS: u64 = 4;
/// The number of keys of each thread; nobody else writes them, so it knows their values.
const KEYS: u64 = 4000;
/// The number of look-ups that a filter blocks before it is rebuilt: so there are some in between on a slow machine, too.
const BLOCKED: u64 = 2000;

/// What the owner of a key publishes to other threads. A version is odd while the key is there.
#[derive(Default)]
struct Told {
    /// The version that is being written, or the last one.
    begun: AtomicU64,
    /// The last version that was written.
    done: AtomicU64,
}

/// Writes its own keys and reads all: the answer must be a state that the key has had during the look-up.
fn work(guarded: &Guarded<HashMapStore>, thread: u64, operations: u64, told: &[Told]) {
    let mut rng = Rng::new(seed() + thread);
    for _ in 0..operations {
        let own = thread * KEYS + rng.below(KEYS);
        match rng.below(4) {
            0 => write(guarded, own, &told[own as usize]),
            1 | 2 => read(guarded, own, &told[own as usize]),
            _ => {
                let any = rng.below(THREADS * KEYS);
                read(guarded, any, &told[any as usize]);
            }
        }
    }
}

fn write(guarded: &Guarded<HashMapStore>, number: u64, told: &Told) {
    let version = told.done.load(Ordering::Relaxed) + 1;
    told.begun.store(version, Ordering::SeqCst);
    if version % 2 == 1 {
        assert!(!guarded.put(&key(number), &version.to_le_bytes()).unwrap());
    } else {
        assert!(guarded.delete(&key(number)).unwrap());
    }
    told.done.store(version, Ordering::SeqCst);
}

/// Asks the store only if nothing else knows.
fn get_as_a_task_does(guarded: &Guarded<HashMapStore>, key: &[u8]) -> Option<Value> {
    match guarded.get_if_known(key) {
        Known::Present(value) => Some(value),
        Known::Absent => None,
        Known::Unknown => guarded.get(key).unwrap(),
    }
}

fn read(guarded: &Guarded<HashMapStore>, number: u64, told: &Told) {
    let before = told.done.load(Ordering::SeqCst);
    let key = key(number);
    let value = if number % 2 == 0 { guarded.get(&key).unwrap() } else { get_as_a_task_does(guarded, &key) };
    let after = told.begun.load(Ordering::SeqCst);
    match value.map(|value| u64::from_le_bytes(value[..].try_into().unwrap())) {
        Some(found) => assert!((before..=after).contains(&found), "{number}: {found} of {before}..={after}"),
        None => assert!(before % 2 == 0 || after > before, "{number} was there, in version {before}"),
    }
}

/// Waits until the filter has blocked some more look-ups. Returns false if all is over.
fn blocks(guarded: &Guarded<HashMapStore>, over: &AtomicBool) -> bool {
    let before = guarded.stats().blocked;
    while guarded.stats().blocked < before + BLOCKED {
        if over.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn stress(filter: Filter, operations: u64) {
    let builder = Guarded::builder(HashMapStore::new()).filter(filter).expected_keys(1).cache_bytes(1 << 18);
    let guarded = builder.open().unwrap();
    guarded.wait_until_ready().unwrap();
    let told: Vec<Told> = (0..THREADS * KEYS).map(|_| Told::default()).collect();
    let (over, guarded) = (AtomicBool::new(false), &guarded);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let told = &told;
                scope.spawn(move || work(guarded, thread, operations / THREADS, told))
            })
            .collect();
        // Meanwhile the filter is rebuilt again and again.
        scope.spawn(|| {
            while blocks(guarded, &over) {
                guarded.rebuild().unwrap();
                guarded.wait_until_ready().unwrap();
                assert_eq!(guarded.verify(100).unwrap().false_negatives, 0);
            }
        });
        let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        over.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(|end| end.expect("a worker"));
    });
    let is_there = |told: &Told| told.done.load(Ordering::Relaxed) % 2 == 1;
    let there = told.iter().filter(|told| is_there(told)).count() as u64;
    for (number, told) in (0..).zip(&told) {
        assert_eq!(finds(guarded, &key(number)), is_there(told));
    }
    assert_eq!(guarded.verify(usize::MAX).unwrap().false_negatives, 0);
    let stats = guarded.stats();
    println!("{filter:?}: {operations} operations\n{stats}");
    assert!(stats.blocked >= BLOCKED, "{stats}");
    assert!(filter != Filter::Cuckoo || stats.filter_keys == there, "{stats} {there}");
}

#[test]
fn no_key_is_missed_while_threads_put_delete_and_read() {
    stress(Filter::Cuckoo, if long() { 100_000_000 } else { 1_000_000 });
    stress(Filter::Bloom, if long() { 10_000_000 } else { 500_000 });
}
