//! Cuckoo filters, of fixed size and growing: the maps' table without payloads, with tags of any width.
//!
//! Shared parts are the engine's: paths are searched by `engine::path`, versions kept by `engine::stripes`, memory by
//! `engine::memory`. Find, insert, remove and displace are written here a second time, as fingerprints are packed bits. Imports
//! point downward in this list, except those of builders, which name the type that they build.
//!
//! | file | duty |
//! | --- | --- |
//! | `serde`, `rayon` | serialization; building on all threads |
//! | `scalable` | the growing filter: tables in a chain |
//! | `owned_view` | look-ups in bytes that the view owns |
//! | `bytes`, `view`, `union` | to bytes and back; look-ups in bytes; uniting two filters |
//! | `build` | the filter: from all its keys at once |
//! | `many` | the filter: many keys at once |
//! | `cuckoo` | the filter |
//! | `info` | what a filter, a table and a view report about themselves |
//! | `builder` | its options |
//! | `chunks`, `loader` | bytes in chunks; chunks to tables |
//! | `format` | the bytes |
//! | `plan` | the tables that a growing filter has |
//! | `batch` | many digests at once |
//! | `inner` | the filter without its hash function |
//! | `parted` | digests in the order of their segments |
//! | `sizing` | from the request to layout and size |
//! | `locked` | all writes to a segment |
//! | `table` | segments in one allocation; how to read them |
//! | `layout` | the layouts, chosen at run time |
//! | `semi_sorted` | buckets with sorted low nibbles |
//! | `lanes` | buckets of equal lanes |
//! | `semi_sort` | the code of four nibbles |
//! | `codec` | operations of every layout |
//! | `num` | integers as registers of lanes |
//! | `words` | bits in atomic words or in bytes |
//! | `geometry` | digest to place |
//! | `hasher` | the default hash function |
//! | `collect` | lists for which there may be no memory |
//! | `error` | errors |

// In the order in which the documentation shows their methods.
mod cuckoo;
mod many;
mod bytes;
mod build;
mod union;
mod scalable;

// The others.
mod batch;
mod builder;
mod chunks;
mod codec;
mod collect;
mod error;
mod format;
mod geometry;
mod hasher;
mod info;
mod inner;
mod lanes;
mod layout;
mod loader;
mod locked;
mod num;
mod owned_view;
mod parted;
mod plan;
#[cfg(feature = "rayon")]
mod rayon;
mod semi_sort;
mod semi_sorted;
#[cfg(feature = "serde")]
mod serde;
mod sizing;
mod table;
mod view;
mod words;

pub use builder::FilterBuilder;
pub use chunks::Chunks;
pub(crate) use collect::try_collect;
pub use cuckoo::CuckooFilter;
pub use error::{BytesError, FilterError};
pub(crate) use hasher::hash_bytes;
pub use hasher::{FilterHasher, Xxh3, Xxh3Hasher};
pub use info::{FilterInfo, TableInfo, ViewInfo};
pub use loader::ChunkLoader;
pub use owned_view::FilterViewOwned;
pub use scalable::{ScalableCuckooFilter, ScalableFilterBuilder, ScalableInfo};
pub use view::FilterView;

/// For the models: see `crate::model`.
#[cfg(any(loom, shuttle))]
pub(crate) fn model_place(hash: u64, buckets: u32, fingerprint_bits: u32) -> (u32, u32, u32) {
    let geometry = geometry::Geometry::new(1, buckets, fingerprint_bits, fingerprint_bits);
    let place = geometry.place(crate::hash::Digest::new(hash));
    (place.first, place.second, place.fingerprint)
}
