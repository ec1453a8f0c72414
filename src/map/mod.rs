//! The maps: front ends of the engine, with no table logic in them.
//!
//! | file | duty |
//! | --- | --- |
//! | `hash_map` | [`HashMap`]: constructors, traits of the whole map |
//! | `pinned`, `pinned_write` | [`Pinned`]: its operations |
//! | `iter` | its iterators |
//! | `inline_map`, `inline_iter` | [`InlineMap`] and its iterators |
//! | `builder` | options of both |
//! | `outcome` | what operations take and return beside values |
//! | `table` | a map's memory: directory, entries, collector |
//! | `old` | entries that were taken out, gathered for the reclaimer |
//! | `slab` | the entries' memory |
//! | `serde`, `rayon` | the features of these names |

mod builder;
mod hash_map;
mod inline_iter;
mod inline_map;
mod iter;
mod old;
mod outcome;
mod pinned;
mod pinned_write;
#[cfg(feature = "rayon")]
mod rayon;
#[cfg(feature = "serde")]
mod serde;
mod slab;
mod table;

pub(crate) use crate::full::Full;
pub use builder::{Builder, HashMapKind, InlineMapKind, Kind};
pub use hash_map::HashMap;
pub use inline_iter::{InlineDrain, InlineIter, InlineKeys, InlineValues};
pub use inline_map::InlineMap;
pub use iter::{Drain, IntoIter, Iter, Keys, Values};
pub use outcome::{Compute, Occupied, Operation};
pub use pinned::{Pinned, PinnedOwned};
