//! The guard over a store of several keys, some of which it fails to put or to delete: deletions [D1], [D2], scans while there
//! is a filter that is only worn [D3], keys for which there is no room [D4], snapshots [D7].
#![cfg(loom)]

use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use koel::Xxh3;
use koel::guard::{Filter, Guarded, Phase};
use loom::thread;
use loom_tests::{FAILS, STAYS, Words, model_with_preemptions, same_hashes};

type Guard = Guarded<Arc<Words>>;

const KEY: u8 = 0;

fn model(f: impl Fn() + Sync + Send + 'static) {
    same_hashes();
    loom::model(f);
}

/// A model that fills a filter first, which takes some thousand steps.
fn model_of_many_steps(f: impl Fn() + Sync + Send + 'static) {
    same_hashes();
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.check(f);
}

fn guard_of(store: &Arc<Words>, filter: Filter, rate: f64) -> Arc<Guard> {
    let builder = Guarded::builder(Arc::clone(store)).filter(filter).expected_keys(1);
    let guard = builder.false_positive_rate(rate).open().unwrap();
    guard.wait_until_ready().unwrap();
    Arc::new(guard)
}

fn guard(filter: Filter) -> Arc<Guard> {
    guard_of(&Arc::default(), filter, 0.01)
}

/// A key's value, or 0.
fn get(guard: &Guard, key: u8) -> u8 {
    guard.get(&[key]).unwrap().map_or(0, |value| value[0])
}

fn put(guard: &Guard, key: u8, value: u8) -> bool {
    guard.put(&[key], &[value]).unwrap()
}

fn put_in_vain(guard: &Guard, key: u8) {
    guard.put(&[key], &[FAILS]).unwrap_err();
}

fn delete(guard: &Guard, key: u8) -> bool {
    guard.delete(&[key]).unwrap()
}

/// Runs `f` in another thread.
fn spawn(guard: &Arc<Guard>, f: impl FnOnce(&Guard) + 'static) -> thread::JoinHandle<()> {
    let guard = Arc::clone(guard);
    thread::spawn(move || f(&guard))
}

/// A reader that has seen in the store what is put gets it from the guard.
fn seen_is_got(guard: &Arc<Guard>, key: u8) {
    let reader = spawn(guard, move |guard| {
        let seen = guard.store().value(key);
        assert!(get(guard, key) >= seen);
    });
    put(guard, key, 2);
    reader.join().unwrap();
    assert_eq!(get(guard, key), 2);
}

#[test]
fn a_key_is_not_denied_before_it_has_been_deleted() {
    model(|| {
        let guard = guard(Filter::Cuckoo);
        put(&guard, KEY, 1);
        let reader = spawn(&guard, |guard| {
            let got = get(guard, KEY);
            assert!(got >= guard.store().value(KEY));
        });
        assert!(delete(&guard, KEY));
        reader.join().unwrap();
        assert_eq!((get(&guard, KEY), guard.stats().filter_keys), (0, 0));
    });
}

#[test]
fn a_key_whose_deletion_fails_is_not_denied() {
    model(|| {
        let guard = guard(Filter::Cuckoo);
        put(&guard, STAYS, 1);
        let reader = spawn(&guard, |guard| assert_eq!(get(guard, STAYS), 1));
        guard.delete(&[STAYS]).unwrap_err();
        reader.join().unwrap();
        assert_eq!(get(&guard, STAYS), 1);
    });
}

#[test]
fn a_key_whose_put_fails_beside_a_scan_is_in_the_filter() {
    model(|| {
        let guard = guard(Filter::Cuckoo);
        guard.rebuild().unwrap();
        put_in_vain(&guard, KEY);
        // The scan fails when it meets the key.
        if guard.wait_until_ready().is_ok() {
            assert_eq!((guard.progress().phase, guard.stats().filter_keys), (Phase::Ready, 1));
        }
        assert_eq!(get(&guard, KEY), FAILS);
    });
}

#[test]
fn a_key_that_the_store_holds_is_not_denied_beside_a_scan_for_a_worn_filter() {
    model(|| {
        let guard = guard(Filter::Bloom);
        put(&guard, KEY, 1);
        // The filter was made for one key: a scan begins.
        assert!(delete(&guard, KEY) && guard.stats().filter_bytes > 0);
        seen_is_got(&guard, 1);
        guard.wait_until_ready().unwrap();
        assert_eq!((get(&guard, 1), guard.stats().filter_keys), (2, 1));
    });
}

/// A guard that has no filter because it is being told of a write around it.
fn guard_that_scans() -> Arc<Guard> {
    let guard = guard(Filter::Cuckoo);
    guard.rebuild().unwrap();
    guard
}

#[test]
fn a_key_that_came_around_the_guard_beside_a_scan_and_is_put_again_is_not_denied() {
    model(|| {
        let guard = guard_that_scans();
        guard.store().put(KEY, 1);
        assert!(put(&guard, KEY, 2));
        guard.wait_until_ready().unwrap();
        assert_eq!((get(&guard, KEY), guard.stats().filter_keys), (2, 1));
    });
}

#[test]
fn a_key_that_came_around_the_guard_beside_a_scan_and_is_put_twice_and_deleted_between_is_not_denied() {
    model(|| {
        let guard = guard_that_scans();
        guard.store().put(KEY, 1);
        assert!(put(&guard, KEY, 2) && delete(&guard, KEY) && !put(&guard, KEY, 3));
        guard.wait_until_ready().unwrap();
        assert_eq!((get(&guard, KEY), guard.stats().filter_keys), (3, 1));
    });
}

#[test]
fn who_deletes_a_key_that_came_around_the_guard_beside_a_scan_finds_others_that_did() {
    model(|| {
        let guard = guard_that_scans();
        // In this order: a scan that has seen the one has seen the other.
        guard.store().put(1, 1);
        guard.store().put(KEY, 1);
        assert!(delete(&guard, KEY));
        guard.wait_until_ready().unwrap();
        assert_eq!((get(&guard, 1), guard.stats().filter_keys), (1, 1));
    });
}

#[test]
fn who_deletes_a_key_that_came_back_around_the_guard_beside_a_scan_finds_others_that_came() {
    model(|| {
        let guard = guard(Filter::Cuckoo);
        put(&guard, KEY, 1);
        guard.rebuild().unwrap();
        assert!(delete(&guard, KEY));
        // As above.
        guard.store().put(1, 1);
        guard.store().put(KEY, 1);
        assert!(delete(&guard, KEY));
        guard.wait_until_ready().unwrap();
        assert_eq!((get(&guard, 1), guard.stats().filter_keys), (1, 1));
    });
}

#[test]
fn two_who_ask_for_a_scan_begin_one_at_a_time() {
    model(|| {
        let guard = guard(Filter::Cuckoo);
        // A key, so that a scan takes several steps.
        put(&guard, KEY, 1);
        let other = spawn(&guard, |guard| guard.rebuild().unwrap());
        guard.rebuild().unwrap();
        other.join().unwrap();
        guard.wait_until_ready().unwrap();
        assert_eq!((guard.store().most_scans(), guard.progress().phase), (1, Phase::Ready));
    });
}

fn stripe(key: u8) -> u64 {
    let mut hasher = Xxh3::with_seed(0).build_hasher();
    hasher.write(&[key]);
    hasher.finish() >> 10 & 3
}

/// Two keys of one stripe, and one of another.
fn neighbours() -> [u8; 3] {
    let mut pairs = (0..6).flat_map(|a| (0..a).map(move |b| (a, b)));
    let (a, b) = pairs.find(|&(a, b)| stripe(a) == stripe(b)).unwrap();
    [a, b, (0..6).find(|&key| stripe(key) != stripe(a)).unwrap()]
}

/// Fills a filter that cannot grow, by puts of a key that fail: its stripe is crowded.
fn fill(guard: &Guard, stranger: u8) {
    while guard.stats().crowded_stripes == 0 {
        put_in_vain(guard, stranger);
    }
}

/// A guard whose filter cannot grow.
fn small() -> Arc<Guard> {
    guard_of(&Arc::default(), Filter::Cuckoo, 4e-9)
}

#[test]
fn a_key_for_which_the_filter_has_no_room_is_not_denied() {
    model_of_many_steps(|| {
        let ([key, _, stranger], guard) = (neighbours(), small());
        fill(&guard, stranger);
        seen_is_got(&guard, key);
        assert_eq!(guard.stats().crowded_stripes, 2);
    });
}

#[test]
fn a_put_that_finds_no_room_takes_back_no_mark_of_another_key() {
    model_of_many_steps(|| {
        let ([key, other, stranger], guard) = (neighbours(), small());
        put(&guard, key, 1);
        fill(&guard, stranger);
        let again = spawn(&guard, move |guard| assert!(put(guard, key, 2)));
        assert!(!put(&guard, other, 1));
        again.join().unwrap();
        assert_eq!((get(&guard, key), get(&guard, other), guard.stats().crowded_stripes), (2, 1, 2));
    });
}

#[test]
fn a_put_that_finds_no_room_and_fails_takes_back_no_mark_of_another_key() {
    model_of_many_steps(|| {
        let ([key, other, stranger], guard) = (neighbours(), small());
        fill(&guard, stranger);
        let failing = spawn(&guard, move |guard| put_in_vain(guard, key));
        assert!(!put(&guard, other, 1));
        guard.store().put(key, 0);
        failing.join().unwrap();
        assert_eq!((get(&guard, other), guard.stats().crowded_stripes), (1, 2));
    });
}

#[test]
fn nothing_of_a_crowded_stripe_is_taken_out_of_the_filter() {
    model_of_many_steps(|| {
        let ([key, other, stranger], guard) = (neighbours(), small());
        put(&guard, key, 1);
        fill(&guard, stranger);
        let before = guard.stats().filter_keys;
        put(&guard, other, 1);
        let deleting = spawn(&guard, move |guard| assert!(delete(guard, other)));
        assert!(delete(&guard, key));
        deleting.join().unwrap();
        assert_eq!((guard.progress().phase, guard.stats().filter_keys), (Phase::Ready, before));
    });
}

#[test]
fn a_key_that_is_remembered_as_absent_is_there_after_a_scan_beside_one_that_is_remembered_since() {
    model_of_many_steps(|| {
        let ([key, other, _], guard) = (neighbours(), guard(Filter::Cuckoo));
        put(&guard, key, 1);
        put(&guard, other, 1);
        // Around the guard, as below. A reader that finds a key absent twice remembers it.
        guard.store().put(key, 0);
        assert_eq!([get(&guard, key), get(&guard, key)], [0, 0]);
        guard.store().put(key, 2);
        guard.rebuild().unwrap();
        guard.wait_until_ready().unwrap();
        // The stripe says once more that it remembers some keys.
        guard.store().put(other, 0);
        assert_eq!([get(&guard, other), get(&guard, other)], [0, 0]);
        assert_eq!(get(&guard, key), 2);
    });
}

#[test]
fn who_looks_for_keys_that_are_denied_finds_none_that_is_deleted_and_comes_back() {
    same_hashes();
    // Two preemptions do not reveal it: each thread is interrupted once, and the verifier twice.
    model_with_preemptions(3, || {
        let guard = guard(Filter::Cuckoo);
        put(&guard, KEY, 1);
        let writer = spawn(&guard, |guard| {
            assert!(delete(guard, KEY));
            assert!(!put(guard, KEY, 2));
        });
        assert_eq!(guard.verify(1).unwrap().false_negatives, 0);
        writer.join().unwrap();
    });
}

/// A place for a snapshot, in memory if there is a folder for that.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let place = Place(folder.join(format!("koel-{name}-{}", std::process::id())));
        place.clear();
        place
    }

    fn clear(&self) {
        let _ = std::fs::remove_file(&self.0);
    }

    /// A guard from the snapshot, if the snapshot is of this state of the store.
    fn open(&self, store: &Arc<Words>) -> Option<Guard> {
        let guard = Guarded::builder(Arc::clone(store))
            .expected_keys(1)
            .false_positive_rate(0.01)
            .snapshot(&self.0)
            .open();
        Some(guard.unwrap()).filter(|guard| guard.rejected_snapshot().is_none())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A snapshot during writes: a guard that accepts it as one of the store's state has that state's keys.
fn a_snapshot_beside(write: fn(&Guard), name: &'static str) {
    model(move || {
        let (store, place) = (Arc::default(), Place::new(name));
        let guard = guard_of(&store, Filter::Cuckoo, 0.01);
        put(&guard, 1, 1);
        let writer = spawn(&guard, write);
        guard.snapshot(&place.0).unwrap();
        writer.join().unwrap();
        drop(guard);
        if let Some(guard) = place.open(&store) {
            let held = [0, 1].map(|key| store.value(key));
            assert_eq!([0, 1].map(|key| get(&guard, key)), held);
            assert_eq!(guard.stats().filter_keys, held.iter().filter(|&&value| value != 0).count() as u64);
        }
    });
}

#[test]
fn a_snapshot_beside_a_put_has_all_keys() {
    a_snapshot_beside(|guard| assert!(!put(guard, KEY, 1)), "put");
}

#[test]
fn a_snapshot_beside_a_deletion_has_no_other_keys() {
    a_snapshot_beside(|guard| assert!(delete(guard, 1)), "deletion");
}

#[test]
fn a_filter_that_was_taken_away_has_no_snapshot_from_then_on() {
    same_hashes();
    // Two preemptions do not reveal it: the filter is taken away, and the snapshot is not yet there, between two steps of the
    // thread that writes one.
    model_with_preemptions(3, || {
        let (store, place) = (Arc::default(), Arc::new(Place::new("taken away")));
        let guard = guard_of(&store, Filter::Cuckoo, 0.01);
        let teller = {
            let place = Arc::clone(&place);
            spawn(&guard, move |guard| {
                guard.store().put(KEY, 1);
                guard.rebuild().unwrap();
                // A snapshot that got its name before fits, and is wrong.
                place.clear();
            })
        };
        // This has failed if there is no filter.
        drop(guard.snapshot(&place.0));
        teller.join().unwrap();
        guard.wait_until_ready().unwrap();
        if let Some(guard) = place.open(&store) {
            assert_eq!(get(&guard, KEY), 1);
        }
    });
}
