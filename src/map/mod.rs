//! The maps: front ends of the engine, with no table logic in them.
//!
//! | file | duty |
//! | --- | --- |
//! | `hash_map` | [`HashMap`]: constructors, traits of the whole map |
//! | `pinned`, `pinned_write` | [`Pinned`]: its operations |
//! | `pinned_ref`, `pinned_checked` | its writes by reference to a key; writes that return what has no room |
//! | `pinned_steps` | the steps that its writes are made of |
//! | `entry_ref` | an entry with its view, or a part of an entry |
//! | `iter` | its iterators |
//! | `forwarding` | the common part of iterators that wrap another one |
//! | `inline_map`, `inline_iter` | [`InlineMap`]: constructors and reads, its iterators |
//! | `inline_write`, `inline_checked` | its writing half; writes that return what has no room |
//! | `bulk` | inserting many pairs, for both maps |
//! | `exclusive`, `exclusive_iter` | [`HashMap`]: values in place and entries by value, with exclusive access |
//! | `alone` | filling a map that nobody else uses, for both |
//! | `copy`, `retain` | copies of whole maps; removing many entries; for both |
//! | `builder` | options of both maps |
//! | `serde`, `rayon` | the features of the same names |

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
mod forwarding;
mod inline_iter;
mod iter;
mod pinned_steps;
mod retain;
#[cfg(feature = "rayon")]
mod rayon;
#[cfg(feature = "serde")]
mod serde;

/// The result of a write, or the pair for which there is no room.
type Checked<T, K, V> = Result<T, Full<K, V>>;

pub(crate) use crate::full::Full;
pub(crate) use alone::{Fill, Ours, extend_alone};
pub use builder::{Builder, HashMapKind, InlineMapKind, Kind};
pub(crate) use bulk::{SharedMap, Target, extend};
pub use entry_ref::{MappedRef, Ref};
pub use exclusive_iter::{ExtractIf, IterMut, ValuesMut};
pub(crate) use forwarding::forward_iterator;
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
