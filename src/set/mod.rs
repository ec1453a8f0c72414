//! The set: the map to `()`, with the method names of a set.
//!
//! | file | duty |
//! | --- | --- |
//! | `hash_set` | [`HashSet`]: constructors, calls that need no view, traits of the whole set |
//! | `pinned` | [`PinnedSet`]: methods that return references |
//! | `set_ref` | a value with its view |
//! | `iter` | its iterators |
//! | `fill` | adding many values |
//! | `serde`, `rayon` | the features of the same names |

mod fill;
mod hash_set;
mod iter;
mod pinned;
#[cfg(feature = "rayon")]
mod rayon;
#[cfg(feature = "serde")]
mod serde;
mod set_ref;

pub use hash_set::HashSet;
pub use iter::{SetDrain, SetExtractIf, SetIntoIter, SetIterWith};
pub use pinned::{PinnedSet, PinnedSetOwned};
#[cfg(feature = "rayon")]
pub use rayon::SetParIter;
pub use set_ref::SetRef;
