//! An inline cache and a `Cache` with the same hash function, bound and policy: all answers of the two agree.

use std::hash::BuildHasher;
use std::time::Duration;

use koel::{Cache, CacheStats, InlineCache, Operation, Policy};

/// The requests to both.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// A look-up, and an insertion if there is nothing.
    ReadThrough,
    /// Look-ups of many keys from this one on, as a batch in one of them.
    GetMany,
    /// A look-up that loads the value if there is none; for some values the loader fails.
    Load,
    Insert,
    Remove,
    RemoveIf,
    Compute,
    Peek,
    Contains,
    Retain,
    Clear,
}

/// Both caches.
pub(crate) struct Pair<S> {
    inline: InlineCache<u64, u64, S>,
    cache: Cache<u64, u64, S>,
}

/// What is to be done with a value, depending on it.
pub(crate) fn decide(old: Option<u64>, value: u64) -> Operation<u64, u64> {
    match old {
        Some(old) if old % 7 == 0 => Operation::Remove,
        Some(old) if old % 7 == 1 => Operation::Abort(old),
        _ => Operation::Insert(value),
    }
}

fn sorted(entries: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable();
    entries
}

impl<S: BuildHasher + Clone> Pair<S> {
    pub(crate) fn new(policy: Policy, capacity: usize, hasher: S) -> Self {
        Pair {
            inline: InlineCache::builder()
                .max_entries(capacity)
                .policy(policy)
                .hasher(hasher.clone())
                .build(),
            cache: Cache::builder().max_entries(capacity).policy(policy).hasher(hasher).build(),
        }
    }

    /// # Panics
    ///
    /// If they do not answer alike.
    pub(crate) fn both(&self, request: Request, key: u64, value: u64) {
        let Pair { inline, cache } = self;
        match request {
            Request::ReadThrough => {
                let (seen, expected) = (inline.get(&key), cache.get(&key));
                assert_eq!(seen, expected);
                if seen.is_none() {
                    assert_eq!(inline.insert(key, value), None);
                    cache.insert(key, value).unwrap();
                }
            }
            Request::GetMany => {
                let keys: Vec<u64> = (key..key + 1 + value % 40).collect();
                let mut seen = vec![None; keys.len()];
                let one_by_one: Vec<Option<u64>> = if value % 2 == 0 {
                    inline.get_many(&keys, &mut seen);
                    keys.iter().map(|key| cache.get(key)).collect()
                } else {
                    cache.get_many(&keys, &mut seen);
                    keys.iter().map(|key| inline.get(key)).collect()
                };
                assert_eq!(seen, one_by_one);
            }
            Request::Load => {
                let load = || if value % 4 == 0 { Err("none") } else { Ok(value) };
                let expected = cache.try_get_or_insert_with(key, load);
                assert_eq!(inline.try_get_or_insert_with(key, load), expected);
            }
            Request::Insert => {
                let old = cache.peek(&key);
                cache.insert(key, value).unwrap();
                assert_eq!(inline.insert(key, value), old);
            }
            Request::Remove => assert_eq!(inline.remove(&key), cache.remove(&key)),
            Request::RemoveIf => {
                let odd = |key: &u64, value: &u64| (key ^ value) % 2 == 1;
                assert_eq!(inline.remove_if(&key, odd), cache.remove_if(&key, odd));
            }
            Request::Compute => {
                let expected = cache.compute(key, |old| decide(old.copied(), value)).unwrap();
                assert_eq!(inline.compute(key, |old| decide(old, value)), expected);
            }
            Request::Peek => assert_eq!(inline.peek(&key), cache.peek(&key)),
            Request::Contains => assert_eq!(inline.contains_key(&key), cache.contains_key(&key)),
            Request::Retain => {
                let keep = |key: &u64, value: &u64| (key.wrapping_add(*value)) % 4 != 0;
                inline.retain(keep);
                cache.retain(keep);
            }
            Request::Clear => {
                inline.clear();
                cache.clear();
            }
        }
        assert_eq!(inline.len(), cache.len());
    }

    /// The statistics, which both share.
    ///
    /// # Panics
    ///
    /// If their contents or statistics differ.
    pub(crate) fn end(self) -> CacheStats {
        assert_eq!(sorted(self.inline.iter()), sorted(self.cache.iter()));
        // Except the time that loaders took.
        let counted = |mut stats: CacheStats| {
            stats.load_time = Duration::ZERO;
            stats
        };
        let stats = counted(self.inline.stats());
        assert_eq!(stats, counted(self.cache.stats()));
        stats
    }
}
