//! Panics in user code: the operation has no effect, and everything goes on.

use koel::{InlineCache, Operation};

use crate::POLICIES;
use crate::common::catch;
use crate::common::fuse::{Key, Site, arm, disarm};
use crate::common::hashers::Through;

/// Five hashes in all: tables grow in vain, and hash keys while they grow.
const FEW: Through = Through(|n| n % 5);

/// In some hundred insertions one of the first calls of `Eq` or `Hash` panics.
#[test]
fn a_panic_in_eq_or_hash_leaves_the_cache_whole() {
    for policy in POLICIES {
        for (site, calls) in [(Site::Eq, 10), (Site::Hash, 40)] {
            let cache: InlineCache<Key, u64, _> =
                InlineCache::builder().max_entries(30).policy(policy).hasher(FEW).build();
            let mut panics = 0;
            for n in 1..400_u64 {
                arm(site, n as usize % calls);
                let result = catch(|| cache.insert(Key(n % 60), n));
                assert_eq!(disarm(), result.is_err());
                panics += u64::from(result.is_err());
                assert!(cache.len() <= 30);
                let mut entries: Vec<_> = cache.iter().map(|(key, _)| key.0).collect();
                entries.sort_unstable();
                entries.dedup();
                assert_eq!(entries.len(), cache.len(), "an entry twice, or a count that is wrong");
            }
            assert!(panics > 10, "{site:?}: {panics}");
            for key in (0..60).map(Key) {
                cache.remove(&key);
            }
            assert!(cache.is_empty());
            (0..10).map(Key).for_each(|key| assert_eq!(cache.insert(key, 1), None));
            assert_eq!(cache.len(), 10, "room for what had left");
        }
    }
}

#[test]
fn a_panic_in_a_closure_changes_nothing() {
    let cache = InlineCache::<u64, u64>::new(10);
    cache.insert(1, 10);
    let panics = |f: &dyn Fn()| assert!(catch(f).is_err());
    panics(&|| {
        cache.compute(1, |_| -> Operation<u64, ()> { panic!("in decide") });
    });
    panics(&|| {
        cache.compute(2, |_| Operation::<u64, ()>::Remove);
    });
    panics(&|| {
        cache.remove_if(&1, |_, _| panic!("in the condition"));
    });
    panics(&|| cache.retain(|_, _| panic!("in keep")));
    panics(&|| {
        cache.get_or_insert_with(2, || panic!("in the loader"));
    });
    assert_eq!(cache.iter().collect::<Vec<_>>(), [(1, 10)]);
    assert_eq!(cache.get_or_insert_with(2, || 20), 20);
}

/// It would wait for itself.
#[test]
fn writing_under_the_lock_panics() {
    let cache = InlineCache::<u64, u64>::new(10);
    cache.insert(1, 10);
    let writes: [&dyn Fn(); 9] = [
        &|| {
            cache.insert(2, 20);
        },
        &|| {
            cache.remove(&2);
        },
        &|| {
            cache.compute(2, |_| Operation::<u64, ()>::Insert(1));
        },
        &|| {
            cache.get_or_insert_with(2, || unreachable!("not under the lock"));
        },
        &|| {
            pollster::block_on(cache.get_or_insert_async(2, async { unreachable!("not under the lock") }));
        },
        &|| cache.retain(|_, _| false),
        &|| cache.clear(),
        &|| {
            cache.iter().count();
        },
        &|| {
            cache.memory_usage();
        },
    ];
    for write in writes {
        let under_lock = || {
            cache.compute(1, |_| -> Operation<u64, ()> {
                write();
                Operation::Abort(())
            })
        };
        assert!(catch(under_lock).unwrap_err().contains("the same map"));
        let reads = cache.remove_if(&1, |key, value| {
            assert_eq!((cache.get(key), cache.len()), (Some(*value), 1));
            false
        });
        assert_eq!((reads, cache.get(&1)), (None, Some(10)));
    }
}
