//! The maps: front ends of the engine, with no table logic in them.
//!
//! | file | duty |
//! | --- | --- |
//! | `hash_map` | [`HashMap`]: constructors, traits of the whole map |
//! | `pinned`, `pinned_write` | [`Pinned`]: its operations |
//! | `pinned_ref`, `pinned_checked` | its writes by reference to a key; those that hand back what has no room |
//! | `pinned_steps` | what those are made of that write |
//! | `entry_ref` | an entry with its view, or a part of one |
//! | `iter` | its iterators |
//! | `inline_map`, `inline_iter` | [`InlineMap`]: making one and reading, its iterators |
//! | `inline_write`, `inline_checked` | its writing half; writes that hand back what has no room |
//! | `bulk` | inserting many pairs, for both |
//! | `exclusive`, `exclusive_iter` | [`HashMap`]: values in place and entries by value, for who has it to himself |
//! | `alone` | filling a map that nobody else uses, either |
//! | `copy`, `retain` | copies of whole maps; removing many entries; either |
//! | `builder` | options of both |
//! | `serde`, `rayon` | the features of these names |

// In the order in which the documentation shows their methods.
mod hash_map;
mod pinned;
mod pinned_write;
mod pinned_ref;
mod pinned_checked;
mod inline_map;
mod inline_write;
mod inline_checked;

// The others.
mod alone;
mod builder;
mod bulk;
mod copy;
mod entry_ref;
mod exclusive;
mod exclusive_iter;
mod inline_iter;
mod iter;
mod pinned_steps;
mod retain;
#[cfg(feature = "rayon")]
mod rayon;
#[cfg(feature = "serde")]
mod serde;

/// What a write has done, or what it has no room for.
type Checked<T, K, V> = Result<T, Full<K, V>>;

pub(crate) use crate::full::Full;
pub(crate) use alone::{Fill, Ours, extend_alone};
pub use builder::{Builder, HashMapKind, InlineMapKind, Kind};
pub(crate) use bulk::{SharedMap, Target, extend};
pub use entry_ref::{MappedRef, Ref};
pub use exclusive_iter::{ExtractIf, IterMut, ValuesMut};
pub use hash_map::HashMap;
pub use inline_iter::{InlineDrain, InlineIter, InlineKeys, InlineValues};
pub use inline_map::InlineMap;
pub use iter::{ClonedIter, Drain, IntoIter, Iter, IterWith, Keys, Values};
pub use pinned::{Pinned, PinnedOwned};
#[cfg(feature = "rayon")]
pub use rayon::{InlineParIter, ParIter};
#[cfg(feature = "rayon")]
pub(crate) use rayon::{insert_part, par_extend_alone};
#[cfg(feature = "serde")]
pub(crate) use serde::collect_cautiously;
