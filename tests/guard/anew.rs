//! When a filter is rebuilt, at once or after some number of writes; and when it is not.

use std::sync::Arc;

use koel::guard::{Filter, Guarded};

use crate::common::{key, ready};
use crate::scripted::{Act, Gate, Op, ScriptedStore, filled};

const KEYS: u64 = 1000;
/// The fewest writes after which a filter that is crowded out is rebuilt; the next write does it.
const FEWEST_WRITES: u64 = 4096;

/// Puts of present keys, with an unknown outcome: each leaves a fingerprint, until there are as many as a key may have.
fn crowd(guarded: &Guarded<Arc<ScriptedStore>>) {
    for number in 0..100 {
        guarded.store().next(Op::Put, vec![Act::Fail; 10]);
        (0..10).for_each(|_| assert!(guarded.put(&key(number), b"").is_err()));
    }
}

/// Overwrites this many keys, and waits for the scan that this may begin. Returns how many scans there were.
fn scans_after(guarded: &Guarded<Arc<ScriptedStore>>, writes: u64) -> u64 {
    (0..writes).for_each(|write| assert!(guarded.put(&key(write % KEYS), b"").unwrap()));
    guarded.wait_until_ready().unwrap();
    guarded.store().scans()
}

fn is_crowded_out(guarded: &Guarded<Arc<ScriptedStore>>) -> bool {
    guarded.stats().crowded_stripes > 1024 / 16
}

/// Writes that were counted for one filter do not count for the next.
#[test]
fn a_crowded_filter_is_built_anew_after_4096_writes_of_its_own() {
    let guarded = ready(filled(KEYS));
    crowd(&guarded);
    assert!(is_crowded_out(&guarded) && scans_after(&guarded, 3000) == 1);
    guarded.rebuild().unwrap();
    guarded.wait_until_ready().unwrap();
    assert!(!is_crowded_out(&guarded));
    crowd(&guarded);
    assert!(is_crowded_out(&guarded) && scans_after(&guarded, FEWEST_WRITES) == 2);
    assert!(scans_after(&guarded, 1) == 3 && !is_crowded_out(&guarded));
}

/// Another scan would find as many keys, and for those there was room.
#[test]
fn a_filter_that_writes_have_crowded_during_its_scan_is_not_scanned_for_again_at_once() {
    let (store, gate) = (filled(KEYS), Gate::new());
    store.next(Op::Scan, [Act::Stall(gate.clone())]);
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    let scanning = gate.wait();
    crowd(&guarded);
    scanning.open();
    guarded.wait_until_ready().unwrap();
    assert!(is_crowded_out(&guarded) && store.scans() == 1);
    assert_eq!((scans_after(&guarded, FEWEST_WRITES), scans_after(&guarded, 1)), (1, 2));
}

/// Nobody says how many keys there are: the first filter is made for far too few.
#[test]
fn a_filter_that_is_worn_when_its_scan_ends_is_built_anew_at_once() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let store = filled(50_000);
        store.hides_its_length();
        let guarded = Guarded::builder(Arc::clone(&store)).filter(filter).open().unwrap();
        guarded.wait_until_ready().unwrap();
        assert_eq!((store.scans(), guarded.stats().filter_keys), (2, 50_000), "{filter:?}");
    }
}

/// A quarter of all that it holds: it was made for a quarter more keys than were expected, and has half as many again as that,
/// minus a few.
#[test]
fn a_bloom_filter_wears_when_more_than_a_quarter_of_its_keys_has_gone() {
    let store = filled(0);
    let builder = Guarded::builder(Arc::clone(&store)).filter(Filter::Bloom).expected_keys(10_000);
    let guarded = builder.open().unwrap();
    guarded.wait_until_ready().unwrap();
    (0..18_000).for_each(|number| assert!(!guarded.put(&key(number), b"").unwrap()));
    let scans_after_deletes = |numbers: core::ops::Range<u64>| {
        numbers.for_each(|number| assert!(guarded.delete(&key(number)).unwrap()));
        guarded.wait_until_ready().unwrap();
        store.scans()
    };
    assert_eq!((scans_after_deletes(0..4500), scans_after_deletes(4500..4501)), (1, 2));
}

#[test]
fn a_filter_has_room_for_a_quarter_more_keys_than_there_were() {
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let guarded = Guarded::builder(filled(20_000)).filter(filter).open().unwrap();
        guarded.wait_until_ready().unwrap();
        let bytes = guarded.stats().filter_bytes;
        (20_000..25_000).for_each(|number| assert!(!guarded.put(&key(number), b"").unwrap()));
        let stats = guarded.stats();
        assert!(
            stats.filter_bytes == bytes && stats.expected_false_positive_rate < 0.011,
            "{filter:?}: {stats}"
        );
    }
}
