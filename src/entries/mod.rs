//! Entries behind pointers, for the front ends whose slots hold pointers: how they are allocated, kept alive and freed.
//!
//! | file | duty |
//! | --- | --- |
//! | `table` | a table's memory: directory, entries, collector |
//! | `old` | entries that were taken out, gathered for the reclaimer |
//! | `entry` | entries |
//! | `kept`, `part` | an entry that was found, and a part of its value, with what keeps it alive |
//! | `entry_slab` | their memory |
//! | `slab` | memory in pieces of one size, whatever is in them |
//! | `chunks`, `chunk` | what the pieces are cut from |
//! | `sorting` | which chunks are not in use, and which are to be emptied |
//! | `surplus` | when so many pieces are free that a release is worth while |
//! | `homes` | cells that the digests of keys select |
//! | `home_lines` | where the cells are, for look-ups |
//! | `magazine` | free pieces, some or many |
//! | `page` | what a slab's pages begin with |
//! | `model` | `homes` for models |

mod chunk;
mod chunks;
mod entry;
mod entry_slab;
mod home_lines;
mod homes;
mod kept;
mod magazine;
#[cfg(loom)]
pub(crate) mod model;
mod old;
mod page;
mod part;
mod slab;
mod sorting;
mod surplus;
mod table;

pub(crate) use entry::{Entry, EntryPointer, OwnedEntry};
pub(crate) use homes::Within;
pub(crate) use kept::Kept;
pub(crate) use old::{OldEntries, RETIRED_AS_ONE, Reserve, Reserves, retire_all};
pub(crate) use part::Part;
pub(crate) use table::{Slots, Table, drop_each};
