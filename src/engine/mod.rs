//! The table engine: segments of MemC3 tables in a directory, generic over what a slot holds.
//!
//! Imports point downward in this list; `docs/design.md` has the invariants [I1]..[I8], the protocols [R1]..[R4]
//! and [W1]..[W6], and why they hold.
//!
//! | file | duty |
//! | --- | --- |
//! | `batch` | many look-ups at once, overlapped |
//! | `growth` | replace a segment by larger ones; the pool |
//! | `directory` | prefix to segment; reading; locking; walking |
//! | `locked` | all writes to buckets: find, put, displace, replace, remove |
//! | `segment` | one table in one allocation; how to read it |
//! | `path` | breadth-first search for a path; reads only |
//! | `overflow` | what fits neither bucket |
//! | `buckets` | tag words and slots; eight tags at once |
//! | `stripes` | version counters |
//! | `payload` | pointer or inline |
//! | `memory`, `sizing`, `stats`, `reentry`, `prefetch` | bytes; numbers; counts; a thread's own writes; a hint |

mod batch;
mod buckets;
mod directory;
mod growth;
mod locked;
mod memory;
mod overflow;
mod path;
mod payload;
mod prefetch;
mod reentry;
mod segment;
mod sizing;
mod stats;
mod stripes;

pub(crate) use batch::BATCH;
pub(crate) use directory::{Directory, Writing};
pub(crate) use growth::{NoRoom, Retired};
pub(crate) use locked::Found;
pub(crate) use memory::{Meter, advise_huge_pages};
pub(crate) use payload::{Inline, Pointer};
pub use sizing::CapacityError;
pub(crate) use sizing::{Options, Shape};
pub use stats::Stats;
