//! The cache: a front end of the engine, with no table logic in it.
//!
//! | file | duty |
//! | --- | --- |
//! | `cache`, `many` | [`Cache`]: making one, reading; many look-ups at once |
//! | `write` | its writing half: find, make room, commit |
//! | `remove`, `sweep` | what is asked to go; what has expired |
//! | `whole` | what is done to all of it: clear, purge, retain |
//! | `compute`, `compute_ref` | what decides under the lock; by references to keys |
//! | `entry` | a key, and other names for what is done by key |
//! | `dump`, `restore` | a cache's contents for a warm restart; back into a cache |
//! | `serde` | the feature of this name: dumps, and counts |
//! | `load`, `load_many`, `flight` | values that are loaded when they are missed, once for all who miss them |
//! | `load_ref` | the same, by references to keys |
//! | `load_if` | the same, also when they are stale to who asks |
//! | `reserve` | a key that is missed, to be loaded by who has asked for it as he likes |
//! | `timer` | how long loaders run |
//! | `keep` | what loads look up, and how they keep what was loaded |
//! | `view`, `cache_ref`, `iter` | look-ups by reference; one that takes its view along; walks |
//! | `builder` | options |
//! | `policy` | who is to leave |
//! | `bound`, `quota` | how much may be held, and how segments share it |
//! | `residents`, `room` | entries as the policy sees them; when a table is made larger |
//! | `share` | what is kept under the lock of each segment |
//! | `time`, `coarse` | lifetimes and clocks; one that is read seldom |
//! | `meta` | what is known of each entry for these, and its weight |
//! | `time_left` | what an entry has left to live |
//! | `removal`, `gone` | what has left: who is told, when it is freed; what of that is alike for all keys and values |
//! | `refused`, `error` | what was not taken; what is wrong with the options |
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

// The others.
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
