//! Real threads under load: keys that are held in a map are never missed, counters never lose a count, closures run once, and
//! threads come and go. Bounded by iterations, not by time.

#[path = "../common/mod.rs"]
mod common;
mod counting;
mod lookups;
mod pins;
