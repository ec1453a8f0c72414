//! [`Places`]: the places at which one key belongs in each table of a chain.

use super::super::codec::Codec;
use super::super::geometry::{Older, Place, ToPlace};
use super::super::inner::Inner;
use super::super::layout::Task;
use super::super::locked::Locked;
use super::super::table::Table;
use super::chain::Level;
use crate::hash::Digest;

/// A key's place in the newest of some tables, newest first, from which its places in the others follow.
pub(super) struct Places<'a> {
    levels: &'a [Level],
    newest: Place,
}

impl<'a> Places<'a> {
    /// The places of a digest, in at least one table.
    #[inline]
    pub(super) fn new(levels: &'a [Level], digest: Digest) -> Self {
        Places { levels, newest: levels[0].inner.place(digest) }
    }

    /// The same, [fetched](Self::fetch).
    #[inline]
    pub(super) fn fetched(levels: &'a [Level], digest: Digest) -> Self {
        let places = Places::new(levels, digest);
        places.fetch();
        places
    }

    /// Starts loading the memory that is read in large tables: the waits for one after the other overlap.
    #[inline]
    pub(super) fn fetch(&self) {
        // Newest first is largest first: after the first near table all are near.
        self.each()
            .take_while(|(level, _)| level.is_far)
            .for_each(|(level, place)| level.inner.prefetch(&place));
    }

    /// All tables, the newest first, and the place in each.
    #[inline(always)]
    fn each(&self) -> impl Iterator<Item = (&'a Level, Older<'_>)> {
        let newest = self.levels[0].index;
        self.levels.iter().map(move |level| (level, level.older(&self.newest, newest)))
    }

    /// Returns whether the fingerprint is in any table; never waits.
    #[inline]
    pub(super) fn contains(&self) -> bool {
        self.each().any(|(level, place)| level.inner.contains(&place))
    }

    /// Returns how often it is present, over all tables; never waits.
    pub(super) fn count(&self) -> usize {
        // `contains` first: it is cheaper than `count`, and most tables do not have the key.
        let in_any = self.each().filter(|(level, place)| level.inner.contains(place));
        in_any.map(|(level, place)| level.inner.count(&place)).sum()
    }

    /// As `count`, but exact: under the locks of its segments, all of them at once. A fingerprint that a look-up meets in a
    /// bucket that is just being changed may be gone when the change is complete, and a key must not be left out because of it;
    /// nor because of a copy that is moved from one table to another during the count.
    pub(super) fn count_locked(&self) -> usize {
        self.count_locked_from(0)
    }

    /// The same in the tables from one on. The newest is locked first, as is done by a thread that moves fingerprints to older
    /// tables.
    fn count_locked_from(&self, index: usize) -> usize {
        let Some((level, place)) = self.each().nth(index) else { return 0 };
        let place = level.inner.place(&place);
        let locked = level.inner.lock(place);
        level.inner.count_in(&locked, place) + self.count_locked_from(index + 1)
    }

    /// Removes a copy from the newest table that has one, and returns whether there was one. Only tables in which it is seen
    /// are locked: where it is present all the time, it is seen.
    pub(super) fn remove(&self) -> bool {
        self.each().any(|(level, place)| level.inner.contains(&place) && level.inner.remove(&place))
    }

    /// Puts a copy into a free slot of the newest table, or of an older one. Only if no slot is free, it displaces others in
    /// the newest, as a search that finds no path takes microseconds. Returns `false` if there is no room, except in a table
    /// that is being emptied.
    pub(super) fn insert(&self) -> bool {
        let newest = &self.levels[0].inner;
        put(newest, self.newest, false) == Some(true)
            || self.older().any(|(level, place)| {
                level.inner.has_room(&place) && put(&level.inner, &place, false) == Some(true)
            })
            // The contents of a table that is being emptied have room in the others, and so should a new fingerprint.
            || put(newest, self.newest, true).unwrap_or_else(|| self.insert_displacing_older())
    }

    /// Puts a copy into an older table, and displaces others there.
    pub(super) fn insert_displacing_older(&self) -> bool {
        self.older().any(|(level, place)| put(&level.inner, &place, true) == Some(true))
    }

    /// All tables but the newest, and the place in each.
    #[inline(always)]
    fn older(&self) -> impl Iterator<Item = (&'a Level, Older<'_>)> {
        self.each().skip(1)
    }
}

/// Puts a fingerprint into a table, and displaces others only if told to. Returns whether it had room; `None` if the table is
/// being emptied, and takes nothing.
fn put(inner: &Inner, at: impl ToPlace, displaces: bool) -> Option<bool> {
    inner.layout.run(Put { table: &inner.table, at, displaces })
}

struct Put<'a, S> {
    table: &'a Table,
    at: S,
    displaces: bool,
}

impl<S: ToPlace> Task for Put<'_, S> {
    type Output = Option<bool>;

    fn run<C: Codec>(self, codec: C) -> Option<bool> {
        let place = self.table.place(codec, self.at);
        let mut locked = Locked::lock(self.table, place.segment);
        if locked.state().closed {
            return None;
        }
        Some(if self.displaces { locked.insert(codec, place) } else { locked.insert_directly(codec, place) })
    }
}
