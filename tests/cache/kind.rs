//! The kinds of caches for which the laws hold.

use std::time::Duration;

use koel::{Cache, ManualClock, Policy, RandomState};

use super::oracle::{Item, Lives, Told};

/// A cache made for this many entries has several segments, whatever its bound.
pub(crate) const SEVERAL_SEGMENTS: usize = 5000;

/// What the bound is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Entries,
    /// By weight, but each entry weighs 1; in several segments, some of which may hold nothing.
    Ones,
    /// By weight, in one segment, which grows.
    Weight,
    /// By weight, in several segments, which borrow from one another.
    WeightOfMany,
}

impl Bound {
    pub(crate) fn weighs(self) -> bool {
        matches!(self, Bound::Weight | Bound::WeightOfMany)
    }
}

/// A kind of cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) capacity: u64,
    pub(crate) bound: Bound,
    pub(crate) policy: Policy,
    pub(crate) lives: Lives,
}

/// A cache with a listener, the listener's record, and the clock. Equal choices make equal runs: so the hashes are seeded by
/// them.
pub(crate) fn build(kind: Kind, seed: u64) -> (Cache<u64, Item>, Told, ManualClock) {
    let Kind { capacity, bound, policy, lives } = kind;
    let mut builder = Cache::builder().policy(policy).hasher(RandomState::with_seeds(seed, 1, 2, 3));
    builder = match bound {
        Bound::Entries => builder.max_entries(capacity as usize),
        Bound::Weight => builder.max_weight(capacity),
        Bound::Ones | Bound::WeightOfMany => builder.max_weight(capacity).estimated_entries(SEVERAL_SEGMENTS),
    };
    if bound.weighs() {
        builder = builder.weigher(|_, item: &Item| item.weight);
    }
    let clock = ManualClock::new();
    if lives.expire() {
        builder = builder.clock(clock.clone());
    }
    if let Some(to_live) = lives.to_live {
        builder = builder.time_to_live(to_live);
    }
    if let Some(to_idle) = lives.to_idle {
        builder = builder.time_to_idle(to_idle);
    }
    if lives.own {
        builder = builder.expiry(|_, item: &Item| item.lives).idle_expiry(|_, item| item.idle());
    }
    let told = Told::default();
    let ear = Told::clone(&told);
    let listener = move |key: &u64, item: &Item, cause| ear.lock().unwrap().push((*key, *item.number, cause));
    (builder.on_removal(listener).build(), told, clock)
}

const SECOND: Duration = Duration::from_secs(1);

/// None, each, and all together.
pub(crate) const LIVES: [Lives; 4] = [
    Lives::FOR_EVER,
    Lives { to_live: Some(SECOND), to_idle: None, own: false },
    Lives { to_live: None, to_idle: Some(SECOND), own: false },
    Lives { to_live: Some(Duration::from_secs(2)), to_idle: Some(SECOND), own: true },
];
