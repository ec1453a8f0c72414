//! [`Places`]: where one key belongs in each table of a chain.

use super::super::codec::Codec;
use super::super::geometry::{Older, Place, ToPlace};
use super::super::inner::Inner;
use super::super::layout::Task;
use super::super::locked::Locked;
use super::super::table::Table;
use super::chain::Level;
use crate::hash::Digest;

/// A key's place in the newest of some tables, newest first, from which those in the others follow.
pub(super) struct Places<'a> {
    levels: &'a [Level],
    newest: Place,
}

impl<'a> Places<'a> {
    /// Of a digest, in at least one table.
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

    /// Starts loading what is read of large tables: the waits for one after the other overlap.
    #[inline]
    pub(super) fn fetch(&self) {
        // Newest first is largest first: behind the first near table all are near.
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

    /// Whether the fingerprint is in any table; never waits.
    #[inline]
    pub(super) fn contains(&self) -> bool {
        self.each().any(|(level, place)| level.inner.contains(&place))
    }

    /// How often it is there, over all tables; never waits.
    pub(super) fn count(&self) -> usize {
        // `contains` first: it takes less than `count`, and most tables do not have the key.
        let in_any = self.each().filter(|(level, place)| level.inner.contains(place));
        in_any.map(|(level, place)| level.inner.count(&place)).sum()
    }

    /// The same, exactly: under the locks of its segments, all of them at once. What a look-up meets in a bucket that is just
    /// being changed may be gone when that is done, and a key must not be left out for it; nor for a copy that is moved from
    /// one table to another while they are counted.
    pub(super) fn count_locked(&self) -> usize {
        self.count_locked_from(0)
    }

    /// The same in the tables from one on. The newest is locked first, as by who moves fingerprints to older tables.
    fn count_locked_from(&self, index: usize) -> usize {
        let Some((level, place)) = self.each().nth(index) else { return 0 };
        let place = level.inner.place(&place);
        let locked = level.inner.lock(place);
        level.inner.count_in(&locked, place) + self.count_locked_from(index + 1)
    }

    /// Whether a copy was removed, from the newest table that has one. Only tables in which it is seen are locked: where it is
    /// all the time, it is seen.
    pub(super) fn remove(&self) -> bool {
        self.each().any(|(level, place)| level.inner.contains(&place) && level.inner.remove(&place))
    }

    /// Puts a copy into a free slot of the newest table, or of an older one; only if none is free, it displaces others in the
    /// newest, as a search that finds no path takes microseconds. False: there is no room, but for what is being emptied.
    pub(super) fn insert(&self) -> bool {
        let newest = &self.levels[0].inner;
        put(newest, self.newest, false) == Some(true)
            || self.older().any(|(level, place)| {
                level.inner.has_room(&place) && put(&level.inner, &place, false) == Some(true)
            })
            // What is being emptied has room in the others, and so should have what comes.
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

/// Puts a fingerprint into a table, and displaces others only if told to. Whether it had room; `None`: the table is being
/// emptied, and takes nothing.
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
