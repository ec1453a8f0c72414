//! A filter and a cache before a key-value store: look-ups of keys that the store does not hold do not reach it.
//!
//! [`Guarded`] wraps a [`Store`]: `RedbStore` (feature `redb`), `FjallStore` (feature `fjall`), [`HashMapStore`] for
//! tests, or one of your own. It keeps a filter of the store's keys in memory, and asks the store only where the filter
//! says "perhaps".
//!
//! ```
//! use koel::guard::{Guarded, HashMapStore};
//!
//! let guarded = Guarded::builder(HashMapStore::new()).false_positive_rate(1e-6).open()?;
//! assert!(!guarded.put(b"ada", b"1815")?, "a new key");
//! assert_eq!(guarded.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
//!
//! guarded.wait_until_ready()?;
//! assert_eq!(guarded.get(b"grace")?, None);
//! assert_eq!(guarded.stats().blocked, 1, "the store was not asked");
//! # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
//! ```
//!
//! It is never wrong. A key that the store holds is never reported absent, however threads interleave, commits fail, the filter
//! fills up or the process is killed; and a value is never older than the last write that had completed when the look-up began.
//! `docs/design.md` has the rules and why they hold. All writes must go through the guard: while a guard is open, nobody else
//! may write to its store, that is, to its table or keyspace. Other tables or keyspaces of the same database are yours.

// From the public surface down to what it is built on. Two files depend upwards: `guarded` names the builder, and `shared` the
// scan of `rebuild`:
//
// | file | duty |
// | --- | --- |
// | `builder` | options; opening |
// | `lookup` | look-ups |
// | `guarded` | writes, and operations on the whole guard |
// | `compute` | a write that depends on the current value |
// | `batch` | several writes at once |
// | `verify` | samples for false negatives |
// | `rebuild` | a filter from the store's keys, while serving |
// | `snapshot` | the filter in a file |
// | `scanning` | which guard this thread scans for |
// | `section` | one write: the order rules |
// | `shared` | what they all share |
// | `filter` | the filter that readers ask |
// | `bloom` | the Bloom filter |
// | `stripes` | locks and versions, one for many keys |
// | `absent` | repeated false positives |
// | `hot` | the cache as the guard uses it |
// | `stats`, `metrics`, `serde` | counters; the features that export them |
// | `redb`, `fjall`, `hash_map` | stores |
// | `dyn_store` | a store chosen at run time |
// | `store` | the trait of stores |
// | `error` | errors |
// | `policy` | filters for blocks of sorted tables; independent of the rest |

// In the order in which the documentation shows their methods.
mod guarded;
mod lookup;
mod compute;
mod batch;

// The others.
mod absent;
mod bloom;
mod builder;
mod dyn_store;
mod error;
mod filter;
#[cfg(feature = "fjall")]
mod fjall;
mod hash_map;
mod hot;
#[cfg(feature = "metrics")]
mod metrics;
mod policy;
mod rebuild;
#[cfg(feature = "redb")]
mod redb;
mod scanning;
mod section;
#[cfg(feature = "serde")]
mod serde;
mod shared;
mod snapshot;
mod stats;
mod store;
mod stripes;
mod verify;

pub use builder::Builder;
pub use compute::Computed;
pub use dyn_store::{DynStore, DynStoreError};
pub use error::{Error, SnapshotError};
pub use filter::Filter;
#[cfg(feature = "fjall")]
pub use fjall::{FjallError, FjallStore};
pub use guarded::Guarded;
pub use hash_map::HashMapStore;
pub use lookup::Known;
pub use policy::{BloomPolicy, CuckooPolicy, FilterPolicy};
pub use rebuild::{Phase, Progress};
#[cfg(feature = "redb")]
pub use redb::{RedbError, RedbStore};
pub use stats::Stats;
pub use store::{Generation, Scanned, Store, Value, Write};
pub use verify::Verification;
