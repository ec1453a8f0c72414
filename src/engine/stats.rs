//! What a map reports about its own work.

use core::fmt;
use core::time::Duration;

use super::path::MAX_HOPS;

/// Counts of what happened under one segment's lock. A successor inherits them. The order matters: the first count is the one
/// that changes.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Tally {
    /// Inserts by the number of displacements that made room.
    pub(crate) path_lengths: [u64; MAX_HOPS + 1],
    /// Searches that found no path.
    pub(crate) failed_searches: u64,
}

impl Tally {
    /// Adds what `other` counted.
    pub(crate) fn add(&mut self, other: &Tally) {
        for (mine, theirs) in self.path_lengths.iter_mut().zip(other.path_lengths) {
            *mine += theirs;
        }
        self.failed_searches += other.failed_searches;
    }
}

/// A snapshot of a map's inner workings, from `stats()`.
///
/// Counts start when the map is made, or made anew, as an empty map is when it is extended by `&mut`. They are exact while
/// nobody writes. Displays as lines of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Entries that are present.
    pub len: usize,
    /// Slots.
    pub capacity: usize,
    /// Bytes from the allocator, as in the map's `memory_usage`.
    pub memory_usage: usize,
    /// Items moved from one of their buckets to the other to make room.
    pub displacements: u64,
    /// Inserts of new keys, by the length of the cuckoo path: `path_lengths[0]` found an empty slot at once.
    pub path_lengths: [u64; MAX_HOPS + 1],
    /// Searches for a path that found none within their budget, or were not made because no slot was empty: each made a segment
    /// grow, an item go to the overflow, or a map report that it is full or has no memory.
    pub failed_searches: u64,
    /// Times a reader noticed that something had moved meanwhile and read again.
    pub read_retries: u64,
    /// Segments: tables with a writer lock each.
    pub segments: usize,
    /// Segments that gave half of what they covered to a new one of the same size, or were replaced by two because they had
    /// items in the overflow.
    pub splits: u64,
    /// Segments replaced by a larger one.
    pub doublings: u64,
    /// Items that neither bucket had room for, in lists that are searched for keys that are not in their buckets: absent keys,
    /// and the keys of these items.
    pub overflow: usize,
    /// The longest time for which a segment was locked while it grew. Other waits, such as for `shrink_to_fit` or closures, are
    /// not included.
    pub longest_write_pause: Duration,
    /// How many objects wait to be dropped or freed; many do while a pin is held for long. Entries of a
    /// [`HashMap`](crate::HashMap) that own memory or have more than 512 bytes count one each. Of other entries each list of up
    /// to 31 counts one (`memory_usage` counts their memory), and those that have not filled a list yet do not count. Tables
    /// that were given back count one each. 0 for an [`InlineMap`](crate::InlineMap), which has no pins.
    pub waiting: usize,
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stats { len, capacity, memory_usage, segments, splits, doublings, overflow, .. } = self;
        let Stats { displacements, failed_searches, read_retries, waiting, .. } = self;
        let [at_once, moved @ ..] = &self.path_lengths;
        writeln!(f, "{len} entries in {capacity} slots; {memory_usage} bytes")?;
        writeln!(
            f,
            "{segments} segment{}; {splits} splits, {doublings} doublings; {overflow} items in overflow",
            if *segments == 1 { "" } else { "s" }
        )?;
        writeln!(
            f,
            "new keys: {at_once} in an empty slot, {} after displacing; {displacements} displacements, \
             {failed_searches} searches in vain",
            moved.iter().sum::<u64>()
        )?;
        writeln!(f, "{read_retries} reads again; {waiting} waiting to be dropped")?;
        write!(f, "longest write pause: {:?}", self.longest_write_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_in_words() {
        let mut stats = Stats { segments: 3, displacements: 7, ..Stats::default() };
        stats.path_lengths[..3].copy_from_slice(&[100, 5, 1]);
        let text = stats.to_string();
        assert!(
            text.starts_with("0 entries in 0 slots; 0 bytes\n3 segments;")
                && text.contains("100 in an empty slot, 6 after"),
            "{text}"
        );
        assert!(text.contains("7 displacements") && text.ends_with("write pause: 0ns"), "{text}");
        assert!(Stats { segments: 1, ..stats }.to_string().contains("\n1 segment; 0 splits"));
    }

    #[test]
    fn a_path_of_every_length_is_counted_and_counts_add_up() {
        assert_eq!(Stats::default().path_lengths.len(), MAX_HOPS + 1);
        let counted =
            Tally { path_lengths: core::array::from_fn(|hops| hops as u64 + 1), failed_searches: 7 };
        assert_eq!(counted.path_lengths.len(), MAX_HOPS + 1);
        let mut sum = Tally::default();
        sum.add(&counted);
        sum.add(&counted);
        assert_eq!((&sum.path_lengths[..], sum.failed_searches), (&[2, 4, 6, 8, 10, 12][..], 14));
    }
}
