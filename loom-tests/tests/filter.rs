//! The filter: look-ups, and insertions of absent keys, against displacement, removal of a copy and moves, in buckets of one
//! word, of half a word, of two words shared with other buckets, and semi-sorted ones that tear [R2]..[R4], [W5]. Models of
//! tables as a whole are in `compaction`.
#![cfg(loom)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use koel::model::{filter_place, stall};
use koel::{CuckooFilter, FilterBuilder, ScalableCuckooFilter};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use loom_tests::{model_with_preemptions, stopped};

/// Buckets of the filters below, of which the models use 0, 2, 3 and 5. One of the two buckets of a pair is odd.
const BUCKETS: u32 = 8;

/// Fingerprint bits, and whether buckets are semi-sorted.
type Layout = (u32, bool);

/// 64 bits per bucket: buckets 0 and 5 are in different words, here and below.
const ONE_WORD: Layout = (16, false);
/// 32 bits: halves of two words are compared side by side.
const HALF_A_WORD: Layout = (8, false);
/// 48 bits: one bucket in three spans two words.
const TWO_WORDS: Layout = (12, false);
/// 48 bits, all of which every change may alter.
const TEARING: Layout = (13, true);

fn filter((bits, semi_sorted): Layout) -> CuckooFilter {
    let builder: FilterBuilder = CuckooFilter::builder();
    let builder = builder.capacity(9).fingerprint_bits(bits).bucket_slots(4).semi_sorted(semi_sorted).seed(1);
    let filter = builder.build().unwrap();
    assert_eq!(filter.capacity(), 4 * BUCKETS as usize, "{}", filter.info());
    filter
}

/// The first `n` hashes from `from` on with these buckets, and fingerprints that differ from one another and from `not`.
fn hashes(n: usize, from: u64, (first, second): (u32, u32), layout: Layout, not: &[u32]) -> Vec<u64> {
    let mut seen = not.to_vec();
    let fits = |&hash: &u64| {
        let (a, b, fingerprint) = filter_place(hash, BUCKETS, layout.0);
        let new = (a, b) == (first, second) && !seen.contains(&fingerprint);
        if new {
            seen.push(fingerprint);
        }
        new
    };
    (from..).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).filter(fits).take(n).collect()
}

/// Bytes of the filter that `fill` fills, so that every execution of a model begins with only a few stores.
fn prepared<T: Send + 'static>(
    layout: Layout,
    fill: impl Fn(&CuckooFilter) -> T + Send + Sync + 'static,
) -> (Vec<u8>, T) {
    let made = Arc::new(std::sync::Mutex::new(None));
    let inside = Arc::clone(&made);
    loom::model(move || {
        let filter = filter(layout);
        let result = fill(&filter);
        *inside.lock().unwrap() = Some((filter.to_bytes(), result));
    });
    made.lock().unwrap().take().unwrap()
}

fn load(bytes: &[u8]) -> Arc<CuckooFilter> {
    Arc::new(CuckooFilter::from_bytes(bytes).unwrap())
}

/// Inserting `newcomer` moves `victim` from its bucket `from` to `to`.
#[derive(Clone, Copy)]
struct Scene {
    victim: u64,
    newcomer: u64,
    absent: u64,
}

impl Scene {
    fn new(filter: &CuckooFilter, layout: Layout, forward: bool) -> Self {
        // The victim goes from 0 to 5, its first or its second bucket. All other items in 0 and 3 could only move between full
        // buckets.
        let pair = if forward { (0, 5) } else { (5, 0) };
        let victim = hashes(1, 0, pair, layout, &[])[0];
        let fingerprint = filter_place(victim, BUCKETS, layout.0).2;
        let absent = hashes(1, 1 << 20, pair, layout, &[fingerprint])[0];
        if forward {
            filter.insert_hash(victim).unwrap();
        } else {
            let fillers = hashes(4, 1 << 21, (5, 2), layout, &[fingerprint]);
            fillers.iter().for_each(|hash| filter.insert_hash(*hash).unwrap());
            filter.insert_hash(victim).unwrap();
            fillers.iter().for_each(|hash| assert!(filter.remove_hash(*hash)));
        }
        // 0 and 3 are full of fingerprints that belong to both, except the victim.
        let (a, b) = (hashes(3, 1 << 22, (0, 3), layout, &[]), hashes(4, 1 << 23, (3, 0), layout, &[]));
        a.iter().chain(&b).for_each(|hash| filter.insert_hash(*hash).unwrap());
        let newcomer = hashes(1, 1 << 24, (0, 3), layout, &[])[0];
        Scene { victim, newcomer, absent }
    }
}

/// How a reader asks.
type Ask = fn(&CuckooFilter, u64) -> bool;

/// The only copy is counted, even if the first pass has missed it: here no look-up comes before the second pass.
const COUNT: Ask = |filter, hash| filter.count_hash(hash) > 0;

fn displaced_key_is_never_missed(layout: Layout, forward: bool, preemptions: usize) {
    displaced_key_is_always_seen(layout, forward, preemptions, CuckooFilter::contains_hash);
}

fn displaced_key_is_always_seen(layout: Layout, forward: bool, preemptions: usize, ask: Ask) {
    let (bytes, scene) = prepared(layout, move |filter| Scene::new(filter, layout, forward));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    // Buckets that tear take about fifty steps for a displacement: not all of their executions are tried.
    builder.max_duration = Some(std::time::Duration::from_secs(20));
    builder.check(move || {
        let filter = load(&bytes);
        let reader = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || assert!(ask(&filter, scene.victim)))
        };
        filter.insert_hash(scene.newcomer).unwrap();
        assert_eq!(filter.info().displacements, 1);
        reader.join().unwrap();
    });
}

#[test]
fn reader_never_misses_a_displaced_key_in_one_word() {
    displaced_key_is_never_missed(ONE_WORD, true, 2);
    displaced_key_is_never_missed(ONE_WORD, false, 2);
}

#[test]
fn reader_never_misses_a_displaced_key_in_half_a_word() {
    displaced_key_is_never_missed(HALF_A_WORD, true, 2);
    displaced_key_is_never_missed(HALF_A_WORD, false, 2);
}

#[test]
fn reader_never_misses_a_displaced_key_in_two_words() {
    displaced_key_is_never_missed(TWO_WORDS, true, 2);
    displaced_key_is_never_missed(TWO_WORDS, false, 2);
}

#[test]
fn reader_never_misses_a_displaced_key_in_a_bucket_that_tears() {
    displaced_key_is_never_missed(TEARING, true, 1);
    displaced_key_is_never_missed(TEARING, false, 1);
}

#[test]
fn reader_never_counts_a_displaced_key_as_absent_in_one_word() {
    displaced_key_is_always_seen(ONE_WORD, true, 2, COUNT);
    displaced_key_is_always_seen(ONE_WORD, false, 2, COUNT);
}

#[test]
fn reader_never_counts_a_displaced_key_as_absent_in_two_words() {
    displaced_key_is_always_seen(TWO_WORDS, true, 2, COUNT);
    displaced_key_is_always_seen(TWO_WORDS, false, 2, COUNT);
}

/// The key itself does not move, but its neighbour does.
#[test]
fn reader_never_misses_a_neighbour_in_a_bucket_that_tears() {
    let (bytes, (held, other)) = prepared(TEARING, |filter| {
        // The newcomer's nibble comes last: the others move down.
        let low = |hash: &&u64, nibble| filter_place(**hash, BUCKETS, TEARING.0).2 & 15 == nibble;
        let (held, others) =
            (hashes(200, 0, (5, 0), TEARING, &[]), hashes(200, 1 << 20, (5, 2), TEARING, &[]));
        let held = *held.iter().find(|hash| low(hash, 1)).unwrap();
        filter.insert_hash(held).unwrap();
        (held, *others.iter().find(|hash| low(hash, 15)).unwrap())
    });
    model_with_preemptions(2, move || {
        let filter = load(&bytes);
        let reader = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || assert!(filter.contains_hash(held)))
        };
        filter.insert_hash(other).unwrap();
        reader.join().unwrap();
    });
}

/// A second key has the same fingerprint and pair, with first and second bucket exchanged: a fingerprint is put into the one
/// bucket, and taken from the other, where the first key's was.
fn twin_is_never_missed(layout: Layout, preemptions: usize) {
    let (bytes, (key, twin)) = prepared(layout, move |filter| {
        let key = hashes(1, 0, (5, 0), layout, &[])[0];
        let fingerprint = filter_place(key, BUCKETS, layout.0).2;
        let equal = |hash: &u64| filter_place(*hash, BUCKETS, layout.0) == (0, 5, fingerprint);
        let twin = (0..).map(|i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).find(equal).unwrap();
        // The key goes to 0, because 5 is full; then 0 is full, and 5 is not.
        let zero = hashes(3, 1 << 20, (0, 3), layout, &[fingerprint]);
        let one = hashes(4, 1 << 21, (5, 2), layout, &[fingerprint]);
        zero.iter().chain(&one).for_each(|hash| filter.insert_hash(*hash).unwrap());
        filter.insert_hash(key).unwrap();
        assert!(filter.remove_hash(one[0]));
        (key, twin)
    });
    model_with_preemptions(preemptions, move || {
        let filter = load(&bytes);
        let reader = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || assert!(filter.contains_hash(key)))
        };
        filter.insert_hash(twin).unwrap();
        assert!(filter.remove_hash(twin));
        assert_eq!(filter.count_hash(key), 1);
        reader.join().unwrap();
    });
}

#[test]
fn reader_never_misses_a_key_whose_twin_comes_and_goes() {
    twin_is_never_missed(ONE_WORD, 2);
    twin_is_never_missed(TWO_WORDS, 1);
    twin_is_never_missed(TEARING, 1);
}

/// Loads of words, and of halves, pair with the stores of the inserting thread.
#[test]
fn who_finds_a_key_sees_what_came_before_its_insertion() {
    for layout in [ONE_WORD, HALF_A_WORD, TWO_WORDS, TEARING] {
        model_with_preemptions(2, move || {
            let (filter, before) = (Arc::new(filter(layout)), Arc::new(AtomicBool::new(false)));
            let reader = {
                let (filter, before) = (Arc::clone(&filter), Arc::clone(&before));
                // Relaxed, both: the filter orders them.
                thread::spawn(move || assert!(!filter.contains_hash(1) || before.load(Ordering::Relaxed)))
            };
            before.store(true, Ordering::Relaxed);
            filter.insert_hash(1).unwrap();
            reader.join().unwrap();
        });
    }
}

/// Runs an insert that displaces, stopped at its `seam`-th seam until the reader is done. Returns whether it has that many
/// seams.
fn read_against_stopped_insert(layout: Layout, forward: bool, seam: usize) -> bool {
    let reached = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let outside = Arc::clone(&reached);
    let (bytes, scene) = prepared(layout, move |filter| Scene::new(filter, layout, forward));
    let mut builder = loom::model::Builder::new();
    // Stopping the writer is no preemption. Not all that may be seen of buckets that tear is tried.
    builder.preemption_bound = Some(0);
    (builder.checkpoint_interval, builder.max_permutations) = (100, Some(1000));
    builder.check(move || {
        let filter = load(&bytes);
        let its = Arc::clone(&filter);
        let read = move || assert!(its.contains_hash(scene.victim) && !its.contains_hash(scene.absent));
        stopped(seam, &reached, read, || filter.insert_hash(scene.newcomer).unwrap());
    });
    outside.load(std::sync::atomic::Ordering::Relaxed)
}

fn reader_needs_no_end_of_a_displacement(layout: Layout) {
    for forward in [true, false] {
        let seams = (0..).take_while(|seam| read_against_stopped_insert(layout, forward, *seam)).count();
        assert!(seams >= 4, "only {seams} seams: the insert was not stopped where it matters");
    }
}

#[test]
fn reader_needs_no_end_of_a_displacement_in_one_word() {
    reader_needs_no_end_of_a_displacement(ONE_WORD);
}

#[test]
fn reader_needs_no_end_of_a_displacement_in_two_words() {
    reader_needs_no_end_of_a_displacement(TWO_WORDS);
}

#[test]
fn reader_needs_no_end_of_a_displacement_in_a_bucket_that_tears() {
    reader_needs_no_end_of_a_displacement(TEARING);
}

/// A growing filter of two buckets that tear, with some keys; buckets are of 40 bits, so that the second spans two words.
fn growing() -> ScalableCuckooFilter {
    let builder = ScalableCuckooFilter::builder().capacity(1).seed(1);
    let filter = builder.fingerprint_bits(11).semi_sorted(true).build().unwrap();
    (10..14).for_each(|hash| filter.insert_hash(hash).unwrap());
    let slots: Vec<_> = filter.info().tables.iter().map(|table| table.slots).collect();
    assert_eq!(slots, [8]);
    filter
}

/// A hash that such a filter has neither before nor after it gets `newcomer`, but seems to have at the insertion's `seam`-th
/// seam.
fn seen_in_between(newcomer: u64, seam: usize) -> Option<u64> {
    let found = Arc::new(std::sync::Mutex::new(None));
    let inside = Arc::clone(&found);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 1 << 20;
    builder.check(move || {
        let filter = Rc::new(growing());
        let has = |filter: &ScalableCuckooFilter| {
            (100..900).filter(|hash| filter.contains_hash(*hash)).collect::<Vec<_>>()
        };
        let before = has(&filter);
        let during = Rc::new(RefCell::new(Vec::new()));
        stall::after(seam, {
            let (filter, during) = (Rc::clone(&filter), Rc::clone(&during));
            move || *during.borrow_mut() = has(&filter)
        });
        filter.insert_hash(newcomer).unwrap();
        // If the insertion had fewer seams, the filter must not wait for another one.
        stall::after(usize::MAX, || ());
        let after = has(&filter);
        let only_then =
            during.take().into_iter().find(|hash| !before.contains(hash) && !after.contains(hash));
        *inside.lock().unwrap() = only_then;
    });
    found.lock().unwrap().take()
}

/// A key that is only seen while another key is put in is inserted nevertheless; otherwise it would be missed.
#[test]
fn key_is_not_left_out_for_what_a_torn_bucket_seems_to_have() {
    let mut scenes = (20..80).flat_map(|newcomer| (0..12).map(move |seam| (newcomer, seam)));
    let found =
        scenes.find_map(|(newcomer, seam)| seen_in_between(newcomer, seam).map(|key| (newcomer, key)));
    let (newcomer, key) = found.expect("some bucket seems to have something");
    model_with_preemptions(1, move || {
        let filter = Arc::new(growing());
        let unique = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || filter.insert_unique_hash(key).unwrap())
        };
        filter.insert_hash(newcomer).unwrap();
        unique.join().unwrap();
        assert!(filter.contains_hash(key) && filter.contains_hash(newcomer));
    });
}

/// Both threads insert the key unless it is there, into the oldest table, or into one that is added for it.
fn key_that_two_insert_unless_it_is_there_is_there_once(others: std::ops::Range<u64>, preemptions: usize) {
    model_with_preemptions(preemptions, move || {
        let builder = ScalableCuckooFilter::builder().capacity(1).false_positive_rate(0.01).seed(1);
        let filter = Arc::new(builder.build().unwrap());
        others.clone().for_each(|other| filter.insert_hash(other).unwrap());
        assert!(!filter.contains_hash(1) && filter.info().tables.len() == 1);
        let thread = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || filter.insert_unique_hash(1).unwrap())
        };
        let mine = filter.insert_unique_hash(1).unwrap();
        assert!(filter.contains_hash(1));
        let theirs = thread.join().unwrap();
        assert!(mine != theirs && filter.count_hash(1) == 1, "{mine} {theirs}");
        assert_eq!(filter.len(), others.clone().count() + 1);
    });
}

#[test]
fn key_that_two_insert_is_there_once() {
    key_that_two_insert_unless_it_is_there_is_there_once(10..10, 3);
}

#[test]
fn key_that_two_insert_in_a_new_table_is_there_once() {
    key_that_two_insert_unless_it_is_there_is_there_once(10..18, 2);
}

/// One slot is free, and there can be no other table: a thread that inserts the key unless it is there gets that slot, or
/// learns that the key is there; not that there is no room.
#[test]
fn key_that_two_insert_into_the_last_slot_is_there() {
    model_with_preemptions(2, || {
        let builder = ScalableCuckooFilter::builder().capacity(1).false_positive_rate(0.01).seed(1);
        let filter = Arc::new(builder.max_memory(0).build().unwrap());
        (10..17).for_each(|other| filter.insert_hash(other).unwrap());
        assert!(!filter.contains_hash(1) && filter.capacity() == 8);
        let thread = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || filter.insert_unique_hash(1).unwrap())
        };
        let inserted = filter.insert_hash(1).is_ok();
        assert!(inserted != thread.join().unwrap() && filter.contains_hash(1) && filter.len() == 8);
    });
}
