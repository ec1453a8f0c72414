//! Replacement: when a heavier value replaces a lighter one, others make room, and the key is there all the while; a value that
//! was found stays as it was.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use koel::{Cache, CacheRef, Compute, Operation, Policy};

use crate::POLICIES;
use crate::common::{env_number, on_threads};

/// Weights are values. One key goes from light to heavy, among others that are hit more often and fill the cache: the growing
/// entry is itself the next victim.
fn a_key_is_there_while_its_value_grows(policy: Policy) {
    let cache: Cache<u64, u64> =
        Cache::builder().max_weight(100).policy(policy).weigher(|_, weight| *weight).build();
    // Odd while a value is computed.
    let (phase, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let rounds = env_number("KOEL_CACHE_WRITES", 6000) as u64;
    let phases = on_threads(2, |thread| {
        let mut phases = BTreeSet::new();
        if thread == 0 {
            for _ in 0..rounds {
                cache.insert(0, 5).unwrap();
                for key in 1..12 {
                    if cache.weight() <= 91 && !cache.contains_key(&key) {
                        cache.insert(key, 9).unwrap();
                    }
                    cache.get_many(&[key; 2], &mut [None; 2]);
                }
                let computed = phase.fetch_add(1, Ordering::SeqCst) + 1;
                let answer = cache.compute(0, |_| Operation::<u64, ()>::Insert(14)).unwrap();
                phase.fetch_add(1, Ordering::SeqCst);
                assert_eq!(answer, Compute::Updated { old: (0, 5), new: (0, 14) });
                phases.insert(computed);
            }
            is_over.store(true, Ordering::SeqCst);
        } else {
            while !is_over.load(Ordering::SeqCst) {
                let before = phase.load(Ordering::SeqCst);
                let is_missed = !cache.contains_key(&0);
                phases.extend((is_missed && phase.load(Ordering::SeqCst) == before).then_some(before));
            }
        }
        phases
    });
    let [updated, missed] = &phases[..] else { unreachable!("two threads") };
    let wrong = updated.intersection(missed).count();
    assert_eq!(wrong, 0, "{policy:?}: missed in so many of {rounds} updates");
}

#[test]
fn a_key_is_not_missed_while_its_value_grows() {
    POLICIES.into_iter().for_each(a_key_is_there_while_its_value_grows);
}

/// It stays as it was found, whatever becomes of the entry; and on another thread, if the view may be sent there.
#[test]
fn what_is_taken_along_stays() {
    let cache: Cache<u64, Arc<()>> = Cache::new(10);
    let value = Arc::new(());
    cache.insert(1, Arc::clone(&value)).unwrap();
    assert!(cache.pin().into_get(&2).is_none());
    let found = cache.pin_owned().into_get(&1).unwrap();
    cache.remove(&1);
    cache.flush();
    let view = std::thread::scope(|scope| {
        let there = scope.spawn(move || {
            assert_eq!((CacheRef::key(&found), Arc::strong_count(&found)), (&1, 2));
            CacheRef::into_view(found)
        });
        there.join().unwrap()
    });
    assert_eq!(Arc::strong_count(&value), 2);
    drop(view);
    assert_eq!((Arc::strong_count(&value), cache.stats().hits), (1, 1));
}
