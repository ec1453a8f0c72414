//! [`Places`]: where one key belongs in each table of a chain.

use super::super::codec::Codec;
use super::super::geometry::{Older, Place};
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

    /// The same, and starts loading all that is far from the processor: the waits for one table after the other overlap.
    #[inline]
    pub(super) fn fetched(levels: &'a [Level], digest: Digest) -> Self {
        let places = Places::new(levels, digest);
        // The larger they are, the newer.
        for (level, place) in places.each().take_while(|(level, _)| level.is_far) {
            level.inner.prefetch(&place);
        }
        places
    }

    /// All tables, the newest first, and the place in each.
    #[inline(always)]
    pub(super) fn each(&self) -> impl Iterator<Item = (&'a Level, Older<'_>)> {
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
        // Hardly ever in any: that is asked first, as it takes less.
        let in_any = self.each().filter(|(level, place)| level.inner.contains(place));
        in_any.map(|(level, place)| level.inner.count(&place)).sum()
    }

    /// The same, seen under its segments' locks: what a look-up meets in a bucket that is just being changed may be gone when
    /// that is done, and a key must not be left out for it. One that is moved between tables meanwhile may count twice.
    pub(super) fn count_locked(&self) -> usize {
        self.each().map(|(level, place)| level.inner.count_locked(&place)).sum()
    }

    /// Whether a copy was removed, from the newest table that has one. Only tables in which it is seen are locked: where it is
    /// all the time, it is seen.
    pub(super) fn remove(&self) -> bool {
        self.each().any(|(level, place)| level.inner.contains(&place) && level.inner.remove(&place))
    }

    /// Puts a copy into the newest table; or, if it has no free slot there, into an older one; or into the newest, in which
    /// others are displaced for it: a search for room that finds none is dear. False: there is no room.
    pub(super) fn insert(&self) -> bool {
        let newest = &self.levels[0].inner;
        put(newest, &self.newest, false)
            || self.each().skip(1).any(|(level, place)| {
                level.inner.has_room(&place) && put(&level.inner, &level.inner.place(&place), false)
            })
            || put(newest, &self.newest, true)
    }
}

/// Puts a fingerprint into a table; false, if that has no room, or is being emptied.
fn put(inner: &Inner, place: &Place, displaces: bool) -> bool {
    inner.layout.run(Put { table: &inner.table, place, displaces })
}

/// Puts a fingerprint into a table that is not being emptied.
struct Put<'a> {
    table: &'a Table,
    place: &'a Place,
    /// Displaces others if it must be.
    displaces: bool,
}

impl Task for Put<'_> {
    type Output = bool;

    fn run<C: Codec>(self, codec: C) -> bool {
        let mut locked = Locked::lock(self.table, self.place.segment);
        if locked.state().closed {
            return false;
        }
        if self.displaces {
            locked.insert(codec, *self.place)
        } else {
            locked.insert_directly(codec, *self.place)
        }
    }
}
