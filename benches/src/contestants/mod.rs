//! The maps that are compared: one small file for each, behind one trait.
//!
//! Workloads are generic over the trait and compiled for each contestant: nothing in the timed loops is dynamic.

mod dashmap;
mod koel;
mod koel_inline;
mod papaya;
mod rwlock;
mod scc_hash_index;
mod scc_hash_map;

use clap::ValueEnum;

pub use self::dashmap::Dashmap;
pub use self::koel::{Koel, KoelHeld};
pub use self::koel_inline::KoelInline;
pub use self::papaya::{Papaya, PapayaHeld};
pub use self::rwlock::RwLockHashbrown;
pub use self::scc_hash_index::{SccHashIndex, SccHashIndexHeld};
pub use self::scc_hash_map::SccHashMap;

/// How many operations a contestant that holds its pin does under one pin.
pub const HELD_OPS: usize = 64;

/// How many keys a batched lookup is given.
pub const BATCH: usize = 32;

/// Every contestant hashes with this.
pub type Hasher = ::ahash::RandomState;

/// The hasher that all contestants get, with the same seeds in every run.
pub fn hasher() -> Hasher {
    Hasher::with_seeds(0x6B6F_656C, 2, 3, 4)
}

/// A map from numbers to numbers, shared by threads.
pub trait Contestant: Send + Sync + Sized + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// Whether a reader may miss a key that another thread is replacing. That is a fault, but one that is reported and does not
    /// end the run: such misses are counted, and tables say how many there were.
    const MAY_MISS_REPLACED: bool = false;

    /// What a thread works through; made again every [`HELD_OPS`] operations.
    type View<'m>: View;

    /// An empty map with room for `capacity` entries; 0 means without room.
    fn with_capacity(capacity: usize) -> Self;

    /// A view for the calling thread.
    fn view(&self) -> Self::View<'_>;

    /// Inserts all pairs; by default one by one.
    fn extend(&mut self, pairs: impl Iterator<Item = (u64, u64)>) {
        let view = self.view();
        for (key, value) in pairs {
            view.insert(key, value);
        }
    }

    /// Entries, while nobody writes.
    fn entries(&self) -> usize;

    /// The sum of all keys and values, modulo 2^64: a walk, under one pin or one lock if the map has such.
    fn sum(&self) -> u64;

    /// A copy, as the map itself makes it.
    fn duplicate(&self) -> Self;

    /// Keeps the entries of the keys for which `keep` holds, and removes the others.
    fn retain(&self, keep: impl Fn(u64) -> bool);

    /// Removes all entries.
    fn clear(&self);

    /// The bytes that the map reports it takes, if it does.
    fn own_memory_usage(&self) -> Option<usize> {
        None
    }
}

/// The operations of a [`Contestant`].
pub trait View {
    /// The value of `key`.
    fn get(&self, key: u64) -> Option<u64>;

    /// Inserts or replaces; returns the value that was there.
    fn insert(&self, key: u64, value: u64) -> Option<u64>;

    /// Removes `key`; returns the value that was there.
    fn remove(&self, key: u64) -> Option<u64>;

    /// Adds one to the value of `key` in one step; returns the new value.
    fn update(&self, key: u64) -> Option<u64>;

    /// Looks up at most [`BATCH`] keys and passes the answers to `each`; by default one by one. A map that pins or locks for a
    /// look-up does so once for all of them.
    #[inline]
    fn get_many(&self, keys: &[u64], mut each: impl FnMut(u64, Option<u64>)) {
        for &key in keys {
            each(key, self.get(key));
        }
    }
}

/// The sum of the keys and values of these entries, modulo 2^64.
fn total(entries: impl Iterator<Item = (u64, u64)>) -> u64 {
    entries.fold(0, |sum, (key, value)| sum.wrapping_add(key).wrapping_add(value))
}

/// A map from texts to texts, shared by threads.
pub trait TextContestant: Send + Sync + Sized + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// What a thread reads through; made again every [`HELD_OPS`] operations.
    type View<'m>: TextView;

    /// An empty map with room for `capacity` entries.
    fn with_capacity(capacity: usize) -> Self;

    /// Inserts a pair; returns whether the key is new.
    fn insert_text(&self, key: String, value: String) -> bool;

    /// A view for the calling thread.
    fn view(&self) -> Self::View<'_>;
}

/// Lookups in a [`TextContestant`].
pub trait TextView {
    /// What `read` makes of the value of `key`.
    fn read<R>(&self, key: &str, read: impl FnOnce(&str) -> R) -> Option<R>;
}

/// The contestants by name, in the order in which tables list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Id {
    /// koel::HashMap, one pin per operation
    Koel,
    /// koel::HashMap, one pin per 64 operations
    KoelHeld,
    /// koel::InlineMap
    #[value(alias = "inline")]
    KoelInline,
    /// papaya::HashMap, one pin per operation
    Papaya,
    /// papaya::HashMap, one pin per 64 operations
    PapayaHeld,
    /// dashmap::DashMap
    Dashmap,
    /// scc::HashMap
    #[value(alias = "scc")]
    SccHashMap,
    /// scc::HashIndex, one guard per operation
    SccHashIndex,
    /// scc::HashIndex, one guard per 64 operations
    SccHashIndexHeld,
    /// parking_lot::RwLock around hashbrown::HashMap
    #[value(alias = "hashbrown")]
    Rwlock,
}

impl Id {
    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Id::Koel => <Koel<u64, u64> as Contestant>::NAME,
            Id::KoelHeld => <KoelHeld<u64, u64> as Contestant>::NAME,
            Id::KoelInline => <KoelInline as Contestant>::NAME,
            Id::Papaya => <Papaya<u64, u64> as Contestant>::NAME,
            Id::PapayaHeld => <PapayaHeld<u64, u64> as Contestant>::NAME,
            Id::Dashmap => <Dashmap<u64, u64> as Contestant>::NAME,
            Id::SccHashMap => <SccHashMap<u64, u64> as Contestant>::NAME,
            Id::SccHashIndex => <SccHashIndex<u64, u64> as Contestant>::NAME,
            Id::SccHashIndexHeld => <SccHashIndexHeld<u64, u64> as Contestant>::NAME,
            Id::Rwlock => <RwLockHashbrown<u64, u64> as Contestant>::NAME,
        }
    }

    /// Whether it is koel.
    pub fn is_koel(self) -> bool {
        matches!(self, Id::Koel | Id::KoelHeld | Id::KoelInline)
    }

    /// Whether it holds one pin for several operations: this is measured, but is not the usual way to use a map.
    pub fn is_held(self) -> bool {
        matches!(self, Id::KoelHeld | Id::PapayaHeld | Id::SccHashIndexHeld)
    }
}
