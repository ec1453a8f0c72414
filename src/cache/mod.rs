//! The cache: a front end of the engine, with no table logic in it.
//!
//! | file | duty |
//! | --- | --- |
//! | `cache`, `many` | [`Cache`]: construction, reads; many look-ups at once |
//! | `write` | its writing half: find, make room, commit |
//! | `remove`, `sweep` | removal on request; expired entries |
//! | `whole` | operations on all of it: clear, purge, retain |
//! | `compute`, `compute_ref` | operations that decide under the lock; by references to keys |
//! | `entry` | a key, and other names for the operations by key |
//! | `dump`, `restore` | a cache's contents for a warm restart; back into a cache |
//! | `serde` | the feature of this name: dumps, and counts |
//! | `load`, `load_many`, `flight` | values that are loaded when they are missed, once for all callers that miss them |
//! | `load_ref` | the same, by references to keys |
//! | `load_if` | the same, also when they are stale to the caller |
//! | `reserve` | a key that is missed, to be loaded by its caller in any way |
//! | `timer` | how long loaders run |
//! | `keep` | what loads look up, and how they keep the loaded values |
//! | `view`, `cache_ref`, `iter` | look-ups by reference; one that takes its view along; walks |
//! | `builder`, `options` | options; what a cache is made of by them |
//! | `policy` | which entries to evict |
//! | `bound`, `quota` | how much may be held, and how segments share it |
//! | `residents`, `room` | entries as the policy sees them; when a table is made larger |
//! | `share` | what is kept under the lock of each segment |
//! | `time`, `coarse` | lifetimes and clocks; one that is read seldom |
//! | `meta` | the facts about each entry for these, and its weight |
//! | `time_left` | what an entry has left to live |
//! | `removal`, `gone` | entries that have left: who is told, when they are freed; what is alike for all keys and values |
//! | `refused`, `error` | entries that were not taken; what is wrong with the options |
//! | `inline` | [`InlineCache`]: the same for small plain data, in the slots |
//! | `counters`, `metrics` | counts; the feature that exports them |

// In the order in which the documentation shows their methods.
#[expect(clippy::module_inception, reason = "each type is in a file of its name")]
mod cache;
mod write;
mod remove;
mod load;
mod load_ref;
mod load_if;
mod load_many;
mod reserve;
mod compute;
mod compute_ref;
mod view;
mod many;
mod whole;
mod time_left;

// The other files.
mod bound;
mod builder;
mod cache_ref;
mod coarse;
mod counters;
mod dump;
mod entry;
mod error;
mod flight;
mod gone;
mod inline;
mod iter;
mod keep;
mod meta;
#[cfg(feature = "metrics")]
mod metrics;
mod options;
mod policy;
mod quota;
mod refused;
mod removal;
mod residents;
mod restore;
mod room;
#[cfg(feature = "serde")]
mod serde;
mod share;
mod sweep;
mod time;
mod timer;

pub use builder::CacheBuilder;
pub use cache::Cache;
pub use cache_ref::{CacheRef, MappedCacheRef};
pub use coarse::CoarseClock;
pub use counters::CacheStats;
pub use dump::{CacheDump, DumpIntoIter, DumpIter};
pub use entry::CacheEntry;
pub use error::CacheError;
pub use flight::LoadError;
#[cfg(loom)]
pub use flight::toy::LoadOnce;
pub use inline::{InlineCache, InlineCacheBuilder, InlineCacheIter};
pub use iter::{CacheIter, ViewIter};
pub use policy::Policy;
pub use refused::{Refused, Why};
pub use removal::Cause;
pub use reserve::{DetachedReservation, Reservation};
pub use time::{Clock, ManualClock};
pub use view::{CacheView, CacheViewOwned};
