//! The table engine: segments of MemC3 tables in a directory, generic over what a slot holds.
//!
//! Imports point downward in this list. `docs/design.md` has the invariants [I1]..[I8]; the protocols of reading [R1]..[R4],
//! writing [W1]..[W8], growing and shrinking [G1]..[G9], noticing re-entry [E1]..[E2]; those of the maps above, which are
//! memory for entries [M1]..[M5] and collecting [C1]..[C5]; and why they hold.
//!
//! | file | duty |
//! | --- | --- |
//! | `batch` | many look-ups at once, overlapped |
//! | `model` | what has been copied ahead of a split, on its own |
//! | `insert` | giving a new key a slot |
//! | `resize` | reserving room, and giving it back, in all segments |
//! | `replica` | a copy of a whole table |
//! | `growth` | replacing a segment by larger ones, or by a smaller one |
//! | `split` | giving half of a segment's items to a new one |
//! | `publish` | making the directory lead to new segments |
//! | `draft` | a segment that is being built |
//! | `alone` | inserting while nobody else reads or writes |
//! | `counting` | items, slots, bytes and events over all segments |
//! | `walk` | segment by segment |
//! | `find` | a look-up |
//! | `directory` | prefix to segment; locking |
//! | `pool` | segments and roots that were replaced |
//! | `root` | the directory's array |
//! | `metrics`, `serde` | the features that export counts |
//! | `allowance` | how many items may go to the overflow of a table of fixed capacity |
//! | `sizing` | how many segments, buckets, stripes |
//! | `locked` | all writes to buckets: find, put, displace, replace, remove |
//! | `residents` | marks and slots of a locked segment, for evictions |
//! | `supply` | memory for segments, side by side |
//! | `segment` | one table; how to read it |
//! | `rehash` | a hash function, as growth calls it |
//! | `parting` | which half an item goes to in future splits |
//! | `stale` | buckets that have changed since they were copied |
//! | `stats` | counts |
//! | `path` | breadth-first search for a path; reads only |
//! | `overflow` | items that fit neither bucket |
//! | `buckets` | tag words and slots |
//! | `undo` | replacing an item in several steps |
//! | `stripes` | version counters |
//! | `found` | which slot an item is in, as one word |
//! | `payload` | pointer or inline |
//! | `tags` | four tags in a word; eight matched at once |
//! | `memory` | bytes |

mod allowance;
mod alone;
mod batch;
mod buckets;
mod counting;
mod directory;
mod draft;
mod find;
mod found;
mod growth;
mod insert;
mod locked;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(loom)]
pub(crate) mod model;
mod overflow;
mod parting;
mod path;
mod payload;
mod pool;
mod publish;
mod rehash;
mod replica;
mod residents;
mod resize;
mod root;
mod segment;
#[cfg(feature = "serde")]
mod serde;
mod sizing;
mod split;
mod stale;
mod stats;
mod stripes;
mod supply;
mod tags;
mod undo;
mod walk;

pub(crate) use batch::{BATCH, digests_of, each_batch};
pub(crate) use directory::{Directory, Spot, Writing};
pub(crate) use draft::NoRoom;
pub(crate) use found::Found;
pub(crate) use locked::Locked;
pub(crate) use memory::{Block, Meter, advise_huge_pages, try_box};
pub(crate) use path::{Hop, Path, QUEUE, Tags, search};
pub(crate) use payload::{Inline, Keep, Payload, Pointer};
pub(crate) use pool::Retired;
pub(crate) use residents::Residents;
pub use sizing::CapacityError;
pub(crate) use sizing::{Options, Shape};
pub use stats::Stats;
pub(crate) use stripes::{Moving, Version, begin_first, publish_departures, settled, unchanged};
pub(crate) use walk::{InSlot, Walk};
