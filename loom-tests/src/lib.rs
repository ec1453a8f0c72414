//! What the models in `tests/` share: an identity hash, hash functions that stay the same, keys that go where a model wants
//! them, and a store for guards.
//!
//! Each model is one protocol of `docs/design.md`, run against the production code under loom. Run them with
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p loom-tests`.
//!
//! Lock-free readers are spawned threads, and the writer is the model itself. The model's own thread runs first, and of each
//! word loom remembers only the last access. A writer loads a version before it stores to it: if the reader came first, the
//! writer's load would hide the reader's, and loom would not try the other order.
#![cfg(loom)]

mod cell;
mod failed;
mod hashes;
mod identity;
mod stopped;
mod store;

pub use cell::{Cell, scene};
pub use failed::Failed;
pub use hashes::same_hashes;
pub use identity::Identity;
use koel::model::place;
pub use stopped::stopped;
pub use store::{FAILS, STAYS, Words};

/// A map of fixed capacity with one segment of three buckets: A, B and C.
pub type Map = koel::HashMap<u64, u64, Identity>;

/// Its inline counterpart, with a value of two words.
pub type Inline = koel::InlineMap<u64, [u64; 2], Identity>;

/// Buckets of the maps below.
pub const BUCKETS: u32 = 3;
const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;

/// A map of [`BUCKETS`] buckets that does not grow.
pub fn map() -> Map {
    let map = koel::HashMap::builder().fixed_capacity(11).hasher(Identity::default()).build();
    assert_eq!(map.capacity(), 4 * BUCKETS as usize);
    map
}

/// Its inline counterpart.
pub fn inline() -> Inline {
    let map = koel::InlineMap::builder().fixed_capacity(11).hasher(Identity::default()).build();
    assert_eq!(map.capacity(), 4 * BUCKETS as usize);
    map
}

/// The first `n` keys from `from` on that `wanted` accepts by first bucket, second bucket and tag.
pub fn keys(n: usize, from: u64, wanted: impl Fn(u32, u32, u8) -> bool) -> Vec<u64> {
    let fits = |&key: &u64| {
        let (first, second, tag) = place(key, BUCKETS);
        wanted(first, second, tag)
    };
    (from..from + 1_000_000).filter(fits).take(n).collect()
}

/// A model with few preemptions, if it would take minutes with the two that the others have.
pub fn model_with_preemptions(bound: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(f);
}

/// A model that takes a minute or more with two preemptions: it has as many as `KOEL_LONG_MODELS` says, or, without that, as
/// many as all others.
pub fn long_model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if let Ok(bound) = std::env::var("KOEL_LONG_MODELS") {
        builder.preemption_bound = Some(bound.parse().expect("KOEL_LONG_MODELS is a number"));
    }
    builder.check(f);
}

/// The operations that models need of both maps.
pub trait Put {
    /// Inserts a key with a value that is made of `value` alone.
    fn put(&self, key: u64, value: u64);
    /// Removes a key.
    fn take(&self, key: u64);
    /// What the value of a key was made of; a torn value fails the model.
    fn look(&self, key: u64) -> Option<u64>;
    /// `look` for many keys at once.
    fn look_at_many(&self, keys: &[u64]) -> Vec<Option<u64>>;
    /// Whether the tags say that a key may be here.
    fn may_have(&self, key: u64) -> bool;
    /// Displacements so far.
    fn displacements(&self) -> u64;
    /// Entries in the overflow.
    fn overflow(&self) -> usize;
}

/// What a value of [`Inline`] was made of.
fn whole([value, not_value]: [u64; 2]) -> u64 {
    assert_eq!(value, !not_value, "a torn value");
    value
}

impl Put for Map {
    fn put(&self, key: u64, value: u64) {
        self.pin().insert(key, value);
    }

    fn take(&self, key: u64) {
        self.pin().remove(&key);
    }

    fn look(&self, key: u64) -> Option<u64> {
        self.pin().get(&key).copied()
    }

    fn look_at_many(&self, keys: &[u64]) -> Vec<Option<u64>> {
        let (pin, mut out) = (self.pin(), vec![None; keys.len()]);
        pin.get_many(keys, &mut out);
        out.into_iter().map(Option::<&u64>::copied).collect()
    }

    fn may_have(&self, key: u64) -> bool {
        self.pin().may_contain(&key)
    }

    fn displacements(&self) -> u64 {
        self.stats().displacements
    }

    fn overflow(&self) -> usize {
        self.stats().overflow
    }
}

impl Put for Inline {
    fn put(&self, key: u64, value: u64) {
        self.insert(key, [value, !value]);
    }

    fn take(&self, key: u64) {
        self.remove(&key);
    }

    fn look(&self, key: u64) -> Option<u64> {
        self.get(&key).map(whole)
    }

    fn look_at_many(&self, keys: &[u64]) -> Vec<Option<u64>> {
        let mut out = vec![None; keys.len()];
        self.get_many(keys, &mut out);
        out.into_iter().map(|value| value.map(whole)).collect()
    }

    fn may_have(&self, key: u64) -> bool {
        self.may_contain(&key)
    }

    fn displacements(&self) -> u64 {
        self.stats().displacements
    }

    fn overflow(&self) -> usize {
        self.stats().overflow
    }
}

/// A table in which inserting `newcomer` displaces `victim`, from A to C.
#[derive(Debug)]
pub struct Scene {
    /// A key in bucket A; its other bucket is C.
    pub victim: u64,
    /// A key whose buckets, A and B, are full.
    pub newcomer: u64,
    /// A key that is not in the table, with the victim's buckets and tag.
    pub absent: u64,
}

impl Scene {
    /// Fills `map`. The victim moves from its first bucket to its second if `forward`, else from second to first.
    pub fn new(map: &impl Put, forward: bool) -> Self {
        let (first, second) = if forward { (A, C) } else { (C, A) };
        let victim = keys(1, 0, |f, s, _| (f, s) == (first, second))[0];
        let tag = place(victim, BUCKETS).2;
        let absent = keys(1, victim + 1, |f, s, t| (f, s, t) == (first, second, tag))[0];
        if !forward {
            // Fill C, so that the victim goes to its second bucket, and make room again.
            let fillers = keys(4, 0, |f, _, t| f == C && t != tag);
            fillers.iter().for_each(|&key| map.put(key, 0));
            map.put(victim, 1);
            fillers.iter().for_each(|&key| map.take(key));
        } else {
            map.put(victim, 1);
        }
        for key in keys(3, 0, |f, _, t| f == A && t != tag) {
            map.put(key, 0);
        }
        for key in keys(4, 0, |f, _, t| f == B && t != tag) {
            map.put(key, 0);
        }
        let newcomer = keys(1, 1 << 32, |f, s, t| (f, s) == (A, B) && t != tag)[0];
        Scene { victim, newcomer, absent }
    }
}
