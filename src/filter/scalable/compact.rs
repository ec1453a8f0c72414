//! Emptying tables into older ones while readers look up keys.

use std::sync::Arc;

use super::super::codec::Codec;
use super::super::collect::{try_collect, with_room};
use super::super::geometry::Place;
use super::super::layout::Task;
use super::super::locked::Locked;
use super::chain::{Level, Restructuring};
use super::filter::ScalableCuckooFilter;

impl<S> ScalableCuckooFilter<S> {
    /// Moves fingerprints from newer tables to free slots in older ones, and gives back the tables that become empty. Returns
    /// how many tables were given back.
    ///
    /// Worth a call after many removals. Look-ups go on, and miss nothing. Insertions and removals go on, and wait for a
    /// segment that is being emptied: tens of milliseconds, if it has 65,536 buckets and is full. An insertion that finds no
    /// room in the other tables waits until the one that is being emptied is given back or left alone. A table is left alone if
    /// the older ones have no room for the keys that it still holds, or if there is no memory to list those. The false-positive
    /// rate stays within the requested rate. A filter grows only after its newest table: if that has fingerprints of 32 bits,
    /// the room of an older one that was given back is lost.
    ///
    /// Waits for any thread that copies the filter or [writes it](ScalableCuckooFilter::write_to) somewhere.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::new(0.01)?;
    /// assert!((0..20_000).all(|key| filter.insert(&key).is_ok()));
    /// let tables = filter.info().tables.len();
    /// assert!(tables > 1);
    ///
    /// filter.clear(); // the tables stay
    /// assert_eq!(filter.info().tables.len(), tables);
    /// assert_eq!(filter.compact(), tables - 1);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    #[doc(alias = "shrink_to_fit")]
    pub fn compact(&self) -> usize {
        let _moving = self.moving.lock();
        let mut given_back = 0;
        // Newest first: a table that is emptied later cannot get anything back.
        let Ok(levels) = try_collect(self.chain.levels().iter().cloned()) else { return 0 };
        for (age, source) in levels.iter().enumerate() {
            let older = &levels[age + 1..];
            let room: usize = older.iter().map(room).sum();
            if older.is_empty() || source.inner.table.len() > room {
                continue;
            }
            // A thread that finds no room in the other tables waits until this one is off the list, or open again.
            let restructuring = self.chain.lock();
            if empty_into(source, older) && self.take_off(&restructuring, source) {
                given_back += 1;
            } else {
                open(source);
            }
            drop(restructuring);
            self.chain.flush();
        }
        given_back
    }

    /// Takes an empty table off the list; returns `false` if there is no memory for a shorter list.
    fn take_off(&self, restructuring: &Restructuring<'_>, table: &Level) -> bool {
        let others = |level: &&Level| !Arc::ptr_eq(&level.inner, &table.inner);
        let left = try_collect(self.chain.levels().iter().filter(others).cloned());
        left.is_ok_and(|left| restructuring.replace(left))
    }
}

/// Lets the table take new fingerprints again.
fn open(level: &Level) {
    let table = &level.inner.table;
    for segment in table.segments() {
        Locked::lock(table, segment.index).state().closed = false;
    }
}

/// The number of slots that may still be filled: a moved fingerprint should find its place without long searches. Insertions
/// may have filled more.
fn room(level: &Level) -> usize {
    level.inner.capacity.saturating_sub(level.inner.table.len())
}

/// The same in the segment of an older table to which the contents of a segment of a newer one go.
fn room_for(level: &Level, segment: u32, newer: &Level) -> usize {
    let table = &level.inner.table;
    let segments = table.geometry().segments;
    let len = table.len_of(segment >> (newer.index - level.index));
    (level.inner.capacity / segments as usize).saturating_sub(len)
}

/// The number of searches for a path that may be in vain, in one older table and for one segment that is emptied into it: each
/// takes as long as a thousand moves, and there are some where a table cannot be filled as far as the limit says.
const PATIENCE: u32 = 16;

/// An older table, and how many more fingerprints it is to take, in all and from the segment that is being emptied.
struct Target<'a> {
    level: &'a Level,
    room: usize,
    room_for_segment: usize,
    patience: u32,
}

/// Empties a table into older ones. Returns `false` if they had no room for all fingerprints, or there is no memory to list
/// those.
fn empty_into(source: &Level, older: &[Level]) -> bool {
    let table = &source.inner.table;
    for segment in table.segments() {
        // A thread that gets the lock from now on does not insert: the segment stays empty.
        Locked::lock(table, segment.index).state().closed = true;
    }
    let targets = older.iter().map(|level| Target { level, room: 0, room_for_segment: 0, patience: 0 });
    let Ok(mut targets) = try_collect(targets) else { return false };
    table.segments().all(|segment| {
        // Insertions have filled more since the last segment.
        for target in &mut targets {
            target.room = room(target.level);
            target.room_for_segment = room_for(target.level, segment.index, source);
            target.patience = PATIENCE;
        }
        let empty = EmptySegment { source, targets: &mut targets, segment: segment.index };
        source.inner.layout.run(empty)
    })
}

/// Empties one segment. Returns `false` if not all fingerprints found room.
struct EmptySegment<'a, 'b> {
    source: &'b Level,
    targets: &'a mut [Target<'b>],
    segment: u32,
}

impl Task for EmptySegment<'_, '_> {
    type Output = bool;

    fn run<C: Codec>(self, codec: C) -> bool {
        let table = &self.source.inner.table;
        let geometry = *table.geometry();
        // A lock of this table, then one of an older table: no thread takes them in another order, or two of one table.
        let mut locked = Locked::lock(table, self.segment);
        let Ok(mut all) = with_room(locked.len()) else { return false };
        locked.for_each(codec, |bucket, fingerprint| all.push((bucket, fingerprint)));
        for (first, fingerprint) in all {
            let second = geometry.alternate(first, fingerprint);
            let place = Place { segment: self.segment, first, second, fingerprint };
            let mut has_taken =
                |squeezes| self.targets.iter_mut().any(|target| target.take(self.source, place, squeezes));
            // Present there before it is gone here [I3].
            if !has_taken(false) && !has_taken(true) {
                return false;
            }
            let removed = locked.remove(codec, place);
            debug_assert!(removed, "the lock is held");
        }
        true
    }
}

impl Target<'_> {
    /// Puts a fingerprint of a newer table into this one, if it has room, or, if `squeezes`, would have room in another
    /// segment. Segments are emptied one after the other, several into one of this table: if that one is full, each search for
    /// a path is in vain.
    fn take(&mut self, source: &Level, place: Place, squeezes: bool) -> bool {
        let has_room = self.room > 0 && (self.room_for_segment > 0 || squeezes) && self.patience > 0;
        let taken = has_room && self.level.inner.insert(&self.level.older(&place, source.index));
        self.patience -= u32::from(has_room && !taken);
        self.room -= usize::from(taken);
        self.room_for_segment = self.room_for_segment.saturating_sub(usize::from(taken));
        taken
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;

    /// The keys of a table's first segments all belong in the first segment of an older table, more of them than it has slots.
    #[test]
    fn compaction_fills_no_segment_while_another_table_has_room() {
        let builder = ScalableCuckooFilter::builder().capacity(3800).false_positive_rate(0.01).seed(1);
        let filter = builder.build().unwrap();
        let (gone, all) = (12_250, 21_750);
        assert!((0..all).all(|key: u64| filter.insert(&key).is_ok()));
        assert!((0..gone).all(|key| filter.remove(&key)));
        assert_eq!((filter.compact(), filter.info().tables.len()), (1, 2));
        assert!((gone..all).all(|key| filter.contains(&key)));
        for level in filter.chain.levels().iter() {
            let (table, capacity) = (&level.inner.table, level.inner.capacity);
            let lens: Vec<usize> = table.segments().map(|segment| table.len_of(segment.index)).collect();
            assert!(lens.iter().all(|len| len * lens.len() <= capacity), "{lens:?} of {capacity}");
        }
    }
}
