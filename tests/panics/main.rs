//! Panics in user code: wherever they come from, a map holds what it should, works from every thread, and drops everything
//! once.

mod closures;
#[path = "../common/mod.rs"]
mod common;
mod injected;
mod keys;
mod owned;

use common::AnyMap;
use common::fuse::Key;

/// The map has exactly these entries.
pub(crate) fn assert_same<M: AnyMap<Key = Key, Value = u64>>(what: &str, map: &M, before: &[(Key, u64)]) {
    assert_eq!(map.len(), before.len(), "{} {what}", M::NAME);
    for (key, value) in before {
        assert_eq!(map.get(key), Some(*value), "{} {what}: {key:?}", M::NAME);
    }
    let sorted = |entries: &[(Key, u64)]| {
        let mut entries: Vec<_> = entries.iter().map(|(key, value)| (key.0, *value)).collect();
        entries.sort_unstable();
        entries
    };
    assert_eq!(sorted(&map.entries()), sorted(before), "{} {what}", M::NAME);
}

/// Writes and reads, on this thread and on another: no lock was left behind.
pub(crate) fn assert_works<M: AnyMap<Key = Key, Value = u64>>(map: &M) {
    let probe = || {
        let key = Key(12_345);
        assert_eq!(map.insert(key, 1), None);
        assert_eq!(map.get(&key), Some(1));
        assert_eq!(map.remove(&key), Some(1));
        assert!(map.entries().len() == map.len());
    };
    probe();
    std::thread::scope(|scope| scope.spawn(probe).join()).expect("another thread");
}

/// Writes without making the map grow, on this thread and perhaps on another: no lock was left behind.
pub(crate) fn assert_unlocked<M: AnyMap<Key = Key, Value = u64>>(map: &M, from_elsewhere: bool) {
    let probe = || {
        for key in map.keys() {
            assert!(map.update(key, |value| value).is_some());
        }
    };
    probe();
    if from_elsewhere {
        std::thread::scope(|scope| scope.spawn(probe).join()).expect("another thread");
    }
}
