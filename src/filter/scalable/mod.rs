//! The growing filter: a chain of tables, each larger and with wider fingerprints than the one before.
//!
//! All tables have the same number of buckets in a segment, and a fingerprint's pair depends on those of its bits that the
//! oldest table has. So segment, buckets and fingerprint in an older table follow from those in a newer one (`geometry`), and a
//! fingerprint can be moved to an older table without its key. The reverse does not hold: bits that an older table has
//! forgotten cannot be restored from its fingerprint.
//!
//! Look-ups go from the newest table to the oldest, and so do moves: the target is filled before the source is cleared [I3]. A
//! reader that finds the source empty finds the target filled when it gets there: no version spans two tables.
//!
//! Removals search the newest table first. If they meet the fingerprint of another key there, equal in all its bits, it is
//! equal in all older tables, and the removed key's own fingerprint, in the same or an older table, stands in for it. If they
//! started with the oldest, the fingerprint might be equal only in the few bits that the old table has, and the other key would
//! be missed.
//!
//! | file | duty |
//! | --- | --- |
//! | `build` | building from all keys at once |
//! | `keys` | one key at a time, by itself or by its bytes |
//! | `filter`, `many` | the filter, and one key at a time by its hash; many keys |
//! | `info` | what a growing filter reports about itself |
//! | `compact` | emptying tables into older ones |
//! | `places` | one key in all tables |
//! | `turns` | a key is inserted by one thread at a time, unless it is present |
//! | `chain` | the list of tables, which readers follow without a lock |
//! | `bytes` | to bytes and back |
//! | `builder` | options |

// In the order in which the documentation shows their methods.
mod filter;
mod keys;
mod many;
mod bytes;
mod build;

// The others.
mod builder;
mod chain;
mod compact;
mod info;
mod places;
mod turns;

pub use builder::ScalableFilterBuilder;
pub use filter::ScalableCuckooFilter;
pub use info::ScalableInfo;
