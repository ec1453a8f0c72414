//! Concurrent hash maps, caches and cuckoo filters whose readers take no lock and never wait.
//!
//! * [`HashMap`]: entries behind pointers; reads return references that live as long as a pinned view.
//! * [`HashSet`]: a `HashMap<T, ()>` with the methods of a set.
//! * [`InlineMap`]: small plain data in the slots themselves; reads return copies, without a pin.
//! * [`Cache`]: bounded by entries or weight; evicts the entries that are least likely to be asked for again.
//! * [`InlineCache`]: the same for small plain data in the slots themselves, bounded by entries.
//! * [`CuckooFilter`], [`ScalableCuckooFilter`]: sets that answer "surely absent" or "probably present", of fixed capacity or
//!   growing; keys can be removed.
//! * [`guard`]: a filter and a cache in front of a key-value store.
//!
//! All are MemC3 tables (Fan, Andersen and Kaminsky, NSDI 2013): 4-way set-associative cuckoo hashing with 1-byte
//! tags and striped version counters, to which koel adds segments with a writer lock each, growth, safe reclamation,
//! and readers that no suspended writer can stop.
//!
//! ```
//! use koel::{HashMap, InlineMap};
//!
//! let names: HashMap<u64, String> = HashMap::new();
//! let hits: InlineMap<u64, u64> = InlineMap::with_capacity(1000);
//!
//! std::thread::scope(|scope| {
//!     for thread in 0..2 {
//!         let (names, hits) = (&names, &hits);
//!         scope.spawn(move || {
//!             for id in 0..100 {
//!                 names.pin().get_or_insert_with(id, || format!("name {id}"));
//!                 hits.update_or_insert(id, |n| n + 1, 1);
//!             }
//!             assert!(names.pin().contains_key(&thread));
//!         });
//!     }
//! });
//! assert_eq!(names.pin().get(&7).map(String::as_str), Some("name 7"));
//! assert_eq!(hits.get(&7), Some(2));
//! ```
//!
//! The [guide] shows code for common tasks with each type, and what the same is called in other crates: the standard library's
//! maps, dashmap, papaya, moka, quick_cache, filters and stores.
//!
//! # Features
//!
//! * `serde`: `Serialize` and `Deserialize` for maps, as maps, for sets, as sequences, for filters, for a cache's
//!   [`CacheDump`], and for a [`Policy`]; `Serialize` for the types that report counts and sizes, [`Stats`], [`CacheStats`],
//!   [`FilterInfo`], [`guard::Stats`] and the like, and for a [`Cause`]. Deserializing makes a growing map or set; options of
//!   the builder are not saved.
//! * `metrics`: `Stats::report`, `CacheStats::report` and `guard::Stats::report`, to whatever recorder the `metrics` crate has.
//! * `rayon`: `par_iter` on [`Pinned`], [`PinnedSet`] and [`InlineMap`], `IntoParallelIterator`, `FromParallelIterator`,
//!   `ParallelExtend`; filters built on all threads.
//! * `redb`, `fjall` (with Rust 1.90): stores that [`guard`] can be put in front of, and the crates that they are made of,
//!   `koel::redb` and `koel::fjall`.
//!
//! # When allocation fails
//!
//! When the allocator has no memory:
//!
//! * `checked_insert` and the related methods of maps, that of sets, [`Cache::insert`] and the filters' `insert` hand back what
//!   was not taken, and an [`InlineCache`] evicts instead of growing;
//! * `try_build`, `try_reserve`, the filters' builders, `from_keys`, `try_union`, the functions that read a filter from bytes,
//!   and a guard's `snapshot` return an error;
//! * other writes of new keys to maps and sets, those that replace an entry of a [`HashMap`], and `reserve`, panic;
//! * `shrink_to_fit` and `compact` do less.
//!
//! Existing entries stay, and the next call works when there is memory again. Removed entries are dropped all the same, when no
//! older pin is left; some memory of plain entries, those that need no drop, is then not used again before the map is dropped.
//!
//! A few small allocations end the process when they fail, as any `Box` does:
//!
//! * the base structure of a map (1.4 KB), a cache (7 KB) or a growing filter (0.3 KB), and 256 bytes for each further table of
//!   a [`ScalableCuckooFilter`];
//! * for a thread: its place among the threads, when it pins or counts for the first time; more records of its pins, if it has
//!   more than six at a time, of one map or several; a cache's or guard's counts for it; and what is kept about threads that
//!   wait for a lock, when the thread does so for the first time (1 KB, and more where there are many);
//! * a record for each of about sixteen owned pins, unless the map or cache has had as many at a time before;
//! * a cache's lists of keys in the order in which they leave, of keys that have left, of entries that leave in one call, and
//!   of loads that are under way, and of each a key of more than 24 bytes; a guard's notes on keys that are deleted during a
//!   scan;
//! * the hashes that `par_from_keys` collects, 8 bytes per key, and those for which a filter that is built from keys has no
//!   room;
//! * results that are returned as a whole: filters as bytes, clones, and an iterator's entries, those of one segment at a time.
//!   So also operations that walk over the entries: `drain`, `retain`, `==`, `Debug` and `Serialize`, and `clear` of a
//!   [`HashMap`] and a [`HashSet`].
//!
//! # Targets, and forks
//!
//! Written for Linux, macOS and Windows; 64-bit atomics are required. `wasm32-unknown-unknown` is not supported: it has no
//! clock.
//!
//! On Linux the reclaimer uses `membarrier`, which interrupts the process's running threads for some microseconds: after each
//! use it is not due again for about 32 times as long as that took, unless much waits to be freed. Where the system refuses it,
//! pins use a fence instead. But a seccomp filter that is installed after koel's first use must allow it: otherwise nothing
//! that was removed is freed any more.
//!
//! In the child of a fork of a process with several threads, do not use maps, sets, caches, filters and guards before `exec`,
//! nor drop them or their pins: a thread that does not exist in the child may have held a lock, for which the child would wait
//! forever, or a pin, because of which memory would never be freed. Only look-ups in an [`InlineMap`] or a [`CuckooFilter`]
//! are safe.
//!
//! # Design
//!
//! `docs/design.md` in the repository has the invariants, the protocols as numbered steps, a table of every atomic
//! operation with its partner, and the models that check them.

// Shows which items need a feature; this itself needs an unstable feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cache;
mod draw;
mod engine;
mod entries;
#[cfg(feature = "metrics")]
mod export;
#[cfg(feature = "serde")]
mod fields;
mod file;
mod filter;
mod full;
pub mod guard;
mod hash;
#[cfg(doctest)]
mod lifetimes;
mod map;
#[cfg(any(loom, shuttle))]
#[doc(hidden)]
pub mod model;
mod outcome;
mod per_thread;
mod plain;
mod prefetch;
mod reclaim;
mod record;
mod reentry;
mod seats;
mod set;
mod swapped;
mod sync;
mod to_key;

pub use cache::{
    Cache, CacheBuilder, CacheDump, CacheEntry, CacheError, CacheIter, CacheRef, CacheStats, CacheView,
    CacheViewOwned, Cause, Clock, CoarseClock, DetachedReservation, DumpIntoIter, DumpIter, InlineCache,
    InlineCacheBuilder, InlineCacheIter, LoadError, ManualClock, MappedCacheRef, Policy, Refused,
    Reservation, ViewIter, Why,
};
pub use engine::{CapacityError, Stats};
pub use filter::{
    BytesError, ChunkLoader, Chunks, CuckooFilter, FilterBuilder, FilterError, FilterHasher, FilterInfo,
    FilterView, FilterViewOwned, ScalableCuckooFilter, ScalableFilterBuilder, ScalableInfo, TableInfo,
    ViewInfo, Xxh3, Xxh3Hasher,
};
pub use full::Full;
pub use map::{
    Builder, ClonedIter, Drain, ExtractIf, HashMap, HashMapKind, InlineDrain, InlineIter, InlineKeys,
    InlineMap, InlineMapKind, InlineValues, IntoIter, Iter, IterMut, IterWith, Keys, Kind, MappedRef, Pinned,
    PinnedOwned, Ref, Values, ValuesMut,
};
#[cfg(feature = "rayon")]
pub use map::{InlineParIter, ParIter};
pub use outcome::{Compute, Occupied, Operation};
pub use reclaim::{Guard, LocalGuard, OwnedGuard};
#[cfg(feature = "rayon")]
pub use set::SetParIter;
pub use set::{HashSet, PinnedSet, PinnedSetOwned, SetDrain, SetExtractIf, SetIntoIter, SetIterWith, SetRef};
pub use to_key::{ByToOwned, ToKey};

/// The crate that `guard::FjallStore` is built on, in the version whose `Database` it takes: with the feature `fjall`.
#[cfg(feature = "fjall")]
pub use ::fjall;
/// The crate that `guard::RedbStore` is built on, in the version whose `Database` it takes: with the feature `redb`.
#[cfg(feature = "redb")]
pub use ::redb;
/// The default hash function of maps and caches: keyed at random for each.
pub use ahash::RandomState;
/// The bound on keys and values of an [`InlineMap`] and an [`InlineCache`]: `bytemuck`'s `Pod`, for which [`Zeroable`] is
/// needed as well. For generic code, and for types that implement both by hand; to derive them, depend on `bytemuck`, [as
/// described for `InlineMap`](InlineMap#when-to-pick-something-else).
///
/// ```
/// use std::hash::Hash;
///
/// use koel::{InlineMap, Pod};
///
/// fn count<K: Pod + Hash + Eq>(counts: &InlineMap<K, u64>, key: K) {
///     counts.update_or_insert(key, |n| n + 1, 1);
/// }
///
/// let counts = InlineMap::new();
/// count(&counts, [127_u8, 0, 0, 1]);
/// assert_eq!(counts.get(&[127, 0, 0, 1]), Some(1));
/// ```
pub use bytemuck::Pod;
/// The trait that every [`Pod`] implements, from `bytemuck`: for types that implement both by hand.
pub use bytemuck::Zeroable;
/// The trait that a borrowed form of a key implements. [`HashMap`] finds a `String` by a `&str` as it is; implement the trait
/// for look-ups by other types, with the same `Hash`.
pub use equivalent::Equivalent;

/// The README's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Only in the documentation, where its examples are tests.
#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}
