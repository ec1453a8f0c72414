//! Keys with one hash: a cache has room for eight of them, however much it may hold.

use std::hash::{BuildHasherDefault, DefaultHasher, Hash};

use koel::{Cache, Policy};

use crate::POLICIES;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Alike(usize);

impl Hash for Alike {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// The same for each cache, and not one for which both buckets are the same.
type Hasher = BuildHasherDefault<DefaultHasher>;

const ROOM: usize = 8;

/// A cache with room for many. Of its eight keys all but one were hit `hits` times, and that one `less` times.
fn one_is_hit_less(policy: Policy, hits: usize, less: usize, which: usize) {
    let builder = Cache::builder().max_entries(10_000).policy(policy).hasher(Hasher::default());
    let cache: Cache<Alike, usize, Hasher> = builder.build();
    (0..ROOM).for_each(|key| cache.insert(Alike(key), key).unwrap());
    assert_eq!(cache.len(), ROOM, "{policy}");
    for key in 0..ROOM {
        let times = if key == which { less } else { hits };
        (0..times).for_each(|_| assert_eq!(cache.get(&Alike(key)), Some(key)));
    }
    cache.insert(Alike(ROOM), ROOM).unwrap();
    let left: Vec<_> = (0..=ROOM).filter(|&key| !cache.contains_key(&Alike(key))).collect();
    assert_eq!((left, cache.stats().evictions), (vec![which], 1), "{policy}");
}

#[test]
fn where_a_key_has_no_room_who_was_hit_the_least_goes() {
    for (policy, which) in POLICIES.into_iter().flat_map(|policy| (0..ROOM).map(move |key| (policy, key))) {
        one_is_hit_less(policy, 1, 0, which);
        if policy != Policy::Clock {
            // This policy has one bit for each entry.
            one_is_hit_less(policy, 2, 1, which);
        }
    }
}
